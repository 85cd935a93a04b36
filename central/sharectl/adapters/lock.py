"""One cycle at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import time
from collections.abc import Iterator
from pathlib import Path

from sharectl.adapters import files
from sharectl.errors import LockedError, StateError

_POLL_SECONDS = 0.1
_descriptors: set[int] = set()
"""Of the locks that this process holds or waits for."""


def _close_in_child() -> None:
    """Leave the locks to the parent: a process that it forks must not hold them on when it dies."""
    while _descriptors:
        os.close(_descriptors.pop())


os.register_at_fork(after_in_child=_close_in_child)


@contextlib.contextmanager
def only_one(path: Path, wait_seconds: float) -> Iterator[None]:
    """Hold the lock file ``path`` while the body runs; the kernel frees it if this process dies.

    Its folder is ``state_directory``, which is made: `files.make_state_folder`.

    Raises
    ------
    LockedError
        If another process still holds it after ``wait_seconds``.
    StateError
        If the file cannot be opened.
    """
    with _as_state_error(path, path.parent):
        files.make_state_folder(path.parent)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        files.own_as_folder(descriptor, path.parent)
    with _held(descriptor, path, wait_seconds):
        yield


@contextlib.contextmanager
def only_one_in(folder: Path, wait_seconds: float) -> Iterator[None]:
    """Hold ``folder`` itself while the body runs, without a lock file; otherwise as `only_one`."""
    with _as_state_error(folder, folder):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    with _held(descriptor, folder, wait_seconds):
        yield


@contextlib.contextmanager
def _as_state_error(path: Path, folder: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise StateError(
            f"{path}: cannot be opened: {error.strerror}; as the user who runs cycles: mkdir -p {shlex.quote(str(folder))} "
            "(or correct state_directory)"
        ) from error
    except OSError as error:
        raise StateError(
            f"{path}: cannot be opened: {error.strerror}; give this user the right to write in {folder}, or check "
            "state_directory"
        ) from error


@contextlib.contextmanager
def _held(descriptor: int, path: Path, wait_seconds: float) -> Iterator[None]:
    _descriptors.add(descriptor)
    try:
        _acquire(descriptor, path, time.monotonic() + wait_seconds)
        yield
    finally:
        if descriptor in _descriptors:  # not in a process that was forked meanwhile
            _descriptors.remove(descriptor)
            os.close(descriptor)


def _acquire(descriptor: int, path: Path, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise LockedError(
                    f"{path}: another cycle holds the lock; wait for it, or raise lock_wait_seconds"
                ) from None
            time.sleep(_POLL_SECONDS)
        else:
            return
