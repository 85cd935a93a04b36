"""``state.json`` in the state directory: state between cycles, and the last one for ``status``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Callable

from sharectl.errors import BrokenStateError, NewerFileError, StateError
from sharectl.files import files
from sharectl.files.documents import Content, Document, DocumentError, record
from sharectl.plan.plan import State

MAX_BYTES = 2**26

_LAST_CYCLE = "last_cycle"
_MEMORIES = ("controllers", "blocks", "unheeding")
"""Parts that begin afresh if any of them is invalid."""
_MAX_SEQUENCE = 10**12 - 1


class StateFile:
    """State kept as JSON; see `sharectl.cycle.ports.StateStore`."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self.document = Document(path, MAX_BYTES)
        self.clock = clock

    def load(self) -> State:
        """State of the last cycle."""
        return self._read()[0]

    def save(self, state: State) -> None:
        """Keep ``state``; the record of the last cycle stays. A broken file is put aside first."""
        try:
            _, last_cycle = self._read()
        except BrokenStateError as error:
            aside = self._begin_again(state)
            raise StateError(
                f"{self.path}: moved to {aside}, and a new one was begun: limits and controllers "
                "begin afresh, and the sequence goes up"
            ) from error
        self._write(state, last_cycle)

    def last_cycle(self) -> Content:
        """Record of the last cycle as `note_cycle` got it; empty if there was none."""
        return self._read()[1]

    def note_cycle(self, last_cycle: Content) -> None:
        """Keep a record of the cycle that ends, for ``status``; the state stays."""
        self._write(self.load(), last_cycle)

    def _read(self) -> tuple[State, Content]:
        try:
            return self.document.read(_parsed) or (State(), {})
        except NewerFileError as error:
            raise NewerFileError(self.path, error.version, self._sequence_before()) from error
        except DocumentError as error:
            raise BrokenStateError(
                f"{self.path}: cannot be read: {error}; the next `sharectl cycle` that publishes "
                f"moves it to {self.path}.broken-DATE and begins a new one",
                self._sequence_before(),
            ) from error
        except OSError as error:
            why = f"{self.path}: cannot be read: {error.strerror or error}"
            raise StateError(f"{why}; give this user the right to read it") from error

    def _write(self, state: State, last_cycle: Content) -> None:
        self.document.replace({**vars(state), _LAST_CYCLE: last_cycle})

    def _sequence_before(self) -> int:
        """Highest sequence that a file may have had that cannot be read.

        Sequences are Unix seconds, and it was written after the publishing that it recorded.
        """
        try:
            return min(max(0, int(self.path.stat().st_mtime)), _MAX_SEQUENCE)
        except OSError:
            return 0

    def _begin_again(self, state: State) -> Path:
        """Put ``state`` in the place of the broken file; returns the new path of that one."""
        aside = files.name_aside(self.path, int(self.clock()))
        try:
            self.path.rename(aside)
        except OSError as error:
            why = f"{self.path}: is broken and cannot be moved: {error.strerror or error}"
            raise StateError(f"{why}; give this user the right to write in its folder") from error
        try:
            self._write(state, {})
        except BaseException:
            # Its sequence is read out of the broken file again.
            aside.rename(self.path)
            raise
        return aside


def _parsed(content: Content) -> tuple[State, Content]:
    last_cycle = content.pop(_LAST_CYCLE, {})
    if not isinstance(last_cycle, dict):
        raise DocumentError(f"{_LAST_CYCLE} is no object")
    try:
        return record(State, content), last_cycle
    except DocumentError:
        # The targets that stand, for which limits hold, are worth more than a memory.
        lasting = {key: value for key, value in content.items() if key not in _MEMORIES}
        return record(State, lasting), last_cycle
