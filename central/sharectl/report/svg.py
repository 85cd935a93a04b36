"""The one way to draw figures as SVG, by themselves or on a page, which `base.html` begins.

Geometry is computed here, `figure.svg` writes it, and `page.css` gives its classes colours and
dashes in a light, a dark and a printed form. Colour is never the only sign.
"""

from __future__ import annotations

from base64 import b64encode
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from sharectl.report import scale
from sharectl.report.scale import NARROW, Tick
from sharectl.report.tables import number, plain
from sharectl.times import shown, span
from sharectl.words import counted, printable, rounded

if TYPE_CHECKING:
    from jinja2 import Environment

WIDTH, BROAD_WIDTH, HEIGHT = 472.0, 976.0, 230.0
LEFT, RIGHT, TOP, BOTTOM = 48.0, 128.0, 26.0, 26.0
FLOOR = HEIGHT - BOTTOM
PLOT_WIDTH = int(WIDTH - LEFT - RIGHT)
"""Units across the plot."""
LINES = 8
"""Lines of groups or strategies that have a dash."""
SPACING = 16.0
"""Least distance of two labels, from base line to base line."""
_NUMBER_TICKS = 4
_LEAST_GAP = 1.5
"""Narrower gaps, in units, are open but not shaded."""
_TICK_ROOM = 22.0
"""Half of a label's width: nearer to the edge it would leave the figure."""
_CHARACTER = 7.8
"""Width of a digit on paper, where texts are largest."""
_TICK_SPACE = 4.0
_LONGEST_LABEL = 13

Point = tuple[float, float]
Reading = tuple[float, Optional[float]]
"""Place and value; None where nothing was recorded."""


class Curve(NamedTuple):
    """A line."""

    name: str
    style: str
    """Class of its colour and dash."""
    readings: Sequence[Reading]


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
    unit: str
    """Unit of the vertical axis, and what it means."""
    curves: Sequence[Curve]
    gaps: Sequence[tuple[float, float]] = ()
    """Places without records, in order: lines are open and the ground is shaded."""
    marks: Sequence[tuple[float, str]] = ()
    """Places with a vertical line and a text."""
    across_words: str = ""
    """Unit of the horizontal axis."""
    points: bool = False
    """True if curves are points with lines to their names."""
    spreads: Sequence[tuple[Point, Point]] = ()
    """Ends of lines about points, places and values."""
    broad: bool = False
    """True for the width of a page, where that is wide."""
    caption: str = ""
    """Heading; empty for none."""

    @cached_property
    def values(self) -> list[float]:
        """Values that are drawn."""
        readings = (reading for curve in self.curves for reading in curve.readings)
        return [value for _place, value in readings if value is not None]

    @cached_property
    def up(self) -> list[Tick]:
        """Ticks of the vertical axis, from end to end: it holds 0 and all values."""
        return scale.axis(min(0.0, *self.values), max(0.0, *self.values), _NUMBER_TICKS)

    @property
    def width(self) -> float:
        """Units of the whole figure."""
        return BROAD_WIDTH if self.broad else WIDTH

    @property
    def right(self) -> float:
        """Right end of the plot."""
        return self.width - RIGHT

    def x(self, place: float) -> float:
        """Horizontal coordinate."""
        least, most = self.across
        part = (min(max(place, least), most) - least) / (most - least)
        return LEFT + (self.right - LEFT) * part

    def y(self, value: float) -> float:
        """Vertical coordinate."""
        least, most = self.up[0].value, self.up[-1].value
        return FLOOR - (FLOOR - TOP) * (value - least) / (most - least)

    def stretches(self, readings: Iterable[Reading]) -> list[list[Point]]:
        """Points of a line between gaps and unknown values."""
        stops = [begin for begin, _end in self.gaps]
        parts = groupby(
            readings, key=lambda reading: (reading[1] is None, bisect_left(stops, reading[0]))
        )
        return [
            [(self.x(place), self.y(value)) for place, value in part if value is not None]
            for (unknown, _stop), part in parts
            if not unknown
        ]


# ---- figures and pages


def svg(figure: Figure) -> str:
    """The figure as one ``svg`` element (markup) with title, description and role."""
    macros: Any = _environment().get_template("figure.svg").module
    gaps = [(figure.x(begin), figure.x(end)) for begin, end in figure.gaps]
    text: str = macros.figure(
        figure,
        gaps=[(begin, end - begin) for begin, end in gaps if end - begin >= _LEAST_GAP],
        columns=list(_columns(figure)),
        drawn=list(_lines(figure)),
        labels=list(_labels(figure)),
    )
    return text


def drawing(figure: Figure) -> dict[str, str]:
    """Figure as templates take it, in two widths if it is broad; without values it is not drawn."""
    slim = replace(figure, key=f"{figure.key}-slim", broad=False)
    return {
        "title": figure.caption,
        "svg": svg(figure) if figure.values else "",
        "slim": svg(slim) if figure.values and figure.broad else "",
    }


def document(figures: Sequence[Figure]) -> str:
    """An SVG file of figures, one below the other."""
    return render("document.svg", figures=[svg(figure) for figure in figures])


def render(template: str, **context: object) -> str:
    """A template of this folder with values, which are escaped."""
    text: str = _environment().get_template(template).render(**context)
    return text


def begin_of(verb: str) -> str:
    """Begin of the pages that a verb writes: it replaces no other file."""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="generator" content="sharectl {verb}">
"""


def page(template: Path, verb: str, **context: object) -> str:
    """HTML document of a template's file, which stands alone: no script, nothing to load.

    Its Content-Security-Policy forbids both, and has the digest of its style sheet.
    """
    source = _environment().from_string(template.read_text(encoding="utf-8"))
    return begin_of(verb) + str(source.render(verb=verb, **context))


def described(begin: str, curves: Iterable[Curve]) -> str:
    """Figure in words, for readers who do not see it."""
    sentences = [begin]
    for curve in curves:
        values = [value for _place, value in curve.readings if value is not None]
        if values:
            least, most, last = map(scale.short, (min(values), max(values), values[-1]))
            sentences.append(f"{curve.name}: from {least} to {most}, at the end {last}.")
    return " ".join(sentences)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("sharectl", "report"),
        autoescape=select_autoescape(("html", "svg")),
        undefined=StrictUndefined,
        finalize=_written,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(width=WIDTH, height=HEIGHT, left=LEFT, top=TOP, floor=FLOOR)
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    digest = b64encode(sha256(style.encode()).digest()).decode()
    environment.globals.update(style=Markup(style), digest=digest)  # noqa: S704 - of this package
    numbers = (scale.short, scale.grouped, scale.percent, scale.brief, scale.minute)
    for words in (*numbers, number, plain, rounded, shown, span, counted):
        environment.filters[words.__name__] = words
    return environment


def _written(value: Any) -> Any:
    """Floats are coordinates with one decimal; text has no control characters. Markup stays."""
    if isinstance(value, float):
        return f"{round(value, 1) + 0.0:g}"
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return NARROW.join(map(printable, value.split(NARROW)))
    return value


# ---- geometry


def _columns(figure: Figure) -> Iterator[tuple[float, str]]:
    """Ticks, with a label where it does not lie on the one before."""
    taken = 0.0
    for place, label in figure.ticks:
        x, half = figure.x(place), len(label) * _CHARACTER / 2
        fits = _TICK_ROOM <= x <= figure.width - _TICK_ROOM and x - half >= taken
        yield x, label if fits else ""
        taken = x + half + _TICK_SPACE if fits else taken


def _lines(figure: Figure) -> Iterator[tuple[str, str, str]]:
    """Style, path and name of each line; single points are dots."""
    for curve in figure.curves:
        stretches = figure.stretches(curve.readings)
        dots = "".join(f"{line(points)}h0" for points in stretches if len(points) == 1)
        lines = "".join(line(points) for points in stretches if len(points) > 1)
        for style, path in (("line", lines), ("line dot", dots)):
            if path:
                point = " point" if figure.points and path is dots else ""
                yield f"{style}{point} {curve.style}", path, curve.name


def _labels(figure: Figure) -> Iterator[tuple[str, str, Point, float]]:
    """Name, style, end of the curve, and height of the label; none over another."""
    ends: list[tuple[Point, Curve]] = []
    for curve in figure.curves:
        readings = [(place, value) for place, value in curve.readings if value is not None]
        if readings:
            place, value = readings[-1]
            x = figure.x(place) if figure.points else figure.right
            ends.append(((x, figure.y(value)), curve))
    ends.sort(key=lambda label: label[0][1])
    for (end, curve), height in zip(ends, apart([y for (_x, y), _curve in ends])):
        long = len(curve.name) > _LONGEST_LABEL
        name = f"{curve.name[: _LONGEST_LABEL - 2]}…" if long else curve.name
        yield name, curve.style, end, height


def apart(places: Sequence[float]) -> list[float]:
    """Heights of labels near their ``places``, ascending: `SPACING` apart, within the plot."""
    down: list[float] = []
    for place in places:
        down.append(max(place, down[-1] + SPACING if down else TOP))
    up: list[float] = []
    for place in reversed(down):
        up.append(min(place, up[-1] - SPACING if up else FLOOR - 4))
    return up[::-1]


def line(points: Sequence[Point]) -> str:
    """Path through points, in relative steps; each begins where the last one was drawn."""
    corners = [(round(10 * x), round(10 * y)) for x, y in points]
    steps = [
        f"l{(x - last_x) / 10:g}{' ' if y >= last_y else ''}{(y - last_y) / 10:g}"
        for (last_x, last_y), (x, y) in zip(corners, corners[1:])
    ]
    return f"M{corners[0][0] / 10:g} {corners[0][1] / 10:g}{''.join(steps)}"
