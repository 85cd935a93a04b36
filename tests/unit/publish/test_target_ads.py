from __future__ import annotations

from typing import Any, Optional

import classad2
import pytest

from sharectl.condor.daemons import UNKNOWN_USER
from sharectl.model import Plan, Target
from sharectl.publish import collector
from sharectl.publish.collector import Holding, ads_of, held_ads, holding

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


MACHINE = {"MyType": "Machine"}
STRANGERS = [ad(7, HIS), ad(7, "")]


@pytest.mark.parametrize(
    ("ads", "identity", "held"),
    [
        ([], None, Holding()),
        (
            [ad(7), ad(6, name="sharectl-cn-2"), *STRANGERS, plan_ad(7), MACHINE],
            None,
            Holding(OURS, 7, 4060, targets=1, foreign={HIS: 1, UNKNOWN_USER: 1}),
        ),
        ([plan_ad(9, HIS), ad(6)], OURS, Holding(foreign={HIS: 1})),
        # Another name makes no plan.
        (
            [plan_ad(7), plan_ad(99, HIS, "sharectl2")],
            None,
            Holding(OURS, 7, 4060, foreign={HIS: 1}),
        ),
    ],
)
def test_what_is_held_is_counted_by_whose_it_is(
    ads: list[dict[str, Any]], identity: Optional[str], held: Holding
) -> None:
    assert holding(held_ads(ads), identity) == held


@pytest.mark.parametrize(
    ("held", "problem"),
    [
        (Holding(OURS, 7), ""),
        (Holding(OURS, 6), "took the ads and does not show them"),
        (Holding(), "took the ads and does not show them"),
        (Holding(UNKNOWN_USER, 7), "knows sharectl only as unauthenticated@unmapped, as anybody"),
        (Holding("ssl@unmapped", 7), "as anybody"),
    ],
)
def test_ads_that_no_node_believes_are_an_error(held: Holding, problem: str) -> None:
    words = collector.why_useless(held, 7) or ""
    assert (problem in words, bool(words)) == (True, bool(problem))


STRAYS = [
    ad(6, name="sharectl-cn-2"),
    ad(8, name="from-the-future"),
    ad(7, name="evil"),
    {"MyType": "SharectlTarget", "Name": 'no "sequence"', "AuthenticatedIdentity": OURS},
]


def test_targets_of_ours_that_are_not_of_the_plan_are_withdrawn_whatever_they_are() -> None:
    held = held_ads([ad(7), *STRAYS, ad(6, HIS), plan_ad(7)])
    names = [stray.name for stray in collector.strays(held, PLAN, OURS)]
    assert names == ["sharectl-cn-2", "from-the-future", "evil", 'no "sequence"']
    withdrawn = classad2.ExprTree(collector.other_ads(OURS, 7, names))
    assert all(withdrawn.eval(classad2.ClassAd(stray)) for stray in STRAYS)
    assert not any(
        withdrawn.eval(classad2.ClassAd(other)) for other in (ad(7), ad(6, HIS), ad(6, ""))
    )


def test_targets_that_come_after_the_look_are_withdrawn_by_their_sequence() -> None:
    withdrawn = classad2.ExprTree(collector.other_ads(OURS, 7))
    gone = [stray["Name"] for stray in STRAYS if withdrawn.eval(classad2.ClassAd(stray))]
    assert gone == ["sharectl-cn-2", "from-the-future", 'no "sequence"']


def test_only_the_ads_of_the_plan_are_a_whole_plan() -> None:
    def whole(*ads: dict[str, Any]) -> bool:
        return collector.why_not_whole(held_ads(ads), PLAN, OURS) is None

    assert whole(ad(7), ad(6, HIS), plan_ad(7))
    assert not whole(ad(7), plan_ad(8))
    assert not whole(plan_ad(7))
    assert not whole(ad(7), STRAYS[2], plan_ad(7))


def test_only_the_configured_identity_is_expected() -> None:
    outcomes = [collector.why_unexpected(HIS, expected) for expected in (None, HIS, OURS)]
    assert [bool(problem) for problem in outcomes] == [False, False, True]
