"""Pending jobs tried on slots by HTCondor's own library, on ads as the daemons send them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import classad2
import htcondor2
import pytest

from sharectl.condor.deadline import Question
from sharectl.condor.empty_slots import Sample, asking, kinds, rows_of, sample_of
from sharectl.condor.job_trials import JobShape, Shapes, Trial, ask_both, jobs_and_shapes, tried
from sharectl.condor.schedd_jobs import Sizes, count_pending

SLOT = {
    "Requirements": "START && (WithinResourceLimits)",
    "WithinResourceLimits": "MY.Cpus > 0 && TARGET.RequestCpus <= MY.Cpus"
    " && TARGET.RequestMemory <= MY.Memory",
    "Start": "true",
    "MachineResources": '"Cpus Memory Disk"',
    "PartitionableSlot": "true",
    "State": '"Unclaimed"',
    # All is held now.
    "Cpus": "0",
    "Memory": "0",
    "Disk": "0",
    "TotalSlotCpus": "16",
    "TotalSlotMemory": "64000",
    "TotalSlotDisk": "1000000",
    "Arch": '"X86_64"',
    "LoadAvg": "15.0",
}
JOB = {
    "JobUniverse": "5",
    "AcctGroup": '"cms"',
    "RequestCpus": "8",
    "RequestMemory": "1000",
    "RequestDisk": "100",
}
OWN = (
    '(TARGET.Arch == "X86_64") && (TARGET.Cpus >= RequestCpus) && (TARGET.Memory >= RequestMemory)'
)
OURS = (
    "(true) && (MY.t1_GraceAdmits isnt false && MY.t1_TargetAdmits isnt false && "
    "MY.t1_CoolAdmits isnt false)"
)
ADMITS = {
    "t1_GraceAdmits": "MY.MC_GRACE =!= true || TARGET.RequestCpus > 8",
    "t1_TargetAdmits": "MY.t1_TargetActive =!= true",
    "t1_CoolAdmits": "MY.t1_overheat =!= true",
    "MC_GRACE": "true",
    "t1_TargetActive": "true",
    "t1_overheat": "true",
}
SAMPLE = Sample(words=("acctgroup", "owner"), resources=("Cpus", "Memory", "Disk"))
DOUBLED = {f"A{n}": f"strcat(A{n - 1}, A{n - 1})" for n in range(1, 40)}


def text_of(ad: Mapping[str, str]) -> str:
    return "\n".join(f"{name} = {value}" for name, value in ad.items())


def referred(ad: Any, projection: Sequence[str]) -> Any:
    """Attributes of the projection, and those that they refer to, as a collector sends them."""
    sent = classad2.ClassAd()
    waiting = list(projection)
    while waiting:
        name = waiting.pop()
        if name in ad and name not in sent:
            sent[name] = ad.lookup(name)
            waiting += ad.internalRefs(ad.lookup(name))
    return sent


def slots(*changes: Mapping[str, str]) -> Any:
    """Look at slots that differ from `SLOT`, with what the attributes asked for refer to."""
    ads = [
        {**SLOT, "Name": f'"slot1@wn-{number}"', "Machine": f'"wn-{number}"', **change}
        for number, change in enumerate(changes, 1)
    ]

    def look(projection: Sequence[str], constraint: str = "true") -> Iterable[Any]:
        assert "MachineResources" in projection
        every = [classad2.parseOne(text_of(ad), classad2.ParserType.Old) for ad in ads]
        meeting = [ad for ad in every if classad2.ExprTree(constraint).eval(ad) is True]
        return [referred(ad, projection) for ad in meeting]

    return look


def trial(look: Any, *jobs: Mapping[str, str], deadline_seconds: float = 30) -> Trial:
    ads = [{**JOB, "Requirements": OWN, **job} for job in jobs]
    shapes = [
        JobShape(("cms", 8, number), 3, f"ap#{number}.0", text_of(ad))
        for number, ad in enumerate(ads)
    ]
    return tried(look, SAMPLE, [(shapes, True)], deadline_seconds)


def accepting(look: Any, sample: Sample) -> list[dict[str, str]]:
    """Rows of what slots ask of jobs."""
    return [asking(row, frozenset(sample.words)) for row in rows_of(look, sample, ())]


def wants(clause: str, **more: str) -> dict[str, str]:
    return {"Requirements": f"({clause}) && {OWN}", **more}


def unplaceable(look: Any, *jobs: Mapping[str, str]) -> list[int]:
    done = trial(look, *jobs)
    assert done.untried is None
    return sorted(found.kind[2] for found in done.unplaceable)


@pytest.mark.parametrize(
    "clause",
    [
        "TARGET.HasFoo",
        "TARGET.HasFoo =?= true",
        'TARGET.Machine == "wn-9"',
        "TARGET.Cpus > 16",
        "TARGET.Memory >= 64001",
        "TARGET.Nope =?= 1 && time() > 5",
        "0",
    ],
)
def test_what_no_slot_has_even_when_empty_is_no_demand(clause: str) -> None:
    (found,) = trial(slots({}, {}), wants(clause)).unplaceable
    assert (found.kind, found.jobs, found.example) == (("cms", 8, 0), 3, "ap#0.0")
    assert found.reason == clause.partition(" && ")[0]


@pytest.mark.parametrize(
    "clause",
    [
        "true",
        "TARGET.Cpus >= 16",
        'TARGET.Machine == "wn-2"',
        "TARGET.Cpus == 16 && TARGET.HasBar",
        # What cannot be told, and what changes from minute to minute.
        "error",
        '"text" > 3',
        "TARGET.LoadAvg < 0.1",
        'TARGET.Activity == "Idle"',
        "time() < 5",
        "TARGET.NightOnly",
        'formatTime() == "midnight"',
        "TARGET.TotalTimeUnclaimedIdle > 60",
        'TARGET.RemoteGroup =?= "cms"',
        'userMap("map", Owner) =?= "wheel"',
        # Not of an empty node, and of one that is partly free.
        "TARGET.Cpus == 8",
        "TARGET.Cpus <= 12",
        "TARGET.Memory < 20000",
        "TARGET.Cpus < 9 && TARGET.Memory > 50000",
    ],
)
def test_what_some_slot_has_when_empty_or_may_have_is_demand(clause: str) -> None:
    look = slots({}, {"HasBar": "true", "NightOnly": "ClockMin > 9999"})
    assert unplaceable(look, wants(clause)) == []


@pytest.mark.parametrize(
    ("start", "job", "is_demand"),
    [
        ("TARGET.RequestCpus == 1", {}, False),
        ("RequestCpus == 1", {}, False),
        ('TARGET.AcctGroup =?= "atlas"', {}, False),
        ('TARGET.AcctGroup =?= "atlas"', {"AcctGroup": '"atlas"'}, True),
        # Nobody can tell what the job would have to say.
        ("TARGET.Queue == 3", {}, True),
        # Closed, unhealthy, or asking for another time of day.
        ("false", {}, True),
        ("NODE_IS_HEALTHY =?= true", {}, True),
        ("MY.StartJobs", {}, True),
        ("ClockMin > 9999", {}, True),
        ("TARGET.RequestCpus == 1 || ClockMin > 9999", {}, True),
        ("MY.Cpus < 12 || TARGET.RequestCpus == 1", {}, True),
        ("MY.Cpus < 8 || TARGET.RequestCpus == 1", {}, False),
        # Read on the node: there may be a map.
        ('userMap("map", TARGET.Owner) =?= "wheel"', {"Owner": '"bob"'}, True),
        # Not of the slot: of the job, by any name, or to come.
        ('ifThenElse(Experiment =?= "cms", true, RequestCpus == 1)', {"Experiment": '"cms"'}, True),
        ("TARGET.RequestCpus == 1 || MY.NodeIsReady =?= true", {}, True),
        # No node of the sample looks at it, so the schedds do not tell it.
        ("TARGET.WantsFast =?= true", {}, True),
        (OURS, {}, True),
        (f"TARGET.RequestCpus == 1 && {OURS}", {}, False),
    ],
)
def test_start_counts_where_it_asks_something_lasting_of_the_job(
    start: str, job: Mapping[str, str], *, is_demand: bool
) -> None:
    assert (unplaceable(slots({"Start": start, **ADMITS}), job) == []) is is_demand


def test_a_slot_that_is_drained_takes_what_it_has_room_for() -> None:
    drained = {"Requirements": "false", "Draining": "true", "State": '"Drained"'}
    assert unplaceable(slots(drained), {}, {"RequestCpus": "17"}, wants("TARGET.HasFoo")) == [1, 2]


def test_a_static_slot_counts_as_well() -> None:
    static = {"PartitionableSlot": "false", "State": '"Claimed"', "TotalSlotCpus": "1", "Cpus": "1"}
    assert unplaceable(slots(static), {}, {"RequestCpus": "1"}) == [0]


def test_a_resource_of_which_the_slot_does_not_tell_all_is_no_reason() -> None:
    busy = {"MachineResources": '"Cpus Memory Disk Licences"', "Licences": "0"}
    more = "TARGET.RequestLicences <= MY.Licences"
    limits = {"WithinResourceLimits": f"{SLOT['WithinResourceLimits']} && {more}"}
    job = wants("TARGET.Licences >= RequestLicences", RequestLicences="2")
    assert unplaceable(slots({**busy, **limits}), job) == []


def test_a_thousand_nodes_that_differ_in_disk_and_name_are_one_kind() -> None:
    look = slots(*({"TotalSlotDisk": str(10**6 + number)} for number in range(1000)))
    assert len(kinds(accepting(look, SAMPLE))) == 1
    disk = "TARGET.Disk >= {}"
    assert unplaceable(look, wants(disk.format(10**6 + 999)), wants(disk.format(10**6 + 1000))) == [
        1
    ]


class FakeCollector:
    """A collector that has the slots of `slots`."""

    def __init__(self, look: Any) -> None:
        self.look = look

    def query(self, kind: object, *, constraint: str, projection: Sequence[str]) -> Iterable[Any]:
        del kind
        ads: Iterable[Any] = self.look(projection, constraint)
        return ads


def test_what_slots_have_alike_need_not_be_sent_for_each() -> None:
    site = {"Start": 'TARGET.Owner != "x\\y\\"z" && MY.Room > 3', "Room": "5"}
    other = {"Start": "Room > 3 && TARGET.RequestCpus > 1", "Room": "TotalSlotCpus - 10"}
    look = slots(site, {**site, "Room": "7"}, {}, other, {**site, "Room": "LoadAvg * 2"})
    sample = sample_of(FakeCollector(look), ["wn-1", "wn-3"])
    assert (len(sample.policies), sample.words) == (2, ("owner", "requestcpus", "requestmemory"))
    alike, apart = (
        {frozenset(row.items()) for row in accepting(look, taken)}
        for taken in (sample, Sample(sample.words, sample.resources))
    )
    assert len(apart) == 3
    assert alike == apart


@pytest.mark.parametrize(
    "hostile",
    [
        wants("size(A39) > TARGET.Cpus", A0='"xxxxxxxxxxxxxxxx"', **DOUBLED),
        wants(
            "A39 > TARGET.Cpus",
            A0="1 + TARGET.Cpus",
            **{n: f"A{int(n[1:]) - 1} + A{int(n[1:]) - 1}" for n in DOUBLED},
        ),
    ],
)
def test_a_hostile_job_ends_no_trial_and_is_named(hostile: Mapping[str, str]) -> None:
    began = time.monotonic()
    longer = {**wants("TARGET.HasFoo"), "Remark": f'"{"x" * 3000}"'}
    done = trial(slots({}), {}, hostile, wants("TARGET.HasFoo"), longer)
    assert time.monotonic() - began < 30
    assert [found.kind[2] for found in done.unplaceable] == [2, 3]
    # As an error or as one that ended the process: it counts as before.
    assert done.untried is None or done.untried.startswith(
        "1 kinds of pending jobs could not be tried"
    )


def test_a_trial_without_time_says_so() -> None:
    done = trial(slots({}), wants("TARGET.HasFoo"), deadline_seconds=0)
    assert done.unplaceable == ()
    assert (
        done.untried
        == "1 kinds of pending jobs could not be tried on the nodes (no answer within 0 s)"
    )


def test_jobs_that_are_not_to_be_tried_and_those_beyond_are_named() -> None:
    look = slots({})
    long = JobShape(("cms", 8, 0), 3, "ap#1.0", None)
    assert "1 kinds of pending jobs could" in str(tried(look, SAMPLE, [([long], True)]).untried)
    assert "a schedd has more than" in str(tried(look, SAMPLE, [([], False)]).untried)


SIGNIFICANT = ("Requirements", "RequestCpus", "RequestMemory", "RequestDisk")
"""Attributes by which the fake negotiator tells jobs apart."""


class FakeSchedd:
    """Jobs grouped as a schedd does it, and the constraints that it was asked to group by."""

    def __init__(self, *jobs: Mapping[str, str]) -> None:
        self.jobs = [self._parsed({**JOB, "Requirements": OWN, **job}) for job in jobs]
        self.clusters = [job for job in self.jobs if "AutoClusterId" in job]
        self.grouped: list[tuple[str, bool]] = []

    @staticmethod
    def _parsed(job: Mapping[str, str]) -> Any:
        ad = classad2.parseOne(text_of({"JobStatus": "1", **job}), classad2.ParserType.Old)
        ad["JobCount"] = ad.get("JobCount", 1)
        return ad

    def query(
        self,
        constraint: str = "true",
        projection: Sequence[str] = (),
        opts: int = 0,
        limit: int = -1,
    ) -> list[Any]:
        del limit
        if opts == htcondor2.QueryOpt.AutoCluster:
            clusters = {job["AutoClusterId"]: job for job in self.clusters}
            return [self._row([job], (*SIGNIFICANT, "AutoClusterId")) for job in clusters.values()]
        jobs = [job for job in self.jobs if classad2.ExprTree(constraint).eval(job) is True]
        if opts != htcondor2.QueryOpt.GroupBy:
            return []
        self.grouped.append((constraint, "Requirements" in projection))
        groups: dict[str, list[Any]] = {}
        for job in jobs:
            seen = self._row([job], projection)
            del seen["JobCount"]
            groups.setdefault(str(seen), []).append(job)
        return [self._row(alike, projection) for alike in groups.values()]

    @staticmethod
    def _row(jobs: Sequence[Any], projection: Sequence[str]) -> Any:
        row = referred(jobs[0], projection)
        row["JobCount"] = sum(job["JobCount"] for job in jobs)
        row["JobIds"] = "7.0 ... 7.3"
        return row


def test_jobs_of_many_users_are_tried_once_where_nobody_looks_at_their_group() -> None:
    users = [{"AccountingGroup": f'"cms.user{number}"', "JobCount": "4"} for number in range(3)]
    looking = {**users[0], "Requirements": 'MY.AccountingGroup == "cms.user0"'}
    schedd, sizes = FakeSchedd(*users, looking), Sizes(8)
    jobs, (shapes, complete) = jobs_and_shapes(schedd, "ap", sizes, "counted", ["requestcpus"])
    assert (complete, jobs) == (True, count_pending(schedd, "ap", sizes))
    assert sum(jobs.pending.values()) == 16
    assert [(shape.jobs, shape.example) for shape in shapes] == [(4, "ap#7.0")] * 4
    assert len({shape.ad for shape in shapes}) == 2
    assert "cms.user0" in str(shapes[-1].ad)
    _, (shapes, _) = jobs_and_shapes(schedd, "ap", sizes, "counted", ["accountinggroup"])
    assert len({shape.ad for shape in shapes}) == 4


OTHER = {"Requirements": f"TARGET.HasFoo && MY.Tag == 3 && {OWN}", "Tag": "3", "JobCount": "7"}
NEW = {**OTHER, "Owner": '"bob"', "RequestCpus": "1"}
ROWS, ALL = ("JobStatus == 1", False), ("JobStatus == 1", True)
FRESH = ("JobStatus == 1 && AutoClusterId =?= undefined", True)


@pytest.mark.parametrize(
    ("ids", "stale", "grouped"),
    [
        ((1, 2, 3), {}, [ROWS]),
        ((None, None, None), {}, [ALL]),
        # The negotiator has not seen the last one yet.
        ((1, 2, None), {}, [ROWS, FRESH]),
        # Autoclusters were numbered again after they were asked for.
        ((1, 2, 3), {"RequestMemory": "5"}, [ROWS, ALL]),
        ((1, 2, 9), {"AutoClusterId": "3"}, [ROWS, ALL]),
    ],
)
def test_by_autoclusters_jobs_and_shapes_are_what_they_are_without(
    ids: Sequence[Any], stale: Mapping[str, str], grouped: list[tuple[str, bool]]
) -> None:
    jobs: tuple[Mapping[str, str], ...] = ({}, OTHER, NEW)
    plain = FakeSchedd(*jobs)
    numbered = [
        {**job, **({} if number is None else {"AutoClusterId": str(number)})}
        for number, job in zip(ids, jobs)
    ]
    schedd = FakeSchedd(*numbered)
    if stale:
        schedd.clusters = FakeSchedd(*numbered[:2], {**numbered[2], **stale}).clusters
    words = ["acctgroup", "owner"]
    seen, expected = (
        jobs_and_shapes(asked, "ap", Sizes(8), "counted", words) for asked in (schedd, plain)
    )
    assert seen == expected
    assert sorted(shape.jobs for shape in seen[1][0]) == [1, 7, 7]
    assert schedd.grouped == grouped


def test_trouble_with_shapes_hides_no_jobs() -> None:
    def die() -> None:
        os._exit(3)

    def hang() -> None:
        time.sleep(60)

    shapes: Shapes = ([], True)
    both = {
        "well": Question(lambda: ("jobs", shapes), 30),
        "dies": Question(die, 30),
        "hangs": Question(hang, 0.6),
        "slow": Question(hang, 0.6),
    }
    plain = {name: Question(lambda: "jobs alone", 30) for name in both}
    plain["hangs"] = Question(hang, 0.6)
    began = time.monotonic()
    answers, every, problems = ask_both(plain, both)
    assert time.monotonic() - began < 5
    values = {name: answer.value for name, answer in answers.items()}
    alone = "jobs alone"
    assert values == {"well": "jobs", "dies": alone, "hangs": None, "slow": alone}
    assert (every, len(problems)) == ([shapes], 3)
    assert ask_both({"slow": plain["slow"]}, {})[0]["slow"].value == alone
