"""Files that somebody names, which may be pipes: a writer is waited for, but not for ever."""

from __future__ import annotations

import errno
import io
import os
import select
import stat
from pathlib import Path
from typing import Any

PATIENCE_SECONDS = 60.0
"""How long a pipe may be silent: a command that asks a whole pool writes into it."""


def open_text(
    path: Path, patience_seconds: float = PATIENCE_SECONDS, errors: str = "strict"
) -> io.TextIOWrapper:
    """UTF-8 text of a regular file or a pipe; reading raises TimeoutError once a pipe was silent for so long.

    Raises
    ------
    OSError
        If it cannot be opened or is something else, such as a device: that may have no end.
    """
    return io.TextIOWrapper(open_bytes(path, patience_seconds), encoding="utf-8", errors=errors)


def open_bytes(path: Path, patience_seconds: float = PATIENCE_SECONDS) -> io.BufferedReader:
    """Bytes of the same. Raises as `open_text`."""
    # Without O_NONBLOCK, opening waits for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _refuse_others(os.fstat(descriptor).st_mode)
        return io.BufferedReader(_Patient(descriptor, patience_seconds))
    except BaseException:
        os.close(descriptor)
        raise


def _refuse_others(mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode) and not stat.S_ISFIFO(mode):
        raise OSError(errno.EINVAL, "it is neither a regular file nor a pipe")


class _Patient(io.RawIOBase):
    """A descriptor that is waited for."""

    def __init__(self, descriptor: int, patience_seconds: float) -> None:
        super().__init__()
        self.descriptor = descriptor
        self.patience_seconds = patience_seconds

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Bytes read into ``buffer``; 0 at the end."""
        poll = select.poll()
        poll.register(self.descriptor, select.POLLIN)
        if not poll.poll(1000 * self.patience_seconds):
            raise TimeoutError(
                errno.ETIMEDOUT, f"nobody wrote into this pipe for {self.patience_seconds:g} s"
            )
        return os.readv(self.descriptor, [buffer])

    def close(self) -> None:
        """Close the descriptor."""
        if not self.closed:
            os.close(self.descriptor)
        super().close()
