"""Ads of slots: the target that each acts on, grace, switches, and why it refuses."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, Optional

import classad2
import htcondor2  # noqa: F401 - classad2 resolves names as the daemons do only once it is there

from sharectl.condor.node_ads import (
    Awaited,
    constraint_of,
    facts_of,
    is_draining,
    obedience_of,
    words_of,
)
from sharectl.condor.pool_look import NEEDED, TESTED, version_of
from sharectl.plan.nodes import NO_VERSION, NodeWords, version_problems
from tests.fakes import NOW, Listing
from tests.slot_status import status_of

STALE_SECONDS = 90
SNIPPET = Path(__file__).parents[3] / "config.d" / "60-sharectl-execute-point.conf"
TIMES = ("t1_JobCtlTime", "MyCurrentTime", "t1_TargetUntil")
TARGET: dict[str, Any] = {"t1_Targetcores": [56, 8], "t1_TargetUntil": NOW + 9}


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


AWAITED = {
    "nothing is published": Awaited(),
    "a plan": Awaited(valid=True),
    "a file, not looked at": Awaited(valid=True, file_since=NOW - 9),
    "a file": Awaited(valid=True, file_since=NOW - 99),
    "an ad, not looked at": Awaited(ads_since={"wn-1": NOW - 9}),
    "an ad": Awaited(ads_since={"wn-1": NOW - 99}),
    "an ad of another node": Awaited(ads_since={"wn-2": NOW - 99}),
}


def test_a_slot_obeys_or_refuses_and_its_run_is_stale_by_the_clock_of_its_node(
    listing: Listing,
) -> None:
    """Attributes in the place of those of `slot`; times are seconds from now."""

    def outcome(text: str) -> list[str]:
        given = {
            name: NOW + value if name in TIMES and type(value) is int else value
            for name, value in ast.literal_eval(text).items()
        }
        ad = classad2.ClassAd({**slot(), **given})
        newest, refusal = obedience_of([facts_of(ad, NOW, STALE_SECONDS)])
        statuses = {name: status_of([ad], NOW, STALE_SECONDS, by) for name, by in AWAITED.items()}
        (reason,) = statuses["a plan"]["reasons"]
        problem = [name for name, status in statuses.items() if status["refusing"]]
        lines = [f"{reason}: acts on {newest}, refuses by {refusal}"]
        return lines + [f"a problem with {', '.join(problem)}"] * bool(problem)

    listing("condor/slots.txt", outcome, 24)


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


def test_a_version_fits_within_its_series(listing: Listing) -> None:
    """Version of three nodes, beside that of the central manager, which five have."""

    def outcome(text: str) -> list[str]:
        of_node, central = text.split()
        version = NO_VERSION if of_node == "NONE" else of_node
        return version_problems({central: 5, version: 3}, {version: "wn-1"}, central)

    listing("condor/versions.txt", outcome, 8)


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


def test_the_snippet_needs_what_the_checks_say() -> None:
    """A version without a patch level: that of HTCondor's `if version`."""
    assert f"\nif version < {'.'.join(map(str, NEEDED))}\n" in SNIPPET.read_text()
    assert NEEDED <= TESTED
    assert (version_of("$CondorVersion: 25.14.1 x"), version_of("9" * 99)) == ((25, 14, 1), ())
