"""Where rows of a log come from: files, packed by logrotate too, and pipes, which are kept since they are read twice."""

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
"""Of what a pipe gives and of what a packed file holds: either may have no end."""

_PACKED = b"\x1f\x8b"
_PIECE_BYTES = 2**20
_NO_TEXT = "it is no text: a log is text, or such packed by gzip"
_WHY = {
    errno.ENOENT: "there is no such file; look how it is written",
    errno.ENOTDIR: "there is no such file; look how it is written",
    errno.EACCES: "this user may not read it; give it the right to, or run this as a user that has it",
    errno.EISDIR: "it is a folder; name the files in it",
}
"""Number of an error -> in words, with what to do."""


@dataclass(frozen=True)
class LogSource:
    """What can be read as often as is needed."""

    name: str
    """For messages."""
    begin: Callable[[], io.BufferedReader]
    """Opens it at its begin; raises OSError."""


def file_source(path: Path) -> LogSource:
    """Source that is a file."""
    return LogSource(str(path), lambda: files.open_bytes(path))


@contextlib.contextmanager
def sources(paths: Sequence[Path], standard_input: BinaryIO) -> Iterator[list[LogSource]]:
    """A source for each path; `STANDARD_INPUT` stands for that.

    Raises
    ------
    InputError
        If a pipe cannot be read, or gives more than `MOST_BYTES`.
    """
    with contextlib.ExitStack() as stack:
        found = []
        for path in paths:
            if path == STANDARD_INPUT:
                found.append(_kept(stack, "standard input", standard_input))
            elif _is_pipe(path):
                with text_errors(str(path)), files.open_bytes(path) as pipe:
                    found.append(_kept(stack, str(path), pipe))
            else:
                found.append(file_source(path))
        yield found


@contextlib.contextmanager
def opened(source: LogSource, most_bytes: int = MOST_BYTES) -> Iterator[io.TextIOWrapper]:
    """Text of a source, unpacked if it was packed.

    What goes wrong in the body's reading is an InputError too.
    """
    with text_errors(source.name), source.begin() as file:
        if file.peek(len(_PACKED))[: len(_PACKED)] != _PACKED:
            yield io.TextIOWrapper(file, encoding="utf-8")
            return
        with gzip.GzipFile(fileobj=file) as unpacked:
            yield io.TextIOWrapper(
                io.BufferedReader(_Bounded(unpacked, most_bytes)), encoding="utf-8"
            )


@contextlib.contextmanager
def text_errors(name: str) -> Iterator[None]:
    """What can be wrong with a log as InputError."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise InputError([f"{name}: cannot be read: {_NO_TEXT}"]) from error
    except (OSError, EOFError, zlib.error) as error:
        why = _WHY.get(getattr(error, "errno", None) or 0, str(error))
        raise InputError([f"{name}: cannot be read: {why}"]) from error


def _is_pipe(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return stat.S_ISFIFO(path.stat().st_mode)
    return False


def _kept(stack: contextlib.ExitStack, name: str, file: BinaryIO) -> LogSource:
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


class _Bounded(io.RawIOBase):
    """What a packed file holds, which is refused beyond ``most_bytes``."""

    def __init__(self, file: gzip.GzipFile, most_bytes: int) -> None:
        super().__init__()
        self.file = file
        self.most_bytes = self.left = most_bytes

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Bytes read into ``buffer``; 0 at the end."""
        many = self.file.readinto(buffer)
        self.left -= many
        if self.left < 0:
            raise OSError(f"it unpacks to more than {self.most_bytes} bytes: import it in parts")
        return many
