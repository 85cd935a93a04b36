from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from sharectl.cli.main import main
from sharectl.cli.status import problems_of
from sharectl.model import Disabled, Plan, Standing, Target
from sharectl.plan.free_blocks import ALL_NODES, BackOff, BlockMemory, OpenBlock
from sharectl.plan.plan import State
from sharectl.plan.settings import IN_A_ROW, GiveUp
from sharectl.publish import text
from sharectl.publish.state import StateFile
from sharectl.publish.switch import DisabledFile
from sharectl.report.pool import blocks_data

PLAN = Plan(5, 1, 2**33, ("alice", "cms"), (Target("wn-1", "alice", 0, "cms", 8),), "targets")
CYCLE = {
    "taken_at": 1,
    "seconds": 0.1,
    "complete": True,
    "problems": [],
    "errors": [],
    "plan": None,
    "warnings": ["group cmss has neither"],
}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "sharectl.yaml"
    path.write_text(
        "groups: {alice: {pledge_hs06: 1}, cms: {pledge_hs06: 1}}\n"
        "pool: {collector: '127.0.0.1:1', collector_deadline_seconds: 5}\n"
        f"publish: [{{file: {tmp_path}/sharectl.txt}}]\nstate_directory: {tmp_path}\n"
    )
    (tmp_path / "sharectl.txt").write_text(text.render(PLAN))
    return path


@pytest.mark.parametrize(("last", "older"), [(4, False), (5, False), (6, True)])
def test_an_older_plan_is_a_problem_and_warnings_of_the_last_cycle_are_told(
    config: Path, capsys: pytest.CaptureFixture[str], *, last: int, older: bool
) -> None:
    store = StateFile(config.parent / "state.json")
    store.save(State(last))
    store.note_cycle(CYCLE)
    assert main(["status", "--json", "--config", str(config)]) == 1
    out, err = capsys.readouterr()
    assert ("an older plan stands there: sequence 5, and 6 was published last" in err) is older
    assert json.loads(out)["published"][0]["older"] is older
    assert "warning: group cmss has neither" in err
    assert "cmss" not in str(json.loads(out)["problems"])
    assert "collector: " in err


def test_a_plan_and_a_switch_from_the_future_are_problems(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ahead = int(time.time()) + 2 * 86400
    StateFile(config.parent / "state.json").save(State(ahead))
    StateFile(config.parent / "state.json").note_cycle({**CYCLE, "taken_at": ahead})
    switch = DisabledFile(config.parent)
    switch.disable(Disabled("cooling", "ann@cm", ahead, ahead + 3600))
    assert main(["status", "--config", str(config)]) == 1
    out, err = capsys.readouterr()
    assert "in the future, by 17" in out
    assert "nodes refuse such a plan (future)" in err
    assert "disabled at a time that is still to come" in err
    switch.enable()
    StateFile(config.parent / "state.json").save(State(ahead - 2 * 86400))
    main(["status", "--config", str(config)])
    err = capsys.readouterr().err
    assert "future" not in err
    assert "still to come" not in err


def test_a_withdrawn_plan_that_comes_back_is_a_problem_though_sharectl_is_disabled(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    StateFile(config.parent / "state.json").save(State(6, withdrawn=True))
    (config.parent / "disabled").touch()
    assert main(["status", "--config", str(config)]) == 1
    assert "an older plan stands there" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("extra", "cells"),
    [
        ({}, ["200", "-", "-40", "-4", "9", "-"]),
        ({"unplaceable_by_cores": {}}, ["200", "-60", "-40", "-4", "9", "0"]),
        ({"unplaceable_by_cores": {1: 2, 8: 5}}, ["200", "-60", "-40", "-4", "9", "7"]),
    ],
)
def test_errors_are_shown_with_those_acted_on_and_with_jobs_that_no_node_could_run(
    config: Path,
    capsys: pytest.CaptureFixture[str],
    extra: dict[str, dict[int, int]],
    cells: list[str],
) -> None:
    row = {"group": "cms", "pledge_hs06": 200, "error_hs06": -40, "error_cores": -4}
    control = {"group": "cms", "setpoint_hs06": 100, "control_error_hs06": -60, "output_hs06": -60}
    store = StateFile(config.parent / "state.json")
    store.save(State(5))
    errors = [{**row, "pending_multi_jobs": 9, **extra}]
    store.note_cycle({**CYCLE, "errors": errors, "controllers": [control] if extra else []})
    main(["status", "--config", str(config)])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.split()[:1] == ["cms"]]
    assert line.split()[1:] == cells


def test_every_group_has_a_code_a_sentence_and_its_closed_nodes(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"group": "cms", "code": "helped", "says": "targets let it in"}
    closed = {"closed_nodes": 3, "other_sizes_closed_nodes": 4}
    store = StateFile(config.parent / "state.json")
    store.save(State(5))
    store.note_cycle({**CYCLE, "groups": [{**row, **closed}]})
    main(["status", "--config", str(config)])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.split()[:1] == ["cms"]]
    assert line.split() == ["cms", "helped", "7", "targets", "let", "it", "in"]


@pytest.mark.parametrize(
    ("unanswered", "words"),
    [
        (["pledges"], "no pledges"),
        (["collector"], "the pool did not answer completely (collector)"),
        (
            ["schedd ce-1", "pledges"],
            "no pledges, the pool did not answer completely (schedd ce-1)",
        ),
        ([], "the pool did not answer completely"),
    ],
)
def test_what_did_not_answer_is_named(
    config: Path, capsys: pytest.CaptureFixture[str], unanswered: list[str], words: str
) -> None:
    store = StateFile(config.parent / "state.json")
    store.save(State(5))
    store.note_cycle({**CYCLE, "complete": False, "unanswered": unanswered})
    main(["status", "--config", str(config)])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("reason")]
    assert line.split(maxsplit=1)[1].strip() == words


def test_a_cycle_says_who_did_not_answer(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cycle", "--config", str(config)]) != 0
    assert 'reason="the pool did not answer completely (collector' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("slots", "seconds", "said"), [(0, 999, False), (2, 999, True), (2, 99, False)], ids=str
)
def test_targets_that_stay_on_nodes_while_disabled_are_a_problem(
    slots: int, seconds: int, *, said: bool
) -> None:
    status = {
        "now": 10_000,
        "disabled": {"since": 10_000 - seconds},
        "withdrawn": True,
        "published": [],
        "last_cycle": CYCLE,
        "nodes": {"problem": None, "with_target": slots, "slots": 4, "refusing": {}},
        "blocks": {"free": [], "left_alone": [], "failing": []},
    }
    found = problems_of(status, 120)
    assert any("disabled, and 2 slots still have a target" in problem for problem in found) is said


TARGETS = tuple(Standing(Target(node, "alice", 0, "cms", 8), 1) for node in ("wn-1", "wn-2"))


def free_blocks() -> BlockMemory:
    """Blocks that have stood free for 9 minutes and for 1."""
    now = int(time.time())
    return BlockMemory(
        open=(
            OpenBlock("wn-1", "cms", 8, 1, free_since=now - 540),
            OpenBlock("wn-2", "cms", 8, 1, free_since=now - 60),
        )
    )


@pytest.mark.parametrize(("seconds", "late"), [("null", 1), ("3600", 0), ("30", 2)])
def test_a_block_that_stands_free_for_too_long_is_a_problem(
    config: Path, capsys: pytest.CaptureFixture[str], seconds: str, late: int
) -> None:
    with config.open("a") as stream:
        stream.write(f"control: {{give_up_seconds: {seconds}}}\n")
    StateFile(config.parent / "state.json").save(
        State(5, standing=TARGETS, standing_until=2**33, blocks=free_blocks())
    )
    main(["status", "--json", "--config", str(config)])
    found = json.loads(capsys.readouterr().out)
    assert [block["node"] for block in found["blocks"]["free"]] == ["wn-1", "wn-2"]
    said = [problem for problem in found["problems"] if "cores kept free" in problem]
    assert len(said) == late
    if said:
        assert said[0].startswith("wn-1: 8 cores kept free for cms for 9 min")
    main(["status", "--config", str(config)])
    assert "wn-2: 8 cores kept free for cms for 1 min" in capsys.readouterr().out


def test_a_block_that_was_taken_since_is_told_no_more() -> None:
    idle = {"wn-1": 0, "wn-2": 9}
    blocks = blocks_data(free_blocks(), idle, GiveUp(1.0), int(time.time()))
    assert [block["node"] for block in blocks["free"]] == ["wn-2"]


def test_a_group_whose_jobs_take_no_block_is_a_problem(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    until = int(time.time()) + 3600
    rows = (
        BackOff("cms", 8, ALL_NODES, IN_A_ROW, 3600.0, until),
        BackOff("cms", 4, ALL_NODES, IN_A_ROW - 1, 0.0, 1),
        BackOff("atlas", 8, "wn-1", 1, 3600.0, until),
    )
    StateFile(config.parent / "state.json").save(State(5, blocks=BlockMemory(back_offs=rows)))
    assert main(["status", "--json", "--config", str(config)]) == 1
    found = json.loads(capsys.readouterr().out)
    said = [problem for problem in found["problems"] if "no job took" in problem]
    assert len(said) == 1
    assert said[0].startswith("cms: its 8-core jobs wait")
    assert [row["node"] for row in found["blocks"]["left_alone"]] == [None, "wn-1"]


def test_help_says_what_a_monitoring_system_needs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["status", "--help"])
    out = capsys.readouterr().out
    for words in ("exit codes", "1 at least one problem", "no-file", "stale", "No problem:"):
        assert words in out
