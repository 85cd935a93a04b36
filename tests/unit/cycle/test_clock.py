"""Cycles after one whose clock was ahead."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sharectl.cycle.cycle import CycleResult, run_cycle
from sharectl.cycle.publication import MAX_AHEAD_SECONDS, Publishing, of_now
from sharectl.model import Plan
from sharectl.plan.plan import State
from tests.fakes import NOW
from tests.unit.cycle.test_publication import CONFIG, NODES, OFF, PERIOD, World, limited_to

AHEAD_SECONDS = 2 * 86400


def cycle(world: World, seconds: int) -> CycleResult:
    return run_cycle(CONFIG, world.ports(), NOW + seconds)


def plan_of(result: CycleResult) -> Plan:
    assert result.publication.plan is not None
    return result.publication.plan


def test_after_one_cycle_with_a_clock_two_days_ahead_cycles_are_of_now_again() -> None:
    world = World()
    cycle(world, 0)
    assert plan_of(cycle(world, AHEAD_SECONDS)).sequence == NOW + AHEAD_SECONDS
    first = cycle(world, PERIOD)
    assert (plan_of(first).sequence, plan_of(first).generated_at) == (NOW + PERIOD, NOW + PERIOD)
    (problem,) = first.problems
    assert f"{AHEAD_SECONDS - PERIOD} s from now" in problem
    assert {stood.since for stood in world.state.state.standing} == {NOW + PERIOD}
    second = cycle(world, 2 * PERIOD)
    assert (plan_of(second).sequence, second.problems) == (NOW + 2 * PERIOD, ())
    assert {stood.since for stood in world.state.state.standing} == {NOW + PERIOD}


def test_sequences_of_cycles_within_seconds_go_on() -> None:
    state = State(sequence=NOW + MAX_AHEAD_SECONDS)
    assert of_now(state, NOW) == (state, None)


@pytest.mark.parametrize("limit", [1, 2])
def test_nodes_of_the_plan_from_the_future_count_as_changed(limit: int) -> None:
    """They may have the same wrong clock, and act on it."""
    world = World()
    world.looks(4)
    cycle(world, AHEAD_SECONDS)
    assert world.stands() == set(NODES)
    result = run_cycle(limited_to(max_changed_nodes=limit), world.ports(), NOW + PERIOD)
    assert plan_of(result).targets == ()
    result = run_cycle(limited_to(max_changed_nodes=limit), world.ports(), NOW + 2 * PERIOD)
    assert len(plan_of(result).targets) == limit


def test_the_audit_is_told_that_targets_from_the_future_are_gone() -> None:
    world = World()
    cycle(world, AHEAD_SECONDS)
    cycle(world, PERIOD)
    told = world.told()
    assert [(kind, why) for kind, _, why in told] == [
        *[("added", "targets")] * 2,
        *[("removed", "expired")] * 2,
        *[("added", "targets")] * 2,
    ]


def test_whoever_disables_beside_a_cycle_is_of_now_too() -> None:
    world = World()
    cycle(world, AHEAD_SECONDS)
    problems: list[str] = []
    done = Publishing(CONFIG, world.ports(), NOW + PERIOD, problems).withdraw_unlocked(OFF)
    assert done.plan is not None
    assert done.plan.sequence == NOW + PERIOD
    assert len(problems) == 1


def test_controllers_and_what_the_pool_had_are_kept() -> None:
    state = State(
        sequence=NOW + AHEAD_SECONDS,
        nodes=3,
        schedds=2,
        withdrawn=True,
        controllers={"cms": {"gain": 1.0}},
    )
    used, problem = of_now(state, NOW)
    assert problem is not None
    assert used == replace(state, sequence=0, unaudited=())
