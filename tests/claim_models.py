"""Models of claim capacity in exact fractions, the oracle of the expressions of policies.

W(R) is the number of claims that the rest R of a slot supports. Amounts are in HTCondor's units
(cores, MiB, KiB). A claim takes

- fixed_claims: one of so many claims,
- quanta_all, quanta_any: of each asset, cut into Q quanta, whole quanta, in whole units; q quanta
  are left, whatever the units are; by quanta_any it may take none of some assets, and a request of
  nothing at all takes one quantum of the first asset,
- minimum_charge: what it asks for, in whole units, and at least so much of every asset.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from sharectl.consumption.policy import CLAIMS, DISK_TENTHS, QUANTA, SlotPolicy, counters

Amounts = Mapping[str, Fraction]


@dataclass(frozen=True)
class Model:
    """Claims of a policy in a slot that has ``total`` without claims."""

    policy: SlotPolicy
    total: Mapping[str, int | Fraction]

    def claims(self, remaining: Amounts) -> int:
        """W(R)."""
        if self.policy.model == "minimum_charge":
            return min(floor(remaining.get(a, 0) / size) for a, size in self._charges.items())
        counts = [floor(remaining.get(counter, 0)) for counter in counters(self.policy)]
        return max(counts) if self.policy.model == "quanta_any" else min(counts)

    def charge(self, request: Amounts) -> dict[str, Fraction]:
        """Amount of each asset that a claim takes: V n / Q with n = ceil(r Q / V), for quanta."""
        if self.policy.model == "fixed_claims":
            return {CLAIMS: Fraction(1)}
        if self.policy.model == "minimum_charge":
            whole = {a: Fraction(ceil(request.get(a, 0))) for a in self._charges}
            return {a: max(size, whole[a]) for a, size in self._charges.items()}
        levels = {asset: rule.levels or 0 for asset, rule in self.policy.assets.items()}
        quanta = {
            asset: self._quanta(asset, request.get(asset, 0), levels[asset]) for asset in levels
        }
        if not any(quanta.values()):
            quanta[next(iter(levels))] = 1
        taken = {a: floor(self._whole(a) * n / levels[a]) for a, n in quanta.items()}
        counts = {QUANTA.format(asset): n for asset, n in quanta.items()}
        return {name: Fraction(amount) for name, amount in {**taken, **counts}.items()}

    @property
    def _charges(self) -> dict[str, Fraction]:
        return {a: Fraction(rule.charge or 0) for a, rule in self.policy.assets.items()}

    def _quanta(self, asset: str, requested: Fraction | int, levels: int) -> int:
        total, least = self._whole(asset), int(self.policy.model == "quanta_all")
        if requested > total:
            return levels + 1
        return max(least, ceil(ceil(requested) * levels / total))

    def _whole(self, asset: str) -> Fraction:
        amount = self.total[asset]
        return Fraction(amount * DISK_TENTHS // 10 if asset == "disk" else amount)


def fits(model: Model, remaining: Amounts, request: Amounts) -> bool:
    return all(remaining.get(name, 0) >= amount for name, amount in model.charge(request).items())
