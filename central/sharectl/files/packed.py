"""Logs, also packed by gzip; content of files and of standard input."""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from sharectl.errors import InputError
from sharectl.files import files

STANDARD_INPUT = Path("-")
MOST_PROBLEMS = 20
"""Invalid rows of a file that are named."""

_PACKED = b"\x1f\x8b"
_REMEDIES = {
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR), "there is no such file; correct its path"),
    errno.EACCES: "this user may not read it; run this as a user that may",
    errno.EISDIR: "it is a folder; name the files in it",
}
"""Number of an error -> fault and remedy."""


@contextlib.contextmanager
def opened(path: Path) -> Iterator[io.TextIOWrapper]:
    """Text of a log, unpacked if it was packed; errors of the body's reading are InputErrors."""
    with text_errors(str(path)), files.open_bytes(path) as file:
        content = cast("BinaryIO", file)
        if file.peek(len(_PACKED))[: len(_PACKED)] == _PACKED:
            content = cast("BinaryIO", gzip.GzipFile(fileobj=file))
        yield io.TextIOWrapper(content, encoding="utf-8")


def content_of(path: Path, most_bytes: int) -> tuple[bytes, str]:
    """Up to so many bytes, and one more, of a file or of `STANDARD_INPUT`; its name in messages.

    Raises InputError if it cannot be read.
    """
    if path == STANDARD_INPUT:
        return sys.stdin.buffer.read(most_bytes + 1), "standard input"
    with text_errors(str(path)), files.open_bytes(path) as file:
        return file.read(most_bytes + 1), str(path)


@contextlib.contextmanager
def text_errors(name: str) -> Iterator[None]:
    """Raise errors of a log's bytes and file as InputError."""
    try:
        yield
    except UnicodeDecodeError as error:
        problem = f"{name}: cannot be read: it is no text: a log is text, or such packed by gzip"
        raise InputError([problem]) from error
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        reason = _REMEDIES.get(getattr(error, "errno", None) or 0, reason)
        raise InputError([f"{name}: cannot be read: {reason}"]) from error
