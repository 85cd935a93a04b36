"""A pool of static slots for tests of the negotiator: each match takes a slot whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Optional

from sharectl_lab.twin.accountant import Accountant
from sharectl_lab.twin.group_quotas import QuotaTree
from sharectl_lab.twin.negotiator import PoolWeights, SubmitterAd, negotiate
from sharectl_lab.twin.settings import Negotiator

Fits = Callable[[str, int], bool]


def anywhere(_submitter: str, _slot: int) -> bool:
    return True


@dataclass
class StaticSlots:
    """Slots, pending jobs of submitters and an accountant; all jobs run for ever."""

    weights: Sequence[float]
    pending: dict[str, int]
    knobs: Negotiator = field(default_factory=lambda: Negotiator(consider_preemption=False))
    fits: Fits = anywhere
    factors: Mapping[str, float] = field(default_factory=dict)
    least_weight: Optional[float] = None
    """SLOT_WEIGHT of the least slot; None: of those that are there at the begin."""
    now: float = 0.0

    def __post_init__(self) -> None:
        self.accountant = Accountant(86_400.0, self.factors)
        self.running: Counter[str] = Counter()
        self.turns: list[str] = []
        self._free = dict(enumerate(self.weights))

    @property
    def used(self) -> dict[str, float]:
        return {name: used for name, used in self.accountant.usages.items() if used}

    def match(self, ad: SubmitterAd, room: float) -> Optional[float]:
        if self.turns[-1:] != [ad.name]:
            self.turns.append(ad.name)
        if not self.pending[ad.name]:
            return None
        fitting = [slot for slot in self._free if self.fits(ad.name, slot)]
        if not fitting:
            return None
        slot = next((slot for slot in fitting if self._free[slot] <= room), None)
        if slot is None:
            return float("inf")
        weight = self._free.pop(slot)
        self.pending[ad.name] -= 1
        self.running[ad.name] += 1
        self.accountant.charge(ad.name, self.now, weight)
        return weight

    def negotiate(self, tree: QuotaTree) -> frozenset[str]:
        """Submitters that quotas stopped."""
        ads = [SubmitterAd(name, jobs) for name, jobs in self.pending.items() if jobs]
        least = min(self.weights) if self.least_weight is None else self.least_weight
        weights = PoolWeights(sum(self.weights), least)
        return negotiate(self.knobs, tree, ads, self.accountant, weights, self.now, self.match)
