"""Paths of a figure: as many points as pixels can show, with gaps left open and peaks kept.

A figure gets values by pixel column. A line runs through the mean of each column, and a band behind it from the least to the
greatest value, so that a short peak stays visible. Points on a straight line are left out ("swinging door",
as historians of process data do): no point that is left out lies more than `TOLERANCE` from what is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import Optional

TOLERANCE = 0.35
"""Greatest vertical distance, in units of the figure (about a pixel), of a point that is left out."""

Point = tuple[float, float]


def runs(points: Iterable[tuple[float, Optional[float]]], breaks: Iterable[float] = ()) -> list[list[Point]]:
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
