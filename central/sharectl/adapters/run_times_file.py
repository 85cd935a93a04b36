"""Files of jobs that ran, packed by gzip or not, which somebody else wrote: read in pieces, and not without end."""

from __future__ import annotations

import contextlib
import gzip
import io
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from sharectl.adapters import pipes
from sharectl.adapters.problems_alike import Problems
from sharectl.core.run_times_jobs import Job, Jobs
from sharectl.errors import InputError

MOST_BYTES = 2**30
"""Of text, unpacked: some ten million jobs."""
MOST_CORES = 1_000_000
MOST_SECONDS = 10**9
_GZIP = b"\x1f\x8b"


@dataclass
class Tally:
    """Jobs counted while a file is read, and what is wrong with it."""

    name: str
    limit: int
    """Jobs that are counted at most."""
    counted: Counter[Job] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    problems: Problems = field(default_factory=Problems)
    seen: int = 0

    @property
    def full(self) -> bool:
        """Whether no more jobs are counted."""
        return self.seen >= self.limit

    def problem(self, line: int, said: str) -> None:
        """Note what is wrong in a line."""
        self.problems.add(f"{self.name}:{line}", said)

    def jobs(self) -> Jobs:
        """What was counted.

        Raises
        ------
        InputError
            If there was a problem, or no job with a run time.
        """
        if self.problems:
            raise InputError(self.problems.lines())
        if not self.counted:
            reasons = ", ".join(f"{jobs} left out: {why}" for why, jobs in self.left_out.items())
            raise InputError([f"{self.name}: no job with a known run time is in it ({reasons or 'no job'})"])
        return Jobs(dict(self.counted), dict(self.left_out), self.limit if self.full else None)


@contextlib.contextmanager
def opened(path: Path, most_bytes: int = MOST_BYTES) -> Iterator[io.TextIOWrapper]:
    """Text of a file or a pipe, unpacked if it is packed.

    Raises
    ------
    InputError
        If it cannot be read, is broken, or is longer than ``most_bytes`` unpacked; within the block too.
    """
    try:
        with pipes.open_bytes(path) as packed:
            # gzip reads any buffered file; typeshed wants a smaller protocol than io offers.
            raw = gzip.GzipFile(fileobj=packed) if packed.peek(2)[:2] == _GZIP else packed
            bounded = io.BufferedReader(cast("io.RawIOBase", _Bounded(raw, most_bytes)))
            with io.TextIOWrapper(bounded, encoding="utf-8", errors="replace") as text:
                yield text
    except _TooLongError as error:
        raise InputError([f"{path}: longer than {most_bytes} bytes unpacked; give a part of it"]) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError([f"{path}: packed by gzip, and broken: {error}"]) from error
    except OSError as error:
        raise InputError([f"{path}: cannot be read: {error.strerror or error}"]) from error


class _TooLongError(Exception):
    pass


class _Bounded(io.RawIOBase):
    """A file that may not be longer than it should."""

    def __init__(self, file: Any, most_bytes: int) -> None:
        super().__init__()
        self.file = file
        self.left = most_bytes

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Bytes read into ``buffer``; 0 at the end."""
        count: int = self.file.readinto(buffer)
        self.left -= count
        if self.left < 0:
            raise _TooLongError
        return count
