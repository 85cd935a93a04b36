"""Rows of a shares_Error.log, for tests of what is written there."""

from __future__ import annotations

from pathlib import Path

from sharectl.errors import InputError
from sharectl.files.packed import file_source
from sharectl.ledger.error_log import stream
from sharectl.model import GroupError


def errors_in(path: Path) -> tuple[tuple[int, GroupError], ...]:
    """Unix seconds and errors of a log, the oldest first. Raises InputError."""
    problems: list[str] = []
    rows = tuple((row.taken_at, row.error) for row in stream(file_source(path), problems))
    if problems:
        raise InputError(problems)
    return rows
