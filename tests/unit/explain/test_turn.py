"""Turn of a job at the negotiator, by hand-written facts; what the ledger knows of its wait."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Optional

import pytest

from sharectl.condor.expressions import alternatives
from sharectl.explain.asks import group_of, sizes
from sharectl.explain.turn import (
    OLD_SECONDS,
    AccountedGroup,
    Limit,
    NegotiatorFacts,
    Prospect,
    Submitter,
    before,
    cause,
    group_in,
    knobs_of,
    limits_in,
    parts_of,
    prospect,
    turn,
    use_of,
)
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
    why = cause(negotiator, submitter, "ap-1", limits_in(negotiator, limits))
    return why.code if why else None


QUOTAS = [
    (group("cms", 2, 2), "cms.u", "at-quota"),
    (group("cms", 6, 2), "cms.prod.u", "at-quota"),
    (group("cms", 1, 2), "cms.u", None),
    (group("CMS", 2, 2.9), "cms.u", "at-quota"),
    (group("cms", 0, 0.7), "cms.u", "at-quota"),
    (group("cms", 2, 2, "byquota"), "cms.u", None),
    (group("cms", 2, 2, "regroup"), "cms.u", None),
    (group("cms", 2, None), "cms.u", None),
    (group("cms", 2, 2, subtree=9), "cms.u", "at-quota"),
    (group("cms", 2, 2), "u", None),
    (group("cms", 2, 2), "cmsx.u", None),
]
"""Group, submitter, and the cause that keeps its jobs out."""


@pytest.mark.parametrize(("own", "submitter", "expected"), QUOTAS)
def test_a_group_that_takes_no_surplus_stops_at_the_whole_slots_of_its_quota(
    own: AccountedGroup, submitter: str, expected: Optional[str]
) -> None:
    assert code(facts(own), submitter) == expected


@pytest.mark.parametrize(
    ("above", "expected"),
    [
        (group("cms", 0, 4), "at-quota"),
        (group("cms", 0, 5), None),
        (group("cms", 0, 4, "byquota"), None),
        (group("cms", 1, 4.5), "at-quota"),
    ],
)
def test_a_group_above_counts_what_all_within_it_use(
    above: AccountedGroup, expected: Optional[str]
) -> None:
    inner = group("cms.prod", 3, 2, "byquota"), group("cms.user", 1, 2, "byquota")
    negotiator = facts(above, *inner, group("cms2", 9, 9))
    assert code(negotiator, "cms.user.u") == expected
    assert group_in(negotiator.groups, "cms.user.u") == "cms.user"
    assert group_in(negotiator.groups, "cms.absent.user.u") == "cms"


def test_limits_count_as_the_negotiator_counts_them() -> None:
    assert parts_of("Licence, sw.x:2 a:0 b:-1 c:x 3d e.f.g h:1.5") == [
        *(("licence", 1.0), ("sw.x", 2.0), ("a", 1.0), ("b", 1.0), ("c", 1.0), ("h", 1.5)),
    ]
    assert use_of(["licence", "Licence:2,b", "b"]) == {"licence": 3.0, "b": 2.0}
    assert knobs_of("sw.x")[:2] == ("sw.x_LIMIT", "CONCURRENCY_LIMIT_DEFAULT_sw")
    knobs = {
        "LICENCE_LIMIT": "1",
        "Concurrency_Limit_Default_SW": "2",
        "CONCURRENCY_LIMIT_DEFAULT": "9",
        "OTHER_LIMIT": "ifThenElse(true, 1, 2)",
    }
    known = sizes(knobs, ["licence", "sw.x", "b", "other"])
    assert known == {"licence": 1.0, "sw.x": 2.0, "b": 9.0}


def test_a_limit_is_the_cause_where_no_slot_has_room() -> None:
    negotiator = facts(used={"licence": 1.0, "sw": 3.0}, most={"licence": 1.0, "sw": 4.0})
    assert code(negotiator, "u", "licence") == "at-limit"
    assert code(negotiator, "u", "sw") is None
    assert code(negotiator, "u", "sw:2") == "at-limit"
    assert code(negotiator, "u", "licence", "sw") is None
    assert code(negotiator, "u", "licence", "") is None
    assert code(facts(used=None, most={"licence": 1.0}), "u", "licence") is None
    assert code(facts(used={"licence": 1.0}), "u", "licence") is None
    none = facts(used={}, most={"licence": 1.0, "sw": 0.0})
    assert code(none, "u", "licence:2") == code(none, "u", "licence, sw") == "over-limit"
    assert code(negotiator, "u", "licence:2", "licence") == "at-limit"
    remedies = [cause(none, "u", "ap-1", limits_in(none, [text])) for text in ("licence:2", "sw")]
    assert [why.remedy.partition(",")[0] for why in remedies if why] == [
        "a smaller increment",
        "a job without it",
    ]
    assert limits_in(facts(used={}), ["a"]) == [[Limit("a", 1.0, 0.0, None)]]


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
    groups = (
        group("cms", 5, 10),
        group("lhcb", 1, 10),
        group("full", 2, 2, sort_key=0.0),
    )
    idle = {person.name: 1 for person in people if person.name != "cms.done"}
    submitters = {person.name: person for person in people}
    negotiator = facts(*groups, submitters=submitters, idle_jobs=idle)
    assert [other.name for other in before(negotiator, "CMS.own") or ()] == [
        "lhcb.any",
        "cms.better",
    ]
    assert before(negotiator, "cms.unknown") is None
    assert before(replace(negotiator, idle_jobs=None), "cms.own") is None
    job = {"submitter": "cms.own", "schedd": "ap-1"}
    (first, _) = turn(negotiator, job, {"limits": []})["before"]
    assert (first["name"], first["idle_jobs"]) == ("lhcb.any", 1)
    assert code(negotiator, "cms.capped") == "at-ceiling"
    assert code(negotiator, "cms.own") is None


def test_an_access_point_that_runs_all_it_may() -> None:
    full = facts(access_points={"ap-1": (2, 2)})
    assert code(full, "u") == "at-access-point"
    assert code(replace(full, access_points={"ap-1": (1, 2), "ap-2": (2, 2)}), "u") is None


def test_without_any_answer_nothing_is_claimed() -> None:
    negotiator = NegotiatorFacts(problems=("negotiator: no answer",))
    data = turn(negotiator, {"submitter": None, "schedd": "ap-1"}, {"limits": ["licence"]})
    assert (data["cause"], data["group"], data["before"]) == (None, None, None)
    assert data["limits"] == [{"name": "licence", "increment": 1.0, "used": None, "most": None}]
    assert data["problems"] == ["negotiator: no answer"]


def test_accounting_ads_of_a_negotiator_without_a_cycle_know_no_quota() -> None:
    ad = {"Name": "cms", "IsAccountingGroup": True, "ConfigQuota": 8.0, "EffectiveQuota": 0.0}
    unknown = group_of({**ad, "SubtreeQuota": 0.0, "SurplusPolicy": "no"})
    assert (unknown.quota, code(facts(unknown), "cms.u")) == (None, None)
    static = group_of({**ad, "SubtreeQuota": 6.0, "EffectiveQuota": 6.0})
    assert (static.quota, static.subtree_quota) == (6.0, 8.0)


@pytest.mark.parametrize(
    ("expression", "ways"),
    [
        ("A || B && C || (D || E)", ("A", "B && C", "(D || E)")),
        ("(A || B)", ("A", "B")),
        ('A && "x || y" == B', ('A && "x || y" == B',)),
        ("A || B ? C : D", ("A || B ? C : D",)),
        ("A", ("A",)),
    ],
)
def test_alternatives_are_those_of_the_loosest_operator(
    expression: str, ways: tuple[str, ...]
) -> None:
    assert alternatives(expression) == ways


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
    known = prospect(RECORD, "cms", 8, NOW)
    assert (known.block_nodes, known.block_seconds) == (("wn-2", "wn-1"), 300.0)
    assert (known.started, known.share_hs06, known.over) == (TIMES, None, "")
    assert prospect(replace(RECORD, observed=True), "cms", 8, NOW).block_nodes == ()
    assert prospect(RECORD, "cms", 2, NOW).started is None


def test_an_old_cycle_or_none_says_nothing_of_now() -> None:
    assert prospect(None, "cms", 8, NOW).problem
    assert prospect(RECORD, "cms", 8, NOW + OLD_SECONDS).problem
    assert Prospect(None, 1, NOW, 500.0, 380.0, 120.0).over == "120 HS06 over its share of 380"
