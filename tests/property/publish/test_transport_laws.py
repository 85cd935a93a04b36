"""Laws of what targets travel in: texts, signatures, key files."""

from __future__ import annotations

import string
from typing import Optional

import classad2
from hypothesis import assume, example, given
from hypothesis import strategies as st

from sharectl.errors import InputError
from sharectl.model import Plan, Target
from sharectl.publish import collector, signing
from sharectl.publish import text as sharectl_file
from sharectl.publish.signing import Keys
from sharectl.publish.text import Seal

NOW = 1_700_000_000
HOSTILE = 'x" || True || "\\'
names = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=12)
# Nodes read `none` and `other` as no group's name.
groups = names.filter(lambda name: name not in ("none", "other"))
pairs = st.lists(groups, min_size=2, max_size=2, unique=True)
targets = st.builds(
    lambda node, cap, pair, request: Target(node, pair[0], cap, pair[1], request),
    names,
    st.integers(0, 10**5),
    pairs,
    st.integers(1, 10**5),
)
plans = st.builds(
    lambda made_at, ahead, lasts, rows: Plan(
        sequence=made_at + ahead,
        generated_at=made_at,
        valid_until=made_at + lasts,
        groups=tuple(group for row in rows for group in (row.held_back, row.helped)),
        targets=tuple(rows),
        reason="targets",
    ),
    st.integers(0, 9 * 10**9),
    st.integers(0, 300),
    st.integers(1, 86_400),
    st.lists(targets, max_size=5),
)
key_ids = st.from_regex(r"[a-z0-9_-]{1,32}", fullmatch=True).map(str.encode)
key_sets = st.dictionaries(key_ids, st.binary(min_size=32, max_size=64), max_size=2)
pools = st.none() | st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}", fullmatch=True)
SIGNED = sharectl_file.render(
    Plan(1, NOW, NOW + 60, ("a", "b"), (Target("wn-1", "a", 8, "b", 8),), "targets"),
    Seal("p", {b"k": b"s" * 32}),
).encode()
# Near enough to a published text to reach every check.
mutated = st.tuples(st.integers(0, len(SIGNED)), st.integers(0, 40), st.binary(max_size=30)).map(
    lambda cut: SIGNED[: cut[0]] + cut[2] + SIGNED[cut[0] + cut[1] :]
)


@given(plans, pools, key_sets)
def test_a_text_is_read_and_believed_by_those_who_have_its_key(
    plan: Plan, pool: Optional[str], keys: Keys
) -> None:
    """Nodes find the plan; problem_of(signed with k, keys) is None if k is among keys."""
    content = sharectl_file.render(plan, Seal(pool, keys)).encode()
    read = sharectl_file.parse_text(content, "F")
    assert (read.targets, read.sequence) == (len(plan.targets), plan.sequence)
    assert read.valid_until == plan.valid_until
    first = next(iter(keys), b"").decode() or None
    assert read.more == {"signed_by": first}
    others = {key_id: secret for key_id, secret in keys.items() if key_id.decode() != first}
    assert signing.problem_of(content, others) is not None
    if keys:
        assert signing.problem_of(content, keys) is None


@given(st.binary(max_size=400) | mutated)
@example(b"# sequence: " + b"9" * 5000 + b"\n")
@example(b"# sharectl: \xc2\xb2\n")
@example(b"x" * (sharectl_file.TEXT_MAX_BYTES + 1))
def test_whatever_bytes_come_they_are_a_document_or_an_input_error(content: bytes) -> None:
    """parse(any bytes) returns no more targets than there are lines, or raises InputError."""
    problems: tuple[str, ...] = ("none",)
    try:
        assert (sharectl_file.parse_text(content, "F").targets or 0) <= content.count(b"\n")
    except InputError as error:
        problems = error.problems
    assert 0 < len(problems) <= 20
    assert sum(map(len, problems)) < 10_000


attributes = st.sampled_from([*collector.PROJECTION, "t1_TargetNode"])
texts = st.text(max_size=40) | st.sampled_from(
    ["SharectlTarget", "sharectlplan", "sharectl", "sharectl@example.org", HOSTILE]
)
values = st.none() | st.booleans() | st.integers() | st.floats() | texts | st.just([1])


@given(
    st.lists(st.dictionaries(attributes, values), max_size=8),
    st.none() | st.just("sharectl@example.org"),
)
def test_whatever_ads_a_collector_returns_they_are_counted(
    ads: list[dict[str, object]], identity: Optional[str]
) -> None:
    """placed(any ads) counts no more targets than there are, and those of the publisher alone."""
    held = collector.placed_ads(ads)
    shown = collector.placed("C", held, identity)
    assert (shown.targets or 0) <= sum(not ad.is_plan for ad in held)
    assert identity is None or shown.more.get("identity") in (None, identity)


@given(texts, st.integers(0, 2**40))
def test_an_identity_cannot_leave_its_quotes(identity: str, sequence: int) -> None:
    """other_ads(identity) compares with that very identity, whatever is in it."""
    assume("\x00" not in identity)  # no ad holds it
    tree = classad2.ExprTree(collector.other_ads(identity, sequence, [identity]))
    for sender, chosen in ((identity, True), (f"{identity}x", False)):
        ad = {"t1_TargetSequence": sequence - 1, "AuthenticatedIdentity": sender}
        assert bool(tree.eval(classad2.ClassAd(ad))) == chosen
