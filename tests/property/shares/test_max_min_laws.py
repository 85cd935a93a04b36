"""Laws of weighted max-min shares."""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum, isclose

from hypothesis import given
from hypothesis import strategies as st

from sharectl.shares.errors import max_min_shares

NAMES = ("alice", "atlas", "cms", "lhcb")
# Less than a thousandth of an HS06 is no core, and quotients of such powers lack digits.
AMOUNTS = st.just(0.0) | st.floats(1e-3, 1e6)
MOST = st.fixed_dictionaries(dict.fromkeys(NAMES, AMOUNTS))
WEIGHTS = st.fixed_dictionaries(dict.fromkeys(NAMES, st.floats(1, 1e6)))


@given(AMOUNTS, MOST, WEIGHTS)
def test_nothing_is_shared_out_twice_or_beyond_what_can_be_used(
    amount: float, most: Mapping[str, float], weights: Mapping[str, float]
) -> None:
    shares = max_min_shares(amount, most, weights)
    for name in NAMES:
        assert 0 <= shares[name] <= most[name]
    assert isclose(fsum(shares.values()), min(amount, fsum(most.values())), abs_tol=1e-3)


@given(AMOUNTS, MOST, WEIGHTS)
def test_who_can_use_more_has_the_largest_share_by_its_weight(
    amount: float, most: Mapping[str, float], weights: Mapping[str, float]
) -> None:
    shares = max_min_shares(amount, most, weights)
    for name in NAMES:
        if shares[name] < most[name] * (1 - 1e-9):
            level = shares[name] / weights[name]
            assert level >= max(shares[other] / weights[other] for other in NAMES) * (1 - 1e-9)


def test_a_weight_of_nothing_gets_nothing() -> None:
    shares = max_min_shares(100.0, {"alice": 50.0, "cms": 10.0}, {"alice": 0.0, "cms": 1.0})
    assert shares == {"alice": 0.0, "cms": 10.0}
