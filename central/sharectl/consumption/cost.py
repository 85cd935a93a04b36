"""Matches against slots: assets that they take, cost for the group, claims that follow.

The negotiator's arithmetic over values of the policy's expressions, which HTCondor's own library
evaluates (`sharectl.consumption.asks`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Callable, NamedTuple, Optional, Union

Amount = Union[int, float]
"""Amount of an asset, in HTCondor's units: cores, MiB of Memory, KiB of Disk."""

WEIGHT_OF_THE_WEIGHTLESS = 1.0
"""Cost of a match without policy on a slot whose SlotWeight is negative or no number."""
_BEYOND_INTEGERS = 2**63
"""Smallest number that a ClassAd's integer cannot hold."""


class Refusal(Enum):
    """Reason why the negotiator makes no match."""

    NO_ASSET = "slot has no such asset: a negotiator that sees a policy ends"
    NOT_A_NUMBER = "what the job takes is no number"
    NEGATIVE = "what the job takes is negative"
    SHORT = "not enough is left"
    ALL_ZERO = "the job takes nothing of any asset"
    WEIGHT = "SlotWeight is no number after the match: the negotiator ends"
    SLOT_REQUIREMENTS = "slot's Requirements"
    JOB_REQUIREMENTS = "job's Requirements"


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

    @property
    def has_policy(self) -> bool:
        """True if the negotiator follows a consumption policy."""
        return self.kind is SlotKind.POLICY


@dataclass(frozen=True)
class PricedJobs:
    """Jobs of one kind."""

    names: tuple[str, ...]
    count: int


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
    refused: Mapping[Refusal, tuple[str, ...]] = field(default_factory=dict)
    """Reason against it -> assets that it is about; empty of a match that is made."""
    cost: Optional[float] = None
    """Charge of the negotiator: fall of the weight, or all of it where there is no policy."""
    fits: int = 0
    """Such jobs that the slot takes one after another, this one included."""
    at_least: bool = False
    """True if counting ended before the slot did."""


@dataclass(frozen=True)
class Priced:
    """Each kind of slot with each kind of job, by their numbers in ``slots`` and ``jobs``."""

    slots: tuple[PricedSlots, ...]
    jobs: tuple[PricedJobs, ...]
    matches: Sequence[Sequence[Match]]


def refusals(
    assets: Mapping[str, Amount], look: Look, *, has_policy: bool
) -> dict[Refusal, tuple[str, ...]]:
    """Reasons against a job on a slot with ``assets`` left, and the assets that they are about."""
    taken = {asset: amount for asset, amount in look.consumed.items() if amount is not None}
    by_assets = {
        Refusal.NO_ASSET: [asset for asset in look.consumed if asset not in assets],
        Refusal.NOT_A_NUMBER: [asset for asset in look.consumed if asset not in taken],
        Refusal.NEGATIVE: [asset for asset, amount in taken.items() if amount < 0],
        Refusal.SHORT: [a for a, amount in taken.items() if a in assets and assets[a] < amount],
    }
    all_zero = len(taken) == len(look.consumed) and not any(taken.values())
    by_slot = {
        Refusal.ALL_ZERO: has_policy and all_zero,
        Refusal.WEIGHT: has_policy and look.weight is None,
        Refusal.SLOT_REQUIREMENTS: look.slot_accepts is False,
        Refusal.JOB_REQUIREMENTS: look.job_accepts is False,
    }
    return {
        **{why: tuple(names) for why, names in by_assets.items() if names},
        **{why: () for why, applies in by_slot.items() if applies},
    }


def match_of(
    slot: PricedSlots, look: Callable[[Optional[Mapping[str, Amount]]], Look], most: int
) -> Match:
    """Match of a job with a slot, and the number of its like that fit, up to ``most``.

    ``look`` returns the values for the job with these assets left; None for the slot as it is.
    """
    most = 1 if slot.kind is SlotKind.STATIC else most
    has_policy = slot.has_policy
    first = now = look(None)
    assets = {name: amount for name, amount in slot.assets.items() if amount is not None}
    refused, fits, cost = refusals(assets, first, has_policy=has_policy), 0, None
    while not refused and fits < most:
        taken = now.consumed.items()
        assets = {**assets, **{n: whole_if_it_is(assets[n] - (v or 0)) for n, v in taken}}
        now = look(assets)
        if has_policy and now.weight is None:
            refused = {Refusal.WEIGHT: ()}
            break
        fits += 1
        cost = _cost(slot, first.weight, now.weight) if fits == 1 else cost
        refused = refusals(assets, now, has_policy=has_policy)
    if not fits:
        return Match(first.consumed, refused)
    return Match(first.consumed, {}, cost, fits, at_least=not refused and most > 1)


def whole_if_it_is(amount: float) -> Amount:
    """``amount`` as the negotiator writes it into the slot: an integer if it is one."""
    return int(amount) if abs(amount) < _BEYOND_INTEGERS and amount == int(amount) else amount


def _cost(slot: PricedSlots, before: Optional[float], after: Optional[float]) -> Optional[float]:
    if not slot.has_policy:
        return before if before is not None and before >= 0 else WEIGHT_OF_THE_WEIGHTLESS
    return before - after if before is not None and after is not None else None
