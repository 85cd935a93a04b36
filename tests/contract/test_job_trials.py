"""Pending jobs tried on slots by HTCondor's own library, on ads as the daemons send them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import classad2
import htcondor2
import pytest

from sharectl.condor.deadline import Answer, Question
from sharectl.model import Source
from sharectl.snapshot.job_trials import Trial, ask_both, tried
from sharectl.snapshot.schedd_jobs import (
    MOST_ROWS,
    JobKind,
    JobShape,
    ScheddJobs,
    Shapes,
    shapes_of,
)

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
_OF_JOBS = "acctgroup owner requestcpus requestmemory requestdisk submittergroup"
TOLD = frozenset(_OF_JOBS.split())
"""Attributes by which the negotiator tells jobs apart; it makes the last one itself."""
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

    def look(projection: Sequence[str]) -> Iterable[Any]:
        every = (classad2.parseOne(text_of(ad), classad2.ParserType.Old) for ad in ads)
        return [referred(ad, projection) for ad in every]

    return look


def trial(look: Any, *jobs: Mapping[str, str], deadline_seconds: float = 30) -> Trial:
    ads = [{**JOB, "Requirements": OWN, **job} for job in jobs]
    shapes = (
        JobShape(JobKind("cms", 8, number), 3, f"ap#{number}.0", text_of(ad), user=f"u{number}")
        for number, ad in enumerate(ads)
    )
    attributes = TOLD.union(*({name.lower() for name in job} for job in jobs))
    return tried(
        look,
        [answer(Shapes(tuple(shapes), complete=True, attributes=attributes))],
        deadline_seconds,
    )


def answer(value: Any, problem: str | None = None) -> Answer:
    return Answer(Source("schedd ap", 0.1, problem), value)


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
        'TARGET.Machine == "wn-9"',
        "TARGET.Cpus > 16",
        "TARGET.Memory >= 64001",
        "TARGET.Cpus < 9 && TARGET.Memory > 50000",
        "TARGET.Nope =?= 1 && time() > 5",
        "0",
    ],
)
def test_what_no_slot_has_even_when_empty_is_no_demand(clause: str) -> None:
    (shape,) = trial(slots({}, {}), wants(clause)).unplaceable
    assert (shape.kind, shape.jobs, shape.example) == (JobKind("cms", 8, 0), 3, "ap#0.0")


@pytest.mark.parametrize(
    "clause",
    [
        "true",
        'TARGET.Machine == "wn-2"',
        "TARGET.Cpus == 16 && TARGET.HasBar",
        # What cannot be told, and what changes from minute to minute.
        "error",
        '"text" > 3',
        "TARGET.LoadAvg < 0.1",
        'TARGET.Activity == "Idle"',
        "TARGET.NightOnly",
        "TARGET.TotalTimeUnclaimedIdle > 60",
        'userMap("map", Owner) =?= "wheel"',
    ],
)
def test_what_some_slot_has_when_empty_or_may_have_is_demand(clause: str) -> None:
    look = slots({}, {"HasBar": "true", "NightOnly": "ClockMin > 9999"})
    assert unplaceable(look, wants(clause)) == []


@pytest.mark.parametrize(
    ("start", "job", "is_demand"),
    [
        ("TARGET.RequestCpus == 1", {}, False),
        ('TARGET.AcctGroup =?= "atlas"', {}, False),
        ('TARGET.AcctGroup =?= "atlas"', {"AcctGroup": '"atlas"'}, True),
        # Nobody can tell what the job would have to say.
        ("TARGET.Queue == 3", {}, True),
        # Closed, unhealthy, or asking for another time of day.
        ("false", {}, True),
        ("NODE_IS_HEALTHY =?= true", {}, True),
        ("ClockMin > 9999", {}, True),
        ("TARGET.RequestCpus == 1 || ClockMin > 9999", {}, True),
        ("MY.Cpus < 8 || TARGET.RequestCpus == 1", {}, False),
        # Read on the node: there may be a map.
        ('userMap("map", TARGET.Owner) =?= "wheel"', {"Owner": '"bob"'}, True),
        # Not of the slot: of the job, by any name, or to come.
        ('ifThenElse(Experiment =?= "cms", true, RequestCpus == 1)', {"Experiment": '"cms"'}, True),
        ("TARGET.RequestCpus == 1 || MY.NodeIsReady =?= true", {}, True),
        ('TARGET.SubmitterGroup =?= "cms"', {}, True),
        # No negotiator has seen a node that looks at it, so the schedds do not tell it.
        ("TARGET.WantsFast =?= true", {}, True),
        (OURS, {}, True),
        (f"TARGET.RequestCpus == 1 && {OURS}", {}, False),
    ],
)
def test_start_counts_where_it_asks_something_lasting_of_the_job(
    start: str, job: Mapping[str, str], *, is_demand: bool
) -> None:
    assert (unplaceable(slots({"Start": start, **ADMITS}), job) == []) is is_demand


@pytest.mark.parametrize(
    ("slot", "clause", "count"),
    [
        # Placeable, later, never.
        ({}, "time() > {now} + 600", (0, 1, 0)),
        ({}, "CurrentTime > {now} + 600", (0, 1, 0)),
        ({}, "time() > {now} - 600", (1, 0, 0)),
        ({}, "time() > {now} + 600 && TARGET.HasFoo", (0, 0, 1)),
        ({}, "(time() > {now} + 600 || TARGET.HasFoo)", (0, 1, 0)),
        ({}, "(TARGET.ToDie - time()) > 600", (0, 0, 1)),
        ({}, "TARGET.ClockMin == {minute} - 60", (0, 1, 0)),
        ({}, "TARGET.ClockDay < 7", (1, 0, 0)),
        ({}, "TARGET.ClockDay > 6", (0, 1, 0)),
        ({"ClockDay": "9"}, "TARGET.ClockMin == {minute} - 60", (1, 0, 0)),
        ({"IsNight": "ClockMin > {minute} + 60"}, "TARGET.IsNight", (0, 1, 0)),
        ({"Start": "ClockMin > {minute} + 60"}, "true", (0, 1, 0)),
        ({"Start": "time() % 7 == 8 || TARGET.RequestCpus > 4"}, "true", (1, 0, 0)),
        # A slot renews what it has checked.
        ({"CheckedAt": "{past}"}, "time() - TARGET.CheckedAt < 600", (1, 0, 0)),
        ({"CheckedAt": "{past}", "Start": "time() - CheckedAt < 600"}, "true", (1, 0, 0)),
    ],
)
def test_a_job_before_its_time_is_later(
    slot: Mapping[str, str], clause: str, count: tuple[int, int, int]
) -> None:
    now = int(time.time())
    at = time.gmtime(now)
    names: dict[str, int] = {
        "now": now,
        "past": now - 900,
        "minute": at.tm_hour * 60 + at.tm_min,
        "day": (at.tm_wday + 1) % 7,
    }
    local = {"MyCurrentTime": "{now}", "ClockMin": "{minute}", "ClockDay": "{day}"}
    slot = {name: text.format(**names) for name, text in {**local, **slot}.items()}
    done = trial(slots(slot), wants(clause.format(**names)))
    later, never = len(done.later), len(done.unplaceable)
    assert (1 - later - never, later, never) == count


def test_a_slot_that_is_drained_takes_what_it_has_room_for() -> None:
    drained = {"Requirements": "false", "Draining": "true", "State": '"Drained"'}
    assert unplaceable(slots(drained), {}, {"RequestCpus": "17"}, wants("TARGET.HasFoo")) == [1, 2]


def test_a_resource_of_which_the_slot_does_not_tell_all_is_no_reason() -> None:
    busy = {"MachineResources": '"Cpus Memory Disk Licences"', "Licences": "0"}
    more = "TARGET.RequestLicences <= MY.Licences"
    limits = {"WithinResourceLimits": f"{SLOT['WithinResourceLimits']} && {more}"}
    job = wants("TARGET.Licences >= RequestLicences", RequestLicences="2")
    assert unplaceable(slots({**busy, **limits}), job) == []


def test_a_trial_without_time_says_so() -> None:
    done = trial(slots({}), wants("TARGET.HasFoo"), deadline_seconds=0)
    assert (done.unplaceable, "(no answer within 0 s)" in str(done.untried)) == ((), True)


def test_jobs_that_are_not_to_be_tried_and_those_beyond_are_named() -> None:
    look = slots({})
    long = JobShape(JobKind("cms", 8, 0), 3, "ap#1.0", None)
    for value, problem, words in (
        (Shapes((long,), complete=True, attributes=TOLD), None, "(they are too many, or have"),
        (Shapes((), complete=False, attributes=None), None, "(they are too many, or have"),
        (None, "no answer", "(schedd ap: no answer)"),
    ):
        done = tried(look, [answer(value, problem)])
        assert done.unplaceable == ()
        assert words in str(done.untried)


ATTRIBUTES = ("Requirements", "RequestCpus", "RequestMemory", "RequestDisk")
OTHER = {"Requirements": f"TARGET.HasFoo && MY.Tag == 3 && {OWN}", "Tag": "3", "JobCount": "7"}


class FakeSchedd:
    """Jobs with their autoclusters, as a schedd groups them."""

    def __init__(self, *jobs: Mapping[str, str]) -> None:
        names = f'"{",".join(ATTRIBUTES)}"'
        full = ({"AutoClusterAttrs": names, "Requirements": OWN, **job} for job in jobs)
        texts = (text_of({**JOB, "JobStatus": "1", **job}) for job in full)
        self.jobs = [classad2.parseOne(text, classad2.ParserType.Old) for text in texts]
        self.clusters = self.jobs

    def query(
        self, constraint: str = "", projection: Sequence[str] = (), opts: int = 0, limit: int = -1
    ) -> list[Any]:
        if opts in (0, htcondor2.QueryOpt.IncludeClusterAd):
            return []
        if opts == htcondor2.QueryOpt.AutoCluster:
            clusters = {
                job["AutoClusterId"]: job for job in self.clusters if "AutoClusterId" in job
            }
            return [self._row(job, (*ATTRIBUTES, "AutoClusterId")) for job in clusters.values()]
        assert constraint.startswith("JobStatus == 1")
        tree = classad2.ExprTree(constraint)
        rows = (self._row(job, projection) for job in self.jobs)
        return [row for row in rows if tree.eval(row) is True][: limit if limit > 0 else None]

    @staticmethod
    def _row(job: Any, projection: Sequence[str]) -> Any:
        row = referred(job, projection)
        row["JobCount"] = job.get("JobCount", 1)
        row["JobIds"] = "7.0 ... 7.3"
        return row


def shapes(*jobs: Mapping[str, str], clusters: Sequence[Mapping[str, str]] = ()) -> Shapes:
    schedd = FakeSchedd(*jobs)
    if clusters:
        schedd.clusters = FakeSchedd(*clusters).jobs
    return shapes_of(schedd, "ap", 8)


def test_shapes_are_autoclusters_with_what_they_refer_to() -> None:
    seen = shapes({"AutoClusterId": "1"}, {**OTHER, "AutoClusterId": "2", "RequestCpus": "1"})
    small, large = sorted(seen.shapes, key=lambda shape: shape.kind[1])
    assert (small.kind[1], small.jobs, small.example) == (1, 7, "ap#7.0")
    assert (large.kind[1], large.jobs, large.example) == (8, 1, "ap#7.0")
    assert "tag = 3" in str(small.ad)
    assert (seen.complete, seen.attributes) == (True, frozenset(map(str.lower, ATTRIBUTES)))


def test_jobs_that_no_negotiator_has_seen_or_that_hold_no_slot_are_not_tried() -> None:
    none = shapes({}, {"JobUniverse": "7", "AutoClusterId": "1"})
    assert none._replace(jobs=None) == Shapes((), complete=True, attributes=None)


@pytest.mark.parametrize(
    "clusters", [[{"AutoClusterId": "1", "RequestMemory": "5"}], [{"AutoClusterId": "3"}]]
)
def test_autoclusters_that_were_numbered_again_are_not_tried(
    clusters: Sequence[Mapping[str, str]],
) -> None:
    (shape,) = shapes({"AutoClusterId": "1"}, clusters=clusters).shapes
    assert (shape.jobs, shape.ad) == (1, None)


def test_jobs_are_counted_by_the_way_unless_rows_are_cut_off() -> None:
    seen = shapes({"AutoClusterId": "1"}, OTHER)
    assert seen.jobs is not None
    assert seen.jobs.pending == {JobKind(None, 8, 1024): 8}
    assert shapes(*[{}] * MOST_ROWS).jobs is None


def test_trouble_with_shapes_hides_no_jobs() -> None:
    def die() -> None:
        os._exit(3)

    def hang() -> None:
        time.sleep(60)

    def value(jobs: Any) -> Question:
        return Question(lambda: Shapes((), complete=True, attributes=None, jobs=jobs), 30)

    alone, other = (ScheddJobs({JobKind("cms", 8, 0): 1}), ScheddJobs({JobKind("cms", 8, 0): 2}))
    shaped = {
        "counts": value(other),
        "tries": value(None),
        "dies": Question(die, 30),
        "slow": Question(hang, 0.6),
        "hangs": Question(hang, 0.6),
    }
    plain = {name: Question(lambda: alone, 30) for name in shaped}
    plain["hangs"] = Question(hang, 0.6)
    answers, shapes = ask_both(plain, shaped)
    jobs = {name: answer.value for name, answer in answers.items()}
    assert jobs == {**dict.fromkeys(plain, alone), "counts": other, "hangs": None}
    assert [answer.value is None for answer in shapes] == [False, False, True, True, True]
    answers, shapes = ask_both({"slow": plain["slow"]}, {})
    assert (answers["slow"].value, shapes) == (alone, [])
