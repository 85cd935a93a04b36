"""What a match against a slot with a consumption policy takes, what it costs, and what is left for the next one.

The arithmetic of the negotiator, on what the policy's expressions are worth: HTCondor's own library evaluates those, in
`sharectl.adapters.consumption_policy`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import isfinite, isnan
from typing import Optional, Union

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
    NAN = "NaN: matched (where Requirements let it), and refused by the node; the slot counts as used up for the cycle"
    NEGATIVE = "what the job takes is negative"
    ALL_ZERO = "the job takes nothing of any asset"
    SHORT = "not enough is left"
    WEIGHT = "SlotWeight is no number after the match: the negotiator ends"
    SLOT_REQUIREMENTS = "slot's Requirements"
    JOB_REQUIREMENTS = "job's Requirements"
    ONE_CLAIM = "slot has one match a cycle; the rest of it is for its schedd (leftovers), or for later"
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
    amounts = {asset: amount for asset, amount in consumed.items() if amount is not None and isfinite(amount)}
    # A slot without policy is split by its schedd, which does not match what is no number.
    nans = [
        asset
        for asset, amount in consumed.items()
        if not zero_allowed and amount is not None and isnan(amount)
    ]
    sorts = {
        Refusal.NO_ASSET: [asset for asset in consumed if assets.get(asset) is None],
        Refusal.NOT_A_NUMBER: [asset for asset in consumed if asset not in amounts and asset not in nans],
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


def refusals(slot: Slot, assets: Mapping[str, Amount], look: Look, claims: int) -> tuple[Refused, ...]:
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
        return [Match(consumed, refused, claim, {}, 0, weight=look.weight, fits_known=bool(refused))]
    remaining = assets = deducted(slot.assets, taken)
    following = yield job, assets
    claim = _claim(slot, taken, look, following)
    usage = (yield job, dynamic_slot(assets, taken)).weight if slot.partitionable else look.weight
    refused = (*refused, Refused(Refusal.WEIGHT)) if slot.has_policy and following.weight is None else refused
    if refused:
        return [Match(consumed, refused, claim, remaining, 0, usage=usage, weight=look.weight)]
    fits = 1
    while fits < most and not refusals(slot, assets, following, fits):
        assets = deducted(assets, _taken(following) or {})
        following = yield job, assets
        fits += not (slot.has_policy and following.weight is None)
    at_least = fits == most and not refusals(slot, assets, following, fits)
    return [Match(consumed, (), claim, remaining, fits, at_least, following.weight, usage, look.weight)]


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
