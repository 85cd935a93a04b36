"""What an operator said when he switched sharectl off, in a line."""

from __future__ import annotations

from datetime import datetime, timezone

from sharectl.core.model import Disabled


def disabled_words(said: Disabled) -> str:
    """Such as ``since 2026-07-01T08:00:00Z by ann@cm until enabled: new cooling``."""
    until = "enabled" if said.until is None else utc(said.until)
    return f"since {utc(said.since)} by {said.who} until {until}: {said.reason}"


def utc(unix_seconds: int) -> str:
    """Time as ISO 8601 has it, or the number if that has no year."""
    try:
        return f"{datetime.fromtimestamp(unix_seconds, timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
    except (OverflowError, ValueError, OSError):
        return str(unix_seconds)
