"""Models of claim capacity in exact fractions, the oracle of the expressions of policies.

W(R) is the number of claims that the rest R of a slot supports. Amounts are in HTCondor's units
(cores, MiB, KiB).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Optional, Protocol

from sharectl.consumption.policy import CLAIMS, DISK_TENTHS, SlotPolicy

Amounts = Mapping[str, Fraction]


class Model(Protocol):
    """A rule by which claims consume a slot."""

    def claims(self, remaining: Amounts) -> int:
        """W(R)."""
        ...

    def charge(self, request: Amounts) -> dict[str, Fraction]:
        """Amount of each asset that a claim takes for a request."""
        ...


def fits(model: Model, remaining: Amounts, request: Amounts) -> bool:
    return all(remaining.get(name, 0) >= amount for name, amount in model.charge(request).items())


@dataclass(frozen=True)
class FixedClaims:
    """(a) ``limit`` claims, each of which costs 1."""

    limit: int

    def claims(self, remaining: Amounts) -> int:
        return min(self.limit, math.floor(remaining.get(CLAIMS, Fraction(0))))

    def charge(self, _request: Amounts) -> dict[str, Fraction]:
        return {CLAIMS: Fraction(1)}


@dataclass(frozen=True)
class Quanta:
    """(b) Each asset is cut into ``levels`` quanta; claims take whole quanta, in whole units.

    With ``zero_allowed`` a claim may take none of some assets, and a request of nothing at all
    takes one quantum of the first asset.
    """

    total: Amounts
    levels: Mapping[str, int]
    zero_allowed: bool = False

    def size(self, asset: str) -> Fraction:
        return Fraction(max(1, math.floor(self.total[asset] / self.levels[asset])))

    def quanta(self, asset: str, remaining: Amounts) -> int:
        return math.floor(remaining.get(asset, Fraction(0)) / self.size(asset))

    def claims(self, remaining: Amounts) -> int:
        chosen = max if self.zero_allowed else min
        return chosen(self.quanta(asset, remaining) for asset in self.levels)

    def charge(self, request: Amounts) -> dict[str, Fraction]:
        """V n / Q of each asset, with n = ceil(r Q / V)."""
        taken = {
            asset: self._taken(asset, request.get(asset, Fraction(0))) for asset in self.levels
        }
        if not any(taken.values()):
            first = next(iter(self.levels))
            taken[first] = self.size(first)
        return taken

    def _taken(self, asset: str, requested: Fraction) -> Fraction:
        total, levels = self.total[asset], self.levels[asset]
        if requested > total:
            return requested
        least = 0 if self.zero_allowed else self.size(asset)
        asked = max(Fraction(math.ceil(requested)), least)
        return Fraction(math.floor(total * math.ceil(asked * levels / total) / levels))


@dataclass(frozen=True)
class MinimumCharge:
    """(c) A claim gets what it asks for, in whole units, and at least ``least`` of every asset."""

    least: Amounts

    def claims(self, remaining: Amounts) -> int:
        return min(
            math.floor(remaining.get(asset, Fraction(0)) / least)
            for asset, least in self.least.items()
        )

    def charge(self, request: Amounts) -> dict[str, Fraction]:
        return {
            asset: max(least, Fraction(math.ceil(request.get(asset, Fraction(0)))))
            for asset, least in self.least.items()
        }


def model_of(policy: SlotPolicy, total: Mapping[str, int | Fraction]) -> Model:
    """Model of a policy, for a slot that has ``total`` without claims."""
    if policy.model == "fixed_claims":
        return FixedClaims(policy.claims or 0)
    if policy.model == "minimum_charge":
        charges = {asset: rule.charge for asset, rule in policy.assets.items()}
        return MinimumCharge({a: Fraction(charge) for a, charge in charges.items() if charge})
    rules = {asset: rule for asset, rule in policy.assets.items() if rule.levels}
    assert policy.model in ("quanta_all", "quanta_any")
    return Quanta(
        {asset: _total(asset, rule.total, total) for asset, rule in rules.items()},
        {asset: rule.levels or 0 for asset, rule in rules.items()},
        zero_allowed=policy.model == "quanta_any",
    )


def _total(asset: str, written: Optional[int], total: Mapping[str, int | Fraction]) -> Fraction:
    if written is not None:
        return Fraction(written)
    return Fraction(total[asset] * DISK_TENTHS // 10 if asset == "disk" else total[asset])
