"""``state.json`` in the state directory: what one cycle leaves for the next, and for ``sharectl status``."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from sharectl.adapters import files
from sharectl.core.plan import State
from sharectl.errors import StateError

SCHEMA_VERSION = 1

_NUMBERS = tuple(field.name for field in fields(State))


class StateFile:
    """State kept as JSON."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> State:
        """State of the last cycle; see `sharectl.ports.StateStore`."""
        content = self._read()
        return State(**{name: content.get(name, 0) for name in _NUMBERS})

    def save(self, state: State) -> None:
        """Keep ``state``; the record of the last cycle stays."""
        self._write({**self._read(), **asdict(state)})

    def last_cycle(self) -> dict[str, Any]:
        """Record of the last cycle as `note_cycle` was given it; empty if there was none."""
        record = self._read().get("last_cycle", {})
        return record if isinstance(record, dict) else {}

    def note_cycle(self, record: dict[str, Any]) -> None:
        """Keep what ``status`` tells of the cycle that ends; the state stays."""
        self._write({**self._read(), "last_cycle": record})

    def _read(self) -> dict[str, Any]:
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise self._broken(str(error)) from error
        if not isinstance(content, dict) or content.get("schema_version") != SCHEMA_VERSION:
            raise self._broken(f"schema_version is not {SCHEMA_VERSION}")
        for name in _NUMBERS:
            if not isinstance(content.get(name, 0), int):
                raise self._broken(f"{name} is not a whole number")
        return content

    def _broken(self, why: str) -> StateError:
        return StateError(
            f"{self.path}: cannot be read: {why}; "
            "remove it: the next cycle starts afresh, with a sequence that still goes up"
        )

    def _write(self, content: dict[str, Any]) -> None:
        text = json.dumps({**content, "schema_version": SCHEMA_VERSION}, indent=2)
        files.replace(self.path, [text, "\n"])
