"""``disabled`` in the state directory: as long as that file is there, nothing is published.

``sharectl disable`` writes it. An invalid file, or an empty one of ``touch``, counts too.
"""

from __future__ import annotations

import contextlib
import os
import pwd
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Optional

from sharectl.errors import LockedError, NewerFileError, StateError
from sharectl.files.documents import Content, Document, DocumentError, record
from sharectl.files.files import make_state_folder, only_one, own_as_folder
from sharectl.model import Disabled
from sharectl.words import printable

MAX_REASON = 500
"""Characters of a reason."""
_MAX_BYTES = 65536


class DisabledFile:
    """Switch of the central manager; see `sharectl.cycle.ports.Switch`."""

    def __init__(self, state_directory: Path, wait_seconds: float = 5.0) -> None:
        self.path = state_directory / "disabled"
        self.document = Document(self.path, _MAX_BYTES)
        self.wait_seconds = wait_seconds

    def disabled(self) -> Optional[Disabled]:
        """Reason in the file."""
        try:
            facts = os.lstat(self.path)
        except FileNotFoundError:
            return None
        except OSError as error:
            return Disabled(f"{self.path}: {error.strerror}, so nobody knows", "nobody", 0)
        off = None
        with contextlib.suppress(OSError, DocumentError, NewerFileError):
            off = self.document.read(_parsed)
        by_hand = Disabled("made by hand", user_name(facts.st_uid), int(facts.st_mtime))
        return off or by_hand

    def disable(self, off: Disabled) -> Optional[StateError]:
        """Switch off, in the place of an earlier reason; returns why the reason is not kept.

        Off comes first: a process that holds the folder for long keeps nobody from it, and where
        there is no room an empty file is made. Raises StateError if sharectl is not switched off.
        """
        with contextlib.suppress(OSError):  # writing names what is wrong with it
            make_state_folder(self.path.parent)
        with self.alone():
            try:
                self.document.replace(asdict(off))
            except StateError as error:
                if not self._make_empty():
                    raise
                return StateError(
                    f"{error}; an empty file is there instead: disabled without reason, until "
                    "`sharectl enable`"
                )
        return None

    def _make_empty(self) -> bool:
        try:
            if self.path.is_file():
                self.path.unlink()
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        except OSError:
            return False
        with os.fdopen(descriptor, "wb"), contextlib.suppress(OSError):
            own_as_folder(descriptor, self.path.parent)
        return True

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the folder, if it can be had within some seconds."""
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(LockedError, StateError):
                stack.enter_context(self._held())
            yield

    def enable(self) -> None:
        """Switch on. Raises StateError if it cannot, LockedError if another process switches."""
        with self._held():
            self._remove()

    def enable_after(self, now: int) -> bool:
        """Switch on if the time is over; returns true if sharectl is on."""
        try:
            with self._held():
                # It may have been switched off again since the last look.
                off = self.disabled()
                if off is not None and off.in_force_at(now):
                    return False
                self._remove()
        except LockedError:
            return False
        return True

    def _held(self) -> contextlib.AbstractContextManager[None]:
        return only_one(self.path.parent, self.wait_seconds, is_folder=True)

    def _remove(self) -> None:
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            fact = f"{self.path}: cannot be removed: {error.strerror}"
            raise StateError(f"{fact}; remove it as its owner, and sharectl is on again") from error


def _parsed(content: Content) -> Disabled:
    off = record(Disabled, content)
    who = printable(off.who, MAX_REASON)
    return replace(off, reason=printable(off.reason, MAX_REASON), who=who)


def user_name(uid: int) -> str:
    """Name of a user, or the number if there is no name."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
