from __future__ import annotations

from typing import Any, Optional

import classad2
import pytest

from sharectl.condor.daemons import UNKNOWN_USER
from sharectl.model import Plan, Target
from sharectl.publish import collector
from sharectl.publish.collector import ads_of, placed, placed_ads

PLAN = Plan(7, 1000, 4060, ("alice", "cms"), (Target("cn-1", "alice", 56, "cms", 8),), "targets")
OURS, HIS = "sharectl@example.org", "mallory@example.org"


def ad(
    sequence: int, identity: str = OURS, name: str = "sharectl-cn-1", **more: Any
) -> dict[str, Any]:
    facts = {"MyType": "SharectlTarget", "Name": name, "t1_TargetSequence": sequence}
    return {**facts, **({"AuthenticatedIdentity": identity} if identity else {}), **more}


def plan_ad(sequence: int, identity: str = OURS, name: str = "sharectl") -> dict[str, Any]:
    return ad(sequence, identity, name, MyType="SharectlPlan", t1_TargetValidUntil=4060)


def test_the_ad_of_the_plan_is_the_last_and_tells_what_to_expect() -> None:
    target, plan = ads_of(PLAN, "pool-1")
    assert target["t1_TargetNode"] == "cn-1"
    assert (plan["MyType"], plan["Name"], plan["t1_Targets"]) == ("SharectlPlan", "sharectl", 1)
    assert "t1_TargetNode" not in plan
    assert target["ClassAdLifetime"] == plan["ClassAdLifetime"] == 3060
    for each in (target, plan):
        times = (each["t1_TargetSequence"], each["t1_TargetGenerated"], each["t1_TargetValidUntil"])
        assert times == (PLAN.sequence, PLAN.generated_at, PLAN.valid_until)
    assert [each.get("t1_TargetPool") for each in ads_of(PLAN, None)] == [None, None]


HELD = [ad(7), ad(6, name="sharectl-cn-2"), plan_ad(7), {"MyType": "Machine"}]


@pytest.mark.parametrize(
    ("ads", "identity", "facts", "problem"),
    [
        ([], None, None, "C: holds no plan of sharectl"),
        (
            [plan_ad(9, HIS), ad(6)],
            OURS,
            None,
            f"holds no plan of sharectl, and targets of others: 1 of {HIS};",
        ),
        (HELD, None, (OURS, 7, 4060, 1), None),
        (
            [*HELD, ad(7, HIS), ad(7, "")],
            None,
            (OURS, 7, 4060, 1),
            f"are not sharectl's: 1 of {HIS}, 1 of {UNKNOWN_USER};",
        ),
        # Another name makes no plan.
        ([plan_ad(7), plan_ad(99, HIS, "sharectl2")], None, (OURS, 7, 4060, 0), f"1 of {HIS}"),
    ],
)
def test_targets_in_a_collector_are_those_of_one_publisher(
    ads: list[dict[str, Any]],
    identity: Optional[str],
    facts: Optional[tuple[Any, ...]],
    problem: Optional[str],
) -> None:
    seen = placed("C", placed_ads(ads), identity)
    if facts is None:
        assert seen.targets is None
    else:
        assert (seen.more["identity"], seen.sequence, seen.valid_until, seen.targets) == facts
    assert (problem or "") in (seen.problem or "")
    assert bool(problem) == bool(seen.problem)


@pytest.mark.parametrize(
    ("identity", "writer"), [(OURS, "cm:/x"), (UNKNOWN_USER, None), ("", None)]
)
def test_a_sender_that_is_not_authenticated_is_no_writer_to_yield_to(
    identity: str, writer: Optional[str]
) -> None:
    held = placed_ads([{**plan_ad(7, identity), "t1_TargetWriter": "cm:/x"}])
    assert placed("C", held).writer == writer


STRAYS = [
    ad(6, name="sharectl-cn-2"),
    ad(8, name="from-the-future"),
    ad(7, name="evil"),
    {"MyType": "SharectlTarget", "Name": 'no "sequence"', "AuthenticatedIdentity": OURS},
]


def test_targets_of_ours_that_are_not_of_the_plan_are_withdrawn_whatever_they_are() -> None:
    held = placed_ads([ad(7), *STRAYS, ad(6, HIS), plan_ad(7)])
    names = [stray.name for stray in collector.strays(held, PLAN, OURS)]
    assert names == ["sharectl-cn-2", "from-the-future", "evil", 'no "sequence"']
    withdrawn = classad2.ExprTree(collector.other_ads(OURS, 7, names))
    assert all(withdrawn.eval(classad2.ClassAd(stray)) for stray in STRAYS)
    others = (ad(7), ad(6, HIS), ad(6, ""))
    assert not any(withdrawn.eval(classad2.ClassAd(other)) for other in others)
    # Those that come after the look go by their sequence.
    later = classad2.ExprTree(collector.other_ads(OURS, 7))
    gone = [stray["Name"] for stray in STRAYS if later.eval(classad2.ClassAd(stray))]
    assert gone == ["sharectl-cn-2", "from-the-future", 'no "sequence"']


@pytest.mark.parametrize(
    ("ads", "whole"),
    [
        ([ad(7), ad(6, HIS), plan_ad(7)], True),
        ([ad(7), plan_ad(8)], False),
        ([plan_ad(7)], False),
        ([ad(7), STRAYS[2], plan_ad(7)], False),
    ],
)
def test_only_the_ads_of_the_plan_are_a_whole_plan(ads: list[dict[str, Any]], whole: bool) -> None:  # noqa: FBT001
    assert (collector.why_not_whole(placed_ads(ads), PLAN, OURS) is None) == whole


@pytest.mark.parametrize(
    ("identity", "expected", "believed"),
    [
        (HIS, None, True),
        (HIS, HIS, True),
        (HIS, OURS, False),
        (UNKNOWN_USER, None, False),
        ("ssl@unmapped", "ssl@unmapped", False),
    ],
)
def test_nodes_believe_one_identity_that_is_not_everybodys(
    identity: str,
    expected: Optional[str],
    believed: bool,  # noqa: FBT001
) -> None:
    assert (collector.why_unexpected(identity, expected) is None) == believed
