"""Changes that would change a decision: each has the effect it names, and no smaller one has."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Optional

import pytest

from sharectl.control.laws import Control, Pid
from sharectl.control.steering import SteeringConfig
from sharectl.explain.codes import CHANGES
from sharectl.explain.what_if import (
    LIFTED,
    NEITHER,
    SWITCHES,
    Case,
    Trials,
    cycle_levers,
    group_levers,
    node_levers,
    pending,
    role,
    targets_in_all,
    under_target,
)
from sharectl.model import Node, PendingJobs, PlanLimits, RunningJobs, Snapshot
from sharectl.plan.plan import PlanConfig, State
from tests.fakes import NOW, running, snapshot

PLEDGES = {"alice": 100.0, "cms": 100.0}
TWO_NODES = [
    running("wn-1", "alice", 1, 64),
    running("wn-2", "alice", 1, 32),
    running("wn-2", "cms", 1, 16),
]
THREE_NODES = [*(running(f"wn-{n}", "alice", 1, 32) for n in (1, 2, 3))]
THREE_NODES.append(TWO_NODES[-1]._replace(node="wn-3"))
WAIT = {("cms", 8): 9}
JOBS = "8-core jobs of cms that wait"
THREE = snapshot(THREE_NODES, WAIT)
Change = tuple[str, Optional[float], Optional[float], str]
"""Name, value, changed value and outcome."""


def case(taken: Snapshot, strategy: str = "pair", **limits: Any) -> Case:
    config = PlanConfig(PLEDGES, PlanLimits(**limits), 3060, strategy=strategy)
    return Case(config, State(), taken, NOW)


def trials(of: Case, decisions: int = 300) -> Trials:
    return Trials(of, of.decided(), decisions)


def changes(of: Case, subject: str, code: str) -> list[Change]:
    """Changes by one lever for a group, the ``node`` wn-1, or the ``pool``."""
    again, node = trials(of), of.snapshot.nodes[0]
    if subject == "pool":
        flips = again.flips(cycle_levers(again), targets_in_all)
    elif subject == "node":
        flips = again.flips(node_levers(again, node), under_target(node.name))
    else:
        flips = again.flips(group_levers(again, subject), role(subject))
    return [(f.name, f.value, f.becomes, f.outcome) for f in flips if f.code == code]


@pytest.mark.parametrize("strategy", ["pair", "many"])
def test_one_waiting_job_decides(strategy: str) -> None:
    idle, busy = (case(snapshot(TWO_NODES, jobs), strategy) for jobs in ({}, WAIT))
    assert changes(idle, "cms", "pending") == [(JOBS, 0.0, 1.0, "receives")]
    assert changes(idle, "alice", "pending") == [(JOBS, 0.0, 1.0, "gives")]
    assert [outcome for *_, outcome in changes(idle, "node", "pending")] == ["a target"]
    assert changes(busy, "cms", "pending") == [(JOBS, 9.0, 0.0, NEITHER)]
    assert [outcome for *_, outcome in changes(busy, "node", "pending")] == ["no target"]
    without = case(snapshot(THREE_NODES), strategy)
    assert changes(without, "pool", "pending") == [(JOBS, 0.0, 1.0, "1 target")]
    assert (JOBS, 9.0, 2.0, "2 targets") in changes(case(THREE, strategy), "pool", "pending")


def test_errors_and_deadband_are_found_to_half_a_per_cent() -> None:
    # alice uses 960 and is due 560; a block of 8 cores is worth 80.
    of = case(snapshot(TWO_NODES, WAIT), deadband_hs06=0.0)
    wide = case(THREE, deadband_hs06=2000.0)
    for where, subject, code, value, least, most, outcome in (
        (of, "alice", "error", 400.0, 70, 80, NEITHER),
        (of, "alice", "deadband", 0.0, 400, 410, NEITHER),
        (wide, "pool", "deadband", 2000.0, 390, 400, "3 targets"),
    ):
        ((_, now, becomes, then),) = changes(where, subject, code)
        assert (now, then) == (value, outcome)
        assert least <= (becomes or 0) < most


@pytest.mark.parametrize(
    ("code", "state"),
    [
        ("controlled", {"controlled": False}),
        ("not-reserved", {"reserved": True}),
        ("not-draining", {"draining": True}),
        ("obeying", {"refusal": "unsigned"}),
        ("obeying", {"deaf": "no-snippet"}),
    ],
)
def test_nodes_that_are_left_out_are_named_all_together(code: str, state: dict[str, Any]) -> None:
    out = replace(THREE, nodes=tuple(replace(node, **state) for node in THREE.nodes))
    words, _ = SWITCHES[code]
    assert changes(case(out, "many"), "node", code) == [
        (f"the node is {words}", None, None, "a target")
    ]
    assert changes(case(out, "many"), "pool", code) == [
        (f"all nodes are {words}", None, None, "3 targets")
    ]


def test_nodes_that_did_not_obey_are_tried_as_if_they_had() -> None:
    of = case(THREE, "many")
    of = replace(of, state=State(unheeding=dict.fromkeys(("wn-1", "wn-2", "wn-3"), NOW - 1)))
    assert [outcome for *_, outcome in changes(of, "pool", "obeying")] == ["3 targets"]


@pytest.mark.parametrize("strategy", ["pair", "many"])
def test_a_limit_is_raised_to_the_next_target_and_lifted(strategy: str) -> None:
    assert changes(case(THREE, strategy, max_nodes=1), "pool", "max-nodes") == [
        ("control.max_nodes", 1.0, 2.0, "2 targets"),
        ("control.max_nodes", 1.0, None, "3 targets"),
    ]
    changed = case(THREE, strategy, max_changed_nodes=2)
    assert changes(changed, "pool", "max-changed-nodes") == [
        ("control.max_changed_nodes", 2.0, 3.0, "3 targets")
    ]
    part = case(THREE, strategy, max_target_ratio=0.4)
    (exact, whole) = changes(part, "pool", "max-target-share")
    assert (exact[1], exact[3], whole[2:]) == (0.4, "2 targets", (None, "3 targets"))
    assert 0.66 < (exact[2] or 0) < 0.68
    assert not changes(case(THREE, strategy, max_nodes=3), "pool", "max-nodes")
    # Decided by hand: with that number, and with one less.
    for most in (2, 1):
        assert len(case(THREE, strategy, max_nodes=most).decided().plan.targets) == most


def test_a_small_number_of_decisions_is_kept_and_seen() -> None:
    again = trials(case(THREE, max_nodes=1), decisions=3)
    assert len(again.flips(cycle_levers(again), targets_in_all)) <= 2
    assert again.remaining < 0


def test_jobs_of_several_memory_sizes_come_and_go_least_memory_first() -> None:
    nodes = tuple(Node(n, n, 16, 10.0, controlled=True, memory_mib=40_960) for n in "ab")
    held = tuple(RunningJobs(n, "alice", 1, 10.0, 600, 16, 2_560) for n in "ab")
    waiting = tuple(
        PendingJobs("cms", 8, jobs, memory_mib)
        for memory_mib, jobs in ((40_000, 5), (16_384, 2), (2_000, 1))
    )
    of = case(Snapshot(NOW, nodes, held, waiting), "many")
    (flip,) = trials(of).flips([pending(of, ("cms", 8), fewer=True)], under_target("a"))
    # Without the three that fit, five are left, and none of them fits.
    assert (flip.value, flip.becomes) == (8.0, 5.0)
    too_large = replace(of, snapshot=replace(of.snapshot, pending=waiting[:1]))
    assert not trials(too_large).flips([pending(too_large, ("cms", 8))], under_target("a"))


def test_every_limit_and_every_switch_has_its_code() -> None:
    bounds = {field.name for field in fields(PlanLimits)} - {"multicore_cores", "deadband_hs06"}
    lifted = {path.rpartition(".")[2] for path, _, _ in LIFTED.values()}
    assert lifted == bounds
    assert {*LIFTED, *SWITCHES, "output-limit", "answering", "enabled"} <= set(CHANGES)


@pytest.mark.parametrize("owner", ["", "alice"])
def test_the_limit_of_the_law_that_acts_is_lifted_a_groups_too(owner: str) -> None:
    narrow = Control("pid", pid=Pid(max_output_hs06=70.0))
    wide = Control("pid", pid=Pid(max_output_hs06=5000.0))
    law = SteeringConfig(wide, {"alice": narrow}) if owner else SteeringConfig(narrow)
    of = case(THREE, "many", deadband_hs06=0.0)
    of = replace(of, config=replace(of.config, steering=law))
    key = "groups.alice.control.pid.max_output_hs06" if owner else "control.pid.max_output_hs06"
    flips = changes(of, "pool", "output-limit")
    assert {(name, value) for name, value, _, _ in flips} == {(key, 70.0)}
    assert flips[-1][2] is None, "lifted"
