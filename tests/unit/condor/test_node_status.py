from __future__ import annotations

from typing import Any

import classad2
import htcondor2  # noqa: F401 - classad2 resolves names as the daemons do only once it is there
import pytest

from sharectl.condor.nodes import Awaited, status_of
from sharectl.plan.nodes import NEVER_RAN, NOT_PUBLISHED, STALE, UNKNOWN_CODE, problems
from tests.fakes import NOW


def slot(**attributes: Any) -> dict[str, Any]:
    return {
        "Machine": "wn-1.example.org",
        "t1_JobCtlReason": "ok",
        "t1_JobCtlTime": NOW - 30,
        "MyCurrentTime": NOW,
        **attributes,
    }


def as_ad(attributes: dict[str, Any], **expressions: str) -> classad2.ClassAd:
    ad = classad2.ClassAd(attributes)
    for name, expression in expressions.items():
        ad[name] = classad2.ExprTree(expression)
    return ad


def test_slots_are_counted_by_what_they_do() -> None:
    target = {"t1_Targetcores": [56, 8], "t1_TargetUntil": NOW + 9}
    seen = status_of(
        [
            slot(**target),
            slot(**{**target, "t1_TargetUntil": NOW}),
            slot(MC_GRACE=True),
            slot(t1_Disabled=True, t1_JobCtlReason="no-line", t1_Enabled=False),
            slot(t1_Disabled=False, t1_Enabled=False),
            slot(t1_Disabled="yes", t1_Enabled=True, t1_MulticoreOnly=True),
        ],
        NOW,
        90,
    )
    assert (seen.slots, seen.with_target, seen.in_grace) == (6, 1, 1)
    assert (seen.disabled, seen.disabled_by_knob, seen.multicore_only) == (1, 2, 1)
    assert (seen.reasons, seen.refusing) == ({"ok": 5, "no-line": 1}, {})


def test_a_target_counts_by_what_start_goes_by() -> None:
    target = {"t1_Targetcores": [56, 8], "t1_TargetUntil": NOW + 9}
    young = "time() - MY.t1_JobCtlTime < 120 && MY.t1_Disabled =!= True"
    now = int(classad2.ExprTree("time()").eval())
    ran = {"t1_JobCtlTime": now - 430, "MyCurrentTime": now - 400}
    seen = [
        # An ad of 400 s ago, of a job that had run 30 s before.
        as_ad(slot(**target, **ran), t1_TargetActive=young),
        as_ad(slot(**target, **{**ran, "t1_JobCtlTime": now - 530}), t1_TargetActive=young),
        as_ad(slot(**target, **ran, t1_Disabled=True), t1_TargetActive=young),
        as_ad(slot(**target, **ran), t1_TargetActive="undefined"),
        as_ad(slot(**target, **ran), t1_TargetActive="error"),
        slot(**target, t1_TargetActive=False),
        slot(t1_TargetActive=True),
    ]
    assert [status_of([ad], now, 90).with_target for ad in seen] == [1, 0, 0, 0, 0, 0, 1]


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({}, "ok"),
        ({"t1_JobCtlTime": NOW - 89}, "ok"),
        ({"t1_JobCtlTime": NOW - 90}, STALE),
        ({"t1_JobCtlTime": "soon"}, STALE),
        # The collector has an ad of ten minutes ago, and the node's clock is an hour behind: it ran
        # in time.
        ({"t1_JobCtlTime": NOW - 4230, "MyCurrentTime": NOW - 4200}, "ok"),
        ({"t1_JobCtlTime": NOW - 4290, "MyCurrentTime": NOW - 4200}, STALE),
        ({"MyCurrentTime": None}, "ok"),
        ({"t1_JobCtlReason": None}, NOT_PUBLISHED),
        ({"t1_JobCtlReason": None, "t1_Enabled": True}, NEVER_RAN),
        ({"t1_JobCtlReason": None, "t1_JobCtlStaleSeconds": 120}, NEVER_RAN),
        # What the node goes by itself comes first, unless it is nonsense.
        ({"t1_JobCtlTime": NOW - 2300, "t1_JobCtlStaleSeconds": 2340}, "ok"),
        ({"t1_JobCtlTime": NOW - 30, "t1_JobCtlStaleSeconds": 30}, STALE),
        ({"t1_JobCtlTime": NOW - 30, "t1_JobCtlStaleSeconds": 0}, "ok"),
        ({"t1_JobCtlTime": NOW - 90, "t1_JobCtlStaleSeconds": 10**12}, STALE),
        ({"t1_JobCtlTime": NOW - 90, "t1_JobCtlReason": "bad-signature"}, STALE),
        ({"t1_JobCtlReason": "\x1b[2J"}, UNKNOWN_CODE),
    ],
)
def test_a_run_is_stale_by_the_clock_of_its_node(attributes: dict[str, Any], reason: str) -> None:
    assert list(status_of([slot(**attributes)], NOW, 90).reasons) == [reason]


def test_the_age_may_be_an_expression() -> None:
    ad = as_ad(slot(t1_JobCtlTime=NOW - 150), t1_JobCtlStaleSeconds="max({120, 3 * 60})")
    assert list(status_of([ad], NOW, 90).reasons) == ["ok"]


@pytest.mark.parametrize(
    ("code", "awaited", "refusing"),
    [  # at NOW - 9 the node has not looked since
        ("ok", Awaited(valid=True, file_since=NOW - 99), False),
        ("no-line", Awaited(valid=True, file_since=NOW - 99), False),
        ("bad-signature", Awaited(), True),
        ("no-file", Awaited(valid=True), False),
        ("no-file", Awaited(valid=True, file_since=NOW - 99), True),
        ("no-file", Awaited(valid=True, file_since=NOW - 9), False),
        ("expired", Awaited(), False),
        ("expired", Awaited(valid=True), True),
        ("no-ad", Awaited(valid=True), False),
        ("no-ad", Awaited(ads_since={"wn-2": NOW - 99}), False),
        ("no-ad", Awaited(ads_since={"wn-1": NOW - 99}), True),
        ("no-ad", Awaited(ads_since={"wn-1.example.org": NOW - 99}), True),
        ("no-ad", Awaited(ads_since={"wn-1": NOW - 9}), False),
        ("made-up", Awaited(), True),
    ],
)
def test_a_code_is_a_problem_if_there_is_something_for_the_node(
    code: str, awaited: Awaited, refusing: object
) -> None:
    assert bool(status_of([slot(t1_JobCtlReason=code)], NOW, 90, awaited).refusing) is refusing


def test_a_problem_says_how_many_and_what_to_do() -> None:
    slots = [slot(t1_JobCtlReason="bad-signature")] * 3 + [slot()] + [slot(t1_JobCtlReason=None)]
    seen = status_of(slots, NOW, 90)
    first, second = problems(seen.refusing, seen.slots)
    assert first.startswith(
        "3 of 5 partitionable slots: bad-signature: signed with a key that it has not"
    )
    assert second.startswith(
        "1 of 5 partitionable slots: not-published: never ran job_ctl: install"
    )
