"""One job, from the queue or history of its access point, and its match with each slot.

A job's expressions may be anything. They are evaluated in a child that is killed at its deadline
and has at most `MOST_MEMORY_BYTES` of memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite
from typing import Any, Optional

from sharectl.condor.ad_files import AdOfFile, from_long
from sharectl.condor.ads import (
    MAX_TEXT,
    account,
    ad_of,
    evaluated,
    expression,
    is_true,
    sequence,
    text,
    value_of,
    whole,
)
from sharectl.condor.daemons import (
    ACCOUNTING_GROUP,
    Location,
    ask_collector,
    collector_answer,
    locations,
    query,
    schedd_questions,
    slots,
)
from sharectl.condor.deadline import ask_all, limit_memory
from sharectl.condor.expressions import Clause, clauses, code_of, name_of, resource_of
from sharectl.condor.negotiator import groups_of
from sharectl.condor.nodes import has_target, is_draining
from sharectl.condor.slots import empty
from sharectl.errors import InputError, PoolUnavailableError
from sharectl.explain.job import (
    JobFacts,
    Obstacle,
    Shortage,
    SlotFinding,
    SlotTarget,
    code_of_resource,
)
from sharectl.shares.groups import group_of, without_user
from sharectl.shares.quotas import Group

MOST_MEMORY_BYTES = 2 * 2**30
MAX_CLAUSE, MAX_REPORTED = 1000, 300
"""Characters of a clause, and of any other text of a job."""
MAX_ALIKE = 1000
"""Rejected jobs of an autocluster that are looked at."""

_ID = re.compile(
    r"(?:(?P<schedd>[!-~]{1,256})#)?(?P<cluster>\d{1,9})\.(?P<proc>\d{1,9})(?:#\d{1,12})?"
)
_REQUEST = re.compile(r"Request(Cpus|Memory|Disk|GPUs)", re.IGNORECASE)
_PAST = [
    "JobStatus",
    "JobUniverse",
    "GlobalJobId",
    "AccountingGroup",
    "Owner",
    "CompletionDate",
    "RemoveReason",
    "EnteredCurrentStatus",
    "ExitCode",
    "LastRemoteHost",
    "QDate",
]
_GRACE = re.compile(r"t1_McRoomTime\s*<\s*(\d{1,7})\b", re.IGNORECASE)
_CLAIMED = ("Claimed", "Preempting", "Matched")
_LIMITS = "withinresourcelimits"


@dataclass(frozen=True)
class JobId:
    """Number of a job, and its access point."""

    cluster: int
    proc: int
    schedd: Optional[str] = None
    """None if any access point may have it."""

    def __str__(self) -> str:
        return f"{self.cluster}.{self.proc}"


@dataclass(frozen=True)
class LocatedJob:
    """A job in a queue, or in a history."""

    facts: JobFacts
    ad: Optional[str]
    """Its ad as text; None of a job in a history."""


@dataclass(frozen=True)
class PoolMatch:
    """Match of a job with the slots of a pool."""

    findings: tuple[SlotFinding, ...]
    groups: tuple[Group, ...]
    """Accounting groups with a quota, and their use; empty if the negotiator advertises none."""


def job_id(written: str, schedd: Optional[str]) -> JobId:
    """Job that ``written`` names.

    Raises
    ------
    ValueError
        If it names no job, or another access point than ``schedd``.
    """
    match = _ID.fullmatch(written)
    if match is None:
        raise ValueError(
            f"{written[:60]!r} is no job; write CLUSTER.PROC, such as 12.0, or SCHEDD#CLUSTER.PROC"
        )
    if schedd and match["schedd"] and schedd.lower() != match["schedd"].lower():
        raise ValueError(f"{written[:60]!r} is not of --schedd {schedd}; leave out one of them")
    return JobId(int(match["cluster"]), int(match["proc"]), match["schedd"] or schedd)


def schedds(
    collector: Optional[str], deadline_seconds: float, wanted: Optional[str]
) -> list[Location]:
    """Location of each schedd of the pool, or of the wanted one.

    Raises
    ------
    PoolUnavailableError
        If the collector does not answer, or knows no such schedd.
    """
    all_schedds: list[dict[str, str]] = ask_collector(
        collector, deadline_seconds, lambda daemon: locations(daemon, "Schedd")
    )
    chosen = [
        place for place in all_schedds if wanted is None or place["Name"].lower() == wanted.lower()
    ]
    if not chosen:
        names = ", ".join(sorted(place["Name"] for place in all_schedds)) or "none"
        raise PoolUnavailableError(
            f"the collector knows no schedd {wanted or ''}; it knows {names}"
        )
    return [*chosen]


def find(places: Sequence[Location], job: JobId, deadline_seconds: float) -> Optional[LocatedJob]:
    """The job, from a queue, else from a history; None if no access point knows it.

    Raises
    ------
    PoolUnavailableError
        If it is not found, and a schedd that may have it did not answer.
    InputError
        If several access points have a job of this number.
    """
    for look in (_in_queue, _in_history):
        answers = ask_all(schedd_questions(places, deadline_seconds, partial(look, job)))
        jobs: list[LocatedJob] = [
            answer.value for answer in answers.values() if answer.value is not None
        ]
        if len(jobs) > 1:
            names = ", ".join(located.facts.schedd for located in jobs)
            several = f"{job}: several access points have a job of this number: {names}"
            raise InputError([f"{several}; add --schedd NAME"])
        if jobs:
            return jobs[0]
        silent = [answer.source for answer in answers.values() if answer.source.problem]
        if silent:
            raise PoolUnavailableError(
                "\n".join(f"{source.name}: {source.problem}" for source in silent)
            )
    return None


def matched(
    collector: Optional[str], located: LocatedJob, now: int, deadline_seconds: float
) -> tuple[Optional[PoolMatch], Optional[str]]:
    """Match of the job with the pool at Unix time ``now``, or the problem.

    Raises
    ------
    PoolUnavailableError
        If the pool has no slots.
    """
    answer = collector_answer(
        collector, deadline_seconds, partial(_matched, located.ad or "[]", now)
    )
    if answer.value is not None and not answer.value.findings:
        raise PoolUnavailableError("collector: it knows no execute point; see condor_status -any")
    return answer.value, answer.source.problem


def _matched(ad: str, now: int, collector: Any) -> PoolMatch:
    limit_memory(MOST_MEMORY_BYTES)
    groups = [
        AdOfFile(f"group {group.get('Name')}", from_long(group.printOld()))
        for group in query(collector, "Accounting", ACCOUNTING_GROUP)
    ]
    return PoolMatch(findings(ad_of(ad), slots(collector), now), tuple(groups_of(groups)))


def _in_queue(job: JobId, schedd: Any, name: str) -> Optional[LocatedJob]:
    for ad in schedd.query(constraint=_of(job), limit=1):
        facts = facts_of(ad, name)
        return LocatedJob(facts if facts.rejected else _rejected_alike(schedd, ad, facts), repr(ad))
    return None


def _in_history(job: JobId, schedd: Any, name: str) -> Optional[LocatedJob]:
    for ad in schedd.history(_of(job), _PAST, match=1):
        return LocatedJob(facts_of(ad, name), None)
    return None


def _of(job: JobId) -> str:
    return f"ClusterId == {job.cluster} && ProcId == {job.proc}"


def _rejected_alike(schedd: Any, ad: Any, facts: JobFacts) -> JobFacts:
    """Facts with the last rejection of another job of the same autocluster, if there is one."""
    autocluster = whole(evaluated(ad, "AutoClusterId"), -1)
    if autocluster < 0:
        return facts
    alike = schedd.query(
        constraint=f"AutoClusterId =?= {autocluster} && LastRejMatchTime > 0",
        projection=["ClusterId", "ProcId", "LastRejMatchReason", "LastRejMatchTime"],
        limit=MAX_ALIKE,
    )
    last = max(alike, key=lambda ad: _number(ad, "LastRejMatchTime"), default=None)
    if last is None:
        return facts
    return replace(
        facts,
        rejected=_reported(last, "LastRejMatchReason"),
        rejected_at=_number(last, "LastRejMatchTime"),
        rejected_job=f"{_number(last, 'ClusterId')}.{_number(last, 'ProcId')}",
    )


def facts_of(ad: Any, schedd: str) -> JobFacts:
    """Facts of a job's ad on an access point."""
    exit_code = evaluated(ad, "ExitCode")
    names = [name for name in sorted(ad) if _REQUEST.fullmatch(name)]
    group = without_user(account(ad.get("AccountingGroup")))
    return JobFacts(
        schedd=schedd,
        status=_number(ad, "JobStatus"),
        universe=_number(ad, "JobUniverse"),
        accounting_group=None if group is None else " ".join(group.split())[:MAX_REPORTED],
        owner=_reported(ad, "Owner"),
        requests={name: " ".join(str(ad.lookup(name))[:MAX_REPORTED].split()) for name in names},
        since=_number(ad, "EnteredCurrentStatus") or _number(ad, "CompletionDate"),
        queued_at=_number(ad, "QDate"),
        host=_reported(ad, "RemoteHost") or _reported(ad, "LastRemoteHost"),
        hold_reason=_reported(ad, "HoldReason"),
        hold_code=_number(ad, "HoldReasonCode"),
        rejected=_reported(ad, "LastRejMatchReason"),
        rejected_at=_number(ad, "LastRejMatchTime"),
        limits=_reported(ad, "ConcurrencyLimits"),
        remove_reason=_reported(ad, "RemoveReason"),
        exit_code=exit_code if type(exit_code) is int else None,
        request_values=_numbers({name: evaluated(ad, name) for name in names}),
    )


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    return {
        name: float(value)
        for name, value in values.items()
        if type(value) in (int, float) and isfinite(value)
    }


def _number(ad: Any, name: str) -> int:
    """Whole number of an attribute; 0 if unknown."""
    return whole(evaluated(ad, name), 0)


def _reported(ad: Any, name: str) -> Optional[str]:
    value = text(evaluated(ad, name))
    return None if value is None else " ".join(value[:MAX_TEXT].split())[:MAX_REPORTED]


@dataclass(frozen=True)
class _Job:
    ad: Any
    own: Sequence[tuple[Clause, Optional[str], Any]]
    """Clauses of its Requirements, the resource of each (None: of no request), and its tree."""
    plain: Mapping[str, float]
    """Requests that are numbers: lower-case name -> number."""


def findings(job: Any, slots: Iterable[Any], now: int) -> tuple[SlotFinding, ...]:
    """Match of a job's ad with the ads of slots, which are changed, at Unix time ``now``."""
    parts = _clauses(job)
    plain = {name.lower(): job.get(name) for name in job if name.lower().startswith("request")}
    asking = _Job(
        ad=job,
        own=[(clause, resource_of(clause), expression(clause.text)) for clause in parts],
        plain=_numbers(plain),
    )
    return tuple(_finding(asking, slot, now) for slot in slots)


def _finding(asking: _Job, slot: Any, now: int) -> SlotFinding:
    job = asking.ad
    machine = (text(evaluated(slot, "Machine")) or "").lower()
    job_accepts, slot_accepts = _accepts(job, slot), _accepts(slot, job)
    obstacles, shortages = _obstacles(
        asking, slot, job_accepts=job_accepts, slot_accepts=slot_accepts
    )
    codes = {obstacle.code for obstacle in obstacles}
    target = _target(job, slot, now) if "target" in codes else None
    grace_until = _grace_until(slot) if "grace" in codes else 0
    lasting: list[Obstacle] = []
    if obstacles:
        empty(slot)
        lasting, _ = _obstacles(
            asking, slot, job_accepts=_accepts(job, slot), slot_accepts=_accepts(slot, job)
        )
    return SlotFinding(
        node=machine,
        slot=text(evaluated(slot, "Name")) or machine,
        job_accepts=job_accepts,
        slot_accepts=slot_accepts,
        obstacles=tuple(obstacles),
        empty_obstacles=tuple(lasting),
        target=target,
        grace_until=grace_until,
        shortages=tuple(shortages),
    )


def _accepts(ad: Any, target: Any) -> bool:
    """Evaluate the ad's Requirements for ``target``; an ad without any accepts."""
    return "Requirements" not in ad or _true(expression("MY.Requirements"), ad, target)


def _true(tree: Any, ad: Any, target: Any) -> bool:
    return tree is not None and is_true(value_of(tree, ad, target))


def _obstacles(
    asking: _Job, slot: Any, *, job_accepts: bool, slot_accepts: bool
) -> tuple[list[Obstacle], list[Shortage]]:
    """Obstacles and shortages; none in a free slot if both accept."""
    partitionable = evaluated(slot, "PartitionableSlot") is True
    claimed = not partitionable and evaluated(slot, "State") in _CLAIMED
    obstacles = [Obstacle("claimed", "")] if claimed else []
    if job_accepts and slot_accepts:
        return obstacles, []
    short, unclear = _requests(asking, slot)
    for shortage in short:
        request = f"Request{shortage.resource} = {shortage.requested:.15g}"
        obstacles.append(Obstacle(code_of_resource(shortage.resource), request))
    obstacles += [Obstacle("bad-request", request) for request in unclear]
    if not job_accepts:
        named = {shortage.resource.lower() for shortage in short}
        obstacles += [
            Obstacle("job-requirements", _cut(clause.text))
            for clause, resource, tree in asking.own
            if resource not in named and not _true(tree, asking.ad, slot)
        ]
    if not slot_accepts:
        obstacles += _slot_clauses(asking.ad, slot, limits_named=bool(short or unclear))
    if not obstacles:
        # Requirements can be false though each of their clauses is true.
        ad, code = (asking.ad, "job-requirements") if slot_accepts else (slot, "slot-requirements")
        obstacles.append(Obstacle(code, _cut(_written(ad, "Requirements") or "")))
    return obstacles, short


def _slot_clauses(job: Any, slot: Any, *, limits_named: bool) -> list[Obstacle]:
    """The slot's clauses that are not true; of a drained slot, the draining."""
    draining = is_draining(slot)
    if draining and (_written(slot, "Requirements") or "").strip().lower() == "false":
        return [Obstacle("draining", "")]
    obstacles = []
    for clause in _clauses(slot):
        limits = _LIMITS in clause.through or name_of(clause.text) == _LIMITS
        if (limits and limits_named) or _true(expression(clause.text), slot, job):
            continue
        code = code_of(clause)
        code = "draining" if draining and code == "site-start" else code
        obstacles.append(Obstacle(code, _cut(clause.text)))
    return obstacles


def _clauses(ad: Any) -> tuple[Clause, ...]:
    return clauses(_written(ad, "Requirements") or "true", lambda name: _written(ad, name))


def _requests(asking: _Job, slot: Any) -> tuple[list[Shortage], list[str]]:
    """Requests that are larger than the slot's free amount, and those without a value there."""
    machine = text(evaluated(slot, "MachineResources")) or "Cpus, Memory, Disk"
    names = {resource: resource for _, resource, _ in asking.own if resource is not None}
    names.update({name.lower(): name for name in re.split(r"[\s,]+", machine) if name})
    names.pop("swap", None)
    short, unclear = [], []
    for name in names.values():
        requested = _taken(asking, slot, name)
        if requested is None:
            unclear.append(_cut(f"Request{name} = {_written(asking.ad, f'Request{name}')}"))
            continue
        free, total = (
            _amount(evaluated(slot, attribute)) or 0.0 for attribute in (name, f"TotalSlot{name}")
        )
        if requested > free:
            short.append(Shortage(name, requested, free, max(free, total)))
    return short, unclear


def _taken(asking: _Job, slot: Any, name: str) -> Optional[float]:
    """Amount by the job's request or the slot's consumption policy; None if unclear."""
    request = f"Request{name}"
    if f"Consumption{name}" in slot and evaluated(slot, "PartitionableSlot") is True:
        return _amount(value_of(expression(f"MY.Consumption{name}"), slot, asking.ad))
    if request.lower() in asking.plain:
        return asking.plain[request.lower()]
    if request not in asking.ad:
        return 0.0
    return _amount(value_of(expression(f"MY.{request}"), asking.ad, slot))


def _amount(value: Any) -> Optional[float]:
    return float(value) if type(value) in (bool, int, float) and isfinite(value) else None


def _target(job: Any, slot: Any, now: int) -> Optional[SlotTarget]:
    """Target that the slot acts on, and why it keeps the job out."""
    groups = sequence(evaluated(slot, "t1_TargetGroups"))
    cores = sequence(evaluated(slot, "t1_Targetcores"))
    if len(groups) < 2 or len(cores) < 2 or not has_target(slot, now):  # noqa: PLR2004
        return None
    held_back, helped = (text(group) or "" for group in groups[:2])
    kinds = {held_back.lower(): "cap", helped.lower(): "size"}
    own = group_of(account(job.get("AccountingGroup")), kinds)
    return SlotTarget(
        kind=kinds.get(own, "others"),
        held_back=held_back,
        cap_cores=whole(cores[0], 0),
        helped=helped,
        request_cores=whole(cores[1], 0),
        until=_number(slot, "t1_TargetUntil"),
    )


def _grace_until(slot: Any) -> int:
    """End of the slot's grace, Unix seconds; 0 if its ad does not say."""
    match = _GRACE.search(_written(slot, "MC_GRACE") or "")
    began = _number(slot, "t1_McRoomTime")
    return began + int(match[1]) if match and began else 0


def _written(ad: Any, name: str) -> Optional[str]:
    """Expression of an attribute as HTCondor prints it."""
    tree = ad.lookup(name) if name in ad else None
    return None if tree is None else str(tree)


def _cut(clause: str) -> str:
    words = " ".join(clause.split())
    return words if len(words) <= MAX_CLAUSE else f"{words[: MAX_CLAUSE - 1]}…"
