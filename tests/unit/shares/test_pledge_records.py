from __future__ import annotations

import calendar

import pytest

from sharectl.condor.negotiator import Quota, effective_quotas
from sharectl.shares.pledges import Period, jumps, period_at


@pytest.mark.parametrize(
    ("date", "period"),
    [
        ((2026, 4, 1), Period(2026, 1)),
        ((2026, 6, 30), Period(2026, 1)),
        ((2026, 7, 1), Period(2026, 2)),
        ((2026, 12, 31), Period(2026, 3)),
        ((2027, 1, 1), Period(2026, 4)),
        ((2027, 3, 31), Period(2026, 4)),
    ],
)
def test_the_year_of_pledges_begins_in_april(date: tuple[int, int, int], period: Period) -> None:
    now = calendar.timegm((*date, 0, 0, 0))
    assert period_at(now) == period_at(now + 86399) == period


@pytest.mark.parametrize(
    ("after", "jump"), [(10.0, False), (20.0, False), (20.1, True), (5.0, False), (4.9, True)]
)
def test_jumps_are_by_more_than_the_factor_either_way(after: float, jump: bool) -> None:  # noqa: FBT001
    assert jumps(10.0, after, 2.0) == jump


QUOTAS = {
    "cms": Quota(4, static=True),
    "alice": Quota(0.5, static=False),
    "alice.prod": Quota(0.75, static=False),
    "alice.prod.mc": Quota(2, static=True),
    "alice.user": Quota(1.0, static=False),
}


def test_statics_first_then_shares_of_what_is_left_scaled_where_they_pass_one() -> None:
    assert effective_quotas(QUOTAS, 18.0) == pytest.approx(
        {"cms": 4, "alice": 7, "alice.prod": 3, "alice.prod.mc": 2, "alice.user": 4}
    )


def test_statics_are_cut_to_what_there_is_unless_oversubscription_is_allowed() -> None:
    quotas = {
        "a": Quota(30, static=True),
        "b": Quota(10, static=True),
        "c": Quota(0.5, static=False),
    }
    assert effective_quotas(quotas, 20.0) == {"a": 15, "b": 5, "c": 0}
    assert effective_quotas(quotas, 20.0, oversubscribe=True) == {"a": 30, "b": 10, "c": 0}


def test_without_the_pools_weight_only_statics_are_known() -> None:
    found = effective_quotas(QUOTAS, None)
    assert found == {
        "cms": 4,
        "alice": None,
        "alice.prod": None,
        "alice.prod.mc": 2,
        "alice.user": None,
    }


def test_a_group_whose_parent_is_not_there_has_nothing() -> None:
    assert effective_quotas({"a.b": Quota(0.5, static=False)}, 10.0) == {}
