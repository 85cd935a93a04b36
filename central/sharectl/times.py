"""Points in time as people write them, and as they are shown: one way for every command."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime, timezone
from typing import Optional

HOUR_SECONDS = 3600
DAY_SECONDS = 86_400

PERIOD_SECONDS, CRON_PERIOD_SECONDS = 300, 1020
"""Time between two cycles: of sharectl.timer, for nodes in live mode; and in cron mode."""
JOB_CTL_SECONDS, CRON_JOB_CTL_SECONDS = 30, 780
"""STARTD_CRON_JOB_CTL_PERIOD, of the snippet for execute points: live and cron mode."""
UPDATE_INTERVAL_SECONDS = 300
"""HTCondor's UPDATE_INTERVAL: longest age of the collector's copy of an ad."""

FORMS = (
    "Unix seconds (1627101243), a date or time as ISO 8601 (2026-11-21, 2026-11-21T22:30, "
    "2026-11-21T22:30:05+01:00; UTC where no zone is written), or a time before now (-2d, 1h30m, "
    "now)"
)
"""Notations that `parse` takes, for ``--help`` and for messages."""

MAX_SECONDS = 253_402_300_799
"""Last second of the year 9999."""

_FACTORS = {"s": 1, "m": 60, "h": 3600, "d": DAY_SECONDS, "w": 604_800, "y": 31_536_000}
_MAX_CHARACTERS = 60

_UNIX = re.compile(r"[0-9]{9,15}")
"""Fewer digits could be a year or a date: they are refused."""
_ISO = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}(?:[t ][^ z]+)?)(?: ?utc|z)?", re.ASCII)
_TERM = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smhdwy])")
_SPAN = re.compile(rf"(?:{_TERM.pattern})+")


def validity_of(period_seconds: float) -> int:
    """Time that nodes act on targets of cycles with that period.

    Three periods, so that a cycle that fails or is late withdraws nothing. The negotiator may learn
    of a renewed target UPDATE_INTERVAL later.
    """
    return 3 * round(period_seconds) + UPDATE_INTERVAL_SECONDS


def parse(text: str, now: int) -> int:
    """Unix seconds that ``text`` means at Unix time ``now``.

    A date alone is its first second, a year of 365 days. Raises ValueError with what to write.
    """
    words = text.strip().lower()[: _MAX_CHARACTERS + 1]
    seconds: Optional[int] = None
    if _UNIX.fullmatch(words):
        seconds = int(words)
    elif iso := _ISO.fullmatch(words):
        with suppress(ValueError):
            moment = datetime.fromisoformat(iso[1])
            moment = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
            seconds = int(moment.timestamp())
    else:
        span_seconds = 0 if words == "now" else parse_span(words.removeprefix("-"))
        seconds = None if span_seconds is None else now - span_seconds
    if seconds is None:
        raise ValueError(f"{text[:_MAX_CHARACTERS]!r} is no time; write {FORMS}")
    if not 0 <= seconds <= MAX_SECONDS:
        raise ValueError(f"{text[:_MAX_CHARACTERS]!r} is not between the years 1970 and 9999")
    return seconds


def parse_span(words: str) -> Optional[int]:
    """Seconds of ``1h30m``, cut to a whole number; None if it is no span of time."""
    if len(words) > _MAX_CHARACTERS or not _SPAN.fullmatch(words):
        return None
    return int(sum(float(number) * _FACTORS[unit] for number, unit in _TERM.findall(words)))


def shown(seconds: float) -> str:
    """Unix time ``seconds`` in UTC, such as ``2026-11-21 22:30:05 UTC``; `parse` reads it back."""
    if not 0 <= seconds <= MAX_SECONDS:
        return f"@{int(seconds)}"
    return f"{datetime.fromtimestamp(int(seconds), timezone.utc):%Y-%m-%d %H:%M:%S} UTC"


def span(seconds: float, units: int = 2) -> str:
    """``seconds`` of time in its largest units, such as ``2 d 3 h``, ``17 min`` or ``45 s``."""
    rest, parts = round(abs(seconds)), []
    for name, factor in (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        count, rest = divmod(rest, factor)
        if count:
            parts.append(f"{count} {name}")
        elif parts:
            break
    return " ".join(parts[:units]) or "0 s"
