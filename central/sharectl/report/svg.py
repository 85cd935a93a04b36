"""Elements of SVG and HTML as text: whatever is not markup already is escaped.

Own text rather than matplotlib's SVG: that draws glyphs and clip paths by the megabyte, in fixed
colours, whereas a page whose colours are CSS variables has a light, a dark and a printed form of
one figure.

Labels at the right ends of curves, moved apart where they would lie on each other.

Paths of a figure: as many points as pixels can show, with gaps left open and peaks kept.

A figure gets values by pixel column. A line runs through the mean of each column, and a band behind
it from the least to the greatest value, so that a short peak stays visible. Points on a straight
line are left out ("swinging door", as historians of process data do): no point that is left out
lies more than `TOLERANCE` from what is drawn.

Where a number or a time lies on an axis, and which values get a tick.

A figure over time as inline SVG: axes, gaps, lines or stacked areas, and a label at the end of
each.

Colours and dashes are classes that the page's style sheet fills in. What is told by colour is told
by a dash, a pattern or a label too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from html import escape
from itertools import chain
from math import ceil, floor, fsum, inf, log10
from typing import Optional

from sharectl import times
from sharectl.report.tables import printable

NARROW = "\u202f"
"""Blank between groups of three digits."""


class Markup(str):
    """Text that is markup already and is pasted as it is."""

    __slots__ = ()


def element(name: str, *children: str, **attributes: object) -> Markup:
    """One element; children that are no `Markup` become text of it.

    Parameters
    ----------
    name
        Of the element, such as ``path``.
    attributes
        Underscores stand for hyphens, and one at the end for nothing (``class_``). None and False
        leave an attribute out, True gives it without a value.
    """
    inside = "".join(as_markup(child) for child in children)
    start = f"{name}{''.join(_attribute(key, value) for key, value in attributes.items())}"
    if name in _VOID:
        return Markup(f"<{start}>")
    return Markup(f"<{start}>{inside}</{name}>")


def as_markup(text: str) -> Markup:
    """``text`` escaped, unless it is markup already; characters that steer a terminal or turn its direction are spelt out."""
    return text if isinstance(text, Markup) else Markup(_escaped(text))


def joined(parts: Iterable[str]) -> Markup:
    """Markup one after the other, each on a line of its own."""
    return Markup("\n".join(as_markup(part) for part in parts))


def coordinate(value: float) -> str:
    """A coordinate with one decimal, and none where it is 0."""
    text = f"{value:.1f}"
    text = text.removesuffix(".0")
    return "0" if text == "-0" else text


_HARMLESS = re.compile(r"[-A-Za-z0-9 .,:;%+/()#=]*")
_VOID = frozenset({"meta", "br", "hr", "col"})
"""Elements of HTML that have no end."""


def _attribute(key: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    text = coordinate(value) if isinstance(value, float) else str(value)
    return f' {name}="{_escaped(text)}"'


def _escaped(text: str) -> str:
    if _HARMLESS.fullmatch(text):
        return text
    return escape(NARROW.join(printable(part) for part in text.split(NARROW)))


SPACING = 16.0
"""Least distance of two labels, from base line to base line."""
_SAMPLE = 14.0
_LONGEST = 9
"""Characters that the margin has room for."""


@dataclass(frozen=True)
class Label:
    """Text for a curve."""

    text: str
    style: str
    y: float
    """Where the curve ends."""


def placed(
    labels: Sequence[Label], *, x: float, top: float, floor: float, swatches: bool
) -> Iterator[Markup]:
    """Texts to the right of ``x``, each behind a sample that leads to its curve.

    Parameters
    ----------
    swatches
        Whether samples are boxes, as of areas, rather than lines.
    """
    ordered = sorted(labels, key=lambda label: label.y)
    for label, y in zip(ordered, apart([label.y for label in ordered], top, floor)):
        if swatches:
            yield element(
                "path",
                class_="lead",
                d=f"M{coordinate(x + 1)} {coordinate(label.y)}L{coordinate(x + 7)} {coordinate(y)}",
            )
            yield element(
                "rect", class_=f"swatch {label.style}", x=x + 8, y=y - 5, width=10.0, height=10.0
            )
        else:
            path = (
                f"M{coordinate(x + 2)} {coordinate(label.y)}L{coordinate(x + 5)} "
                f"{coordinate(y)}h{_SAMPLE:g}"
            )
            yield element("path", class_=f"line sample {label.style}", d=path)
        text = label.text if len(label.text) <= _LONGEST else f"{label.text[: _LONGEST - 2]}…"
        yield element("text", text, class_="label", x=x + 22, y=y + 4)


def apart(
    wanted: Sequence[float], top: float, floor: float, spacing: float = SPACING
) -> list[float]:
    """Places near those that are wanted, ascending, at least ``spacing`` apart and within the limits where there is room.

    Labels that would overlap become a block around the mean of what they want (the pooling of
    isotonic regression): the sum of the squares of what they are moved is then the least.
    """
    blocks: list[list[float]] = []
    for number, place in enumerate(wanted):
        blocks.append([place - number * spacing])
        while len(blocks) > 1 and _mean(blocks[-2]) > _mean(blocks[-1]):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    flat = [_mean(block) for block in blocks for _place in block]
    last = floor - (len(wanted) - 1) * spacing
    return [
        max(top, min(place, max(top, last))) + number * spacing for number, place in enumerate(flat)
    ]


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


TOLERANCE = 0.35
"""Greatest vertical distance, in units of the figure (about a pixel), of a point that is left out."""

Point = tuple[float, float]


def runs(
    points: Iterable[tuple[float, Optional[float]]], breaks: Iterable[float] = ()
) -> list[list[Point]]:
    """Stretches of points without a gap: a value of None ends one, and so does a place of ``breaks`` between two points.

    Parameters
    ----------
    points
        Place and value, by place.
    breaks
        Places, ascending.
    """
    found: list[list[Point]] = [[]]
    ends = iter(sorted(breaks))
    end = next(ends, inf)
    for place, value in points:
        if end < place:
            found.append([])
            while end < place:
                end = next(ends, inf)
        if value is None:
            found.append([])
        else:
            found[-1].append((place, value))
    return [run for run in found if run]


def simplified(points: Sequence[Point], tolerance: float = TOLERANCE) -> list[Point]:
    """The points that a line needs so that no other lies further than ``tolerance`` above or below it."""
    if len(points) <= 2:  # noqa: PLR2004 - both ends
        return list(points)
    kept = [points[0]]
    steepest, flattest = inf, -inf
    for before, here in zip(points[1:], points[2:]):
        x, y = kept[-1]
        run = before[0] - x
        if run > 0:
            steepest = min(steepest, (before[1] + tolerance - y) / run)
            flattest = max(flattest, (before[1] - tolerance - y) / run)
        rise = (here[1] - y) / (here[0] - x) if here[0] > x else inf
        if run <= 0 or not flattest <= rise <= steepest:
            kept.append(before)
            steepest, flattest = inf, -inf
    return [*kept, points[-1]]


def line(stretches: Iterable[Sequence[Point]]) -> str:
    """Path through each stretch; one of a single point is a dot (with round caps)."""
    return "".join(f"M{_pair(*stretch[0])}{_onward(stretch) or 'h0'}" for stretch in stretches)


def area(upper: Sequence[Point], lower: Sequence[Point]) -> str:
    """Closed path between two lines from the same place to the same place; a single place is a narrow bar."""
    if len(upper) == 1:
        (x, y), (_, base) = upper[0], lower[0]
        upper, lower = [(x - 2, y), (x + 2, y)], [(x - 2, base), (x + 2, base)]
    back = lower[::-1]
    return f"M{_pair(*upper[0])}{_onward(upper)}L{_pair(*back[0])}{_onward(back)}z"


def _onward(stretch: Sequence[Point]) -> str:
    """Lines from the first point to the others, relative: rounding does not add up, since each step begins where it was drawn."""
    steps = []
    x, y = (_tenths(part) for part in stretch[0])
    for place, value in stretch[1:]:
        next_x, next_y = _tenths(place), _tenths(value)
        down = _written(next_y - y)
        if down == "0":
            steps.append(f"h{_written(next_x - x)}")
        else:
            steps.append(f"l{_written(next_x - x)}{'' if down[0] == '-' else ' '}{down}")
        x, y = next_x, next_y
    return "".join(steps)


def _tenths(value: float) -> int:
    return round(value * 10)


def _written(tenths: int) -> str:
    return str(tenths / 10) if tenths % 10 else str(tenths // 10)


def _pair(x: float, y: float) -> str:
    return f"{_written(_tenths(x))} {_written(_tenths(y))}"


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
        least, most = (
            (0.0, 1.0) if abs(most) <= _LEAST_SPAN else (min(0.0, 2 * least), max(0.0, 2 * most))
        )
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


WIDTH, HEIGHT = 440.0, 230.0
LEFT, RIGHT, TOP, BOTTOM = 48.0, 96.0, 26.0, 26.0
PLOT_WIDTH = int(WIDTH - LEFT - RIGHT)
"""Units across the plot: more points than this nobody can see."""
_NUMBER_TICKS, _TIME_TICKS, _PART_TICKS = 4, 5, 3
_LEAST_GAP = 1.5
"""Narrower gaps, in units, are open but not shaded."""
_TICK_ROOM = 22.0
"""Half of a time's label: nearer to the edge it would leave the figure."""
_CHARACTER = 7.8
"""Width of a digit on paper, where texts are largest."""
_TICK_SPACE = 4.0
"""Least distance of two times' labels."""


@dataclass(frozen=True)
class Value:
    """What a pixel column shows: the mean of its cycles, and the least and the greatest."""

    seconds: float
    mean: Optional[float]
    """None where nothing was recorded."""
    least: Optional[float] = None
    greatest: Optional[float] = None


@dataclass(frozen=True)
class Curve:
    """A line, or a layer of a stack."""

    name: str
    style: str
    """Class of its colour, dash or pattern."""
    values: Sequence[Value]


@dataclass(frozen=True)
class Axis:
    """Limits of both axes: the same in every figure that is to be compared."""

    seconds: float
    """Time from the left end to the right end."""
    limits: Limits
    unit: Unit


@dataclass(frozen=True)
class Part:
    """One of several periods in a figure."""

    name: str
    since: float
    """Unix seconds of its begin."""
    until: float
    shift_seconds: float
    """By how much later than its own times it stands on the axis."""


@dataclass(frozen=True)
class Figure:
    """What is drawn."""

    key: str
    """Identifier, of letters, digits and hyphens."""
    title: str
    description: str
    since: int
    """Unix seconds of the left end."""
    curves: Sequence[Curve]
    axis: Axis
    stacked: bool = False
    gaps: Sequence[tuple[float, float]] = ()
    """From and to, Unix seconds, without records: lines are open and the ground is shaded."""
    marks: Sequence[float] = ()
    """Moments, Unix seconds, with a cross at the foot of the figure."""
    between: Optional[tuple[float, float]] = None
    """Values with a shaded band between them, such as a deadband."""
    note: str = ""
    """Written behind the unit."""
    parts: Sequence[Part] = ()
    """Periods that share the axis, in order; empty: one, that of the axis."""


@dataclass(frozen=True)
class _Frame:
    figure: Figure
    across: Scale = field(init=False)
    up: Scale = field(init=False)

    def __post_init__(self) -> None:
        axis, since = self.figure.axis, self.figure.since
        object.__setattr__(self, "across", Scale(since, since + axis.seconds, LEFT, WIDTH - RIGHT))
        object.__setattr__(
            self, "up", Scale(axis.limits.least, axis.limits.most, HEIGHT - BOTTOM, TOP)
        )


def limits_of(
    figures: Sequence[Sequence[Curve]], *, stacked: bool = False, also: Sequence[float] = ()
) -> Limits:
    """Round least and greatest value that hold 0, what is drawn in any of the figures, and ``also``."""
    found = [0.0, *also]
    for curves in figures:
        if stacked:
            found += [top for layer in _tops(curves) for _place, top in layer if top is not None]
        else:
            for value in chain.from_iterable(curve.values for curve in curves):
                found += [
                    part for part in (value.mean, value.least, value.greatest) if part is not None
                ]
    return rounded_limits(min(found), max(found), _NUMBER_TICKS)


def drawn(figure: Figure) -> Markup:
    """The figure as one ``svg`` element with title, description and role."""
    frame = _Frame(figure)
    parts = [
        element("title", figure.title, id=f"{figure.key}-t"),
        element("desc", figure.description, id=f"{figure.key}-d"),
        *_ground(frame),
        *(_areas(frame) if figure.stacked else _lines(frame)),
        *_marks(frame),
        *_labels(frame),
    ]
    return element(
        "svg",
        joined(parts),
        class_="figure",
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
        role="img",
        aria_labelledby=f"{figure.key}-t {figure.key}-d",
        id=figure.key,
    )


def _ground(frame: _Frame) -> Iterator[Markup]:
    """Gaps, grid, axes and their labels."""
    figure, axis = frame.figure, frame.figure.axis
    left, right, floor = frame.across.start, frame.across.end, frame.up.start
    for begin, end in figure.gaps:
        x, width = (
            frame.across(max(begin, figure.since)),
            frame.across(min(end, figure.since + axis.seconds)),
        )
        if width - x >= _LEAST_GAP:
            yield element("rect", class_="gap", x=x, y=TOP, width=width - x, height=floor - TOP)
    if figure.between is not None:
        low, high = (frame.up(value) for value in figure.between)
        yield element(
            "rect", class_="between", x=left, y=high, width=right - left, height=low - high
        )
    for tick in number_ticks(axis.limits, axis.unit):
        y = frame.up(tick.value)
        zero = "axis" if tick.value == 0 else "grid"
        yield element(
            "path", class_=zero, d=f"M{coordinate(left)} {coordinate(y)}H{coordinate(right)}"
        )
        yield element("text", tick.label, class_="tick", x=left - 6, y=y + 4, text_anchor="end")
    for part in figure.parts:
        x = frame.across(part.since + part.shift_seconds)
        yield element("text", part.name, class_="unit", x=x + 4, y=TOP + 12)
    yield from _times(frame)
    yield element("text", f"{axis.unit.words}{figure.note}", class_="unit", x=2.0, y=11.0)


def _times(frame: _Frame) -> Iterator[Markup]:
    """Ticks of the time, each with its label where that does not lie on the one before."""
    figure, floor, taken = frame.figure, frame.up.start, 0.0
    end = figure.since + figure.axis.seconds
    parts = figure.parts or (Part("", figure.since, end, 0.0),)
    ticks = [
        (tick.value + part.shift_seconds, tick.label)
        for part in parts
        for tick in time_ticks(part.since, part.until, max(_PART_TICKS, _TIME_TICKS // len(parts)))
    ]
    for place, label in ticks:
        x, half = frame.across(place), len(label) * _CHARACTER / 2
        yield element("path", class_="axis", d=f"M{coordinate(x)} {coordinate(floor)}v4")
        if _TICK_ROOM <= x <= WIDTH - _TICK_ROOM and x - half >= taken:
            yield element("text", label, class_="tick", x=x, y=floor + 17, text_anchor="middle")
            taken = x + half + _TICK_SPACE


def _lines(frame: _Frame) -> Iterator[Markup]:
    breaks = [begin for begin, _end in frame.figure.gaps]
    for curve in frame.figure.curves:
        spread = [
            value
            for value in curve.values
            if value.least is not None and value.greatest is not None
        ]
        low = _placed(frame, [(value.seconds, value.least) for value in spread], breaks)
        high = _placed(frame, [(value.seconds, value.greatest) for value in spread], breaks)
        band = "".join(
            area(simplified(upper), simplified(lower)) for upper, lower in zip(high, low)
        )
        if band:
            yield element("path", class_=f"band {curve.style}", d=band)
    for curve in frame.figure.curves:
        stretches = _placed(frame, [(value.seconds, value.mean) for value in curve.values], breaks)
        if stretches:
            path = line(simplified(stretch) for stretch in stretches if len(stretch) > 1)
            dots = line(stretch for stretch in stretches if len(stretch) == 1)
            if path:
                yield element(
                    "path", element("title", curve.name), class_=f"line {curve.style}", d=path
                )
            if dots:
                yield element(
                    "path", element("title", curve.name), class_=f"line dot {curve.style}", d=dots
                )


def _areas(frame: _Frame) -> Iterator[Markup]:
    """Layers from the floor up, each between the sums below and with it."""
    breaks = [begin for begin, _end in frame.figure.gaps]
    lower: Optional[list[list[Point]]] = None
    for curve, tops in zip(frame.figure.curves, _tops(frame.figure.curves)):
        upper = [simplified(stretch) for stretch in _placed(frame, tops, breaks)]
        if lower is None:
            floor = frame.up.start
            lower = [[(stretch[0][0], floor), (stretch[-1][0], floor)] for stretch in upper]
        if upper != lower:
            path = "".join(area(above, below) for above, below in zip(upper, lower))
            yield element(
                "path", element("title", curve.name), class_=f"area {curve.style}", d=path
            )
        lower = upper


def _tops(curves: Sequence[Curve]) -> list[list[tuple[float, Optional[float]]]]:
    """Of each layer the upper edge: time and sum of the layers up to it; None where no layer has a value."""
    sums: list[list[tuple[float, Optional[float]]]] = []
    for curve in curves:
        before = sums[-1] if sums else [(value.seconds, 0.0) for value in curve.values]
        sums.append(
            [
                (value.seconds, None if base is None or value.mean is None else base + value.mean)
                for value, (_seconds, base) in zip(curve.values, before)
            ]
        )
    return sums


def _placed(
    frame: _Frame, points: Sequence[tuple[float, Optional[float]]], breaks: Sequence[float]
) -> list[list[Point]]:
    return [
        [(frame.across(seconds), frame.up(value)) for seconds, value in run]
        for run in runs(points, breaks)
    ]


def _marks(frame: _Frame) -> Iterator[Markup]:
    """Crosses at the foot, one a pixel column at most."""
    columns = sorted({round(frame.across(moment)) for moment in frame.figure.marks})
    if columns:
        foot = coordinate(frame.up.start - 8)
        path = "".join(f"M{column - 3} {foot}l6 6m0-6l-6 6" for column in columns)
        yield element("path", element("title", "incomplete cycle"), class_="cross", d=path)


def _labels(frame: _Frame) -> Iterator[Markup]:
    """A label for each curve at its right end, with a sample of its line or pattern, none over another."""
    wanted = []
    tops = _tops(frame.figure.curves) if frame.figure.stacked else None
    below = 0.0
    for number, curve in enumerate(frame.figure.curves):
        points = tops[number] if tops else [(value.seconds, value.mean) for value in curve.values]
        last = next((value for _seconds, value in reversed(points) if value is not None), None)
        if last is None:
            continue
        height = (last + below) / 2 if tops else last
        below = last
        wanted.append(Label(curve.name, curve.style, frame.up(height)))
    if frame.figure.stacked:
        wanted.reverse()  # layers without height keep their order, the uppermost first
    yield from placed(
        wanted, x=frame.across.end, top=TOP, floor=frame.up.start, swatches=frame.figure.stacked
    )


def told(seconds: float) -> str:
    """Minute in UTC, as in ``2022-01-31 23:42``."""
    return times.shown(seconds)[:16]
