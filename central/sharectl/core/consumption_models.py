"""The model of claim capacity that a policy means, for a slot of given amounts."""

from __future__ import annotations

from fractions import Fraction
from typing import Optional

from sharectl.core.consumption import Amounts, FixedClaims, MinimumCharge, Model, Quanta
from sharectl.core.consumption_expressions import DISK_TENTHS
from sharectl.core.consumption_rules import LeastCharge, Levels, SlotPolicy


def model_of(policy: SlotPolicy, total: Amounts) -> Optional[Model]:
    """Model of a slot that has ``total`` without claims, in HTCondor's whole units; None if the policy is expressions or none."""
    if policy.model == "fixed_claims":
        return FixedClaims(policy.claims)
    least = {asset: rule.amount for asset, rule in policy.assets.items() if isinstance(rule, LeastCharge)}
    if policy.model == "minimum_charge":
        charges = {asset: Fraction(amount) for asset, amount in least.items()}
        return MinimumCharge(charges, frozenset(charges))
    levels = {asset: rule for asset, rule in policy.assets.items() if isinstance(rule, Levels)}
    if policy.model not in ("quanta_all", "quanta_any"):
        return None
    return Quanta(
        {asset: _total(asset, rule, total) for asset, rule in levels.items()},
        {asset: rule.levels for asset, rule in levels.items()},
        zero_allowed=policy.model == "quanta_any",
        whole=True,
    )


def _total(asset: str, rule: Levels, total: Amounts) -> Fraction:
    if rule.total is not None:
        return Fraction(rule.total)
    return Fraction(total[asset] * DISK_TENTHS // 10) if asset == "disk" else total[asset]
