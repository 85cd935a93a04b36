"""What the pool's slots make of one job, by HTCondor's own library: to run in a process with a deadline.

A job's expressions may be anything. Whatever they do, they do it to a process that is killed at its deadline, and that
may not have more memory than `MOST_MEMORY_BYTES` besides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from typing import Any, Optional

from sharectl.adapters.ads import account, evaluated, sequence, text, whole
from sharectl.adapters.emptied_slot import empty
from sharectl.adapters.node_words import has_target, is_draining
from sharectl.core.groups import group_of
from sharectl.core.job_reasons import code_of_resource
from sharectl.core.job_verdict import Obstacle, Shortage, SlotFinding, TargetSeen
from sharectl.core.start_clauses import Clause, clauses, code_of, name_of, resource_of

MOST_MEMORY_BYTES = 2 * 2**30
MAX_CLAUSE = 1000
"""Characters of a clause that are told."""

_GRACE = re.compile(r"t1_McRoomTime\s*<\s*(\d{1,7})\b", re.IGNORECASE)
_NOW_CLAIMED = ("Claimed", "Preempting", "Matched")
_LIMITS = "withinresourcelimits"
_MACHINE_RESOURCES = "Cpus, Memory, Disk"


def findings(job: Any, slots: Iterable[Any], now: int) -> tuple[SlotFinding, ...]:
    """What each slot with these ads makes of the job with that ad at Unix time ``now``. The ads of slots are changed."""
    written = clauses(_expression(job, "Requirements") or "true", lambda name: _expression(job, name))
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
    claimed = evaluated(slot, "PartitionableSlot") is not True and evaluated(slot, "State") in _NOW_CLAIMED
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
        found += _slot_clauses(asking.ad, slot, draining=draining, limits_named=bool(short or unclear))
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
    for clause in clauses(_expression(slot, "Requirements") or "true", lambda name: _expression(slot, name)):
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
            short.append(Shortage(name, requested, free, max(free, _amount(slot, f"TotalSlot{name}"))))
    return short, unclear


def _resources(slot: Any, asked: Iterable[str] = ()) -> list[str]:
    """Resources of the slot, and what else the job asks of it, as they are written."""
    told = text(evaluated(slot, "MachineResources")) or _MACHINE_RESOURCES
    names = {name.lower(): name for name in re.split(r"[\s,]+", told) if name and name.lower() != "swap"}
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
    groups, cores = (sequence(evaluated(slot, name)) for name in ("t1_TargetGroups", "t1_Targetcores"))
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
