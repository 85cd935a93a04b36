"""Figures: the groups' errors and cores over time, as ``shares_Error.log`` has them.

Every line can be told from the others without colour: each group has a line style and a marker of
its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

from sharectl.model import GroupError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = ("svg", "png")
INCHES = (9.0, 6.5)
DOTS_PER_INCH = 120
MINUTE_SECONDS = 60
# Colours of Okabe and Ito, which differ in lightness too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00")
MARKERS = ("o", "s", "^", "D", "v", "X", "P")
LINES = ("-", "--", "-.", ":")
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: it can be searched, and read aloud
    "svg.hashsalt": "sharectl",  # the same rows give the same file
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "text.parse_math": False,  # a $ in a name is a dollar sign
    "font.size": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
}
PANELS: tuple[tuple[str, str, Callable[[GroupError], float]], ...] = (
    # name in the ids of its lines, label of its axis, what it shows
    ("error", "error, HS06\n(above 0: over its share)", lambda error: error.error_hs06),
    ("cores", "cores held", lambda error: error.usage.cores),
)


def errors_and_cores(
    rows: Iterable[tuple[int, GroupError]], marks: Mapping[int, str], kind: str
) -> bytes:
    """SVG or PNG file of two panels over a common time axis: each group's error in HS06, and the cores it holds.

    Parameters
    ----------
    rows
        Unix seconds of the look and one group's row of it, in any order.
    marks
        Unix seconds -> what happened then: a vertical line with that text.
    kind
        One of `FORMATS`.

    Raises
    ------
    ValueError
        If there is no row, or no such kind.
    """
    ordered = sorted(rows, key=lambda row: row[0])
    if not ordered:
        raise ValueError("no rows: there is nothing to draw")
    if kind not in FORMATS:
        raise ValueError(f"{kind!r} is none of {', '.join(FORMATS)}")
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=INCHES, layout="constrained")
        panels = figure.subplots(len(PANELS), 1, sharex=True)
        origin = ordered[0][0]
        for axes, (name, label, value) in zip(panels, PANELS):
            _draw_groups(
                axes,
                name,
                [(moment - origin, error.group, value(error)) for moment, error in ordered],
            )
            _draw_marks(axes, marks, origin)
            axes.set_ylabel(label)
            axes.margins(x=0.02)
        panels[0].axhline(0, color="black", linewidth=1, gid="zero")
        panels[1].set_ylim(bottom=0)
        panels[1].set_xlabel("minutes since the first look")
        figure.legend(
            *panels[0].get_legend_handles_labels(),
            loc="outside upper center",
            ncols=8,
            handlelength=4,
        )
        for moment, text in marks.items():
            panels[0].annotate(
                text,
                ((moment - origin) / MINUTE_SECONDS, 1.0),
                xycoords=("data", "axes fraction"),
                xytext=(3, 3),
                textcoords="offset points",
            )
        return _saved(figure, kind)


def _draw_groups(axes: Axes, panel: str, points: Sequence[tuple[int, str, float]]) -> None:
    for number, group in enumerate(dict.fromkeys(group for _seconds, group, _value in points)):
        own = [(seconds / MINUTE_SECONDS, value) for seconds, of, value in points if of == group]
        axes.plot(
            [minutes for minutes, _value in own],
            [value for _minutes, value in own],
            label=group,
            gid=f"{panel}-{group}",
            color=COLOURS[number % len(COLOURS)],
            # Four lines and seven markers: 28 groups until a pair comes again.
            linestyle=LINES[number % len(LINES)],
            marker=MARKERS[number % len(MARKERS)],
            markersize=5,
        )


def _draw_marks(axes: Axes, marks: Mapping[int, str], origin: int) -> None:
    for moment in marks:
        axes.axvline(
            (moment - origin) / MINUTE_SECONDS, color="black", linestyle=(0, (1, 2)), linewidth=1
        )


def _saved(figure: Any, kind: str) -> bytes:
    out = BytesIO()
    metadata = {"Date": None} if kind == "svg" else {}
    figure.savefig(out, format=kind, dpi=DOTS_PER_INCH, metadata=metadata)
    return out.getvalue()
