"""Slots and jobs by kind, and what each kind of slot makes of each kind of job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Optional

from sharectl.core.claim_capacity import Offer
from sharectl.core.match_cost import Amount, Match


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
            f"{self.names[0]}{alike}: MachineResources is missing or names nothing, so what the slot has, and how many claims, "
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
