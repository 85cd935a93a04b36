from __future__ import annotations

from dataclasses import replace

from sharectl.control.laws import Control, Pid
from sharectl.control.steering import SteeringConfig
from sharectl.explain.codes import CHANGES
from sharectl.explain.what_if import SWITCHES, Budget, Case, Flip, cycle_flips
from sharectl.model import PlanLimits, Snapshot
from sharectl.plan.plan import PlanConfig, State
from tests.fakes import NOW, running, snapshot

PLEDGES = {"alice": 100.0, "cms": 100.0}
HELD = [
    running("wn-1", "alice", 1, 32),
    running("wn-2", "alice", 1, 32),
    running("wn-3", "alice", 1, 32),
    running("wn-3", "cms", 1, 16),
]
WAIT = {("cms", 8): 9}


def case(taken: Snapshot, strategy: str = "pair", **limits: object) -> Case:
    bounds = PlanLimits(**limits)  # type: ignore[arg-type]
    return Case(PlanConfig(PLEDGES, bounds, 3060, strategy=strategy), State(), taken, NOW)


def found(asked: Case, decisions: int = 300) -> tuple[Flip, ...]:
    return cycle_flips(asked, asked.decided(), Budget(decisions))


def of(asked: Case, code: str) -> list[tuple[str, float | None, float | None, str]]:
    return [(f.what, f.value, f.becomes, f.outcome) for f in found(asked) if f.code == code]


def test_a_plan_without_targets_for_want_of_jobs_needs_one_of_them() -> None:
    asked = case(snapshot(HELD))
    assert not asked.decided().plan.targets
    assert of(asked, "pending") == [("8-core jobs of cms that wait", 0.0, 1.0, "1 target")]


def test_a_plan_without_targets_within_the_deadband_tells_how_narrow_it_must_be() -> None:
    asked = case(snapshot(HELD, WAIT), deadband_hs06=2000.0)
    ((what, value, becomes, outcome),) = of(asked, "deadband")
    # alice uses 960 and is due 560.
    assert (what, value, outcome) == ("control.deadband_hs06", 2000.0, "3 targets")
    assert becomes is not None
    assert 390 <= becomes < 400


def test_nodes_that_are_not_under_control_are_told_all_together_and_one() -> None:
    asked = case(snapshot(HELD, WAIT, uncontrolled=["wn-1", "wn-2", "wn-3"]))
    assert of(asked, "controlled") == [
        ("wn-1 is under control (nodes.controlled)", None, None, "1 target"),
        ("all nodes are under control (nodes.controlled)", None, None, "3 targets"),
    ]


def test_nodes_that_are_reserved_or_draining_are_told_too() -> None:
    taken = snapshot(HELD, WAIT)
    nodes = taken.nodes
    reserved = replace(taken, nodes=(replace(nodes[0], reserved=True), *nodes[1:]))
    assert of(case(reserved), "not-reserved") == [
        ("wn-1 is not reserved (nodes.reserved)", None, None, "3 targets")
    ]
    draining = replace(taken, nodes=tuple(replace(node, draining=True) for node in nodes))
    told = of(case(draining, "many"), "not-draining")
    assert [(what, outcome) for what, _, _, outcome in told] == [
        ("wn-1 is not being drained", "1 target"),
        ("no node is being drained", "3 targets"),
    ]


def test_a_limit_is_told_by_what_it_would_have_to_be_and_by_what_there_is_without_it() -> None:
    assert of(case(snapshot(HELD, WAIT), max_nodes=1), "max-nodes") == [
        ("control.max_nodes", 1.0, 2.0, "2 targets"),
        ("control.max_nodes", 1.0, None, "3 targets"),
    ]
    assert of(case(snapshot(HELD, WAIT), max_changed_nodes=2), "max-changed-nodes") == [
        ("control.max_changed_nodes", 2.0, 3.0, "3 targets")
    ]
    ((what, value, becomes, outcome), whole) = of(
        case(snapshot(HELD, WAIT), max_target_ratio=0.4), "max-target-share"
    )
    assert (what, value, outcome) == ("control.max_target_share", 0.4, "2 targets")
    assert becomes is not None
    assert 0.66 < becomes < 0.68
    assert whole == ("control.max_target_share", 0.4, None, "3 targets")


def test_a_limit_that_does_not_act_is_not_told() -> None:
    codes = {
        flip.code for flip in found(case(snapshot(HELD, WAIT), max_nodes=3, max_target_ratio=1.0))
    }
    assert codes == {"pending", "deadband", "error"}


def test_two_limits_that_are_equally_tight_are_told_together() -> None:
    asked = case(snapshot(HELD, WAIT), max_nodes=1, max_changed_nodes=1)
    assert of(asked, "max-nodes") == [
        (
            "control.max_nodes is lifted and control.max_changed_nodes is lifted",
            None,
            None,
            "3 targets",
        )
    ]


def test_what_is_missing_together_is_told_together_and_nothing_that_need_not_be() -> None:
    asked = case(snapshot(HELD, uncontrolled=["wn-1", "wn-2", "wn-3"]), max_nodes=2)
    (flip,) = found(asked)
    assert (
        flip.what
        == "all nodes are under control (nodes.controlled) and 1000 8-core jobs of cms wait"
    )
    assert (flip.value, flip.outcome) == (None, "some targets")


def test_the_limit_of_outputs_is_told_as_a_number() -> None:
    law = Control("pid", pid=Pid(gain=1.0, max_output_hs06=50.0))
    asked = case(snapshot(HELD, WAIT))
    asked = replace(asked, config=replace(asked.config, steering=SteeringConfig(law)))
    assert not asked.decided().plan.targets
    told = of(asked, "output-limit")
    assert (told[0][0], told[0][1], told[0][3]) == ("control.pid.max_output_hs06", 50.0, "1 target")
    assert told[0][2] is not None
    # One block of 8 cores is worth 80.
    assert 80 <= told[0][2] < 90
    assert told[-1][2] is None


def test_what_would_drop_some_targets_is_told() -> None:
    asked = case(snapshot(HELD, WAIT))
    assert ("8-core jobs of cms that wait", 9.0, 2.0, "2 targets") in of(asked, "pending")
    assert {"deadband", "error"} <= {flip.code for flip in found(asked)}


def test_each_change_that_is_told_comes_to_what_is_told_of_it() -> None:
    """What is told of a limit is what a plan with that limit has."""
    told = [
        flip for flip in found(case(snapshot(HELD, WAIT), max_nodes=1)) if flip.code == "max-nodes"
    ]
    for flip in told:
        most = None if flip.becomes is None else int(flip.becomes)
        again = case(snapshot(HELD, WAIT), max_nodes=most).decided()
        assert flip.outcome == f"{len(again.plan.targets)} targets"


def test_strategy_many_is_asked_in_the_same_way() -> None:
    asked = case(snapshot(HELD, WAIT), "many", max_nodes=1)
    assert of(asked, "max-nodes")[0] == ("control.max_nodes", 1.0, 2.0, "2 targets")
    assert of(case(snapshot(HELD), "many"), "pending")[0][2] == 1.0


def test_the_budget_bounds_the_decisions() -> None:
    asked, budget = case(snapshot(HELD, WAIT), max_nodes=1), Budget(3)
    assert len(cycle_flips(asked, asked.decided(), budget)) <= 2
    assert not budget.enough


def test_every_change_has_its_sentence() -> None:
    assert set(SWITCHES) <= set(CHANGES)
    assert {"answering", "enabled", "output-limit"} <= set(CHANGES)
