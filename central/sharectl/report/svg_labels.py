"""Labels at the right ends of curves, moved apart where they would lie on each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import fsum

from sharectl.report.svg import Markup, coordinate, element

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
            yield element("rect", class_=f"swatch {label.style}", x=x + 8, y=y - 5, width=10.0, height=10.0)
        else:
            path = (
                f"M{coordinate(x + 2)} {coordinate(label.y)}L{coordinate(x + 5)} {coordinate(y)}h{_SAMPLE:g}"
            )
            yield element("path", class_=f"line sample {label.style}", d=path)
        text = label.text if len(label.text) <= _LONGEST else f"{label.text[: _LONGEST - 2]}…"
        yield element("text", text, class_="label", x=x + 22, y=y + 4)


def apart(wanted: Sequence[float], top: float, floor: float, spacing: float = SPACING) -> list[float]:
    """Places near those that are wanted, ascending, at least ``spacing`` apart and within the limits where there is room.

    Labels that would overlap become a block around the mean of what they want (the pooling of isotonic regression): the sum
    of the squares of what they are moved is then the least.
    """
    blocks: list[list[float]] = []
    for number, place in enumerate(wanted):
        blocks.append([place - number * spacing])
        while len(blocks) > 1 and _mean(blocks[-2]) > _mean(blocks[-1]):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    flat = [_mean(block) for block in blocks for _place in block]
    last = floor - (len(wanted) - 1) * spacing
    return [max(top, min(place, max(top, last))) + number * spacing for number, place in enumerate(flat)]


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)
