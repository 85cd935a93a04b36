from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import pytest

from sharectl.check.pool import OF_STATE
from sharectl.cli.status import node_problems, place_problems
from sharectl.model import Plan, Standing, Target
from sharectl.plan.blocks import ALL_NODES, BackOff, BlockMemory, OpenBlock
from sharectl.plan.plan import State
from sharectl.plan.settings import IN_A_ROW
from sharectl.publish import text
from sharectl.publish.state import StateFile
from tests.unit.cli.conftest import Run

PLAN = Plan(
    5, 2**33 - 3060, 2**33, ("alice", "cms"), (Target("wn-1", "alice", 0, "cms", 8),), "targets"
)
CYCLE = {
    "taken_at": 1,
    "seconds": 0.1,
    "complete": True,
    "problems": [],
    "errors": [],
    "plan": None,
    "warnings": ["group cmss has neither"],
}


@dataclass(frozen=True)
class Status:
    """Output of the verb, as text and as JSON."""

    rows: list[list[str]]
    """Words of each line."""
    err: str
    content: dict[str, Any]

    def row(self, *first: str) -> list[str]:
        """Words behind the first ones of a line."""
        (row,) = (row for row in self.rows if row[: len(first)] == list(first))
        return row[len(first) :]


Shown = Callable[..., Status]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """State directory, with the configuration and a published file in it."""
    (tmp_path / "sharectl.txt").write_text(text.render(PLAN))
    return tmp_path


@pytest.fixture
def shown(folder: Path, run: Run) -> Shown:
    """Runs the verb after a cycle, whose collector does not answer."""

    def status(state: Optional[State] = None, **cycle: object) -> Status:
        store = StateFile(folder / "state.json")
        store.save(state or State(5))
        store.note_cycle({**CYCLE, **cycle})
        code, out, err = run("status")
        in_json, content, _ = run("status", "--json")
        assert code == in_json == 1
        return Status([line.split() for line in out.splitlines()], err, json.loads(content))

    return status


@pytest.mark.parametrize(
    ("state", "older"),
    [(State(4), False), (State(5), False), (State(6), True), (State(6, withdrawn=True), True)],
)
def test_an_older_plan_is_a_problem_and_warnings_of_the_last_cycle_are_none(
    folder: Path, shown: Shown, state: State, *, older: bool
) -> None:
    if state.withdrawn:  # while sharectl is disabled only such a place is a problem
        (folder / "disabled").touch()
    status = shown(state)
    assert ("an older plan stands there: sequence 5, and 6 was" in status.err) is older
    assert status.content["published"][0]["older"] is older
    assert "warning: group cmss has neither" in status.err
    assert "cmss" not in str(status.content["problems"])
    assert "collector: " in status.err


def test_a_plan_from_the_future_is_a_problem(shown: Shown) -> None:
    ahead = int(time.time()) + 2 * 86400
    status = shown(State(ahead), taken_at=ahead)
    assert status.row("last", "cycle")[:4] == ["in", "the", "future,", "by"]
    assert "nodes refuse such a plan (future)" in status.err
    assert "(future)" not in shown(State(ahead - 2 * 86400)).err


ERRORS: Mapping[str, Any] = {
    "group": "cms",
    "pledge_hs06": 200,
    "power_hs06": 161.4,
    "error_hs06": -40,
    "pending_single_jobs": 3,
    "pending_multi_jobs": 9,
}


def test_a_group_has_use_due_shortfall_pending_and_waits_by_size_and_a_code(shown: Shown) -> None:
    unknown = ["200", "161", "?", "?", "3", "-", "9", "-", "-"]
    assert shown(errors=[ERRORS]).row("cms") == unknown
    times = {"jobs": 3, "median_seconds": 60, "longest_seconds": 7300, "sampled": False}
    cycle = {
        "errors": [ERRORS],
        "controllers": [
            {"group": "cms", "due_hs06": 190.2, "shortfall_hs06": 25.2},
        ],
        "groups": [{"group": "cms", "code": "helped"}],
        "waits": [
            {"group": "cms.prod", "cores": 8, "pending": {**times, "sampled": True}},
            {"group": "cms", "cores": 1, "pending": {**times, "longest_seconds": 119}},
            {"group": "cms", "cores": 4, "pending": None},
        ],
    }
    cells = shown(**cycle).row("cms")
    assert cells[:4] == ["200", "161", "190", "25"]
    assert cells[4:] == ["3", "1min", "9", ">2h", "helped"]


def test_a_cycle_says_who_did_not_answer(run: Run) -> None:
    code, out, _ = run("cycle")
    assert (code, 'reason="the pool did not answer completely (collector' in out) == (75, True)


@pytest.mark.parametrize(("slots", "seconds", "late"), [(0, 999, 0), (2, 999, 1), (2, 99, 0)])
def test_targets_that_stay_on_nodes_while_disabled_are_a_problem(
    slots: int, seconds: int, late: int
) -> None:
    status = {
        "now": 10_000,
        "mode": "steer",
        "disabled": {"since": 10_000 - seconds},
        "to_withdraw": False,
        "published": [],
        "nodes": {"with_target": slots},
    }
    assert len([*place_problems(status, 120)]) == late


@pytest.mark.parametrize(
    ("mode", "slots", "only_measures", "is_problem"),
    [
        ("steer", 4, False, True),
        ("observe", 4, False, False),
        ("steer", 4, True, False),
        ("steer", 0, False, False),
    ],
)
def test_steering_without_a_node_that_can_act_is_a_problem(
    mode: str, slots: int, *, only_measures: bool, is_problem: bool
) -> None:
    nodes = {"problem": None, "slots": slots, "controlled": 0}
    status = {"mode": mode, "disabled": None, "nodes": nodes}
    assert len([*node_problems(status, only_measures=only_measures)]) == is_problem


TARGETS = tuple(Standing(Target(node, "alice", 0, "cms", 8), 1) for node in ("wn-1", "wn-2"))


@pytest.mark.parametrize(("seconds", "late"), [("null", 1), ("3600", 0), ("30", 2)])
def test_a_block_that_stands_free_for_too_long_is_a_problem(
    config: Path, shown: Shown, seconds: str, late: int
) -> None:
    """The block of wn-1 has stood free for 9 minutes, that of wn-2 for 1."""
    with config.open("a") as stream:
        stream.write(f"control: {{give_up_seconds: {seconds}}}\n")
    now, free = int(time.time()), {"wn-1": 540, "wn-2": 60}
    blocks = BlockMemory(
        tuple(OpenBlock(name, "cms", 8, 1, free_since=now - free[name]) for name in free)
    )
    status = shown(State(5, standing=TARGETS, standing_until=2**33, blocks=blocks))
    assert [block["node"] for block in status.content["blocks"]["free"]] == ["wn-1", "wn-2"]
    problems = [problem for problem in status.content["problems"] if "cores kept free" in problem]
    assert len(problems) == late
    assert "".join(problems).startswith("wn-1: 8 cores kept free for cms for 9 min" if late else "")
    assert " ".join(status.row("kept", "free", "wn-2:")).startswith("8 cores kept free for cms")


def test_a_group_whose_jobs_take_no_block_is_a_problem(shown: Shown) -> None:
    until = int(time.time()) + 3600
    rows = (
        BackOff("cms", 8, ALL_NODES, IN_A_ROW, until, 3600.0),
        BackOff("cms", 4, ALL_NODES, IN_A_ROW - 1, 1),
        BackOff("atlas", 8, "wn-1", 1, until),
    )
    content = shown(State(5, blocks=BlockMemory(back_offs=rows))).content
    (problem,) = (problem for problem in content["problems"] if "no job took" in problem)
    assert problem.startswith("cms: its 8-core jobs wait")
    assert [row["node"] for row in content["blocks"]["left_alone"]] == [None, "wn-1"]


def test_a_monitor_gets_the_root_cause_the_thresholds_and_the_details(
    run: Run, config: Path
) -> None:
    code, out, err = run("status", "--nagios")
    line, *details = out.splitlines()
    text, _, data = line.partition(" | ")
    assert (code, err) == (2, "")
    assert text.startswith("SHARECTL CRITICAL - ")
    assert len(text) <= 140
    assert data == f"problems={len(details)};;0"
    assert details == [line.removeprefix("sharectl: ") for line in run("status")[2].splitlines()]
    config.write_text("groups: 1\n")
    code, out, err = run("status", "--nagios")
    assert (code, out.startswith("SHARECTL UNKNOWN - "), err) == (3, True, "")


def test_a_monitor_gets_a_code_that_it_knows_for_a_mistake_of_ours(run: Run, config: Path) -> None:
    run("cycle")
    state = config.parent / "state.json"
    content = json.loads(state.read_text())
    content["last_cycle"]["taken_at"] = "yesterday | now"
    state.write_text(json.dumps(content))
    code, out, err = run("status", "--nagios")
    assert (code, err) == (3, "")
    assert out.startswith("SHARECTL UNKNOWN - internal error: TypeError: ")


def test_a_broken_state_hides_nothing_else(run: Run, config: Path) -> None:
    run("cycle")
    (config.parent / "state.json").write_text('{"schema_version": 1, "sequ')
    code, out, err = run("status")
    assert (code, out.splitlines()[0]) == (74, "status")
    assert "state.json: cannot be read" in err
    assert "no cycle has run" not in err
    assert run("status", "--nagios")[0] == 3
    states = json.loads(run("check", "pool", "--json")[1])["states"]
    assert states["files"] == "fail"
    assert {"unknown"} <= {states[name] for name in OF_STATE} <= {"unknown", "fail"}
