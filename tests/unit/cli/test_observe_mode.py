"""`mode: observe`: cycles publish no target, and take away those of before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sharectl.publish import text
from sharectl.publish.state import StateFile
from tests.unit.cli.conftest import Run
from tests.unit.cli.test_disable_command import publish_targets


def test_status_says_that_nothing_is_steered(run: Run, config: Path, tmp_path: Path) -> None:
    assert publish_targets(tmp_path) == ""
    assert len(text.read(tmp_path / "sharectl.txt").targets) == 1
    assert StateFile(tmp_path / "state.json").load().sequence
    with config.open("a", encoding="utf-8") as file:
        file.write("mode: observe\n")
    _, out, err = run("status")
    assert "observe: nothing is steered" in out
    assert "the next cycle withdraws them" in err


def test_a_monitor_is_told_that_nothing_is_steered_on_purpose(run: Run, config: Path) -> None:
    assert run("disable", "--reason", "cooling")[0] == 0
    with config.open("a", encoding="utf-8") as file:
        file.write("mode: observe\n")
    *_, observes, disabled = run("status", "--nagios")[1].splitlines()
    assert observes == "mode: observe"
    assert disabled.startswith("disabled since ")
    assert disabled.endswith(": cooling")


def test_enable_tells_that_observing_goes_on(run: Run, config: Path) -> None:
    assert run("disable", "--reason", "cooling")[0] == 0
    with config.open("a", encoding="utf-8") as file:
        file.write("mode: observe\n")
    code, out, _ = run("enable")
    assert (code, "no cycle publishes targets yet: mode: observe" in out) == (0, True)


@pytest.mark.parametrize("option", [["--dry-run"], []])
def test_a_cycle_that_observes_is_not_disabled(
    run: Run, config: Path, tmp_path: Path, option: list[str]
) -> None:
    assert publish_targets(tmp_path) == ""
    with config.open("a", encoding="utf-8") as file:
        file.write("mode: observe\n")
    _, line, _ = run("cycle", *option)
    assert " disabled=false " in line
    assert "1970" not in line


def test_a_last_cycle_that_is_still_to_come_is_a_problem(
    run: Run, config: Path, tmp_path: Path
) -> None:
    with config.open("a", encoding="utf-8") as file:
        file.write("mode: observe\n")
    run("cycle")
    store = StateFile(tmp_path / "state.json")
    cycle = store.last_cycle()
    store.note_cycle({**cycle, "taken_at": cycle["taken_at"] + 90_000})
    assert "the last cycle ran 1 d" in run("status")[2]
    _, out, _ = run("check", "pool", "--json")
    report = json.loads(out)
    faults = [f["fault"] for f in report["findings"] if f["id"] == "clocks"]
    assert "the last cycle ran 1 d" in "".join(faults)
    assert "in the future" in report["evidence"]["timer"]
