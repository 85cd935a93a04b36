"""Writers of plans: installations of sharectl, several of which may publish to one place.

A writer is ``HOST:STATE_DIRECTORY``. Two with the same state directory on different hosts are a
pair of central managers: the one that runs takes over from the one that is down, and leaves the
place to one that goes on. Any other writer is a stranger, whose valid plan stays.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Optional
from urllib.parse import quote

from sharectl.cycle.ports import PlacedTargets
from sharectl.plan.plan import State
from sharectl.times import shown
from sharectl.words import printable

MOST_VALID_SECONDS = 86_700
"""Nodes refuse plans that are valid for longer: a day, and 300 s for clocks."""
_MOST_SHOWN = 200


def writer_of(host: str, state_directory: Path) -> str:
    """Name of an installation, ASCII on one line."""
    return f"{quote(host)}:{quote(str(state_directory))}"


def are_partners(writer: str, other: str) -> bool:
    """True if two writers may be a pair of central managers."""
    return writer.partition(":")[2] == other.partition(":")[2]


def foreign(held: PlacedTargets, own: str, state: State, now: int) -> Optional[str]:
    """Writer of a plan that nodes accept at Unix time ``now``, if it is another installation.

    A partner's plan up to the last sequence of ``state`` is that of a shared state directory.
    """
    writer, sequence = held.writer, held.sequence or 0
    is_refused = held.targets is None or (held.way != "collector" and held.problem is not None)
    is_valid = 0 < (held.valid_until or 0) - now <= MOST_VALID_SECONDS
    if writer in (None, own) or is_refused or not is_valid:
        return None
    return None if are_partners(writer, own) and sequence <= state.sequence else writer


def both_publish(state: State, now: int) -> bool:
    """True if a partner's newer plan is not of the central manager before this one."""
    return bool(state.foreign_sequence) or (now < state.standing_until and not state.observed)


def left_sequence(held: Iterable[PlacedTargets], own: str, state: State, now: int) -> Optional[int]:
    """Highest sequence of plans that this installation leaves in their places; None if of none.

    A partner's plan without targets is replaced, and one that was not renewed after the last cycle:
    that partner has ended.
    """
    sequences = []
    for place in held:
        writer, sequence = foreign(place, own, state, now), place.sequence or 0
        goes_on = both_publish(state, now) and sequence > state.foreign_sequence
        if writer and (not are_partners(writer, own) or (place.targets and goes_on)):
            sequences.append(sequence)
    return max(sequences, default=None)


def problem(held: PlacedTargets, writer: str, outcome: str) -> str:
    """Problem with another installation's plan, its ``outcome``, and the remedy."""
    name, host = printable(writer, _MOST_SHOWN), printable(writer.partition(":")[0], _MOST_SHOWN)
    until = shown(held.valid_until or 0)
    return (
        f"{held.place}: plan {held.sequence} of another sharectl, {name}, valid until {until}, "
        f"{outcome}; run `sharectl disable` for it on {host}, or let publish: name another place, "
        "here or there"
    )
