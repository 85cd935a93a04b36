"""Why no plan is published, in a line: what an operator said when he switched sharectl off, or who did not answer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone

from sharectl.core.model import Disabled
from sharectl.core.pledges import SOURCE_NAME


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


def unanswered_words(sources: Sequence[str]) -> str:
    """Why a cycle decided nothing: the sources that had no answer."""
    silent = ", ".join(name for name in sources if name != SOURCE_NAME).replace('"', "'")
    pool = f"the pool did not answer completely ({silent})" if silent else ""
    pledges = "no pledges" if SOURCE_NAME in sources else ""
    return ", ".join(filter(None, (pledges, pool))) or "the pool did not answer completely"
