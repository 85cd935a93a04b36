"""The ClassAd expressions of a consumption policy: what a claim takes of each asset, and the slot's weight.

Every attribute has its scope, so that no job can put one of its own in place of the slot's. A
request is never taken for a number before it was compared with 0: NaN, text and negative numbers
make the consumption negative or an error, and HTCondor then refuses the match.

What an operator wrote of consumption: slot types, their assets, and by which rule claims take of
each.

The model of claim capacity that a policy means, for a slot of given amounts.

What slots of a type get of their machine: the text of SLOT_TYPE_<N>, read as the startd reads it.

buildSlotRequest and parse_share_value in src/condor_startd.V6/slot_builder.cpp: items end with
lines if there are several, else with commas if there are any, else with blanks; an amount, a part
such as 25% or 1/4, or auto.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Callable, Literal, Optional, Union

from sharectl.consumption.claims import CLAIMS, Amounts, FixedClaims, MinimumCharge, Model, Quanta

ModelName = Literal[
    "fixed_claims", "quanta_all", "quanta_any", "minimum_charge", "expressions", "none"
]
"""How claims are counted; ``none`` is a slot type without consumption policy."""

ALWAYS_THERE = ("cpus", "memory", "disk")
"""Assets of every slot; further ones are custom resources and GPUs."""
UNITS = {"cpus": "cores", "memory": "MiB", "disk": "KiB", "gpus": "GPUs"}
"""Asset -> HTCondor's unit; a custom resource has its own."""
_ATTRIBUTES = {"cpus": "Cpus", "memory": "Memory", "disk": "Disk", "gpus": "GPUs"}


def attribute_of(asset: str) -> str:
    """Name of an asset in the ads: ``Cpus`` of ``cpus``. HTCondor reads names without case."""
    return _ATTRIBUTES.get(asset.lower(), asset[:1].upper() + asset[1:])


def unit_of(asset: str) -> str:
    """What an asset is counted in."""
    return UNITS.get(asset.lower(), asset)


@dataclass(frozen=True)
class LeastCharge:
    """`core.consumption.MinimumCharge`: what is asked for, and at least ``amount``."""

    amount: int


@dataclass(frozen=True)
class Levels:
    """`core.consumption.Quanta`: whole quanta of the asset's total."""

    levels: int
    total: Optional[int] = None
    """Amount of a slot without claims; None for what the slot itself says."""


@dataclass(frozen=True)
class Even:
    """`core.consumption.FixedClaims`: the total, divided by the number of claims."""


@dataclass(frozen=True)
class Always:
    """The same amount for every claim."""

    amount: int


@dataclass(frozen=True)
class Requested:
    """What is asked for, in multiples of ``step``."""

    step: int = 1
    zero_allowed: bool = False
    """Whether a claim that asks for none gets none, not a step."""


@dataclass(frozen=True)
class Whole:
    """All that the slot has."""


@dataclass(frozen=True)
class Written:
    """A ClassAd expression of the operator."""

    expression: str


Rule = Union[LeastCharge, Levels, Even, Always, Requested, Whole, Written]


@dataclass(frozen=True)
class SlotPolicy:
    """How the slots of one type may be consumed."""

    slot_type: Optional[int]
    """N of SLOT_TYPE_<N>; None for every slot of the startd."""
    model: ModelName
    assets: Mapping[str, Rule] = field(default_factory=dict)
    """Asset -> how claims take of it; the names in lower case, in the order of the file."""
    weight: str = "model"
    """``model``, an asset, or a ClassAd expression."""
    num_claims: Optional[int] = None
    """Claims that may be taken in one cycle; None for what fills the slot."""
    claims: int = 0
    """Claims of the slot, of the model ``fixed_claims``."""
    resources: str = ""
    """Value of SLOT_TYPE_<N>; empty if it is configured elsewhere."""
    slots: Optional[int] = None
    """NUM_SLOTS_TYPE_<N>; None if it is configured elsewhere."""


@dataclass(frozen=True)
class Consumption:
    """A file: policies of a node, and the custom resources that it declares."""

    policies: tuple[SlotPolicy, ...]
    declared: Mapping[str, int] = field(default_factory=dict)
    """Custom resource -> units of the machine."""


DISK_TENTHS = 9
"""Tenths of TotalSlotDisk that are divided: a slot's Disk is what is free now, which may be less."""
MACROS = ("TOTAL", "QUANTUM")
"""Of one asset that is cut into quanta: units of the slot, units of the smallest claim."""


def consumed(policy: SlotPolicy) -> dict[str, str]:
    """Asset -> what a claim takes of it, an expression over the slot (MY) and the job (TARGET)."""
    return {
        asset: _CHARGES[type(rule)](policy, asset, rule) for asset, rule in policy.assets.items()
    }


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
        asset: rule
        for asset, rule in policy.assets.items()
        if isinstance(rule, (LeastCharge, Levels))
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

    On a dynamic slot, TotalSlot… is what that slot has: there, the machine's total stands in, which
    is the same where the machine has one partitionable slot.
    """
    there = f"MY.Total{attribute_of(asset)}"
    units = f"ifThenElse(MY.PartitionableSlot =?= true, {_total_slot(asset)}, {there})"
    return _of_disk(asset, units) if asset == "disk" else f"floor({units})"


def _total_slot(asset: str) -> str:
    """TotalSlotDisk is 0 in the own ad of a startd of 23.9.6 until the first claim: Disk is the whole amount then."""
    return (
        "max({MY.TotalSlotDisk, MY.Disk})"
        if asset == "disk"
        else f"MY.TotalSlot{attribute_of(asset)}"
    )


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
        f"ifThenElse({request(asset)} > {all_units}, {request(asset)}, {all_units} * {count} / "
        f"{rule.levels})"
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


def model_of(policy: SlotPolicy, total: Amounts) -> Optional[Model]:
    """Model of a slot that has ``total`` without claims, in HTCondor's whole units; None if the policy is expressions or none."""
    if policy.model == "fixed_claims":
        return FixedClaims(policy.claims)
    least = {
        asset: rule.amount for asset, rule in policy.assets.items() if isinstance(rule, LeastCharge)
    }
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


_STANDARD = {"cpus": "cpus", "ram": "memory", "memory": "memory", "disk": "disk"}
"""HTCondor's own name, which may be cut short -> asset."""
_OTHERS = ("swap", "virtualmemory")
"""What a slot type may have and no policy asks for."""
_NUMBER = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([kmgtp]?)b?", re.IGNORECASE)
"""An amount, and the letter of its unit."""

_SCALES = {"memory": "m", "disk": "k"}
"""Unit of an amount without suffix."""
_SUFFIXES = "kmgtp"
_ALL_ELSE = "auto"
"""What the startd takes for assets of which nothing is said: what is left, divided evenly."""


def items(shares: str) -> list[str]:
    """The text cut into its items, such as ``cpus=50%`` and ``25%``."""
    between = r"\n" if "\n" in shares.strip() else r"[,\n]" if "," in shares else r"\s"
    return [item.strip() for item in re.split(between, shares) if item.strip()]


def by_name(shares: str) -> dict[str, str]:
    """Name, as it is written -> its share; without what is said of all other assets at once."""
    named = (item.partition("=") for item in items(shares))
    return {
        name.strip(): share.partition(":")[0].strip() for name, is_one, share in named if is_one
    }


def share_of(shares: str, asset: str) -> str:
    """What is said of an asset: an amount, a part, or ``auto``."""
    said = by_name(shares)
    rest = [item for item in items(shares) if "=" not in item] or [_ALL_ELSE]
    return next((said[name] for name in said if _meant(name, asset)), rest[-1])


def amount_of(shares: str, asset: str, total: float) -> Optional[float]:
    """What a slot of that type has of an asset of which its machine has ``total``; None if the startd divides what is left."""
    if not shares.strip():
        return None
    text = share_of(shares, asset)
    if match := re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", text):
        return total * float(match[1]) / 100
    if match := re.fullmatch(r"(\d+(?:\.\d+)?)\s*/\s*(\d+(?:\.\d+)?)", text):
        return total * float(match[1]) / float(match[2]) if float(match[2]) else None
    if match := _NUMBER.fullmatch(text):
        steps = 0
        if match[2] and (unit := _SCALES.get(asset.lower())):
            steps = max(0, _SUFFIXES.index(match[2].lower()) - _SUFFIXES.index(unit))
        return float(match[1]) * float(1024**steps)
    return None


def part_of(shares: str, asset: str) -> Optional[float]:
    """Part of whatever the machine has of an asset; None if an amount is said, or the startd divides what is left."""
    # An amount is one of a machine without any too.
    return None if amount_of(shares, asset, 0.0) else amount_of(shares, asset, 1.0)


def has_none(shares: str, asset: str) -> bool:
    """Whether a slot of that type has none of an asset."""
    return amount_of(shares, asset, 1.0) == 0


def is_htcondors(name: str) -> bool:
    """Whether a name is one of HTCondor's own assets, or the beginning of one."""
    return any(full.startswith(name.lower()) for full in (*_STANDARD, *_OTHERS))


def _meant(name: str, asset: str) -> bool:
    """Whether an item is about an asset: HTCondor's own may be cut short."""
    if name.lower() == asset.lower():
        return True
    # The first of them that begins so, as the startd asks one after the other.
    full = next(
        (full for full in (*_STANDARD, *_OTHERS) if name and full.startswith(name.lower())), ""
    )
    return _STANDARD.get(full) == asset.lower()
