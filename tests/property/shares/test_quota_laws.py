from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from sharectl.shares.groups import GroupTree
from sharectl.shares.pledges import (
    DIGITS,
    nested_quota_shares,
    quota_shares,
)

NAMES = st.from_regex(r"[a-z0-9][a-z0-9_]{0,8}", fullmatch=True)
PLEDGES = st.dictionaries(
    NAMES, st.floats(0, 1e12, allow_nan=False), min_size=1, max_size=40
).filter(lambda pledges: sum(pledges.values()) > 0)


@given(PLEDGES)
def test_a_share_is_the_pledges_part_of_all_and_shares_sum_to_one(
    pledges: dict[str, float],
) -> None:
    """No share is a whole last digit away from what the pledge calls for."""
    assert sum(map(Decimal, quota_shares(pledges).values())) == 1
    total = sum(map(Fraction, pledges.values()))
    for group, share in quota_shares(pledges).items():
        assert abs(Fraction(share) - Fraction(pledges[group]) / total) < Fraction(1, 10**DIGITS)


@given(PLEDGES)
def test_within_a_group_no_more_is_shared_than_it_has(own: dict[str, float]) -> None:
    """The shares within one group sum to at most 1, and leave its own part of its pledge."""
    pledges = {"top": float(sum(map(Fraction, own.values())) + Fraction(own[min(own)]))}
    pledges.update((f"top.{name}", pledge) for name, pledge in own.items())
    tree = GroupTree(pledges)
    left = 1 - sum(map(Fraction, nested_quota_shares(tree).values()))
    assert 0 <= left <= 1
    assert abs(float(left) - tree.own_hs06["top"] / pledges["top"]) < 2 * len(own) * 10**-DIGITS
