"""Copies of what a source of pledges last said, as JSON with a schema version."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Callable, Optional, TypeVar

from sharectl.errors import InputError
from sharectl.files import files
from sharectl.words import shown

SCHEMA_VERSION = 1

_Kept = TypeVar("_Kept")


def load(
    path: Path, most_bytes: int, parse: Callable[[Any], _Kept], remedy: str
) -> Optional[_Kept]:
    """What ``parse`` makes of the copy at ``path``; None if there is none.

    Raises
    ------
    InputError
        If there is one that cannot be read, or that ``parse`` refuses; it ends in ``remedy``.
    """
    try:
        text, _ = files.read_regular(path, most_bytes + 1)
        return parse(_content(text, most_bytes))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        said = shown(f"{type(error).__name__}: {error}")
        raise InputError([f"{path}: cannot be read: {said}; {remedy}"]) from error


def save(path: Path, content: Mapping[str, Any]) -> None:
    """Put ``content`` at ``path``. Raises StateError as `files.replace`."""
    files.replace(path, [json.dumps({"schema_version": SCHEMA_VERSION, **content}), "\n"])


def _content(text: Optional[bytes], most_bytes: int) -> Any:
    if text is None or len(text) > most_bytes:
        raise ValueError(f"no regular file of at most {most_bytes} bytes")
    content = json.loads(text)
    if content["schema_version"] != SCHEMA_VERSION:
        raise ValueError(f"schema_version is not {SCHEMA_VERSION}")
    return content
