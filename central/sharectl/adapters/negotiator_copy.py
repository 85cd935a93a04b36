"""A copy of the negotiator's knobs of quotas, for while it is busy: it answers between its cycles only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from sharectl.adapters import kept_copy
from sharectl.adapters.slot_ads_quotas import Knob

_MOST_BYTES = 2**22


@dataclass(frozen=True)
class KnobsCopy:
    """What it said last."""

    name: Optional[str]
    """Name of the negotiator that was asked for; None for the only one."""
    asked_at: int
    """Unix seconds."""
    knobs: tuple[Knob, ...]


def load(path: Path) -> Optional[KnobsCopy]:
    """The copy at ``path``; None if there is none.

    Raises
    ------
    InputError
        If there is one that cannot be read.
    """
    return kept_copy.load(path, _MOST_BYTES, _copy, "remove it")


def save(path: Path, name: Optional[str], asked_at: int, knobs: Sequence[Knob]) -> None:
    """Keep what the negotiator said. Raises StateError as `files.replace`."""
    rows = [[knob.place, knob.name, knob.value] for knob in knobs]
    kept_copy.save(path, {"name": name, "asked_at": asked_at, "knobs": rows})


def _copy(content: Any) -> KnobsCopy:
    if type(content["asked_at"]) is not int:
        raise TypeError("asked_at is no whole number")
    knobs = tuple(Knob(*row) for row in content["knobs"])
    if not all(isinstance(part, str) for knob in knobs for part in (knob.place, knob.name, knob.value)):
        raise TypeError("a knob is no text")
    name = content["name"]
    return KnobsCopy(name if isinstance(name, str) else None, content["asked_at"], knobs)
