"""A negotiator's last cycles and knobs, and accounting groups with quotas by its knobs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import fsum, isnan
from typing import Any, NamedTuple, Optional

from sharectl.condor.ads import classads, evaluated, expression, number, value_of
from sharectl.condor.configuration import literal, words_of
from sharectl.condor.daemons import daemon, knobs_of_daemon, locations, macros, query, why_silent
from sharectl.errors import InputError, PoolUnavailableError
from sharectl.words import Problems

KNOBS = ("NEGOTIATOR_INTERVAL", "NEGOTIATOR_CYCLE_DELAY", "NEGOTIATOR_MIN_INTERVAL")
_DURATION = re.compile(r"LastNegotiationCycleDuration(\d{1,2})", re.IGNORECASE)
_MOST_SECONDS = 1e7
_SECONDS = re.compile(r"[0-9]{1,9}")

# ---- cycles


class Cycle(NamedTuple):
    """A negotiation cycle that has ended."""

    duration_seconds: float
    """Whole seconds, as the negotiator's clock has them."""
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
        duration, idle = (
            number(evaluated(ad, f"LastNegotiationCycle{name}{index}"), -1.0, most=_MOST_SECONDS)
            for name in ("Duration", "NumIdleJobs")
        )
        if duration >= 0:
            cycles.append(Cycle(duration, int(idle) if idle >= 0 else None))
    return cycles


# ---- groups by knobs

Knobs = Mapping[str, str]
"""Knobs of quotas that are set, lower case → text."""

_NAMES, _STATIC, _DYNAMIC = "group_names", "group_quota", "group_quota_dynamic"
_QUOTAS = {
    _DYNAMIC: (1, "write a share such as 0.25"),
    _STATIC: (2**31 - 1, "write a number of weighted slots such as 40"),
}
"""Knob of a group's quota -> most, the least is 0, and remedy; of two of a group the last one here
counts (hgq_construct_tree in GroupEntry.cpp)."""
_SURPLUS = {"group_autoregroup": "regroup", "group_accept_surplus": "byquota"}
"""Knob -> policy; the first that is on counts."""
_OVERSUBSCRIBE = "negotiator_allow_quota_oversubscription"
_SLOTS = ("negotiator_slot_constraint", "negotiator_slot_poolsize_constraint")
"""Constraints of the slots that a negotiator sees, and of those that dynamic quotas are of."""
_KNOB = re.compile(
    rf"(?P<all>{'|'.join((_NAMES, _OVERSUBSCRIBE, *_SURPLUS, *_SLOTS))})"
    rf"|(?P<kind>{'|'.join((_DYNAMIC, _STATIC, *_SURPLUS))})_"
    r"(?!max_allocation_rounds$|round_robin_rate$)(?P<group>.+)"
)


class GroupWeight(NamedTuple):
    """Group of the negotiator that has a quota."""

    weight: Optional[float]
    """Weighted slots for it and the groups within it; None if not known."""
    surplus: str
    """``no``, ``byquota`` (GROUP_ACCEPT_SURPLUS) or ``regroup`` (GROUP_AUTOREGROUP)."""


class Quota(NamedTuple):
    """Configured quota of a group."""

    value: float
    """Weighted slots if static, else a share of what its parent has left, 0 to 1; >= 0."""
    static: bool


def quota_knobs(collector: Any, name: Optional[str] = None) -> dict[str, str]:
    """Knobs of quotas of the only negotiator, or that of a name; raises PoolUnavailableError."""
    location = one_of(locations(collector, "Negotiator"), name)
    try:
        return knobs_of_daemon(location, _KNOB.fullmatch)
    except Exception as error:
        raise type(error)(why_silent(location.get("MyAddress", ""), "NEGOTIATOR", error)) from error


def _number(text: str) -> Optional[float]:
    """Number that HTCondor takes it for (param_double), a literal or an expression; or None."""
    with suppress(ValueError):
        return float(text.replace("_", "?"))
    value = value_of(expression(text), classads().ClassAd())
    return float(value) if type(value) in (bool, int, float) else None


def _fault(kind: str, text: str) -> Optional[str]:
    """Remedy of an invalid value of a knob; None of a valid one."""
    if kind in _QUOTAS:
        most, remedy = _QUOTAS[kind]
        value = _number(text)
        is_valid = value is not None and 0 <= value <= most
        return None if is_valid else f"{remedy}, in the range 0 to {most}"
    is_valid = kind in (_NAMES, *_SLOTS) or literal(text) is not None
    return None if is_valid else "write True or False"


def one_of(negotiators: Sequence[Mapping[str, str]], name: Optional[str]) -> Mapping[str, str]:
    """Location of the negotiator with a name, or of the only one; raises PoolUnavailableError."""
    matching = [ad for ad in negotiators if name is None or ad["Name"].lower() == name.lower()]
    if len(matching) == 1:
        return matching[0]
    names = ", ".join(sorted(ad["Name"] for ad in negotiators)) or "none"
    wanted = f"no negotiator {name}" if name else f"{len(negotiators)} negotiators"
    raise PoolUnavailableError(
        f"the collector knows {wanted}: {names}; see condor_status -negotiator, and write the name "
        "of one as pledges.negotiator.name"
    )


def names_of(knobs: Knobs) -> list[str]:
    """GROUP_NAMES, lower case, but for those within groups that it lacks: HTCondor ignores them."""
    names = words_of(knobs.get(_NAMES, "").lower())
    return [name for name in names if names_above(name) <= {*names}]


def names_above(name: str) -> set[str]:
    """Groups that a dotted group is within."""
    parts = name.split(".")
    return {".".join(parts[:depth]) for depth in range(1, len(parts))}


def slots_of(knobs: Knobs) -> Optional[str]:
    """Constraint of the slots that dynamic quotas are shares of; None for all."""
    return " && ".join(f"({knobs[name]})" for name in _SLOTS if name in knobs) or None


def groups_of_knobs(
    knobs: Knobs, name: str, pool_weight: Optional[float]
) -> dict[str, GroupWeight]:
    """Groups that have a quota, lower case.

    ``name`` stands for the knobs in errors; dynamic quotas are shares of ``pool_weight``, the sum
    of the weights of all slots, None if not known. The negotiator reads no knob of a group that is
    not in GROUP_NAMES, and ends on invalid ones. Raises InputError on these, or if no quota is set.
    """
    names = names_of(knobs)
    by: dict[tuple[str, str], str] = {}
    for match in filter(None, map(_KNOB.fullmatch, knobs)):
        kind, group, text = match["all"] or match["kind"], match["group"] or "", knobs[match[0]]
        is_read = not group or group in names or _NAMES not in knobs
        # HTCondor takes a quota that is not a number for not set.
        if is_read and not (kind in _QUOTAS and isnan(_number(text) or 0.0)):
            by[kind, group] = text
    for _, group in [key for key in by if key[0] == _STATIC]:
        by.pop((_DYNAMIC, group), None)
    problems = Problems()
    for (kind, group), text in by.items():
        if fault := _fault(kind, text):
            knob = f"{kind.upper()}_{group}".rstrip("_")
            fact = f"{knob[:60]} is {text[:40]!r}: HTCondor's negotiator ends on it"
            problems.add(name, f"{fact}, so {group or 'every group'} has no valid quota; {fault}")
    written = {group: kind for kind, group in by if kind in _QUOTAS}
    if not problems and not written:
        problems.add(name, "no quota in it; write GROUP_QUOTA_<group> = number")
    if problems:
        raise InputError(problems.lines())
    # As the negotiator has it, a group without a quota has none to pass on.
    quotas = dict.fromkeys(names, Quota(0.0, static=False))
    for group, kind in written.items():
        quotas[group] = Quota(_number(by[kind, group]) or 0.0, kind == _STATIC)
    on = {key for key, text in by.items() if literal(text)}
    # HTCondor's own default is True.
    oversubscribe = (_OVERSUBSCRIBE, "") in on or (_OVERSUBSCRIBE, "") not in by
    effective = effective_quotas(quotas, pool_weight, oversubscribe=oversubscribe)
    groups = {}
    for group in sorted(written):
        own = {kind: group if (kind, group) in by else "" for kind in _SURPLUS}
        policy = next((_SURPLUS[kind] for kind in own if (kind, own[kind]) in on), "no")
        groups[group] = GroupWeight(effective.get(group), policy)
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
