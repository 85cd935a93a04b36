"""Slot types that together want more of an asset than their machine has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Optional

from sharectl.adapters.consumption_faults_assets import Problem
from sharectl.adapters.consumption_meaning import Slots, shares

_PART = re.compile(r"(\d+(?:\.\d+)?)\s*%|(\d+)\s*/\s*([1-9]\d*)")
_AMOUNT = re.compile(r"\d+(?:\.\d+)?")


def sum_problems(slots: Slots) -> Iterator[Problem]:
    """What ``resources`` give away more than once; of assets whose total the file does not tell, parts alone count."""
    declared = {
        name.lower(): Fraction(units)
        for _, assets in slots.values()
        for name, asset in assets.items()
        if (units := getattr(asset, "declare", None)) is not None
    }
    given: dict[str, Fraction] = {}
    for path, (slot, _) in slots.items():
        for name, share in shares(slot.resources or "").items():
            total = declared.get(name)
            part = _part_of(share, total)
            if part is None:
                continue
            before = given.get(name, Fraction(0))
            given[name] = before + part * (slot.slots or 1)
            if before <= 1 < given[name]:
                has = (
                    f"{float(given[name] * total):g} of {int(total)}"
                    if total
                    else f"{float(100 * given[name]):g}%"
                )
                yield (
                    (*path, "resources"),
                    f"the slot types together want {has} {name}, and the startd of 23.9.6 ends; let them want no more",
                )


def _part_of(share: str, total: Optional[Fraction]) -> Optional[Fraction]:
    """Part of the machine's total that a share is; None if that is not told."""
    if match := _PART.fullmatch(share):
        return Fraction(match[1]) / 100 if match[1] else Fraction(int(match[2]), int(match[3]))
    return Fraction(share) / total if total and _AMOUNT.fullmatch(share) else None
