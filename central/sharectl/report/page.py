"""The page of ``sharectl report``: one HTML document that stands alone, and its numbers.

It runs no script and loads nothing; its Content-Security-Policy forbids both.
"""

from __future__ import annotations

from base64 import b64encode
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from typing import Any, NamedTuple, Optional, Union

from sharectl.ledger.series import HOUR_SECONDS, GroupPoint, Series
from sharectl.model import JobWaits, WaitTimes
from sharectl.plan.records import CycleRecord
from sharectl.report.page_figures import (
    drawings,
    group_kinds,
    overview_kinds,
    pool_kinds,
    side_by_side,
    top_groups,
)
from sharectl.report.scale import (
    DAY_SECONDS,
    grouped,
    minute,
    short,
    signed,
    significant,
    time_ticks,
)
from sharectl.report.series import (
    GroupSummary,
    PeriodSummary,
    group_summary,
    layers_of,
    multicore_only,
    sizes_known,
    summarized,
)
from sharectl.report.svg import GROUPS, PLOT_WIDTH, render, style_sheet
from sharectl.times import span
from sharectl.words import counted

GENERATOR = "sharectl report"
"""Mark near the begin of every page."""
POINTS = 4 * PLOT_WIDTH
"""Points to ask the ledger for: several to a pixel column, whose band shows what a mean hides."""
UNKNOWN = "unknown"
_MINUTES_UP_TO_SECONDS = 2 * DAY_SECONDS
_ROWS = 16
"""Most rows of the numbers behind a group's figures."""
_BAR_FULL = 1.5
"""Ratio that fills a bar."""


@dataclass(frozen=True)
class Subject:
    """Facts about a report besides the series."""

    pool: str
    """Name of the pool; empty if it has none."""
    made_at: int
    """Unix seconds."""
    deadband_hs06: float = 0.0
    """Of the configuration as it is now."""
    problems: Sequence[str] = ()
    """Limits of the ledger, for the reader."""
    spans: Sequence[tuple[int, int]] = ()
    """Begin and end, Unix seconds, of each period; buckets may reach further."""
    last: Optional[CycleRecord] = None
    """The last complete cycle of the later period; None if there is none."""


class Bar(NamedTuple):
    """A cell with a bar."""

    bar: float
    text: str


@dataclass(frozen=True)
class HtmlTable:
    """A table of the page."""

    kind: str
    """Its classes."""
    caption: str
    columns: Sequence[tuple[str, str]]
    """Name and unit of each."""
    rows: Sequence[tuple[str, Sequence[Union[str, Bar]]]]
    """Name of the row, and its other cells."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Name of a row -> identifier of its section."""
    over: Sequence[str] = ()
    """Headings over equally many columns each, which then show their units only."""


def report(periods: Sequence[Series], subject: Subject) -> str:
    """The page of one period, or of two side by side, the earlier one first."""
    periods = sorted(periods, key=lambda series: series.since)
    summaries = _summaries(periods, subject)
    names = ["A", "B"] if len(periods) > 1 else [""]
    long_names = [f"period {name}" if name else "" for name in names]
    groups = [group.group for period in reversed(summaries) for group in period.groups]
    anchors = {group: f"g{n}" for n, group in enumerate(dict.fromkeys(groups), start=1)}
    tops = top_groups([group.group for group in summaries[-1].groups])
    shown = tops[:GROUPS]
    layers, in_cores = layers_of(periods), sizes_known(periods)
    style = style_sheet()
    deadband = f"{grouped(subject.deadband_hs06)} HS06"
    return render(
        "page.html",
        generator=GENERATOR,
        digest=b64encode(sha256(style.encode()).digest()).decode(),
        begin=f"Shares{f' of {subject.pool}' if subject.pool else ''}, ",
        periods=[_period(period, name, anchors) for period, name in zip(summaries, names)],
        facts=_facts(summaries[0]) if len(summaries) == 1 else (),
        problems=subject.problems,
        all_groups=[side_by_side(kind, periods, names) for kind in overview_kinds(shown)]
        if shown
        else (),
        left_out=f"The {len(shown)} of {counted(len(tops), 'group')} with the largest pledges."
        if len(tops) > len(shown)
        else "",
        why_empty=_why_empty(summaries),
        differences=_differences(*summaries) if len(summaries) > 1 and anchors else (),
        waits=_waits(subject.last) if subject.last and subject.last.waits else None,
        multicore_only=_multicore_words(subject.last),
        pool=[
            drawing
            for kind in pool_kinds(tuple(anchors))
            for drawing in drawings(kind, periods, "pool", "The pool", long_names)
        ]
        if any(series.buckets for series in periods)
        else (),
        groups=[
            {
                "name": group,
                "anchor": anchor,
                "figures": [
                    drawing
                    for kind in group_kinds(group, layers, subject.deadband_hs06, in_cores=in_cores)
                    for drawing in drawings(kind, periods, anchor, group, long_names)
                ],
                "tables": [
                    numbers(series, group, name)
                    for series, name in zip(periods, long_names)
                    if series.buckets
                ],
            }
            for group, anchor in anchors.items()
        ],
        interval=span(summaries[-1].bucket_seconds),
        deadband=f" by more than the deadband as it is configured now, {deadband}"
        if subject.deadband_hs06
        else "",
        made_at=minute(subject.made_at),
    )


def _period(period: PeriodSummary, name: str, anchors: Mapping[str, str]) -> dict[str, Any]:
    return {
        "label": f"Period {name}" if name else "",
        "span": _moments(period),
        "minutes": (minute(period.since), f"{minute(period.until)} UTC"),
        "length": span(period.until - period.since),
        "summary": _summary(period, anchors) if period.groups else None,
        "why_empty": _why_empty([period]),
    }


def as_content(periods: Sequence[Series], subject: Subject) -> dict[str, Any]:
    """Numbers of the page, the earlier period first; waits are of the last complete cycle.

    Keys: made_at, deadband_hs06, waits_taken_at, waits, multicore_only (null if there are no such
    nodes), periods with their pool and groups.
    """
    last = subject.last
    alone = multicore_only(last.nodes) if last else None
    return {
        "made_at": subject.made_at,
        "deadband_hs06": subject.deadband_hs06,
        "waits_taken_at": last.taken_at if last else None,
        "waits": [asdict(waits) for waits in last.waits] if last else [],
        "multicore_only": alone,
        "periods": [
            period.content()
            for period in _summaries(sorted(periods, key=lambda series: series.since), subject)
        ],
    }


def _summaries(periods: Sequence[Series], subject: Subject) -> list[PeriodSummary]:
    """Summaries with the ends that were asked for: buckets may begin earlier and end later."""
    summaries = [summarized(series, subject.deadband_hs06) for series in periods]
    spans = sorted(subject.spans) or [(period.since, period.until) for period in summaries]
    return [
        replace(period, since=since, until=until)
        for period, (since, until) in zip(summaries, spans)
    ]


def _moments(period: PeriodSummary) -> tuple[str, str]:
    """Begin and end: days, or minutes where there are few days between them."""
    length = 10 if period.until - period.since >= _MINUTES_UP_TO_SECONDS else None
    return minute(period.since)[:length], minute(period.until)[:length]


def _why_empty(summaries: Sequence[PeriodSummary]) -> str:
    cycles = sum(period.pool.cycles for period in summaries)
    if cycles:
        return (
            f"{counted(cycles, 'cycle')} ran, none of them complete: nothing is known of what the "
            "groups used."
        )
    return (
        "The ledger has no cycle in this period: check --from and --to, and whether `sharectl "
        "cycle` runs."
    )


def _facts(period: PeriodSummary) -> list[tuple[str, str]]:
    pool, seconds = period.pool, max(1, period.until - period.since)
    return [
        ("Cycles", grouped(pool.cycles)),
        ("Incomplete", grouped(pool.cycles - pool.complete_cycles)),
        ("Time recorded", f"{min(1.0, pool.covered_seconds / seconds):.1%}"),
        ("Idle cores", short(pool.idle_cores)),
        ("Idle core-hours", short(pool.idle_core_hours)),
        ("Idle under targets", short(pool.idle_target_cores)),
        ("Idle in grace", short(pool.idle_grace_cores)),
        ("Nodes under targets", short(pool.targets)),
        ("Cycle takes", UNKNOWN if pool.cycle_seconds is None else f"{pool.cycle_seconds:.1f} s"),
    ]


def _multicore_words(last: Optional[CycleRecord]) -> str:
    alone = multicore_only(last.nodes) if last else None
    if last is None or alone is None:
        return ""
    return (
        f"At the last complete cycle, {minute(last.taken_at)} UTC, "
        f"{counted(alone['nodes'], 'node')} took multicore jobs alone (t1_MulticoreOnly), with "
        f"{counted(alone['cores'], 'core')}: {alone['multi_cores']} held by multicore jobs, "
        f"{alone['single_cores']} by single-core jobs, {alone['idle_cores']} idle."
    )


def _summary(period: PeriodSummary, anchors: Mapping[str, str]) -> HtmlTable:
    columns = (
        ("Group", ""),
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
        (
            group.group,
            (
                short(group.pledge_hs06),
                significant(group.work_hs06_hours),
                _ratio(group),
                signed(group.error_hs06),
                UNKNOWN if group.error_ratio is None else _percent(group.error_ratio, "+"),
                short(group.error_rms_hs06),
                f"{group.over_ratio:.0%}",
                f"{group.under_ratio:.0%}",
                short(group.pending_jobs),
                short(group.unplaceable_jobs),
            ),
        )
        for group in period.groups
    ]
    caption = "Largest pledges first. The mark on a bar is 100 %."
    return HtmlTable("cards summary", caption, columns, rows, links=anchors)


def _ratio(group: GroupSummary) -> Union[str, Bar]:
    ratio = group.work_ratio
    if ratio is None:
        return "no pledge"
    return Bar(min(_BAR_FULL, max(0.0, ratio)), f"{ratio:.1%}")


def _percent(ratio: float, sign: str = "-") -> str:
    return f"{ratio:{sign}.1%}".replace("-", "\u2212")


def _waits(last: CycleRecord) -> HtmlTable:
    """Waiting times by group and size, the longest of pending jobs first."""
    times = [("Longest", "Median", "Jobs"), ("pending", "pending", "looked at")]
    columns = [*zip(*times), *zip(times[0], ("started", "started", "looked at"))]

    def longest(waits: JobWaits) -> int:
        return -waits.pending.longest_seconds if waits.pending else 1

    rows = [
        (
            f"{waits.group}, {counted(waits.cores, 'core')}",
            (*_times(waits.pending), *_times(waits.started)),
        )
        for waits in sorted(last.waits, key=longest)
    ]
    caption = f"At the last complete cycle, {minute(last.taken_at)} UTC"
    return HtmlTable("cards waits", caption, [("Jobs", ""), *columns], rows)


def _times(times: Optional[WaitTimes]) -> tuple[str, str, str]:
    if times is None:
        return UNKNOWN, UNKNOWN, "-"
    least, more = ("at least ", " of more") if times.sampled else ("", "")
    return (
        f"{least}{span(times.longest_seconds)}",
        span(times.median_seconds),
        f"{times.jobs}{more}",
    )


def numbers(series: Series, group: str, name: str) -> HtmlTable:
    """Numbers of a group's figures in about a dozen rows, to be read aloud or copied."""
    columns = (
        ("From", "UTC"),
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
    ticks = [tick.value for tick in time_ticks(series.since, series.until, _ROWS)]
    starts = [*dict.fromkeys([series.since, *(tick for tick in ticks if tick < series.until)])]
    parts: list[list[GroupPoint]] = [[] for _ in starts]
    for bucket in series.buckets:
        if group in bucket.groups:
            parts[bisect_right(starts, bucket.start) - 1].append(bucket.groups[group])
    rows = [
        (minute(start), _numbers(group, points) if points else [UNKNOWN] * (len(columns) - 1))
        for start, points in zip(starts, parts)
    ]
    whose = f"{group}{f', {name}' if name else ''}"
    caption = f"Numbers of {whose}: sums and means from each time (UTC) to the next"
    return HtmlTable("numbers", caption, columns, rows)


def _numbers(group: str, points: Sequence[GroupPoint]) -> list[str]:
    summary = group_summary(group, points)
    return [
        significant(summary.work_hs06_hours),
        significant(summary.pledge_hs06_hours),
        short(summary.running_cores),
        short(summary.pending_jobs),
        signed(summary.error_hs06),
        short(summary.error_rms_hs06),
        signed(summary.output_hs06),
        short(summary.held_back_nodes),
        short(summary.helped_nodes),
    ]


def _differences(before: PeriodSummary, after: PeriodSummary) -> list[HtmlTable]:
    """The groups, then the pool, each with both periods and the difference."""
    compared = ("Work by pledge", "Mean error, HS06", "RMS error, HS06")
    sides = ("A", "B", "difference")
    groups = dict.fromkeys(group.group for period in (after, before) for group in period.groups)
    return [
        HtmlTable(
            "cards differences",
            "The groups",
            [("Group", ""), *((quantity, side) for quantity in compared for side in sides)],
            [(group, _compared(before.of(group), after.of(group))) for group in groups],
            over=compared,
        ),
        HtmlTable(
            "cards differences",
            "The pool",
            [("Quantity", ""), ("A", ""), ("B", ""), ("Difference", "")],
            [
                (words, (short(first), short(second), signed(_less(second, first))))
                for (words, first), (_words, second) in zip(
                    _compared_pool(before), _compared_pool(after)
                )
            ],
        ),
    ]


def _compared(before: Optional[GroupSummary], after: Optional[GroupSummary]) -> list[str]:
    ratios = [group.work_ratio if group else None for group in (before, after)]
    errors = [group.error_hs06 if group else None for group in (before, after)]
    roots = [group.error_rms_hs06 if group else None for group in (before, after)]
    points = _less(ratios[1], ratios[0])
    return [
        *(UNKNOWN if ratio is None else _percent(ratio) for ratio in ratios),
        UNKNOWN if points is None else f"{signed(100 * points, 1)} points",
        *map(signed, errors),
        signed(_less(errors[1], errors[0])),
        *map(short, roots),
        signed(_less(roots[1], roots[0])),
    ]


def _less(value: Optional[float], other: Optional[float]) -> Optional[float]:
    return None if value is None or other is None else value - other


def _compared_pool(period: PeriodSummary) -> list[tuple[str, Optional[float]]]:
    pool = period.pool
    return [
        ("Mean idle cores", pool.idle_cores),
        ("Idle core-hours in the recorded time", pool.idle_core_hours),
        ("Mean idle cores under targets", pool.idle_target_cores),
        ("Mean idle cores in grace", pool.idle_grace_cores),
        ("Mean nodes under targets", pool.targets),
        ("Cycles", pool.cycles),
        ("Incomplete cycles", pool.cycles - pool.complete_cycles),
        ("Recorded time, hours", pool.covered_seconds / HOUR_SECONDS),
        ("Mean duration of a cycle, seconds", pool.cycle_seconds),
    ]
