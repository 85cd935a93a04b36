"""The one way to draw: figures of lines or stacked areas as SVG, on a page or by themselves.

Geometry is computed here, `figure.svg` writes it, and `page.css` gives its classes colours, dashes
and patterns in a light, a dark and a printed form. Colour is never the only sign.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import fsum, inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from sharectl.report.scale import NARROW, AxisUnit, Limits, Tick, number_ticks, rounded_limits
from sharectl.report.tables import printable

if TYPE_CHECKING:
    from jinja2 import Environment

WIDTH, HEIGHT = 440.0, 230.0
LEFT, RIGHT, TOP, BOTTOM = 48.0, 96.0, 26.0, 26.0
FLOOR = HEIGHT - BOTTOM
PLOT_WIDTH = int(WIDTH - LEFT - RIGHT)
"""Units across the plot: more points than this nobody can see."""
GROUPS = LAYERS = 6
"""Lines of groups, and layers of a stack, that have a dash or a pattern of their own."""
SPACING = 16.0
"""Least distance of two labels, from base line to base line."""
TOLERANCE = 0.35
"""Greatest vertical distance, in units of the figure (about a pixel), of a point left out."""
_NUMBER_TICKS = 4
_LEAST_GAP = 1.5
"""Narrower gaps, in units, are open but not shaded."""
_TICK_ROOM = 22.0
"""Half of a label's width: nearer to the edge it would leave the figure."""
_CHARACTER = 7.8
"""Width of a digit on paper, where texts are largest."""
_TICK_SPACE = 4.0
_LONGEST_LABEL = 9

Point = tuple[float, float]
Reading = tuple[float, Optional[float]]


class Value(NamedTuple):
    """Mean, least and greatest value of a pixel column; no mean where nothing was recorded."""

    place: float
    mean: Optional[float]
    least: Optional[float] = None
    greatest: Optional[float] = None


class Curve(NamedTuple):
    """A line, or a layer of a stack."""

    name: str
    style: str
    """Class of its colour, dash or pattern."""
    values: Sequence[Value]


@dataclass(frozen=True)
class Figure:
    """Contents of one figure; places are values of the horizontal axis."""

    key: str
    """Identifier, of letters, digits and hyphens."""
    title: str
    description: str
    across: tuple[float, float]
    """Places of the left and the right end."""
    ticks: Sequence[Tick]
    up: Limits
    unit: AxisUnit
    curves: Sequence[Curve]
    stacked: bool = False
    gaps: Sequence[tuple[float, float]] = ()
    """Places without records: lines are open and the ground is shaded."""
    crosses: Sequence[float] = ()
    """Places with a cross at the foot of the figure."""
    between: Optional[tuple[float, float]] = None
    """Values with a shaded band between them, such as a deadband."""
    marks: Sequence[tuple[float, str]] = ()
    """Places with a vertical line and a text."""
    note: str = ""
    """Written behind the unit."""
    across_words: str = ""
    """Unit of the horizontal axis."""

    def x(self, place: float) -> float:
        """Horizontal coordinate."""
        least, most = self.across
        return LEFT + PLOT_WIDTH * (min(max(place, least), most) - least) / (most - least)

    def y(self, value: float) -> float:
        """Vertical coordinate."""
        return FLOOR - (FLOOR - TOP) * (value - self.up.least) / (self.up.most - self.up.least)


def limits_of(
    figures: Iterable[Sequence[Curve]], *, stacked: bool = False, also: Sequence[float] = ()
) -> Limits:
    """Round limits of an axis that hold 0, all values that are drawn, and ``also``."""
    drawn: list[Optional[float]] = [0.0, *also]
    for curves in figures:
        for curve in _sums(curves) if stacked else curves:
            drawn += [part for value in curve.values for part in value[1:]]
    known = [value for value in drawn if value is not None]
    return rounded_limits(min(known), max(known), _NUMBER_TICKS)


def svg(figure: Figure) -> str:
    """The figure as one ``svg`` element (markup) with title, description and role."""
    macros: Any = _environment().get_template("figure.svg").module
    text: str = macros.figure(
        figure,
        gaps=[
            (figure.x(begin), width)
            for begin, end in figure.gaps
            if (width := figure.x(end) - figure.x(begin)) >= _LEAST_GAP
        ],
        rows=[
            (figure.y(tick.value), tick.label, "grid" if tick.value else "axis")
            for tick in number_ticks(figure.up, figure.unit)
        ],
        columns=list(_columns(figure)),
        drawn=[*_areas(figure)] if figure.stacked else [*_bands(figure), *_lines(figure)],
        crosses=sorted({round(figure.x(place)) for place in figure.crosses}),
        labels=list(_labels(figure)),
    )
    return text


def document(figures: Sequence[Figure]) -> str:
    """An SVG file of figures, one below the other."""
    return render("document.svg", figures=[svg(figure) for figure in figures])


def render(template: str, **context: object) -> str:
    """A template of this folder with values, which are escaped."""
    text: str = _environment().get_template(template).render(**context)
    return text


def style_sheet() -> str:
    """Style of pages and pictures."""
    return (Path(__file__).parent / "page.css").read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("sharectl", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_written,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        width=WIDTH, height=HEIGHT, left=LEFT, top=TOP, right=WIDTH - RIGHT, floor=FLOOR
    )
    environment.globals["style"] = Markup(style_sheet())  # noqa: S704 - of this package
    return environment


def _written(value: Any) -> Any:
    """Floats are coordinates with one decimal; text has no control characters. Markup stays."""
    if isinstance(value, float):
        return f"{round(value, 1) + 0.0:g}"
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return NARROW.join(map(printable, value.split(NARROW)))
    return value


def _columns(figure: Figure) -> Iterator[tuple[float, str]]:
    """Ticks, with a label where it does not lie on the one before."""
    taken = 0.0
    for place, label in figure.ticks:
        x, half = figure.x(place), len(label) * _CHARACTER / 2
        fits = _TICK_ROOM <= x <= WIDTH - _TICK_ROOM and x - half >= taken
        yield x, label if fits else ""
        taken = x + half + _TICK_SPACE if fits else taken


def _bands(figure: Figure) -> Iterator[tuple[str, str, str]]:
    """Bands from the least to the greatest value, behind the lines of the means."""
    for curve in figure.curves:
        spread = [value for value in curve.values if value.least is not None]
        low = _placed(figure, ((value.place, value.least) for value in spread))
        high = _placed(figure, ((value.place, value.greatest) for value in spread))
        paths = [area(simplified(upper), simplified(lower)) for upper, lower in zip(high, low)]
        if paths:
            yield f"band {curve.style}", "".join(paths), ""


def _lines(figure: Figure) -> Iterator[tuple[str, str, str]]:
    for curve in figure.curves:
        stretches = _placed(figure, ((value.place, value.mean) for value in curve.values))
        for style, parts in (
            ("line", [line(simplified(points)) for points in stretches if len(points) > 1]),
            ("line dot", [f"{line(points)}h0" for points in stretches if len(points) == 1]),
        ):
            if parts:
                yield f"{style} {curve.style}", "".join(parts), curve.name


def _areas(figure: Figure) -> Iterator[tuple[str, str, str]]:
    """Layers from the floor up, each between the sums below and with it."""
    lower: list[list[Point]] = []
    for curve in _sums(figure.curves):
        stretches = _placed(figure, ((value.place, value.mean) for value in curve.values))
        upper = [simplified(points) for points in stretches]
        lower = lower or [[(points[0][0], FLOOR), (points[-1][0], FLOOR)] for points in upper]
        if upper != lower:
            paths = [area(above, below) for above, below in zip(upper, lower)]
            yield f"area {curve.style}", "".join(paths), curve.name
        lower = upper


def _sums(curves: Sequence[Curve]) -> list[Curve]:
    """Upper edges of layers: each curve plus those before it; no value where one has none."""
    sums: list[Curve] = []
    for curve in curves:
        below = [value.mean for value in sums[-1].values] if sums else [0.0] * len(curve.values)
        tops = [
            Value(value.place, None if value.mean is None or base is None else value.mean + base)
            for value, base in zip(curve.values, below)
        ]
        sums.append(curve._replace(values=tops))
    return sums


def _placed(figure: Figure, readings: Iterable[Reading]) -> list[list[Point]]:
    stretches = runs(readings, [begin for begin, _end in figure.gaps])
    return [[(figure.x(place), figure.y(value)) for place, value in run] for run in stretches]


def _labels(figure: Figure) -> Iterator[tuple[str, str, float, float]]:
    """Name, style, height of the curve's end and of the label; none over another."""
    wanted = []
    below = 0.0
    for curve in _sums(figure.curves) if figure.stacked else figure.curves:
        end = next((v.mean for v in reversed(curve.values) if v.mean is not None), None)
        if end is not None:
            middle = (end + below) / 2 if figure.stacked else end
            below = end
            wanted.append((figure.y(middle), curve))
    if figure.stacked:
        wanted.reverse()  # layers without height keep their order, the uppermost first
    wanted.sort(key=lambda label: label[0])
    for (end_y, curve), y in zip(wanted, apart([label[0] for label in wanted], TOP, FLOOR)):
        long = len(curve.name) > _LONGEST_LABEL
        name = f"{curve.name[: _LONGEST_LABEL - 2]}…" if long else curve.name
        yield name, curve.style, end_y, y


def apart(
    wanted: Sequence[float], top: float, floor: float, spacing: float = SPACING
) -> list[float]:
    """Places near wanted ones, ascending, at least ``spacing`` apart and within the limits.

    Labels that would overlap become a block around the mean of their wanted places (the pooling of
    isotonic regression), which makes the sum of squared moves least.
    """
    blocks: list[list[float]] = []
    for number, place in enumerate(wanted):
        blocks.append([place - number * spacing])
        while len(blocks) > 1 and _mean(blocks[-2]) > _mean(blocks[-1]):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    last = max(top, floor - (len(wanted) - 1) * spacing)
    flat = [_mean(block) for block in blocks for _place in block]
    return [max(top, min(place, last)) + n * spacing for n, place in enumerate(flat)]


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def runs(readings: Iterable[Reading], breaks: Sequence[float] = ()) -> list[list[Point]]:
    """Stretches of values; None ends one, and so does a place of ``breaks``."""
    stops = sorted(breaks)
    stretches: list[list[Point]] = [[]]
    passed = 0
    for place, value in readings:
        if value is None or bisect_left(stops, place) > passed:
            stretches.append([])
        passed = bisect_left(stops, place)
        if value is not None:
            stretches[-1].append((place, value))
    return [run for run in stretches if run]


def simplified(points: Sequence[Point], tolerance: float = TOLERANCE) -> list[Point]:
    """Points of a line from which no other lies further than ``tolerance`` above or below.

    This is the "swinging door" of historians of process data.
    """
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


def line(points: Sequence[Point], begin: str = "M") -> str:
    """Path through points, in relative steps; each begins where the last one was drawn."""
    corners = [(round(10 * x), round(10 * y)) for x, y in points]
    steps = [
        f"l{(x - last_x) / 10:g}{' ' if y >= last_y else ''}{(y - last_y) / 10:g}"
        for (last_x, last_y), (x, y) in zip(corners, corners[1:])
    ]
    return f"{begin}{corners[0][0] / 10:g} {corners[0][1] / 10:g}{''.join(steps)}"


def area(upper: Sequence[Point], lower: Sequence[Point]) -> str:
    """Closed path between two lines over the same places; a single place is a narrow bar."""
    if len(upper) == 1:
        (x, y), (_, base) = upper[0], lower[0]
        upper, lower = [(x - 2, y), (x + 2, y)], [(x - 2, base), (x + 2, base)]
    return f"{line(upper)}{line(lower[::-1], 'L')}z"
