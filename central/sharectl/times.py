"""Points in time as people write them, and as they are shown: one way for every command."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

FORMS = (
    "Unix seconds (1627101243, or @ and any number), a date or time as ISO 8601 (2026-11-21, "
    "2026-11-21T22:30, "
    "2026-11-21T22:30:05+01:00; UTC where no zone is written), or a time before now (-2d, "
    "1h30m, 2 days ago, today, "
    "yesterday, now)"
)
"""What `parse` understands, for ``--help`` and for messages."""

MAX_SECONDS = 253_402_300_799
"""The last second of the year 9999."""

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
    r"(?:[T ](?P<clock>[0-9]{2}:[0-9]{2})(?::(?P<seconds>[0-9]{2})(?:[.,][0-9]+)?)?)?"
    r"\s*(?P<zone>Z|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?)?",
    re.IGNORECASE,
)
_TERM = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)\s*(?:,|and\b)?")
_AGO = re.compile(r"(?:now\s*)?-\s*(?P<minus>.+)|(?P<ago>.+?)\s+ago|(?P<bare>[0-9].*)")


def parse(text: str, now: int) -> int:
    """Unix seconds that ``text`` means at Unix time ``now``.

    A date alone is its first second, a year of 365 days; parts of a second are cut.

    Raises
    ------
    ValueError
        If it is none of `FORMS`; the message says what to write.
    """
    words = text.strip()
    if len(words) > _MAX_CHARACTERS or not words.isascii():
        raise _wrong(text)
    if _UNIX.fullmatch(words):
        return _within(int(words.lstrip("@")), text)
    if iso := _ISO.fullmatch(words):
        return _within(_of_iso(iso, text), text)
    folded = words.lower()
    if folded == "now":
        return now
    if folded in _DAYS:
        return _within(now - now % 86_400 - 86_400 * _DAYS[folded], text)
    if relative := _AGO.fullmatch(folded):
        return _within(
            now - _span_seconds(next(part for part in relative.groups() if part), text), text
        )
    raise _wrong(text)


def shown(seconds: float) -> str:
    """Unix time ``seconds`` in UTC, such as ``2026-11-21 22:30:05 UTC``, which `parse` reads back."""
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


def _of_iso(iso: re.Match[str], text: str) -> int:
    written = f"{iso['date']} {iso['clock'] or '00:00'}:{iso['seconds'] or '00'}"
    try:
        moment = datetime.strptime(written, "%Y-%m-%d %H:%M:%S").replace(tzinfo=timezone.utc)
    except ValueError:
        raise _wrong(text) from None
    if iso["zone"] and not iso["clock"] and iso["zone"][0] in "+-":
        raise _wrong(text)
    since = moment - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return since.days * 86_400 + since.seconds - _offset_seconds(iso["zone"] or "", text)


def _offset_seconds(zone: str, text: str) -> int:
    if zone[:1] not in ("+", "-"):
        return 0
    hours, minutes = int(zone[1:3]), int(zone[3:].lstrip(":") or 0)
    if hours > 23 or minutes > 59:  # noqa: PLR2004 - as on a clock
        raise _wrong(text)
    return (-1 if zone[0] == "-" else 1) * (hours * 3600 + minutes * 60)


def _span_seconds(words: str, text: str) -> int:
    total, position = 0.0, 0
    while position < len(words):
        term = _TERM.match(words, position)
        if term is None or term[2] not in _FACTORS:
            raise _wrong(text)
        total += float(term[1]) * _FACTORS[term[2]]
        position = term.end()
    return int(total)


def _within(seconds: int, text: str) -> int:
    if not 0 <= seconds <= MAX_SECONDS:
        raise ValueError(f"{text[:_MAX_CHARACTERS]!r} is not between the years 1970 and 9999")
    return seconds


def _wrong(text: str) -> ValueError:
    return ValueError(f"{text[:_MAX_CHARACTERS]!r} is no time; write {FORMS}")
