"""One job, found on the access points of a pool, and what that pool makes of it.

What the pool's slots make of one job, by HTCondor's own library: to run in a process with a
deadline.

A job's expressions may be anything. Whatever they do, they do it to a process that is killed at its
deadline, and that may not have more memory than `MOST_MEMORY_BYTES` besides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from math import isfinite
from typing import Any, Callable, Optional

from sharectl.condor.ad_files import AdOfFile, from_long
from sharectl.condor.ads import MAX_TEXT, account, evaluated, sequence, text, whole
from sharectl.condor.daemons import LOCATION, why_collector, why_daemon, with_address
from sharectl.condor.deadline import Question, ask_all, limit_memory
from sharectl.condor.empty_slot import empty
from sharectl.condor.expressions import Clause, clauses, code_of, name_of, resource_of
from sharectl.condor.node_words import has_target, is_draining
from sharectl.condor.quotas import groups_of
from sharectl.errors import InputError, PoolUnavailableError
from sharectl.explain.job import Obstacle, Shortage, SlotFinding, TargetSeen, code_of_resource
from sharectl.model import SCHEDD_SOURCE
from sharectl.shares.groups import group_of, without_user
from sharectl.shares.quotas import Group

MOST_MEMORY_BYTES = 2 * 2**30
MAX_CLAUSE = 1000
"""Characters of a clause that are told."""

_GRACE = re.compile(r"t1_McRoomTime\s*<\s*(\d{1,7})\b", re.IGNORECASE)
_NOW_CLAIMED = ("Claimed", "Preempting", "Matched")
_LIMITS = "withinresourcelimits"
_MACHINE_RESOURCES = "Cpus, Memory, Disk"


def findings(job: Any, slots: Iterable[Any], now: int) -> tuple[SlotFinding, ...]:
    """What each slot with these ads makes of the job with that ad at Unix time ``now``.

    The ads of slots are changed.
    """
    written = clauses(
        _expression(job, "Requirements") or "true", lambda name: _expression(job, name)
    )
    asking = _Job(
        ad=job,
        own=[(clause, resource_of(clause), compiled(clause.text)) for clause in written],
        plain={
            name.lower(): float(value)
            for name in job
            if name.lower().startswith("request")
            for value in [job.get(name)]
            if type(value) in (int, float) and isfinite(value)
        },
    )
    return tuple(_finding(asking, slot, now) for slot in slots)


@lru_cache(maxsize=4096)
def compiled(expression: str) -> Any:
    """Expression that was printed; None if the library does not read again what it printed."""
    import classad2

    try:
        return classad2.ExprTree(expression)
    except Exception:  # noqa: BLE001 - several kinds, by version
        return None


@dataclass(frozen=True)
class _Job:
    ad: Any
    own: Sequence[tuple[Clause, Optional[str], Any]]
    """Clauses of its Requirements, the resource that each compares a request with, and the expression."""
    plain: Mapping[str, float]
    """Requests that are plain numbers: lower-case name -> number."""


def _finding(asking: _Job, slot: Any, now: int) -> SlotFinding:
    job = asking.ad
    machine = (text(evaluated(slot, "Machine")) or "").lower()
    job_accepts, slot_accepts = _accepts(job, slot), _accepts(slot, job)
    obstacles, shortages = _obstacles(asking, slot, accepted=(job_accepts, slot_accepts))
    codes = {obstacle.code for obstacle in obstacles}
    target = _target(job, slot, now) if "target" in codes else None
    grace_until = _grace_until(slot) if "grace" in codes else 0
    left: list[Obstacle] = []
    if obstacles:
        empty(slot)
        left, _ = _obstacles(asking, slot, accepted=(_accepts(job, slot), _accepts(slot, job)))
    return SlotFinding(
        node=machine,
        slot=text(evaluated(slot, "Name")) or machine,
        job_accepts=job_accepts,
        slot_accepts=slot_accepts,
        obstacles=tuple(obstacles),
        empty_obstacles=tuple(left),
        target=target,
        grace_until=grace_until,
        shortages=tuple(shortages),
    )


def _accepts(ad: Any, target: Any) -> bool:
    """Whether the ad's Requirements are true of ``target``: those of an ad without any are."""
    return "Requirements" not in ad or _true(compiled("MY.Requirements"), ad, target)


def _true(tree: Any, ad: Any, target: Any) -> bool:
    if tree is None:
        return False
    try:
        value = tree.eval(ad, target)
    except Exception:  # noqa: BLE001 - what cannot be evaluated is not true
        return False
    # The library's undefined and error are numbers too, of a type of their own.
    return type(value) in (bool, int, float) and bool(value)


def _obstacles(
    asking: _Job, slot: Any, *, accepted: tuple[bool, bool]
) -> tuple[list[Obstacle], list[Shortage]]:
    """What keeps the job out, and of what there is too little; nothing if both accept, and the slot is free."""
    job_accepts, slot_accepts = accepted
    claimed = (
        evaluated(slot, "PartitionableSlot") is not True
        and evaluated(slot, "State") in _NOW_CLAIMED
    )
    draining = is_draining(slot)
    found = [Obstacle("claimed", "")] if claimed else []
    if job_accepts and slot_accepts:
        return found, []
    short, unclear = _requests(asking, slot)
    found += [
        Obstacle(code_of_resource(one.resource), f"Request{one.resource} = {one.requested:.15g}")
        for one in short
    ]
    found += [Obstacle("bad-request", told) for told in unclear]
    named = {one.resource.lower() for one in short}
    if not job_accepts:
        found += _own_clauses(asking, slot, named)
    if not slot_accepts:
        found += _slot_clauses(
            asking.ad, slot, draining=draining, limits_named=bool(short or unclear)
        )
    if not found:
        found.append(_whole(slot if not slot_accepts else asking.ad, slot_accepts=slot_accepts))
    return found, short


def _own_clauses(asking: _Job, slot: Any, named: set[str]) -> list[Obstacle]:
    """The job's clauses that are not true, but those on a resource that is short."""
    return [
        Obstacle("job-requirements", _told(clause.text))
        for clause, of_resource, tree in asking.own
        if of_resource not in named and not _true(tree, asking.ad, slot)
    ]


def _slot_clauses(job: Any, slot: Any, *, draining: bool, limits_named: bool) -> list[Obstacle]:
    """The slot's clauses that are not true; of one that is drained, that it is."""
    if draining and (_expression(slot, "Requirements") or "").strip().lower() == "false":
        return [Obstacle("draining", "")]
    found = []
    for clause in clauses(
        _expression(slot, "Requirements") or "true", lambda name: _expression(slot, name)
    ):
        limits = _LIMITS in clause.through or name_of(clause.text) == _LIMITS
        if (limits and limits_named) or _true(compiled(clause.text), slot, job):
            continue
        code = "draining" if draining and code_of(clause) == "site-start" else code_of(clause)
        found.append(Obstacle(code, _told(clause.text)))
    return found


def _whole(ad: Any, *, slot_accepts: bool) -> Obstacle:
    """For Requirements that are not true though each of their clauses is."""
    code = "job-requirements" if slot_accepts else "slot-requirements"
    return Obstacle(code, _told(_expression(ad, "Requirements") or ""))


def _requests(asking: _Job, slot: Any) -> tuple[list[Shortage], list[str]]:
    """What the job asks for more of than the slot has, and requests that are no number there."""
    short, unclear = [], []
    for name in _resources(slot, [of for _, of, _ in asking.own if of is not None]):
        requested = _taken(asking, slot, name)
        if requested is None:
            unclear.append(_told(f"Request{name} = {_expression(asking.ad, f'Request{name}')}"))
            continue
        free = _amount(slot, name)
        if requested > free:
            short.append(
                Shortage(name, requested, free, max(free, _amount(slot, f"TotalSlot{name}")))
            )
    return short, unclear


def _resources(slot: Any, asked: Iterable[str] = ()) -> list[str]:
    """Resources of the slot, and what else the job asks of it, as they are written."""
    told = text(evaluated(slot, "MachineResources")) or _MACHINE_RESOURCES
    names = {
        name.lower(): name for name in re.split(r"[\s,]+", told) if name and name.lower() != "swap"
    }
    return list({**{name: name for name in asked}, **names}.values())


def _taken(asking: _Job, slot: Any, name: str) -> Optional[float]:
    """How much of a resource the job takes of the slot: what it requests, or what a consumption policy says; None if unclear."""
    if f"Consumption{name}" in slot and evaluated(slot, "PartitionableSlot") is True:
        return _value(f"MY.Consumption{name}", slot, asking.ad)
    request = f"Request{name}"
    if request.lower() in asking.plain:
        return asking.plain[request.lower()]
    return _value(f"MY.{request}", asking.ad, slot) if request in asking.ad else 0.0


def _value(expression: str, ad: Any, target: Any) -> Optional[float]:
    try:
        return _number(compiled(expression).eval(ad, target))
    except Exception:  # noqa: BLE001 - what cannot be evaluated is no number
        return None


def _number(value: Any) -> Optional[float]:
    return float(value) if type(value) in (bool, int, float) and isfinite(value) else None


def _amount(slot: Any, name: str) -> float:
    return _number(evaluated(slot, name)) or 0.0


def _target(job: Any, slot: Any, now: int) -> Optional[TargetSeen]:
    """The target that the slot acts on, and why it keeps the job out."""
    groups, cores = (
        sequence(evaluated(slot, name)) for name in ("t1_TargetGroups", "t1_Targetcores")
    )
    if len(groups) < 2 or len(cores) < 2 or not has_target(slot, now):  # noqa: PLR2004 - held back and helped
        return None
    held_back, helped = (text(group) or "" for group in groups[:2])
    own = group_of(account(job.get("AccountingGroup")), {held_back.lower(), helped.lower()})
    kinds: Mapping[str, str] = {held_back.lower(): "cap", helped.lower(): "size"}
    return TargetSeen(
        *(kinds.get(own, "others"), held_back, whole(cores[0], 0), helped, whole(cores[1], 0)),
        until=whole(evaluated(slot, "t1_TargetUntil"), 0),
    )


def _grace_until(slot: Any) -> int:
    """Unix seconds at which the slot's grace ends; 0 if its ad does not say."""
    found = _GRACE.search(_expression(slot, "MC_GRACE") or "")
    began = whole(evaluated(slot, "t1_McRoomTime"), 0)
    return began + int(found[1]) if found and began else 0


def _expression(ad: Any, name: str) -> Optional[str]:
    """Expression of an attribute as HTCondor prints it, None if there is none."""
    tree = ad.lookup(name) if name in ad else None
    return None if tree is None else str(tree)


def _told(clause: str) -> str:
    words = " ".join(clause.split())
    return words if len(words) <= MAX_CLAUSE else f"{words[: MAX_CLAUSE - 1]}…"


MAX_ALIKE = 1000
"""Jobs of an autocluster that were rejected that are looked at."""

MAX_REPORTED = 300
"""Characters of what a job says that are told."""

_ID = re.compile(
    r"(?:(?P<schedd>[!-~]{1,256})#)?(?P<cluster>\d{1,9})\.(?P<proc>\d{1,9})(?:#\d{1,12})?"
)
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
        raise PoolUnavailableError(
            f"collector: {with_address(collector, answer.source.problem or '')}"
        )
    known: list[Mapping[str, str]] = answer.value
    chosen = [place for place in known if wanted is None or place["Name"].lower() == wanted.lower()]
    if not chosen:
        names = ", ".join(sorted(place["Name"] for place in known)) or "none"
        raise PoolUnavailableError(
            f"the collector knows no schedd {wanted or ''}; it knows {names}"
        )
    return chosen


def find(
    places: Sequence[Mapping[str, str]], job: JobId, deadline_seconds: float
) -> Optional[FoundJob]:
    """The job, from the queue that has it, else from a history; None if no access point knows it.

    Raises
    ------
    PoolUnavailableError
        If it is not found, and a schedd did not answer that may have it.
    InputError
        If several access points have a job of this number.
    """
    import htcondor2  # noqa: F401

    looks: tuple[Callable[[Mapping[str, str], JobId], Optional[FoundJob]], ...] = (
        _in_queue,
        _in_history,
    )
    for look in looks:
        answers = ask_all(
            {
                f"{SCHEDD_SOURCE}{place['Name']}": Question(
                    partial(look, place, job),
                    deadline_seconds,
                    partial(why_daemon, place, "SCHEDD"),
                )
                for place in places
            }
        )
        found: list[FoundJob] = [
            answer.value for answer in answers.values() if answer.value is not None
        ]
        if len(found) > 1:
            names = ", ".join(one.facts.schedd for one in found)
            raise InputError(
                [
                    (
                        f"{job}: several access points have a job of this number: {names}; add "
                        "--schedd NAME"
                    )
                ]
            )
        if found:
            return found[0]
        silent = [answer.source for answer in answers.values() if answer.source.problem]
        if silent:
            raise PoolUnavailableError(
                "\n".join(f"{source.name}: {source.problem}" for source in silent)
            )
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
        {name: found for name in LOCATION if (found := text(ad.get(name))) is not None}
        for ad in asked.query(htcondor2.AdType.Schedd, projection=list(LOCATION))
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
        since=whole(evaluated(ad, "EnteredCurrentStatus"), 0)
        or whole(evaluated(ad, "CompletionDate"), 0),
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
    found = [
        AdOfFile(f"group {group.get('Name')}", from_long(group.printOld())) for group in groups
    ]
    return PoolSays(findings(classad2.ClassAd(ad), slots, now), tuple(groups_of(found)))
