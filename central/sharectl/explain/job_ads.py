"""One job, from the queue of its access point, and its match with each slot.

A job's expressions may be anything. They are evaluated in a child that is killed at its deadline
and has at most `MOST_MEMORY_BYTES` of memory.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from math import isfinite
from typing import Any, NamedTuple, Optional

from sharectl.condor import ads, daemons, expressions
from sharectl.condor.accounts import charged
from sharectl.condor.ad_rows import empty, names_reached, row_of
from sharectl.condor.ads import evaluated, expression, value_of
from sharectl.condor.clock import ON_TIME, clocked, clocked_text, first_true, is_on_time
from sharectl.condor.deadline import ask_all, limit_memory
from sharectl.condor.expressions import Clause, alternatives, clauses, words_of_text
from sharectl.condor.node_ads import has_target, is_draining
from sharectl.errors import InputError, PoolUnavailableError
from sharectl.explain import job as law
from sharectl.explain.job import ClauseReading, Obstacle, Obstacles, RefusingTarget, SlotFinding
from sharectl.model import PoolConfig
from sharectl.shares.groups import group_and_user, group_of

MOST_MEMORY_BYTES = 2 * 2**30
MOST_TIMES = 20
"""Kinds of slots for which the time of a job is looked for, each of which takes up to 0.7 s."""
MOST_ALIKE = 100
MAX_CLAUSE, MAX_REPORTED = 1000, 300
"""Characters of a clause, and of any other text of a job."""

_ID = re.compile(
    r"(?:(?P<schedd>[!-~]{1,256})#)?(?P<cluster>\d{1,9})\.(?P<proc>\d{1,9})(?:#\d{1,12})?"
)
_REQUEST = re.compile(r"Request(Cpus|Memory|Disk|GPUs)", re.IGNORECASE)
_GRACE = re.compile(r"t1_McRoomTime\s*<\s*(\d{1,7})\b", re.IGNORECASE)
_CLAUSES = frozenset(("job-requirements", "site-start", "slot-requirements"))
"""Codes of clauses that somebody wrote, which may go by the clock."""
_TOO_LITTLE = frozenset(("cpus", "memory", "disk", "gpus", "resource"))
"""Codes of requests that are too large, which may go by the clock too."""
_UNCLEAR = Obstacle("bad-request", "")
_CLAIMED = ("Claimed", "Preempting", "Matched")
_LIMITS = "withinresourcelimits"


class JobId(NamedTuple):
    """Number of a job, and its access point."""

    cluster: int
    proc: int
    schedd: Optional[str] = None
    """None if any access point may have it."""

    def __str__(self) -> str:
        return f"{self.cluster}.{self.proc}"


Located = tuple[law.Facts, str]
"""A job of a queue, and its ad as text."""


def job_id(written: str) -> JobId:
    """Job that ``written`` names; raises ValueError if it names none."""
    match = _ID.fullmatch(written)
    if match is None:
        raise ValueError(
            f"{written[:60]!r} is no job; write CLUSTER.PROC, such as 12.0, or SCHEDD#CLUSTER.PROC"
        )
    return JobId(int(match["cluster"]), int(match["proc"]), match["schedd"])


def find(pool: PoolConfig, job: JobId, configured: Collection[str] = ()) -> Optional[Located]:
    """The job, from a queue; None if no access point has it.

    Raises PoolUnavailableError if a daemon that may have it did not answer, or there is no such
    schedd. Raises InputError if several access points have a job of this number.
    """
    ask = partial(daemons.locations, kind="Schedd")
    schedds = daemons.ask_collector(pool.collector, pool.collector_deadline_seconds, ask)
    wanted = (job.schedd or "").lower()
    places = [place for place in schedds if wanted in ("", place["Name"].lower())]
    if not places:
        names = ", ".join(sorted(place["Name"] for place in schedds)) or "none"
        unknown = f"the collector knows no schedd {job.schedd or ''}"
        raise PoolUnavailableError(f"{unknown}; it knows {names}")
    question = partial(_in_queue, job, configured)
    questions = daemons.schedd_questions(places, pool.schedd_deadline_seconds, question)
    answers = ask_all(questions).values()
    jobs: list[Located] = [answer.value for answer in answers if answer.value is not None]
    if len(jobs) > 1:
        names = ", ".join(facts["schedd"] for facts, _ in jobs)
        several = f"{job}: several access points have a job of this number: {names}"
        raise InputError([f"{several}; write SCHEDD#{job}"])
    silent = [answer.source for answer in answers if answer.source.problem]
    if silent and not jobs:
        raise PoolUnavailableError(*(f"{s.name}: {s.problem}" for s in silent))
    return jobs[0] if jobs else None


def _in_queue(job: JobId, configured: Collection[str], schedd: Any, name: str) -> Optional[Located]:
    constraint = f"ClusterId == {job.cluster} && ProcId == {job.proc}"
    for ad in schedd.query(constraint=constraint, limit=1):
        facts = dict(facts_of(charged([ads.ad_of(repr(ad))])[0], name, configured))
        if facts["universe"] == daemons.PARALLEL:
            own = _written(ad, "Requirements") or "true"
            ad["Requirements"] = expression(daemons.dedicated(name, own))
        if not facts["rejected"]:
            facts |= _rejected(schedd, ad)
        return facts, repr(ad)
    return None


def _rejected(schedd: Any, ad: Any) -> law.Facts:
    """Last word of the negotiator on a job that is alike: it asks for one of each autocluster."""
    cluster = _number(ad, daemons.CLUSTER)
    where = f"{daemons.CLUSTER} == {cluster} && LastRejMatchTime > 0"
    names = ["LastRejMatchReason", "LastRejMatchTime"]
    same_cluster = schedd.query(where, projection=names, limit=MOST_ALIKE) if cluster else ()
    last = max(same_cluster, key=lambda other: _number(other, "LastRejMatchTime"), default=None)
    if last is None:
        return {}
    return {"rejected": _text(last, names[0]), "rejected_at": _number(last, names[1])}


_NUMBERS = {
    "status": "JobStatus",
    "universe": "JobUniverse",
    "hold_code": "HoldReasonCode",
    "rejected_at": "LastRejMatchTime",
    "starts": "NumJobStarts",
    "deferred_to": "DeferralTime",
}
_TEXTS = {
    "owner": "Owner",
    "hold_reason": "HoldReason",
    "rejected": "LastRejMatchReason",
    "limits": "ConcurrencyLimits",
    "remove_reason": "RemoveReason",
}


def facts_of(ad: Any, schedd: str, configured: Collection[str] = ()) -> law.Facts:
    """Facts of a job's ad on an access point.

    Group and user are parts of AccountingGroup, by AcctGroup, else by the ``configured`` groups.
    ``request_values`` are of requests that are numbers alone, ``since`` is the begin of its status.
    """
    names = [name for name in sorted(ad) if _REQUEST.fullmatch(name)]
    values = {name: _amount(evaluated(ad, name)) for name in names}
    account, exit_code = ads.text(ad.get("AccountingGroup")), ad.get("ExitCode")
    user_name = (ads.text(evaluated(ad, "User")) or "").rpartition("@")[0]
    named = ads.text(evaluated(ad, "AcctGroup")) or group_of(f"{account or ''}@", configured)
    group, user = group_and_user(account, named)
    return {
        "schedd": schedd,
        **{key: _number(ad, name) for key, name in _NUMBERS.items()},
        **{key: _text(ad, name) for key, name in _TEXTS.items()},
        "account": _reported(account),
        # What HTCondor charges, without domain.
        "submitter": _reported(account or user_name or _text(ad, "Owner") or None),
        "accounting_group": _reported(group),
        "accounting_user": _reported(user),
        "since": _number(ad, "EnteredCurrentStatus") or _number(ad, "CompletionDate"),
        "host": _text(ad, "RemoteHost") or _text(ad, "LastRemoteHost"),
        "exit_code": exit_code if type(exit_code) is int else None,
        "requests": {name: _cut(str(ad.lookup(name)), MAX_REPORTED) for name in names},
        "request_values": {name: value for name, value in values.items() if value is not None},
    }


def _number(ad: Any, name: str) -> int:
    """Whole number of an attribute; 0 if unknown."""
    return ads.whole(evaluated(ad, name), 0)


def _text(ad: Any, name: str) -> Optional[str]:
    return _reported(ads.text(evaluated(ad, name)))


def _reported(text: Optional[str]) -> Optional[str]:
    return _cut(text, MAX_REPORTED) if text is not None else None


def matched(
    pool: PoolConfig, ad: str, now: int
) -> tuple[Optional[tuple[SlotFinding, ...]], Optional[str]]:
    """Match of the ad of a job with the slots of the pool at Unix time ``now``, or the problem.

    Raises PoolUnavailableError if the pool has no slots.
    """
    # The longer of the two deadlines: the expressions are evaluated within it too.
    seconds = pool.schedd_deadline_seconds
    answer = daemons.collector_answer(pool.collector, seconds, partial(match, ad, now))
    if answer.value == ():
        raise PoolUnavailableError("collector: it knows no execute point; see condor_status -any")
    return answer.value, answer.source.problem


def match(ad: str, now: int, collector: Any) -> tuple[SlotFinding, ...]:
    """`findings` of an ad as text with the slots of a collector; limits this process's memory."""
    limit_memory(MOST_MEMORY_BYTES)
    slots = daemons.query(collector, "Slot", 'SlotType =!= "Dynamic"')
    return findings(ads.ad_of(ad), slots, now)


class _Job:
    """A job that is tried on slots, at a Unix time."""

    def __init__(self, ad: Any, now: int) -> None:
        self.ad, self.now, self.row = ad, now, clocked(row_of(ad), now)
        self.clauses = [(c, expressions.resource_of(c), expression(c.text)) for c in _clauses(ad)]
        """Clauses of its Requirements, the resource of each (None: of no request), and its tree."""
        names = filter(_REQUEST.fullmatch, ad)
        self.open_requests = [name for name in names if type(ad.get(name)) not in (int, float)]
        """RequestCpus and such that are expressions."""
        self.times: dict[Any, Optional[int]] = {}
        """Times that were looked for, by all that they depend on."""


def findings(job: Any, slots: Iterable[Any], now: int) -> tuple[SlotFinding, ...]:
    """Match of a job's ad with the ads of slots, which are changed, at Unix time ``now``."""
    tried = _Job(job, now)
    return tuple(_later(_finding(tried, slot), tried, slot) for slot in slots)


def _finding(job: _Job, slot: Any) -> SlotFinding:
    obstacles = _read(job, slot)
    codes = {obstacle.code for obstacle in obstacles}
    target = _target(job.ad, slot, job.now) if "target" in codes else None
    amounts = (
        (name, _amount(value_of(expression(f"MY.{name}"), job.ad, slot)))
        for name in job.open_requests
    )
    limits = value_of(expression("MY.ConcurrencyLimits"), job.ad, slot)
    finding = SlotFinding(
        (ads.text(evaluated(slot, "Machine")) or "").lower(),
        _accepts(job.ad, slot),
        _accepts(slot, job.ad),
        obstacles,
        target=target,
        target_until=_number(slot, "t1_TargetUntil") if target else 0,
        grace_until=_grace_until(slot) if "grace" in codes else 0,
        requests=tuple((name, amount) for name, amount in amounts if amount is not None),
        limits=(ads.text(limits) or "").lower(),
        has_policy="ConsumptionCpus" in slot,
    )
    if not obstacles:
        return finding
    empty(slot)
    return replace(finding, empty_obstacles=_read(job, slot))


def _read(job: _Job, slot: Any) -> Obstacles:
    return {
        obstacle: tuple(islice(_readings(job.ad, slot, obstacle), MOST_READINGS))
        for obstacle in _obstacles(job, slot)
    }


def _later(finding: SlotFinding, job: _Job, slot: Any) -> SlotFinding:
    """``finding`` with its clauses on time; with the second they are true, if they are the last."""
    shrinking = [
        obstacle
        for obstacle in finding.empty_obstacles
        if obstacle.code in _TOO_LITTLE
        and not ON_TIME.isdisjoint(names_reached(words_of_text(obstacle.clause), job.row))
    ]
    if not shrinking and _CLAUSES.isdisjoint(o.code for o in finding.empty_obstacles):
        return finding
    row = clocked(row_of(slot), job.now)

    def goes_by_the_clock(clause: str) -> bool:
        return is_on_time(clocked_text(clause), job.row, row)

    def is_late(obstacle: Obstacle) -> bool:
        """True if time alone makes the clause true: no attribute that it needs is absent."""
        if obstacle.code not in _CLAUSES or not goes_by_the_clock(obstacle.clause):
            return obstacle in shrinking
        pair = _sides(obstacle, job.ad, slot)
        values = (value_of(expression(way), *pair) for way in alternatives(obstacle.clause))
        return any(_shown(value) != law.UNDEFINED for value in values)

    late = set(filter(is_late, finding.empty_obstacles))

    def renamed(obstacles: Obstacles) -> Obstacles:
        return {
            Obstacle("clock", o.clause) if o in late else o: () if o in late else readings
            for o, readings in obstacles.items()
        }

    finding = replace(
        finding,
        obstacles=renamed(finding.obstacles),
        empty_obstacles=renamed(finding.empty_obstacles),
    )
    if not finding.is_later:
        return finding
    on_job, on_slot = (
        tuple(clocked_text(clause.text) for clause in several if goes_by_the_clock(clause.text))
        for several in ([clause for clause, *_ in job.clauses], _clauses(slot))
    )
    seen = names_reached(words_of_text(" ".join(on_job + on_slot)), {**row, **job.row})
    key = on_job, on_slot, tuple(row.get(name) for name in sorted(seen))
    if key not in job.times and len(job.times) < MOST_TIMES:
        job.times[key] = first_true(job.row, row, (on_job, on_slot), job.now)
    return replace(finding, opens_at=job.times.get(key))


def _accepts(ad: Any, target: Any) -> bool:
    """Evaluate the ad's Requirements for ``target``; an ad without any accepts."""
    return "Requirements" not in ad or _true(expression("MY.Requirements"), ad, target)


def _true(tree: Any, ad: Any, target: Any) -> bool:
    return tree is not None and ads.is_true(value_of(tree, ad, target))


def _obstacles(job: _Job, slot: Any) -> list[Obstacle]:
    """Obstacles of a job in a slot, as it is now."""
    job_accepts, slot_accepts = _accepts(job.ad, slot), _accepts(slot, job.ad)
    claimed = not _partitionable(slot) and evaluated(slot, "State") in _CLAIMED
    states = {"claimed": claimed, "offline": evaluated(slot, "Offline") is True}
    obstacles = [Obstacle(code, "") for code, applies in states.items() if applies]
    if job_accepts and slot_accepts:
        return obstacles
    too_large = _too_large(job, slot)
    obstacles += too_large.values()
    if not job_accepts:
        obstacles += [
            Obstacle(
                "dedicated" if clause.text.startswith(daemons.IS_DEDICATED) else "job-requirements",
                _cut(clause.text),
            )
            for clause, resource, tree in job.clauses
            if too_large.get(resource or "", _UNCLEAR).code == _UNCLEAR.code
            and not _true(tree, job.ad, slot)
        ]
    if not slot_accepts:
        obstacles += _slot_clauses(job.ad, slot, limits_named=bool(too_large))
    if not obstacles:
        # Requirements can be false though each of their clauses is true.
        ad, code = (job.ad, "job-requirements") if slot_accepts else (slot, "slot-requirements")
        obstacles.append(Obstacle(code, _cut(_written(ad, "Requirements") or "")))
    return obstacles


def _too_large(job: _Job, slot: Any) -> dict[str, Obstacle]:
    """Resource in lower case -> request of it that is too large, or has no value, those last."""
    machine = ads.text(evaluated(slot, "MachineResources")) or "Cpus, Memory, Disk"
    spelt = {name.lower(): name for name in job.ad}
    names = {
        resource: spelt.get(f"request{resource}", f"Request{resource}")[len("Request") :]
        for _, resource, _ in job.clauses
        if resource is not None
    }
    names.update({name.lower(): name for name in re.split(r"[\s,]+", machine) if name})
    names.pop("swap", None)
    obstacles: dict[str, Obstacle] = {}
    for lower, name in names.items():
        requested, free = _charged(job.ad, slot, name), _amount(evaluated(slot, name)) or 0.0
        if requested is None:
            written = f"Request{name} = {_written(job.ad, f'Request{name}')}"
            obstacles[lower] = _UNCLEAR._replace(clause=_cut(written))
        elif requested > free:
            request = f"Request{name} = {requested:.15g}{law.UNITS.get(lower, '')}"
            code = lower if lower in _TOO_LITTLE else "resource"
            has_any = free or _amount(evaluated(slot, f"TotalSlot{name}"))
            absent = code in ("resource", "gpus") and not has_any
            obstacles[lower] = Obstacle("no-resource" if absent else code, request)
    return dict(sorted(obstacles.items(), key=lambda item: item[1].code == _UNCLEAR.code))


def _slot_clauses(job: Any, slot: Any, *, limits_named: bool) -> Iterator[Obstacle]:
    """The slot's clauses that are not true; of a drained slot, the draining."""
    draining = is_draining(slot)
    if draining and (_written(slot, "Requirements") or "").strip().lower() == "false":
        yield Obstacle("draining", "")
        return
    for clause in _clauses(slot):
        limits = _LIMITS in (*clause.through, expressions.name_of(clause.text))
        if not (limits and limits_named) and not _true(expression(clause.text), slot, job):
            code = expressions.code_of(clause)
            drained = draining and code == "site-start"
            yield Obstacle("draining" if drained else code, _cut(clause.text))


MOST_READINGS, MOST_VALUE, READ_DEPTH = 12, 60, 3
"""Attributes of one obstacle that are shown, characters of a value, and how many attributes may
stand for each other."""


def _sides(obstacle: Obstacle, job: Any, slot: Any) -> tuple[Any, Any]:
    """Ad of which the clause of an obstacle is, and the other one."""
    return (job, slot) if obstacle.code == "job-requirements" else (slot, job)


def _readings(job: Any, slot: Any, obstacle: Obstacle) -> Iterator[ClauseReading]:
    """Values of what a clause refers to, by each of its alternatives."""
    if obstacle.code not in _CLAUSES or obstacle.clause.endswith("…"):
        return
    pair = _sides(obstacle, job, slot)
    for way in alternatives(obstacle.clause):
        for clause in clauses(way, partial(_written, pair[0])):
            if not _true(expression(clause.text), *pair):
                values = _values(clause.text, *pair, job).items()
                for name, value in sorted(values, key=lambda item: item[1] != law.UNDEFINED):
                    yield ClauseReading(clause.text, name, value)


def _values(
    written: str, ad: Any, target: Any, job: Any, depth: int = READ_DEPTH
) -> dict[str, str]:
    """Values of the attributes in an expression of ``ad``, and in those that they stand for."""
    values: dict[str, str] = {}
    for scope, name in expressions.references(written):
        # Of a name that neither ad has, the node is the one to publish it.
        elsewhere = not scope and name not in ad and (name in target or ad is job)
        at, other = (target, ad) if scope == expressions.TARGET or elsewhere else (ad, target)
        value = _shown(value_of(expression(f"MY.{name}"), at, other))
        values[f"{law.THE_JOBS if at is job else ''}{name}"] = value
        inner = _written(at, name)
        if inner is not None and depth and len(values) < MOST_READINGS:
            values |= _values(inner, at, other, job, depth - 1)
    return values


def _shown(value: Any) -> str:
    """Value as HTCondor prints it."""
    kinds = ads.classads().Value
    if value is None or value is kinds.Error:
        return "error"
    if value is kinds.Undefined:
        return law.UNDEFINED
    if isinstance(value, bool):
        return str(value).lower()
    return _cut(ads.quoted(value) if isinstance(value, str) else str(value), MOST_VALUE)


def _charged(job: Any, slot: Any, name: str) -> Optional[float]:
    """Amount by the job's request or the slot's consumption policy; None if unclear."""
    request = f"Request{name}"
    if f"Consumption{name}" in slot and _partitionable(slot):
        value = value_of(expression(f"MY.Consumption{name}"), slot, job)
    else:
        value = value_of(expression(f"MY.{request}"), job, slot) if request in job else 0
    # HTCondor compares True as 1.
    return _amount(int(value) if isinstance(value, bool) else value)


def _amount(value: Any) -> Optional[float]:
    return float(value) if type(value) in (int, float) and isfinite(value) else None


def _target(job: Any, slot: Any, now: int) -> Optional[RefusingTarget]:
    """Target that the slot acts on, and why it keeps the job out."""
    groups = ads.sequence(evaluated(slot, "t1_TargetGroups"))
    cores = ads.sequence(evaluated(slot, "t1_Targetcores"))
    if min(len(groups), len(cores)) < 2 or not has_target(slot, now):  # noqa: PLR2004
        return None
    held_back, helped = (ads.text(group) or "" for group in groups[:2])
    kinds = {held_back.lower(): "cap", helped.lower(): "size"}
    kind = kinds.get(group_of(ads.account(job.get("AccountingGroup")), kinds), "others")
    cap_cores, request_cores = (ads.whole(number, 0) for number in cores[:2])
    return RefusingTarget(kind, held_back, cap_cores, helped, request_cores)


def _grace_until(slot: Any) -> int:
    """End of the slot's grace, Unix seconds; 0 if its ad does not say."""
    match = _GRACE.search(_written(slot, "MC_GRACE") or "")
    began = _number(slot, "t1_McRoomTime")
    return began + int(match[1]) if match and began else 0


def _partitionable(slot: Any) -> bool:
    return evaluated(slot, "PartitionableSlot") is True


def _clauses(ad: Any) -> tuple[Clause, ...]:
    return clauses(_written(ad, "Requirements") or "true", lambda name: _written(ad, name))


def _written(ad: Any, name: str) -> Optional[str]:
    """Expression of an attribute as HTCondor prints it."""
    tree = ad.lookup(name) if name in ad else None
    return None if tree is None else str(tree)


def _cut(written: str, most: int = MAX_CLAUSE) -> str:
    text = " ".join(written.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"
