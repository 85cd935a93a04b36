"""Laws of the choice of nodes."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from sharectl.plan.nodes import ControlledShare, controlled_machines

names = st.from_regex(r"[a-z]{1,3}-[0-9]{1,3}(\.example\.org)?", fullmatch=True)
pools = st.lists(names, unique=True, max_size=40)
ratios = st.floats(0, 1) | st.integers(0, 100).map(lambda percent: percent / 100)


def share(ratio: float, machines: list[str]) -> frozenset[str]:
    return controlled_machines(ControlledShare(ratio), machines)


@given(ratios, ratios, st.data(), pools, names)
def test_a_share_hangs_on_names_alone(
    one: float, other: float, data: st.DataObject, machines: list[str], new: str
) -> None:
    """floor(ratio * n) nodes of the pool, or one, in any order; a larger share holds the smaller.

    A node that comes displaces at most one.
    """
    small, large = sorted((one, other))
    chosen = share(small, machines)
    assert chosen <= set(machines)
    least = min(1, len(machines)) if small > 0 else 0
    assert len(chosen) == max(least, Fraction(repr(small)) * len(machines) // 1)
    assert share(small, data.draw(st.permutations(machines))) == chosen
    assert chosen <= share(large, machines)
    assert len(chosen - share(small, [*machines, new])) <= 1
