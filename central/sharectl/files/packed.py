"""Logs, also packed by gzip."""

from __future__ import annotations

import contextlib
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from sharectl.errors import InputError
from sharectl.files import files

MOST_PROBLEMS = 20
"""Invalid rows of a file that are named."""

_PACKED = b"\x1f\x8b"


@contextlib.contextmanager
def opened(path: Path) -> Iterator[io.TextIOWrapper]:
    """Text of a log, unpacked if it was packed; errors of the body's reading are InputErrors."""
    with text_errors(str(path)), files.open_bytes(path) as file:
        content = cast("BinaryIO", file)
        if file.peek(len(_PACKED))[: len(_PACKED)] == _PACKED:
            content = cast("BinaryIO", gzip.GzipFile(fileobj=file))
        yield io.TextIOWrapper(content, encoding="utf-8")


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
        raise InputError([f"{name}: cannot be read: {reason}; see its path and rights"]) from error
