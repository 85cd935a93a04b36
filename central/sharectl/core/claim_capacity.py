"""How many claims slots and groups can still have, and which groups' quotas do not go with the weights of slots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Optional

from sharectl.core.match_cost import Match

ROOT = "<none>"
"""HTCondor's name for the group of jobs that are in no other."""
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Group:
    """An accounting group. Quota and use are in weighted slots: the unit of SlotWeight."""

    name: str
    quota: Optional[float]
    """What it may use by itself, None if that is not known (as before the first negotiation cycle)."""
    used: Optional[float]
    surplus: Optional[str]
    """``no``, ``byquota`` (GROUP_ACCEPT_SURPLUS) or ``regroup`` (GROUP_AUTOREGROUP); None if not known."""

    @property
    def room(self) -> Optional[float]:
        """What of its quota is unused."""
        return None if self.quota is None or self.used is None else max(0.0, self.quota - self.used)

    @property
    def has_quota_of_its_own(self) -> bool:
        """Whether the quota is a promise: the root group has what is left over."""
        return self.name != ROOT


@dataclass(frozen=True)
class Offer:
    """Slots that are alike, and what they make of one shape of job."""

    slots: int
    match: Match
    has_policy: bool
    partitionable: bool = True

    @property
    def weight(self) -> Optional[float]:
        """SlotWeight of one of the slots as it is."""
        return self.match.claim.weight_before if self.match.claim is not None else None

    @property
    def cost_each(self) -> Optional[float]:
        """What a claim takes of the weight, on average over all that fit; None if it is not known or none fits."""
        weight, after = self.weight, self.match.weight_after_all
        if not self.partitionable:
            return self.match.cost
        if not self.match.fits or weight is None or after is None:
            return None
        return (weight - after) / self.match.fits

    @property
    def through_leftovers(self) -> bool:
        """Whether the negotiator charges a whole slot for the first job, and the schedd fills it up unasked."""
        return self.partitionable and not self.has_policy


def claims_within(room: float, offers: Iterable[Offer]) -> int:
    """Claims, at most, that a group with so much room gets on slots with policy and static ones.

    The negotiator lets the last match go over the limit, as long as something of it is left.
    """
    count = 0
    costs = sorted(
        (offer.cost_each or 0.0, offer.slots * offer.match.fits)
        for offer in offers
        if not offer.through_leftovers
    )
    for each, most in costs:
        if room <= _ROUNDING:
            break
        made = _made(room, each, most)
        count += made
        room -= made * each
    return count


def leftover_claims(room: float, offers: Iterable[Offer]) -> tuple[int, float]:
    """Claims, at most, that the group gets on slots without policy, and their weight, which may be above the room.

    Each match is charged a whole slot, the last may go over the limit; the schedd then fills these slots.
    """
    claims, weight = 0, 0.0
    whole = sorted(
        (offer.weight or 0.0, offer.slots, offer.match.fits, offer.cost_each or 0.0)
        for offer in offers
        if offer.through_leftovers and offer.match.fits
    )
    for each, slots, fits, of_claim in whole:
        if room <= _ROUNDING:
            break
        matched = _made(room, each, slots)
        room -= matched * each
        claims += matched * fits
        weight += matched * fits * of_claim
    return claims, weight


def _made(room: float, each: float, most: int) -> int:
    """Matches that cost so much each until the room is used up; the last may go beyond."""
    return most if each <= 0 or each * most <= room else ceil(room / each - _ROUNDING)


@dataclass(frozen=True)
class Demand:
    """Jobs of one shape that wait, and what the slots make of them."""

    jobs: int
    offers: Sequence[Offer]

    @property
    def taken(self) -> list[Offer]:
        """Slots that they match now."""
        return [offer for offer in self.offers if not offer.match.refused]


@dataclass(frozen=True)
class GroupCost:
    """What a group's pending jobs would cost it."""

    group: Group
    jobs: int
    jobs_without_slot: int
    """Those that no slot matches as it is."""
    cost: Optional[float]
    """Of all jobs that have a slot, each on the one where it costs least; None if there is no such job."""
    smallest_cost: Optional[float]
    """Of a job on a slot as it is; None if none matches."""
    smallest_weight: Optional[float]
    """Of the slots that they match: what a match costs at least where there is no policy."""
    leftover_claims: int
    leftover_weight: float
    """What they could hold of slots without policy, though each match was charged within the quota or once beyond."""

    @property
    def starves_without_policy(self) -> Optional[bool]:
        """Whether its quota is below the weight of every slot that it could match; None if that is not known."""
        return self._quota_is_below(self.smallest_weight)

    @property
    def quota_below_every_cost(self) -> Optional[bool]:
        """Whether its quota is below the cost of every match there is."""
        return self._quota_is_below(self.smallest_cost)

    @property
    def past_quota(self) -> Optional[float]:
        """By how much leftovers could take it past its quota, weighted slots; None if that is not known."""
        room = self.group.room
        return (
            None
            if room is None or not self.group.has_quota_of_its_own
            else max(0.0, self.leftover_weight - room)
        )

    def _quota_is_below(self, weight: Optional[float]) -> Optional[bool]:
        quota = self.group.quota
        if quota is None or weight is None or not self.group.has_quota_of_its_own:
            return None
        return quota < weight - _ROUNDING


def group_cost(group: Group, demands: Sequence[Demand]) -> GroupCost:
    """What the pending jobs of a group would cost it, each on the slots as they are."""
    taken = [offer for demand in demands for offer in demand.taken]
    cheapest = [
        (demand.jobs, min(costs))
        for demand in demands
        for costs in [[offer.match.cost for offer in demand.taken if offer.match.cost is not None]]
        if costs
    ]
    weights = [offer.weight for offer in taken if offer.weight is not None]
    room = group.room
    most = [leftover_claims(room, demand.taken) for demand in demands] if room is not None else []
    claims, weight = max(
        (
            (min(claims, demand.jobs), weight * min(1.0, demand.jobs / claims) if claims else 0.0)
            for demand, (claims, weight) in zip(demands, most)
        ),
        key=lambda run: run[1],
        default=(0, 0.0),
    )
    return GroupCost(
        group=group,
        jobs=sum(demand.jobs for demand in demands),
        jobs_without_slot=sum(demand.jobs for demand in demands if not demand.taken),
        cost=sum(jobs * cost for jobs, cost in cheapest) if cheapest else None,
        smallest_cost=min((cost for _, cost in cheapest), default=None),
        smallest_weight=min(weights, default=None),
        leftover_claims=claims,
        leftover_weight=weight,
    )


def group_of(name: str, groups: Iterable[str]) -> str:
    """The group, of those named, that jobs of an accounting group ``a.b.user`` count for; `ROOT` if there is none."""
    known = {group.lower(): group for group in groups}
    parts = name.lower().split(".")
    return next(
        (known[part] for length in range(len(parts), 0, -1) if (part := ".".join(parts[:length])) in known),
        ROOT,
    )
