"""Laws of the choice of nodes."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from sharectl.plan.nodes import ControlledHosts, ControlledShare, controlled_machines

names = st.from_regex(r"[a-z]{1,3}-[0-9]{1,3}(\.example\.org)?", fullmatch=True)
pools = st.lists(names, unique=True, max_size=40)
percents = st.integers(0, 100)


@given(percents, percents, st.data(), pools)
def test_a_share_hangs_on_names_alone(
    one: int, other: int, data: st.DataObject, machines: list[str]
) -> None:
    """floor(ratio * n) nodes of the pool in any order; a larger share holds the smaller."""
    small, large = sorted((one, other))
    chosen = controlled_machines(ControlledShare(small / 100), machines)
    assert chosen <= set(machines)
    assert len(chosen) == small * len(machines) // 100
    shuffled = data.draw(st.permutations(machines))
    assert controlled_machines(ControlledShare(small / 100), shuffled) == chosen
    assert chosen <= controlled_machines(ControlledShare(large / 100), machines)


@given(st.floats(0, 1), pools)
def test_any_ratio_rounds_down(ratio: float, machines: list[str]) -> None:
    """The number of nodes is at most the ratio of the pool, and less than one node below it."""
    exact = Fraction(repr(ratio)) * len(machines)
    assert exact - 1 < len(controlled_machines(ControlledShare(ratio), machines)) <= exact


@given(percents, pools, names)
def test_a_node_that_comes_displaces_at_most_one(
    percent: int, machines: list[str], new: str
) -> None:
    """With one node more, at most one of those chosen before is not chosen any more."""
    before = controlled_machines(ControlledShare(percent / 100), machines)
    after = controlled_machines(ControlledShare(percent / 100), [*machines, new])
    assert len(before - after) <= 1


@given(names)
def test_a_name_matches_itself_in_any_case(name: str) -> None:
    """Every host is selected by its own name and by its short name, whatever the case."""
    assert controlled_machines(ControlledHosts((name.upper(),)), [name])
    assert controlled_machines(ControlledHosts((name.partition(".")[0],)), [name.upper()])
