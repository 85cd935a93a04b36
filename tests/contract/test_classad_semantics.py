"""Facts of ClassAds that sharectl needs: a release that changes one of them fails here."""

from __future__ import annotations

from typing import Any

import classad2
import htcondor2  # noqa: F401 - names resolve as in the daemons only once it is loaded
import pytest

NODE = {
    "Cpus": 8,
    "t1_TargetGroups": ["alice", "cms"],
    "t1_Targetcores": [0, 8],
    "Text": "alice:64:lhcb:3",
}
JOB = {"RequestCpus": 8, "AcctGroup": "Alice.prod", "Forged": True}
EXPRESSIONS = {
    "Admits": "TARGET.RequestCpus == MY.t1_Targetcores[1]",
    "Named": 'TARGET.AcctGroup == "alice.prod" && MY.Admits',
    "Keeps_out": "TARGET.RequestCpus != 8 || TARGET.Cpus =!= undefined",
}
"""Of the node, and about a job."""
GROUP = r"^[^.@]*([^@]*(?=\\.[^.@]*@)|[^@]*$)?"
"""That of the snippet; in a ClassAd's text a backslash is two."""


def evaluated(expression: str) -> Any:
    """Value with NODE as MY and JOB as TARGET."""
    node = classad2.ClassAd(
        {**NODE, **{name: classad2.ExprTree(text) for name, text in EXPRESSIONS.items()}}
    )
    return classad2.ExprTree(expression).eval(node, classad2.ClassAd(JOB))


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        # An unscoped name that the node lacks is looked up in the job: hence MY. everywhere.
        ("Forged =?= True", True),
        ("MY.Forged =?= True", False),
        # Undefined and error let jobs in.
        ("(MY.Missing[1] > 0) =?= True", False),
        ("(error > 0) =?= True", False),
        ("(error) =!= False", True),
        ("(MY.Missing) =!= False", True),
        ("True || error", True),
        ("False && error", False),
        # Strings compare without case, lists of numbers index from 0.
        ('"Alice" == "alice"', True),
        ("MY.t1_Targetcores[1]", 8),
        ('regexps("^[^.@]*", TARGET.AcctGroup, "\\\\0") == MY.t1_TargetGroups[0]', True),
        ('int(regexps("^([^:]+:[0-9]+:)*LHCB:([0-9]+)(:|$)", MY.Text, "\\\\2", "i"))', 3),
        ('regexp("^([^:]+:[0-9]+:)*hcb:([0-9]+)(:|$)", MY.Text, "i")', False),
        # The group in an accounting group is what is before the user, if there is one; parts of it
        # compare as a whole.
        (f'regexps("{GROUP}", "cms.prod.bob@x", "\\\\0")', "cms.prod"),
        (f'regexps("{GROUP}", "cms.prod@x", "\\\\0")', "cms"),
        (f'regexps("{GROUP}", "cms@x", "\\\\0")', "cms"),
        (f'regexps("{GROUP}", TARGET.AcctGroup, "\\\\0")', "Alice.prod"),
        ('substr("ALICE.prod.", 0, 6) == "alice."', True),
        ('substr("alice", 0, 9)', "alice"),
        ('size("alice.prod")', 10),
        # Between \Q and \E a pattern is only text.
        ('regexp("^\\\\Qa.b\\\\E:", "a_b:1")', False),
        ('regexp("^\\\\Qa.b\\\\E:", "a.b:1")', True),
        # A sum leaves out what is undefined; of nothing it is 0.
        ("sum({1, 1, undefined, 8})", 10),
        ("sum({})", 0),
        ("sum({undefined})", 0),
        ("sum(MY.Missing) =?= undefined", True),
        # `max` leaves out what is undefined, too.
        ("max({0, undefined})", 0),
        ("max({0, (8 - sum(MY.Missing) - 3) ?: 0})", 0),
        # One element that is an error or text makes a sum an error, and a comparison with it.
        ("isError(sum({1, error}))", True),
        ('isError(sum({1, "a"}))', True),
        ("(sum({1, error}) >= 0) =?= True", False),
        # `?:` stands in for undefined only.
        ("MY.Missing ?: 7", 7),
        ("(undefined) ?: 0", 0),
        # An attribute of the node that another one names is evaluated against the same job.
        ("MY.Admits", True),
        ("MY.Admits =!= False && MY.Named", True),
        ("MY.Keeps_out", False),
        # `ifThenElse` of what is undefined is undefined, of an error an error; neither keeps a job
        # out.
        ("ifThenElse(MY.Missing, False, False) =!= False", True),
        ("ifThenElse(error, False, False) =!= False", True),
        # Latched booleans are numbers: 1 is not True, and `=?=` takes no 1.0 for 1.
        ("1 =?= True", False),
        ("1 =?= 1", True),
        ("1.0 =?= 1", False),
        # What is compared with a time that is missing is undefined.
        ("(time() - MY.Missing < 480) =!= False", True),
        ("(time() - MY.Missing < 480) =?= True", False),
    ],
)
def test_expression(expression: str, value: object) -> None:
    assert evaluated(expression) == value


def test_a_default_does_not_stand_in_for_error() -> None:
    assert evaluated("error ?: 7") is classad2.Value.Error


def test_undefined_is_truthy_in_python_so_it_is_compared_by_identity() -> None:
    undefined = evaluated("MY.Missing")
    assert undefined is classad2.Value.Undefined
    assert bool(undefined)
    assert isinstance(undefined, int)


def test_time_can_be_told_from_an_expression_later() -> None:
    assert evaluated("time() < 1") in (False, 0)
    assert evaluated("time() > 1600000000") in (True, 1)


def test_numbers_of_an_ad_come_as_plain_python_types() -> None:
    (ad,) = classad2.parseAds(
        'Cpus = 8\nPower = 10.5\nGroup = "cms"\nList = {1, undefined}\nBad = 1 +\n'
    )
    assert [type(ad.get(name)) for name in ("Cpus", "Power", "Group", "List")] == [
        int,
        float,
        str,
        list,
    ]
