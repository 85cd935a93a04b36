"""What slots of a type get of their machine: the text of SLOT_TYPE_<N>, read as the startd reads it.

buildSlotRequest and parse_share_value in src/condor_startd.V6/slot_builder.cpp: items end with lines if there are several,
else with commas if there are any, else with blanks; an amount, a part such as 25% or 1/4, or auto.
"""

from __future__ import annotations

import re
from typing import Optional

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
    return {name.strip(): share.partition(":")[0].strip() for name, is_one, share in named if is_one}


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
    full = next((full for full in (*_STANDARD, *_OTHERS) if name and full.startswith(name.lower())), "")
    return _STANDARD.get(full) == asset.lower()
