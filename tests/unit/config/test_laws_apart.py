"""Installed laws run apart: whatever one does, a cycle publishes all else and says what failed."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from sharectl.condor.deadline import Question, ask_all
from sharectl.config import laws
from sharectl.config.laws import with_laws
from sharectl.config.load import parse, steering_of
from sharectl.control.laws import Reading, step
from sharectl.cycle.cycle import CycleResult, run_cycle
from sharectl.errors import ConfigError
from sharectl.files.files import only_one
from tests.fakes import NOW, World
from tests.laws import FAULTS, install
from tests.unit.cycle.test_cycle import cycle, steered, world

GROUPS = "groups: {cms: {pledge_hs06: 1}, alice: {pledge_hs06: 1}}\n"


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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
    packages: Path,
    fault: str,
    shadow: bool,  # noqa: FBT001 - a parameter
    capfd: pytest.CaptureFixture[str],
) -> None:
    before = surroundings()
    began = time.monotonic()
    result, around = run_in_cycle(packages, fault, shadow)
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


def test_a_sound_law_changes_nothing_of_its_surroundings(packages: Path) -> None:
    before = surroundings()
    result, around = run_in_cycle(packages, "", shadow=True)
    assert (result.problems, result.warnings) == ((), ())
    (record,) = around.history.records
    assert [row.shadow and row.shadow.output_hs06 for row in record.groups] == [
        row.output_hs06 for row in record.groups
    ]
    assert surroundings() == before


@pytest.mark.parametrize("shadow", [True, False])
@pytest.mark.usefixtures("packages")
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


def test_what_a_law_starts_keeps_no_lock_and_is_ended(packages: Path) -> None:
    lock = packages / "lock"
    with only_one(lock, 0):
        run_in_cycle(packages, "grandchild", shadow=True)
    with only_one(lock, 0):
        pass


def test_each_process_has_its_own_law(packages: Path) -> None:
    """The twin's workers are forked, and two must not read one channel."""
    (packages / "fault").write_text("", encoding="utf-8")
    text = f"{GROUPS}control: {{law: faulty, policy: {packages}/fault}}"
    law = with_laws(steering_of(parse(text, "F"))).control
    answer = ask_all({"worker": Question(lambda: step(law, {}, Reading(9, 9), 0).output_hs06, 60)})
    assert answer["worker"].value == 9
    assert step(law, {}, Reading(7, 7), 0).output_hs06 == 7
