"""Laws that a configuration loads: `learned` with its policy, and installed ones, run apart."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from sharectl.cli.cycle import digest_of
from sharectl.condor.deadline import Question, ask_all
from sharectl.config import laws
from sharectl.config.advice import unusable
from sharectl.config.laws import with_laws
from sharectl.config.load import parse, steering_of
from sharectl.control.laws import Control, Reading, step
from sharectl.cycle.cycle import CycleResult, run_cycle
from sharectl.errors import ConfigError
from sharectl.files.files import only_one
from tests.fakes import NOW, World
from tests.laws import FAULTS, POLICY, install, write_policy
from tests.unit.cycle.test_cycle import cycle, steered, world

GROUPS = "groups: {cms: {pledge_hs06: 1}, alice: {pledge_hs06: 1}}\n"


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def control(text: str) -> Control:
    return with_laws(steering_of(parse(f"{GROUPS}control: {text}", "F"))).control


def problems_of(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        control(text)
    return list(caught.value.problems)


def test_an_installed_law_acts_and_reads_its_file(packages: Path) -> None:
    install(packages, half="tests.laws:half")
    number = packages / "part"
    number.write_text("0.25", encoding="utf-8")
    for text, output in (("{law: half}", 50), (f"{{law: half, policy: {number}}}", 25)):
        law = control(text)
        first = step(law, {}, Reading(100, 100), 0)
        assert (first.output_hs06, first.state) == (output, {"half.steps": 1})
        assert step(law, first.state, Reading(100, 100), 60).state == {"half.steps": 2}


def test_an_unknown_law_names_the_installed_ones(packages: Path) -> None:
    install(packages, half="tests.laws:half", pid="tests.laws:broken")
    for at in ("control: {law: hlaf}", "control: {shadow: {law: hlaf}}"):
        with pytest.raises(ConfigError) as caught:
            parse(f"{GROUPS}{at}", "F")
        (problem,) = caught.value.problems
        assert problem.endswith('"hlaf" is invalid; write one of latest, ewma, pid, learned, half')
    # A name of sharectl's own stays its own.
    assert control("{law: pid}").loaded is None


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("tests.laws:absent", "cannot be loaded: AttributeError: "),
        ("no.such.module:law", "cannot be loaded: ModuleNotFoundError: "),
        ("tests.laws:exits", "cannot be loaded: SystemExit: no law with None"),
        ("tests.laws:nothing", "tests.laws:nothing made NoneType, which cannot be called"),
    ],
)
def test_a_law_that_cannot_be_loaded(packages: Path, value: str, words: str) -> None:
    install(packages, bad=value)
    (problem,) = problems_of("{law: bad}")
    assert problem.startswith("control.law: bad")
    assert words in problem


def test_two_packages_with_one_name(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = packages / "other"
    other.mkdir()
    monkeypatch.syspath_prepend(str(other))
    install(packages, half="tests.laws:half")
    install(other, half="tests.laws:broken")
    (problem,) = problems_of("{law: half}")
    assert "installed twice, as tests.laws:broken, tests.laws:half; remove" in problem


def test_a_policy_acts(tmp_path: Path) -> None:
    law = control(f"{{law: learned, policy: {write_policy(tmp_path)}}}")
    reading = Reading(100, 500, most_hs06=1000, pool_cores=100, idle_cores=20)
    assert step(law, {}, reading, 0).output_hs06 == pytest.approx(90)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"weights": [1.0]}, "weights: 1 for 2 features"),
        ({"weights": [1.0, 1e9]}, "weights[1]: 1000000000.0 is not a number of at most 1000"),
        ({"weights": [1.0, "2"]}, "weights.1: "),
        ({"features": ["error", "eror"]}, 'features[1]: "eror" is none of error, '),
        ({"features": ["error", "error"]}, "features: a feature is there twice"),
        ({"half_life_seconds": 0.0}, "half_life_seconds: 0.0 is not above 0"),
        ({"schema_version": 2}, "schema_version 2 is of a newer sharectl"),
        ({"more": 1}, "more: "),
        ({"training": None}, "training: "),
    ],
)
def test_a_wrong_policy(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    path = write_policy(tmp_path, **changes)
    (problem,) = problems_of(f"{{law: learned, policy: {path}}}")
    assert problem.startswith(f"control.policy: {path}: {words}")
    assert problem.endswith("; write it by `sharectl learn`, or name another")


def test_a_policy_that_is_no_policy(tmp_path: Path) -> None:
    (problem,) = problems_of("{law: learned}")
    assert problem.startswith("control.law: learned acts by a policy; write policy: FILE")
    (problem,) = problems_of(f"{{law: learned, policy: {tmp_path}/none}}")
    assert problem.startswith(f"control.policy: there is no {tmp_path}/none")
    path = tmp_path / "policy.json"
    for text, words in (
        (json.dumps(POLICY).replace("-0.5", "NaN"), "Out of range float values"),
        ("", "not JSON: "),
        ("\0" * 2**17, "no regular file of at most 65536 bytes"),
    ):
        path.write_text(text, encoding="utf-8")
        (problem,) = problems_of(f"{{law: learned, policy: {path}}}")
        assert problem.startswith(f"control.policy: {path}: {words}")


def test_a_hostile_policy_has_a_page_of_problems(tmp_path: Path) -> None:
    names = ["\x1b[31m" * 2000, *map(str, range(2000))]
    path = write_policy(tmp_path, features=names, weights=[1e9] * 2001)
    problems = problems_of(f"{{law: learned, policy: {path}}}")
    assert len(problems) == 11
    assert sum(map(len, problems)) < 5000
    assert all(problem.isprintable() for problem in problems)
    assert problems[-1].endswith("and 3992 more problems")


def test_another_content_of_a_policy_is_another_configuration(tmp_path: Path) -> None:
    """Of each policy that a law may read: of all groups, of one, and of a shadow."""
    path, other = write_policy(tmp_path), tmp_path / "other.json"
    ways = (
        f"control: {{law: learned, policy: {path}}}",
        f"control: {{shadow: {{law: learned, policy: {path}}}}}",
        f"control: {{policy: {path}}}",
    )
    for way in ways:
        groups = "groups: {cms: {pledge_hs06: 1, control: {law: learned}}}\n"
        config = parse(f"{groups if way == ways[-1] else GROUPS}{way}", "F")
        write_policy(tmp_path)
        first = digest_of(config)
        assert digest_of(config) == first
        write_policy(tmp_path, weights=[1.0, -0.25])
        second = digest_of(config)
        path.rename(other)
        # A shadow that cannot be read stops no cycle.
        assert len({first, second, digest_of(config)}) == 3
    unread = parse(f"{GROUPS}control: {{law: ewma, policy: {path}}}", "F")
    first = digest_of(unread)
    write_policy(tmp_path)
    assert digest_of(unread) == first


def test_laws_of_groups_have_their_place(tmp_path: Path) -> None:
    inner = "groups: {cms: {pledge_hs06: 1, control: {law: learned}}}\ncontrol: {law: learned}"
    with pytest.raises(ConfigError) as caught:
        with_laws(steering_of(parse(inner, "F")))
    places = [problem.split(":")[0] for problem in caught.value.problems]
    assert places == ["control.law", "groups.cms.control.law"]
    path = write_policy(tmp_path)
    text = "groups: {cms: {pledge_hs06: 1, control: {law: pid}}, lhcb: {pledge_hs06: 1}}\n"
    own = steering_of(parse(f"{text}control: {{law: learned, policy: {path}}}", "F"))
    loaded = with_laws(own)
    assert (loaded.by_group["cms"].loaded, loaded.control.loaded is None) == (None, False)


def test_a_shadow_that_cannot_be_loaded_stops_no_cycle(tmp_path: Path) -> None:
    """`check config` names it; a cycle goes on, and the shadow fails in it."""
    text = f"{GROUPS}control: {{shadow: {{law: learned, policy: {tmp_path}/none}}}}"
    config = parse(text, "F")
    shadow = with_laws(steering_of(config)).control.shadow
    assert shadow is not None
    move = step(Control("learned", loaded=shadow.loaded), {}, Reading(1, 1), 0)
    assert move.problem.startswith("law learned: control.shadow.policy: there is no")
    problems, _ = unusable(config, tmp_path / "F")
    assert any(problem.startswith("control.shadow.policy: there is no") for problem in problems)


def test_a_cycle_looks_for_no_package_unless_a_law_is_named() -> None:
    """Looking for entry points opens a file of every package."""
    code = (
        "import sys, sharectl.cli.cycle\nfrom sharectl.config.load import parse\n"
        "from sharectl.config.laws import with_laws\nfrom sharectl.config.load import steering_of\n"
        "with_laws(steering_of(parse('groups: {cms: {pledge_hs06: 1}}', 'F')))\n"
        "print(*sorted(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "sharectl.config.laws" in loaded
    assert loaded.isdisjoint({"importlib.metadata", "sharectl.control.learned"})


# ---- installed laws run apart: whatever one does, a cycle publishes all else


@pytest.fixture
def faulty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    install(tmp_path, faulty="tests.laws:faulty", ends="tests.laws:at_loading")
    monkeypatch.setattr(laws, "PATIENCE_SECONDS", 2.0)
    return tmp_path


def run_in_cycle(folder: Path, fault: str, shadow: bool) -> tuple[CycleResult, World]:  # noqa: FBT001
    policy = folder / "fault"
    policy.write_text(fault, encoding="utf-8")
    law = f"{{law: faulty, policy: {policy}}}"
    text = f"{GROUPS}control: {f'{{shadow: {law}}}' if shadow else law}"
    steering = with_laws(steering_of(parse(text, "F")))
    around = world()
    return run_cycle(steered(steering.control), around.ports(), NOW), around


def surroundings() -> tuple[object, ...]:
    """State of this process that a law might change."""
    handler = signal.getsignal(signal.SIGINT)
    return Path.cwd(), dict(os.environ), random.getstate(), handler


@pytest.mark.parametrize("fault", [*FAULTS, "nan"])
@pytest.mark.parametrize("shadow", [True, False])
def test_a_law_that_fails_in_any_way_ends_no_cycle(
    faulty: Path,
    fault: str,
    shadow: bool,  # noqa: FBT001 - a parameter
    capfd: pytest.CaptureFixture[str],
) -> None:
    before = surroundings()
    began = time.monotonic()
    result, around = run_in_cycle(faulty, fault, shadow)
    assert surroundings() == before
    assert capfd.readouterr() == ("", "")
    assert len(around.publishers[0].plans) == len(around.history.records) == 1
    failures, others = result.warnings, result.problems
    if not shadow:
        failures, others = others, failures
    assert ([failure.count("law faulty: ") for failure in failures], others) == ([1, 1], ())
    # One that hangs costs its patience once, not for each group.
    assert time.monotonic() - began < (60 if fault != "endless" else 60 + laws.PATIENCE_SECONDS)
    if shadow:
        _, alone = cycle(quiet := world()), quiet
        assert around.publishers[0].plans == alone.publishers[0].plans


def test_a_sound_law_changes_nothing_of_its_surroundings(faulty: Path) -> None:
    before = surroundings()
    result, around = run_in_cycle(faulty, "", shadow=True)
    assert (result.problems, result.warnings) == ((), ())
    (record,) = around.history.records
    assert [row.shadow and row.shadow.output_hs06 for row in record.groups] == [
        row.output_hs06 for row in record.groups
    ]
    assert surroundings() == before


@pytest.mark.parametrize("shadow", [True, False])
@pytest.mark.usefixtures("faulty")
def test_a_law_that_ends_the_process_as_it_is_loaded(shadow: bool) -> None:  # noqa: FBT001
    """One that acts is an error of the configuration; a shadow fails in each cycle."""
    law = "{law: ends}"
    text = f"{GROUPS}control: {f'{{shadow: {law}}}' if shadow else law}"
    steering = steering_of(parse(text, "F"))
    if not shadow:
        with pytest.raises(ConfigError, match=r"cannot be loaded: its process ended"):
            with_laws(steering)
        return
    around = world()
    result = run_cycle(steered(with_laws(steering).control), around.ports(), NOW)
    assert (len(result.warnings), result.problems) == (2, ())
    assert len(around.publishers[0].plans) == 1


def test_what_a_law_starts_keeps_no_lock_and_is_ended(faulty: Path) -> None:
    lock = faulty / "lock"
    with only_one(lock, 0):
        run_in_cycle(faulty, "grandchild", shadow=True)
    with only_one(lock, 0):
        pass


def test_each_process_has_its_own_law(faulty: Path) -> None:
    """The twin's workers are forked, and two must not read one channel."""
    (faulty / "fault").write_text("", encoding="utf-8")
    text = f"{GROUPS}control: {{law: faulty, policy: {faulty}/fault}}"
    law = with_laws(steering_of(parse(text, "F"))).control
    answer = ask_all({"worker": Question(lambda: step(law, {}, Reading(9, 9), 0).output_hs06, 60)})
    assert answer["worker"].value == 9
    assert step(law, {}, Reading(7, 7), 0).output_hs06 == 7
