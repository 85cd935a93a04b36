"""Models of claim capacity in exact fractions, the oracle of the expressions of policies.

W(R) is the number of claims that the rest R of a slot supports. Amounts are in HTCondor's units
(cores, MiB, KiB). A claim takes

- fixed_claims: one of so many claims,
- quanta_all, quanta_any: of each asset, cut into Q quanta, whole quanta, in whole units; by
  quanta_any it may take none of some assets, and a request of nothing at all takes one quantum of
  the first asset,
- minimum_charge: what it asks for, in whole units, and at least so much of every asset.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from sharectl.consumption.policy import CLAIMS, DISK_TENTHS, SlotPolicy

Amounts = Mapping[str, Fraction]


@dataclass(frozen=True)
class Model:
    """Claims of a policy in a slot that has ``total`` without claims."""

    policy: SlotPolicy
    total: Mapping[str, int | Fraction]

    @property
    def least(self) -> dict[str, Fraction]:
        """Amount of each asset by which claims are counted: the least charge, or a quantum."""
        if self.policy.model == "minimum_charge":
            charges = {asset: rule.charge for asset, rule in self.policy.assets.items()}
            return {asset: Fraction(charge) for asset, charge in charges.items() if charge}
        rules = {asset: rule for asset, rule in self.policy.assets.items() if rule.levels}
        quanta = {a: floor(self._whole(a) / (rule.levels or 0)) for a, rule in rules.items()}
        return {asset: Fraction(max(1, size)) for asset, size in quanta.items()}

    def claims(self, remaining: Amounts) -> int:
        """W(R)."""
        if self.policy.model == "fixed_claims":
            return min(self.policy.claims or 0, floor(remaining.get(CLAIMS, 0)))
        counts = [floor(remaining.get(asset, 0) / size) for asset, size in self.least.items()]
        return max(counts) if self.policy.model == "quanta_any" else min(counts)

    def charge(self, request: Amounts) -> dict[str, Fraction]:
        """Amount of each asset that a claim takes: V n / Q with n = ceil(r Q / V), for quanta."""
        if self.policy.model == "fixed_claims":
            return {CLAIMS: Fraction(1)}
        whole = {asset: Fraction(ceil(request.get(asset, 0))) for asset in self.least}
        if self.policy.model == "minimum_charge":
            return {asset: max(size, whole[asset]) for asset, size in self.least.items()}
        taken = {asset: self._quanta(asset, request.get(asset, 0)) for asset in self.least}
        if not any(taken.values()):
            first, size = next(iter(self.least.items()))
            taken[first] = size
        return taken

    def _quanta(self, asset: str, requested: Fraction | int) -> Fraction:
        total, levels = self._whole(asset), self.policy.assets[asset].levels or 0
        if requested > total:
            return Fraction(requested)
        least = 0 if self.policy.model == "quanta_any" else self.least[asset]
        number = ceil(max(ceil(requested), least) * levels / total)
        return Fraction(floor(total * number / levels))

    def _whole(self, asset: str) -> Fraction:
        written = self.policy.assets[asset].total
        if written is not None:
            return Fraction(written)
        amount = self.total[asset]
        return Fraction(amount * DISK_TENTHS // 10 if asset == "disk" else amount)


def fits(model: Model, remaining: Amounts, request: Amounts) -> bool:
    return all(remaining.get(name, 0) >= amount for name, amount in model.charge(request).items())
