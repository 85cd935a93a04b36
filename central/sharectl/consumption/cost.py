"""Matches against slots: assets that they take, cost for the group, claims that follow.

The negotiator's arithmetic over values of the policy's expressions, which HTCondor's own library
evaluates (`sharectl.consumption.asks`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from math import ceil
from typing import Any, Callable, NamedTuple, Optional, Union

from sharectl.shares.quotas import ROOT, Group

Amount = Union[int, float]
"""Amount of an asset, in HTCondor's units: cores, MiB of Memory, KiB of Disk."""

WEIGHT_OF_THE_WEIGHTLESS = 1.0
"""Cost of a match without policy on a slot whose SlotWeight is negative or no number."""
STARTD_LEAST = {"cpus": 1, "memory": 1}
"""Least amounts that a startd takes for a claim, whatever the policy is."""
_BEYOND_INTEGERS = 2**63
"""Smallest number that a ClassAd's integer cannot hold."""
_ROUNDING = 1e-9


class Refusal(Enum):
    """Reason why the negotiator makes no match."""

    NO_ASSET = "slot has no such asset: a negotiator that sees a policy ends"
    NOT_A_NUMBER = "what the job takes is no number"
    NEGATIVE = "what the job takes is negative"
    SHORT = "not enough is left"
    NEVER = "more than the slot has when it is empty"
    ALL_ZERO = "the job takes nothing of any asset"
    WEIGHT = "SlotWeight is no number after the match: the negotiator ends"
    SLOT_REQUIREMENTS = "slot's Requirements"
    JOB_REQUIREMENTS = "job's Requirements"


class Refused(NamedTuple):
    """A reason, and the assets that it is about."""

    why: Refusal
    assets: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Words for people."""
        return f"{', '.join(self.assets)}: {self.why.value}" if self.assets else self.why.value


class SlotKind(Enum):
    """Treatment of a slot by the negotiator."""

    POLICY = "consumption policy"
    PARTITIONABLE = "partitionable, no policy"
    STATIC = "static"


@dataclass(frozen=True)
class PricedSlots:
    """Slots that policies, weights and Requirements cannot tell apart."""

    names: tuple[str, ...]
    kind: SlotKind
    assets: Mapping[str, Optional[Amount]]
    """Asset of MachineResources, without Swap -> amount; None if it is no number."""
    no_policy_because: tuple[str, ...] = ()
    """Reasons why the negotiator sees no policy, for people."""
    slot_type: Optional[int] = None
    state: str = ""
    """State in which they have no claims to give, else empty."""
    num_claims: Optional[int] = None
    """Claim ids for one cycle, where there is a policy; None if they are unknown."""
    weight: Optional[float] = None

    @property
    def has_policy(self) -> bool:
        """The negotiator follows a consumption policy."""
        return self.kind is SlotKind.POLICY


class Look(NamedTuple):
    """Values of a slot's expressions, in one state, for one job."""

    weight: Optional[float]
    consumed: Mapping[str, Optional[float]]
    """Asset -> amount that the policy takes; None if it is no finite number."""
    slot_accepts: Optional[bool] = None
    """The slot's Requirements, with requests replaced as the negotiator does; None without any."""
    job_accepts: Optional[bool] = None


@dataclass(frozen=True)
class Match:
    """Answer of a slot to a job."""

    consumed: Mapping[str, Optional[float]]
    refused: tuple[Refused, ...] = ()
    weight_before: Optional[float] = None
    weight_after: Optional[float] = None
    remaining: Mapping[str, Amount] = field(default_factory=dict)
    """Asset -> rest after the match."""
    cost: Optional[float] = None
    """Charge of the negotiator: fall of the weight, or all of it where there is no policy."""
    fits: int = 0
    """Such jobs that the slot takes one after another, this one included."""
    at_least: bool = False
    """Counting ended before the slot did."""
    weight_after_all: Optional[float] = None
    usage: Optional[float] = None
    """SlotWeight of the dynamic slot: the charge from the next cycle on; None if it is unknown."""


def refusals(slot: PricedSlots, assets: Mapping[str, Amount], look: Look) -> tuple[Refused, ...]:
    """Reasons against a job on a slot with ``assets`` left."""
    taken = {asset: amount for asset, amount in look.consumed.items() if amount is not None}
    by_assets = {
        Refusal.NO_ASSET: [asset for asset in look.consumed if asset not in assets],
        Refusal.NOT_A_NUMBER: [asset for asset in look.consumed if asset not in taken],
        Refusal.NEGATIVE: [asset for asset, amount in taken.items() if amount < 0],
        Refusal.SHORT: [a for a, amount in taken.items() if a in assets and assets[a] < amount],
    }
    all_zero = len(taken) == len(look.consumed) and not any(taken.values())
    by_slot = {
        Refusal.ALL_ZERO: slot.has_policy and all_zero,
        Refusal.WEIGHT: slot.has_policy and look.weight is None,
        Refusal.SLOT_REQUIREMENTS: look.slot_accepts is False,
        Refusal.JOB_REQUIREMENTS: look.job_accepts is False,
    }
    return (
        *(Refused(why, tuple(names)) for why, names in by_assets.items() if names),
        *(Refused(why) for why, applies in by_slot.items() if applies),
    )


def match_of(
    slot: PricedSlots, look: Callable[[Optional[Mapping[str, Amount]]], Look], most: int
) -> Match:
    """Match of a job with a slot, and the number of its like that fit, up to ``most``.

    ``look`` returns the values for the job with these assets left; None for the slot as it is.
    """
    most = 1 if slot.kind is SlotKind.STATIC else most
    first = now = look(None)
    whole = {name: amount for name, amount in slot.assets.items() if amount is not None}
    assets = remaining = whole
    refused, fits, after = refusals(slot, whole, first), 0, None
    while not refused and fits < most:
        taken = now.consumed.items()
        assets = {**assets, **{n: whole_if_it_is(assets[n] - (v or 0)) for n, v in taken}}
        now = look(assets)
        if slot.has_policy and now.weight is None:
            refused = (Refused(Refusal.WEIGHT),)
            break
        fits += 1
        if fits == 1:
            remaining, after = assets, now.weight
        refused = refusals(slot, assets, now)
    match = Match(first.consumed, (), first.weight, after, remaining, fits=fits)
    if not fits:
        return replace(match, refused=refused)
    usage = first.weight
    if slot.kind is not SlotKind.STATIC:
        dynamic = {
            name: max(whole_if_it_is(amount or 0), STARTD_LEAST.get(name.lower(), 0))
            for name, amount in first.consumed.items()
        }
        usage = look({**whole, **dynamic}).weight
    return replace(
        match,
        cost=_cost(slot, first.weight, after),
        at_least=not refused and most > 1,
        weight_after_all=now.weight,
        usage=usage,
    )


def whole_if_it_is(amount: float) -> Amount:
    """``amount`` as the negotiator writes it into the slot: an integer if it is one."""
    return int(amount) if abs(amount) < _BEYOND_INTEGERS and amount == int(amount) else amount


def _cost(slot: PricedSlots, before: Optional[float], after: Optional[float]) -> Optional[float]:
    if not slot.has_policy:
        return before if before is not None and before >= 0 else WEIGHT_OF_THE_WEIGHTLESS
    return before - after if before is not None and after is not None else None


def reasons_against(match: Match, empty: Match) -> list[Refused]:
    """Reasons against a match; assets that the empty slot has not enough of either are `NEVER`."""
    missing = {a for why, assets in empty.refused if why is Refusal.SHORT for a in assets}
    reasons = []
    for why, assets in match.refused:
        never = tuple(a for a in assets if why is Refusal.SHORT and a in missing)
        rest = tuple(asset for asset in assets if asset not in never)
        reasons += [Refused(Refusal.NEVER, never)] if never else []
        reasons += [Refused(why, rest)] if rest or not never else []
    return reasons


@dataclass(frozen=True)
class PricedJobs:
    """Jobs of one kind and one group."""

    names: tuple[str, ...]
    count: int
    accounting_group: str


@dataclass(frozen=True)
class Offer:
    """Slots of one kind, and their answer to one kind of job."""

    slots: int
    match: Match
    kind: SlotKind = SlotKind.POLICY

    @property
    def usage_each(self) -> float:
        """Least lasting charge of a claim: mean cost in its cycle, or usage from the next on."""
        match, usage = self.match, []
        if match.usage is not None:
            usage.append(match.usage)
        before, after = match.weight_before, match.weight_after_all
        if self.kind is SlotKind.POLICY and before is not None and after is not None:
            usage.append((before - after) / match.fits)
        return min(usage, default=match.cost or 0.0)


@dataclass(frozen=True)
class Priced:
    """Each kind of slot with each kind of job, by their numbers in ``slots`` and ``jobs``."""

    slots: tuple[PricedSlots, ...]
    jobs: tuple[PricedJobs, ...]
    matches: Sequence[Sequence[Match]]
    empty: Sequence[Sequence[Match]]
    """Matches with the slots when nothing runs on them; only their refusals count."""

    def offers(self, job: int) -> list[Offer]:
        """Answers of slots that have claims to give and take jobs of a kind."""
        return [
            Offer(len(slots.names), row[job], slots.kind)
            for slots, row in zip(self.slots, self.matches)
            if not slots.state and not row[job].refused
        ]

    def fits_empty(self, job: int) -> bool:
        """Some slot takes jobs of the kind, as it is or when nothing runs on it."""
        return bool(self.offers(job)) or any(not row[job].refused for row in self.empty)


def claims_within(room: float, offers: Iterable[Offer]) -> int:
    """Claims, at most, of a group with so much room, in the long run without leftovers.

    The negotiator lets the last match go over the limit, if anything of the limit is left.
    """
    count = 0
    for charge, most in sorted((o.usage_each, o.slots * o.match.fits) for o in offers):
        made = _made(room, charge, most)
        count += made
        room -= made * charge
    return count


def leftover_claims(room: float, offers: Iterable[Offer]) -> tuple[int, float]:
    """Claims, at most, of a group in a cycle with leftovers, and their usage.

    The negotiator charges each match, and the schedds fill these slots without it.
    """
    claims, usage = 0, 0.0
    split = sorted(
        (offer.match.cost or 0.0, offer.slots, offer.match.fits, offer.usage_each)
        for offer in offers
        if offer.kind is not SlotKind.STATIC
    )
    for charge, slots, fits, of_claim in split:
        matched = _made(room, charge, slots)
        room -= matched * charge
        claims += matched * fits
        usage += matched * fits * of_claim
    return claims, usage


def _made(room: float, price: float, most: int) -> int:
    """Matches at a price until the room is used up; the last may go beyond."""
    if room <= _ROUNDING:
        return 0
    return most if price <= 0 or price * most <= room else ceil(room / price - _ROUNDING)


Ends = Optional[tuple[float, float]]
"""Least and most; None if an amount is unknown."""


def group_cost(
    group: Group, priced: Priced, jobs: Sequence[int], *, leftovers: bool
) -> dict[str, Any]:
    """Price of the pending jobs of a group, by their numbers, in weighted slots.

    Keys: jobs, jobs_without_slot, cost (each job on its cheapest slot), cost_differs (least and
    most cost of the job that depends most on the slot), smallest_cost, smallest_weight, usage
    (from the next cycle on, as cost), usage_differs, leftover_claims, leftover_usage,
    quota_below_every_weight, past_quota. None is unknown. ``leftovers`` is
    CLAIM_PARTITIONABLE_LEFTOVERS of the access points.
    """
    counts = {job: priced.jobs[job].count for job in jobs}
    taken = {job: offers for job in jobs if (offers := priced.offers(job))}
    costs = {job: _ends(offer.match.cost for offer in offers) for job, offers in taken.items()}
    usages = {job: _ends(offer.match.usage for offer in offers) for job, offers in taken.items()}
    weights = [o.match.weight_before for offers in taken.values() for o in offers]
    weight = min((weight for weight in weights if weight is not None), default=None)
    runs = [(0.0, 0)]
    for job, offers in taken.items() if leftovers else ():
        claims, usage = leftover_claims(group.room or 0.0, offers)
        made = min(claims, counts[job])
        runs.append((usage * made / claims if claims else 0.0, made))
    leftover_usage, claims = max(runs)
    # The quota of the root is no promise.
    limit, room = (None, None) if group.name == ROOT else (group.limit, group.room)
    is_below = None if limit is None or weight is None else limit < weight - _ROUNDING
    return {
        "jobs": sum(counts.values()),
        "jobs_without_slot": sum(count for job, count in counts.items() if job not in taken),
        "cost": _sum(counts, costs),
        "cost_differs": max(filter(_spread, costs.values()), key=_spread, default=None),
        "smallest_cost": min((ends[0] for ends in costs.values() if ends), default=None),
        "smallest_weight": weight,
        "usage": _sum(counts, usages),
        "usage_differs": any(map(_spread, usages.values())),
        "leftover_claims": claims,
        "leftover_usage": leftover_usage,
        "quota_below_every_weight": is_below,
        "past_quota": None if room is None else max(0.0, leftover_usage - room),
    }


def _ends(amounts: Iterable[Optional[float]]) -> Ends:
    every = list(amounts)
    sure = [amount for amount in every if amount is not None]
    return (min(sure), max(sure)) if len(sure) == len(every) else None


def _spread(ends: Ends) -> float:
    spread = ends[1] - ends[0] if ends else 0.0
    return spread if spread > _ROUNDING else 0.0


def _sum(counts: Mapping[int, int], ends: Mapping[int, Ends]) -> Optional[float]:
    """Least sum over all jobs; None without any, or if one is unknown."""
    least = [counts[job] * pair[0] for job, pair in ends.items() if pair]
    return sum(least) if least and len(least) == len(ends) else None


def by_group(groups: Sequence[Group], jobs: Sequence[PricedJobs]) -> list[tuple[Group, list[int]]]:
    """Each group with the numbers of its jobs; every job is of one.

    Jobs of no group are of the root; without any group, each accounting group of jobs is one.
    """
    spelt = {group.name.lower(): group.name for group in groups}
    of_jobs = [
        _group_of(job.accounting_group, spelt) if groups else job.accounting_group or ROOT
        for job in jobs
    ]
    others = {name.lower(): name for name in reversed(of_jobs) if name.lower() not in spelt}
    unknown = sorted(others.values(), key=lambda name: (name == ROOT, name.lower()))
    every = [*groups, *(Group(name, None, None, None) for name in unknown)]
    return [
        (group, [n for n, name in enumerate(of_jobs) if name.lower() == group.name.lower()])
        for group in every
    ]


def _group_of(name: str, spelt: Mapping[str, str]) -> str:
    """Longest of the groups that begins an accounting group ``a.b``, or `ROOT`."""
    parts = name.lower().split(".")
    beginnings = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((spelt[part] for part in beginnings if part in spelt), ROOT)
