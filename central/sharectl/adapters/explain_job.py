"""One job, found on the access points of a pool, and what that pool makes of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import isfinite
from typing import Any, Callable, Optional

from sharectl.adapters.ads import MAX_TEXT, account, evaluated, text, whole
from sharectl.adapters.collector import SCHEDD_LOCATION, unanswered
from sharectl.adapters.condor_reach import why_collector, why_daemon
from sharectl.adapters.deadline import Question, ask_all, limit_memory
from sharectl.adapters.explain_job_slots import MOST_MEMORY_BYTES, findings
from sharectl.adapters.slot_ads import AdOfFile, from_long
from sharectl.adapters.slot_ads_groups import groups_of
from sharectl.core.claim_capacity import Group
from sharectl.core.groups import without_user
from sharectl.core.job_verdict import SlotFinding
from sharectl.core.model import SCHEDD_SOURCE
from sharectl.errors import InputError, PoolUnavailableError

MAX_ALIKE = 1000
"""Jobs of an autocluster that were rejected that are looked at."""

MAX_REPORTED = 300
"""Characters of what a job says that are told."""

_ID = re.compile(r"(?:(?P<schedd>[!-~]{1,256})#)?(?P<cluster>\d{1,9})\.(?P<proc>\d{1,9})(?:#\d{1,12})?")
_REQUEST = re.compile(r"Request(Cpus|Memory|Disk|GPUs)", re.IGNORECASE)
_NOT_DYNAMIC = 'SlotType =!= "Dynamic"'
_PAST = [
    *(
        "JobStatus",
        "JobUniverse",
        "GlobalJobId",
        "AccountingGroup",
        "Owner",
        "CompletionDate",
        "RemoveReason",
    ),
    *("EnteredCurrentStatus", "ExitCode", "LastRemoteHost", "QDate"),
]


@dataclass(frozen=True)
class JobId:
    """Which job is meant."""

    cluster: int
    proc: int
    schedd: Optional[str] = None
    """Name of its access point; None if any may have it."""

    def __str__(self) -> str:
        return f"{self.cluster}.{self.proc}"


@dataclass(frozen=True)
class JobFacts:
    """A job as its schedd knows it; texts are cut to `MAX_REPORTED` characters."""

    schedd: str
    status: int
    """JobStatus."""
    universe: int
    accounting_group: Optional[str]
    owner: Optional[str]
    requests: Mapping[str, str]
    """RequestCpus and such -> expression."""
    since: int
    """Unix seconds at which it got its status; 0 if unknown. So are the other times."""
    queued_at: int = 0
    host: Optional[str] = None
    """Where it runs, or ran last."""
    hold_reason: Optional[str] = None
    hold_code: int = 0
    rejected: Optional[str] = None
    """Why the negotiator found no match last."""
    rejected_at: int = 0
    rejected_job: Optional[str] = None
    """CLUSTER.PROC of which it was said, if of another: of jobs that are alike to it the negotiator asks for one only."""
    limits: Optional[str] = None
    """ConcurrencyLimits."""
    remove_reason: Optional[str] = None
    exit_code: Optional[int] = None
    request_values: Mapping[str, float] = field(default_factory=dict)
    """What those of ``requests`` come to on their own that are a number then."""


@dataclass(frozen=True)
class FoundJob:
    """A job in a queue, or in a history."""

    facts: JobFacts
    ad: Optional[str]
    """All of its ad, as text; None of a job that is gone."""


@dataclass(frozen=True)
class PoolSays:
    """What the pool makes of a job."""

    findings: tuple[SlotFinding, ...]
    groups: tuple[Group, ...]
    """Accounting groups with a quota, and their use; none if the negotiator advertises none."""


def job_id(written: str, schedd: Optional[str]) -> JobId:
    """Job that ``written`` names.

    Raises
    ------
    ValueError
        If it names none, or another access point than ``schedd``.
    """
    found = _ID.fullmatch(written)
    if found is None:
        raise ValueError(
            f"{written[:60]!r} is no job; write CLUSTER.PROC, such as 12.0, or SCHEDD#CLUSTER.PROC"
        )
    if schedd and found["schedd"] and schedd.lower() != found["schedd"].lower():
        raise ValueError(f"{written[:60]!r} is not of --schedd {schedd}; leave out one of them")
    return JobId(int(found["cluster"]), int(found["proc"]), found["schedd"] or schedd)


def schedds(
    collector: Optional[str], deadline_seconds: float, wanted: Optional[str]
) -> list[Mapping[str, str]]:
    """Location of each schedd of the pool, or of the one that is wanted.

    Raises
    ------
    PoolUnavailableError
        If the collector does not answer, or knows no such schedd.
    """
    import htcondor2  # noqa: F401 - loaded before the question forks

    answer = ask_all(
        {
            "collector": Question(
                partial(_schedds, collector), deadline_seconds, partial(why_collector, collector)
            )
        }
    )["collector"]
    if answer.value is None:
        raise PoolUnavailableError(f"collector: {unanswered(collector, answer.source.problem or '')}")
    known: list[Mapping[str, str]] = answer.value
    chosen = [place for place in known if wanted is None or place["Name"].lower() == wanted.lower()]
    if not chosen:
        names = ", ".join(sorted(place["Name"] for place in known)) or "none"
        raise PoolUnavailableError(f"the collector knows no schedd {wanted or ''}; it knows {names}")
    return chosen


def find(places: Sequence[Mapping[str, str]], job: JobId, deadline_seconds: float) -> Optional[FoundJob]:
    """The job, from the queue that has it, else from a history; None if no access point knows it.

    Raises
    ------
    PoolUnavailableError
        If it is not found, and a schedd did not answer that may have it.
    InputError
        If several access points have a job of this number.
    """
    import htcondor2  # noqa: F401

    looks: tuple[Callable[[Mapping[str, str], JobId], Optional[FoundJob]], ...] = (_in_queue, _in_history)
    for look in looks:
        answers = ask_all(
            {
                f"{SCHEDD_SOURCE}{place['Name']}": Question(
                    partial(look, place, job), deadline_seconds, partial(why_daemon, place, "SCHEDD")
                )
                for place in places
            }
        )
        found: list[FoundJob] = [answer.value for answer in answers.values() if answer.value is not None]
        if len(found) > 1:
            names = ", ".join(one.facts.schedd for one in found)
            raise InputError(
                [f"{job}: several access points have a job of this number: {names}; add --schedd NAME"]
            )
        if found:
            return found[0]
        silent = [answer.source for answer in answers.values() if answer.source.problem]
        if silent:
            raise PoolUnavailableError("\n".join(f"{source.name}: {source.problem}" for source in silent))
    return None


def judged(
    collector: Optional[str], found: FoundJob, now: int, deadline_seconds: float
) -> tuple[Optional[PoolSays], Optional[str]]:
    """What the pool makes of the job at Unix time ``now``, or why that cannot be told.

    Raises
    ------
    PoolUnavailableError
        If the pool has no slots.
    """
    import htcondor2  # noqa: F401

    question = Question(
        partial(_judged, collector, found.ad or "[]", now),
        deadline_seconds,
        partial(why_collector, collector),
    )
    answer = ask_all({"collector": question})["collector"]
    if answer.value is not None and not answer.value.findings:
        raise PoolUnavailableError("collector: it knows no execute point; see condor_status -any")
    return answer.value, answer.source.problem


def _schedds(collector: Optional[str]) -> list[dict[str, str]]:
    import htcondor2

    asked = htcondor2.Collector(collector) if collector else htcondor2.Collector()
    return [
        {name: found for name in SCHEDD_LOCATION if (found := text(ad.get(name))) is not None}
        for ad in asked.query(htcondor2.AdType.Schedd, projection=SCHEDD_LOCATION)
        if text(ad.get("Name"))
    ]


def _in_queue(place: Mapping[str, str], job: JobId) -> Optional[FoundJob]:
    schedd = _schedd(place)
    for ad in schedd.query(constraint=_of(job), limit=1):
        facts = facts_of(ad, place["Name"])
        return FoundJob(facts if facts.rejected else _rejected_alike(schedd, ad, facts), repr(ad))
    return None


def _rejected_alike(schedd: Any, ad: Any, facts: JobFacts) -> JobFacts:
    """Facts with what the negotiator said last of another job of the same autocluster, if it did."""
    autocluster = whole(evaluated(ad, "AutoClusterId"), -1)
    if autocluster < 0:
        return facts
    alike = schedd.query(
        constraint=f"AutoClusterId =?= {autocluster} && LastRejMatchTime > 0",
        projection=["ClusterId", "ProcId", "LastRejMatchReason", "LastRejMatchTime"],
        limit=MAX_ALIKE,
    )
    last = max(alike, key=lambda one: whole(evaluated(one, "LastRejMatchTime"), 0), default=None)
    if last is None:
        return facts
    return replace(
        facts,
        rejected=_said(last, "LastRejMatchReason"),
        rejected_at=whole(evaluated(last, "LastRejMatchTime"), 0),
        rejected_job=f"{whole(evaluated(last, 'ClusterId'), 0)}.{whole(evaluated(last, 'ProcId'), 0)}",
    )


def _in_history(place: Mapping[str, str], job: JobId) -> Optional[FoundJob]:
    for ad in _schedd(place).history(_of(job), _PAST, match=1):
        return FoundJob(facts_of(ad, place["Name"]), None)
    return None


def _schedd(place: Mapping[str, str]) -> Any:
    import classad2
    import htcondor2

    return htcondor2.Schedd(classad2.ClassAd(dict(place)))


def _of(job: JobId) -> str:
    return f"ClusterId == {job.cluster} && ProcId == {job.proc}"


def facts_of(ad: Any, schedd: str) -> JobFacts:
    """What the ad of a job on ``schedd`` says."""
    exit_code = evaluated(ad, "ExitCode")
    asked = [name for name in sorted(ad) if _REQUEST.fullmatch(name)]
    values = {name: evaluated(ad, name) for name in asked}
    return JobFacts(
        schedd=schedd,
        status=whole(evaluated(ad, "JobStatus"), 0),
        universe=whole(evaluated(ad, "JobUniverse"), 0),
        accounting_group=_group(ad),
        owner=_said(ad, "Owner"),
        requests={name: " ".join(str(ad.lookup(name))[:MAX_REPORTED].split()) for name in asked},
        since=whole(evaluated(ad, "EnteredCurrentStatus"), 0) or whole(evaluated(ad, "CompletionDate"), 0),
        queued_at=whole(evaluated(ad, "QDate"), 0),
        host=_said(ad, "RemoteHost") or _said(ad, "LastRemoteHost"),
        hold_reason=_said(ad, "HoldReason"),
        hold_code=whole(evaluated(ad, "HoldReasonCode"), 0),
        rejected=_said(ad, "LastRejMatchReason"),
        rejected_at=whole(evaluated(ad, "LastRejMatchTime"), 0),
        limits=_said(ad, "ConcurrencyLimits"),
        remove_reason=_said(ad, "RemoveReason"),
        exit_code=exit_code if type(exit_code) is int else None,
        request_values={
            name: float(value)
            for name, value in values.items()
            if type(value) in (int, float) and isfinite(value)
        },
    )


def _group(ad: Any) -> Optional[str]:
    """Accounting group that the job counts for."""
    name = without_user(account(ad.get("AccountingGroup")))
    return None if name is None else " ".join(name.split())[:MAX_REPORTED]


def _said(ad: Any, name: str) -> Optional[str]:
    said = text(evaluated(ad, name))
    return None if said is None else " ".join(said[:MAX_TEXT].split())[:MAX_REPORTED]


def _judged(collector: Optional[str], ad: str, now: int) -> PoolSays:
    import classad2
    import htcondor2

    limit_memory(MOST_MEMORY_BYTES)
    asked = htcondor2.Collector(collector) if collector else htcondor2.Collector()
    slots = asked.query(htcondor2.AdType.Slot, constraint=_NOT_DYNAMIC)
    groups = asked.query(htcondor2.AdType.Accounting, constraint="IsAccountingGroup")
    found = [AdOfFile(f"group {group.get('Name')}", from_long(group.printOld())) for group in groups]
    return PoolSays(findings(classad2.ClassAd(ad), slots, now), tuple(groups_of(found)))
