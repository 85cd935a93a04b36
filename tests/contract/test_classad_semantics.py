"""What sharectl takes for granted of HTCondor's ClassAds: a release that changes one of these fails here."""

from __future__ import annotations

from typing import Any

import classad2
import htcondor2  # noqa: F401 - names resolve as in the daemons only once it is loaded
import pytest

NODE = {"Cpus": 8, "t1_TargetGroups": ["alice", "cms"], "t1_Targetcores": [0, 8], "Text": "alice:64:lhcb:3"}
JOB = {"RequestCpus": 8, "AcctGroup": "Alice.prod", "Forged": True}


def evaluated(expression: str) -> Any:
    """Value with NODE as MY and JOB as TARGET."""
    return classad2.ExprTree(expression).eval(classad2.ClassAd(NODE), classad2.ClassAd(JOB))


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
        # A sum leaves out what is undefined; of nothing it is 0.
        ("sum({1, 1, undefined, 8})", 10),
        ("sum({})", 0),
        # `?:` stands in for undefined only.
        ("MY.Missing ?: 7", 7),
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
    (ad,) = classad2.parseAds('Cpus = 8\nPower = 10.5\nGroup = "cms"\nList = {1, undefined}\nBad = 1 +\n')
    assert [type(ad.get(name)) for name in ("Cpus", "Power", "Group", "List")] == [int, float, str, list]
