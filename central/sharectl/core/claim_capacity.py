"""How many claims slots and groups can still have, and which groups' quotas do not go with the weights of slots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor
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
    def limit(self) -> Optional[float]:
        """The quota as the negotiator keeps it: it cuts quotas to whole numbers."""
        return None if self.quota is None else float(floor(self.quota))

    @property
    def room(self) -> Optional[float]:
        """What of that is unused."""
        return None if self.limit is None or self.used is None else max(0.0, self.limit - self.used)

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
    def usage_each(self) -> float:
        """What a claim is charged for good, at least: its cost, on average, in its cycle, its usage from the next one on."""
        weight, after, fits = self.weight, self.match.weight_after_all, self.match.fits
        by_cost = (
            (weight - after) / fits if weight is not None and after is not None and fits else self.match.cost
        )
        known = [
            amount
            for amount in (by_cost if self.has_policy else None, self.match.usage)
            if amount is not None
        ]
        return min(known, default=self.match.cost or 0.0)


def counted(offers: Iterable[Offer]) -> bool:
    """Whether it is known of all of them how many jobs they take; the sums below count none where it is not."""
    return all(offer.match.fits_known for offer in offers)


def claims_within(room: float, offers: Iterable[Offer]) -> int:
    """Claims, at most, that a group with so much room gets in the long run from the negotiator, one by one.

    The negotiator lets the last match go over the limit, as long as something of it is left.
    """
    count = 0
    for each, most in sorted((offer.usage_each, offer.slots * offer.match.fits) for offer in offers):
        if room <= _ROUNDING:
            break
        made = _made(room, each, most)
        count += made
        room -= made * each
    return count


def leftover_claims(room: float, offers: Iterable[Offer]) -> tuple[int, float]:
    """Claims, at most, that the group gets within a cycle through leftovers, and their usage, which may be above the room.

    The negotiator charges each match, the last of which may go over the limit; the schedds then fill these slots without it.
    """
    claims, usage = 0, 0.0
    split = sorted(
        (offer.match.cost or 0.0, offer.slots, offer.match.fits, offer.usage_each)
        for offer in offers
        if offer.partitionable and offer.match.fits
    )
    for each, slots, fits, of_claim in split:
        if room <= _ROUNDING:
            break
        matched = _made(room, each, slots)
        room -= matched * each
        claims += matched * fits
        usage += matched * fits * of_claim
    return claims, usage


def _made(room: float, each: float, most: int) -> int:
    """Matches that cost so much each until the room is used up; the last may go beyond."""
    return most if each <= 0 or each * most <= room else ceil(room / each - _ROUNDING)


@dataclass(frozen=True)
class Demand:
    """Jobs of one shape that wait, and what the slots make of them."""

    jobs: int
    offers: Sequence[Offer]
    match_empty: bool = False
    """Whether a slot that makes no match as it is would make one if it were empty."""

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
    jobs_without_empty_slot: int
    """Those of them that no empty slot would match either."""
    cost: Optional[float]
    """Of all jobs that have a slot, each on the one where it costs least; None if there is no such job.

    Not all of them may fit there: it is a lower bound where `cost_differs`.
    """
    cost_differs: Optional[tuple[float, float]]
    """Least and most that the cost of a job is, by slot, where these are farthest apart; None where no job's differs."""
    smallest_cost: Optional[float]
    """Of a job on a slot as it is; None if none matches."""
    smallest_weight: Optional[float]
    """Of the slots that they match: what a match costs at least if they have no policy."""
    smallest_weight_without_policy: Optional[float]
    """Of those of them that have none; None if there is no such slot, or if it is not known."""
    usage: Optional[float]
    """What they are charged from the cycle after on, each on the slot where that is least; None if it is not known of one."""
    usage_differs: bool
    """Whether that of a job depends on the slot: then it is a lower bound."""
    leftover_claims: Optional[int]
    """Claims that schedds could make of slots that the group was matched with, without the negotiator; 0 if they do not.

    None if it is not known what one of these slots has.
    """
    leftover_usage: Optional[float]

    @property
    def quota_below_every_weight(self) -> Optional[bool]:
        """Whether its quota is below the weight of every slot that it could match; None if that is not known."""
        return self._quota_is_below(self.smallest_weight)

    @property
    def one_match_at_a_time(self) -> Optional[bool]:
        """Whether slots without policy, for that reason, give it no second match; None if not known, or there are none."""
        return self._quota_is_below(self.smallest_weight_without_policy)

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
            if room is None or self.leftover_usage is None or not self.group.has_quota_of_its_own
            else max(0.0, self.leftover_usage - room)
        )

    def _quota_is_below(self, weight: Optional[float]) -> Optional[bool]:
        quota = self.group.limit
        if quota is None or weight is None or not self.group.has_quota_of_its_own:
            return None
        return quota < weight - _ROUNDING


def group_cost(group: Group, demands: Sequence[Demand], *, leftovers: bool) -> GroupCost:
    """What the pending jobs of a group would cost it, each on the slots as they are.

    Parameters
    ----------
    leftovers
        Whether schedds use what is left of slots (CLAIM_PARTITIONABLE_LEFTOVERS of the access points).
    """
    taken = [offer for demand in demands for offer in demand.taken]
    costs = [
        (demand.jobs, min(found), max(found))
        for demand in demands
        for found in [[offer.match.cost for offer in demand.taken if offer.match.cost is not None]]
        if found
    ]
    usages = [
        (demand.jobs, [offer.match.usage for offer in demand.taken]) for demand in demands if demand.taken
    ]
    known_usages = [
        (jobs, [usage for usage in found if usage is not None]) for jobs, found in usages if None not in found
    ]
    apart = [(least, most) for _, least, most in costs if most - least > _ROUNDING]
    weights = [(offer.weight, offer.has_policy) for offer in taken if offer.weight is not None]
    claims, leftover_usage = _most_leftovers(group.room, demands) if leftovers else (0, 0.0)
    known = counted(taken) or not leftovers
    return GroupCost(
        group=group,
        jobs=sum(demand.jobs for demand in demands),
        jobs_without_slot=sum(demand.jobs for demand in demands if not demand.taken),
        jobs_without_empty_slot=sum(
            demand.jobs for demand in demands if not demand.taken and not demand.match_empty
        ),
        cost=sum(jobs * least for jobs, least, _ in costs) if costs else None,
        cost_differs=max(apart, key=lambda ends: ends[1] - ends[0], default=None),
        smallest_cost=min((least for _, least, _ in costs), default=None),
        smallest_weight=min((weight for weight, _ in weights), default=None),
        smallest_weight_without_policy=min(
            (weight for weight, has_policy in weights if not has_policy), default=None
        ),
        usage=sum(jobs * min(found) for jobs, found in known_usages)
        if usages and len(known_usages) == len(usages)
        else None,
        usage_differs=any(max(found) - min(found) > _ROUNDING for _, found in known_usages),
        leftover_claims=claims if known else None,
        leftover_usage=leftover_usage if known else None,
    )


def _most_leftovers(room: Optional[float], demands: Sequence[Demand]) -> tuple[int, float]:
    """Claims through leftovers and their usage, of the shape of jobs that holds the most."""
    runs = []
    for demand in demands if room is not None else ():
        claims, usage = leftover_claims(room or 0.0, demand.taken)
        made = min(claims, demand.jobs)
        runs.append((usage * made / claims if claims else 0.0, made))
    usage, claims = max(runs, default=(0.0, 0))
    return claims, usage


def with_groups_of_jobs(groups: Sequence[Group], names: Iterable[str]) -> list[Group]:
    """``groups``, and those that jobs of these accounting groups count for besides, of which nothing is known.

    Where there are groups that can only be the root; where there are none it is each of those names.
    """
    known = [group.name for group in groups]
    counted_for = [group_of(name, known) if groups else name or ROOT for name in sorted(names)]
    others = {name.lower(): name for name in counted_for if name not in known}.values()
    by_name = sorted(others, key=lambda name: (name == ROOT, name.lower()))
    return [*groups, *(Group(name, None, None, None) for name in by_name)]


def group_of(name: str, groups: Iterable[str]) -> str:
    """The group, of those named, that jobs of an accounting group ``a.b.user`` count for; `ROOT` if there is none."""
    known = {group.lower(): group for group in groups}
    parts = name.lower().split(".")
    return next(
        (known[part] for length in range(len(parts), 0, -1) if (part := ".".join(parts[:length])) in known),
        ROOT,
    )
