"""Matches against slots with a consumption policy: assets that they take, cost for the group.

The negotiator's arithmetic over values of the policy's expressions, which HTCondor's own library
evaluates (`sharectl.consumption.asks`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Callable, NamedTuple, Optional, Union

Amount = Union[int, float]
"""Amount of an asset, in HTCondor's units: cores, MiB of Memory, KiB of Disk."""

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


class Look(NamedTuple):
    """Values of a slot's expressions, in one state, for one job."""

    weight: Optional[float]
    consumed: Mapping[str, Optional[float]]
    """Asset -> amount that the policy takes; None if it is no finite number."""
    slot_accepts: Optional[bool] = None
    """The slot's Requirements, with requests replaced as the negotiator does; None without any."""
    job_accepts: Optional[bool] = None


Refusals = tuple[tuple[Refusal, str], ...]
"""Reasons against a match, each with the asset that it is about, or empty."""


@dataclass(frozen=True)
class Match:
    """Answer of a slot to a job."""

    consumed: Mapping[str, Optional[float]]
    refused: Refusals = ()
    """Empty of a match that is made."""
    cost: Optional[float] = None
    """Charge of the negotiator: fall of the weight."""
    fits: int = 0
    """Such jobs that the slot takes one after another, this one included."""
    at_least: bool = False
    """True if counting ended before the slot did."""


def refusals(assets: Mapping[str, Amount], look: Look) -> Refusals:
    """Reasons against a job on a slot with ``assets`` left."""
    reasons = []
    for asset, amount in look.consumed.items():
        if asset not in assets:
            reasons.append((Refusal.NO_ASSET, asset))
        if amount is None:
            reasons.append((Refusal.NOT_A_NUMBER, asset))
        elif amount < 0:
            reasons.append((Refusal.NEGATIVE, asset))
        elif asset in assets and assets[asset] < amount:
            reasons.append((Refusal.SHORT, asset))
    by_slot = {
        Refusal.ALL_ZERO: all(amount == 0 for amount in look.consumed.values()),
        Refusal.WEIGHT: look.weight is None,
        Refusal.SLOT_REQUIREMENTS: look.slot_accepts is False,
        Refusal.JOB_REQUIREMENTS: look.job_accepts is False,
    }
    return (*reasons, *((why, "") for why, applies in by_slot.items() if applies))


def match_of(
    assets: Mapping[str, Amount], look: Callable[[Mapping[str, Amount]], Look], most: int
) -> Match:
    """Match of a job with a slot, and the number of its like that fit, up to ``most``.

    ``look`` returns the values for the job with these assets left.
    """
    first = now = look(assets)
    refused, fits, cost = refusals(assets, first), 0, None
    while not refused and fits < most:
        taken = now.consumed.items()
        assets = {**assets, **{n: whole_if_it_is(assets[n] - (v or 0)) for n, v in taken}}
        now = look(assets)
        if now.weight is None or first.weight is None:
            refused = ((Refusal.WEIGHT, ""),)
            break
        fits += 1
        cost = first.weight - now.weight if fits == 1 else cost
        refused = refusals(assets, now)
    return Match(first.consumed, () if fits else refused, cost, fits, at_least=not refused)


def whole_if_it_is(amount: float) -> Amount:
    """``amount`` as the negotiator writes it into the slot: an integer if it is one."""
    return int(amount) if abs(amount) < _BEYOND_INTEGERS and amount == int(amount) else amount
