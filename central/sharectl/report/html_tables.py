"""Tables of the page: summary by group, numbers behind the figures, and what two periods differ in."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from math import fsum
from typing import Optional

from sharectl.core import time_words
from sharectl.core.ledger_series import HOUR_SECONDS, GroupPoint, Series
from sharectl.core.model import JobWaits, WaitTimes
from sharectl.report.html_summary import GroupSummary, PeriodSummary, mean_of_known
from sharectl.report.svg import Markup, element, joined
from sharectl.report.svg_figure import told
from sharectl.report.svg_scale import grouped, short, significant, time_ticks
from sharectl.report.words import counted

UNKNOWN = "unknown"
_COMPARED = ("Work by pledge", "Mean error, HS06", "RMS error, HS06")
_ROWS = 16
"""Most rows of the numbers behind a group's figures."""
_NUMBERS = 9
"""Columns of them, besides the time."""
_BAR_WIDTH, _BAR_FULL = 92.0, 1.5
"""Of a ratio's bar, and the ratio that fills it."""


def summary(period: PeriodSummary, anchors: dict[str, str]) -> Markup:
    """A row for each group.

    Parameters
    ----------
    anchors
        Group -> identifier of its section.
    """
    columns = (
        ("Pledge", "HS06"),
        ("Work", "HS06-hours"),
        ("Work by pledge", ""),
        ("Mean error", "HS06"),
        ("Mean error", "of the share"),
        ("RMS error", "HS06"),
        ("Time over", ""),
        ("Time under", ""),
        ("Mean pending", "jobs"),
        ("No node could run", "mean, jobs"),
    )
    rows = [
        _row(
            element("a", group.group, href=f"#{anchors[group.group]}"),
            columns,
            (
                short(group.pledge_hs06),
                significant(group.work_hs06_hours),
                _ratio(group),
                signed(group.error_hs06),
                UNKNOWN
                if group.error_ratio is None
                else f"{100 * group.error_ratio:+.1f}%".replace("-", "\u2212"),
                short(group.error_rms_hs06),
                f"{group.over_ratio:.0%}",
                f"{group.under_ratio:.0%}",
                short(group.pending_jobs),
                UNKNOWN if group.unplaceable_jobs is None else short(group.unplaceable_jobs),
            ),
        )
        for group in period.groups
    ]
    return _table(
        "cards summary", "Largest pledges first. The mark on a bar is 100 %.", ("Group", ""), columns, rows
    )


def waits(found: Sequence[JobWaits], when: str) -> Markup:
    """How long jobs of each group and size wait, those first of which one waits longest."""
    columns = (
        ("Longest", "pending"),
        ("Median", "pending"),
        ("Jobs", "looked at"),
        ("Longest", "started"),
        ("Median", "started"),
        ("Jobs", "looked at"),
    )
    ordered = sorted(found, key=lambda each: -each.pending.longest_seconds if each.pending else 1)
    rows = [
        _row(
            element("span", f"{each.group}, {counted(each.cores, 'core')}"),
            columns,
            (*_times(each.pending), *_times(each.started)),
        )
        for each in ordered
    ]
    return _table("cards waits", f"At the last complete cycle, {when} UTC", ("Jobs", ""), columns, rows)


def _times(times: Optional[WaitTimes]) -> tuple[str, str, str]:
    if times is None:
        return UNKNOWN, UNKNOWN, "-"
    least = "at least " if times.sampled else ""
    return (
        f"{least}{time_words.span(times.longest_seconds)}",
        time_words.span(times.median_seconds),
        f"{times.jobs}{' of more' if times.sampled else ''}",
    )


def numbers(series: Series, group: str, name: str) -> Markup:
    """What a group's figures show, as about a dozen rows; for who does not see them, or wants to copy them."""
    columns = (
        ("Work", "HS06-hours"),
        ("Pledge", "HS06-hours"),
        ("Running", "cores"),
        ("Pending", "jobs"),
        ("Mean error", "HS06"),
        ("RMS error", "HS06"),
        ("Mean output", "HS06"),
        ("Held back", "nodes"),
        ("Helped", "nodes"),
    )
    starts = [float(series.since), *(tick.value for tick in time_ticks(series.since, series.until, _ROWS))]
    parts: dict[float, list[GroupPoint]] = {start: [] for start in starts if start < series.until}
    ordered = list(parts)
    for bucket in series.buckets:
        if group in bucket.groups:
            parts[ordered[bisect_right(ordered, bucket.start) - 1]].append(bucket.groups[group])
    rows = [_row(element("span", told(start)), columns, _numbers(points)) for start, points in parts.items()]
    caption = (
        f"Numbers of {group}{f', {name}' if name else ''}: sums and means from each time (UTC) to the next"
    )
    return _table("numbers", caption, ("From", "UTC"), columns, rows)


def differences(before: PeriodSummary, after: PeriodSummary, names: Sequence[str]) -> list[Markup]:
    """Two tables: the groups, then the pool, each with both periods and the difference."""
    groups = [group.group for group in after.groups]
    groups += [group.group for group in before.groups if group.group not in groups]
    columns = tuple((what, which) for what in _COMPARED for which in (*names, "difference"))
    rows = [
        _row(element("span", group), columns, _compared(before.of(group), after.of(group)))
        for group in groups
    ]
    pool = _table(
        "cards differences",
        "The pool",
        ("Quantity", ""),
        ((names[0], ""), (names[1], ""), ("Difference", "")),
        [_pool_row(words, first, second, names) for words, first, second in _pool_pairs(before, after)],
    )
    of_groups = _table("cards differences", "The groups", ("Group", ""), columns, rows, over=_COMPARED)
    return [of_groups, pool]


def signed(value: float, decimals: Optional[int] = None) -> str:
    """A number with its sign, also where that is plus; without ``decimals`` as many as `short` gives it."""
    text = short(value) if decimals is None else grouped(value, decimals)
    return f"+{text}" if value > 0 and text.strip("0.") else text


def _compared(before: Optional[GroupSummary], after: Optional[GroupSummary]) -> list[str]:
    ratios = [group.work_ratio if group else None for group in (before, after)]
    cells = [*(UNKNOWN if ratio is None else f"{ratio:.1%}" for ratio in ratios)]
    cells.append(
        UNKNOWN
        if ratios[0] is None or ratios[1] is None
        else f"{signed(100 * (ratios[1] - ratios[0]), 1)} points"
    )
    errors = [group.error_hs06 if group else None for group in (before, after)]
    roots = [group.error_rms_hs06 if group else None for group in (before, after)]
    for (first, second), form in ((errors, signed), (roots, short)):
        cells += [UNKNOWN if value is None else form(value) for value in (first, second)]
        cells.append(UNKNOWN if first is None or second is None else signed(second - first))
    return cells


def _pool_pairs(
    before: PeriodSummary, after: PeriodSummary
) -> list[tuple[str, Optional[float], Optional[float]]]:
    first, second = before.pool, after.pool
    return [
        ("Mean idle cores", first.idle_cores, second.idle_cores),
        ("Idle core-hours in the recorded time", first.idle_core_hours, second.idle_core_hours),
        ("Mean idle cores under targets", first.idle_target_cores, second.idle_target_cores),
        ("Mean idle cores in grace", first.idle_grace_cores, second.idle_grace_cores),
        ("Mean nodes under targets", first.targets, second.targets),
        ("Cycles", first.cycles, second.cycles),
        ("Incomplete cycles", first.cycles - first.complete_cycles, second.cycles - second.complete_cycles),
        ("Recorded time, hours", first.covered_seconds / HOUR_SECONDS, second.covered_seconds / HOUR_SECONDS),
        ("Mean duration of a cycle, seconds", first.cycle_seconds, second.cycle_seconds),
    ]


def _pool_row(words: str, first: Optional[float], second: Optional[float], names: Sequence[str]) -> Markup:
    cells = [UNKNOWN if value is None else short(value) for value in (first, second)]
    cells.append(
        UNKNOWN
        if first is None or second is None
        else f"{'+' if second > first else ''}{short(second - first)}"
    )
    return _row(element("span", words), ((names[0], ""), (names[1], ""), ("Difference", "")), cells)


def _numbers(points: Sequence[GroupPoint]) -> list[str]:
    cycles = sum(point.cycles for point in points)
    if not cycles:
        return [UNKNOWN] * _NUMBERS

    def mean(values: Sequence[float]) -> float:
        return fsum(value * point.cycles for value, point in zip(values, points)) / cycles

    output = mean_of_known((point.output_hs06, point.cycles) for point in points)
    held_back = mean_of_known((point.held_back_nodes, point.cycles) for point in points)
    helped = mean_of_known((point.helped_nodes, point.cycles) for point in points)
    return [
        significant(fsum(point.work_hs06_seconds for point in points) / HOUR_SECONDS),
        significant(fsum(point.pledge_hs06_seconds for point in points) / HOUR_SECONDS),
        short(mean([fsum(point.cores_by_size.values()) for point in points])),
        short(mean([fsum(point.pending_by_size.values()) for point in points])),
        signed(mean([point.error_hs06 for point in points])),
        short(mean([point.error_rms_hs06**2 for point in points]) ** 0.5),
        UNKNOWN if output is None else signed(output),
        *(UNKNOWN if nodes is None else short(nodes) for nodes in (held_back, helped)),
    ]


def _ratio(group: GroupSummary) -> Markup:
    """The ratio as a number and as a bar with a mark at 100 %."""
    ratio = group.work_ratio
    if ratio is None:
        return element("span", "no pledge")
    unit = _BAR_WIDTH / _BAR_FULL
    bar = element(
        "svg",
        element("rect", class_="bar-ground", x=0, y=3, width=_BAR_WIDTH, height=6),
        element("rect", class_="bar", x=0, y=3, width=min(_BAR_WIDTH, max(0.0, ratio) * unit), height=6),
        element("path", class_="bar-mark", d=f"M{unit:.1f} 0v12"),
        viewBox=f"0 0 {_BAR_WIDTH:g} 12",
        aria_hidden="true",
    )
    return joined([bar, Markup(" "), element("span", f"{ratio:.1%}")])


def _table(
    kind: str,
    caption: str,
    first: tuple[str, str],
    columns: Sequence[tuple[str, str]],
    rows: Sequence[Markup],
    over: Sequence[str] = (),
) -> Markup:
    """A table.

    Parameters
    ----------
    over
        Headings over equally many columns each, whose names are then left to them.
    """
    lines = []
    if over:
        wide = [
            element("th", name, colspan=len(columns) // len(over), scope="colgroup", role="columnheader")
            for name in over
        ]
        lines.append(element("tr", element("td", role="cell"), joined(wide), role="row", class_="over"))
        columns = [(unit, "") for _name, unit in columns]
    head = [
        element("th", _heading(*column), scope="col", role="columnheader") for column in (first, *columns)
    ]
    lines.append(element("tr", joined(head), role="row"))
    return element(
        "table",
        element("caption", caption),
        element("thead", joined(lines), role="rowgroup"),
        element("tbody", joined(rows), role="rowgroup"),
        class_=kind,
        role="table",
    )


def _heading(name: str, unit: str) -> Markup:
    return joined([name, element("br"), element("small", unit)]) if unit else joined([name])


def _row(first: Markup, columns: Sequence[tuple[str, str]], cells: Sequence[str]) -> Markup:
    shown = [
        element("td", element("span", cell), role="cell", data_label=f"{name}, {unit}" if unit else name)
        for (name, unit), cell in zip(columns, cells)
    ]
    return element("tr", element("th", first, scope="row", role="rowheader"), joined(shown), role="row")
