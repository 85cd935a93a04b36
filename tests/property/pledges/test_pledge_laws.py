"""Laws of pledges from outside."""

from __future__ import annotations

import json
from math import fsum, isfinite

from hypothesis import example, given
from hypothesis import strategies as st

from sharectl.condor.negotiator import Quota, effective_quotas
from sharectl.errors import InputError
from sharectl.model import MAX_HS06
from sharectl.pledges.cric import promised
from sharectl.shares.pledges import Period, Pledge

words = st.sampled_from(["F", "name", "pledges", "2026", "Q1", "cms", "CMS", "CPU"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(("F", "12.5", "NaN")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=4),
    max_leaves=20,
)
answers = st.builds(
    lambda cms, more: json.dumps({"F": {"pledges": {"2026": {"Q1": {"cms": cms, **more}}}}}),
    values,
    st.dictionaries(words, values, max_size=3),
)
GOOD = json.dumps({"F": {"pledges": {"2026": {"Q1": {"cms": {"CPU": 87100}}}}}})
damaged = st.builds(
    lambda noise, at: GOOD[:at] + noise + GOOD[at:], st.text(max_size=60), st.integers(0, len(GOOD))
)


@given(answers | damaged)
@example('{"a": ' * 100_000)
@example(f"[{'9' * 5000}]")
def test_any_text_of_a_server_is_pledges_or_an_input_error(content: str) -> None:
    """Any text is finite pledges from 0 on, each with its place, or an InputError that prints."""
    pledges: dict[str, Pledge] = {}
    problems: tuple[str, ...] = ()
    try:
        pledges = promised(content, ("F",), ("cms",), Period(2026, 1))
    except InputError as error:
        problems = error.problems or ("",)
    assert not [line for line in problems if not line.startswith("CRIC") or len(line) > 400]
    assert "".join(problems).isprintable()
    for pledge in pledges.values():
        assert isfinite(pledge.hs06)
        assert 0 <= pledge.hs06 <= MAX_HS06
        assert pledge.place.startswith("CRIC.")


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
    """Quotas within a group sum to at most its quota, those of the first level to the pool's."""
    found = effective_quotas(configured, weight)
    for parent in {name.rpartition(".")[0] for name in found}:
        inner = fsum(
            quota or 0.0 for name, quota in found.items() if name.rpartition(".")[0] == parent
        )
        assert inner <= ((found.get(parent) if parent else weight) or 0.0) * (1 + 1e-9) + 1e-12
