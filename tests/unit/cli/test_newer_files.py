"""Files of a newer sharectl are refused, and stay as they are."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sharectl.cli.main import main
from sharectl.config.laws import with_laws
from sharectl.control.laws import Control
from sharectl.control.steering import SteeringConfig
from sharectl.errors import ConfigError, InputError, StateError
from sharectl.ledger.ledger import PLACE, Ledger
from sharectl.model import Disabled, Plan, Target
from sharectl.plan.plan import State
from sharectl.pledges.cric import Copy
from sharectl.pledges.join import copy_in
from sharectl.pledges.negotiator import KnobsCopy
from sharectl.publish.disabled_file import DisabledFile
from sharectl.publish.former_places import FormerPlacesFile
from sharectl.publish.state import StateFile
from sharectl.publish.text import FilePublisher
from tests.fakes import NOW, FakePublisher
from tests.files_of_a_site import make
from tests.made_cycles import made

LATER = NOW + 10_000
PLAN = Plan(1, NOW, LATER, ("alice", "cms"), (Target("cn-1", "alice", 0, "cms", 8),), "targets")


def learned(path: Path) -> SteeringConfig:
    """Steering by the policy at a path."""
    return with_laws(SteeringConfig(Control(law="learned", policy=path)))


def places(path: Path) -> FormerPlacesFile:
    """Record of places, of which the configuration has another one."""
    return FormerPlacesFile(
        path, ("file:/srv/new.txt",), lambda _name: FakePublisher(), lambda: float(LATER)
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """State directory with every kind of file."""
    make(tmp_path)
    return tmp_path


def newer(path: Path) -> bytes:
    """Make the file one of a newer sharectl, with a key that this one does not have."""
    text = path.read_text(encoding="utf-8")
    changed = re.sub(r'\{(\s*)"schema_version": \d+', r'{\1"schema_version": 99,\1"new": 1', text)
    assert changed != text
    path.write_text(changed, encoding="utf-8")
    return path.read_bytes()


def kept(path: Path, kind: type) -> None:
    """Raise the warnings of a copy that is read."""
    warnings: list[str] = []
    assert copy_in(path, kind, warnings) is None
    raise StateError("; ".join(warnings))


REMEDIES = (
    "; install that sharectl again, or ",
    "; write it by `sharectl learn`, ",
    "; it is written again when the source answers",
)
USES: dict[str, list[Callable[[Path], Any]]] = {
    "state.json": [
        lambda path: StateFile(path).load(),
        lambda path: StateFile(path).save(State(LATER)),
        lambda path: StateFile(path).note_cycle({}),
        lambda path: StateFile(path).last_cycle(),
    ],
    "places.json": [
        lambda path: places(path).publishers(),
        lambda path: places(path).remember(PLAN),
        lambda path: places(path).forget("file:/srv/sharectl/sharectl.txt"),
    ],
    "pledges-cric.json": [lambda path: kept(path, Copy)],
    "pledges-negotiator.json": [lambda path: kept(path, KnobsCopy)],
    "policy.json": [learned],
}
"""File -> what reads or replaces it."""


@pytest.mark.parametrize("name", USES)
def test_a_newer_file_is_refused_with_a_remedy_and_stays(folder: Path, name: str) -> None:
    path = folder / name
    content = newer(path)
    for use in USES[name]:
        with pytest.raises((StateError, ConfigError, InputError)) as caught:
            use(path)
        message = str(caught.value)
        assert f"{path}: " in message
        assert "schema_version 99 is of a newer sharectl" in message
        assert any(remedy in message for remedy in REMEDIES)
        assert path.read_bytes() == content
    assert [other.name for other in path.parent.glob(f"{name}*")] == [name], "nothing is put aside"


def test_a_newer_ledger_is_refused_and_stays(folder: Path) -> None:
    path = folder / PLACE
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
        connection.commit()
    content = path.read_bytes()
    ledger = Ledger(path)
    for use in (ledger.latest, ledger.check, lambda: ledger.record(*made(0))):
        with pytest.raises(StateError, match="of schema version 99, newer than"):
            use()
        assert path.read_bytes() == content
    assert [other.name for other in path.parent.glob("ledger*")] == [path.name]


def test_a_newer_switch_is_off_until_somebody_enables(folder: Path) -> None:
    switch = DisabledFile(folder)
    switch.disable(Disabled("cooling", "ops@cm", NOW))
    newer(folder / "disabled")
    off = switch.disabled()
    assert off is not None
    assert off.in_force_at(LATER)
    assert not switch.enable_after(LATER)
    order = Disabled("broken", "ops@cm", LATER)
    switch.disable(order)
    assert switch.disabled() == order


@pytest.mark.parametrize("words", ["cycle", "status", "disable --reason cooling"])
def test_commands_name_a_newer_state_and_disable_withdraws(
    folder: Path, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path, targets = folder / "state.json", (folder / "sharectl.txt").read_bytes()
    content = newer(path)
    assert main([*words.split(), "--config", str(folder / "sharectl.yaml")]) == 74
    assert f"sharectl: {path}: schema_version 99 is of a newer" in capsys.readouterr().err
    if words.startswith("disable"):
        assert FilePublisher(folder / "sharectl.txt").look()[0].targets == 0
    else:
        assert (folder / "sharectl.txt").read_bytes() == targets
    assert path.read_bytes() == content
