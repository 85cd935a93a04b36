"""Matches against slots: assets that they take, cost for the group, claims that follow.

The negotiator's arithmetic over values of the policy's expressions, which HTCondor's own library
evaluates (`sharectl.consumption.asks`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from math import ceil
from typing import Optional, Union

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


@dataclass(frozen=True)
class Refused:
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
class TriedSlot:
    """A slot that jobs are tried on."""

    kind: SlotKind
    assets: Mapping[str, Optional[Amount]]
    """Asset of MachineResources, without Swap -> amount; None if it is no number."""
    no_policy_because: tuple[str, ...] = ()
    """Reasons why the negotiator sees no policy, for people."""

    @property
    def has_policy(self) -> bool:
        """The negotiator follows a consumption policy."""
        return self.kind is SlotKind.POLICY


@dataclass(frozen=True)
class Look:
    """Values of a slot's expressions, in one state, for one job."""

    weight: Optional[float]
    """SlotWeight before the match; None if it is no number."""
    consumed: Mapping[str, Optional[float]]
    """Asset -> amount that the policy takes; None if it is no finite number."""
    slot_accepts: Optional[bool] = None
    """The slot's Requirements, with requests replaced as the negotiator does; None without any."""
    job_accepts: Optional[bool] = None


@dataclass(frozen=True)
class Match:
    """Answer of a slot to a job."""

    consumed: Mapping[str, Optional[float]]
    """See `Look`."""
    refused: tuple[Refused, ...] = ()
    """Reasons against the match; empty if it is made."""
    weight_before: Optional[float] = None
    """SlotWeight; None if it is no number."""
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
    """SlotWeight after all of them."""
    usage: Optional[float] = None
    """SlotWeight of the dynamic slot: the charge from the next cycle on; None if it is unknown."""


Ask = tuple[int, Optional[Mapping[str, Amount]]]
"""Number of a job, and assets that are left when it is tried; None for the slot as it is."""
Trial = Generator[Ask, Look, Match]
"""Questions for looks, one at a time; returns the match."""


def refusals(slot: TriedSlot, assets: Mapping[str, Amount], look: Look) -> tuple[Refused, ...]:
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


def again_and_again(slot: TriedSlot, job: int, most: int) -> Trial:
    """Match of a job with a fresh slot, and the number of its like that fit, up to ``most``."""
    most = 1 if slot.kind is SlotKind.STATIC else most
    look = yield job, None
    whole = {name: amount for name, amount in slot.assets.items() if amount is not None}
    assets = whole
    refused = refusals(slot, assets, look)
    match = Match(look.consumed, refused, look.weight, remaining=assets)
    while not refused and match.fits < most:
        assets = {**assets, **_rest(assets, look)}
        look = yield job, assets
        if slot.has_policy and look.weight is None:
            refused = (Refused(Refusal.WEIGHT),)
            break
        if not match.fits:
            charge = _cost(slot, match.weight_before, look.weight)
            match = replace(match, weight_after=look.weight, remaining=assets, cost=charge)
        match = replace(match, fits=match.fits + 1, weight_after_all=look.weight)
        refused = refusals(slot, assets, look)
    if not match.fits:
        return replace(match, refused=refused)
    if slot.kind is SlotKind.STATIC:
        return replace(match, usage=match.weight_before)
    dynamic = {
        name: max(whole_if_it_is(amount or 0), STARTD_LEAST.get(name.lower(), 0))
        for name, amount in match.consumed.items()
    }
    usage = (yield job, {**whole, **dynamic}).weight
    return replace(match, at_least=not refused and most > 1, usage=usage)


def _rest(assets: Mapping[str, Amount], look: Look) -> dict[str, Amount]:
    return {n: whole_if_it_is(assets[n] - (amount or 0)) for n, amount in look.consumed.items()}


def whole_if_it_is(amount: float) -> Amount:
    """``amount`` as the negotiator writes it into the slot: an integer if it is one."""
    return int(amount) if abs(amount) < _BEYOND_INTEGERS and amount == int(amount) else amount


def _cost(slot: TriedSlot, before: Optional[float], after: Optional[float]) -> Optional[float]:
    if not slot.has_policy:
        return before if before is not None and before >= 0 else WEIGHT_OF_THE_WEIGHTLESS
    return before - after if before is not None and after is not None else None


def reasons_against(match: Match, empty: Optional[Match]) -> tuple[Refused, ...]:
    """Reasons against a match; assets that the empty slot has not enough of either are `NEVER`."""
    short = {
        asset
        for reason in (empty.refused if empty else ())
        for asset in reason.assets
        if reason.why is Refusal.SHORT
    }
    reasons: list[Refused] = []
    for reason in match.refused:
        never = tuple(a for a in reason.assets if reason.why is Refusal.SHORT and a in short)
        rest = tuple(asset for asset in reason.assets if asset not in never)
        reasons += [Refused(Refusal.NEVER, never)] if never else []
        reasons += [replace(reason, assets=rest)] if rest or not never else []
    return tuple(reasons)


@dataclass(frozen=True)
class PricedSlots:
    """Slots of one kind."""

    names: tuple[str, ...]
    slot: TriedSlot
    slot_type: Optional[int] = None
    """SLOT_TYPE_<N> of the startd; None if the ad does not have it."""
    state: str = ""
    """State in which they have no claims to give, else empty."""
    num_claims: Optional[int] = None
    """Claim ids for one cycle, where there is a policy; None if they are unknown."""
    weight: Optional[float] = None
    """SlotWeight of one of them as it is; None if it is no number."""


@dataclass(frozen=True)
class PricedJobs:
    """Jobs of one kind and one group."""

    names: tuple[str, ...]
    """Places of the ads."""
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
    """Each kind of slot with each kind of job."""

    slots: tuple[PricedSlots, ...]
    jobs: tuple[PricedJobs, ...]
    matches: Mapping[tuple[int, int], Match]
    """By numbers in ``slots`` and ``jobs``."""
    empty: Mapping[tuple[int, int], Match]
    """Matches with the slots when nothing runs on them, where there is none as they are."""

    def offers(self, job: int) -> list[Offer]:
        """Answers of slots that have claims to give and take jobs of a kind."""
        return [
            Offer(len(slots.names), self.matches[number, job], slots.slot.kind)
            for number, slots in enumerate(self.slots)
            if not slots.state and not self.matches[number, job].refused
        ]

    def fits_empty(self, job: int) -> bool:
        """Some slot takes jobs of the kind, as it is or when nothing runs on it."""
        empty = any(not match.refused for (_, kind), match in self.empty.items() if kind == job)
        return empty or bool(self.offers(job))


def claims_within(room: float, offers: Iterable[Offer]) -> int:
    """Claims, at most, of a group with so much room, in the long run without leftovers.

    The negotiator lets the last match go over the limit, if anything of the limit is left.
    """
    count = 0
    for charge, most in sorted(
        (offer.usage_each, offer.slots * offer.match.fits) for offer in offers
    ):
        if room <= _ROUNDING:
            break
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
        if room <= _ROUNDING:
            break
        matched = _made(room, charge, slots)
        room -= matched * charge
        claims += matched * fits
        usage += matched * fits * of_claim
    return claims, usage


def _made(room: float, price: float, most: int) -> int:
    """Matches at a price until the room is used up; the last may go beyond."""
    return most if price <= 0 or price * most <= room else ceil(room / price - _ROUNDING)


@dataclass(frozen=True)
class GroupCost:
    """Price of a group's pending jobs, weighted slots."""

    group: Group
    jobs: int
    jobs_without_slot: int
    """Jobs that no slot takes as it is."""
    cost: Optional[float]
    """Each job on its cheapest slot, a lower bound if `cost_differs`; None without a match."""
    cost_differs: Optional[tuple[float, float]]
    """Least and most cost of the job whose cost depends most on the slot; None if no job's does."""
    smallest_cost: Optional[float]
    smallest_weight: Optional[float]
    """Least weight of the slots that they match: the least cost where these have no policy."""
    usage: Optional[float]
    """Charge from the next cycle on, as for ``cost``; None if one is unknown."""
    usage_differs: bool
    leftover_claims: int
    """Claims that schedds can make of matched slots without the negotiator; 0 without leftovers."""
    leftover_usage: float

    @property
    def quota_below_every_weight(self) -> Optional[bool]:
        """Slots without policy give the group one match at a time; None if that is unknown."""
        quota, least = self.group.limit, self.smallest_weight
        if quota is None or least is None or not self.group.has_quota_of_its_own:
            return None
        return quota < least - _ROUNDING

    @property
    def past_quota(self) -> Optional[float]:
        """Usage beyond the quota that leftovers allow; None if that is unknown."""
        if self.group.room is None or not self.group.has_quota_of_its_own:
            return None
        return max(0.0, self.leftover_usage - self.group.room)


def group_cost(group: Group, priced: Priced, jobs: Sequence[int], *, leftovers: bool) -> GroupCost:
    """Price of the jobs of a group, by their numbers.

    Parameters
    ----------
    leftovers
        CLAIM_PARTITIONABLE_LEFTOVERS of the access points.
    """
    counts = {job: priced.jobs[job].count for job in jobs}
    taken = {job: offers for job in jobs if (offers := priced.offers(job))}
    costs = {job: _ends(offer.match.cost for offer in offers) for job, offers in taken.items()}
    usages = {job: _ends(offer.match.usage for offer in offers) for job, offers in taken.items()}
    apart = [ends for ends in costs.values() if ends and _are_apart(ends)]
    weights = (offer.match.weight_before for offers in taken.values() for offer in offers)
    runs = [(0.0, 0)]
    for job, offers in taken.items() if leftovers and group.room is not None else ():
        claims, usage = leftover_claims(group.room or 0.0, offers)
        made = min(claims, counts[job])
        runs.append((usage * made / claims if claims else 0.0, made))
    leftover_usage, claims = max(runs)
    return GroupCost(
        group=group,
        jobs=sum(counts.values()),
        jobs_without_slot=sum(count for job, count in counts.items() if job not in taken),
        cost=_sum(counts, costs),
        cost_differs=max(apart, key=lambda ends: ends[1] - ends[0], default=None),
        smallest_cost=min((ends[0] for ends in costs.values() if ends), default=None),
        smallest_weight=min((weight for weight in weights if weight is not None), default=None),
        usage=_sum(counts, usages),
        usage_differs=any(ends and _are_apart(ends) for ends in usages.values()),
        leftover_claims=claims,
        leftover_usage=leftover_usage,
    )


Ends = Optional[tuple[float, float]]
"""Least and most; None if an amount is unknown."""


def _ends(amounts: Iterable[Optional[float]]) -> Ends:
    every = list(amounts)
    if not every or None in every:
        return None
    sure = [amount for amount in every if amount is not None]
    return min(sure), max(sure)


def _are_apart(ends: tuple[float, float]) -> bool:
    return ends[1] - ends[0] > _ROUNDING


def _sum(counts: Mapping[int, int], ends: Mapping[int, Ends]) -> Optional[float]:
    """Least sum over all jobs; None without any, or if one is unknown."""
    least = {job: pair[0] for job, pair in ends.items() if pair}
    if not least or len(least) < len(ends):
        return None
    return sum(counts[job] * amount for job, amount in least.items())


def with_groups_of_jobs(groups: Sequence[Group], names: Iterable[str]) -> list[Group]:
    """``groups``, and unknown ones for jobs of these accounting groups that none of them has.

    Those are the root if there are groups, else each of the names.
    """
    named = [group.name for group in groups]
    of_jobs = [group_of(name, named) if groups else name or ROOT for name in sorted(names)]
    others = {name.lower(): name for name in of_jobs if name not in named}.values()
    by_name = sorted(others, key=lambda name: (name == ROOT, name.lower()))
    return [*groups, *(Group(name, None, None, None) for name in by_name)]


def group_of(name: str, groups: Iterable[str]) -> str:
    """Group of jobs of an accounting group ``a.b``: the longest that begins it, or `ROOT`."""
    spelt = {group.lower(): group for group in groups}
    parts = name.lower().split(".")
    beginnings = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((spelt[part] for part in beginnings if part in spelt), ROOT)
