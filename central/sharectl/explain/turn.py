"""Turn of a job at the negotiator: its quotas, concurrency limits and ceiling, and who is first.

The rules are the negotiator's (matchmaker.cpp, GroupEntry.cpp and Accountant.cpp of HTCondor).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import floor, fsum
from typing import Any, NamedTuple, Optional

from sharectl.explain.job import (
    AT_ACCESS_POINT,
    AT_CEILING,
    AT_LIMIT,
    AT_QUOTA,
    OVER_LIMIT,
    Facts,
)
from sharectl.shares.groups import is_within, levels_above
from sharectl.shares.quotas import ROOT

DEFAULT_LIMIT = "CONCURRENCY_LIMIT_DEFAULT"
_UNIT = "weighted slots"
_LIMIT = re.compile(r"(?P<name>[a-z_]\w*(?:\.[a-z_]\w*)?)(?::\s*(?P<increment>.*))?", re.DOTALL)
_NUMBER = re.compile(r"\d+\.?\d*(?:e[+-]?\d{1,2})?|\.\d+")


class AccountedGroup(NamedTuple):
    """Accounting group; figures are weighted slots, None if not known."""

    name: str
    used: float
    """By jobs of the group, without those of groups within it."""
    quota: Optional[float]
    """For jobs of the group (EffectiveQuota)."""
    subtree_quota: Optional[float]
    """With all groups within it; a static one as it is written, because the negotiator uses that.
    """
    surplus: Optional[str]
    """``no``, ``byquota``, ``regroup`` or None."""
    sort_key: Optional[float]
    """GroupSortKey: groups with smaller ones are served first."""


class Submitter(NamedTuple):
    """Submitter, as accounting and submitter ads have it."""

    name: str
    """Group and user, without domain."""
    used: float
    """Weighted slots."""
    ceiling: Optional[int]
    """Most weighted slots; None without a ceiling, or if not known."""
    priority: Optional[float]
    """Smaller ones are served first."""


class Limit(NamedTuple):
    """Concurrency limit that a job counts for."""

    name: str
    increment: float
    """Amount that the job takes."""
    used: Optional[float]
    most: Optional[float]
    """Both None if not known."""

    @property
    def full(self) -> bool:
        """True if the job would pass it."""
        if self.used is None or self.most is None:
            return False
        return self.used + self.increment > self.most

    @property
    def too_small(self) -> bool:
        """True if the job would pass it though nobody used it."""
        return self.most is not None and self.increment > self.most


class Cause(NamedTuple):
    """Reason why the negotiator gives a job no slot, wherever one is free."""

    code: str
    """One of `sharectl.explain.job.VERDICTS`."""
    text: str
    remedy: str


@dataclass(frozen=True)
class NegotiatorFacts:
    """Facts of the negotiator, of one moment."""

    groups: Mapping[str, AccountedGroup] = field(default_factory=dict)
    """Name in lower case -> group; empty if not known."""
    submitters: Mapping[str, Submitter] = field(default_factory=dict)
    """Name in lower case -> submitter."""
    used: Optional[Mapping[str, float]] = None
    """Concurrency limit -> use, without those that are not used; None if not known."""
    most: Mapping[str, float] = field(default_factory=dict)
    """Concurrency limit -> its size, where known."""
    idle_jobs: Optional[Mapping[str, int]] = None
    """Submitter in lower case -> idle jobs; None if not known."""
    access_points: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Name in lower case -> jobs that run, and MAX_JOBS_RUNNING, where both are known."""
    cycle_ended_at: int = 0
    """Unix seconds of the last negotiation cycle's end; 0 if not known."""
    period_seconds: float = 0.0
    """Between the starts of the last two; 0 if not known."""
    problems: tuple[str, ...] = ()
    """Sources that did not answer, with the reason."""


def parts_of(limits: str) -> list[tuple[str, float]]:
    """Names and increments of a job's ConcurrencyLimits; the negotiator ignores invalid ones."""
    parts = []
    for word in re.split(r"[\s,]+", limits.lower()):
        match = _LIMIT.fullmatch(word)
        if match is not None:
            number = _NUMBER.match(match["increment"] or "")
            increment = float(number[0]) if number else 0.0
            parts.append((match["name"], increment if increment > 0 else 1.0))
    return parts


def use_of(limits: Iterable[str]) -> dict[str, float]:
    """Use of each limit by slots with these ConcurrencyLimits."""
    used: dict[str, float] = {}
    for text in limits:
        for name, increment in parts_of(text):
            used[name] = used.get(name, 0.0) + increment
    return used


def knobs_of(limit: str) -> tuple[str, ...]:
    """Knobs of the size of a limit, the one that counts first."""
    scope = limit.rpartition(".")[0]
    scoped = (f"{DEFAULT_LIMIT}_{scope}",) if scope else ()
    return (f"{limit}_LIMIT", *scoped, DEFAULT_LIMIT)


def limits_in(negotiation: NegotiatorFacts, texts: Iterable[str]) -> list[list[Limit]]:
    """Limits of each of a job's ConcurrencyLimits, which can differ by slot."""
    used, most = negotiation.used, negotiation.most
    return [
        [
            Limit(name, taken, None if used is None else used.get(name, 0.0), most.get(name))
            for name, taken in parts_of(text)
        ]
        for text in texts
    ]


def group_in(groups: Mapping[str, AccountedGroup], submitter: str) -> str:
    """Group in lower case that a submitter without domain is charged to: the longest that fits."""
    own = submitter.lower().rpartition(".")[0]
    chain = [name for name in (*levels_above(own), own) if name]
    fitting = [name for place, name in enumerate(chain) if set(chain[: place + 1]) <= groups.keys()]
    return fitting[-1] if fitting else ROOT


def cause(
    negotiation: NegotiatorFacts, submitter: str, schedd: str, limits: Sequence[Sequence[Limit]]
) -> Optional[Cause]:
    """Reason why no slot can be given to jobs of a submitter with these limits, if there is one.

    ``limits`` are those of each slot that would take it; they keep it out where all do.
    """
    # A limit that is too small for the job even unused comes first: no other job frees it.
    full = [
        max(
            (limit for limit in part if limit.full), key=lambda limit: limit.too_small, default=None
        )
        for part in limits
    ]
    if full and full[0] is not None and all(full):
        never = all(limit.too_small for limit in full if limit)
        name, taken, used, most = full[0]
        takes = f", and it takes {taken:g}" if taken != 1 or never else ""
        fewer = "a smaller increment" if taken > 1 and most else "a job without it"
        remedy = fewer if never else "jobs of that limit that end"
        return Cause(
            OVER_LIMIT if never else AT_LIMIT,
            f"its concurrency limit: {name}, {used:g} of {most:g} in use{takes}",
            f"{remedy}, or a larger {knobs_of(name)[0].upper()} on the central manager",
        )
    running, most_running = negotiation.access_points.get(schedd.lower(), (0, 1))
    if running >= most_running:
        return Cause(
            AT_ACCESS_POINT,
            f"access point {schedd} runs {running} jobs: MAX_JOBS_RUNNING is {most_running}",
            f"jobs of {schedd} that end, or a larger MAX_JOBS_RUNNING there",
        )
    return _at_ceiling(negotiation, submitter) or _at_quota(
        negotiation.groups, group_in(negotiation.groups, submitter)
    )


def _at_ceiling(negotiation: NegotiatorFacts, name: str) -> Optional[Cause]:
    own = negotiation.submitters.get(name.lower())
    if own is None or own.ceiling is None or floor(own.used) < own.ceiling:
        return None
    return Cause(
        AT_CEILING,
        f"submitter {own.name} uses {own.used:g} of its ceiling of {own.ceiling} {_UNIT}",
        f"its jobs that end, or condor_userprio -setceiling {own.name}@… N (-1: none)",
    )


def _at_quota(groups: Mapping[str, AccountedGroup], name: str) -> Optional[Cause]:
    """Reason by the quota of a group or of one that it is within."""
    own = groups.get(name)
    if own is None or name == ROOT or own.surplus == "regroup":
        return None
    if own.surplus == "no" and own.quota is not None and own.used >= floor(own.quota):
        cut = ", which the negotiator cuts to 0," if 0 < own.quota < 1 else ""
        fact = f"group {own.name} uses {own.used:g} of its quota of {own.quota:g} {_UNIT}{cut}"
        return _quota_cause(own, fact)
    for above in (own, *(groups[level] for level in reversed(levels_above(name)))):
        quota, outer = above.subtree_quota, above.name.lower()
        if above.surplus != "no" or quota is None:
            continue
        used = fsum(group.used for key, group in groups.items() if is_within(key, outer))
        if floor(max(0.0, quota - used) + own.used) <= own.used:
            who = f"{above.name}" if above is own else f"{above.name}, which {own.name} is within,"
            inner = "with the groups within it"
            fact = f"group {who} uses {used:g} of its quota of {quota:g} {_UNIT} {inner}"
            return _quota_cause(above, fact)
    return None


def _quota_cause(group: AccountedGroup, fact: str) -> Cause:
    remedy = f"jobs of {group.name} that end, a larger quota of it (GROUP_QUOTA_{group.name})"
    surplus = f"GROUP_ACCEPT_SURPLUS_{group.name} = True"
    return Cause(
        AT_QUOTA,
        f"{fact} and takes no surplus",
        f"{remedy}, or {surplus} on the central manager",
    )


def before(negotiation: NegotiatorFacts, name: str) -> Optional[list[Submitter]]:
    """Submitters with idle jobs that are served before one, the first first; None if not known."""
    groups, own = negotiation.groups, _order(negotiation, name)
    if own is None or negotiation.idle_jobs is None:
        return None
    ahead = [
        (order, other)
        for key, other in negotiation.submitters.items()
        if negotiation.idle_jobs.get(key)
        and (order := _order(negotiation, key)) is not None
        and order < own
        and _at_ceiling(negotiation, key) is None
        and _at_quota(groups, group_in(groups, key)) is None
    ]
    return [other for _, other in sorted(ahead)]


def _order(negotiation: NegotiatorFacts, name: str) -> Optional[tuple[float, float]]:
    """Sort key of a submitter's group, and the submitter's own priority."""
    group = negotiation.groups.get(group_in(negotiation.groups, name))
    submitter = negotiation.submitters.get(name.lower())
    if group is None or group.sort_key is None or submitter is None or submitter.priority is None:
        return None
    return group.sort_key, submitter.priority


SURPLUS: Mapping[Optional[str], str] = {
    "no": "takes no surplus",
    "byquota": "beyond it takes what other groups leave",
    "regroup": "is matched without group too (GROUP_AUTOREGROUP)",
    None: "surplus not known",
}
"""SurplusPolicy -> what it comes to."""


def turn(negotiation: NegotiatorFacts, facts: Facts, verdict: Mapping[str, Any]) -> dict[str, Any]:
    """Turn of a job with these facts and this match with all nodes, as data.

    Keys: cause (None if the negotiator may give it a slot), group (None without groups, or if not
    known), submitter, limits, before (submitters with idle jobs that are served first), and
    cycle_ended_at, period_seconds and problems of `NegotiatorFacts`.
    """
    name = facts["submitter"] or ""
    limits = limits_in(negotiation, verdict["limits"])
    group = negotiation.groups.get(group_in(negotiation.groups, name))
    own, ahead = negotiation.submitters.get(name.lower()), before(negotiation, name)
    why = cause(negotiation, name, facts["schedd"], limits)
    return {
        "cause": why._asdict() if why else None,
        "group": group._asdict() if group and len(negotiation.groups) > 1 else None,
        "submitter": own._asdict() if own else None,
        "limits": [limit._asdict() for limit in dict.fromkeys(chain.from_iterable(limits))],
        "before": ahead
        if ahead is None
        else [
            {**other._asdict(), "idle_jobs": (negotiation.idle_jobs or {})[other.name.lower()]}
            for other in ahead
        ],
        "cycle_ended_at": negotiation.cycle_ended_at,
        "period_seconds": negotiation.period_seconds,
        "problems": list(negotiation.problems),
    }


def over_quota(order: Mapping[str, Any]) -> str:
    """By how much the group of a `turn` is over its quota, in words; empty if it is not."""
    used, quota = (order["group"] or {}).get("used"), (order["group"] or {}).get("quota")
    if quota is None or used <= quota:
        return ""
    return f"{used - quota:g} {_UNIT} over its quota of {quota:g}"
