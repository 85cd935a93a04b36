"""What knobs of slots are set to, and which custom resources a node has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Optional

from sharectl.adapters.condor_boolean import booleans
from sharectl.adapters.condor_config import Configuration
from sharectl.adapters.condor_process import CondorProcess

GPUS, GPUS_FOUND = "GPUs", "MACHINE_RESOURCE_INVENTORY_GPUs"
"""The asset, and the knob that ``use feature:GPUs`` sets; newer startds look for GPUs without it."""
DETECT_GPUS = "STARTD_DETECT_GPUS"
"""How the startd looks for GPUs; it does not where that is empty."""

_RESOURCE = re.compile(r"MACHINE_RESOURCE_(?P<scripted>INVENTORY_)?(?P<name>\w+)", re.IGNORECASE)
_OF_GPUS = re.compile(r"(STARTD\.)?(SLOT_TYPE_\d+_)?CONSUMPTION_GPUS", re.IGNORECASE)
_OF_SCHEDDS, _OF_NEGOTIATORS = ("SCHEDD",), ("NEGOTIATOR",)
READERS = {
    "CONSUMPTION_POLICY": ("STARTD",),
    "CLAIM_PARTITIONABLE_LEFTOVERS": ("SCHEDD", "STARTD"),
    "ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS": ("SCHEDD", "STARTD"),
    "CLAIM_RECYCLING_CONSIDER_LIMITS": _OF_SCHEDDS,
    "SCHEDD_USE_SLOT_WEIGHT": _OF_SCHEDDS,
    # HTCondor's own CLAIM_PARTITIONABLE_LEFTOVERS is $(NEGOTIATOR_USE_SLOT_WEIGHTS).
    "NEGOTIATOR_USE_SLOT_WEIGHTS": ("NEGOTIATOR", "SCHEDD", "STARTD"),
    "NEGOTIATOR_DEPTH_FIRST": _OF_NEGOTIATORS,
    "NEGOTIATOR_CONSIDER_PREEMPTION": _OF_NEGOTIATORS,
    "NEGOTIATOR_MATCHLIST_CACHING": _OF_NEGOTIATORS,
    "FORCE_NEGOTIATOR_SLOT_WEIGHT": _OF_NEGOTIATORS,
    "ALLOW_PSLOT_PREEMPTION": _OF_NEGOTIATORS,
}
"""Knob that is a boolean → the daemons that read it."""
OF_TYPES = ("PARTITIONABLE", "CONSUMPTION_POLICY", "BACKFILL", "HIDDEN")
"""Booleans that a slot type may have of its own."""
_BOOLEAN = re.compile(
    rf"(\w+\.)?({'|'.join(READERS)}|SLOT_TYPE_\d+_({'|'.join(OF_TYPES)}))", re.IGNORECASE | re.ASCII
)
_MAY_NAME_GPUS = re.compile(r"SLOT_TYPE_\d+|(STARTD\.)?(SLOT_TYPE_\d+_)?SLOT_?WEIGHT", re.IGNORECASE)


@dataclass(frozen=True)
class Setting:
    """What a knob is for slots of one type."""

    macro: str
    """The name under which it is set, or would be."""
    text: str
    """Expanded; HTCondor's own default if no file sets it."""
    place: str
    """``file:line``; the macro if no file sets it."""
    is_default: bool = False


def setting(configuration: Configuration, number: int, knob: str, default: str) -> Setting:
    """What a knob is for slots of a type."""
    own = f"SLOT_TYPE_{number}_{knob}"
    # A name with the daemon's before it goes before the one without: HTCondor reads the configuration as a startd.
    for name in (f"STARTD.{own}", own):
        if written := configuration.assignments(name):
            return Setting(written[-1].name, configuration.text(name), configuration.place(name))
    for name in (f"STARTD.{knob}", knob):
        text, written = configuration.text(name), configuration.assignments(name)
        if written and text:
            return Setting(written[-1].name, text, configuration.place(name))
    return Setting(knob, configuration.text(knob) or default, configuration.place(knob), is_default=True)


def written_booleans(configuration: Configuration) -> dict[str, str]:
    """Knob that a file sets, and that is to be a boolean → its text; without those that are empty."""
    names = {definition.name.upper(): definition.name for definition in configuration.definitions}
    texts = {name: configuration.text(name) for name in names.values() if _BOOLEAN.fullmatch(name)}
    return {name: text for name, text in texts.items() if text.strip()}


def booleans_of(configuration: Configuration, htcondor: CondorProcess) -> dict[str, Optional[bool]]:
    """Text of any knob that is to be a boolean → what HTCondor takes it for, None for what is none.

    Raises
    ------
    UnreadableConfigurationError
        If HTCondor's library gives no answer.
    """
    defaults = [configuration.text(knob) for knob in READERS]
    return booleans([*defaults, *written_booleans(configuration).values()], htcondor)


def resources_of(configuration: Configuration, *, has_gpus: bool = False) -> dict[str, Setting]:
    """Custom resources, as the startd finds them (MachAttributes::init_machine_resources)."""
    allowed = [word.lower() for word in configuration.words("MACHINE_RESOURCE_NAMES")]
    found: dict[str, Setting] = {}
    for definition in configuration.definitions:
        match = _RESOURCE.fullmatch(definition.name)
        text = configuration.text(definition.name)
        if match is None or match["name"].upper() == "NAMES" or not text:
            continue
        known = next((name for name in found if name.lower() == match["name"].lower()), match["name"])
        if not allowed or known.lower() in allowed:
            found[known] = Setting(definition.name, text, definition.place)
    if GPUS.lower() not in map(str.lower, found) and (not allowed or GPUS.lower() in allowed):
        found.update(_gpus(configuration, has_gpus=has_gpus))
    return found


def _gpus(configuration: Configuration, *, has_gpus: bool) -> Iterator[tuple[str, Setting]]:
    """GPUs that the startd finds by itself: by the feature, or as knobs of slots count on them."""
    text = configuration.text(GPUS_FOUND)
    named = [
        definition.place
        for definition in configuration.definitions
        if _OF_GPUS.fullmatch(definition.name)
        or (
            _MAY_NAME_GPUS.fullmatch(definition.name)
            and re.search(rf"\b{GPUS}\b", definition.text, re.IGNORECASE)
        )
    ]
    if text or named or has_gpus:
        yield GPUS, Setting(GPUS_FOUND, text, named[0] if named else GPUS_FOUND)
