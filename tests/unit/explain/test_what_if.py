"""Changes that would change a decision: each has the effect it names, and no smaller one has."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any, Optional

import pytest

from sharectl.control.laws import Control, Pid
from sharectl.control.steering import SteeringConfig
from sharectl.explain.codes import CHANGES
from sharectl.explain.what_if import (
    LIFTED,
    SWITCHES,
    Case,
    Flip,
    Trials,
    cycle_flips,
    group_levers,
    node_levers,
    pending,
    role,
    under_target,
)
from sharectl.model import Node, PendingJobs, PlanLimits, RunningJobs, Snapshot
from sharectl.plan.plan import PlanConfig, State
from tests.fakes import NOW, running, snapshot

TWO_NODES = [
    running("wn-1", "alice", 1, 64),
    running("wn-2", "alice", 1, 32),
    running("wn-2", "cms", 1, 16),
]
THREE_NODES = [*(running(f"wn-{n}", "alice", 1, 32) for n in (1, 2, 3)), *TWO_NODES[2:]]
THREE_NODES[-1] = replace(THREE_NODES[-1], node="wn-3")
WAIT = {("cms", 8): 9}
JOBS = "8-core jobs of cms that wait"
Change = tuple[str, Optional[float], Optional[float], str]
"""Name, value, changed value and outcome."""


def case(taken: Snapshot, strategy: str = "pair", **limits: Any) -> Case:
    pledges = {"alice": 100.0, "cms": 100.0}
    config = PlanConfig(pledges, PlanLimits(**limits), 3060, strategy=strategy)
    return Case(config, State(), taken, NOW)


def trials(of: Case, decisions: int = 300) -> Trials:
    return Trials(of, of.decided(), decisions)


def of_group(of: Case, group: str, code: str) -> list[Change]:
    again = trials(of)
    return changes(again.flips(group_levers(again, group), role(group)), code)


def of_node(of: Case, code: str) -> list[Change]:
    again, node = trials(of), of.snapshot.nodes[0]
    return changes(again.flips(node_levers(again, node), under_target(node.name)), code)


def of_cycle(of: Case, code: str) -> list[Change]:
    return changes(cycle_flips(trials(of)), code)


def changes(flips: Iterable[Flip], code: str) -> list[Change]:
    return [(f.name, f.value, f.becomes, f.outcome) for f in flips if f.code == code]


@pytest.mark.parametrize("strategy", ["pair", "many"])
def test_one_waiting_job_decides(strategy: str) -> None:
    idle, busy = (case(snapshot(TWO_NODES, jobs), strategy) for jobs in ({}, WAIT))
    assert of_group(idle, "cms", "pending") == [(JOBS, 0.0, 1.0, "receives")]
    assert of_group(idle, "alice", "pending") == [(JOBS, 0.0, 1.0, "gives")]
    assert [outcome for *_, outcome in of_node(idle, "pending")] == ["a target"]
    assert of_group(busy, "cms", "pending") == [(JOBS, 9.0, 0.0, "neither")]
    assert [outcome for *_, outcome in of_node(busy, "pending")] == ["no target"]
    without = case(snapshot(THREE_NODES), strategy)
    assert of_cycle(without, "pending") == [(JOBS, 0.0, 1.0, "1 target")]
    some = of_cycle(case(snapshot(THREE_NODES, WAIT), strategy), "pending")
    assert (JOBS, 9.0, 2.0, "2 targets") in some


def test_errors_and_deadband_are_found_to_half_a_per_cent() -> None:
    of = case(snapshot(TWO_NODES, WAIT))
    # alice uses 960 and is due 560; a block of 8 cores is worth 80.
    ((_, value, becomes, outcome),) = of_group(of, "alice", "error")
    assert (value, outcome) == (400.0, "neither")
    assert 70 < (becomes or 0) < 80
    ((_, value, becomes, outcome),) = of_group(of, "alice", "deadband")
    assert (value, outcome) == (0.0, "neither")
    assert 400 <= (becomes or 0) < 410
    wide = case(snapshot(THREE_NODES, WAIT), deadband_hs06=2000.0)
    ((_, value, becomes, outcome),) = of_cycle(wide, "deadband")
    assert (value, outcome) == (2000.0, "3 targets")
    assert 390 <= (becomes or 0) < 400


def test_a_node_without_control_gets_a_target_by_that_alone() -> None:
    taken = snapshot(TWO_NODES, WAIT, uncontrolled=["wn-1"])
    assert [outcome for *_, outcome in of_node(case(taken), "controlled")] == ["a target"]
    nodes = tuple(replace(node, controlled=False) for node in taken.nodes)
    assert not of_node(case(replace(taken, nodes=nodes)), "pending")


@pytest.mark.parametrize(
    ("code", "state"),
    [
        ("controlled", {"controlled": False}),
        ("not-reserved", {"reserved": True}),
        ("not-draining", {"draining": True}),
        ("obeying", {"refusal": "unsigned"}),
    ],
)
def test_nodes_that_are_left_out_are_named_one_and_all(code: str, state: dict[str, Any]) -> None:
    taken = snapshot(THREE_NODES, WAIT)
    out = tuple(replace(node, **state) for node in taken.nodes)
    one, every, _ = SWITCHES[code]
    single = replace(taken, nodes=(out[0], *taken.nodes[1:]))
    assert [name for name, *_ in of_cycle(case(single, "many"), code)] == [one.format("wn-1")]
    assert of_cycle(case(replace(taken, nodes=out), "many"), code) == [
        (one.format("wn-1"), None, None, "1 target"),
        (every, None, None, "3 targets"),
    ]


@pytest.mark.parametrize("strategy", ["pair", "many"])
def test_a_limit_is_raised_to_the_next_target_and_lifted(strategy: str) -> None:
    taken = snapshot(THREE_NODES, WAIT)
    assert of_cycle(case(taken, strategy, max_nodes=1), "max-nodes") == [
        ("control.max_nodes", 1.0, 2.0, "2 targets"),
        ("control.max_nodes", 1.0, None, "3 targets"),
    ]
    assert of_cycle(case(taken, strategy, max_changed_nodes=2), "max-changed-nodes") == [
        ("control.max_changed_nodes", 2.0, 3.0, "3 targets")
    ]
    (exact, whole) = of_cycle(case(taken, strategy, max_target_ratio=0.4), "max-target-share")
    assert (exact[1], exact[3], whole[2:]) == (0.4, "2 targets", (None, "3 targets"))
    assert 0.66 < (exact[2] or 0) < 0.68
    idle = {flip.code for flip in cycle_flips(trials(case(taken, strategy, max_nodes=3)))}
    assert "max-nodes" not in idle
    # Decided by hand: with that number, and with one less.
    for most, targets in ((2, 2), (1, 1)):
        assert len(case(taken, strategy, max_nodes=most).decided().plan.targets) == targets


def test_the_limit_of_outputs_is_a_number() -> None:
    law = Control("pid", pid=Pid(gain=1.0, max_output_hs06=50.0))
    of = case(snapshot(THREE_NODES, WAIT))
    of = replace(of, config=replace(of.config, steering=SteeringConfig(law)))
    (exact, *_, lifted) = of_cycle(of, "output-limit")
    assert (exact[0], exact[1], exact[3]) == ("control.pid.max_output_hs06", 50.0, "1 target")
    # One block of 8 cores is worth 80.
    assert 80 <= (exact[2] or 0) < 90
    assert lifted[2] is None


def test_changes_that_are_needed_together_are_named_together_and_no_other() -> None:
    of = case(snapshot(THREE_NODES, WAIT), max_nodes=1, max_changed_nodes=1)
    both = "control.max_nodes is lifted and control.max_changed_nodes is lifted"
    assert of_cycle(of, "max-nodes") == [(both, None, None, "3 targets")]
    taken = snapshot(THREE_NODES, uncontrolled=["wn-1", "wn-2", "wn-3"])
    needed = "all nodes are under control (nodes.controlled) and 1000 8-core jobs of cms wait"
    assert of_cycle(case(taken, max_nodes=2), "controlled") == [(needed, None, None, "2 targets")]


def test_a_small_number_of_decisions_is_kept_and_seen() -> None:
    again = trials(case(snapshot(THREE_NODES, WAIT), max_nodes=1), decisions=3)
    assert len(cycle_flips(again)) <= 2
    assert again.remaining < 0


def test_jobs_of_several_memory_sizes_come_and_go_least_memory_first() -> None:
    held = tuple(RunningJobs(f"wn-{n}", "alice", 1, 10.0, 600, 16, 2_560) for n in (1, 2))
    nodes = tuple(Node(f"wn-{n}", f"wn-{n}", 16, 10.0, True, 40_960) for n in (1, 2))  # noqa: FBT003
    kinds = ((40_000, 5), (16_384, 2), (2_000, 1))
    waiting = tuple(PendingJobs("cms", 8, jobs, memory_mib) for memory_mib, jobs in kinds)
    of = case(Snapshot(NOW, nodes, held, waiting), "many")
    (flip,) = trials(of).flips([pending(of, ("cms", 8), fewer=True)], under_target("wn-1"))
    # Without the three that fit, five are left, and none of them fits.
    assert (flip.value, flip.becomes) == (8.0, 5.0)
    too_large = replace(of, snapshot=replace(of.snapshot, pending=waiting[:1]))
    assert not trials(too_large).flips([pending(too_large, ("cms", 8))], under_target("wn-1"))


def test_every_limit_and_every_switch_has_its_code() -> None:
    bounds = {field.name for field in fields(PlanLimits)} - {"multicore_cores", "deadband_hs06"}
    assert {path.rpartition(".")[2] for path, _, _ in LIFTED.values()} == bounds | {
        "max_output_hs06"
    }
    assert {*LIFTED, *SWITCHES, "answering", "enabled"} <= set(CHANGES)
