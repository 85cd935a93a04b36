"""Laws of pledges from outside."""

from __future__ import annotations

import contextlib
import json
from math import fsum, isfinite
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sharectl.condor.negotiator import Quota, effective_quotas
from sharectl.errors import InputError
from sharectl.model import MAX_HS06
from sharectl.pledges.cric import Promised, promised, read
from sharectl.pledges.sources import Told, Wanted, joined
from sharectl.shares.pledges import Period, jumps, period_at

words = st.sampled_from(
    (
        "F",
        "f",
        "name",
        "accounting_name",
        "pledges",
        "2026",
        "Q1",
        "q1",
        "cms",
        "CMS",
        "CPU",
        "CPU unit",
    )
)
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(("F", "12.5", "-1", "HS06", "1e5", "NaN"))
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=4),
    max_leaves=20,
)
shaped = st.builds(
    lambda cms, more: {"F": {"pledges": {"2026": {"Q1": {"cms": cms, **more}}}}},
    values,
    st.dictionaries(words, values, max_size=3),
)
answers = st.binary(max_size=200) | (values | shaped).map(lambda value: json.dumps(value).encode())


@given(answers)
def test_whatever_a_server_sends_is_pledges_or_an_input_error(content: bytes) -> None:
    """Any bytes are finite pledges from 0 on, each with its place, or an InputError whose lines can be printed."""
    found: dict[str, Promised] = {}
    problems: tuple[str, ...] = ()
    try:
        found = promised(read(content, "A"), "A", ("F",), ("cms",), Period(2026, 1))
    except InputError as error:
        problems = error.problems or ("nothing said",)
    assert all(problem.startswith("A") and problem.isprintable() for problem in problems)
    assert all(isfinite(what.hs06) and 0 <= what.hs06 <= MAX_HS06 for what in found.values())
    assert all(what.place.startswith("A.") for what in found.values())


@given(st.binary(max_size=60).filter(lambda data: data not in (b"", b" ")), st.integers(0, 1000))
def test_a_damaged_answer_is_an_input_error_or_says_the_same(noise: bytes, at: int) -> None:
    """Bytes put into a good answer never give anything but pledges or an InputError."""
    good = json.dumps({"F": {"pledges": {"2026": {"Q1": {"cms": {"CPU": 87100}}}}}}).encode()
    content = good[: at % len(good)] + noise + good[at % len(good) :]
    with contextlib.suppress(InputError):
        promised(read(content, "A"), "A", ("F",), ("cms",), Period(2026, 1))


@given(st.integers(0, 4_000_000_000))
def test_periods_follow_each_other(now: int) -> None:
    """Time never goes back a period, and 92 days later it is the next one or the one after."""
    here, later = period_at(now), period_at(now + 92 * 86400)
    assert (here.year, here.quarter) < (later.year, later.quarter) <= (here.year + 1, here.quarter)
    assert 1 <= here.quarter <= 4


names = st.sampled_from(("a", "b", "c", "a.x", "a.y", "a.x.z", "b.x"))
quotas = st.dictionaries(
    names,
    st.builds(Quota, st.floats(0, 50), st.just(value=True))
    | st.builds(Quota, st.floats(0, 1), st.just(value=False)),
).map(
    lambda found: {
        name: quota for name, quota in found.items() if name.rpartition(".")[0] in ("", *found)
    }
)


@given(quotas, st.floats(0, 100))
def test_groups_never_have_more_than_what_they_are_within(
    configured: dict[str, Quota], weight: float
) -> None:
    """Quotas of the groups within one sum to at most its own, and those of the first level to the pool's."""
    found = effective_quotas(configured, weight)
    for parent in {name.rpartition(".")[0] for name in found}:
        inner = fsum(
            quota or 0.0 for name, quota in found.items() if name.rpartition(".")[0] == parent
        )
        assert inner <= ((found.get(parent) if parent else weight) or 0.0) * (1 + 1e-9) + 1e-12


pledges = st.dictionaries(st.sampled_from("abcd"), st.floats(1e-3, 1e6))


@given(pledges, pledges, st.floats(1.01, 100))
def test_jumps_are_the_same_in_both_directions(
    before: dict[str, float], after: dict[str, float], factor: float
) -> None:
    """Going back jumps where going there did, but for the last bits; standing still never does."""
    assert jumps(before, before, factor) == []
    wider = factor * (1 + 1e-9)
    assert set(jumps(before, after, wider)) <= set(jumps(after, before, factor))


@given(
    st.lists(st.sampled_from("abcd"), unique=True, min_size=1),
    st.dictionaries(st.sampled_from("abcd"), st.none() | st.floats(0, 100)),
    st.dictionaries(st.sampled_from("abcd"), st.floats(0, 100)),
)
def test_every_group_has_a_pledge_or_a_problem(
    groups: list[str], written: dict[str, Any], told: dict[str, float]
) -> None:
    """No group is left out, none gets 0 that nobody wrote, and a written pledge is always the one in use."""
    wanted = [Wanted(group, written.get(group), f"groups.{group}") for group in groups]
    found, problems, _ = joined(
        wanted, {group: Told(hs06, "X") for group, hs06 in told.items()}, "cric", {}
    )
    known = {pledge.group: pledge for pledge in found}
    assert len(known) + len(problems) == len(groups)
    for one in wanted:
        if one.written_hs06 is not None:
            assert known[one.group].hs06 == one.written_hs06
        elif one.group in known:
            assert known[one.group].hs06 == told[one.group] > 0
        else:
            assert any(problem.startswith(f"{one.place}: ") for problem in problems)
