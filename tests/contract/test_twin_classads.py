"""START and Requirements in the twin: kept answers are HTCondor's, and bad expressions are told."""

from __future__ import annotations

from collections.abc import Mapping

import classad2
import htcondor2  # noqa: F401 - names resolve as in the daemons only once it is loaded
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharectl.errors import InputError
from sharectl_lab.twin.ads import Condition

Values = Mapping[str, object]

# ---- answers

CONDITIONS = [
    "MY.a =?= 1",
    "a == TARGET.b",
    "b || B > 2",
    "isUndefined(MY.A) && member(1, {TARGET.b, c})",
    'strcat("MY.a", TARGET.b) == "MY.a1"',
    'eval(strcat("MY.", "a")) =?= 1',
    'evalInEachContext(b, {TARGET})[0] =?= 1 || MY["a"] =?= 2',
    "time() > 100 + MY.a",
    "CurrentTime - TARGET.b == 100",
]
VALUES = st.dictionaries(
    st.sampled_from("abc"),
    st.none() | st.booleans() | st.sampled_from([0, 1, 2, 1.0, 0.0, 2.5, "1", "x", (1, 1.0), ()]),
)


def fresh(text: str, my: Values, target: Values, now: int) -> bool:
    """Answer of HTCondor with ads that are made for it."""
    ads = [
        classad2.ClassAd(
            {
                **{
                    name: list(v) if isinstance(v, tuple) else v
                    for name, v in values.items()
                    if v is not None
                },
                "moment": now,
            }
        )
        for values in (my, target)
    ]
    tree = classad2.ExprTree(text.replace("time()", "moment").replace("CurrentTime", "moment"))
    value = tree.eval(*ads)
    return type(value) in (bool, int, float) and bool(value)


@pytest.fixture(scope="module")
def conditions() -> dict[str, Condition]:
    return {text: Condition(text, "here") for text in CONDITIONS}


@given(
    st.lists(
        st.tuples(VALUES, VALUES, st.sampled_from([99, 100, 101, 102])), min_size=1, max_size=8
    )
)
def test_an_answer_is_that_of_htcondor(
    conditions: dict[str, Condition], ads: list[tuple[Values, Values, int]]
) -> None:
    """Whatever was asked before, 1, 1.0, true and "1" are not taken for each other."""
    for my, target, now in ads:
        for text, condition in conditions.items():
            assert condition.is_true(my, target, now + 0.5) is fresh(text, my, target, now), text


def test_answers_are_kept_by_the_attributes_that_are_read() -> None:
    start = Condition("MY.Cpus - 1 >= TARGET.RequestCpus", "here")
    assert (start.my_names, start.target_names) == (("cpus",), ("requestcpus",))
    assert not start.reads_time
    slots = [{"cpus": cores, "rack": rack} for cores in (4, 8) for rack in range(5)]
    admitted = [start.is_true(slot, {"requestcpus": 4, "owner": "x"}, 7.0) for slot in slots]
    assert admitted == 5 * [False] + 5 * [True]
    assert len(start.kept) == 2


# ---- bad expressions

TENFOLD = {f"s{number}": " + ".join(10 * [f"eval(MY.s{number - 1})"]) for number in range(1, 12)}
FAULTS = {
    "Cpus >=": 'HTCondor cannot read "Cpus >="; write a ClassAd expression',
    "": 'HTCondor cannot read ""; write a ClassAd expression',
    "True; Cpus = 1": "HTCondor cannot read",
    "True) || (False": "HTCondor cannot read",
    f"{'(' * 30_000}1{')' * 30_000}": "HTCondor cannot",
    "x" * 70_000: "is longer than 65536 characters; write less",
    "MY.Ready && Random(5) < 3": "Random() is not of the simulation; write time(), or leave it out",
    "formatTime() > 1": "formatTime() is not of the simulation",
}


@pytest.mark.parametrize("text", FAULTS, ids=lambda text: text[:30])
def test_an_expression_that_cannot_be_used_is_told_with_its_place(text: str) -> None:
    with pytest.raises(InputError) as caught:
        Condition(text, "pool.yaml:3")
    assert str(caught.value).startswith(f"pool.yaml:3: {FAULTS[text]}")


def test_functions_of_a_moment_that_is_named_are_of_the_simulation() -> None:
    text = 'formatTime(time(), "%H") == "01" && regexp("random()", "random()") || true'
    assert Condition(text, "here").is_true({}, {}, 0)


def test_an_expression_that_does_not_end_is_told() -> None:
    start = Condition("eval(MY.s11) > 1", "pool.yaml:3")
    start.trial_seconds = 0.1
    with pytest.raises(InputError) as caught:
        start.is_true({**TENFOLD, "s0": "1"}, {}, 0)
    problem = "HTCondor cannot evaluate it: no answer within 0.1 s; write it simpler"
    assert str(caught.value) == f"pool.yaml:3: {problem}"


def test_a_comment_ends_with_its_line() -> None:
    assert Condition("MY.Cpus > 1 // two (or more", "here").is_true({"cpus": 2}, {}, 0)
