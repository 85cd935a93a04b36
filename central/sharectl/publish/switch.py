"""``disabled`` in the state directory: as long as that file is there, nothing is published.

``sharectl disable`` writes it. One that somebody made with ``touch``, or that cannot be understood,
counts too.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Optional

from sharectl.errors import LockedError, StateError
from sharectl.files import files
from sharectl.files.files import only_one_in
from sharectl.model import Disabled

NAME = "disabled"
MAX_REASON = 500
"""Characters of a reason."""
SCHEMA_VERSION = 1

_MAX_BYTES = 65536
_MAX_SECONDS = 2**40
_WAIT_SECONDS = 5.0
_BY_HAND = "made by hand"


class DisabledFile:
    """The switch of the central manager."""

    def __init__(self, state_directory: Path) -> None:
        self.path = state_directory / NAME
        self.wait_seconds = _WAIT_SECONDS

    def disabled(self) -> Optional[Disabled]:
        """What the file says; see `sharectl.cycle.ports.Switch`."""
        try:
            facts = os.lstat(self.path)
        except FileNotFoundError:
            return None
        except OSError as error:
            return Disabled(f"{self.path}: {error.strerror}, so nobody knows", "nobody", 0)
        try:
            return _said(json.loads(_text(self.path)))
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return Disabled(_BY_HAND, user_name(facts.st_uid), int(facts.st_mtime))

    def disable(self, said: Disabled) -> None:
        """Switch off, whatever was said before.

        Raises
        ------
        StateError
            If the file cannot be written: sharectl is not switched off then.
        """
        text = json.dumps({"schema_version": SCHEMA_VERSION, **asdict(said)}, indent=2)
        with contextlib.ExitStack() as stack:
            # Off comes first: whoever holds the folder for so long does not keep anyone from it.
            with contextlib.suppress(LockedError):
                stack.enter_context(only_one_in(self.path.parent, self.wait_seconds))
            files.replace(self.path, [text, "\n"], mode=0o644)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the folder, if it can be had within some seconds; see `sharectl.cycle.ports.Switch`."""
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(LockedError, StateError):
                stack.enter_context(only_one_in(self.path.parent, self.wait_seconds))
            yield

    def enable(self) -> None:
        """Switch on.

        Raises
        ------
        StateError
            If the file cannot be removed.
        LockedError
            If somebody else is switching.
        """
        with only_one_in(self.path.parent, self.wait_seconds):
            self._remove()

    def enable_after(self, now: int) -> bool:
        """Switch on if the time is over; see `sharectl.cycle.ports.Switch`."""
        try:
            with only_one_in(self.path.parent, self.wait_seconds):
                # Somebody may have switched it off again since it was looked at.
                said = self.disabled()
                if said is not None and said.in_force_at(now):
                    return False
                self._remove()
        except LockedError:
            return False
        return True

    def _remove(self) -> None:
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            raise StateError(
                f"{self.path}: cannot be removed: {error.strerror}; remove it as its owner, and "
                "sharectl is on again"
            ) from error


def printable(text: str, most: int = MAX_REASON) -> str:
    """``text`` on one line, without characters that cannot be seen, cut to ``most``."""
    return "".join(character if character.isprintable() else "?" for character in text[:most])


def _text(path: Path) -> bytes:
    content, _ = files.read_regular(path, _MAX_BYTES)
    if content is None:
        raise ValueError("no regular file")
    return content


def _said(content: Any) -> Disabled:
    reason, who, since, until = (content[name] for name in ("reason", "who", "since", "until"))
    if not isinstance(reason, str) or not isinstance(who, str):
        raise TypeError("no text")
    if not all(
        type(second) is int and 0 <= second < _MAX_SECONDS for second in (since, until or 0)
    ):
        raise TypeError("no time")
    return Disabled(printable(reason), printable(who), since, until)


def user_name(uid: int) -> str:
    """Name of a user, or his number if he has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
