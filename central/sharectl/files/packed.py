"""Sources of log rows: files, also packed by gzip, and pipes, which are kept to be read twice."""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import os
import stat
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Callable

from sharectl.errors import InputError
from sharectl.files import files

STANDARD_INPUT = Path("-")
MOST_BYTES = 2**30
"""Most bytes of a pipe, and of an unpacked file: either may have no end."""

_PACKED = b"\x1f\x8b"
_PIECE_BYTES = 2**20
_REMEDIES = {
    errno.ENOENT: "there is no such file; look how it is written",
    errno.ENOTDIR: "there is no such file; look how it is written",
    errno.EACCES: (
        "this user may not read it; give it the right to, or run this as a user that has it"
    ),
    errno.EISDIR: "it is a folder; name the files in it",
}
"""Number of an error -> fault and remedy."""


@dataclass(frozen=True)
class LogSource:
    """A log that can be read as often as is needed."""

    name: str
    begin: Callable[[], io.BufferedReader]
    """Opens it at its begin; raises OSError."""


def file_source(path: Path) -> LogSource:
    """Source that is a file."""
    return LogSource(str(path), lambda: files.open_bytes(path))


@contextlib.contextmanager
def sources(paths: Sequence[Path], standard_input: BinaryIO) -> Iterator[list[LogSource]]:
    """Source for each path, of which `STANDARD_INPUT` is one.

    Raises
    ------
    InputError
        If a pipe cannot be read, or gives more than `MOST_BYTES`.
    """
    with contextlib.ExitStack() as stack:
        yield [_source(path, standard_input, stack) for path in paths]


def _source(path: Path, standard_input: BinaryIO, stack: contextlib.ExitStack) -> LogSource:
    if path == STANDARD_INPUT:
        return _kept("standard input", standard_input, stack)
    with contextlib.suppress(OSError):
        if stat.S_ISFIFO(path.stat().st_mode):
            with text_errors(str(path)), files.open_bytes(path) as pipe:
                return _kept(str(path), pipe, stack)
    return file_source(path)


def _kept(name: str, file: BinaryIO, stack: contextlib.ExitStack) -> LogSource:
    kept = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
    with text_errors(name):
        while piece := file.read(_PIECE_BYTES):
            kept.write(piece)
            if kept.tell() > MOST_BYTES:
                raise OSError(f"more than {MOST_BYTES} bytes: give it in parts")
        kept.flush()

    def begin() -> io.BufferedReader:
        kept.seek(0)
        return io.BufferedReader(io.FileIO(os.dup(kept.fileno())))

    return LogSource(name, begin)


@contextlib.contextmanager
def opened(source: LogSource, most_bytes: int = MOST_BYTES) -> Iterator[io.TextIOWrapper]:
    """Text of a source, unpacked if it was packed; errors of the body's reading are InputErrors."""
    with text_errors(source.name), source.begin() as file:
        if file.peek(len(_PACKED))[: len(_PACKED)] != _PACKED:
            yield io.TextIOWrapper(file, encoding="utf-8")
            return
        with gzip.GzipFile(fileobj=file) as unpacked:
            bounded = io.BufferedReader(_Bounded(unpacked, most_bytes))
            yield io.TextIOWrapper(bounded, encoding="utf-8")


@contextlib.contextmanager
def text_errors(name: str) -> Iterator[None]:
    """Raise errors of a log's bytes and file as InputError."""
    try:
        yield
    except UnicodeDecodeError as error:
        problem = f"{name}: cannot be read: it is no text: a log is text, or such packed by gzip"
        raise InputError([problem]) from error
    except (OSError, EOFError, zlib.error) as error:
        reason = _REMEDIES.get(getattr(error, "errno", None) or 0, str(error))
        raise InputError([f"{name}: cannot be read: {reason}"]) from error


class _Bounded(io.RawIOBase):
    """Content of a packed file, refused beyond ``most_bytes``."""

    def __init__(self, file: gzip.GzipFile, most_bytes: int) -> None:
        super().__init__()
        self.file = file
        self.most_bytes = self.room = most_bytes

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read bytes into ``buffer``; returns their number, 0 at the end."""
        count = self.file.readinto(buffer)
        self.room -= count
        if self.room < 0:
            raise OSError(f"it unpacks to more than {self.most_bytes} bytes: import it in parts")
        return count
