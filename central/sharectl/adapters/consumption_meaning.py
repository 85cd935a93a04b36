"""The policies that a file of consumption policies means."""

from __future__ import annotations

from collections.abc import Mapping
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
    return Consumption(tuple(_policy(path, *slot) for path, slot in slots.items()), declared)


def _policy(path: ValuePath, slot: SlotConfig, assets: Mapping[str, BaseModel]) -> SlotPolicy:
    return SlotPolicy(
        slot_type=int(path[1]) if len(path) > 1 else None,
        model=slot.model,
        assets={name.lower(): _rule(name.lower(), asset) for name, asset in assets.items()},
        weight=slot.weight or "model",
        num_claims=slot.num_claims,
        claims=slot.claims or 0,
        resources=slot.resources or "",
        slots=slot.slots,
    )


def _rule(name: str, asset: BaseModel) -> Rule:
    return _RULES[type(asset)](name, asset)


def _shared(_name: str, asset: BaseModel) -> Rule:
    always = cast("SharedAsset", asset).always
    return Even() if always is None else Always(always)


def _expression(name: str, asset: BaseModel) -> Rule:
    written = cast("ExpressionAsset", asset)
    if written.expression is not None:
        return Written(written.expression)
    if written.whole:
        return Whole()
    if written.always is not None:
        return Always(written.always)
    # The startd gives a claim a core and 1 MiB in any case: so does the policy, unless it is told otherwise.
    zero = written.missing is not None or (written.step is None and name not in ("cpus", "memory"))
    return Requested(written.step or 1, zero)


_RULES: Mapping[type[BaseModel], Callable[[str, BaseModel], Rule]] = {
    ChargeAsset: lambda _name, asset: LeastCharge(cast("ChargeAsset", asset).charge),
    LevelsAsset: lambda _name, asset: Levels(
        cast("LevelsAsset", asset).levels, cast("LevelsAsset", asset).total
    ),
    SharedAsset: _shared,
    ExpressionAsset: _expression,
}
