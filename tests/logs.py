"""Rows of logs that cycles write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sharectl.errors import InputError
from sharectl.ledger.error_log import stream
from sharectl.model import GroupError


def errors_in(path: Path) -> tuple[tuple[int, GroupError], ...]:
    """Unix seconds and errors of a log, the oldest first. Raises InputError."""
    problems: list[str] = []
    rows = tuple(stream(path, problems))
    if problems:
        raise InputError(problems)
    return rows


def changes_in(state_directory: Path) -> list[dict[str, Any]]:
    """Rows of the audit."""
    text = (state_directory / "ledger" / "changes.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]
