"""Standard streams that are closed, full, or in a locale that lacks characters."""

from __future__ import annotations

import contextlib
import io
import os
import select
import sys

from sharectl.words import printable


def open_missing() -> None:
    """Put /dev/null where a standard stream is closed, and make every character printable.

    Otherwise the next file that is opened gets the stream's number, and the output of libraries.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            # It gets the lowest free number.
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            raw = io.FileIO(number, mode, closefd=False)
            buffer = io.BufferedReader(raw) if mode == "r" else io.BufferedWriter(raw)
            setattr(sys, name, io.TextIOWrapper(buffer, encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def complain(message: str) -> None:
    """Print the lines of ``message`` to standard error, if it takes them."""
    with contextlib.suppress(OSError, ValueError):
        for line in message.splitlines():
            print(f"sharectl: {printable(line)}", file=sys.stderr)
        sys.stderr.flush()


def reader_is_gone() -> bool:
    """Return whether standard output is a pipe or a socket without a reader."""
    poll = select.poll()
    try:
        poll.register(sys.stdout, 0)
    except (OSError, ValueError):
        return False
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def end_output() -> None:
    """Drop the rest of the output if standard output fails: Python would complain at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
