"""Slots when nothing runs there: all resources free, without target, grace and overheat."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Callable, Optional

from sharectl.condor.ads import expression

_IDLE = {
    "state": '"Unclaimed"',
    "activity": '"Idle"',
    "numdynamicslots": "0",
    **dict.fromkeys(("draining", "mc_grace", "t1_targetactive", "t1_overheat"), "false"),
    **dict.fromkeys(("loadavg", "condorloadavg", "totalloadavg", "totalcondorloadavg"), "0.0"),
}
RESOURCES = "Cpus Memory Disk"
"""Of a slot that names none."""
_WITHOUT_START = "WithinResourceLimits =!= false"
"""Requirements of a slot that is drained, whose ad does not have START."""
_WORD = re.compile(r"[^\s,]+")
_NUMBER = re.compile(r"[\d.]+(?:[eE][+-]?\d{1,2})?")


def emptied(slot: Mapping[str, str]) -> dict[str, str]:
    """Ad of the slot, name → expression as text, when nothing runs there; see `_changes`."""
    spelt = {name.lower(): name for name in slot}
    return {**slot, **_changes(slot, lambda name: slot.get(spelt.get(name.lower(), "")))}


def empty(slot: Any) -> None:
    """Make a ClassAd of the bindings that of the slot when nothing runs there; see `_changes`."""
    texts = _changes(slot, lambda name: str(slot.lookup(name)) if name in slot else None)
    slot.update({name: expression(text) for name, text in texts.items()})


def _changes(names: Iterable[str], text_of: Callable[[str], Optional[str]]) -> dict[str, str]:
    """Attributes that differ when nothing runs on a partitionable or static slot.

    Every resource has the amount and the devices that the slot has in all, lists of dynamic slots
    (Child…) are empty. Attributes that the slot has not stay missing, but for resources.
    """
    changed = {}
    spelt = {name.lower(): name for name in names}
    for lower, name in spelt.items():
        if lower in _IDLE:
            changed[name] = _IDLE[lower]
        elif lower.startswith("child") and (text_of(name) or "").lstrip().startswith("{"):
            changed[name] = "{ }"
    for resource in _WORD.findall((text_of("MachineResources") or RESOURCES).strip('"')):
        total, devices = text_of(f"TotalSlot{resource}"), text_of(f"Assigned{resource}")
        if total is not None and _NUMBER.fullmatch(total):
            changed[spelt.get(resource.lower(), resource)] = total
        free = spelt.get(f"available{resource.lower()}")
        if devices is not None and free is not None:
            # "GPU-a1,GPU-b2" are attributes { GPUs_GPU_a1, GPUs_GPU_b2 }.
            own = (re.sub(r"\W", "_", word) for word in _WORD.findall(devices.strip('"')))
            changed[free] = f"{{ {', '.join(f'{resource}_{device}' for device in own)} }}"
    if (text_of("Requirements") or "").strip().lower() == "false":
        changed[spelt["requirements"]] = _WITHOUT_START
    return changed
