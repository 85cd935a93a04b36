"""A negotiator's last cycles and knobs, and accounting groups with quotas by its knobs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import fsum, isnan
from typing import Any, Optional

from sharectl.condor.ads import classads, evaluated, expression, number, value_of
from sharectl.condor.configuration import literal, words_of
from sharectl.condor.daemons import UNSET, daemon, locations, macros, query, why_silent
from sharectl.errors import InputError, PoolUnavailableError
from sharectl.shares.pledges import Group
from sharectl.words import Problems

KNOBS = ("NEGOTIATOR_INTERVAL", "NEGOTIATOR_CYCLE_DELAY", "NEGOTIATOR_MIN_INTERVAL")
_DURATION = re.compile(r"LastNegotiationCycleDuration(\d{1,2})", re.IGNORECASE)
_MOST_SECONDS = 1e7
_SECONDS = re.compile(r"[0-9]{1,9}")

# ---- cycles


@dataclass(frozen=True)
class Cycle:
    """A negotiation cycle that has ended."""

    duration_seconds: float
    """Whole seconds, as the negotiator's clock has them."""
    period_seconds: Optional[float]
    """From the start of the one before; None if there was none."""
    idle_jobs: Optional[int]
    """Jobs that waited for a slot."""


def cycles_and_knobs(location: Mapping[str, str]) -> tuple[list[Cycle], dict[str, int]]:
    """Last cycles of a negotiator, the newest first, and its values of `KNOBS`, in seconds."""
    ads = query(daemon(location), "Negotiator")
    configuration = macros(location)
    values = {name: str(configuration.get(name)) for name in KNOBS}
    knobs = {name: int(value) for name, value in values.items() if _SECONDS.fullmatch(value)}
    return cycles_of(ads[0]) if ads else [], knobs


def cycles_of(ad: Any) -> list[Cycle]:
    """Cycles in a negotiator's ad (NEGOTIATION_CYCLE_STATS_LENGTH of them)."""
    cycles = []
    for index in sorted(int(match[1]) for name in ad if (match := _DURATION.fullmatch(name))):
        duration, period, idle = (
            number(evaluated(ad, f"LastNegotiationCycle{name}{index}"), -1.0, most=_MOST_SECONDS)
            for name in ("Duration", "Period", "NumIdleJobs")
        )
        if duration >= 0:
            jobs = int(idle) if idle >= 0 else None
            cycles.append(Cycle(duration, period if period > 0 else None, jobs))
    return cycles


# ---- groups by knobs

_STATIC, _DYNAMIC = "group_quota", "group_quota_dynamic"
_QUOTAS = {
    _DYNAMIC: (1, "write a share such as 0.25"),
    _STATIC: (2**31 - 1, "write a number of weighted slots such as 40"),
}
"""Knob of a group's quota -> most, the least is 0, and remedy; of two of a group the last one here
counts (hgq_construct_tree in GroupEntry.cpp)."""
_SURPLUS = {"group_autoregroup": "regroup", "group_accept_surplus": "byquota"}
"""QuotaKnob -> policy; the first that is on counts."""
_NAMES = "group_names"
_OVERSUBSCRIBE = "negotiator_allow_quota_oversubscription"
_SLOTS = ("negotiator_slot_constraint", "negotiator_slot_poolsize_constraint")
"""Constraints of the slots that a negotiator sees, and of those that dynamic quotas are of."""
_OF_ALL = (_NAMES, _OVERSUBSCRIBE, *_SURPLUS, *_SLOTS)
_OF_GROUP = re.compile(
    rf"({'|'.join((_DYNAMIC, _STATIC, *_SURPLUS))})_"
    r"(?!max_allocation_rounds$|round_robin_rate$)(.+)"
)
_OWN_PREFIX = re.compile(r"NEGOTIATOR\w*\.", re.IGNORECASE)
"""Prefix of knobs for negotiators, and for those with a local name too."""
_WRITE = "write GROUP_QUOTA_<group> = number"


@dataclass(frozen=True)
class QuotaKnob:
    """A knob and the place of its value."""

    place: str
    name: str
    value: str

    @property
    def parts(self) -> tuple[str, str]:
        """Name in lower case without the group, and the group; two empty texts of other knobs."""
        key = self.name.lower()
        match = _OF_GROUP.fullmatch(key)
        return (match[1], match[2]) if match else (key if key in _OF_ALL else "", "")

    @property
    def is_unset(self) -> bool:
        """True if HTCondor takes it for not set."""
        return not self.value or (self.parts[0] in _QUOTAS and isnan(self.number or 0.0))

    @property
    def fault(self) -> Optional[str]:
        """Remedy of an invalid value; None of a valid one."""
        kind, _ = self.parts
        if kind in _QUOTAS:
            most, remedy = _QUOTAS[kind]
            is_valid = self.number is not None and 0 <= self.number <= most
            return None if is_valid else f"{remedy}, in the range 0 to {most}"
        if kind in (_NAMES, *_SLOTS) or literal(self.value) is not None:
            return None
        return "write True or False"

    @property
    def number(self) -> Optional[float]:
        """Number that HTCondor takes it for (param_double), a literal or an expression; or None."""
        with suppress(ValueError):
            return float(self.value.replace("_", "?"))
        value = value_of(expression(self.value), classads().ClassAd())
        return float(value) if type(value) in (bool, int, float) else None


@dataclass(frozen=True)
class Quota:
    """Configured quota of a group."""

    value: float
    """Weighted slots if static, else a share of what its parent has left, 0 to 1; >= 0."""
    static: bool


def quota_knobs(collector: Any, name: Optional[str] = None) -> list[QuotaKnob]:
    """Knobs of quotas of the only negotiator, or that of a name; raises PoolUnavailableError."""
    location = one_of(locations(collector, "Negotiator"), name)
    try:
        configuration = macros(location)
        # It resolves its prefixes itself.
        names = dict.fromkeys(_OWN_PREFIX.sub("", key) for key in configuration)
        every = (QuotaKnob(f"negotiator {location['Name']}", key, "") for key in names)
        read = (
            replace(knob, value=str(configuration[knob.name]).strip())
            for knob in every
            if any(knob.parts)
        )
        return [knob for knob in read if knob.value.lower() not in UNSET]
    except Exception as error:
        raise type(error)(why_silent(location.get("MyAddress", ""), "NEGOTIATOR", error)) from error


def one_of(negotiators: Sequence[Mapping[str, str]], name: Optional[str]) -> Mapping[str, str]:
    """Location of the negotiator with a name, or of the only one; raises PoolUnavailableError."""
    matching = [ad for ad in negotiators if name is None or ad["Name"].lower() == name.lower()]
    if len(matching) == 1:
        return matching[0]
    if not negotiators:
        fact = "the collector knows no negotiator; see condor_status -negotiator"
        raise PoolUnavailableError(fact)
    names = ", ".join(sorted(ad["Name"] for ad in negotiators))
    wanted = f"no negotiator {name}" if name else f"{len(negotiators)} negotiators"
    remedy = "write the name of one as pledges.negotiator.name"
    raise PoolUnavailableError(f"the collector knows {wanted}, but {names}; {remedy}")


def names_of(knobs: Iterable[QuotaKnob]) -> list[str]:
    """GROUP_NAMES, lower case, but for those within groups that it lacks: HTCondor ignores them."""
    values = [knob.value.lower() for knob in knobs if knob.parts[0] == _NAMES]
    names = words_of(values[-1]) if values else []
    return [name for name in names if names_above(name) <= {*names}]


def names_above(name: str) -> set[str]:
    """Groups that a dotted group is within."""
    parts = name.split(".")
    return {".".join(parts[:depth]) for depth in range(1, len(parts))}


def slots_of(knobs: Iterable[QuotaKnob]) -> Optional[str]:
    """Constraint of the slots that dynamic quotas are shares of; None for all."""
    by = {knob.parts[0]: knob.value for knob in knobs}
    return " && ".join(f"({by[name]})" for name in _SLOTS if by.get(name)) or None


def groups_of_knobs(
    knobs: Iterable[QuotaKnob], name: str, pool_weight: Optional[float]
) -> list[Group]:
    """Groups of knobs of quotas, which count as idle, by name; of equal knobs the last counts.

    ``name`` stands for the knobs in errors; dynamic quotas are shares of ``pool_weight``, the sum
    of the weights of all slots, None if not known. The negotiator reads no knob of a group that is
    not in GROUP_NAMES, and ends on invalid ones.

    Raises InputError if a value is invalid, or no quota is set.
    """
    last = {knob.parts: knob for knob in knobs}
    is_complete = (_NAMES, "") in last
    read = {"", *names_of(last.values())} if is_complete else {group for _, group in last}
    by = {parts: knob for parts, knob in last.items() if parts[1] in read and not knob.is_unset}
    for group in read:
        if (_STATIC, group) in by:
            by.pop((_DYNAMIC, group), None)
    problems = Problems()
    for knob in by.values():
        if knob.fault:
            group, value = knob.parts[1] or "every group", knob.value[:40]
            fact = f"{knob.name[:60]} is {value!r}: HTCondor's negotiator ends on it"
            problems.add(knob.place, f"{fact}, so {group} has no valid quota; {knob.fault}")
    written = {group: by[kind, group] for kind in _QUOTAS for of, group in by if of == kind}
    if not problems and not written:
        problems.add(name, f"no quota in it; {_WRITE}")
    if problems:
        raise InputError(problems.lines())
    # As the negotiator has it, a group without a quota has none to pass on.
    quotas = dict.fromkeys(names_of(by.values()), Quota(0.0, static=False))
    for group, knob in written.items():
        quotas[group] = Quota(knob.number or 0.0, knob.parts[0] == _STATIC)
    on = {parts for parts, knob in by.items() if literal(knob.value)}
    # HTCondor's own default is True.
    oversubscribe = (_OVERSUBSCRIBE, "") in on or (_OVERSUBSCRIBE, "") not in by
    effective = effective_quotas(quotas, pool_weight, oversubscribe=oversubscribe)
    groups = []
    for group, knob in sorted(written.items()):
        own = {kind: group if (kind, group) in by else "" for kind in _SURPLUS}
        policy = next((_SURPLUS[kind] for kind in own if (kind, own[kind]) in on), "no")
        groups.append(Group(knob.name[-len(group) :], effective.get(group), 0.0, policy))
    return groups


def effective_quotas(
    configured: Mapping[str, Quota], pool_weight: Optional[float], *, oversubscribe: bool = False
) -> dict[str, Optional[float]]:
    """Group → weighted slots for it and the groups within it, as the negotiator works them out.

    None where that needs a pool weight that is not known. Static quotas come first, shares are of
    the rest. ``configured`` has each dotted group with its parents. To ``oversubscribe``
    (NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION), static quotas are not cut to what their parent has.
    """
    weights: dict[str, Optional[float]] = {"": pool_weight}
    parents = [""]
    for parent in parents:
        within = {
            name: quota for name, quota in configured.items() if name.rpartition(".")[0] == parent
        }
        weights.update(_shared_out(within, weights[parent], oversubscribe=oversubscribe))
        parents += within
    return {name: weights[name] for name in configured if name in weights}


def _shared_out(
    quotas: Mapping[str, Quota], weight: Optional[float], *, oversubscribe: bool
) -> dict[str, Optional[float]]:
    """Weighted slots of the groups of one parent, which has ``weight``."""
    if weight is None:
        return {name: quota.value if quota.static else None for name, quota in quotas.items()}
    static_sum = fsum(quota.value for quota in quotas.values() if quota.static)
    share_sum = fsum(quota.value for quota in quotas.values() if not quota.static)
    used = static_sum if oversubscribe else min(static_sum, weight)
    kept_ratio = used / static_sum if static_sum > 0 else 1.0
    unit = max(0.0, weight - used) / max(1.0, share_sum)
    return {
        name: quota.value * (kept_ratio if quota.static else unit) if weight > 0 else 0.0
        for name, quota in quotas.items()
    }
