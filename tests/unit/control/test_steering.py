from __future__ import annotations

from collections.abc import Mapping

import pytest

from sharectl.control.laws import (
    AVERAGE,
    AVERAGE_BEFORE,
    WEIGHT_BEFORE,
    Control,
    Pid,
    Reading,
    step,
)
from sharectl.control.setpoints import (
    ACCOUNT,
    SETPOINTS,
    CarryOver,
    Entitlement,
    Loans,
    shared_ratio,
)
from sharectl.control.steering import ACTED, STEPPED_AT, SteeringConfig, steer
from sharectl.model import GroupControl, PlanLimits, Snapshot
from sharectl.plan.plan import PlanConfig, State, decide
from sharectl.shares.errors import pool_hs06, usage_by_group
from tests.fakes import NOW, running, snapshot

PLEDGES = {"alice": 100.0, "cms": 300.0, "lhcb": 100.0}
CYCLE = 1000
HOUR = 3600.0
ALICE_HAS_ALL = (running("wn-1", "alice", 1, 40), running("wn-2", "lhcb", 1, 10))
CMS_WAITS = {("cms", 8): 100}
ONE = {("cms", 8): 1}


def acted(moves: tuple[GroupControl, ...]) -> dict[str, tuple[str, ...]]:
    return {row.group: row.acted for row in moves}


def cycles(
    config: SteeringConfig,
    looks: list[Snapshot],
    kept: Mapping[str, Mapping[str, float]] = {},
    start: int = NOW,
) -> list[tuple[GroupControl, ...]]:
    moves = []
    for number, look in enumerate(looks):
        moves.append(steer(PLEDGES, 0.0, config, kept, look, start + CYCLE * number))
        kept = {row.group: row.state for row in moves[-1]}
    return moves


def setpoints(moves: tuple[GroupControl, ...]) -> list[float]:
    return [round(row.setpoint_hs06, 6) for row in moves]


def test_setpoints_by_mode() -> None:
    # 500 HS06 in use of 2 * 64 cores * 10 HS06 that are there.
    taken = snapshot(ALICE_HAS_ALL)
    usage = usage_by_group(taken, PLEDGES)
    present = pool_hs06(taken.nodes)
    ratios = {mode: shared_ratio(mode, PLEDGES, usage, present) for mode in SETPOINTS}
    assert ratios == {"in_use": 1, "present": 2.56, "pledge": 1}


@pytest.mark.parametrize(
    ("loans", "pending", "expected", "codes"),
    [
        # cms, entitled to 300, uses 0 and waits for 80 HS06: 220 are left, if it lends them.
        (Loans(), {**ONE, ("lhcb", 8): 9}, [100, 300, 100], "; ; "),
        (Loans({"cms": 500}), ONE, [320, 80, 100], "borrows; lends; "),
        (Loans({"cms": 50}), ONE, [150, 250, 100], "borrows; lends; "),
        (
            Loans({"cms": 500}, {"alice": 20}),
            {**ONE, ("lhcb", 8): 1},
            [120, 200, 180],
            "borrows; lends; borrows",
        ),
    ],
)
def test_loans(
    loans: Loans, pending: dict[tuple[str, int], int], expected: list[float], codes: str
) -> None:
    config = SteeringConfig(entitlement=Entitlement(loans=loans))
    rows = steer(PLEDGES, 0.0, config, {}, snapshot(ALICE_HAS_ALL, pending), NOW)
    assert setpoints(rows) == expected
    assert [list(row.acted) for row in rows] == [part.split() for part in codes.split(";")]


def carrying(**numbers: float) -> SteeringConfig:
    carry = CarryOver(pledge_hours=2.0, half_life_seconds=1e12, repay_seconds=HOUR)
    return SteeringConfig(
        Control("latest"),
        entitlement=Entitlement(carry_over=CarryOver(**{**carry.__dict__, **numbers})),
    )


def test_what_may_be_carried_over_is_collected_while_there_is_work() -> None:
    idle, busy = snapshot(ALICE_HAS_ALL), snapshot(ALICE_HAS_ALL, CMS_WAITS)
    # cms leaves 300 HS06 to others for 1000 s, twice: 167 HS06-hours.
    without = cycles(carrying(), [idle] * 3)[-1]
    assert {row.group: round(row.state[ACCOUNT] / HOUR) for row in without} == {
        "alice": 167,
        "cms": -167,
        "lhcb": 0,
    }
    assert setpoints(without) == [100, 300, 100]
    kept = {row.group: row.state for row in without}
    then = cycles(carrying(), [busy], kept, NOW + 2 * CYCLE)[-1]
    # 167 HS06 for an hour. Alice, which owes as much, pays half of its setpoint; all others in
    # proportion what is lacking.
    assert setpoints(then) == [50, 379.166667, 70.833333]
    assert (acted(then)["cms"], acted(then)["alice"]) == (("paid-back",), ("pays-back",))
    assert sum(setpoints(then)) == pytest.approx(500)


def test_a_lack_inside_the_deadband_is_nobodys_loss() -> None:
    """Cms waits and is 300 HS06 under: alice causes a loss only if that is beyond the deadband."""
    look = snapshot(ALICE_HAS_ALL, CMS_WAITS)
    for deadband_hs06, codes in ((200.0, ()), (300.0, ("no-claimant",))):
        moves = steer(PLEDGES, deadband_hs06, SteeringConfig(PID), {}, look, NOW)
        assert acted(moves)["alice"] == codes


PID = Control("pid", pid=Pid(gain=1.0, integral_seconds=1000.0))


@pytest.mark.parametrize(
    ("reading", "dt_seconds", "code"),
    [
        (Reading(100, 0, most_hs06=50), 1000, "output-limit"),
        (Reading(-1, 0), 1000, "against-error"),
        (Reading(100, 0), 3061, "gap"),
        (Reading(100, 0), 0, "gap"),
        (Reading(100, 0), -60, "gap"),
        (Reading(100, 0, deadband_hs06=100), 1000, "deadband"),
        (Reading(float("nan"), 0), 1000, "no-number"),
    ],
)
def test_what_acted_is_said(reading: Reading, dt_seconds: float, code: str) -> None:
    state = step(PID, {}, Reading(100, 0), 0).state
    moves = step(PID, step(PID, state, Reading(100, 0), 500).state, reading, dt_seconds)
    assert moves.acted == (code,)
    assert code in ACTED


def test_the_integral_does_not_wind_up_behind_a_limit() -> None:
    """A day at the limit, and the first error the other way turns the output round at once."""
    bounded = Control("pid", pid=Pid(1.0, 3600.0))
    state: Mapping[str, float] = {}
    for _ in range(86):
        state = step(bounded, state, Reading(1000, 0, most_hs06=50.0), 1020).state
    assert step(bounded, state, Reading(-60, 0, most_hs06=50.0), 1020).output_hs06 < 0


def test_a_new_setpoint_is_no_change_of_the_power() -> None:
    """The derivative is of the power: an error that jumps while it stands still has none."""
    derivative = Control("pid", pid=Pid(1.0, 0.0, derivative_seconds=5000.0))
    state = step(derivative, {}, Reading(0, 500), 0).state
    assert step(derivative, state, Reading(300, 500), 1020).output_hs06 == 300
    assert step(derivative, state, Reading(300, 800), 1020).output_hs06 > 300


def test_states_go_from_cycle_to_cycle_with_the_plan() -> None:
    config = PlanConfig(PLEDGES, PlanLimits(), 3060, steering=SteeringConfig(Control("ewma")))
    seen, gone = snapshot(ALICE_HAS_ALL, CMS_WAITS), State(controllers={"gone": {AVERAGE: 1.0}})
    first = decide(config, gone, seen, NOW).state
    assert set(first.controllers) == set(PLEDGES)
    numbers = {AVERAGE: -300.0, AVERAGE_BEFORE: -300.0, WEIGHT_BEFORE: 0.0, STEPPED_AT: float(NOW)}
    assert first.controllers["cms"] == numbers
    seed = PlanConfig(PLEDGES, PlanLimits(), 3060)
    assert decide(seed, first, seen, NOW + 60).state.controllers == {}
