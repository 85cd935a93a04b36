"""The ClassAd expressions of a consumption policy: what a claim takes of each asset, and the slot's weight.

Every attribute has its scope, so that no job can put one of its own in place of the slot's. A request is never taken
for a number before it was compared with 0: NaN, text and negative numbers make the consumption negative or an error,
and HTCondor then refuses the match.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Callable

from sharectl.core.consumption import CLAIMS
from sharectl.core.consumption_rules import (
    Always,
    Even,
    LeastCharge,
    Levels,
    Requested,
    Rule,
    SlotPolicy,
    Whole,
    Written,
    attribute_of,
)

DISK_TENTHS = 9
"""Tenths of TotalSlotDisk that are divided: a slot's Disk is what is free now, which may be less."""
MACROS = ("TOTAL", "QUANTUM")
"""Of one asset that is cut into quanta: units of the slot, units of the smallest claim."""


def consumed(policy: SlotPolicy) -> dict[str, str]:
    """Asset -> what a claim takes of it, an expression over the slot (MY) and the job (TARGET)."""
    return {asset: _CHARGES[type(rule)](policy, asset, rule) for asset, rule in policy.assets.items()}


def weight(policy: SlotPolicy) -> str:
    """The slot's weight, an expression over the slot alone; it has a value whatever remains, also 0."""
    if policy.weight.lower() in policy.assets:
        return f"MY.{attribute_of(policy.weight)}"
    if policy.weight != "model":
        return policy.weight
    if policy.model == "fixed_claims":
        return f"MY.{attribute_of(CLAIMS)}"
    chosen = "max" if policy.model == "quanta_any" else "min"
    counted = {
        asset: rule for asset, rule in policy.assets.items() if isinstance(rule, (LeastCharge, Levels))
    }
    return _one_of(chosen, (_left(policy, asset, rule) for asset, rule in counted.items()))


def macros(policy: SlotPolicy) -> dict[str, str]:
    """Configuration macro -> its text, for the quanta that `consumed` and `weight` refer to."""
    made: dict[str, str] = {}
    for asset, rule in policy.assets.items():
        if isinstance(rule, Levels):
            names = [macro_name(policy, kind, asset) for kind in MACROS]
            made.update(zip(names, _quanta(policy, asset, rule)))
    return made


def macro_name(policy: SlotPolicy, kind: str, asset: str) -> str:
    """Name of a macro of one slot type and asset."""
    slot_type = "" if policy.slot_type is None else f"{policy.slot_type}_"
    return f"SHARECTL_{slot_type}{kind}_{asset.upper()}"


def request(asset: str) -> str:
    """What a job asks of an asset; 0 if it does not say."""
    return f"(TARGET.Request{attribute_of(asset)} ?: 0)"


def total(asset: str) -> str:
    """What a slot without claims has of an asset, in whole units: TotalCpus is a real number in HTCondor's ads.

    On a dynamic slot, TotalSlot… is what that slot has: there, the machine's total stands in, which is the same where
    the machine has one partitionable slot.
    """
    there = f"MY.Total{attribute_of(asset)}"
    units = f"ifThenElse(MY.PartitionableSlot =?= true, {_total_slot(asset)}, {there})"
    return _of_disk(asset, units) if asset == "disk" else f"floor({units})"


def _total_slot(asset: str) -> str:
    """TotalSlotDisk is 0 in the own ad of a startd of 23.9.6 until the first claim: Disk is the whole amount then."""
    return "max({MY.TotalSlotDisk, MY.Disk})" if asset == "disk" else f"MY.TotalSlot{attribute_of(asset)}"


def _of_disk(asset: str, amount: str) -> str:
    return f"floor(0.{DISK_TENTHS} * {amount})" if asset == "disk" else amount


def _quanta(policy: SlotPolicy, asset: str, rule: Levels) -> tuple[str, str]:
    """Texts of `MACROS`: whole numbers, so that HTCondor divides them without a remainder, never by 0."""
    units = f"max({{1, {total(asset)}}})" if rule.total is None else str(rule.total)
    return units, f"max({{1, $({macro_name(policy, 'TOTAL', asset)}) / {rule.levels}}})"


def _guarded(asset: str, taken: str) -> str:
    return f"ifThenElse({request(asset)} >= 0, {taken}, -1)"


def _least(_policy: SlotPolicy, asset: str, rule: Rule) -> str:
    assert isinstance(rule, LeastCharge)  # noqa: S101 - by the table
    # The list: the first that is not less than the request, else whole multiples of the last.
    steps = "{1}" if rule.amount == 1 else f"{{{rule.amount}, 1}}"
    return _guarded(asset, f"quantize({request(asset)}, {steps})")


def _levels(policy: SlotPolicy, asset: str, rule: Rule) -> str:
    assert isinstance(rule, Levels)  # noqa: S101 - by the table
    all_units, least = (f"$({macro_name(policy, kind, asset)})" for kind in MACROS)
    asked = f"ceiling({request(asset)})"
    if policy.model == "quanta_all":
        asked = f"max({{{least}, {asked}}})"
    count = f"(({asked} * {rule.levels} + {all_units} - 1) / {all_units})"
    quanta = (
        f"ifThenElse({request(asset)} > {all_units}, {request(asset)}, {all_units} * {count} / {rule.levels})"
    )
    taken = _guarded(asset, _if_partitionable(quanta, request(asset)))
    if policy.model == "quanta_all" or asset != next(iter(policy.assets)):
        return taken
    nothing = " && ".join(f"{request(other)} == 0" for other in policy.assets)
    return f"ifThenElse(MY.PartitionableSlot =?= true && {nothing}, {least}, {taken})"


def _even(policy: SlotPolicy, asset: str, _rule: Rule) -> str:
    share = f"floor({_own_total(asset)} / {policy.claims}.0)"
    share = f"max({{1, {share}}})" if asset in ("cpus", "memory") else share
    return _guarded(asset, _if_partitionable(share, _own_total(asset)))


def _if_partitionable(taken: str, on_dynamic_slot: str) -> str:
    """HTCondor asks a dynamic slot too, whenever a job starts there, whether it has what the job consumes."""
    return f"ifThenElse(MY.PartitionableSlot =?= true, {taken}, {on_dynamic_slot})"


def _always(_policy: SlotPolicy, asset: str, rule: Rule) -> str:
    assert isinstance(rule, Always)  # noqa: S101 - by the table
    return _guarded(asset, str(rule.amount))


def _requested(_policy: SlotPolicy, asset: str, rule: Rule) -> str:
    assert isinstance(rule, Requested)  # noqa: S101 - by the table
    step = str(rule.step) if rule.zero_allowed else f"{{{rule.step}}}"
    return _guarded(asset, f"quantize({request(asset)}, {step})")


def _all_of_it(_policy: SlotPolicy, asset: str, _rule: Rule) -> str:
    return _guarded(asset, _own_total(asset))


def _own_total(asset: str) -> str:
    return _of_disk(asset, _total_slot(asset))


def _written(_policy: SlotPolicy, _asset: str, rule: Rule) -> str:
    assert isinstance(rule, Written)  # noqa: S101 - by the table
    if "target" not in rule.expression.lower():
        return rule.expression
    return f"ifThenElse(({rule.expression}) >= 0, {rule.expression}, -1)"


def _left(policy: SlotPolicy, asset: str, rule: Rule) -> str:
    """Claims that what remains of one asset supports."""
    name = f"MY.{attribute_of(asset)}"
    if isinstance(rule, LeastCharge):
        return f"floor({name})" if rule.amount == 1 else f"floor({name} / {rule.amount}.0)"
    return f"floor({name} / ($({macro_name(policy, 'QUANTUM', asset)}) * 1.0))"


def _one_of(function: str, expressions: Iterable[str]) -> str:
    return f"{function}({{{', '.join(expressions)}}})"


_CHARGES: dict[type, Callable[[SlotPolicy, str, Rule], str]] = {
    LeastCharge: _least,
    Levels: _levels,
    Even: _even,
    Always: _always,
    Requested: _requested,
    Whole: _all_of_it,
    Written: _written,
}
