"""What the snapshot takes from the ad of a slot, and from those of jobs that wait."""

from __future__ import annotations

from typing import Any, Optional

import classad2
import htcondor2  # noqa: F401 - classad2 resolves names as the daemons do only once it is there
import pytest

from sharectl.condor.nodes import is_draining, obedience_of
from sharectl.condor.schedds import Sizes, counted_kinds, with_memory
from tests.fakes import NOW

Kind = tuple[Optional[str], int, int]
STALE_SECONDS = 120
ACTING = {
    "t1_Targetcores": [56, 8],
    "t1_TargetUntil": NOW + 60,
    "t1_TargetSequence": 7,
    "t1_JobCtlReason": "ok",
}


def slot(**attributes: Any) -> dict[str, Any]:
    return {"t1_JobCtlTime": NOW - 30, "MyCurrentTime": NOW, **attributes}


@pytest.mark.parametrize(
    ("ad", "sequence", "refusal"),
    [
        (slot(**ACTING), 7, None),
        (slot(**{**ACTING, "t1_TargetUntil": NOW}), 0, None),
        (slot(**{**ACTING, "t1_TargetSequence": 0}), None, None),
        (slot(**{**ACTING, "t1_TargetActive": False}), 0, None),
        (slot(t1_JobCtlReason="no-line"), 0, None),
        (slot(t1_JobCtlReason="bad-signature"), 0, "bad-signature"),
        (slot(t1_JobCtlReason="no-ad"), 0, None),
        (slot(t1_JobCtlReason="expired"), 0, None),
        (slot(t1_JobCtlReason="ok", t1_JobCtlTime=NOW - 500), 0, "stale"),
        (slot(t1_JobCtlReason="\x1b[2J"), 0, "unknown-code"),
        (slot(), None, None),
        (slot(t1_JobCtlReason=classad2.Value.Error), None, None),
    ],
)
def test_what_a_node_says_of_its_target(
    ad: dict[str, Any], sequence: Optional[int], refusal: Optional[str]
) -> None:
    assert obedience_of(classad2.ClassAd(ad), NOW, STALE_SECONDS) == (sequence, refusal)


def test_a_node_is_drained_from_the_moment_it_says_so() -> None:
    """As seen on 23.9.6 and 25.14.1 during condor_drain, and after -cancel."""
    assert is_draining(classad2.ClassAd({"State": "Unclaimed", "Draining": True}))
    assert is_draining(classad2.ClassAd({"State": "Drained"}))
    assert not is_draining(classad2.ClassAd({"State": "Unclaimed"}))
    assert not is_draining(classad2.ClassAd({"State": "Claimed", "Draining": False}))
    assert not is_draining(classad2.ClassAd({"State": classad2.Value.Error, "Draining": "yes"}))


def job(cpus: str, memory: str = "1000", **attributes: Any) -> classad2.ClassAd:
    ad = classad2.ClassAd(
        {"AccountingGroup": "cms.bob", "JobUniverse": 5, "JobCount": 1, **attributes}
    )
    ad["RequestCpus"], ad["RequestMemory"] = classad2.ExprTree(cpus), classad2.ExprTree(memory)
    return ad


WHOLE_NODE = {"TotalSlotCpus": 64, "TotalCpus": 64, "Cpus": 64}


@pytest.mark.parametrize(
    ("cpus", "whole_node", "counted"),
    [
        ("16", WHOLE_NODE, 16),
        ("100", WHOLE_NODE, 64),
        ("100", {}, 64),
        ("TARGET.TotalSlotCpus", WHOLE_NODE, 64),
        ("TARGET.TotalSlotCpus", {}, 1),
        ("TotalCpus / 2", WHOLE_NODE, 32),
        ("2 * MY.Half", WHOLE_NODE, 4),
        ("1 / 0", WHOLE_NODE, 1),
        ("TARGET.Foo", WHOLE_NODE, 1),
        ('"many"', WHOLE_NODE, 1),
        ("-3", WHOLE_NODE, 1),
        ("real(1) / 0.0", WHOLE_NODE, 1),
    ],
)
def test_cores_that_a_job_asks_for(cpus: str, whole_node: dict[str, int], counted: int) -> None:
    ((_, cores, _),) = counted_kinds([job(cpus, Half=2)], Sizes(64, whole_node))
    assert cores == counted


@pytest.mark.parametrize(
    ("memory", "counted"),
    [
        ("1000", 1024),
        ("undefined", 0),
        ("1 / 0", 0),
        ("3 * 1000", 3072),
        ('"8G"', 0),
        ("-1", 0),
        ("1e30", 0),
    ],
)
def test_memory_that_a_job_asks_for(memory: str, counted: int) -> None:
    ((_, _, memory_mib),) = counted_kinds([job("1", memory)], Sizes(8))
    assert memory_mib == counted


def test_beyond_so_many_kinds_memory_is_that_of_a_sample() -> None:
    counted: dict[Kind, int] = {("cms", 1, 0): 101, ("atlas", 8, 0): 3, ("lhcb", 1, 0): 5}
    sample: dict[Kind, int] = {("cms", 1, 1024): 2, ("cms", 1, 2048): 2, ("atlas", 8, 16384): 1}
    assert with_memory(counted, sample) == {
        ("cms", 1, 1024): 50,
        ("cms", 1, 2048): 51,
        ("atlas", 8, 16384): 3,
        ("lhcb", 1, 0): 5,
    }
