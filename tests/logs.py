"""Rows of logs that cycles write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def groups_in(path: Path) -> list[str]:
    """Group of each row of a shares_Error.log."""
    lines = path.read_text(encoding="ascii").splitlines()
    return [line.split()[1] for line in lines if not line.startswith("#")]


def changes_in(state_directory: Path) -> list[dict[str, Any]]:
    """Rows of the audit."""
    text = (state_directory / "ledger" / "changes.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]
