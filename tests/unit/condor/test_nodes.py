"""Ads of slots: the target that each acts on, grace, switches, and why it refuses."""

from __future__ import annotations

from typing import Any, Optional

import classad2
import htcondor2  # noqa: F401 - classad2 resolves names as the daemons do only once it is there
import pytest

from sharectl.condor.node_ads import (
    Awaited,
    constraint_of,
    facts_of,
    is_draining,
    obedience_of,
    status_of,
    words_of,
)
from sharectl.plan.nodes import (
    NEVER_RAN,
    NO_VERSION,
    NOT_PUBLISHED,
    STALE,
    UNKNOWN_CODE,
    NodeWords,
    version_problems,
)
from tests.fakes import NOW

STALE_SECONDS = 90
TARGET: dict[str, Any] = {"t1_Targetcores": [56, 8], "t1_TargetUntil": NOW + 9}
ACTING: dict[str, Any] = {**TARGET, "t1_TargetSequence": 7}


def slot(code: Optional[str] = "ok", **attributes: Any) -> dict[str, Any]:
    return {
        "Machine": "wn-1.example.org",
        "t1_JobCtlReason": code,
        "t1_JobCtlTime": NOW - 30,
        "MyCurrentTime": NOW,
        **attributes,
    }


def as_ad(attributes: dict[str, Any], **expressions: str) -> classad2.ClassAd:
    ad = classad2.ClassAd(attributes)
    for name, expression in expressions.items():
        ad[name] = classad2.ExprTree(expression)
    return ad


@pytest.mark.parametrize(
    ("ad", "sequence", "refusal"),
    [
        (slot(**ACTING), 7, None),
        (slot(**{**ACTING, "t1_TargetUntil": NOW}), 0, None),
        (slot(**{**ACTING, "t1_TargetSequence": 0}), None, None),
        (slot(**ACTING, t1_TargetActive=False), 0, None),
        (slot("no-line"), 0, None),
        (slot("bad-signature"), 0, "bad-signature"),
        (slot("no-ad"), 0, None),
        (slot(t1_JobCtlTime=NOW - 500), 0, "stale"),
        (slot("\x1b[2J"), 0, "unknown-code"),
        (slot(None), None, None),
    ],
)
def test_a_slot_obeys_or_refuses(
    ad: dict[str, Any], sequence: Optional[int], refusal: Optional[str]
) -> None:
    assert obedience_of([facts_of(classad2.ClassAd(ad), NOW, STALE_SECONDS)]) == (sequence, refusal)


def test_a_node_is_drained_from_the_moment_it_says_so() -> None:
    """As seen on 23.9.6 and 25.14.1 during condor_drain, and after -cancel."""
    assert is_draining(classad2.ClassAd({"State": "Unclaimed", "Draining": True}))
    assert is_draining(classad2.ClassAd({"State": "Drained"}))
    assert not is_draining(classad2.ClassAd({"State": "Claimed", "Draining": False}))
    assert not is_draining(classad2.ClassAd({"State": classad2.Value.Error, "Draining": "yes"}))


# ---- one node


def test_a_node_says_what_its_slots_say() -> None:
    acts = slot(t1_TargetActive=True, t1_TargetSequence=77)
    assert words_of([acts], NOW, 90) == NodeWords(77, None)
    assert words_of([acts, slot("unsigned")], NOW, 90) == NodeWords(77, "unsigned")
    assert words_of([], NOW, 90).problem == "the collector knows no partitionable slot of it"


def test_a_node_that_is_switched_off_says_by_what() -> None:
    by_file, by_knob = slot(t1_Disabled=True, t1_Enabled=True), slot(t1_Enabled=False)
    unclear = slot(t1_Disabled=classad2.Value.Error, t1_Enabled=classad2.Value.Undefined)
    assert words_of([by_file], NOW, 90) == NodeWords(0, None, switched_off=("file",))
    assert words_of([by_knob], NOW, 90).switched_off == ("knob",)
    assert words_of([by_file, by_knob, by_file], NOW, 90).switched_off == ("file", "knob")
    assert words_of([unclear, slot(t1_Disabled=False)], NOW, 90).switched_off == ()


def test_only_the_slots_of_that_node_are_asked() -> None:
    own, other = (
        classad2.ClassAd({"Machine": machine, "PartitionableSlot": True})
        for machine in ("CN-01.Example.org", "cn-011.example.org")
    )
    for name in ("cn-01", "cn-01.example.org"):
        constraint = classad2.ExprTree(constraint_of(name))
        # An error is a number in the bindings, and equal to 1.
        assert (constraint.eval(own) is True, constraint.eval(other) is False) == (True, True)


# ---- all nodes


def test_slots_are_counted_by_what_they_do() -> None:
    slots = [
        slot(**TARGET),
        slot(**{**TARGET, "t1_TargetUntil": NOW}),
        slot(MC_GRACE=True),
        slot("no-line", t1_Disabled=True, t1_Enabled=False),
        slot(t1_Disabled=False, t1_Enabled=False),
        slot(t1_Disabled="yes", t1_Enabled=True, t1_MulticoreOnly=True),
    ]
    status = status_of(slots, NOW, STALE_SECONDS)
    assert (status["slots"], status["with_target"], status["in_grace"]) == (6, 1, 1)
    switched_off = [status[key] for key in ("disabled", "disabled_by_knob", "multicore_only")]
    assert switched_off == [1, 2, 1]
    assert (status["reasons"], status["refusing"]) == ({"ok": 5, "no-line": 1}, {})


def test_versions_are_counted_with_a_node_of_each_where_job_ctl_runs() -> None:
    slots = [
        slot(Machine="a.example.org", t1_SharectlVersion="0.1.0"),
        slot(Machine="b.example.org", t1_SharectlVersion="0.1.0"),
        slot(Machine="c.example.org", t1_SharectlVersion="\x1b[2J"),
        slot(Machine="d.example.org"),
        slot(None, Machine="e.example.org", t1_SharectlVersion="0.9"),
    ]
    status = status_of(slots, NOW, STALE_SECONDS)
    assert status["versions"] == {"0.1.0": 2, NO_VERSION: 2}
    assert status["node_of_version"] == {"0.1.0": "a.example.org", NO_VERSION: "c.example.org"}


@pytest.mark.parametrize(
    ("version", "central", "verdict"),
    [
        ("0.1.0", "0.1.9", None),
        ("0.1.7", "0.1.0", None),
        ("0.1.0", "0.2.0", "old"),
        ("0.10.0", "0.9.0", "new"),
        ("1.0.0", "0.9.0", "new"),
        ("1.4.0", "1.5.0", None),
        ("1.4.0", "2.0.0", "old"),
        (NO_VERSION, "0.1.0", "old"),
    ],
)
def test_a_version_fits_within_its_series(
    version: str, central: str, verdict: Optional[str]
) -> None:
    problems = version_problems({central: 5, version: 3}, {version: "wn-1"}, central)
    assert len(problems) == (verdict is not None)
    if verdict:
        assert f"too {verdict} for {central} here" in problems[0]
        assert "wn-1" in problems[0]


def test_a_target_counts_by_what_start_goes_by() -> None:
    young = "MY.MyCurrentTime - MY.t1_JobCtlTime < 120 && MY.t1_Disabled =!= True"
    now = int(classad2.ExprTree("time()").eval())
    # An ad of 400 s ago, of a job that had run 30 s before.
    ran: dict[str, Any] = {**TARGET, "t1_JobCtlTime": now - 430, "MyCurrentTime": now - 400}
    slots = [
        as_ad(slot(**ran), t1_TargetActive=young),
        as_ad(slot(**{**ran, "t1_JobCtlTime": now - 530}), t1_TargetActive=young),
        as_ad(slot(**ran, t1_Disabled=True), t1_TargetActive=young),
        as_ad(slot(**ran), t1_TargetActive="undefined"),
        as_ad(slot(**ran), t1_TargetActive="error"),
        as_ad(slot(t1_JobCtlTime=now - 150), t1_TargetActive="true"),
    ]
    written = list(map(str, slots))
    targets = [status_of([ad], now, STALE_SECONDS)["with_target"] for ad in slots]
    assert targets == [1, 0, 0, 0, 0, 1]
    assert list(map(str, slots)) == written, "an ad that is read stays as it is"


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"t1_JobCtlTime": NOW - 89}, "ok"),
        ({"t1_JobCtlTime": NOW - 90}, STALE),
        ({"t1_JobCtlTime": "soon"}, STALE),
        ({"MyCurrentTime": None}, STALE),
        # The collector has an ad of ten minutes ago, and the node's clock is an hour behind: it ran
        # in time.
        ({"t1_JobCtlTime": NOW - 4230, "MyCurrentTime": NOW - 4200}, "ok"),
        ({"t1_JobCtlTime": NOW - 4290, "MyCurrentTime": NOW - 4200}, STALE),
        ({"t1_JobCtlReason": None}, NOT_PUBLISHED),
        ({"t1_JobCtlReason": None, "t1_Enabled": True}, NEVER_RAN),
        # The node's own limit comes first, unless it is nonsense.
        ({"t1_JobCtlTime": NOW - 2300, "t1_JobCtlStaleSeconds": 2340}, "ok"),
        ({"t1_JobCtlTime": NOW - 30, "t1_JobCtlStaleSeconds": 30}, STALE),
        ({"t1_JobCtlTime": NOW - 90, "t1_JobCtlStaleSeconds": 10**12}, STALE),
        ({"t1_JobCtlTime": NOW - 90, "t1_JobCtlReason": "bad-signature"}, STALE),
        ({"t1_JobCtlReason": "\x1b[2J"}, UNKNOWN_CODE),
    ],
)
def test_a_run_is_stale_by_the_clock_of_its_node(attributes: dict[str, Any], reason: str) -> None:
    assert list(status_of([slot(**attributes)], NOW, STALE_SECONDS)["reasons"]) == [reason]


@pytest.mark.parametrize(
    ("code", "awaited", "refusing"),
    [  # at NOW - 9 the node has not looked since
        ("ok", Awaited(valid=True, file_since=NOW - 99), False),
        ("bad-signature", Awaited(), True),
        ("no-file", Awaited(valid=True, file_since=NOW - 99), True),
        ("no-file", Awaited(valid=True, file_since=NOW - 9), False),
        ("expired", Awaited(), False),
        ("expired", Awaited(valid=True), True),
        ("no-ad", Awaited(ads_since={"wn-2": NOW - 99}), False),
        ("no-ad", Awaited(ads_since={"wn-1": NOW - 99}), True),
        ("no-ad", Awaited(ads_since={"wn-1": NOW - 9}), False),
        ("made-up", Awaited(), True),
    ],
)
def test_a_code_is_a_problem_if_there_is_something_for_the_node(
    code: str, awaited: Awaited, refusing: object
) -> None:
    assert bool(status_of([slot(code)], NOW, STALE_SECONDS, awaited)["refusing"]) is refusing
