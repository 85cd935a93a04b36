"""A copy of the negotiator's knobs of quotas, for while it is busy: it answers between its cycles only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from sharectl.adapters import files
from sharectl.adapters.slot_ads_quotas import Knob
from sharectl.adapters.wording import shown
from sharectl.errors import InputError

SCHEMA_VERSION = 1
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
    try:
        text, _ = files.read_regular(path, _MOST_BYTES + 1)
        return _copy(text)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        said = shown(f"{type(error).__name__}: {error}")
        raise InputError([f"{path}: cannot be read: {said}; remove it"]) from error


def save(path: Path, name: Optional[str], asked_at: int, knobs: Sequence[Knob]) -> None:
    """Keep what the negotiator said. Raises StateError as `files.replace`."""
    rows = [[knob.place, knob.name, knob.value] for knob in knobs]
    content = {"schema_version": SCHEMA_VERSION, "name": name, "asked_at": asked_at, "knobs": rows}
    files.replace(path, [json.dumps(content), "\n"])


def _copy(text: Optional[bytes]) -> KnobsCopy:
    if text is None or len(text) > _MOST_BYTES:
        raise ValueError(f"no regular file of at most {_MOST_BYTES} bytes")
    content: Any = json.loads(text)
    if content["schema_version"] != SCHEMA_VERSION or type(content["asked_at"]) is not int:
        raise ValueError(f"no copy of schema version {SCHEMA_VERSION}")
    knobs = tuple(Knob(*row) for row in content["knobs"])
    if not all(isinstance(part, str) for knob in knobs for part in (knob.place, knob.name, knob.value)):
        raise TypeError("a knob is no text")
    name = content["name"]
    return KnobsCopy(name if isinstance(name, str) else None, content["asked_at"], knobs)
