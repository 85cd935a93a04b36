"""What reaches the nodes, and what is left when it does not: switched off, killed, or with a publisher that fails."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Optional

import pytest

from sharectl.cycle.cycle import Circumstances, CycleResult, Ports, run_cycle
from sharectl.cycle.publication import Publishing
from sharectl.errors import StateError
from sharectl.model import Disabled, Plan, PlanLimits, Source, Target
from sharectl.plan.diff import EXPIRED
from sharectl.plan.plan import PlanConfig, State
from tests.fakes import (
    NOW,
    FakeAudit,
    FakeHistory,
    FakeLeftPlaces,
    FakePool,
    FakePublisher,
    FakeStateStore,
    FakeSwitch,
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
class World:
    """Everything outside of a cycle; it outlives one that is killed."""

    publishers: list[FakePublisher] = field(
        default_factory=lambda: [FakePublisher(), FakePublisher()]
    )
    state: FakeStateStore = field(default_factory=FakeStateStore)
    switch: FakeSwitch = field(default_factory=FakeSwitch)
    audit: FakeAudit = field(default_factory=FakeAudit)
    left: FakeLeftPlaces = field(default_factory=FakeLeftPlaces)
    history: FakeHistory = field(default_factory=FakeHistory)
    pool: FakePool = field(default_factory=lambda: FakePool(UNEVEN))

    def ports(self) -> Ports:
        return Ports(
            publishers=self.publishers,
            state=self.state,
            switch=self.switch,
            audit=self.audit,
            left=self.left,
            pool=self.pool,
            history=self.history,
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
            (change.kind, change.node, record.reason)
            for record in self.audit.records
            for change in record.changes
        ]


def limited_to(**limits: Any) -> PlanConfig:
    return replace(CONFIG, limits=PlanLimits(**limits))


class KilledError(BaseException):
    """Production code does not catch it, as nothing catches SIGKILL."""


def kill() -> None:
    raise KilledError


def run_killed(world: World, number: int, step: int, config: PlanConfig = CONFIG) -> list[str]:
    """Steps of the cycle that was killed at ``step``, or ran through if it has no more."""
    steps = Steps(step, kill)
    with contextlib.suppress(KilledError):
        run_cycle(config, stopping(world.ports(), steps), NOW + number * PERIOD)
    return steps.seen


def steps_of(world: Callable[[], World]) -> list[str]:
    return run_killed(world(), 1, -1)


def after_one_cycle() -> World:
    world = World()
    world.cycle(0)
    world.looks(4)
    return world


STEPS = steps_of(after_one_cycle)


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


@pytest.mark.parametrize("step", range(len(STEPS)), ids=STEPS)
def test_after_a_kill_at_any_step_the_audit_knows_every_change(step: int) -> None:
    world = after_one_cycle()
    run_killed(world, 1, step)
    world.cycle(2)
    replayed: dict[str, Optional[Target]] = {}
    for record in world.audit.records:
        for change in record.changes:
            # A change that was written down by the cycle that was killed may come a second time,
            # and says so.
            assert replayed.get(change.node) == change.before or record.recovered
            replayed[change.node] = change.after
    assert {node for node, target in replayed.items() if target} == set(NODES)


@pytest.mark.parametrize("step", range(len(STEPS)), ids=STEPS)
def test_after_a_kill_at_any_step_no_more_nodes_change_than_allowed(step: int) -> None:
    config = limited_to(max_changed_nodes=1)
    world = World()
    world.cycle(0, config)
    world.looks(4)
    before = [list(publisher.plans) for publisher in world.publishers]
    run_killed(world, 1, step, config)
    world.cycle(2, config)
    for publisher, plans in zip(world.publishers, before):
        seen = [
            {target.node for target in plan.targets} for plan in publisher.plans[len(plans) - 1 :]
        ]
        assert all(len(one ^ other) <= 1 for one, other in zip(seen, seen[1:])), seen


def test_a_cycle_killed_twice_still_changes_no_more_nodes_than_allowed() -> None:
    config = limited_to(max_changed_nodes=2)
    for first in range(len(STEPS)):
        for second in range(len(STEPS)):
            world = World()
            world.cycle(0, config)
            world.looks(3)
            run_killed(world, 1, first, config)
            world.looks(4)
            run_killed(world, 2, second, config)
            world.looks(1)
            world.cycle(3, config)
            for publisher in world.publishers:
                seen = [{target.node for target in plan.targets} for plan in publisher.plans]
                assert all(len(one ^ other) <= 2 for one, other in zip(seen, seen[1:])), (
                    first,
                    second,
                    seen,
                )


def test_what_is_off_stays_off_and_is_still_measured() -> None:
    world = after_one_cycle()
    world.switch.said = OFF
    first, second = world.cycle(1), world.cycle(2)
    assert (
        first.publication.disabled,
        first.problems,
        second.publication.disabled,
        second.problems,
    ) == (OFF, (), OFF, ())
    assert [len(publisher.plans) for publisher in world.publishers] == [2, 2], "withdrawn once"
    assert world.stands() == set()
    assert (first.publication.plan and first.publication.plan.reason, second.publication.plan) == (
        "disabled",
        None,
    )
    assert len(world.history.records) == 3
    assert [change for change in world.told() if change[0] == "removed"] == [
        ("removed", node, "disabled") for node in NODES[:2]
    ]
    assert world.audit.records[-1].text == "cooling"
    world.switch.said = None
    world.cycle(3)
    assert world.stands() == set(NODES)


def test_a_transport_that_fails_is_withdrawn_by_each_later_cycle_until_it_took_it() -> None:
    world = after_one_cycle()
    world.switch.said = OFF
    world.publishers[0].broken = "disk full"
    assert world.cycle(1).problems == ("disk full",)
    assert (world.stands(0), world.stands(1)) == (set(NODES[:2]), set())
    assert world.cycle(2).problems == ("disk full",)
    world.publishers[0].broken = None
    assert world.cycle(3).problems == ()
    assert world.stands(0) == set()
    assert world.cycle(4).publication.plan is None


def test_a_withdrawal_needs_no_complete_look() -> None:
    world = after_one_cycle()
    world.pool.looks_like = replace(
        UNEVEN, sources=(Source("collector", 20.0, "no answer within 20 s"),)
    )
    world.switch.said = OFF
    world.cycle(1)
    assert world.stands() == set()


def test_when_the_time_is_over_the_cycle_enables_itself_and_says_so() -> None:
    world = after_one_cycle()
    world.switch.said = replace(OFF, until=NOW + PERIOD + 1)
    assert world.cycle(1).publication.disabled is not None
    result = world.cycle(2)
    assert (result.publication.disabled, result.publication.enabled_again) == (
        None,
        replace(OFF, until=NOW + PERIOD + 1),
    )
    assert world.stands() == set(NODES)
    assert [on for on, _ in world.audit.switches] == [True]


def test_a_switch_that_cannot_be_removed_ends_with_its_time_all_the_same() -> None:
    world = after_one_cycle()
    world.switch = FakeSwitch(replace(OFF, until=NOW + 1), stuck="cannot be removed")
    result = world.cycle(1)
    assert (result.publication.disabled, result.problems) == (None, ("cannot be removed",))
    assert world.stands() == set(NODES)


@dataclass
class SwitchedAt:
    """A switch that an operator throws while the cycle is about to take one of its steps."""

    world: World
    at: int
    waits: bool = False
    """Whether he waits for whoever publishes just then, as he does for some seconds."""
    steps: Steps = field(init=False)

    def __post_init__(self) -> None:
        self.steps = Steps(self.at, self.throw)

    def throw(self) -> None:
        """As `sharectl disable` does that cannot get the lock: the switch, then a withdrawal beside the cycle."""
        if self.waits and self.world.switch.is_held:
            self.world.switch.waiting.append(self.throw)
            return
        self.world.switch.said = OFF
        Publishing(CONFIG, self.world.ports(), NOW + PERIOD, []).withdraw_unlocked(OFF)


@pytest.mark.parametrize("step", range(len(STEPS)), ids=STEPS)
def test_whenever_it_is_switched_off_beside_a_cycle_no_target_is_left(step: int) -> None:
    world = after_one_cycle()
    run_cycle(CONFIG, stopping(world.ports(), SwitchedAt(world, step).steps), NOW + PERIOD)
    assert (world.stands(0), world.stands(1)) == (set(), set())
    world.cycle(2)
    assert (world.stands(0), world.stands(1)) == (set(), set())


@pytest.mark.parametrize("ahead", [0, PERIOD + 200])
@pytest.mark.parametrize("step", range(len(STEPS)), ids=STEPS)
def test_whenever_it_is_switched_off_no_sequence_goes_back(step: int, ahead: int) -> None:
    """Also where many cycles have run within seconds, and the sequence is ahead of the time."""
    world = after_one_cycle()
    world.state.state = replace(world.state.state, sequence=NOW + ahead)
    run_cycle(
        CONFIG, stopping(world.ports(), SwitchedAt(world, step, waits=True).steps), NOW + PERIOD
    )
    for publisher in world.publishers:
        sequences = [plan.sequence for plan in publisher.plans]
        assert sequences == sorted(sequences)
        assert publisher.plans[-1].targets == ()


def test_a_cycle_that_is_held_up_publishes_no_target_after_the_withdrawal() -> None:
    """Whoever disables has not waited for it: what it publishes next has no target."""
    world = after_one_cycle()
    first = STEPS.index("after publisher[0].publish")
    run_cycle(CONFIG, stopping(world.ports(), SwitchedAt(world, first).steps), NOW + PERIOD)
    assert [len(plan.targets) for plan in world.publishers[1].plans] == [2, 0, 0]
    sequences = [plan.sequence for plan in world.publishers[1].plans]
    assert sequences == sorted(sequences)


def test_a_dry_run_shows_what_would_be_published_and_that_it_is_off() -> None:
    world = after_one_cycle()
    world.switch.said = OFF
    result = run_cycle(CONFIG, world.ports(), NOW + PERIOD, Circumstances(dry_run=True))
    assert result.publication.disabled == OFF
    assert result.publication.plan is not None
    assert len(result.publication.plan.targets) == 4
    assert [len(publisher.plans) for publisher in world.publishers] == [1, 1]


def test_an_audit_that_cannot_be_written_stops_nothing_and_is_made_up_for() -> None:
    world = World(audit=FakeAudit(broken="ledger full"))
    assert world.cycle(0).problems == ("ledger full",)
    assert world.stands() == set(NODES[:2])
    world.audit.broken = None
    world.looks(4)
    assert world.cycle(1).problems == ()
    assert {change[1] for change in world.told()} == set(NODES)
    assert [record.recovered for record in world.audit.records] == [True]


def test_what_ran_out_is_told_as_removed() -> None:
    world = World()
    world.cycle(0)
    world.cycle(4)
    assert world.told() == [
        *(("added", node, "targets") for node in NODES[:2]),
        *(("removed", node, EXPIRED) for node in NODES[:2]),
        *(("added", node, "targets") for node in NODES[:2]),
    ]


def test_nothing_is_told_when_nothing_changes() -> None:
    world = World()
    world.cycle(0)
    world.cycle(1)
    assert len(world.audit.records) == 1
    since = {stood.since for stood in world.state.state.standing}
    assert since == {NOW}, "a target that is as it was keeps its time"


def test_when_no_publisher_takes_a_plan_it_counts_as_one_that_may_be_out() -> None:
    world = World(publishers=[FakePublisher(broken="no room")])
    config = limited_to(max_changed_nodes=2)
    world.cycle(0, config)
    assert world.state.state.uncertain_nodes == 2
    assert world.state.state.unaudited == ()
    assert world.told() == []
    world.publishers[0].broken = None
    world.looks(4)
    world.cycle(1, config)
    assert len(world.stands()) == 2
    world.cycle(2, config)
    assert len(world.stands()) == 4


@dataclass
class FullDisk:
    """A state store that loads, and never saves."""

    def load(self) -> State:
        """Nothing was ever saved."""
        return State()

    def save(self, state: State) -> None:
        """Fail."""
        raise StateError(f"no room for {state.sequence}"[:11])


def test_a_state_that_cannot_be_saved_does_not_stop_targets_and_is_said_once() -> None:
    world = World(state=FullDisk())  # type: ignore[arg-type]
    result = world.cycle(0)
    assert world.stands() == set(NODES[:2])
    assert result.problems == ("no room for",)


def sequences(plans: Sequence[Plan]) -> list[int]:
    return [plan.sequence for plan in plans]


def test_sequences_go_up_through_off_and_on() -> None:
    world = after_one_cycle()
    for number, said in enumerate((OFF, OFF, None, OFF, None), start=1):
        world.switch.said = said
        world.cycle(number)
    seen = sequences(world.publishers[0].plans)
    assert seen == sorted(set(seen))


def test_a_place_that_was_left_is_emptied_before_targets_are_published() -> None:
    world = World()
    world.left.left.append(FakePublisher())
    world.cycle()
    (emptied,) = world.left.left[0].plans
    assert emptied.targets == ()
    assert world.stands()
    assert [plan.sequence for plan in world.left.remembered] == [emptied.sequence]


def test_targets_are_not_withdrawn_while_a_place_that_was_left_has_them() -> None:
    world = World()
    world.left.left.append(FakePublisher(broken="the old collector does not answer"))
    world.switch.said = OFF
    world.cycle()
    assert not world.state.state.withdrawn
    world.left.left[0].broken = None
    world.cycle(1)
    assert world.state.state.withdrawn
