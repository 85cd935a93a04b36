"""The policies that a file of consumption policies means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Callable, cast

from pydantic import BaseModel

from sharectl.adapters.consumption_config import (
    ChargeAsset,
    ExpressionAsset,
    LevelsAsset,
    SharedAsset,
    SlotConfig,
)
from sharectl.adapters.yaml_syntax import Path as ValuePath
from sharectl.core.consumption_rules import (
    ALWAYS_THERE,
    UNITS,
    Always,
    Consumption,
    Even,
    LeastCharge,
    Levels,
    Requested,
    Rule,
    SlotPolicy,
    Whole,
    Written,
)
from sharectl.core.slot_shares import by_name

_AS_REQUESTED = Requested(1, zero_allowed=True)

Slots = Mapping[ValuePath, tuple[SlotConfig, Mapping[str, BaseModel]]]
"""Path of a policy in the file → the policy, and its assets."""


def consumption_of(slots: Slots) -> Consumption:
    """The policies that ``slots``, in which nothing is wrong, mean."""
    declared = {
        name.lower(): units
        for _, assets in slots.values()
        for name, asset in assets.items()
        if (units := getattr(asset, "declare", None)) is not None
    }
    machine = custom_assets(slots)
    return Consumption(tuple(_policy(path, *slot, machine) for path, slot in slots.items()), declared)


def custom_assets(slots: Slots) -> tuple[str, ...]:
    """Assets, in lower case, that the policies name besides those of every slot: HTCondor has them on all slots of the machine."""
    named = [name.lower() for _, assets in slots.values() for name in assets]
    named += [name for slot, _ in slots.values() for name in said_of(slot) if name in UNITS]
    return tuple(dict.fromkeys(name for name in named if name not in ALWAYS_THERE))


def said_of(slot: SlotConfig) -> dict[str, str]:
    """Name, in lower case, -> its share, of what ``resources`` say by name."""
    return {name.lower(): share for name, share in by_name(slot.resources or "").items()}


def _policy(
    path: ValuePath, slot: SlotConfig, assets: Mapping[str, BaseModel], machine: Sequence[str]
) -> SlotPolicy:
    rules = {name.lower(): rule_of(name.lower(), asset) for name, asset in assets.items()}
    # What is asked for, so that a job which wants some of what the slot has none of is refused.
    none = {} if slot.model == "none" else {name: _AS_REQUESTED for name in machine if name not in rules}
    return SlotPolicy(
        slot_type=int(path[1]) if len(path) > 1 else None,
        model=slot.model,
        assets={**rules, **none},
        weight=slot.weight or "model",
        num_claims=slot.num_claims,
        claims=slot.claims or 0,
        resources=slot.resources or "",
        slots=slot.slots,
    )


def rule_of(name: str, asset: BaseModel) -> Rule:
    """How claims take of the asset ``name``, in lower case."""
    return _RULES[type(asset)](name, asset)


def _shared(name: str, asset: BaseModel) -> Rule:
    shared = cast("SharedAsset", asset)
    if shared.request:
        return Requested(zero_allowed=_may_be_zero(name))
    return Even() if shared.always is None else Always(shared.always)


def _expression(name: str, asset: BaseModel) -> Rule:
    written = cast("ExpressionAsset", asset)
    if written.expression is not None:
        return Written(written.expression)
    if written.whole:
        return Whole()
    if written.always is not None:
        return Always(written.always)
    zero = written.missing is not None or (written.step is None and _may_be_zero(name))
    return Requested(written.step or 1, zero)


def _may_be_zero(name: str) -> bool:
    """Whether a claim may take none: the startd gives it a core and 1 MiB in any case, and so does the policy."""
    return name not in ("cpus", "memory")


_RULES: Mapping[type[BaseModel], Callable[[str, BaseModel], Rule]] = {
    ChargeAsset: lambda _name, asset: LeastCharge(cast("ChargeAsset", asset).charge),
    LevelsAsset: lambda _name, asset: Levels(
        cast("LevelsAsset", asset).levels, cast("LevelsAsset", asset).total
    ),
    SharedAsset: _shared,
    ExpressionAsset: _expression,
}
