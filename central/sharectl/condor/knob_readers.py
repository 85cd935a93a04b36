"""Daemons that read the knobs which sharectl checks, and those that a configuration starts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import NamedTuple, Optional

from sharectl.condor.configuration import Configuration, Definition, in_force

DAEMONS = "DAEMON_LIST"
_STARTD, _SCHEDD, _NEGOTIATOR = "STARTD", "SCHEDD", "NEGOTIATOR"
_READERS = {
    r"(SLOT_TYPE_\d+_)?(CONSUMPTION_\w+|NUM_CLAIMS|START|CLAIM_WORKLIFE)": (_STARTD,),
    r"STARTD_(ATTRS|EXPRS|LATCH_EXPRS|PARTITIONABLE_SLOT_ATTRS|JOB_ATTRS|CRON_\w+)": (_STARTD,),
    r"DEFAULT_DRAINING_START_EXPR|ADVERTISE_PSLOT_ROLLUP_INFORMATION": (_STARTD,),
    r"(CLAIM_PARTITIONABLE_LEFTOVERS|ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS)": (_SCHEDD, _STARTD),
    r"SCHEDD_(USE_SLOT_WEIGHT|SLOT_WEIGHT|CLASSAD_USER_MAP_NAMES)": (_SCHEDD,),
    r"JOB_TRANSFORM_\w+|SUBMIT_REQUIREMENT_\w+|(IMMUTABLE|PROTECTED)_JOB_ATTRS": (_SCHEDD,),
    # HTCondor's own CLAIM_PARTITIONABLE_LEFTOVERS is $(NEGOTIATOR_USE_SLOT_WEIGHTS).
    r"NEGOTIATOR_USE_SLOT_WEIGHTS": (_NEGOTIATOR, _SCHEDD, _STARTD),
    r"GROUP_(NAMES|QUOTA_\S+|ACCEPT_SURPLUS\S*|AUTOREGROUP\S*)": (_NEGOTIATOR,),
    r"NEGOTIATOR_(DEPTH_FIRST|NUM_THREADS|(MIN_)?INTERVAL|CYCLE_DELAY)": (_NEGOTIATOR,),
    r"NEGOTIATOR_(SLOT_(POOLSIZE_)?CONSTRAINT|ALLOW_QUOTA_OVERSUBSCRIPTION)": (_NEGOTIATOR,),
    r"DEFRAG_\w+": ("DEFRAG",),
}
"""Knobs, upper case → daemons that read them, by HTCondor's source."""
_TABLE = {re.compile(knobs): daemons for knobs, daemons in _READERS.items()}
_SUBSYSTEMS = frozenset(
    ("MASTER", "COLLECTOR", _NEGOTIATOR, _SCHEDD, _STARTD, "DEFRAG", "SHADOW", "STARTER")
)
_ROLE = re.compile(r"@?use\s+role\b", re.IGNORECASE)


def readers_of(knob: str) -> tuple[str, ...]:
    """Daemons that read a knob, which has no prefix; empty if that is not known."""
    upper = knob.upper()
    return next((daemons for knobs, daemons in _TABLE.items() if knobs.fullmatch(upper)), ())


def daemons_of(configuration: Configuration) -> Optional[frozenset[str]]:
    """Daemons that DAEMON_LIST starts; None if the configuration does not say which.

    A second daemon of a kind has another name, and the program of the first.
    """
    written = in_force(configuration.assignments(DAEMONS))
    has_roles = any(not part.name and _ROLE.match(part.text) for part in configuration.definitions)
    # What a part of a configuration adds to is not known.
    is_open = not configuration.is_whole and bool(written) and written[-1].appends
    if not (written or has_roles) or (is_open and not has_roles):
        return None
    names = [word.upper() for word in configuration.words(DAEMONS)]
    programs = [PurePath(configuration.text(name).strip()).name for name in names]
    return frozenset((*names, *(name.upper().removeprefix("CONDOR_") for name in programs)))


class Unread(NamedTuple):
    """A knob that no daemon reads where it is set."""

    part: Definition
    readers: tuple[str, ...]
    """Daemons that read it elsewhere, or without its prefix."""
    is_elsewhere: bool
    """False if its prefix names a daemon that does not read it, on no machine."""


def unread(configuration: Configuration) -> Iterator[Unread]:
    """Knobs of judged files that no daemon reads here."""
    daemons = daemons_of(configuration)
    for part in {part.name.upper(): part for part in configuration.definitions}.values():
        prefix, _, knob = part.name.upper().rpartition(".")
        readers = readers_of(knob)
        if not readers or not configuration.is_judged(part):
            continue
        if prefix in _SUBSYSTEMS.difference(readers):
            yield Unread(part, readers, is_elsewhere=False)
        elif daemons is not None and daemons.isdisjoint([prefix] if prefix in readers else readers):
            yield Unread(part, readers, is_elsewhere=True)
