"""Laws of groups within groups."""

from __future__ import annotations

from math import fsum
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharectl.model import OTHER, GroupUsage
from sharectl.shares.errors import group_errors
from sharectl.shares.groups import (
    NESTED_GROUP_NAME,
    GroupTree,
    first_level,
    group_of,
    in_order,
    levels_above,
    with_subgroups,
)

PARTS = st.sampled_from(("a", "b", "prod", "production", "prod_x", "prod-x", "user", "1"))
NAMES = st.lists(PARTS, min_size=1, max_size=4).map(".".join)
TREES = st.sets(NAMES, min_size=1, max_size=12).map(lambda names: in_order(sorted(names)))
"""Names with all that they are within."""
HOSTILE = st.text(max_size=30) | st.text(alphabet='ab.@:\\"(*)|$^ \n\0{}', max_size=20)


def cased(name: str, random: Random) -> str:
    return "".join(random.choice((letter.upper(), letter)) for letter in name)


@given(
    TREES, NAMES, st.randoms(use_true_random=False), st.sampled_from(("bob", "prod", "user", "a"))
)
def test_a_job_belongs_to_the_longest_configured_name_that_its_own_begins_with(
    configured: tuple[str, ...], name: str, random: Random, user: str
) -> None:
    """The longest of all that are its name or end where a part of it ends, without case.

    A slot's AccountingGroup is the job's group, the user and the domain.
    """
    prefixes = [one for one in configured if f"{name}.".startswith(f"{one}.")]
    longest = max(prefixes, key=len, default=OTHER)
    assert group_of(cased(name, random), configured) == longest
    assert group_of(f"{name}.{user}@example.org", configured) == longest


@given(HOSTILE, TREES)
def test_names_are_safe(text: str, configured: tuple[str, ...]) -> None:
    """A nested name has no special character of a ClassAd, a file or a pattern but for the dot.

    Whatever a user writes, only a configured name comes out.
    """
    assert group_of(text, configured) in (*configured, OTHER)
    if NESTED_GROUP_NAME.fullmatch(text):
        assert set(text) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-.")
        assert len(text) <= 64
        assert all(part[:1].isalnum() for part in text.split("."))


@st.composite
def pools(draw: st.DrawFn) -> tuple[GroupTree, dict[str, GroupUsage]]:
    """Groups with pledges that their subgroups do not exceed, and what each uses itself."""
    names = draw(TREES)
    own = {name: draw(st.integers(0, 10**6)) for name in names}
    pledges = {
        name: float(sum(p for one, p in own.items() if f"{one}.".startswith(f"{name}.")))
        for name in names
    }
    pledges[names[0]] += 0 if sum(own.values()) else 1
    usage = {
        name: GroupUsage(
            single_cores=draw(st.integers(0, 1000)),
            multi_cores=8 * draw(st.integers(0, 100)),
            power_hs06=float(draw(st.integers(0, 10**5))),
            pending_single_jobs=draw(st.integers(0, 100)),
            pending_by_cores={1: draw(st.integers(1, 100))},
        )
        for name in names
    }
    return GroupTree(pledges), usage


def shared(tree: GroupTree) -> dict[str, float]:
    """What errors are computed by: each group's own pledge, in order."""
    own = {**tree.steered_hs06, **tree.own_hs06}
    return {name: own[name] for name in tree.names}


@given(pools())
def test_a_level_sums_to_the_one_above(pool: tuple[GroupTree, dict[str, GroupUsage]]) -> None:
    """A group's row sums the rows within it and its own jobs; the first level sums to no error."""
    tree, usage = pool
    own = {row.group: row for row in group_errors(usage, shared(tree))}
    rows = {row.group: row for row in with_subgroups(own.values(), tree.own_hs06)}
    for name in tree.own_hs06:
        inner = [rows[one] for one in tree.names if levels_above(one)[-1:] == (name,)]
        parts = [*inner, own[name]]
        assert rows[name].pledge_hs06 == pytest.approx(tree.pledge_hs06[name])
        whole, errors = rows[name], [row.error_hs06 for row in parts]
        assert whole.error_hs06 == pytest.approx(fsum(errors), abs=1e-4)
        error_cores = fsum(row.error_cores for row in parts)
        assert whole.error_cores == pytest.approx(error_cores, abs=1e-4)
        assert whole.usage.cores == sum(row.usage.cores for row in parts)
        waiting = [row.usage.pending_by_cores[1] for row in parts]
        assert whole.usage.pending_by_cores[1] == sum(waiting)
    assert fsum(rows[name].error_hs06 for name in first_level(rows)) == pytest.approx(0, abs=1e-4)
