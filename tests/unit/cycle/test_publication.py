"""Publications that are killed, switched off, or fail in part, and the state that they leave."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from typing import Any, Optional

import pytest

from sharectl.control.laws import Control
from sharectl.control.steering import SteeringConfig
from sharectl.cycle.cycle import CycleResult, run_cycle
from sharectl.cycle.publication import Publishing
from sharectl.errors import PartlyPublishedError
from sharectl.model import Disabled, Plan, PlanLimits, Source, Target
from sharectl.plan.diff import EXPIRED
from sharectl.plan.plan import PlanConfig, State
from tests.fakes import (
    NOW,
    FakeAudit,
    FakePool,
    FakePublisher,
    FakeSwitch,
    World,
    running,
    snapshot,
)
from tests.killed import Steps, stopping

CONFIG = PlanConfig({"alice": 1.0, "cms": 1.0}, PlanLimits(), validity_seconds=3060)
NODES = tuple(f"wn-{number}" for number in range(4))
UNEVEN = snapshot([running(node, "alice", 1, 64) for node in NODES], {("cms", 8): 2})
OFF = Disabled("cooling", "ann@cm", NOW - 10)
PERIOD = 1020


@dataclass
class Cycles(World):
    """World of cycles that are a period apart, with two publishers."""

    pool: FakePool = field(default_factory=lambda: FakePool(UNEVEN))
    publishers: list[FakePublisher] = field(
        default_factory=lambda: [FakePublisher(), FakePublisher()]
    )

    def cycle(self, number: int = 0, config: PlanConfig = CONFIG) -> CycleResult:
        return run_cycle(config, self.ports(), NOW + number * PERIOD)

    def looks(self, pending: int) -> None:
        self.pool.looks_like = replace(UNEVEN, pending=snapshot([], {("cms", 8): pending}).pending)

    def stands(self, publisher: int = 0) -> set[str]:
        plans = self.publishers[publisher].plans
        return {target.node for target in plans[-1].targets} if plans else set()

    def told(self) -> list[tuple[str, str, str]]:
        return [
            (change.kind, change.nodes[0], record.reason)
            for record in self.audit.records
            for change in record.changes
        ]


def limited_to(**limits: Any) -> PlanConfig:
    return replace(CONFIG, limits=PlanLimits(**limits))


class KilledError(BaseException):
    """Production code does not catch it, as nothing catches SIGKILL."""


def kill() -> None:
    raise KilledError


def run_killed(world: Cycles, number: int, step: int, config: PlanConfig = CONFIG) -> list[str]:
    """Steps of the cycle that was killed at ``step``, or ran through if it has no more."""
    steps = Steps(step, kill)
    with contextlib.suppress(KilledError):
        run_cycle(config, stopping(world.ports(), steps), NOW + number * PERIOD)
    return steps.seen


def after_one_cycle() -> Cycles:
    world = Cycles()
    world.cycle(0)
    world.looks(4)
    return world


STEPS = run_killed(after_one_cycle(), 1, -1)


def test_the_steps_are_those_of_publishing() -> None:
    assert [step.removeprefix("before ") for step in STEPS if step.startswith("before")] == [
        "state.save",
        "publisher[0].publish",
        "publisher[1].publish",
        "audit.changed",
        "state.save",
        "history.record",
    ]


@pytest.mark.parametrize("step", range(len(STEPS)), ids=STEPS)
def test_after_a_kill_at_any_step_the_next_cycle_makes_good(step: int) -> None:
    world = after_one_cycle()
    run_killed(world, 1, step)
    killed_plans = [plan.sequence for publisher in world.publishers for plan in publisher.plans]
    result = world.cycle(2)
    assert result.problems == ()
    assert world.stands(0) == world.stands(1) == set(NODES)
    assert result.publication.plan is not None
    assert result.publication.plan.sequence > max(killed_plans)
    assert {stood.target.node for stood in world.state.state.standing} == set(NODES)
    assert (world.state.state.unaudited, world.state.state.uncertain_nodes) == (None, 0)
    audited: dict[str, Optional[Target]] = {}
    for record in world.audit.records:
        for change in record.changes:
            # The killed cycle may have told of a change; the next one tells it again, and says so.
            assert audited.get(change.nodes[0]) == change.before or record.recovered
            audited[change.nodes[0]] = change.after
    assert {node for node, target in audited.items() if target} == set(NODES)


def changed_at_once(publisher: FakePublisher) -> int:
    """Most nodes whose target one plan changed."""
    seen = [{target.node for target in plan.targets} for plan in publisher.plans]
    return max(len(one ^ other) for one, other in zip(seen, seen[1:]))


def test_cycles_killed_twice_still_change_no_more_nodes_than_allowed() -> None:
    config = limited_to(max_changed_nodes=1)
    for first in range(len(STEPS)):
        for second in range(len(STEPS) + 1):
            world = Cycles()
            world.cycle(0, config)
            world.looks(3)
            run_killed(world, 1, first, config)
            world.looks(4)
            run_killed(world, 2, second, config)
            world.looks(1)
            world.cycle(3, config)
            most = [changed_at_once(publisher) for publisher in world.publishers]
            assert max(most) <= 1, (first, second)


# ---- the switch


def test_off_stays_off_and_the_pool_is_still_measured() -> None:
    world = after_one_cycle()
    world.switch.said = OFF
    first, second = world.cycle(1), world.cycle(2)
    assert first.publication.disabled == second.publication.disabled == OFF
    assert (first.problems, second.problems) == ((), ())
    assert [len(publisher.plans) for publisher in world.publishers] == [2, 2], "withdrawn once"
    assert world.stands() == set()
    assert first.publication.plan is not None
    assert (first.publication.plan.reason, second.publication.plan) == ("disabled", None)
    assert len(world.history.records) == 3
    assert world.told()[-2:] == [("dropped", node, "disabled") for node in NODES[:2]]
    assert world.audit.records[-1].text == "cooling"
    world.switch.said = None
    world.cycle(3)
    assert world.stands() == set(NODES)
    sequences = [plan.sequence for plan in world.publishers[0].plans]
    assert sequences == sorted(set(sequences))


def test_a_transport_that_fails_is_withdrawn_by_each_later_cycle_until_it_takes_it() -> None:
    world = after_one_cycle()
    world.switch.said = OFF
    world.publishers[0].broken = "disk full"
    # A withdrawal needs no complete look.
    silent = Source("collector", 20.0, "no answer within 20 s")
    world.pool.looks_like = replace(UNEVEN, sources=(silent,))
    assert "disk full" in world.cycle(1).problems
    world.pool.looks_like = UNEVEN
    assert (world.stands(0), world.stands(1)) == (set(NODES[:2]), set())
    assert world.cycle(2).problems == ("disk full",)
    world.publishers[0].broken = None
    assert world.cycle(3).problems == ()
    assert world.stands(0) == set()
    assert world.cycle(4).publication.plan is None


@pytest.mark.parametrize("stuck", [None, "cannot be removed"])
def test_when_its_time_is_over_a_cycle_publishes_again(stuck: Optional[str]) -> None:
    world = after_one_cycle()
    until = replace(OFF, until=NOW + PERIOD + 1)
    world.switch = FakeSwitch(until, stuck=stuck)
    assert world.cycle(1).publication.disabled == until
    result = world.cycle(2)
    assert result.publication.disabled is None
    assert result.problems == ((stuck,) if stuck else ())
    assert [on for on, _ in world.audit.switches] == ([] if stuck else [True])
    assert world.stands() == set(NODES)


@dataclass
class SwitchedAt:
    """A switch that an operator throws while the cycle is about to take one of its steps."""

    world: Cycles
    at: int
    waits: bool = False
    """Wait for the cycle that publishes just then, as an operator does for some seconds."""
    steps: Steps = field(init=False)

    def __post_init__(self) -> None:
        self.steps = Steps(self.at, self.throw)

    def throw(self) -> None:
        """As `sharectl disable` without the lock: the switch, then a withdrawal."""
        if self.waits and self.world.switch.is_held:
            self.world.switch.waiting.append(self.throw)
            return
        self.world.switch.said = OFF
        Publishing(CONFIG, self.world.ports(), NOW + PERIOD).withdraw_unlocked(OFF)

    def cycle(self) -> None:
        """Run the cycle."""
        run_cycle(CONFIG, stopping(self.world.ports(), self.steps), NOW + PERIOD)


@pytest.mark.parametrize(("waits", "ahead"), [(False, 0), (True, 0), (True, PERIOD + 200)])
@pytest.mark.parametrize("step", range(len(STEPS)), ids=STEPS)
def test_whenever_it_is_switched_off_beside_a_cycle_no_target_is_left(
    step: int, ahead: int, *, waits: bool
) -> None:
    """Also where many cycles have run within seconds, and the sequence is ahead of the time."""
    world = after_one_cycle()
    world.state.state = replace(world.state.state, sequence=NOW + ahead)
    SwitchedAt(world, step, waits=waits).cycle()
    if not waits:
        world.cycle(2)
    for publisher in world.publishers:
        has_targets = [bool(plan.targets) for plan in publisher.plans]
        assert not has_targets[-1]
        # One whose publication begins just then may write targets once more.
        if waits or not STEPS[step].startswith("before publisher"):
            assert has_targets == sorted(has_targets, reverse=True), "none after the withdrawal"
        sequences = [plan.sequence for plan in publisher.plans]
        assert not waits or sequences == sorted(sequences)


class OneOfTwo(FakePublisher):
    """Reaches one of its two collectors."""

    def publish(self, plan: Plan) -> str:
        super().publish(plan)
        raise PartlyPublishedError("cm-1", "cm-2: no connection")


def test_a_plan_that_one_of_two_collectors_took_is_out_and_a_withdrawal_is_not_over() -> None:
    world = Cycles(publishers=[OneOfTwo()])
    result = world.cycle(0)
    assert result.problems == ("cm-2: no connection",)
    assert result.publication.places == ("cm-1",)
    assert {node for _, node, _ in world.told()} == world.stands() != set()
    assert world.state.state.uncertain_nodes == 0
    world.switch = FakeSwitch(OFF)
    for number in (1, 2):
        world.cycle(number)
        assert world.stands() == set()
        assert not world.state.state.withdrawn, "targets may still stand in the other one"
    assert len(world.publishers[0].plans) == 3, "each cycle withdraws again"


# ---- audit and state


def test_an_audit_that_cannot_be_written_stops_nothing_and_is_made_up_for() -> None:
    world = Cycles(audit=FakeAudit(broken="ledger full"))
    assert world.cycle(0).problems == ("ledger full",)
    assert world.stands() == set(NODES[:2])
    world.audit.broken = None
    world.looks(4)
    assert world.cycle(1).problems == ()
    assert {node for _, node, _ in world.told()} == set(NODES)
    assert [record.recovered for record in world.audit.records] == [True]


def test_the_audit_is_told_of_changes_only_and_of_targets_that_ran_out() -> None:
    world = Cycles()
    world.cycle(0)
    world.cycle(1)
    added = [("added", node, "targets") for node in NODES[:2]]
    assert world.told() == added
    since = {stood.since for stood in world.state.state.standing}
    assert since == {NOW}, "a target that is as it was keeps its time"
    world.cycle(5)
    assert world.told() == [*added, *(("dropped", node, EXPIRED) for node in NODES[:2]), *added]


def test_a_plan_that_no_publisher_took_counts_as_one_that_may_be_out() -> None:
    world = Cycles(publishers=[FakePublisher(broken="no room")])
    config = limited_to(max_changed_nodes=2)
    world.cycle(0, config)
    assert (world.state.state.uncertain_nodes, world.state.state.unaudited) == (2, ())
    assert world.told() == []
    world.publishers[0].broken = None
    world.looks(4)
    world.cycle(1, config)
    assert len(world.stands()) == 2
    world.cycle(2, config)
    assert len(world.stands()) == 4


# ---- places that were left


def test_a_place_that_was_left_is_emptied_before_targets_are_published() -> None:
    plans: list[Plan] = []
    world = Cycles(publishers=[FakePublisher(plans=plans)])
    world.former.left.append(FakePublisher(plans=plans))
    world.cycle()
    assert [bool(plan.targets) for plan in plans] == [False, True]
    assert [plan.sequence for plan in world.former.remembered] == [plans[0].sequence]


def test_a_valid_plan_of_others_stays_in_a_place_that_was_left() -> None:
    world = Cycles()
    others = FakePublisher(writer="cm-9:/elsewhere")
    target = Target("wn-9", "alice", 8, "cms", 8)
    others.publish(Plan(NOW, NOW, NOW + 3060, ("alice", "cms"), (target,), "targets"))
    world.former.left.append(others)
    world.cycle()
    assert len(others.plans) == 1


def test_targets_are_not_withdrawn_while_a_place_that_was_left_has_them() -> None:
    world = Cycles()
    world.former.left.append(FakePublisher(broken="the old collector does not answer"))
    world.switch.said = OFF
    world.cycle()
    assert not world.state.state.withdrawn
    world.former.left[0].broken = None
    world.cycle(1)
    assert world.state.state.withdrawn


# ---- a clock that was ahead

AHEAD = replace(State(), sequence=NOW + 2 * 86400)


def after_a_clock_ahead(pending: int = 2) -> Cycles:
    """World after a cycle whose clock was two days ahead."""
    world = Cycles()
    world.looks(pending)
    run_cycle(CONFIG, world.ports(), AHEAD.sequence)
    assert world.state.state.sequence == AHEAD.sequence
    return world


def test_after_a_cycle_with_a_clock_ahead_cycles_are_of_now_again() -> None:
    world = after_a_clock_ahead()
    # A withdrawal beside a cycle is of now too.
    beside = Publishing(CONFIG, after_a_clock_ahead().ports(), NOW + PERIOD).withdraw_unlocked(OFF)
    assert (beside.plan and beside.plan.sequence, len(beside.errors)) == (NOW + PERIOD, 1)
    first, second = world.cycle(1), world.cycle(2)
    assert (len(first.problems), second.problems) == (1, ())
    sequences = [plan.sequence for plan in world.publishers[0].plans]
    assert sequences == [AHEAD.sequence, NOW + PERIOD, NOW + 2 * PERIOD]
    assert {stood.since for stood in world.state.state.standing} == {NOW + PERIOD}
    added = [("added", "targets")] * 2
    kinds = [(kind, reason) for kind, _, reason in world.told()]
    assert kinds == [*added, *[("dropped", EXPIRED)] * 2, *added]


@pytest.mark.parametrize("limit", [1, 2])
def test_nodes_of_a_plan_from_the_future_count_as_changed(limit: int) -> None:
    """They may have the same wrong clock, and act on it."""
    world = after_a_clock_ahead(4)
    assert world.stands() == set(NODES)
    config = limited_to(max_changed_nodes=limit)
    world.cycle(1, config)
    assert world.stands() == set()
    world.cycle(2, config)
    assert len(world.stands()) == limit


# ---- mode: observe

OBSERVED = replace(CONFIG, observes=True)
EWMA = replace(OBSERVED, steering=SteeringConfig(Control("ewma")))


def test_observing_takes_away_the_targets_of_before_once_and_plans_on_from_them() -> None:
    world = after_one_cycle()
    since = {stood.target: stood.since for stood in world.state.state.standing}
    world.cycle(1, OBSERVED)
    assert (world.stands(0), world.stands(1)) == (set(), set())
    assert world.told()[-2:] == [("dropped", node, "observe") for node in NODES[:2]]
    plans = [len(publisher.plans) for publisher in world.publishers]
    world.cycle(2, OBSERVED)
    assert [len(publisher.plans) for publisher in world.publishers] == plans
    stands = {stood.target: stood.since for stood in world.state.state.standing}
    assert len(stands) == 4
    assert since.items() < stands.items(), "young targets are as young as if they stood"


def test_targets_that_could_not_be_taken_away_are_tried_again_while_observing() -> None:
    world = after_one_cycle()
    for publisher in world.publishers:
        publisher.broken = "no room"
    assert world.cycle(1, OBSERVED).problems == ("no room",)
    for publisher in world.publishers:
        publisher.broken = None
    world.cycle(2, OBSERVED)
    assert (world.stands(0), world.state.state.withdrawn) == (set(), True)
    assert world.told()[-2:] == [("dropped", node, "observe") for node in NODES[:2]]


def test_steering_begins_from_nothing_published_and_keeps_what_the_law_remembers() -> None:
    world = Cycles()
    for number in range(2):
        world.cycle(number, replace(EWMA, limits=PlanLimits(max_changed_nodes=1)))
    remembered = world.state.state.controllers
    assert len(world.state.state.standing) == 2
    world.cycle(2, replace(EWMA, observes=False, limits=PlanLimits(max_changed_nodes=1)))
    assert len(world.stands()) == 1, "two targets that no node had are not one change"
    assert world.told() == [("added", *world.stands(), "targets")]
    state = world.state.state
    assert not state.observed
    assert remembered.keys() == state.controllers.keys() == {"alice", "cms"}
    for group, numbers in remembered.items():
        assert numbers["stepped_at_seconds"] == NOW + PERIOD
        assert state.controllers[group]["stepped_at_seconds"] == NOW + 2 * PERIOD
        assert state.controllers[group].keys() == numbers.keys()
