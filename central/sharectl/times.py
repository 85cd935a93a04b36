"""Points in time as people write them, and as they are shown: one way for every command."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import Optional

DAY_SECONDS = 86_400

FORMS = (
    "Unix seconds (1627101243, or @ and any number), a date or time as ISO 8601 (2026-11-21, "
    "2026-11-21T22:30, 2026-11-21T22:30:05+01:00; UTC where no zone is written), or a time before "
    "now (-2d, 1h30m, 2 days ago, today, yesterday, now)"
)
"""Notations that `parse` takes, for ``--help`` and for messages."""

MAX_SECONDS = 253_402_300_799
"""Last second of the year 9999."""

_UNITS = {
    1: "s sec secs second seconds",
    60: "m min mins minute minutes",
    3600: "h hr hrs hour hours",
    86_400: "d day days",
    604_800: "w week weeks",
    31_536_000: "y year years",
}
_FACTORS = {name: factor for factor, names in _UNITS.items() for name in names.split()}
_DAYS = {"today": 0, "yesterday": 1}
_MAX_CHARACTERS = 60

_UNIX = re.compile(r"@[0-9]{1,15}|[0-9]{1,3}|[0-9]{5,7}|[0-9]{9,15}")
"""Four or eight digits alone could be a year or a date: they are refused."""
_ISO = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[t ](?P<clock>[0-9]{2}:[0-9]{2})(?::(?P<seconds>[0-9]{2})(?:[.,][0-9]+)?)?)?"
    r"\s*(?P<zone>z|utc|gmt|[+-][0-9]{2}(?::?[0-9]{2})?)?"
)
_TERM = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)\s*(?:,|and\b)?")
_AGO = re.compile(r"(?:now\s*)?-\s*(?P<minus>.+)|(?P<ago>.+?)\s+ago|(?P<bare>[0-9].*)")


def parse(text: str, now: int) -> int:
    """Unix seconds that ``text`` means at Unix time ``now``.

    A date alone is its first second, a year of 365 days; parts of a second are cut. Raises
    ValueError for anything but `FORMS`; the message says what to write.
    """
    words = text.strip().lower()
    seconds: Optional[int] = None
    if len(words) <= _MAX_CHARACTERS and words.isascii():
        iso, ago = _ISO.fullmatch(words), _AGO.fullmatch(words)
        if _UNIX.fullmatch(words):
            seconds = int(words.lstrip("@"))
        elif iso:
            seconds = _of_iso(iso)
        elif words == "now":
            return now
        elif words in _DAYS:
            seconds = now - now % 86_400 - 86_400 * _DAYS[words]
        elif ago:
            span_seconds = parse_span(next(filter(None, ago.groups())))
            seconds = None if span_seconds is None else now - span_seconds
    if seconds is None:
        raise ValueError(f"{text[:_MAX_CHARACTERS]!r} is no time; write {FORMS}")
    if not 0 <= seconds <= MAX_SECONDS:
        raise ValueError(f"{text[:_MAX_CHARACTERS]!r} is not between the years 1970 and 9999")
    return seconds


def parse_span(words: str) -> Optional[int]:
    """Seconds of ``1h30m`` or ``2 days``, cut to a whole number; None if it is no span of time."""
    if len(words) > _MAX_CHARACTERS:
        return None
    total, position = 0.0, 0
    while position < len(words):
        term = _TERM.match(words, position)
        if term is None or term[2] not in _FACTORS:
            return None
        total += float(term[1]) * _FACTORS[term[2]]
        position = term.end()
    return int(total)


def shown(seconds: float) -> str:
    """Unix time ``seconds`` in UTC, such as ``2026-11-21 22:30:05 UTC``; `parse` reads it back."""
    if not 0 <= seconds <= MAX_SECONDS:
        return f"@{int(seconds)}"
    moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=int(seconds))
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def span(seconds: float) -> str:
    """``seconds`` of time in its two largest units, such as ``2 d 3 h``, ``17 min`` or ``45 s``."""
    rest, parts = round(abs(seconds)), []
    for name, factor in (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        count, rest = divmod(rest, factor)
        if count:
            parts.append(f"{count} {name}")
        elif parts:
            break
    return " ".join(parts[:2]) or "0 s"


def _of_iso(iso: re.Match[str]) -> Optional[int]:
    zone = iso["zone"] or "z"
    if zone[0] in "+-" and not iso["clock"]:
        return None
    zone = "+0000" if zone[0].isalpha() else zone.ljust(5, "0")
    moment = f"{iso['date']} {iso['clock'] or '00:00'}:{iso['seconds'] or '00'} {zone}"
    try:
        return int(datetime.strptime(moment, "%Y-%m-%d %H:%M:%S %z").timestamp())
    except ValueError:
        return None
