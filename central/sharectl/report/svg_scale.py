"""Where a number or a time lies on an axis, and which values get a tick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from math import ceil, floor, log10

from sharectl.report.svg import NARROW

MINUTE_SECONDS = 60
HOUR_SECONDS = 3600
DAY_SECONDS = 86400

_TIME_STEPS_SECONDS = (
    *(minutes * MINUTE_SECONDS for minutes in (1, 2, 5, 10, 15, 30)),
    *(hours * HOUR_SECONDS for hours in (1, 2, 3, 6, 12)),
    *(days * DAY_SECONDS for days in (1, 2, 4, 7, 14)),
)
_MONTH_STEPS = (1, 2, 3, 6, 12, 24, 60, 120)
_MONTH_SECONDS = 30.44 * DAY_SECONDS
_MONDAY = 4 * DAY_SECONDS
"""The first Monday since 1970 began: steps of weeks begin there."""
_NICE = (1.0, 2.0, 2.5, 5.0, 10.0)
_GRACE = 1e-9
_LEAST_SPAN = 1e-6
"""Values that are nearer to each other than this, or to 0, are the same."""


@dataclass(frozen=True)
class Scale:
    """Straight line from values to coordinates."""

    least: float
    most: float
    start: float
    """Coordinate of ``least``."""
    end: float
    """Coordinate of ``most``."""

    def __call__(self, value: float) -> float:
        """Coordinate of ``value``."""
        span = self.most - self.least
        return self.start + (self.end - self.start) * ((value - self.least) / span if span else 0.5)


@dataclass(frozen=True)
class Limits:
    """Least and greatest value of an axis, both of them multiples of its step."""

    least: float
    most: float
    step: float


@dataclass(frozen=True)
class Tick:
    """A place on an axis and its label."""

    value: float
    label: str


@dataclass(frozen=True)
class Unit:
    """How numbers of an axis are written: divided by ``factor``, in what ``words`` say."""

    factor: float
    words: str


def unit_of(largest: float, words: str, *, whole: bool = False) -> Unit:
    """Unit in which numbers up to ``largest`` have few digits.

    Parameters
    ----------
    words
        What is counted, such as ``HS06``.
    whole
        Whether they are things that one counts (cores): thousands are only used from 10,000 on.
    """
    for factor, name in ((1e9, "billion"), (1e6, "million"), (1e3, "thousand")):
        if largest >= factor * (10 if whole and factor == 1e3 else 1):  # noqa: PLR2004 - thousand
            return Unit(factor, f"{name} {words}")
    return Unit(1.0, words)


def nice_step(span: float, most: int) -> float:
    """Smallest of 1, 2, 2.5 and 5 times a power of ten that cuts ``span`` > 0 into at most ``most`` steps."""
    raw = span / most
    power: float = 10.0 ** floor(log10(raw))
    return next(power * nice for nice in _NICE if power * nice >= raw * (1 - _GRACE))


def number_ticks(limits: Limits, unit: Unit) -> tuple[Tick, ...]:
    """A tick at each step, from limit to limit."""
    least, most, step = limits.least, limits.most, limits.step / unit.factor
    first = ceil(least / unit.factor / step - _GRACE)
    last = floor(most / unit.factor / step + _GRACE)
    decimals = max(0, -floor(log10(step) + _GRACE), 1 if step % 1 and step > 1 else 0)
    if step < 1 and abs(step * 10**decimals - round(step * 10**decimals)) > _GRACE:
        decimals += 1
    return tuple(
        Tick(number * step * unit.factor, grouped(number * step, decimals))
        for number in range(first, last + 1)
    )


def rounded_limits(least: float, most: float, count: int) -> Limits:
    """Limits of an axis that hold both values, with about ``count`` steps; apart even if the values are not."""
    if most - least <= max(_LEAST_SPAN, _GRACE * max(abs(least), abs(most))):
        least, most = (0.0, 1.0) if abs(most) <= _LEAST_SPAN else (min(0.0, 2 * least), max(0.0, 2 * most))
    step = nice_step(most - least, count)
    return Limits(floor(least / step + _GRACE) * step, ceil(most / step - _GRACE) * step, step)


def grouped(value: float, decimals: int = 0) -> str:
    """A number in groups of three digits with narrow blanks, and a real minus sign."""
    text = f"{value:,.{decimals}f}"
    if not text.strip("-0.,"):
        text = text.lstrip("-")
    return text.replace(",", NARROW).replace("-", "\u2212")


def short(value: float) -> str:
    """A mean or a duration: whole where it is a count or large, else with one decimal."""
    return grouped(value, 0 if value == int(value) or abs(value) >= 100 else 1)  # noqa: PLR2004 - three digits


def significant(value: float) -> str:
    """A sum: whole from 100 on, else with three significant digits, but none that is smaller than a millionth."""
    size = abs(value)
    if size < 0.5e-6:  # noqa: PLR2004 - of the last digit that is shown
        return "0"
    return grouped(value, min(6, max(0, 2 - floor(log10(size) + _GRACE))))


def time_ticks(since: float, until: float, count: int) -> tuple[Tick, ...]:
    """At most ``count`` ticks at round UTC times, the first of each day, month or year with its name."""
    span = until - since
    step = next((step for step in _TIME_STEPS_SECONDS if span / step <= count), None)
    if step is None:
        return _month_ticks(since, until, count)
    origin = _MONDAY if step >= 7 * DAY_SECONDS else 0
    moments = [
        origin + number * step
        for number in range(ceil((since - origin) / step), floor((until - origin) / step) + 1)
    ]
    if step >= DAY_SECONDS:
        return _labelled(moments, "%-d %b")
    return _hours(moments)


def _hours(moments: Sequence[float]) -> tuple[Tick, ...]:
    """Hours, with the day instead at midnight; where there is no midnight the first tells the day."""
    ticks = []
    for number, moment in enumerate(moments):
        midnight = moment % DAY_SECONDS == 0
        first = number == 0 and not any(other % DAY_SECONDS == 0 for other in moments)
        form = "%-d %b" if midnight else "%-d %b %H:%M" if first else "%H:%M"
        ticks.append(Tick(moment, utc(moment).strftime(form)))
    return tuple(ticks)


def _labelled(moments: Sequence[float], form: str) -> tuple[Tick, ...]:
    return tuple(Tick(moment, utc(moment).strftime(form)) for moment in moments)


def _month_ticks(since: float, until: float, count: int) -> tuple[Tick, ...]:
    months = next(
        (step for step in _MONTH_STEPS if (until - since) / (step * _MONTH_SECONDS) <= count),
        _MONTH_STEPS[-1],
    )
    begin, end = utc(since), utc(until)
    ticks = []
    for index in range(begin.year * 12 + begin.month - 1, end.year * 12 + end.month):
        moment = datetime(index // 12, index % 12 + 1, 1, tzinfo=timezone.utc)
        if index % months == 0 and since <= moment.timestamp() <= until:
            form = "%Y" if index % 12 == 0 else "%b"
            ticks.append(Tick(moment.timestamp(), moment.strftime(form)))
    return tuple(ticks)


def utc(seconds: float) -> datetime:
    """Unix seconds as a time in UTC."""
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=seconds)
