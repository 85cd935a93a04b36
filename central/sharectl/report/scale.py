"""Numbers and times as people read them: digits, units, ticks of an axis."""

from __future__ import annotations

from datetime import datetime, timezone
from math import ceil, floor, log10
from typing import NamedTuple, Optional

from sharectl import times
from sharectl.times import DAY_SECONDS
from sharectl.words import rounded

NARROW = "\u202f"
"""Blank between groups of three digits."""

_STEPS_SECONDS = (
    *(minutes * 60 for minutes in (1, 2, 5, 10, 15, 30)),
    *(hours * 3600 for hours in (1, 2, 3, 6, 12)),
    *(days * DAY_SECONDS for days in (1, 2, 4, 7, 14, 28, 91, 182, 365, 730, 3650, 7300)),
)
_YEAR_SECONDS = 365 * DAY_SECONDS
_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_NICE = (1.0, 2.0, 2.5, 5.0, 10.0)
_ROUNDING = 1e-9
_LEAST_SPAN = 1e-6
_WHOLE_FROM = 100


class Tick(NamedTuple):
    """A place on an axis and its label."""

    value: float
    label: str


def axis(least: float, most: float, count: int) -> list[Tick]:
    """Ticks around 0 that hold both values, in about ``count`` steps of 1, 2, 2.5 or 5 times 10^n.

    Large ones are in thousands, millions or billions.
    """
    if most - least <= _LEAST_SPAN:
        least, most = 0.0, 1.0
    raw = (most - least) / count
    power: float = 10.0 ** floor(log10(raw))
    step = next(power * nice for nice in _NICE if power * nice >= raw * (1 - _ROUNDING))
    first, last = floor(least / step + _ROUNDING), ceil(most / step - _ROUNDING)
    largest = max(-first, last) * step
    factor, prefix = next((row for row in _PREFIXES if largest >= row[0]), (1.0, ""))
    shown = step / factor
    decimals = max(0, -floor(log10(shown) + _ROUNDING))
    if abs(shown * 10**decimals - round(shown * 10**decimals)) > _ROUNDING:
        decimals += 1
    return [
        Tick(n * step, f"{grouped(n * shown, decimals)}{prefix if n else ''}")
        for n in range(first, last + 1)
    ]


def ticks_up_to(most: float, count: int) -> list[Tick]:
    """About ``count`` ticks from 0 to at most ``most``."""
    return [tick for tick in axis(0.0, most, count) if tick.value <= most]


def time_ticks(since: float, until: float, count: int) -> list[Tick]:
    """Ticks at round UTC times, about ``count``: times of day, days, or months of years."""
    steps = (step for step in _STEPS_SECONDS if (until - since) / step <= count)
    step = next(steps, _STEPS_SECONDS[-1])
    day = "%b %Y" if step >= _YEAR_SECONDS else "%-d %b"
    ticks = []
    for number in range(ceil(since / step), floor(until / step) + 1):
        moment = number * step
        form = day if moment % DAY_SECONDS == 0 else "%H:%M"
        label = datetime.fromtimestamp(moment, timezone.utc).strftime(form)
        ticks.append(Tick(moment, label))
    return ticks


def grouped(value: float, decimals: int = 0) -> str:
    """A number in groups of three digits, with a real minus sign."""
    text = f"{value:,.{decimals}f}"
    if not text.strip("-0.,"):
        text = text.lstrip("-")
    return text.replace(",", NARROW).replace("-", "\u2212")


def short(value: Optional[float]) -> str:
    """A mean or a duration: whole if it is a count or large, else with one decimal."""
    if value is None:
        return "unknown"
    return grouped(value, 0 if value == int(value) or abs(value) >= _WHOLE_FROM else 1)


def percent(ratio: Optional[float]) -> str:
    """A ratio in percent, with a real minus sign."""
    return "unknown" if ratio is None else f"{ratio:.1%}".replace("-", "\u2212")


def minute(seconds: float) -> str:
    """Minute in UTC, such as ``2022-01-31 23:42``."""
    return times.shown(seconds)[:16]


def brief(value: float) -> str:
    """A number with at least three digits, none of them in vain."""
    whole = value >= _WHOLE_FROM or value == int(value)
    return f"{value:.0f}" if whole else rounded(value, 3)
