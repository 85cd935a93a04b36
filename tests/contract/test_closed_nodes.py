"""Nodes that refuse waiting jobs, by HTCondor's own library, on ads as the daemons send them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest

from sharectl.model import OTHER, ClosedTo
from sharectl.snapshot.job_trials import Trial, tried
from sharectl.snapshot.schedd_jobs import JobKind, JobShape, Shapes
from tests.contract.test_job_trials import (
    ADMITS,
    DOUBLED,
    JOB,
    OURS,
    OWN,
    TOLD,
    answer,
    slots,
    text_of,
    wants,
)

NOW = {"MyCurrentTime": str(int(time.time()))}
QUIET = {**ADMITS, "t1_overheat": "false"}
CMS = JobShape(JobKind("cms.prod", 8, 0), 3, "ap#1.0", text_of({**JOB, "Requirements": OWN}))


def job(account: str = "cms", cores: int = 8, ad: Mapping[str, str] = {}, **more: str) -> JobShape:
    text = text_of({**JOB, "Requirements": OWN, **ad, **more})
    return CMS._replace(kind=JobKind(account, cores, 0), ad=text)


def trial(look: Any, *shapes: JobShape, complete: bool = True) -> Trial:
    queue = Shapes(shapes or (CMS,), complete=complete, attributes=TOLD)
    return tried(look, [answer(queue)], 30, lambda account: str(account).partition(".")[0])


def closed(slot: Mapping[str, str], *shapes: JobShape) -> dict[tuple[str, int], str]:
    """Kinds of jobs that a node with one such slot refuses, beside one that refuses none."""
    rows = trial(slots({**NOW, **slot}, NOW), *shapes).closed.get("wn-1", ())
    return {(row.group, cores): row.clause for row in rows for cores in row.sizes}


@pytest.mark.parametrize(
    ("slot", "clause"),
    [
        ({"Start": "false"}, "START"),
        ({"Start": "MY.IS_HEALTHY =?= true"}, "MY.IS_HEALTHY =?= true"),
        # Undefined: HTCondor takes it for false.
        ({"Start": "MY.IS_HEALTHY"}, "MY.IS_HEALTHY"),
        ({"Start": "IS_HEALTHY", "IS_HEALTHY": "MY.Load5 < 2", "Load5": "3"}, "IS_HEALTHY"),
        ({"Start": f"(true) && {OURS[10:]}", **ADMITS}, "MY.t1_CoolAdmits =!= false"),
        ({"Start": 'TARGET.AcctGroup == "atlas" && Arch == "X86_64"'},
         'TARGET.AcctGroup == "atlas"'),
        ({"Start": "TARGET.RequestCpus == 1 && true"}, "TARGET.RequestCpus == 1"),
        # By the slot's own clock, in its own ad.
        ({"Start": "time() - MY.CheckedAt < 60", "CheckedAt": "5"},
         "MY.MyCurrentTime - MY.CheckedAt < 60"),
        ({"Arch": '"ppc64le"'}, 'TARGET.Arch == "X86_64"'),
    ],
)  # fmt: skip
def test_a_clause_that_is_not_true_now_closes_a_node(slot: Mapping[str, str], clause: str) -> None:
    assert closed(slot) == {("cms", 8): clause}


@pytest.mark.parametrize(
    "slot",
    [
        {},
        {"Start": OURS, **QUIET},
        # Full, or too small: a plan looks at cores and memory.
        {"TotalSlotCpus": "4", "TotalSlotMemory": "500", "TotalSlotDisk": "1"},
        {"Start": "MY.Cpus >= 12", "TotalSlotCpus": "8"},
        # What jobs do to it ends with them.
        {"Start": 'LoadAvg < 1 && MY.State == "Unclaimed"', "State": '"Claimed"'},
        # The copy is older than the check, and the node's own clock is behind.
        {"Start": "time() - MY.CheckedAt < 60", "MyCurrentTime": "1000", "CheckedAt": "990"},
        # Errors, what only the node can tell, and what jobs do not tell.
        {"Start": "error"},
        {"Start": '1 + "text" > 3'},
        {"Start": "nobody_knows(TARGET.Owner)"},
        {"Start": 'userMap("map", TARGET.Owner) =?= "wheel"'},
        {"Start": 'eval("MY.IS_" + "HEALTHY")'},
        {"Start": "random(1.0) > 1"},
        {"Start": "TARGET.WantsFast =?= true"},
        {"Start": "WantsFast =?= true"},
        {"Start": 'TARGET.SubmitterGroup =?= "cms"'},
        {"Requirements": "false", "Draining": "true", "State": '"Drained"'},
    ],
)
def test_all_else_closes_none(slot: Mapping[str, str]) -> None:
    assert closed(slot) == {}


def test_a_node_is_closed_to_a_group_and_size_alone() -> None:
    of_atlas = job("atlas", AcctGroup='"atlas"')
    small = job("cms", 1, RequestCpus="1")
    start = {"Start": 'TARGET.AcctGroup =?= "atlas" || TARGET.RequestCpus == 1'}
    rows = trial(slots({**NOW, **start}, NOW), CMS, of_atlas, small).closed
    assert rows == {"wn-1": (ClosedTo("cms", (8,), start["Start"]),)}


def test_one_job_of_a_kind_that_may_start_opens_the_node_and_one_that_is_not_tried_too() -> None:
    start = {"Start": 'TARGET.Owner =?= "bob"'}
    others = job(Owner='"ann"'), job("cms.user", Owner='"joe"')
    assert set(closed(start, *others)) == {("cms", 8)}
    for last in (job(Owner='"bob"'), CMS._replace(ad=None)):
        assert closed(start, *others, last) == {}
    # That no node could run is no demand.
    assert set(closed(start, *others, job(ad=wants("TARGET.HasFoo")))) == {("cms", 8)}
    assert closed({"Start": "false"}, job(OTHER)) == {}


def test_several_slots_are_closed_together() -> None:
    half = {**NOW, "Machine": '"wn-1"'}
    assert trial(slots({**half, "Start": "false"}, half)).closed == {}
    both = trial(slots({**half, "Start": "false"}, {**half, "Start": "false"})).closed
    assert set(both) == {"wn-1"}


def test_a_resource_that_jobs_hold_opens_and_one_that_a_node_lacks_closes() -> None:
    gpu = job(ad=wants("countMatches(MY.RequireGPUs, TARGET.AvailableGPUs) >= RequestGPUs",
                      RequestGPUs="1", RequireGPUs="Capability > 1"))  # fmt: skip
    has = {
        "MachineResources": '"Cpus Memory Disk GPUs"',
        "GPUs": "0",
        "TotalSlotGPUs": "1",
        "AvailableGPUs": "{ }",
    }
    nodes = trial(slots({**NOW, **has}, NOW), gpu).closed
    assert set(nodes) == {"wn-2"}


def test_what_could_not_be_tried_in_time_closes_nothing() -> None:
    hostile = wants("size(A39) > TARGET.Cpus", A0='"xxxxxxxxxxxxxxxx"', **DOUBLED)
    look, shut = slots({**NOW, "Start": "false"}), ("cms", 8)
    assert shut in closed({"Start": "false"})
    done = trial(look, CMS, job(ad=hostile)._replace(user="mallory"), job("atlas"))
    told = {row.group for rows in done.closed.values() for row in rows}
    assert told == {"atlas", "cms"}
    assert trial(look, CMS, complete=False).closed == {}
    silent = [answer(Shapes((CMS,), complete=True, attributes=TOLD)), answer(None, "no answer")]
    assert tried(look, silent, 30, str).closed == {}


def test_nodes_that_differ_in_what_no_clause_asks_are_looked_at_once() -> None:
    nodes = [{**NOW, "TotalSlotDisk": str(10**6 + n), "Tag": str(n)} for n in range(1000)]
    look = slots(*nodes[:500], *({**node, "Start": "MY.IS_HEALTHY"} for node in nodes[500:]))
    # As condor_submit writes it: the version and the disk in one clause.
    disk = 'versionGE(split(TARGET.CondorVersion)[1],"25.12.0") || (TARGET.Disk >= RequestDisk)'
    closed_nodes = trial(look, job(ad=wants(disk))).closed
    assert len(closed_nodes) == 500
    assert len({id(row) for row in closed_nodes.values()}) == 1
