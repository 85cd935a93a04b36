from __future__ import annotations

from typing import Any, Optional

import classad2
import htcondor2  # noqa: F401 - classad2 resolves names as the daemons do only once it is there
from hypothesis import given
from hypothesis import strategies as st

from sharectl.condor.expressions import clauses, split

ATOMS = st.sampled_from(
    [
        "True",
        "False",
        "undefined",
        "error",
        'x == "a && (b"',
        "y",
        "MY.Half",
        "Whole",
        '"a" =?= "a"',
        "f(1, {2})[0]",
    ]
)
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["&&", "&&", "||"]), inner).map(" ".join),
        inner.map("({})".format),
        inner.map("!({})".format),
        st.tuples(inner, inner, inner).map(lambda three: "({} ? {} : {})".format(*three)),
        inner.map("({}) =!= False".format),
    ),
    max_leaves=12,
)
ATTRIBUTES = {"x": '"a && (b"', "y": "1 < 2", "Half": "y && Whole", "Whole": "(x == x) && True"}


def ad_of(expression: str) -> Any:
    ad = classad2.ClassAd()
    for name, text in {**ATTRIBUTES, "Requirements": expression}.items():
        ad[name] = classad2.ExprTree(text)
    return ad


def is_true(ad: Any, expression: str) -> bool:
    value = classad2.ExprTree(expression).eval(ad)
    # Undefined and error are numbers too in the bindings, of a type of their own.
    return type(value) in (bool, int) and value == 1


@given(EXPRESSIONS)
def test_an_expression_is_true_if_and_only_if_its_clauses_are(expression: str) -> None:
    """HTCondor finds an expression true exactly when it finds each of its clauses true."""
    ad = ad_of(expression)
    assert is_true(ad, expression) == all(is_true(ad, part) for part in split(expression))


@given(EXPRESSIONS)
def test_attributes_may_be_looked_through(expression: str) -> None:
    """The same where clauses are behind attributes, and whatever way HTCondor prints them."""
    ad = ad_of(expression)

    def attribute(name: str) -> Optional[str]:
        return str(ad.lookup(name)) if name in ad else None

    found = clauses(str(ad.lookup("Requirements")), attribute)
    assert is_true(ad, expression) == all(is_true(ad, clause.text) for clause in found)


@given(st.text(alphabet="ab&|()[]{}\"'\\?: =!\n", max_size=60))
def test_any_text_is_split_into_something(text: str) -> None:
    """Splitting any text ends; an expression without && is one clause."""
    parts = split(text)
    assert parts
    if "&&" not in text:
        assert len(parts) == 1
