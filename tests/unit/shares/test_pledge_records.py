from __future__ import annotations

import calendar
from typing import Optional

import pytest

from sharectl.condor.negotiator import Quota, effective_quotas
from sharectl.shares.pledges import Period, period_at


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


QUOTAS = {
    "cms": Quota(4, static=True),
    "alice": Quota(0.5, static=False),
    "alice.prod": Quota(0.75, static=False),
    "alice.prod.mc": Quota(2, static=True),
    "alice.user": Quota(1.0, static=False),
}


LARGE = {"a": Quota(30, static=True), "b": Quota(10, static=True), "c": Quota(0.5, static=False)}


@pytest.mark.parametrize(
    ("quotas", "weight", "how", "expected"),
    [
        # Statics first, then shares of what is left, scaled where they pass 1.
        (QUOTAS, 18.0, {}, (4, 7, 3, 2, 4)),
        # Without the pool's weight only statics are known.
        (QUOTAS, None, {}, (4, None, None, 2, None)),
        # Statics are cut to what there is, unless oversubscription is allowed.
        (LARGE, 20.0, {}, (15, 5, 0)),
        (LARGE, 20.0, {"oversubscribe": True}, (30, 10, 0)),
    ],
)
def test_quotas_of_the_negotiator(
    quotas: dict[str, Quota],
    weight: Optional[float],
    how: dict[str, bool],
    expected: tuple[Optional[float], ...],
) -> None:
    effective = effective_quotas(quotas, weight, **how)
    assert tuple(effective[name] for name in quotas) == pytest.approx(expected)


def test_a_group_whose_parent_is_not_there_has_nothing() -> None:
    assert effective_quotas({"a.b": Quota(0.5, static=False)}, 10.0) == {}
