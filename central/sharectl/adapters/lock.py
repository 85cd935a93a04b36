"""One cycle at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from sharectl.adapters.files import own_as_folder
from sharectl.errors import LockedError, StateError

_POLL_SECONDS = 0.1


@contextlib.contextmanager
def only_one(path: Path, wait_seconds: float) -> Iterator[None]:
    """Hold the lock file ``path`` while the body runs; the kernel frees it if this process dies.

    Raises
    ------
    LockedError
        If another process still holds it after ``wait_seconds``.
    StateError
        If the file cannot be opened.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        own_as_folder(descriptor, path.parent)
    except OSError as error:
        raise StateError(f"{path}: cannot be opened: {error.strerror}; check state_directory") from error
    with _held(descriptor, path, wait_seconds):
        yield


@contextlib.contextmanager
def only_one_in(folder: Path, wait_seconds: float) -> Iterator[None]:
    """Hold ``folder`` itself while the body runs, without a lock file; otherwise as `only_one`."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise StateError(f"{folder}: cannot be opened: {error.strerror}; check state_directory") from error
    with _held(descriptor, folder, wait_seconds):
        yield


@contextlib.contextmanager
def _held(descriptor: int, path: Path, wait_seconds: float) -> Iterator[None]:
    try:
        _acquire(descriptor, path, time.monotonic() + wait_seconds)
        yield
    finally:
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
