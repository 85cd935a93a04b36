"""The demo's picture: error and cores of each group over time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from sharectl.model import GroupError
from sharectl.report.scale import ticks_up_to
from sharectl.report.svg import GROUPS, Curve, Figure, document, limits_of

MINUTE_SECONDS = 60
_PANELS: tuple[tuple[str, str, str, Callable[[GroupError], float]], ...] = (
    ("error", "HS06", " of error (above 0: over its share)", lambda error: error.error_hs06),
    ("cores", "cores", " held", lambda error: error.usage.cores),
)
"""Identifier, unit, note and value of each panel."""


def errors_and_cores(rows: Iterable[tuple[int, GroupError]], marks: Mapping[int, str]) -> str:
    """SVG file of two panels over the same minutes.

    Parameters
    ----------
    rows
        Unix seconds of a look and one group's row of it, at least one, in any order.
    marks
        Unix seconds -> event then: a vertical line with that text.
    """
    ordered = sorted(rows, key=lambda row: row[0])
    origin = ordered[0][0]
    minutes = max(1.0, (ordered[-1][0] - origin) / MINUTE_SECONDS)
    groups = list(dict.fromkeys(error.group for _moment, error in ordered))
    figures: list[Figure] = []
    for key, words, note, value in _PANELS:
        curves = [
            Curve(
                group,
                f"group{number % GROUPS}",
                [
                    ((moment - origin) / MINUTE_SECONDS, value(error))
                    for moment, error in ordered
                    if error.group == group
                ],
            )
            for number, group in enumerate(groups)
        ]
        limits = limits_of([curves])
        figures.append(
            Figure(
                key=key,
                title=f"{words}{note}",
                description=f"Of {', '.join(groups)}, over {minutes:.0f} minutes.",
                across=(0.0, minutes),
                ticks=ticks_up_to(minutes, 5),
                up=limits,
                unit=f"{words}{note}",
                curves=curves,
                marks=[
                    ((moment - origin) / MINUTE_SECONDS, "" if figures else text)
                    for moment, text in marks.items()
                ],
                across_words="minutes",
            )
        )
    return document(figures)
