"""Turn of a job at the negotiator, by hand-written facts; what the ledger knows of its wait."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Optional

import pytest

from sharectl.explain import turn as law
from sharectl.explain.asks import group_of, sizes
from sharectl.explain.turn import AccountedGroup, Limit, NegotiatorFacts, Prospect, Submitter
from sharectl.model import JobWaits, Target, WaitTimes
from sharectl.plan.records import CycleRecord, NodeRecord
from tests.fakes import NOW


def group(
    name: str, used: float, quota: Optional[float], surplus: str = "no", **more: Any
) -> AccountedGroup:
    key = more.get("sort_key", used / quota if quota else None)
    return AccountedGroup(name, used, quota, more.get("subtree", quota), surplus, key)


def facts(*groups: AccountedGroup, **more: Any) -> NegotiatorFacts:
    root = group("<none>", 0, 50, "byquota", sort_key=3.4e38)
    return NegotiatorFacts({g.name.lower(): g for g in (root, *groups)}, **more)


def code(negotiator: NegotiatorFacts, submitter: str, *limits: str) -> Optional[str]:
    why = law.cause(negotiator, submitter, "ap-1", law.limits_in(negotiator, limits))
    return why.code if why else None


ROOMY = facts(used={"licence": 1.0, "sw": 3.0}, most={"licence": 1.0, "sw": 4.0})
TINY = facts(used={}, most={"licence": 1.0, "sw": 0.0})
INNER = (
    group("cms.prod", 3, 2, "byquota"),
    group("cms.user", 1, 2, "byquota"),
    group("cms2", 9, 9),
)
CAUSES: list[tuple[NegotiatorFacts, str, tuple[str, ...], Optional[str]]] = [
    (facts(group("cms", 2, 2)), "cms.u", (), "at-quota"),
    (facts(group("cms", 6, 2)), "cms.prod.u", (), "at-quota"),
    (facts(group("cms", 1, 2)), "cms.u", (), None),
    # A quota counts in whole slots.
    (facts(group("CMS", 2, 2.9)), "cms.u", (), "at-quota"),
    (facts(group("cms", 0, 0.7)), "cms.u", (), "at-quota"),
    (facts(group("cms", 2, 2, "byquota")), "cms.u", (), None),
    (facts(group("cms", 2, 2, "regroup")), "cms.u", (), None),
    (facts(group("cms", 2, None)), "cms.u", (), None),
    (facts(group("cms", 2, 2, subtree=9)), "cms.u", (), "at-quota"),
    (facts(group("cms", 2, 2)), "u", (), None),
    (facts(group("cms", 2, 2)), "cmsx.u", (), None),
    # A group above counts what all within it use.
    (facts(group("cms", 0, 4), *INNER), "cms.user.u", (), "at-quota"),
    (facts(group("cms", 0, 5), *INNER), "cms.user.u", (), None),
    (facts(group("cms", 0, 4, "byquota"), *INNER), "cms.user.u", (), None),
    (facts(group("cms", 1, 4.5), *INNER), "cms.user.u", (), "at-quota"),
    # A limit is the cause where no slot has room.
    (ROOMY, "u", ("licence",), "at-limit"),
    (ROOMY, "u", ("sw",), None),
    (ROOMY, "u", ("sw:2",), "at-limit"),
    (ROOMY, "u", ("licence", "sw"), None),
    (ROOMY, "u", ("licence", ""), None),
    (ROOMY, "u", ("licence:2", "licence"), "at-limit"),
    (facts(used=None, most={"licence": 1.0}), "u", ("licence",), None),
    (facts(used={"licence": 1.0}), "u", ("licence",), None),
    (TINY, "u", ("licence:2",), "at-limit"),
    (TINY, "u", ("licence, sw",), "at-limit"),
    (facts(access_points={"ap-1": (2, 2)}), "u", (), "at-access-point"),
    (facts(access_points={"ap-1": (1, 2), "ap-2": (2, 2)}), "u", (), None),
]
"""Facts, submitter, limits of each slot, and the cause that keeps the job out."""


@pytest.mark.parametrize(("negotiator", "submitter", "limits", "expected"), CAUSES)
def test_the_cause_is_the_negotiators(
    negotiator: NegotiatorFacts, submitter: str, limits: tuple[str, ...], expected: Optional[str]
) -> None:
    assert code(negotiator, submitter, *limits) == expected


def test_limits_count_as_the_negotiator_counts_them() -> None:
    assert law.parts_of("Licence, sw.x:2 a:0 b:-1 c:x 3d e.f.g h:1.5") == [
        *(("licence", 1.0), ("sw.x", 2.0), ("a", 1.0), ("b", 1.0), ("c", 1.0), ("h", 1.5))
    ]
    assert law.use_of(["licence", "Licence:2,b", "b"]) == {"licence": 3.0, "b": 2.0}
    assert law.knobs_of("sw.x")[:2] == ("sw.x_LIMIT", "CONCURRENCY_LIMIT_DEFAULT_sw")
    knobs = {
        "LICENCE_LIMIT": "1",
        "Concurrency_Limit_Default_SW": "2",
        "CONCURRENCY_LIMIT_DEFAULT": "9",
        "OTHER_LIMIT": "ifThenElse(true, 1, 2)",
    }
    known = sizes(knobs, ["licence", "sw.x", "b", "other"])
    assert known == {"licence": 1.0, "sw.x": 2.0, "b": 9.0}
    assert law.limits_in(facts(used={}), ["a"]) == [[Limit("a", 1.0, 0.0, None)]]


def submitter(name: str, priority: float, **more: Any) -> Submitter:
    return Submitter(name, more.get("used", 1.0), more.get("ceiling"), priority)


def test_ceilings_and_who_is_before() -> None:
    people = (
        submitter("cms.own", 20.0),
        submitter("cms.better", 10.0),
        submitter("cms.worse", 30.0),
        submitter("cms.done", 1.0),
        submitter("cms.capped", 2.0, used=3.0, ceiling=3),
        submitter("lhcb.any", 99.0),
        submitter("full.any", 1.0),
        submitter("nobody", 1.0),
    )
    groups = (group("cms", 5, 10), group("lhcb", 1, 10), group("full", 2, 2, sort_key=0.0))
    idle = {person.name: 1 for person in people if person.name != "cms.done"}
    submitters = {person.name: person for person in people}
    negotiator = facts(*groups, submitters=submitters, idle_jobs=idle)
    assert [other.name for other in law.before(negotiator, "CMS.own") or ()] == [
        "lhcb.any",
        "cms.better",
    ]
    assert law.before(negotiator, "cms.unknown") is None
    assert law.before(replace(negotiator, idle_jobs=None), "cms.own") is None
    job = {"submitter": "cms.own", "schedd": "ap-1"}
    (first, _) = law.turn(negotiator, job, {"limits": []})["before"]
    assert (first["name"], first["idle_jobs"]) == ("lhcb.any", 1)
    assert code(negotiator, "cms.capped") == "at-ceiling"
    assert code(negotiator, "cms.own") is None


def test_accounting_ads_of_a_negotiator_without_a_cycle_know_no_quota() -> None:
    ad = {"Name": "cms", "IsAccountingGroup": True, "ConfigQuota": 8.0, "EffectiveQuota": 0.0}
    unknown = group_of({**ad, "SubtreeQuota": 0.0, "SurplusPolicy": "no"})
    assert (unknown.quota, code(facts(unknown), "cms.u")) == (None, None)
    static = group_of({**ad, "SubtreeQuota": 6.0, "EffectiveQuota": 6.0})
    assert (static.quota, static.subtree_quota) == (6.0, 8.0)


TIMES = WaitTimes(3, 300, 900)
RECORD = CycleRecord(
    taken_at=NOW - 100,
    seconds=1.0,
    complete=True,
    number=7,
    waits=(JobWaits("cms", 8, started=TIMES), JobWaits("cms", 4)),
    nodes=tuple(
        NodeRecord(
            name, 8, 10.0, controlled=True, target=Target(name, "alice", 0, *helped), wait_seconds=s
        )
        for name, helped, s in (
            ("wn-1", ("cms", 8), 700.0),
            ("wn-2", ("cms", 8), 400.0),
            ("wn-3", ("cms", 4), 0.0),
            ("wn-4", ("lhcb", 8), 0.0),
        )
    ),
)


def test_the_block_under_way_and_the_wait_of_its_like() -> None:
    known = law.prospect(RECORD, "cms", 8, NOW)
    assert (known.block_nodes, known.block_seconds) == (("wn-2", "wn-1"), 300.0)
    assert (known.started, known.share_hs06, known.over) == (TIMES, None, "")
    assert law.prospect(replace(RECORD, observed=True), "cms", 8, NOW).block_nodes == ()
    assert law.prospect(RECORD, "cms", 2, NOW).started is None


def test_an_old_cycle_or_none_says_nothing_of_now() -> None:
    assert law.prospect(None, "cms", 8, NOW).problem
    assert law.prospect(RECORD, "cms", 8, NOW + law.OLD_SECONDS).problem
    assert Prospect(None, 1, NOW, 500.0, 380.0, 120.0).over == "120 HS06 over its share of 380"
