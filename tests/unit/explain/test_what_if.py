from __future__ import annotations

from dataclasses import fields, replace

from sharectl.explain.codes import CHANGES
from sharectl.explain.what_if import (
    LIFTED,
    Budget,
    Case,
    Flip,
    extent,
    flips,
    group_knobs,
    limit_knobs,
    node_knobs,
    role,
    under_target,
)
from sharectl.model import PlanLimits, Snapshot
from sharectl.plan.limits import LIMITS
from sharectl.plan.plan import PlanConfig, State
from tests.fakes import NOW, running, snapshot

PLEDGES = {"alice": 100.0, "cms": 100.0}
HELD = [
    running("wn-1", "alice", 1, 64),
    running("wn-2", "alice", 1, 32),
    running("wn-2", "cms", 1, 16),
]


def case(taken: Snapshot, **limits: object) -> Case:
    bounds = PlanLimits(**limits)  # type: ignore[arg-type]
    return Case(PlanConfig(PLEDGES, bounds, 3060, strategy="pair"), State(), taken, NOW)


def of_group(asked: Case, group: str) -> dict[tuple[str, str], Flip]:
    found = flips(asked, group_knobs(asked, asked.decided(), group), role(group), Budget(200))
    return {(flip.code, flip.outcome): flip for flip in found}


def of_node(asked: Case, name: str) -> dict[str, Flip]:
    node = next(node for node in asked.snapshot.nodes if node.name == name)
    found = flips(asked, node_knobs(asked, asked.decided(), node), under_target(name), Budget(200))
    return {flip.code: flip for flip in found}


def test_one_waiting_job_makes_the_group_under_its_share_receive() -> None:
    found = of_group(case(snapshot(HELD)), "cms")
    assert found["pending", "receives"] == Flip(
        "pending", "8-core jobs of cms that wait", 0.0, 1.0, "receives"
    )


def test_the_group_over_its_share_gives_once_another_waits() -> None:
    found = of_group(case(snapshot(HELD)), "alice")
    assert found["pending", "gives"].what == "8-core jobs of cms that wait"


def test_the_error_at_which_it_ends_is_found_by_deciding_again() -> None:
    asked = case(snapshot(HELD, {("cms", 8): 9}))
    # alice uses 960, cms 160: errors of 400 each way; a block of 8 cores moves 80.
    flip = of_group(asked, "alice")["error", "neither"]
    assert flip.value == 400.0
    assert flip.becomes is not None
    assert 70 < flip.becomes < 80
    flip = of_group(asked, "alice")["deadband", "neither"]
    assert flip.value == 0.0
    assert flip.becomes is not None
    assert 400 <= flip.becomes < 410


def test_a_limit_is_lifted_and_the_nodes_counted() -> None:
    asked = case(snapshot(HELD, {("cms", 8): 9}), max_nodes=1)
    found = flips(asked, limit_knobs(asked), extent("alice"), Budget(50))
    assert found == (Flip("max-nodes", "control.max_nodes", 1.0, None, "gives on 2 nodes"),)


def test_what_would_give_a_node_a_target() -> None:
    taken = snapshot(HELD, {("cms", 8): 9}, uncontrolled=["wn-1"])
    assert of_node(case(taken), "wn-1")["controlled"].outcome == "a target"
    # Its groups wait for nothing that it could give while it is not under control.
    nodes = tuple(replace(node, controlled=False) for node in taken.nodes)
    assert "pending" not in of_node(case(replace(taken, nodes=nodes)), "wn-1")
    assert of_node(case(snapshot(HELD)), "wn-1")["pending"].becomes == 1.0


def test_what_would_take_a_target_from_its_node() -> None:
    found = of_node(case(snapshot(HELD, {("cms", 8): 9})), "wn-1")
    assert found["pending"].becomes == 0.0
    assert found["error"].outcome == "no target"


def test_the_budget_bounds_the_decisions() -> None:
    asked = case(snapshot(HELD))
    assert flips(asked, group_knobs(asked, asked.decided(), "cms"), role("cms"), Budget(0)) == ()


def test_every_limit_can_be_lifted() -> None:
    bounds = {field.name for field in fields(PlanLimits)} - {"multicore_cores", "deadband_hs06"}
    assert {name for name, _ in LIFTED.values()} == bounds
    assert set(LIFTED) <= set(LIMITS)
    assert set(LIFTED) <= set(CHANGES)


def test_a_strategy_for_many_pairs_is_asked_in_the_same_way() -> None:
    asked = case(snapshot(HELD, {("cms", 8): 9}))
    many = replace(asked, config=replace(asked.config, strategy="many"))
    assert of_group(many, "cms")["pending", "neither"].becomes == 0.0
    assert of_node(many, "wn-1")["pending"].outcome == "no target"
