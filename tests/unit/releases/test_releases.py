"""Files of earlier releases are read; files of a newer one are refused, and stay as they are."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sharectl.cli.main import main
from sharectl.config.laws import with_laws
from sharectl.config.load import load
from sharectl.control.laws import Control
from sharectl.control.steering import SteeringConfig
from sharectl.cycle.cycle import run_cycle
from sharectl.cycle.publication import Publishing, load_state
from sharectl.errors import ConfigError, InputError, NewerFileError, StateError
from sharectl.ledger import jobs_file
from sharectl.ledger.imports import bring_in
from sharectl.ledger.ledger import PLACE, Ledger
from sharectl.model import SCHEMA_VERSION, Disabled
from sharectl.plan.plan import State
from sharectl.pledges.cric import Copy
from sharectl.pledges.join import copy_in, keep_copy
from sharectl.pledges.negotiator import KnobsCopy
from sharectl.publish import signing
from sharectl.publish.disabled_file import DisabledFile
from sharectl.publish.former_places import FormerPlacesFile
from sharectl.publish.state import StateFile
from sharectl.publish.text import content_of, parse_plan, read
from sharectl.sim.journal import Journal
from tests import schemas
from tests.fakes import NOW, FakePool, FakePublisher, World
from tests.ledgers import busy, law
from tests.made_cycles import made
from tests.releases.make import CYCLES, KEY, SUBJECT

RELEASES = sorted(
    path for path in (Path(__file__).parents[2] / "releases").iterdir() if path.name[0].isdigit()
)
NODES = {"cn-00", "cn-01", "cn-02", "cn-03"}
LATER = NOW + 10_000


def learned(path: Path) -> SteeringConfig:
    """Steering by the policy at a path."""
    return with_laws(SteeringConfig(Control(law="learned", policy=path)))


def places(path: Path) -> FormerPlacesFile:
    """Record of places, of which the configuration has another one."""
    return FormerPlacesFile(
        path, ("file:/srv/new.txt",), lambda _name: FakePublisher(), lambda: float(LATER)
    )


def copied(path: Path, kind: type) -> Any:
    """Copy of pledges, which must raise no warning."""
    warnings: list[str] = []
    copy = copy_in(path, kind, warnings)
    assert warnings == []
    return copy


def nodes(targets: Sequence[Any]) -> set[str]:
    return {target.node for target in targets}


def of_text(path: Path) -> set[str]:
    return nodes(read(path).targets)


READ: dict[str, tuple[Callable[[Path], Any], Any]] = {
    "state.json": (lambda path: nodes([s.target for s in StateFile(path).load().standing]), NODES),
    "places.json": (
        lambda path: [vars(publisher)["name"] for publisher in places(path).publishers()],
        ["file:/srv/sharectl/sharectl.txt"],
    ),
    "disabled": (
        lambda path: DisabledFile(path.parent).disabled(),
        Disabled("cooling", "ops@cm", NOW, None),
    ),
    "pledges-cric.json": (lambda path: copied(path, Copy).accepted["cms"].hs06, 87100.0),
    "pledges-negotiator.json": (lambda path: copied(path, KnobsCopy).knobs[0].value, "100"),
    str(PLACE): (
        lambda path: [r.reason for r in Ledger(path).cycles(0, LATER)],
        ["targets"] * CYCLES,
    ),
    "sharectl.txt": (of_text, NODES),
    "signed.txt": (of_text, NODES),
    "plan.json": (lambda path: nodes(parse_plan(path.read_bytes(), "plan").targets), NODES),
    "policy.json": (lambda path: learned(path).control.law, "learned"),
    "sharectl.yaml": (lambda path: sorted(load(path).groups), ["alice", "atlas", "cms"]),
    "trials.jsonl": (lambda path: len(Journal(path.parent, SUBJECT).scores), 1),
}
"""File of a release -> what reads it, and what it has."""


@pytest.fixture(params=RELEASES, ids=lambda path: path.name)
def release(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Copy of the files of a release."""
    copy = tmp_path / "release"
    shutil.copytree(request.param, copy)
    return copy


@pytest.fixture
def config(release: Path) -> Path:
    """Configuration for the files of the release as a state directory; no pool answers."""
    (release / "disabled").unlink()
    path = release / "sharectl.yaml"
    text = path.read_text(encoding="utf-8").replace("/var/lib/sharectl", str(release))
    text = text.replace("/srv/sharectl", str(release))
    text = text.replace("{name: farm}", "{name: farm, collector: '127.0.0.1:1'}")
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", READ)
def test_a_file_of_an_earlier_release_is_read(release: Path, name: str) -> None:
    reading, content = READ[name]
    assert reading(release / name) == content


def test_the_state_has_its_memories_and_the_last_cycle(release: Path) -> None:
    store = StateFile(release / "state.json")
    state = store.load()
    assert state.sequence > NOW
    assert state.blocks.open != ()
    assert set(state.controllers) == {"alice", "atlas", "cms"}
    assert store.last_cycle()["plan"]["sequence"] == state.sequence


def test_a_signature_of_an_earlier_release_holds(release: Path) -> None:
    assert signing.problem_of(content_of(release / "signed.txt"), [KEY]) is None
    assert signing.problem_of(content_of(release / "sharectl.txt"), [KEY]) == "is not signed"


def test_the_logs_of_an_earlier_release_are_read(release: Path, tmp_path: Path) -> None:
    done = bring_in(Ledger(tmp_path / PLACE), [release / "shares_Error.log"], LATER)
    assert (done.cycles_added, done.rows_added) == (CYCLES, 3 * CYCLES)
    rows = jobs_file.read_jobs(release / "AcctGroup_hs06.txt", ("alice", "atlas", "cms"))
    assert {jobs.group for jobs in rows.running} == {"alice", "atlas", "cms"}


def test_commands_go_on_with_the_state_directory(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in ("ledger check --all", "explain cycle latest", "explain group cms", "replay"):
        assert main([*words.split(), "--config", str(config)]) == 0, capsys.readouterr().err
    assert "cms" in capsys.readouterr().out


# ---- newer files


def newer(path: Path) -> bytes:
    """Make the file one of a newer sharectl, with a key that this one does not have."""
    text = path.read_text(encoding="utf-8")
    changed = re.sub(r'\{(\s*)"schema_version": \d+', r'{\1"schema_version": 99,\1"new": 1', text)
    assert changed != text
    path.write_text(changed, encoding="utf-8")
    return path.read_bytes()


def kept(path: Path, kind: type, copy: Any) -> None:
    """Raise the warnings of a copy that is read, or else written."""
    warnings: list[str] = []
    copy_in(path, kind, warnings)
    if copy is not None:
        keep_copy(path, copy, warnings)
    raise StateError("; ".join(warnings))


REMEDIES = (
    "; install that sharectl again, or ",
    "; give what ",
    "; write it by `sharectl learn`, ",
)
KNOBS = KnobsCopy(None, NOW, ())
USES: dict[str, list[Callable[[Path], Any]]] = {
    "state.json": [
        lambda path: StateFile(path).load(),
        lambda path: StateFile(path).save(State(LATER)),
        lambda path: StateFile(path).note_cycle({}),
        lambda path: StateFile(path).last_cycle(),
    ],
    "places.json": [
        lambda path: places(path).publishers(),
        lambda path: places(path).remember(
            parse_plan((path.parent / "plan.json").read_bytes(), "")
        ),
        lambda path: places(path).forget("file:/srv/sharectl/sharectl.txt"),
    ],
    "pledges-cric.json": [
        lambda path: kept(path, Copy, None),
        lambda path: kept(path, Copy, KNOBS),
    ],
    "pledges-negotiator.json": [lambda path: kept(path, KnobsCopy, KNOBS)],
    "policy.json": [learned],
    "plan.json": [lambda path: parse_plan(path.read_bytes(), path.name)],
}
"""File -> what reads or replaces it."""


@pytest.mark.parametrize("name", USES)
def test_a_newer_file_is_refused_with_a_remedy_and_stays(release: Path, name: str) -> None:
    path = release / name
    content = newer(path)
    for use in USES[name]:
        with pytest.raises((StateError, ConfigError, InputError)) as caught:
            use(path)
        message = str(caught.value)
        assert f"{path if path.is_absolute() and name != 'plan.json' else name}: " in message
        assert "schema_version 99 is of a newer sharectl" in message
        assert any(remedy in message for remedy in REMEDIES)
        assert path.read_bytes() == content
    assert [other.name for other in path.parent.glob(f"{name}*")] == [name], "nothing is put aside"


def test_a_newer_ledger_is_refused_and_stays(release: Path) -> None:
    path = release / PLACE
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
        connection.commit()
    content = path.read_bytes()
    ledger = Ledger(path)
    for use in (ledger.latest, ledger.info, lambda: ledger.record(*made(0))):
        with pytest.raises(StateError, match="of schema version 99, newer than"):
            use()
        assert path.read_bytes() == content
    assert [other.name for other in path.parent.glob("ledger*")] == [path.name]


@pytest.mark.parametrize("name", ["sharectl.txt", "signed.txt"])
def test_a_newer_text_is_refused(release: Path, name: str) -> None:
    path = release / name
    path.write_text(path.read_text().replace("# sharectl: 1\n", "# sharectl: 99\n"))
    with pytest.raises(InputError, match="99 is a format that this sharectl does not know; publi"):
        read(path)


def test_a_newer_journal_of_trials_is_refused_and_stays(release: Path) -> None:
    content = newer(release / "trials.jsonl")
    with pytest.raises(InputError, match="trials of another schema_version; name another folder"):
        Journal(release, SUBJECT)
    assert (release / "trials.jsonl").read_bytes() == content


def test_a_newer_key_of_the_configuration_is_refused(release: Path) -> None:
    path = release / "sharectl.yaml"
    path.write_text(f"{path.read_text()}invented: 1\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="invented: unknown key"):
        load(path)


def test_a_newer_switch_is_off_until_somebody_enables(release: Path) -> None:
    switch = DisabledFile(release)
    newer(release / "disabled")
    off = switch.disabled()
    assert off is not None
    assert off.reason == "by a newer sharectl"
    assert off.in_force_at(LATER)
    assert not switch.enable_after(LATER)
    order = Disabled("broken", "ops@cm", LATER)
    switch.disable(order)
    assert switch.disabled() == order


def test_a_cycle_with_a_newer_state_publishes_nothing(release: Path) -> None:
    path = release / "state.json"
    content = newer(path)
    world = World(FakePool(busy(CYCLES)), state=StateFile(path))
    with pytest.raises(NewerFileError, match="schema_version 99"):
        run_cycle(law(max_nodes=4), world.ports(), LATER)
    assert world.publishers[0].plans == []
    assert path.read_bytes() == content


def test_targets_are_withdrawn_all_the_same_with_a_newer_state(release: Path) -> None:
    sequence = StateFile(release / "state.json").load().sequence
    path = release / "state.json"
    content = newer(path)
    os.utime(path, (NOW, NOW))  # its sequence is at least that second
    world = World(FakePool(busy(CYCLES)), state=StateFile(path))
    before, errors = load_state(world.state, sequence)
    assert isinstance(errors[0], NewerFileError)
    off = Disabled("broken", "ops@cm", LATER)
    done = Publishing(law(), world.ports(), sequence).withdraw(off, before)
    assert done.everywhere
    (plan,) = world.publishers[0].plans
    assert (plan.targets, plan.sequence > sequence) == ((), True)
    assert path.read_bytes() == content


@pytest.mark.parametrize("words", ["cycle", "publish --plan plan.json", "status"])
def test_commands_name_a_newer_state_and_publish_nothing(
    config: Path, words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(config.parent)
    path, targets = config.parent / "state.json", (config.parent / "sharectl.txt").read_bytes()
    content = newer(path)
    assert main([*words.split(), "--config", str(config)]) == 74
    assert f"sharectl: {path}: schema_version 99 is of a newer" in capsys.readouterr().err
    assert (config.parent / "sharectl.txt").read_bytes() == targets
    assert path.read_bytes() == content


def test_disable_withdraws_with_a_newer_state(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = config.parent / "state.json"
    content = newer(path)
    assert main(["disable", "--reason", "cooling", "--config", str(config)]) == 74
    out, err = capsys.readouterr()
    assert f"no targets at {config.parent}/sharectl.txt" in out
    assert "schema_version 99" in err
    assert read(config.parent / "sharectl.txt").targets == ()
    assert path.read_bytes() == content


def test_learn_leaves_a_newer_policy(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = newer(release / "policy.json")
    assert main(["learn", "small-site", "-o", str(release / "policy.json")]) == 74
    assert "schema_version 99 is of a newer sharectl" in capsys.readouterr().err
    assert (release / "policy.json").read_bytes() == content


# ---- documents of the commands


SCHEMAS = [path for release in RELEASES for path in sorted((release / "schemas").glob("*.json"))]


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: f"{path.parts[-3]}-{path.stem}")
def test_readers_of_a_released_document_can_rely_on_it(path: Path) -> None:
    """A key that goes, may be absent or changes its type needs another SCHEMA_VERSION."""
    before = json.loads(path.read_text(encoding="utf-8"))
    if before["properties"]["schema_version"]["const"] == SCHEMA_VERSION:
        after = schemas.schemas().get(path.stem, {"properties": {}, "required": []})
        assert schemas.broken(before, after) == []


def test_there_are_schemas_of_every_release() -> None:
    assert min(len(list(release.glob("schemas/*.json"))) for release in RELEASES) > 30
