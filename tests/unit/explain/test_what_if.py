"""Changes that would change a decision: each does what is said of it, and no smaller one does."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Optional

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
    group_knobs,
    limit_knobs,
    node_knobs,
    pending,
    role,
    under_target,
)
from sharectl.model import Node, PendingJobs, PlanLimits, RunningJobs, Snapshot, Target
from sharectl.plan.limits import LIMITS
from sharectl.plan.plan import PlanConfig, State
from tests.fakes import NOW, running, snapshot

PLEDGES = {"alice": 100.0, "cms": 100.0}
TWO_NODES = [
    running("wn-1", "alice", 1, 64),
    running("wn-2", "alice", 1, 32),
    running("wn-2", "cms", 1, 16),
]
THREE_NODES = [
    running("wn-1", "alice", 1, 32),
    running("wn-2", "alice", 1, 32),
    running("wn-3", "alice", 1, 32),
    running("wn-3", "cms", 1, 16),
]
WAIT = {("cms", 8): 9}
JOBS = "8-core jobs of cms that wait"


def case(taken: Snapshot, strategy: str = "pair", **limits: object) -> Case:
    bounds = PlanLimits(**limits)  # type: ignore[arg-type]
    return Case(PlanConfig(PLEDGES, bounds, 3060, strategy=strategy), State(), taken, NOW)


def trials(of: Case, decisions: int = 300) -> Trials:
    return Trials(of, of.decided(), decisions)


def of_group(of: Case, group: str) -> dict[tuple[str, str], Flip]:
    again = trials(of)
    found = again.flips(group_knobs(of, again.decision, group), role(group))
    return {(flip.code, flip.outcome): flip for flip in found}


def of_node(of: Case, name: str) -> dict[str, Flip]:
    again = trials(of)
    node = next(node for node in of.snapshot.nodes if node.name == name)
    found = again.flips(node_knobs(of, again.decision, node), under_target(name))
    return {flip.code: flip for flip in found}


def of_cycle(of: Case, code: str) -> list[tuple[str, Optional[float], Optional[float], str]]:
    found = cycle_flips(trials(of))
    return [(f.name, f.value, f.becomes, f.outcome) for f in found if f.code == code]


@pytest.mark.parametrize("strategy", ["pair", "many"])
def test_one_waiting_job_makes_the_group_under_its_share_receive(strategy: str) -> None:
    idle = case(snapshot(TWO_NODES), strategy)
    flip = of_group(idle, "cms")["pending", "receives"]
    assert (flip.name, flip.value, flip.becomes) == (JOBS, 0.0, 1.0)
    flip = of_group(idle, "alice")["pending", "gives"]
    assert (flip.name, flip.becomes) == (JOBS, 1.0)
    busy = case(snapshot(TWO_NODES, WAIT), strategy)
    assert of_group(busy, "cms")["pending", "neither"].becomes == 0.0
    assert of_node(busy, "wn-1")["pending"].outcome == "no target"


def test_errors_and_deadband_are_told_to_half_a_per_cent() -> None:
    of = case(snapshot(TWO_NODES, WAIT))
    # alice uses 960 and is due 560; a block of 8 cores is worth 80.
    flip = of_group(of, "alice")["error", "neither"]
    assert flip.value == 400.0
    assert 70 < (flip.becomes or 0) < 80
    flip = of_group(of, "alice")["deadband", "neither"]
    assert flip.value == 0.0
    assert 400 <= (flip.becomes or 0) < 410


def test_a_limit_is_lifted_and_the_nodes_counted() -> None:
    of = case(snapshot(TWO_NODES, WAIT), max_nodes=1)
    again = trials(of)
    found = again.flips(limit_knobs(of, again.decision), role("alice", nodes=True))
    assert found == (Flip("max-nodes", "control.max_nodes", 1.0, None, "gives on 2 nodes"),)


def test_a_node_under_no_control_gets_a_target_by_that_alone() -> None:
    taken = snapshot(TWO_NODES, WAIT, uncontrolled=["wn-1"])
    found = of_node(case(taken), "wn-1")
    assert found["controlled"].outcome == "a target"
    nodes = tuple(replace(node, controlled=False) for node in taken.nodes)
    assert "pending" not in of_node(case(replace(taken, nodes=nodes)), "wn-1")
    assert of_node(case(snapshot(TWO_NODES)), "wn-1")["pending"].becomes == 1.0


def test_each_change_does_what_is_said_and_a_smaller_one_does_not() -> None:
    """Decided by hand with the number that was told, and with one less."""
    of = case(snapshot(THREE_NODES, WAIT), max_nodes=1)
    ((_, _, exact, outcome), _) = of_cycle(of, "max-nodes")
    for most, expected in ((exact, outcome), ((exact or 0) - 1, "1 target")):
        again = case(snapshot(THREE_NODES, WAIT), max_nodes=int(most or 0)).decided()
        assert f"{len(again.plan.targets)} target" in expected


@pytest.mark.parametrize("strategy", ["pair", "many"])
def test_a_plan_without_jobs_to_help_needs_one_of_them(strategy: str) -> None:
    assert of_cycle(case(snapshot(THREE_NODES), strategy), "pending") == [
        (JOBS, 0.0, 1.0, "1 target")
    ]


def test_a_plan_inside_the_deadband_tells_how_narrow_it_must_be() -> None:
    of = case(snapshot(THREE_NODES, WAIT), deadband_hs06=2000.0)
    ((name, value, becomes, outcome),) = of_cycle(of, "deadband")
    assert (name, value, outcome) == ("control.deadband_hs06", 2000.0, "3 targets")
    assert 390 <= (becomes or 0) < 400


@pytest.mark.parametrize(
    ("code", "state", "one", "every"),
    [
        (
            "controlled",
            {"controlled": False},
            "wn-1 is under control (nodes.controlled)",
            "all nodes are under control (nodes.controlled)",
        ),
        (
            "not-reserved",
            {"reserved": True},
            "wn-1 is not reserved (nodes.reserved)",
            "no node is reserved (nodes.reserved)",
        ),
        (
            "not-draining",
            {"draining": True},
            "wn-1 is not being drained",
            "no node is being drained",
        ),
        (
            "obeying",
            {"refusal": "unsigned"},
            "wn-1 acts on its targets",
            "all nodes act on their targets",
        ),
    ],
)
def test_nodes_that_are_left_out_are_told_all_together_and_one(
    code: str, state: dict[str, object], one: str, every: str
) -> None:
    taken = snapshot(THREE_NODES, WAIT)
    out = tuple(replace(node, **state) for node in taken.nodes)  # type: ignore[arg-type]
    of = case(replace(taken, nodes=out), "many")
    assert of_cycle(of, code) == [(one, None, None, "1 target"), (every, None, None, "3 targets")]


def test_a_limit_is_told_by_the_next_number_and_by_what_there_is_without_it() -> None:
    taken = snapshot(THREE_NODES, WAIT)
    for strategy in ("pair", "many"):
        assert of_cycle(case(taken, strategy, max_nodes=1), "max-nodes") == [
            ("control.max_nodes", 1.0, 2.0, "2 targets"),
            ("control.max_nodes", 1.0, None, "3 targets"),
        ]
    assert of_cycle(case(taken, max_changed_nodes=2), "max-changed-nodes") == [
        ("control.max_changed_nodes", 2.0, 3.0, "3 targets")
    ]
    (exact, whole) = of_cycle(case(taken, max_target_ratio=0.4), "max-target-share")
    assert (exact[0], exact[1], exact[3]) == ("control.max_target_share", 0.4, "2 targets")
    assert 0.66 < (exact[2] or 0) < 0.68
    assert whole == ("control.max_target_share", 0.4, None, "3 targets")
    codes = {flip.code for flip in cycle_flips(trials(case(taken, max_nodes=3)))}
    assert codes == {"pending", "deadband", "error"}


def test_the_limit_of_outputs_is_told_as_a_number() -> None:
    law = Control("pid", pid=Pid(gain=1.0, max_output_hs06=50.0))
    of = case(snapshot(THREE_NODES, WAIT))
    of = replace(of, config=replace(of.config, steering=SteeringConfig(law)))
    assert not of.decided().plan.targets
    (exact, *_, lifted) = of_cycle(of, "output-limit")
    assert (exact[0], exact[1], exact[3]) == ("control.pid.max_output_hs06", 50.0, "1 target")
    # One block of 8 cores is worth 80.
    assert 80 <= (exact[2] or 0) < 90
    assert lifted[2] is None


def test_limits_that_are_equally_tight_are_told_together() -> None:
    of = case(snapshot(THREE_NODES, WAIT), max_nodes=1, max_changed_nodes=1)
    both = "control.max_nodes is lifted and control.max_changed_nodes is lifted"
    assert of_cycle(of, "max-nodes") == [(both, None, None, "3 targets")]


def test_of_what_is_missing_together_only_the_needed_is_told() -> None:
    taken = snapshot(THREE_NODES, uncontrolled=["wn-1", "wn-2", "wn-3"])
    (flip,) = cycle_flips(trials(case(taken, max_nodes=2)))
    needed = "all nodes are under control (nodes.controlled) and 1000 8-core jobs of cms wait"
    assert (flip.name, flip.value, flip.outcome) == (needed, None, "some targets")


def test_fewer_jobs_drop_some_targets() -> None:
    found = of_cycle(case(snapshot(THREE_NODES, WAIT)), "pending")
    assert (JOBS, 9.0, 2.0, "2 targets") in found


def test_a_small_number_of_decisions_is_kept_and_said() -> None:
    again = trials(case(snapshot(THREE_NODES, WAIT), max_nodes=1), decisions=3)
    assert len(cycle_flips(again)) <= 2
    assert not again.tried_all


MEMORY_KINDS = ((40_000, 5), (16_384, 2), (2_000, 1))


def test_jobs_of_several_memory_sizes_come_and_go_least_memory_first() -> None:
    held = tuple(RunningJobs(f"wn-{n}", "alice", 1, 10.0, 600, 16, 2_560) for n in (1, 2))
    nodes = tuple(Node(f"wn-{n}", f"wn-{n}", 16, 10.0, True, 40_960) for n in (1, 2))  # noqa: FBT003
    waiting = tuple(PendingJobs("cms", 8, jobs, memory_mib) for memory_mib, jobs in MEMORY_KINDS)
    of = case(Snapshot(NOW, nodes, held, waiting), "many")
    (flip,) = trials(of).flips([pending(of, "cms", 8, fewer=True)], under_target("wn-1"))
    # Without the three that fit, five are left, and none of them fits.
    assert (flip.value, flip.becomes) == (8.0, 5.0)
    assert flip.name == f"{JOBS} (taken away: least memory first)"
    assert pending(of, "cms", 8).name == f"{JOBS} (added: 2000 MiB each)"
    too_large = replace(of, snapshot=replace(of.snapshot, pending=waiting[:1]))
    assert not trials(too_large).flips([pending(too_large, "cms", 8)], under_target("wn-1"))


def test_every_limit_and_every_switch_has_its_code() -> None:
    bounds = {field.name for field in fields(PlanLimits)} - {"multicore_cores", "deadband_hs06"}
    assert {field for field, _, _ in LIFTED.values()} == bounds
    assert set(LIFTED) <= set(LIMITS)
    assert {*LIFTED, *SWITCHES, "answering", "enabled", "output-limit"} <= set(CHANGES)


def test_one_node_is_not_nodes() -> None:
    decision = case(snapshot(TWO_NODES)).decided()
    targets = tuple(Target(f"wn-{k}", "alice", 8, "cms", 8) for k in range(2))
    one = replace(decision, plan=replace(decision.plan, targets=targets[:1]))
    two = replace(decision, plan=replace(decision.plan, targets=targets))
    assert role("alice", nodes=True)(one) == "gives on 1 node"
    assert role("cms", nodes=True)(two) == "receives on 2 nodes"
