"""Laws of control. Each is of every control law unless it says why one is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from math import isclose, isfinite
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sharectl.control.laws import (
    AVERAGE,
    GAP_SECONDS,
    INTEGRAL,
    LAWS,
    MOST_HS06,
    SLOPE,
    WEIGHT_BEFORE,
    Control,
    Ewma,
    Move,
    Pid,
    Reading,
    step,
)

MOST = 1000.0

powers = st.floats(-2000, 2000)
intervals = st.floats(1, 20000)
counted = st.floats(1, GAP_SECONDS)
pids = st.builds(
    Pid,
    gain=st.floats(0.1, 10),
    integral_seconds=st.just(0.0) | st.floats(60, 1e6),
    derivative_seconds=st.floats(0, 5000),
)
averages = st.builds(Ewma, st.floats(1, 1e6))
controls = st.builds(Control, st.sampled_from(tuple(LAWS)), averages, pids)
readings = st.builds(Reading, powers, powers, st.sampled_from((0.0, 50.0)), st.just(MOST))
Past = Sequence[tuple[Reading, float]]
pasts = st.lists(st.tuples(readings, intervals), max_size=8)
lived = st.lists(st.tuples(readings, intervals), min_size=1, max_size=8)


def after(control: Control, past: Past, state: Mapping[str, float] = {}) -> Move:
    """Last move of the controller after all that it was given."""
    return reduce(lambda moved, one: step(control, moved.state, *one), past, Move(state, 0.0))


def same(one: float, other: float) -> bool:
    return isclose(one, other, rel_tol=1e-9, abs_tol=1e-6)


@given(controls, pasts, readings, intervals)
def test_the_output_is_bounded(control: Control, past: Past, now: Reading, dt: float) -> None:
    """0 or beyond the deadband; at most the largest error so far, for `pid` the output limit."""
    output = step(control, after(control, past).state, now, dt).output_hs06
    most = max(abs(reading.error_hs06) for reading in [*(one for one, _ in past), now])
    if control.law == "pid":
        most = MOST
    assert abs(output) <= most * (1 + 1e-12)
    assert output == 0 or abs(output) > now.deadband_hs06


# An average of errors of 50 is 50.00000000000001 at times.
ERRORS_WITHIN = st.floats(-50 * (1 - 1e-12), 50 * (1 - 1e-12))


@given(controls, st.lists(st.tuples(powers, intervals), min_size=1, max_size=9), ERRORS_WITHIN)
def test_nothing_is_moved_at_the_setpoint_or_for_errors_inside_the_deadband(
    control: Control, seen: list[tuple[float, float]], error: float
) -> None:
    """Inside the deadband whatever the power does; at the setpoint nothing builds up either."""
    state: Mapping[str, float] = {}
    for power, dt in seen:
        move = step(control, state, Reading(error, power, 50.0, MOST), dt)
        assert move.output_hs06 == 0
        state = move.state
    past = [(Reading(0.0, seen[0][0], 0.0, MOST), dt) for _, dt in seen]
    first, last = after(control, past[:1]), after(control, past)
    assert first.output_hs06 == last.output_hs06 == 0
    assert {**first.state, WEIGHT_BEFORE: 0.0} == {**last.state, WEIGHT_BEFORE: 0.0}


@given(controls, pasts, readings, powers, intervals)
def test_a_larger_error_never_moves_less(
    control: Control, past: Past, now: Reading, other: float, dt: float
) -> None:
    """After the same past and at the same power, the larger error has the larger output.

    With all errors and powers turned round, the output is turned round.
    """
    turned = [
        (replace(one, error_hs06=-one.error_hs06, power_hs06=-one.power_hs06), dt)
        for one, dt in past
    ]
    assert same(after(control, past).output_hs06, -after(control, turned).output_hs06)
    state = after(control, past).state
    low, high = sorted((now.error_hs06, other))
    outputs = [
        step(control, state, replace(now, error_hs06=error), dt).output_hs06
        for error in (low, high)
    ]
    assert outputs[0] <= outputs[1] + 1e-6


@given(controls, pasts, pasts)
def test_a_restart_that_keeps_the_state_is_no_restart(
    control: Control, before: Past, later: Past
) -> None:
    """A law remembers plain finite numbers: with these, a new controller goes on as the old."""
    kept = after(control, before).state
    assert all(type(number) is float and isfinite(number) for number in kept.values())
    assert after(control, later, kept) == after(control, [*before, *later]) if later else True


@given(controls, readings, st.floats(0, 20000))
def test_a_fresh_controller_does_not_kick(control: Control, now: Reading, dt: float) -> None:
    """Without a state the first output is proportional to the error, after any time."""
    gain = control.pid.gain if control.law == "pid" else 1.0
    wanted = gain * now.error_hs06
    bounded = wanted if control.law != "pid" else max(-MOST, min(wanted, MOST))
    output = step(control, {}, now, dt).output_hs06
    assert output == (bounded if min(abs(bounded), abs(now.error_hs06)) > now.deadband_hs06 else 0)


@given(
    pids,
    st.floats(0, 300),
    st.lists(st.tuples(st.floats(1, 2000), powers, counted), min_size=1, max_size=8),
    counted,
    st.floats(0.01, 0.99),
    st.sampled_from((-1, 1)),
)
def test_without_a_bound_pid_does_not_know_how_often_it_looked(
    pid: Pid,
    derivative: float,
    past: list[tuple[float, float, float]],
    dt: float,
    part: float,
    sign: int,
) -> None:
    """With the same error and an even change of the power, a look more changes nothing.

    Errors are of one sign, so that only a power that changes fast makes the output be against them:
    then the slope is the same.
    """
    wide = replace(pid, derivative_seconds=derivative)
    control = Control("pid", pid=wide)
    seen = [(Reading(sign * error, power), seconds) for error, power, seconds in past]
    moved = after(control, seen)
    now = seen[0][0]
    start = seen[-1][0].power_hs06
    half = replace(now, power_hs06=start + part * (now.power_hs06 - start))
    once = step(control, moved.state, now, dt)
    first = step(control, moved.state, half, part * dt)
    twice = step(control, first.state, now, (1 - part) * dt)
    assert isclose(once.state[SLOPE], twice.state[SLOPE], rel_tol=1e-6, abs_tol=1e-6)
    if not {*once.acted, *first.acted, *twice.acted}:
        assert isclose(once.state[INTEGRAL], twice.state[INTEGRAL], rel_tol=1e-6, abs_tol=1e-3)
        assert isclose(once.output_hs06, twice.output_hs06, rel_tol=1e-6, abs_tol=1e-3)


@given(pids, pasts, readings, st.floats(0.1, 10), st.floats(0, 5000), st.floats(60, 1e6))
def test_other_parameters_do_not_kick(
    pid: Pid, past: Past, now: Reading, gain: float, derivative: float, integral: float
) -> None:
    """At once after other parameters the output of `pid` is the same, unless it is bounded."""
    before = Control("pid", pid=replace(pid, integral_seconds=pid.integral_seconds or 60.0))
    other = replace(before.pid, gain=gain, derivative_seconds=derivative, integral_seconds=integral)
    past = [(replace(one, deadband_hs06=0.0), dt) for one, dt in [*past, (now, 60.0)]]
    moved = after(before, past)
    changed = step(Control("pid", pid=other), moved.state, past[-1][0], 1e-6)
    bounded = {"output-limit", "against-error"} & {*moved.acted, *changed.acted}
    if not bounded and max(abs(moved.state[INTEGRAL]), abs(changed.state[INTEGRAL])) < MOST:
        unchanged = step(before, moved.state, past[-1][0], 1e-6)
        assert isclose(changed.output_hs06, unchanged.output_hs06, rel_tol=1e-3, abs_tol=1e-2)


@given(controls, pasts, readings)
def test_a_gap_does_not_kick(control: Control, past: Past, now: Reading) -> None:
    """After days without a cycle `pid` acts as after the longest interval, without derivative."""
    pid = Control("pid", pid=replace(control.pid, derivative_seconds=0.0))
    state = after(pid, past).state
    days = step(pid, state, now, 500_000.0)
    assert same(days.output_hs06, step(pid, state, now, GAP_SECONDS).output_hs06)


broken = st.sampled_from((float("nan"), float("inf"), float("-inf"), 1e308, -1e308))


@given(controls, pasts, st.sampled_from(("error_hs06", "power_hs06")), broken, readings, intervals)
def test_broken_numbers_do_no_harm(
    control: Control, past: Past, name: str, number: float, now: Reading, dt: float
) -> None:
    """A broken number moves nothing, and spoils no later output."""
    state = after(control, past).state
    changed: dict[str, Any] = {name: number}
    moved = step(control, state, replace(now, **changed), dt)
    assert isfinite(moved.output_hs06)
    assert all(isfinite(value) for value in moved.state.values())
    if not isfinite(number):
        assert moved.output_hs06 == 0
        assert moved.state == state
    assert isfinite(step(control, moved.state, now, dt).output_hs06)


@given(controls, pasts, broken, readings, intervals | broken)
def test_a_broken_state_is_a_fresh_controller(
    control: Control, past: Past, number: float, now: Reading, dt: float
) -> None:
    """A state with a number that cannot be, or one of another law, is dropped."""
    state = dict(after(control, past).state)
    fresh = step(control, {}, now, dt)
    for name in state:
        assert step(control, {**state, name: number}, now, dt) == fresh
    for other in LAWS:
        if other != control.law:
            foreign = after(replace(control, law=other), past).state
            assert step(control, foreign, now, dt) == fresh


@given(
    st.lists(powers, min_size=2, max_size=6), st.lists(intervals, max_size=5), st.floats(60, 1e6)
)
def test_what_some_give_others_get(errors: list[float], dts: list[float], seconds: float) -> None:
    """With one law for all, errors that sum to zero make outputs that sum to zero.

    `pid` only while nothing bounds it: an output that may not go against its own error has no
    counterpart.
    """
    errors = [*errors, -sum(errors)]
    for control in (
        Control("latest"),
        Control("ewma", Ewma(seconds)),
        Control("pid", pid=Pid(1.0, seconds)),
    ):
        pasts = [
            [(Reading(error, 0.0, 0.0, MOST_HS06), dt) for dt in [0.0, *dts]] for error in errors
        ]
        outputs = [after(control, past).output_hs06 for past in pasts]
        assert isclose(sum(outputs), 0, abs_tol=1e-9 * (1 + sum(map(abs, outputs))))


@given(st.floats(1, 1e6), st.lists(st.tuples(powers, intervals), min_size=1, max_size=9))
def test_the_average_is_by_age(half_life: float, past: list[tuple[float, float]]) -> None:
    """`ewma` is the mean of the errors weighted by time, each halved for every half-life since."""
    moved = after(
        Control("ewma", Ewma(half_life)), [(Reading(error, 0.0), dt) for error, dt in past]
    )
    ages = [sum(dt for _, dt in past[number + 1 :]) for number in range(len(past))]
    weights = [
        2 ** (-age / half_life) - (2 ** (-(age + dt) / half_life) if number else 0)
        for number, (age, (_, dt)) in enumerate(zip(ages, past))
    ]
    wanted = sum(weight * error for weight, (error, _) in zip(weights, past))
    assert isclose(moved.state[AVERAGE], wanted, rel_tol=1e-6, abs_tol=1e-3)
    assert isclose(sum(weights), 1, rel_tol=1e-6)
