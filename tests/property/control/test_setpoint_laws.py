"""Laws of setpoints: what is shared out, lent, borrowed, and carried over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import fsum, isclose

from hypothesis import given
from hypothesis import strategies as st

from sharectl.control.laws import GAP_SECONDS, LAWS, REMEMBERING, Control, Ewma, Pid
from sharectl.control.setpoints import (
    SETPOINTS,
    CarryOver,
    Entitlement,
    Loans,
    account_after,
    entitlements,
    loans,
    repaid_setpoints,
    shared_ratio,
)
from sharectl.control.steering import SEED, SteeringConfig, steer
from sharectl.model import PendingJobs, Snapshot
from sharectl.shares.errors import demand_hs06, group_errors, pool_hs06, usage_by_group
from tests.fakes import NOW
from tests.property.shares.test_law_laws import GROUPS, snapshots

pledges = st.fixed_dictionaries(
    {group: st.just(0.0) | st.floats(1, 1e5) for group in GROUPS}
).filter(lambda pledge: any(pledge.values()))
amounts = st.dictionaries(st.sampled_from(GROUPS), st.floats(0, 2000))
limits = st.builds(Loans, amounts, amounts)
carried = st.just(CarryOver()) | st.builds(
    CarryOver, st.floats(0.1, 100), st.floats(60, 1e6), st.floats(60, 1e6)
)
entitled_by = st.builds(Entitlement, st.sampled_from(tuple(SETPOINTS)), limits, carried)
accounts = st.fixed_dictionaries({group: st.floats(-1e8, 1e8) for group in GROUPS})
ONE_CYCLE = dict.fromkeys(GROUPS, 1020.0)


def nominal_hs06(mode: str, pledge: Mapping[str, float], taken: Snapshot) -> dict[str, float]:
    """Setpoints before anything is lent."""
    ratio = shared_ratio(mode, pledge, usage_by_group(taken, pledge), pool_hs06(taken.nodes))
    return {group: hs06 * ratio for group, hs06 in pledge.items()}


@given(snapshots, pledges, entitled_by, accounts)
def test_setpoints_sum_to_no_more_than_what_is_shared_out(
    taken: Snapshot, pledge: dict[str, float], config: Entitlement, account: dict[str, float]
) -> None:
    """Whatever is lent, borrowed, collected and paid back; none beyond its max_borrowed_hs06."""
    usage = usage_by_group(taken, pledge)
    entitled = entitlements(config, pledge, 0.0, usage, taken, account, ONE_CYCLE)
    shares = nominal_hs06(config.setpoint, pledge, taken)
    most = fsum(shares.values())
    assert fsum(one.setpoint_hs06 for one in entitled.values()) <= most * (1 + 1e-9) + 1e-6
    for group, one in entitled.items():
        borrowed = config.loans.max_borrowed_hs06.get(group, most)
        assert 0 <= one.setpoint_hs06 <= (shares[group] + borrowed) * (1 + 1e-9) + 1e-6


@given(snapshots, pledges, limits, st.sampled_from(tuple(SETPOINTS)))
def test_loans_keep_to_every_limit(
    taken: Snapshot, pledge: dict[str, float], limit: Loans, mode: str
) -> None:
    """All lend as much as all borrow, within every limit and their work."""
    usage = usage_by_group(taken, pledge)
    nominal = nominal_hs06(mode, pledge, taken)
    demand = demand_hs06(usage, taken.nodes)
    moved = loans(nominal, demand, pledge, limit)
    assert abs(fsum(moved.values())) <= 1e-6 + 1e-9 * fsum(nominal.values())
    for group, hs06 in moved.items():
        lent, borrowed = max(0.0, -hs06), max(0.0, hs06)
        assert lent <= limit.max_lent_hs06.get(group, 0.0) * (1 + 1e-9)
        assert lent <= max(0.0, nominal[group] - demand[group]) * (1 + 1e-9)
        assert borrowed <= max(0.0, demand[group] - nominal[group]) * (1 + 1e-9)
        assert borrowed <= limit.max_borrowed_hs06.get(group, 1e12) * (1 + 1e-9)


@given(snapshots, pledges, amounts)
def test_the_default_is_the_seed(
    taken: Snapshot, pledge: dict[str, float], borrowed: dict[str, float]
) -> None:
    """Without max_lent_hs06 errors and outputs are DHS to the last bit."""
    config = SteeringConfig(entitlement=Entitlement(loans=Loans({}, borrowed)))
    for row, one, other in zip(
        group_errors(usage_by_group(taken, pledge), pledge),
        steer(pledge, 0.0, SEED, {}, taken, NOW),
        steer(pledge, 0.0, config, {}, taken, NOW),
    ):
        assert one.control_error_hs06 == one.output_hs06 == other.output_hs06 == row.error_hs06
        assert one.error == row
        assert one.state == {}


@given(snapshots, pledges)
def test_errors_sum_to_zero_in_shares_of_what_is_in_use(
    taken: Snapshot, pledge: dict[str, float]
) -> None:
    """With `in_use` the controllers' errors sum to zero, also when groups lend."""
    lending = Entitlement("in_use", Loans(dict.fromkeys(GROUPS, 300.0), {"cms": 50.0}))
    for config in (SEED, SteeringConfig(entitlement=lending)):
        moves = steer(pledge, 0.0, config, {}, taken, NOW)
        total = fsum(one.error.usage.power_hs06 for one in moves)
        assert isclose(fsum(one.control_error_hs06 for one in moves), 0, abs_tol=1e-9 * (1 + total))


laws = st.builds(
    Control,
    st.sampled_from(tuple(LAWS)),
    st.builds(Ewma, st.floats(60, 1e5)),
    st.builds(Pid, st.floats(0.1, 5)),
)


@given(snapshots, pledges, laws, st.lists(st.floats(1, 1e5), min_size=1, max_size=6))
def test_without_work_nothing_is_built_up(
    taken: Snapshot, pledge: dict[str, float], law: Control, dts: list[float]
) -> None:
    """While no job waits, a fresh controller remembers nothing to collect or to pay back."""
    idle = replace(taken, pending=())
    kept: dict[str, Mapping[str, float]] = {}
    now = float(NOW)
    for dt in dts:
        moves = steer(pledge, 0.0, SteeringConfig(law), kept, idle, int(now))
        if law.law in REMEMBERING:
            assert [one.output_hs06 for one in moves] == [0.0] * len(GROUPS)
        kept = {row.group: row.state for row in moves}
        now += dt
    busy = replace(taken, pending=tuple(PendingJobs(group, 8, 100) for group in GROUPS))
    then = steer(pledge, 0.0, SteeringConfig(Control("latest")), {}, busy, int(now))
    for one, other in zip(steer(pledge, 0.0, SteeringConfig(law), kept, busy, int(now)), then):
        gain = (
            law.pid.gain * (1 + 1e-9 + GAP_SECONDS / (law.pid.integral_seconds or 1))
            if law.law == "pid"
            else 1
        )
        assert abs(one.output_hs06) <= abs(other.output_hs06) * gain + 1e-6


errors = st.floats(-1e4, 1e4)
carrying = st.builds(CarryOver, st.floats(0.1, 100), st.floats(60, 1e6))


@given(carrying, st.floats(-1e8, 1e8), errors, st.floats(0, 3000), st.floats(0, 1), st.booleans())
def test_an_account_is_bounded_and_does_not_know_how_often_it_is_looked_at(
    config: CarryOver,
    before: float,
    error: float,
    dt: float,
    part: float,
    contested: bool,  # noqa: FBT001 - drawn
) -> None:
    """An interval cut in two leaves the same account; of contested errors it never grows."""

    def after(start: float, seconds: float) -> float:
        return account_after(config, start, error, seconds, 1e4, contested=contested)

    # Within the limit from the start: an account cut to it is cut at once.
    start = after(before, 0.0)
    whole, halves = after(start, dt), after(after(start, part * dt), (1 - part) * dt)
    assert isclose(whole, halves, rel_tol=1e-6, abs_tol=1e-3 + 1e-9 * abs(start))
    assert abs(whole) <= (config.pledge_hours or 0.0) * 1e4 * 3600 * (1 + 1e-9)
    assert not contested or (abs(whole) <= abs(start) and whole * start >= 0)


@given(
    st.fixed_dictionaries({group: st.floats(0, 1e5) for group in GROUPS}),
    st.fixed_dictionaries({group: st.floats(-1e5, 1e5) for group in GROUPS}),
)
def test_collecting_and_paying_back_keep_the_sum(
    points: dict[str, float], claims: dict[str, float]
) -> None:
    """What one group collects, others have less; nobody has less than half of its setpoint then."""
    after = repaid_setpoints(points, claims, {})
    assert isclose(fsum(after.values()), fsum(points.values()), rel_tol=1e-9, abs_tol=1e-6)
    assert all(power >= 0.5 * points[group] * (1 - 1e-9) for group, power in after.items())
