from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharectl_lab.twin.accountant import Accountant
from sharectl_lab.twin.group_quotas import GroupQuota, QuotaTree
from sharectl_lab.twin.settings import Negotiator
from tests.static_slots import StaticSlots

NAMES = ("a", "a.x", "a.y", "b", "b.x", "c")
KNOBS = st.builds(Negotiator, consider_preemption=st.booleans())
PENDING = st.dictionaries(
    st.sampled_from([f"{name}.{user}" for name in NAMES for user in "uv"] + ["u", "v"]),
    st.integers(1, 40),
    min_size=1,
    max_size=6,
)
SECONDS = st.floats(0, 1e6)


@st.composite
def quotas(draw: st.DrawFn, flags: st.SearchStrategy[bool]) -> list[GroupQuota]:
    """Quotas of some groups and of those that they are in, with surplus and autoregroup."""
    names = draw(st.sets(st.sampled_from(NAMES)))
    names |= {name.partition(".")[0] for name in names}
    return [
        draw(
            st.builds(
                GroupQuota,
                st.just(name),
                st.integers(0, 30).map(float),
                accept_surplus=flags,
                autoregroup=flags,
            )
        )
        for name in sorted(names)
    ]


@given(quotas(st.booleans()), PENDING, st.integers(1, 60), KNOBS, st.integers(1, 3))
def test_a_job_is_matched_once_and_a_slot_is_given_once(
    groups: list[GroupQuota], pending: dict[str, int], slots: int, knobs: Negotiator, cycles: int
) -> None:
    """Matches are at most slots and at most pending jobs."""
    pool = StaticSlots([1.0] * slots, dict(pending), knobs)
    tree = QuotaTree(groups)
    for _ in range(cycles):
        pool.negotiate(tree)
    assert sum(pool.running.values()) <= slots
    assert all(pool.running[name] + pool.pending[name] == pending[name] for name in pending)


@given(quotas(st.just(value=False)), st.integers(1, 40), st.integers(1, 60), KNOBS)
def test_without_surplus_no_subtree_passes_its_quota(
    groups: list[GroupQuota], jobs: int, slots: int, knobs: Negotiator
) -> None:
    """Slots alike, a submitter in each group: use of a group and of those in it <= its quota."""
    pool = StaticSlots([1.0] * slots, {f"{group.name}.u": jobs for group in groups}, knobs)
    pool.negotiate(QuotaTree(groups))
    for group in groups:
        subtree = f"{group.name}."
        used = sum(weight for name, weight in pool.used.items() if name.startswith(subtree))
        assert used <= group.quota


@given(PENDING, st.integers(1, 60), KNOBS)
def test_without_quotas_no_slot_stays_free_while_a_job_waits(
    pending: dict[str, int], slots: int, knobs: Negotiator
) -> None:
    """The root group alone, a partitionable slot full: matches = min(slots, pending jobs)."""
    pool = StaticSlots([1.0] * slots, dict(pending), knobs, least_weight=0.0)
    pool.negotiate(QuotaTree())
    assert sum(pool.running.values()) == min(slots, sum(pending.values()))


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.sampled_from([1.0, 2.0, 4.0]), min_size=1),
    st.integers(1, 20),
    KNOBS,
)
def test_shares_are_inverse_to_priority_factors(
    factors: dict[str, float], unit: int, knobs: Negotiator
) -> None:
    """Submitters that all want more than their share s_i = W (1/f_i) / sum(1/f) get s_i."""
    shares = {name: round(4 / factor) * unit for name, factor in factors.items()}
    weight = sum(shares.values())
    pool = StaticSlots([1.0] * weight, dict.fromkeys(factors, weight), knobs, factors=factors)
    pool.negotiate(QuotaTree())
    # A share of 3 may be a limit of 2.9999: the last slot of such a one goes to any.
    assert all(abs(pool.running[name] - shares[name]) <= 1 for name in shares)


@given(st.lists(st.tuples(st.floats(1, 1e5), st.integers(-40, 40)), max_size=8), SECONDS, SECONDS)
def test_a_priority_does_not_depend_on_when_it_was_looked_at(
    changes: list[tuple[float, int]], first: float, second: float
) -> None:
    """P(t + s) from P(t) = P(t + s) from the last change: b^(t + s) = b^t b^s."""
    direct, looked = Accountant(3600.0), Accountant(3600.0)
    now = 0.0
    for seconds, weight in changes:
        now += seconds
        direct.charge("a.u", now, weight)
        looked.charge("a.u", now, weight)
    looked.charge("a.u", now + first, 0.0)
    end = now + first + second
    assert looked.priority("a.u", end) == pytest.approx(direct.priority("a.u", end))
