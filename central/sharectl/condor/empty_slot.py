"""Slots as they are when nothing runs on them, without sharectl's momentary state.

A target, grace and an overheat end by themselves. START of the site and of the node stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, Callable, Optional

from sharectl.condor.ads import expression as as_expression

_WORD = re.compile(r"[^\s,]+")
_MACHINE_RESOURCES = "Cpus Memory Disk"
_IDLE = {
    "state": '"Unclaimed"',
    "activity": '"Idle"',
    "numdynamicslots": "0",
    "draining": "false",
    "mc_grace": "false",
    "t1_targetactive": "false",
    "t1_overheat": "false",
    "loadavg": "0.0",
    "condorloadavg": "0.0",
    "totalloadavg": "0.0",
    "totalcondorloadavg": "0.0",
}
_WITHOUT_START = "WithinResourceLimits =!= false"
"""Requirements of a slot that is drained, whose ad does not have START."""


def emptied(slot: Mapping[str, str]) -> dict[str, str]:
    """Ad of the slot, name → expression as text, when nothing runs there; see `changes`."""
    spelt = {name.lower(): name for name in slot}
    return {**slot, **changes(slot, lambda name: slot.get(spelt.get(name.lower(), "")))}


def empty(slot: Any) -> None:
    """Make a ClassAd of the bindings that of the slot when nothing runs there; see `changes`."""
    texts = changes(slot, lambda name: str(slot.lookup(name)) if name in slot else None)
    slot.update({name: as_expression(text) for name, text in texts.items()})


def changes(names: Iterable[str], expression: Callable[[str], Optional[str]]) -> dict[str, str]:
    """Attributes that differ when nothing runs on a partitionable or static slot, as expressions.

    Every asset has the amount and the devices that the slot has in all, lists of dynamic slots
    (Child…) are empty, the slot is unclaimed, not drained, and has neither target, grace nor
    overheat. Attributes that the slot has not stay missing, but for assets.

    Parameters
    ----------
    names
        Attributes of the slot.
    expression
        Text of an attribute, by its name without case; None if the slot has none.
    """
    changed = {}
    spelt = {}
    for name in names:
        lower = name.lower()
        spelt[lower] = name
        if lower in _IDLE:
            changed[name] = _IDLE[lower]
        elif lower.startswith("child") and (expression(name) or "").lstrip().startswith("{"):
            changed[name] = "{ }"
    for asset in _WORD.findall((expression("MachineResources") or _MACHINE_RESOURCES).strip('"')):
        total = expression(f"TotalSlot{asset}")
        if total is not None and _is_number(total):
            changed[spelt.get(asset.lower(), asset)] = total
        devices = expression(f"Assigned{asset}")
        if devices is not None and f"available{asset.lower()}" in spelt:
            changed[spelt[f"available{asset.lower()}"]] = _devices(asset, devices)
    if (expression("Requirements") or "").strip().lower() == "false":
        changed[spelt["requirements"]] = _WITHOUT_START
    return changed


def _is_number(text: str) -> bool:
    try:
        return isfinite(float(text))
    except ValueError:
        return False


def _devices(asset: str, assigned: str) -> str:
    """List of the attributes of devices (``"GPU-a1,GPU-b2"``), as in AvailableGPUs."""
    names = [re.sub(r"\W", "_", device) for device in _WORD.findall(assigned.strip('"'))]
    return "{ " + ", ".join(f"{asset}_{name}" for name in names) + " }"
