"""Turn of a job at the negotiator, and its prospect by the latest cycle of the ledger.

The rules are the negotiator's (matchmaker.cpp, GroupEntry.cpp and Accountant.cpp of HTCondor).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, takewhile
from math import floor, fsum
from typing import Any, NamedTuple, Optional

from sharectl.explain.job import AT_ACCESS_POINT, AT_CEILING, AT_LIMIT, AT_QUOTA, Facts
from sharectl.model import WaitTimes
from sharectl.plan.records import CycleRecord
from sharectl.shares.groups import is_within, levels_above
from sharectl.shares.pledges import ROOT
from sharectl.words import rounded

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
    """With all groups within it; a static one as it is written, as the negotiator takes it."""
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
        used, most = self.used, self.most
        return used is not None and most is not None and used + self.increment > most


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
    for match in filter(None, map(_LIMIT.fullmatch, re.split(r"[\s,]+", limits.lower()))):
        number = _NUMBER.match(match["increment"] or "")
        parts.append((match["name"], (float(number[0]) if number else 0.0) or 1.0))
    return parts


def use_of(limits: Iterable[str]) -> Mapping[str, float]:
    """Use of each limit by slots with these ConcurrencyLimits."""
    used: defaultdict[str, float] = defaultdict(float)
    for name, increment in chain.from_iterable(map(parts_of, limits)):
        used[name] += increment
    return used


def knobs_of(limit: str) -> tuple[str, ...]:
    """Knobs of the size of a limit, the one that counts first."""
    scope = limit.rpartition(".")[0]
    scoped = (f"{DEFAULT_LIMIT}_{scope}",) if scope else ()
    return (f"{limit}_LIMIT", *scoped, DEFAULT_LIMIT)


def limits_in(negotiation: NegotiatorFacts, texts: Iterable[str]) -> list[list[Limit]]:
    """Limits of each of a job's ConcurrencyLimits, which can differ by slot."""
    used, most = negotiation.used, negotiation.most

    def limit(name: str, taken: float) -> Limit:
        return Limit(name, taken, None if used is None else used.get(name, 0.0), most.get(name))

    return [[limit(*part) for part in parts_of(text)] for text in texts]


def group_in(groups: Mapping[str, AccountedGroup], submitter: str) -> str:
    """Group in lower case that a submitter without domain is charged to: the longest that fits."""
    group = submitter.lower().rpartition(".")[0]
    levels = filter(None, (*levels_above(group), group))
    return [ROOT, *takewhile(groups.__contains__, levels)][-1]


def cause(
    negotiation: NegotiatorFacts, submitter: str, schedd: str, limits: Sequence[Sequence[Limit]]
) -> Optional[Cause]:
    """Reason why no slot can be given to jobs of a submitter with these limits, if there is one.

    ``limits`` are those of each slot that would take it; they keep it out where all do.
    """
    running, most_running = negotiation.access_points.get(schedd.lower(), (0, 1))
    if (full := _at_limit(limits)) is not None:
        return full
    if running >= most_running:
        return Cause(
            AT_ACCESS_POINT,
            f"access point {schedd} runs {running} jobs: MAX_JOBS_RUNNING is {most_running}",
            f"jobs of {schedd} that end, or a larger MAX_JOBS_RUNNING there",
        )
    return _at_ceiling(negotiation, submitter) or _at_quota(negotiation.groups, submitter)


def _at_limit(limits: Sequence[Sequence[Limit]]) -> Optional[Cause]:
    """Reason by a limit of every slot, if there is one."""
    full = [next((limit for limit in part if limit.full), None) for part in limits]
    if not full or full[0] is None or None in full:
        return None
    name, taken, used, most = full[0]
    in_use = f"{rounded(used or 0)} of {rounded(most or 0)} in use"
    takes = f", and it takes {rounded(taken)}" if taken != 1 else ""
    return Cause(
        AT_LIMIT,
        f"its concurrency limit: {name}, {in_use}{takes}",
        "jobs of that limit that end, a smaller increment, or a larger "
        f"{knobs_of(name)[0].upper()} on the central manager",
    )


def _at_ceiling(negotiation: NegotiatorFacts, name: str) -> Optional[Cause]:
    submitter = negotiation.submitters.get(name.lower())
    if submitter is None or submitter.ceiling is None or floor(submitter.used) < submitter.ceiling:
        return None
    name, used, ceiling, _ = submitter
    return Cause(
        AT_CEILING,
        f"submitter {name} uses {rounded(used)} of its ceiling of {ceiling} {_UNIT}",
        f"its jobs that end, or condor_userprio -setceiling {name}@… N (-1: none)",
    )


def _at_quota(groups: Mapping[str, AccountedGroup], submitter: str) -> Optional[Cause]:
    """Reason by the quota of a submitter's group or of one that it is within."""
    name = group_in(groups, submitter)
    group = groups.get(name)
    if group is None or name == ROOT or group.surplus == "regroup":
        return None
    if group.surplus == "no" and group.quota is not None and group.used >= floor(group.quota):
        cut = ", which the negotiator cuts to 0," if 0 < group.quota < 1 else ""
        return _quota_cause(group, group.name, group.used, f"{rounded(group.quota)} {_UNIT}{cut}")
    for above in (group, *(groups[level] for level in reversed(levels_above(name)))):
        quota, outer = above.subtree_quota, above.name.lower()
        if above.surplus != "no" or quota is None:
            continue
        used = fsum(group.used for key, group in groups.items() if is_within(key, outer))
        if floor(max(0.0, quota - used) + group.used) <= group.used:
            inner = "" if above is group else f", which {group.name} is within,"
            words = f"{rounded(quota)} {_UNIT} with the groups within it"
            return _quota_cause(above, f"{above.name}{inner}", used, words)
    return None


def _quota_cause(group: AccountedGroup, who: str, used: float, quota: str) -> Cause:
    remedy = f"jobs of {group.name} that end, a larger quota of it (GROUP_QUOTA_{group.name})"
    surplus = f"GROUP_ACCEPT_SURPLUS_{group.name} = True"
    return Cause(
        AT_QUOTA,
        f"group {who} uses {rounded(used)} of its quota of {quota} and takes no surplus",
        f"{remedy}, or {surplus} on the central manager",
    )


def before(negotiation: NegotiatorFacts, name: str) -> Optional[list[Submitter]]:
    """Submitters with idle jobs that are served before one, the first first; None if not known."""
    order_of_it = _order(negotiation, name)
    if order_of_it is None or negotiation.idle_jobs is None:
        return None
    ahead = [
        (order, other)
        for key, other in negotiation.submitters.items()
        if negotiation.idle_jobs.get(key)
        and (order := _order(negotiation, key)) is not None
        and order < order_of_it
        and _at_ceiling(negotiation, key) is None
        and _at_quota(negotiation.groups, key) is None
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
    """Turn of a job with these facts and this match, as the record JobTurn of its JSON."""
    name = facts["submitter"] or ""
    limits = limits_in(negotiation, verdict["limits"])
    group = negotiation.groups.get(group_in(negotiation.groups, name))
    charged, ahead = negotiation.submitters.get(name.lower()), before(negotiation, name)
    idle = negotiation.idle_jobs or {}
    why = cause(negotiation, name, facts["schedd"], limits)
    return {
        "cause": why._asdict() if why else None,
        "group": group._asdict() if group and len(negotiation.groups) > 1 else None,
        "submitter": charged._asdict() if charged else None,
        "limits": [limit._asdict() for limit in dict.fromkeys(chain.from_iterable(limits))],
        "before": ahead and [{**o._asdict(), "idle_jobs": idle[o.name.lower()]} for o in ahead],
        "cycle_ended_at": negotiation.cycle_ended_at,
        "period_seconds": negotiation.period_seconds,
        "problems": list(negotiation.problems),
    }


def over_quota(order: Mapping[str, Any]) -> str:
    """By how much the group of a `turn` is over its quota, in words; empty if it is not."""
    used, quota = ((order["group"] or {}).get(name) for name in ("used", "quota"))
    if quota is None or used <= quota:
        return ""
    return f"{rounded(used - quota)} {_UNIT} over its quota of {rounded(quota)}"


OLD_SECONDS = 3600
"""Age of a cycle that says nothing of now."""
LEAST_OVER_RATIO = 0.01
"""Part of its share by which a group is over it, at least, to be called so."""


@dataclass(frozen=True)
class Prospect:
    """Share of a job's group, and waits of its like, as the ledger has them."""

    problem: Optional[str] = None
    """Why nothing is known; None if the rest is filled."""
    cycle: int = 0
    taken_at: int = 0
    """Unix seconds of the cycle."""
    power_hs06: Optional[float] = None
    """Power that its group uses; None for no configured group."""
    share_hs06: Optional[float] = None
    """Setpoint of its group."""
    over_hs06: float = 0.0
    """Power beyond the setpoint; 0 if it is at its share or below."""
    block_nodes: tuple[str, ...] = ()
    """Nodes whose target frees a block of its size for its group, the first block first."""
    block_seconds: float = 0.0
    """Expected time from now until the first of them is free."""
    started: Optional[WaitTimes] = None
    """Of jobs of its group and size that have started in the hour before the cycle."""

    @property
    def over(self) -> str:
        """By how much its group is over its share, in words; empty if it is not, or not known."""
        if not self.over_hs06:
            return ""
        return f"{self.over_hs06:.0f} HS06 over its share of {self.share_hs06:.0f}"


def prospect(record: Optional[CycleRecord], group: str, cores: int, now: int) -> Prospect:
    """Prospect of a job of a configured group at Unix time ``now``.

    ``record`` is the latest complete cycle, or None. ``cores`` are 0 if not known.
    """
    if record is None:
        return Prospect("the ledger has no complete cycle: `sharectl cycle`")
    age = now - record.taken_at
    if age > OLD_SECONDS:
        return Prospect("the last complete cycle of the ledger is more than an hour old")
    control = next((control for control in record.groups if control.group == group), None)
    due = control.setpoint_hs06 if control else None
    over = control.control_error_hs06 if control else 0.0
    freeing = sorted(
        (max(0.0, node.wait_seconds - age), node.node)
        for node in record.nodes
        if node.target and not record.observed
        if (node.target.helped, node.target.request_cores) == (group, cores)
    )
    like_it = (w.started for w in record.waits if (w.group, w.cores) == (group, cores))
    return Prospect(
        None,
        record.number,
        record.taken_at,
        control.error.usage.power_hs06 if control else None,
        due,
        over if over > LEAST_OVER_RATIO * (due or 0.0) else 0.0,
        tuple(node for _, node in freeing),
        freeing[0][0] if freeing else 0.0,
        next(like_it, None),
    )
