from __future__ import annotations

import time
from pathlib import Path

import classad2
import htcondor2  # noqa: F401  # names fall through to the other ad as in the daemons only with it
import pytest
from rich.console import Console

from poolbox.demo import scenario
from poolbox.demo.figure import errors_and_cores
from poolbox.demo.pictures import NodePicture, NodeTarget, cores_by_group, overshoots, picture
from poolbox.demo.screen import moment_line, moment_picture
from poolbox.demo.steering import Cycle
from poolbox.demo.story import Moment
from sharectl.config.load import parse
from sharectl.model import GroupError, GroupUsage

NOW = 1_800_000_000
AD = """
Machine = "wn-001.example.org"
TotalSlotCpus = 16
ChildCpus = {1, 8, 1, 1}
ChildAccountingGroup = {"alice.alice@example.org", "cms.x@example.org", undefined, "ALICE.y@e.org"}
MC_GRACE = time() < 4000000000
t1_TargetGroups = {"alice", "cms"}
t1_Targetcores = {0, 8}
t1_TargetUntil = 1800000060
t1_JobCtlReason = "ok"
"""


def _node(name: str, alice: int, cap: int | None) -> NodePicture:
    target = None if cap is None else NodeTarget("alice", cap, "cms", NOW)
    return NodePicture(name, 16, {"alice": alice}, target, in_grace=True, job_ctl_reason="ok")


def _picture(now: int, absent: str = "none") -> NodePicture:
    lines = [line for line in AD.strip().splitlines() if not line.startswith(absent)]
    return picture(classad2.ClassAd(f"[{';'.join(lines)}]"), now)


def test_a_picture_says_what_the_ad_says() -> None:
    node = _picture(NOW)
    assert node.name == "wn-001"
    assert dict(node.held_cores) == {"alice": 2, "cms": 8, "other": 1}
    assert node.idle_cores == 5
    assert node.target == NodeTarget("alice", 0, "cms", NOW + 60), "a cap of 0 cores is a target"
    assert node.in_grace
    assert cores_by_group([node, node])["cms"] == 16
    assert _picture(NOW + 60).target is None, "it is over"
    for name in ("t1_TargetGroups", "t1_Targetcores", "t1_TargetUntil"):
        assert _picture(NOW, name).target is None


@pytest.mark.parametrize(
    ("before", "after", "overshoots_of_alice"),
    [
        ((12, 8), (12, 8), 0),
        ((12, 8), (9, 8), 0),
        ((6, 8), (8, 8), 0),
        ((8, 8), (9, 8), 1),
        ((10, 8), (11, 8), 1),
        ((8, 8), (9, 4), 0),
        ((8, None), (16, None), 0),
    ],
)
def test_an_overshoot_is_a_rise_above_the_cap_while_it_stands(
    before: tuple[int, int | None], after: tuple[int, int | None], overshoots_of_alice: int
) -> None:
    seen = overshoots([_node("wn-001", *before)], [_node("wn-001", *after)])
    assert len(seen) == overshoots_of_alice


def _moment(targets: int) -> Moment:
    row = {"pledge_hs06": 560.0, "power_hs06": 1200.0, "error_hs06": 640.0, "cores": 96}
    errors = [{"group": group, **row, "pending_multi_jobs": 24} for group in scenario.PLEDGE_HS06]
    plan = {"targets": [{}] * targets, "held_back": "alice", "helped": "cms"}
    record = {"errors": errors, "plan": {**plan, "reason": "no-group-over"}}
    nodes = tuple(_node(f"wn-{number:03}", 10, 8) for number in range(1, 7))
    return Moment(time.time(), nodes, Cycle(0, "", record), fresh=True)


def test_the_picture_fits_a_small_terminal() -> None:
    console = Console(width=80, height=24, record=True, quiet=False, file=None)
    with console.capture() as shown:
        console.print(moment_picture(_moment(6)))
    lines = shown.get().splitlines()
    assert len(lines) < 24
    assert not any("…" in line for line in lines)
    nodes = [line for line in lines if "aaaaaaaaaa......" in line]
    assert sum("alice at most 8, cms in; grace" in line for line in nodes) == 6


SILENT = Moment(0.0, (), Cycle(75, "x\nschedd ap-1: no answer", None), fresh=True)


def test_a_line_says_what_was_planned_or_why_nothing_was() -> None:
    for moment, words in (
        (_moment(3), "3 nodes told to hold alice back for cms"),
        (_moment(0), "no error is worth"),
        (SILENT, "schedd ap-1: no answer"),
    ):
        assert words in moment_line(moment)


def test_the_scenario_is_steered_as_its_story_tells(tmp_path: Path) -> None:
    """The screen names the one pair of a plan, which plans for many pairs have not."""
    config = parse(scenario.sharectl_yaml(tmp_path, tmp_path / "sharectl.txt", "*"), "F")
    assert config.control.strategy == "pair"
    assert config.control.limits.multicore_cores == scenario.MULTICORE_CORES


def test_both_panels_of_the_figure_name_their_groups() -> None:
    rows = [
        (1000 + n, GroupError(group, 600.0, 0.0, 9.0 * n, 0.0, GroupUsage(single_cores=n)))
        for group in ("alice", "a<i>")
        for n in range(5)
    ]
    drawing = errors_and_cores(rows, {1090: "sharectl on"})
    assert min(drawing.count(f">{name}<") for name in ("alice", "a&lt;i&gt;")) > 1
