"""Numbers in sentences."""

from __future__ import annotations


def counted(count: int, what: str) -> str:
    """``what`` in the number that there is of it: 1 job, 2 jobs."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
