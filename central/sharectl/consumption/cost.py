"""What a match against a slot with a consumption policy takes, what it costs, and what is left for the next one.

The arithmetic of the negotiator, on what the policy's expressions are worth: HTCondor's own library
evaluates those, in `sharectl.consumption.asks`.

How many claims slots and groups can still have, and which groups' quotas do not go with the weights
of slots.

Slots and jobs by kind, and what each kind of slot makes of each kind of job.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import ceil, isfinite, isnan
from typing import Optional, Union

from sharectl.shares.quotas import ROOT, Group

Amount = Union[int, float]
"""Of an asset, in HTCondor's units: cores, MiB of Memory, KiB of Disk."""

_BEYOND_INTEGERS = 2**63
"""Smallest number that a ClassAd's integer cannot hold."""
_USED_UP = -_BEYOND_INTEGERS
"""What the negotiator makes of an asset of which NaN was taken."""
WEIGHT_OF_THE_WEIGHTLESS = 1.0
"""What a match without policy costs on a slot whose SlotWeight is negative or no number."""


class Refusal(Enum):
    """Why the negotiator does not make a match, or what stops it."""

    NO_ASSET = "slot has no such asset: a negotiator that sees a policy ends"
    NOT_A_NUMBER = "what the job takes is no number"
    NAN = (
        "NaN: matched (where Requirements let it), and refused by the node; the slot counts as "
        "used up for the cycle"
    )
    NEGATIVE = "what the job takes is negative"
    ALL_ZERO = "the job takes nothing of any asset"
    SHORT = "not enough is left"
    WEIGHT = "SlotWeight is no number after the match: the negotiator ends"
    SLOT_REQUIREMENTS = "slot's Requirements"
    JOB_REQUIREMENTS = "job's Requirements"
    ONE_CLAIM = (
        "slot has one match a cycle; the rest of it is for its schedd (leftovers), or for later"
    )
    NUM_CLAIMS = "slot has no claim id left in this cycle"


STARTD_LEAST: Mapping[str, Amount] = {"cpus": 1, "memory": 1}
"""What a startd takes for a claim at least, whatever the policy says: the negotiator does not know."""
_REQUIREMENTS = frozenset({Refusal.SLOT_REQUIREMENTS, Refusal.JOB_REQUIREMENTS})


@dataclass(frozen=True)
class Refused:
    """A reason and the assets that it is about, none if it is not about assets."""

    why: Refusal
    assets: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The reason for people."""
        return f"{', '.join(self.assets)}: {self.why.value}" if self.assets else self.why.value


@dataclass(frozen=True)
class Look:
    """What a slot, in one state, makes of one job."""

    weight: Optional[float]
    """SlotWeight of the slot as it is before the match; None if it is not a number."""
    consumed: Mapping[str, Optional[float]]
    """Asset → what the policy takes of it for the job; None if it is not a number."""
    slot_accepts: Optional[bool] = None
    """The slot's Requirements with the requests replaced as the negotiator does; None if it has none."""
    job_accepts: Optional[bool] = None
    """The job's, likewise."""

    @property
    def requirements(self) -> tuple[Refused, ...]:
        """Which of the two Requirements refuse."""
        both = (
            (self.slot_accepts, Refusal.SLOT_REQUIREMENTS),
            (self.job_accepts, Refusal.JOB_REQUIREMENTS),
        )
        return tuple(Refused(why) for accepts, why in both if accepts is False)


@dataclass(frozen=True)
class Claim:
    """A match and what it takes."""

    consumed: Mapping[str, float]
    weight_before: Optional[float]
    weight_after: Optional[float]
    """None if it is not a number, on which the negotiator ends."""
    cost: Optional[float]
    """What submitter and group are charged: by how much the slot's weight falls, or all of it where there is no policy."""


@dataclass(frozen=True)
class Match:
    """What a slot makes of a job."""

    consumed: Mapping[str, Optional[float]]
    """Asset → what the job takes of it; None if the policy is no number for it."""
    refused: tuple[Refused, ...]
    """Why it is not matched; empty if it is."""
    claim: Optional[Claim]
    """What the match takes and costs; also there if nothing but Requirements is against it."""
    remaining: Mapping[str, Amount]
    """Asset → what is left after the match; what the slot has if there is none."""
    fits: int
    """Such jobs that the slot takes one after another, this one included."""
    at_least: bool = False
    """Whether counting ended before the slot did."""
    weight_after_all: Optional[float] = None
    """SlotWeight after all of them; None if it is not known."""
    usage: Optional[float] = None
    """SlotWeight of the dynamic slot that the match makes: what is charged from the next cycle on; None if not known."""
    weight: Optional[float] = None
    """SlotWeight of the slot as it is, also if there is no match; None if it is not known."""
    fits_known: bool = True
    """Whether ``fits`` is: not of a slot that takes the job and does not tell what it has; 0 then."""

    @property
    def cost(self) -> Optional[float]:
        """What the negotiator charges for the match; None if there is no match."""
        return self.claim.cost if self.claim is not None else None


@dataclass(frozen=True)
class Slot:
    """A slot that jobs are tried on."""

    assets: Mapping[str, Amount]
    """Those that are numbers."""
    has_policy: bool = True
    partitionable: bool = True
    most_claims: Optional[int] = None
    """Claim ids that it has for one cycle (NUM_CLAIMS, 1 for a static slot); None if that is not known."""


Ask = tuple[int, Optional[Mapping[str, Amount]]]
"""Number of a job, and the assets that the slot has left when it is tried; None for those it has at first."""
Trial = Generator[Ask, Look, "list[Match]"]
"""Asks for looks, one at a time, and returns what the slot makes of its jobs."""


def policy_refusals(
    assets: Mapping[str, Optional[Amount]],
    consumed: Mapping[str, Optional[float]],
    *,
    zero_allowed: bool = False,
) -> tuple[Refused, ...]:
    """Why assets do not suffice, or the node will refuse what the negotiator matches; empty if neither is so.

    Parameters
    ----------
    assets
        What the slot has; None for what is not a number.
    consumed
        As in `Look`.
    zero_allowed
        Whether to take nothing of any asset is no refusal, as for a slot without policy.
    """
    amounts = {
        asset: amount
        for asset, amount in consumed.items()
        if amount is not None and isfinite(amount)
    }
    # A slot without policy is split by its schedd, which does not match what is no number.
    nans = [
        asset
        for asset, amount in consumed.items()
        if not zero_allowed and amount is not None and isnan(amount)
    ]
    sorts = {
        Refusal.NO_ASSET: [asset for asset in consumed if assets.get(asset) is None],
        Refusal.NOT_A_NUMBER: [
            asset for asset in consumed if asset not in amounts and asset not in nans
        ],
        Refusal.NEGATIVE: [asset for asset, amount in amounts.items() if amount < 0],
        Refusal.SHORT: [
            asset
            for asset, amount in amounts.items()
            for left in [assets.get(asset)]
            if left is not None and left < amount
        ],
    }
    found = [Refused(why, tuple(which)) for why, which in sorts.items() if which]
    if not zero_allowed and len(amounts) + len(nans) == len(consumed) and not any(amounts.values()):
        found.append(Refused(Refusal.ALL_ZERO))
    if nans:
        found.append(Refused(Refusal.NOT_A_NUMBER if found else Refusal.NAN, tuple(nans)))
    return tuple(found)


def whole_if_it_is(amount: float) -> Amount:
    """``amount`` as the negotiator writes it into the slot: as an integer if it is one."""
    return int(amount) if abs(amount) < _BEYOND_INTEGERS and amount == int(amount) else amount


def deducted(assets: Mapping[str, Amount], consumed: Mapping[str, float]) -> dict[str, Amount]:
    """What is left of each asset after a match; assets that the policy does not name stay."""
    left = {
        asset: _USED_UP if isnan(amount) else whole_if_it_is(assets[asset] - amount)
        for asset, amount in consumed.items()
    }
    return {**assets, **left}


def dynamic_slot(assets: Mapping[str, Amount], taken: Mapping[str, float]) -> dict[str, Amount]:
    """Assets of the dynamic slot that the startd makes for a match: a core and a MiB at least."""
    floors = {asset: STARTD_LEAST.get(asset.lower(), 0) for asset in taken}
    return {
        **assets,
        **{asset: max(whole_if_it_is(amount), floors[asset]) for asset, amount in taken.items()},
    }


def refusals(
    slot: Slot, assets: Mapping[str, Amount], look: Look, claims: int
) -> tuple[Refused, ...]:
    """Why a slot that has made ``claims`` matches already, and has ``assets`` left, does not match a job."""
    if slot.most_claims is not None and claims >= slot.most_claims:
        return (Refused(Refusal.NUM_CLAIMS if slot.has_policy else Refusal.ONE_CLAIM),)
    against = policy_refusals(assets, look.consumed, zero_allowed=not slot.has_policy)
    if slot.has_policy and look.weight is None:
        against = (*against, Refused(Refusal.WEIGHT))
    return (*against, *look.requirements)


def cost(slot: Slot, before: Optional[float], after: Optional[float]) -> Optional[float]:
    """What a match costs that makes a slot's weight fall from ``before`` to ``after``; None if that is not known."""
    if not slot.has_policy:
        return before if before is not None and before >= 0 else WEIGHT_OF_THE_WEIGHTLESS
    return before - after if before is not None and after is not None else None


def again_and_again(slot: Slot, job: int, most: int) -> Trial:
    """One job and its like, on the fresh slot until one is refused, or until there are ``most`` of them."""
    look = yield job, None
    consumed, refused = look.consumed, refusals(slot, slot.assets, look, 0)
    taken = _taken(look)
    if taken is None or any(reason.why not in _REQUIREMENTS for reason in refused):
        return [Match(consumed, refused, None, slot.assets, 0, weight=look.weight)]
    if slot.partitionable and not slot.has_policy and not consumed:
        claim = Claim(taken, look.weight, None, cost(slot, look.weight, None))
        return [
            Match(consumed, refused, claim, {}, 0, weight=look.weight, fits_known=bool(refused))
        ]
    remaining = assets = deducted(slot.assets, taken)
    following = yield job, assets
    claim = _claim(slot, taken, look, following)
    usage = (yield job, dynamic_slot(assets, taken)).weight if slot.partitionable else look.weight
    refused = (
        (*refused, Refused(Refusal.WEIGHT))
        if slot.has_policy and following.weight is None
        else refused
    )
    if refused:
        return [Match(consumed, refused, claim, remaining, 0, usage=usage, weight=look.weight)]
    fits = 1
    while fits < most and not refusals(slot, assets, following, fits):
        assets = deducted(assets, _taken(following) or {})
        following = yield job, assets
        fits += not (slot.has_policy and following.weight is None)
    at_least = fits == most and not refusals(slot, assets, following, fits)
    return [
        Match(consumed, (), claim, remaining, fits, at_least, following.weight, usage, look.weight)
    ]


def one_after_another(slot: Slot, jobs: Sequence[int]) -> Trial:
    """The jobs in their order, as in a cycle: each finds what those before it have left; one refused takes nothing."""
    found: list[Match] = []
    made: list[tuple[int, Look, Mapping[str, float]]] = []
    slot = slot if slot.has_policy else replace(slot, most_claims=1)
    assets: Mapping[str, Amount] = slot.assets
    for at, job in enumerate(jobs):
        look = yield job, assets if made else None
        refused = refusals(slot, assets, look, len(made))
        taken = _taken(look)
        is_matched = {reason.why for reason in refused} <= {Refusal.NAN}
        if is_matched and taken is not None:
            made.append((at, look, taken))
            assets = deducted(assets, taken)
        found.append(Match(look.consumed, refused, None, assets, 0 if refused else 1))
    if made:
        last = yield jobs[-1], assets
        following = [look for _, look, _ in made[1:]] + [last]
        for (at, look, given), after in zip(made, following):
            if not found[at].refused:
                found[at] = replace(found[at], claim=_claim(slot, given, look, after))
    return found


def _taken(look: Look) -> Optional[dict[str, float]]:
    """What a match takes; None if it is not a number for some asset."""
    taken = {asset: amount for asset, amount in look.consumed.items() if amount is not None}
    return taken if len(taken) == len(look.consumed) else None


def _claim(slot: Slot, taken: Mapping[str, float], before: Look, after: Look) -> Claim:
    return Claim(taken, before.weight, after.weight, cost(slot, before.weight, after.weight))


def reasons(match: Match, empty: Optional[Match]) -> list[str]:
    """Why there is no match; what is short is told apart from what the empty slot has not either."""
    never = {
        asset
        for reason in (empty.refused if empty else ())
        if reason.why is Refusal.SHORT
        for asset in reason.assets
    }
    told = []
    for reason in match.refused:
        short = [asset for asset in reason.assets if reason.why is Refusal.SHORT and asset in never]
        left = tuple(asset for asset in reason.assets if asset not in short)
        told += [f"{', '.join(short)}: more than the slot has when it is empty"] if short else []
        told += [str(replace(reason, assets=left))] if left or not short else []
    return told


_ROUNDING = 1e-9


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
            (weight - after) / fits
            if weight is not None and after is not None and fits
            else self.match.cost
        )
        known = [
            amount
            for amount in (by_cost if self.has_policy else None, self.match.usage)
            if amount is not None
        ]
        return min(known, default=self.match.cost or 0.0)


def fits_are_known(offers: Iterable[Offer]) -> bool:
    """Whether it is known of all of them how many jobs they take; the sums below count none where it is not."""
    return all(offer.match.fits_known for offer in offers)


def claims_within(room: float, offers: Iterable[Offer]) -> int:
    """Claims, at most, that a group with so much room gets in the long run from the negotiator, one by one.

    The negotiator lets the last match go over the limit, as long as something of it is left.
    """
    count = 0
    for each, most in sorted(
        (offer.usage_each, offer.slots * offer.match.fits) for offer in offers
    ):
        if room <= _ROUNDING:
            break
        made = _made(room, each, most)
        count += made
        room -= made * each
    return count


def leftover_claims(room: float, offers: Iterable[Offer]) -> tuple[int, float]:
    """Claims, at most, that the group gets within a cycle through leftovers, and their usage, which may be above the room.

    The negotiator charges each match, the last of which may go over the limit; the schedds then
    fill these slots without it.
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
        Whether schedds use what is left of slots (CLAIM_PARTITIONABLE_LEFTOVERS of the access
        points).
    """
    taken = [offer for demand in demands for offer in demand.taken]
    costs = [
        (demand.jobs, min(found), max(found))
        for demand in demands
        for found in [[offer.match.cost for offer in demand.taken if offer.match.cost is not None]]
        if found
    ]
    usages = [
        (demand.jobs, [offer.match.usage for offer in demand.taken])
        for demand in demands
        if demand.taken
    ]
    known_usages = [
        (jobs, [usage for usage in found if usage is not None])
        for jobs, found in usages
        if None not in found
    ]
    apart = [(least, most) for _, least, most in costs if most - least > _ROUNDING]
    weights = [(offer.weight, offer.has_policy) for offer in taken if offer.weight is not None]
    claims, leftover_usage = _most_leftovers(group.room, demands) if leftovers else (0, 0.0)
    known = fits_are_known(taken) or not leftovers
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

    Where there are groups that can only be the root; where there are none it is each of those
    names.
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
        (
            known[part]
            for length in range(len(parts), 0, -1)
            if (part := ".".join(parts[:length])) in known
        ),
        ROOT,
    )


class SlotKind(Enum):
    """How the negotiator treats a slot."""

    POLICY = "consumption policy"
    PARTITIONABLE = "partitionable, no policy"
    STATIC = "static"


@dataclass(frozen=True)
class Support:
    """What is known of a slot by itself."""

    kind: SlotKind
    assets: Mapping[str, Optional[Amount]]
    """Asset, as MachineResources has it, without Swap → what the slot has; None if that is missing or no number."""
    without_policy: tuple[str, ...]
    """Assets without Consumption attribute: a single one, and HTCondor takes the slot silently for one without policy."""
    why_not: tuple[str, ...]
    """Why the negotiator sees no policy, for people; empty if it does."""

    @property
    def supported(self) -> bool:
        """Whether the negotiator follows a consumption policy."""
        return self.kind is SlotKind.POLICY


@dataclass(frozen=True)
class PricedSlots:
    """Slots of one kind."""

    names: tuple[str, ...]
    slot_type: Optional[int]
    """SLOT_TYPE_<N> of the startd; None if the ad does not tell."""
    state: str
    """Why they have nothing to give, empty if they have."""
    num_claims: Optional[int]
    """Claim ids for one cycle, where there is a policy; None if not known."""
    support: Support
    weight: Optional[float]
    """SlotWeight of one of them as it is; None if it is no number."""

    @property
    def partitionable(self) -> bool:
        """Whether the slots can be split."""
        return self.support.kind is not SlotKind.STATIC

    @property
    def not_told(self) -> str:
        """That it is not known what they have, for people; empty if it is, or if it takes no more than one job anyway."""
        if self.support.kind is not SlotKind.PARTITIONABLE or self.support.assets:
            return ""
        alike = f" ({len(self.names)} alike)" if len(self.names) > 1 else ""
        return (
            f"{self.names[0]}{alike}: MachineResources is missing or names nothing, so what the "
            "slot has, and how many claims, "
            "is not known (?): give ads with all attributes, as condor_status -long prints them"
        )


@dataclass(frozen=True)
class PricedJobs:
    """Jobs of one kind and one group."""

    names: tuple[str, ...]
    """Places of the ads."""
    count: int
    accounting_group: str


@dataclass(frozen=True)
class Priced:
    """What each kind of slot makes of each kind of job."""

    slots: tuple[PricedSlots, ...]
    jobs: tuple[PricedJobs, ...]
    matches: Mapping[tuple[int, int], Match]
    """By numbers in ``slots`` and ``jobs``."""
    notes: tuple[str, ...]
    """Ads that are left out, and why."""

    def offers(self, job: int) -> list[Offer]:
        """What the slots that have something to give make of jobs of a kind."""
        return [
            Offer(len(slots.names), match, slots.support.supported, slots.partitionable)
            for number, slots in enumerate(self.slots)
            if not slots.state and (match := self.matches.get((number, job))) is not None
        ]
