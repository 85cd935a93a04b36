"""Slot types that together want more of an asset than their machine has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

from sharectl.adapters.consumption_faults_assets import Problem
from sharectl.adapters.consumption_meaning import Slots, custom_assets
from sharectl.core.consumption_rules import ALWAYS_THERE
from sharectl.core.slot_shares import amount_of, part_of

_ROUNDING = 1e-9


def sum_problems(slots: Slots) -> Iterator[Problem]:
    """What ``resources`` give away more than once; of assets whose total the file does not tell, parts alone count."""
    declared = {
        name.lower(): units
        for _, assets in slots.values()
        for name, asset in assets.items()
        if (units := getattr(asset, "declare", None)) is not None
    }
    most = 1 + _ROUNDING
    given = dict.fromkeys((*ALWAYS_THERE, "swap", *custom_assets(slots)), 0.0)
    for path, (slot, _) in slots.items():
        too_much = []
        for name, before in given.items():
            total = declared.get(name)
            given[name] += (_part_of(slot.resources or "", name, total) or 0.0) * (slot.slots or 1)
            if before <= most < given[name]:
                has = f"{given[name] * total:g} of {total}" if total else f"{100 * given[name]:g}%"
                too_much.append(f"{has} {name}")
        if too_much:
            yield (
                (*path, "resources"),
                f"the slot types together want {', '.join(too_much)}, and the startd of 23.9.6 ends; let them want no more",
            )


def _part_of(shares: str, asset: str, total: Optional[int]) -> Optional[float]:
    """Part of the machine's total that a slot type gets; None if that is not told."""
    if total is None:
        return part_of(shares, asset)
    amount = amount_of(shares, asset, total)
    return None if amount is None else amount / total
