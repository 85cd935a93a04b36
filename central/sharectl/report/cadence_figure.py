"""The saw-tooth: loading factor over run time, in seconds for some intervals and in cycles for any.

Lines are told apart by style and marker, not by colour alone; the text chart needs no colour at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from math import floor
from typing import Any

from sharectl.core.cadence import loading_factor
from sharectl.core.cadence_knobs import Option
from sharectl.report.figures import COLOURS, DOTS_PER_INCH, FORMATS, INCHES, LINES, MARKERS, STYLE

MOST_TEETH = 200
_CYCLES = 8
_BLOCKS = " ▁▂▃▄▅▆▇█"


def sawteeth(interval_seconds: float, longest_seconds: float) -> list[tuple[float, float]]:
    """Corners of the saw-tooth: run time in seconds, loading factor; straight lines lie between them.

    Parameters
    ----------
    longest_seconds
        Run time that the line ends at, or after `MOST_TEETH` teeth.
    """
    corners = [(0.0, 0.0)]
    for tooth in range(1, MOST_TEETH + 1):
        end = min(tooth * interval_seconds, longest_seconds)
        corners.append((end, end / (tooth * interval_seconds)))
        if end == longest_seconds:
            break
        # Just past the beginning of a cycle a job holds its slot until the next.
        corners.append((end, tooth / (tooth + 1)))
    return corners


def figure(intervals: Sequence[float], kind: str) -> bytes:
    """SVG or PNG file of the two saw-tooth plots.

    Parameters
    ----------
    intervals
        Seconds, at least one.
    kind
        One of `figures.FORMATS`.

    Raises
    ------
    ValueError
        If there is no such kind.
    """
    if kind not in FORMATS:
        raise ValueError(f"{kind!r} is none of {', '.join(FORMATS)}")
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        drawn = Figure(figsize=INCHES, layout="constrained")
        above, below = drawn.subplots(2, 1)
        longest = 4 * max(intervals)
        for number, interval in enumerate(intervals):
            _draw(above, number, sawteeth(interval, longest), f"interval {interval:g} s")
        above.set_xlabel("run time, s")
        _draw(below, 0, sawteeth(1.0, _CYCLES), "any interval")
        floors = [(cycles, floor(cycles) / (floor(cycles) + 1)) for cycles in range(_CYCLES + 1)]
        _draw(below, 1, floors, "just past a cycle: n / (n + 1)")
        below.set_xlabel("run time, cycles")
        for axes in (above, below):
            axes.set_ylabel("loading factor")
            axes.set_ylim(0, 1.03)
            axes.margins(x=0.01)
            axes.legend(loc="lower right", handlelength=4)
        out = BytesIO()
        metadata = {"Date": None} if kind == "svg" else {}
        drawn.savefig(out, format=kind, dpi=DOTS_PER_INCH, metadata=metadata)
    return out.getvalue()


def _draw(axes: Any, number: int, points: Sequence[tuple[float, float]], label: str) -> None:
    axes.plot(
        [x for x, _ in points],
        [y for _, y in points],
        label=label,
        gid=label,
        color=COLOURS[number % len(COLOURS)],
        linestyle=LINES[number % len(LINES)],
        marker=MARKERS[number % len(MARKERS)],
        markersize=4,
        # A marker at the tip of each tooth only.
        markevery=(1, 2),
    )


def chart(interval_seconds: float, cycles: float, unit: str, *, blocks: bool, columns: int = 64) -> str:
    """The saw-tooth as text, a column of characters for each run time.

    Parameters
    ----------
    interval_seconds
        1.0 for a chart in cycles.
    cycles
        What the chart ends at.
    unit
        Of the run time.
    blocks
        Whether the output can show block elements; ``#`` if not.
    """
    rows = 10
    step = cycles * interval_seconds / columns
    heights = [rows * loading_factor((column + 1) * step, interval_seconds) for column in range(columns)]
    lines = [f"loading factor over run time, {unit}"]
    for row in range(rows - 1, -1, -1):
        label = f"{(row + 1) / rows:4.1f}" if row % 2 else "    "
        lines.append(
            f"{label} |" + "".join(_cell(height - row, blocks=blocks) for height in heights).rstrip()
        )
    ticks = "".join(f"{tick * cycles / 4 * interval_seconds:>{columns // 4}g}" for tick in range(1, 5))
    return "\n".join([*lines, "     +" + "-" * columns, f"    0 {ticks}"])


def bars(offered: Sequence[Option], basis: str, *, blocks: bool, columns: int = 50) -> str:
    """The loading factor at each interval as text, a bar for each.

    Parameters
    ----------
    basis
        What the factors are of.
    blocks
        Whether the output can show block elements; ``#`` if not.
    """
    lines = [f"loading factor at each interval, {basis}"]
    for option in offered:
        whole, rest = divmod(option.loading * columns, 1)
        bar = ("█" if blocks else "#") * int(whole) + _cell(rest, blocks=blocks)
        mark = "" if option.late_seconds is None else f"  cannot be kept: {option.late_seconds:g} s"
        lines.append(f"{option.interval_seconds:>6g} s |{bar:<{columns + 1}}{option.loading:6.1%}{mark}")
    return "\n".join(lines)


def _cell(filled: float, *, blocks: bool) -> str:
    """One character, of which the fraction ``filled`` is full (from 0 to 1)."""
    if not blocks:
        return "#" if filled >= 0.5 else " "  # noqa: PLR2004 - half
    return _BLOCKS[max(0, min(8, round(8 * filled)))]
