"""A figure over time as inline SVG: axes, gaps, lines or stacked areas, and a label at the end of each.

Colours and dashes are classes that the page's style sheet fills in. What is told by colour is told by a dash, a pattern or a
label too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Optional

from sharectl.core import time_words
from sharectl.report import svg_paths
from sharectl.report.svg import Markup, coordinate, element, joined
from sharectl.report.svg_labels import Label, placed
from sharectl.report.svg_scale import Limits, Scale, Unit, number_ticks, rounded_limits, time_ticks

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
        object.__setattr__(self, "up", Scale(axis.limits.least, axis.limits.most, HEIGHT - BOTTOM, TOP))


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
                found += [part for part in (value.mean, value.least, value.greatest) if part is not None]
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
        yield element("rect", class_="between", x=left, y=high, width=right - left, height=low - high)
    for tick in number_ticks(axis.limits, axis.unit):
        y = frame.up(tick.value)
        zero = "axis" if tick.value == 0 else "grid"
        yield element("path", class_=zero, d=f"M{coordinate(left)} {coordinate(y)}H{coordinate(right)}")
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
        spread = [value for value in curve.values if value.least is not None and value.greatest is not None]
        low = _placed(frame, [(value.seconds, value.least) for value in spread], breaks)
        high = _placed(frame, [(value.seconds, value.greatest) for value in spread], breaks)
        band = "".join(
            svg_paths.area(svg_paths.simplified(upper), svg_paths.simplified(lower))
            for upper, lower in zip(high, low)
        )
        if band:
            yield element("path", class_=f"band {curve.style}", d=band)
    for curve in frame.figure.curves:
        stretches = _placed(frame, [(value.seconds, value.mean) for value in curve.values], breaks)
        if stretches:
            path = svg_paths.line(svg_paths.simplified(stretch) for stretch in stretches if len(stretch) > 1)
            dots = svg_paths.line(stretch for stretch in stretches if len(stretch) == 1)
            if path:
                yield element("path", element("title", curve.name), class_=f"line {curve.style}", d=path)
            if dots:
                yield element("path", element("title", curve.name), class_=f"line dot {curve.style}", d=dots)


def _areas(frame: _Frame) -> Iterator[Markup]:
    """Layers from the floor up, each between the sums below and with it."""
    breaks = [begin for begin, _end in frame.figure.gaps]
    lower: Optional[list[list[svg_paths.Point]]] = None
    for curve, tops in zip(frame.figure.curves, _tops(frame.figure.curves)):
        upper = [svg_paths.simplified(stretch) for stretch in _placed(frame, tops, breaks)]
        if lower is None:
            floor = frame.up.start
            lower = [[(stretch[0][0], floor), (stretch[-1][0], floor)] for stretch in upper]
        if upper != lower:
            path = "".join(svg_paths.area(above, below) for above, below in zip(upper, lower))
            yield element("path", element("title", curve.name), class_=f"area {curve.style}", d=path)
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
) -> list[list[svg_paths.Point]]:
    return [
        [(frame.across(seconds), frame.up(value)) for seconds, value in run]
        for run in svg_paths.runs(points, breaks)
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
    return time_words.shown(seconds)[:16]
