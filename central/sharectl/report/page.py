"""The page of ``sharectl report``: what it is about, the summary, the pool, and a section for each group.

An HTML page that stands alone: style within it, nothing loaded, no script, and a policy that
forbids both.

Tables of the page: summary by group, numbers behind the figures, and what two periods differ in.
"""

from __future__ import annotations

from base64 import b64encode
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from math import fsum
from typing import Any, Optional

from sharectl import times as time_words
from sharectl.ledger.series import HOUR_SECONDS, GroupPoint, Series
from sharectl.model import JobWaits, WaitTimes
from sharectl.plan.records import CycleRecord
from sharectl.report import series as html_curves
from sharectl.report.page_figures import (
    Drawing,
    figures,
    group_kinds,
    overview_kinds,
    panel,
    pool_kinds,
)
from sharectl.report.series import (
    GroupSummary,
    PeriodSummary,
    mean_of_known,
    multicore_only,
    summarized,
)
from sharectl.report.style import LAYERS, patterns, style_sheet
from sharectl.report.svg import (
    PLOT_WIDTH,
    Markup,
    element,
    grouped,
    joined,
    short,
    significant,
    time_ticks,
    told,
)
from sharectl.words import counted

GENERATOR = "sharectl report"
"""What the page says that it was made by, near its begin."""


def page(title: str, *body: str) -> str:
    """A whole document.

    Its Content-Security-Policy lets in the one style sheet that is in it, by its hash, and nothing
    else: text that got past the escaping could neither run, nor load, nor restyle.
    """
    style = f"\n{style_sheet()}"
    digest = b64encode(sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name_="generator", content=GENERATOR),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name_="color-scheme", content="light dark"),
        element("meta", name_="referrer", content="no-referrer"),
        element("title", title),
        element("style", Markup(style)),
    )
    return (
        "<!DOCTYPE "
        f"html>\n{element('html', head, element('body', patterns(), joined(body)), lang='en')}\n"
    )


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
        "cards summary",
        "Largest pledges first. The mark on a bar is 100 %.",
        ("Group", ""),
        columns,
        rows,
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
    return _table(
        "cards waits", f"At the last complete cycle, {when} UTC", ("Jobs", ""), columns, rows
    )


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
    starts = [
        float(series.since),
        *(tick.value for tick in time_ticks(series.since, series.until, _ROWS)),
    ]
    parts: dict[float, list[GroupPoint]] = {start: [] for start in starts if start < series.until}
    ordered = list(parts)
    for bucket in series.buckets:
        if group in bucket.groups:
            parts[ordered[bisect_right(ordered, bucket.start) - 1]].append(bucket.groups[group])
    rows = [
        _row(element("span", told(start)), columns, _numbers(points))
        for start, points in parts.items()
    ]
    caption = (
        f"Numbers of {group}{f', {name}' if name else ''}: sums and means from each time (UTC) "
        "to the next"
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
        [
            _pool_row(words, first, second, names)
            for words, first, second in _pool_pairs(before, after)
        ],
    )
    of_groups = _table(
        "cards differences", "The groups", ("Group", ""), columns, rows, over=_COMPARED
    )
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
        (
            "Incomplete cycles",
            first.cycles - first.complete_cycles,
            second.cycles - second.complete_cycles,
        ),
        (
            "Recorded time, hours",
            first.covered_seconds / HOUR_SECONDS,
            second.covered_seconds / HOUR_SECONDS,
        ),
        ("Mean duration of a cycle, seconds", first.cycle_seconds, second.cycle_seconds),
    ]


def _pool_row(
    words: str, first: Optional[float], second: Optional[float], names: Sequence[str]
) -> Markup:
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
        element(
            "rect", class_="bar", x=0, y=3, width=min(_BAR_WIDTH, max(0.0, ratio) * unit), height=6
        ),
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
            element(
                "th", name, colspan=len(columns) // len(over), scope="colgroup", role="columnheader"
            )
            for name in over
        ]
        lines.append(
            element("tr", element("td", role="cell"), joined(wide), role="row", class_="over")
        )
        columns = [(unit, "") for _name, unit in columns]
    head = [
        element("th", _heading(*column), scope="col", role="columnheader")
        for column in (first, *columns)
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
        element(
            "td", element("span", cell), role="cell", data_label=f"{name}, {unit}" if unit else name
        )
        for (name, unit), cell in zip(columns, cells)
    ]
    return element(
        "tr", element("th", first, scope="row", role="rowheader"), joined(shown), role="row"
    )


POINTS = 4 * PLOT_WIDTH
"""Points to ask the ledger for: some to a pixel column, so that its band shows what its mean hides."""


@dataclass(frozen=True)
class Subject:
    """What a report is about, besides the series."""

    pool: str
    """Name of the pool; empty if it has none."""
    made_at: int
    """Unix seconds."""
    deadband_hs06: float = 0.0
    """Of the configuration as it is now."""
    local_note: str = ""
    """What the time zone of the machine makes of UTC."""
    problems: Sequence[str] = ()
    """What the reader should know of the ledger."""
    asked: Sequence[tuple[int, int]] = ()
    """From and to, Unix seconds, of each period as it was asked for; else as its buckets begin and end."""
    last: Optional[CycleRecord] = None
    """The last complete cycle of the later period; None if there is none."""


_DAYS_SECONDS = 2 * 86_400
"""Shorter periods are told by the minute."""

_ERROR = (
    "Error is power in use less the setpoint: above 0 a group has more than it is entitled to. "
    "Output is the power that its "
    "controller wants to move: above 0, to take from the group; below, to give to it."
)
_WORK = (
    "Work is power times time. A complete cycle stands for the time since the complete cycle "
    "before it, at most an hour; time "
    "that none stands for is a gap: hatched, with open lines, and counted neither as work nor "
    "as pledge. Crosses are cycles in "
    "which a source did not answer."
)
_TARGETS = (
    "A target on a node holds one group back there and helps another; nodes with targets of the "
    "groups within a group count for it "
    "too. Idle cores are held by no job and so belong to no group: they are drawn for the pool."
)
_WAITS = (
    "Jobs wait from their submission until they start. Jobs that have started in the hour "
    "before and still ran tell how long started "
    "jobs have waited. Of a long queue a sample was looked at: then some job may have waited "
    "longer than the longest here."
)
_SIGNS = (
    "Colour is never the only sign: lines differ in dashes, layers in patterns, and each has "
    "its name at its end."
)


def report(periods: Sequence[Series], subject: Subject) -> str:
    """The page of one period, or of two side by side, the earlier one first."""
    periods = _in_order(periods)
    layers = html_curves.layers_of(periods)
    drawing = Drawing(periods, layers, html_curves.sizes_known(periods), subject.deadband_hs06)
    summaries = _summaries(periods, subject)
    names = ["period A", "period B"] if len(periods) > 1 else [""]
    latest = summaries[-1]
    groups = [group.group for group in latest.groups]
    groups += [
        group.group for other in summaries for group in other.groups if group.group not in groups
    ]
    anchors = {group: f"g{number}" for number, group in enumerate(dict.fromkeys(groups), start=1)}
    spans = " beside ".join(" to ".join(_moments(period)) for period in summaries)
    begin = f"Shares{f' of {subject.pool}' if subject.pool else ''}, "
    return page(
        begin + spans,
        element("a", "Skip to the figures", href="#figures", class_="skip"),
        element("header", *_head(begin, summaries, names, subject)),
        element(
            "main",
            *_all_groups(drawing, names, latest),
            *_overview(summaries, names, anchors),
            *_waits(subject.last),
            *_pool(drawing, names, tuple(anchors), subject.last),
            *(
                section
                for group in anchors
                for section in _group(drawing, names, group, anchors[group])
            ),
            id="figures",
        ),
        element("footer", *_foot(summaries, subject)),
    )


def as_content(periods: Sequence[Series], subject: Subject) -> dict[str, Any]:
    """The numbers of the page: made_at, deadband_hs06, periods (the earlier one first) with their pool and groups.

    Of the last complete cycle: waits_taken_at, waits, multicore_only (null if there are no such
    nodes).
    """
    summaries = _summaries(_in_order(periods), subject)
    alone = multicore_only(subject.last.nodes) if subject.last else None
    return {
        "made_at": subject.made_at,
        "deadband_hs06": subject.deadband_hs06,
        "waits_taken_at": subject.last.taken_at if subject.last else None,
        "waits": [asdict(waits) for waits in subject.last.waits] if subject.last else [],
        "multicore_only": asdict(alone) if alone else None,
        "periods": [
            {
                **asdict(period),
                "groups": [
                    {
                        **asdict(group),
                        "work_ratio": group.work_ratio,
                        "error_ratio": group.error_ratio,
                    }
                    for group in period.groups
                ],
            }
            for period in summaries
        ],
    }


def _in_order(periods: Sequence[Series]) -> list[Series]:
    return sorted(periods, key=lambda series: series.since)


def _summaries(periods: Sequence[Series], subject: Subject) -> list[PeriodSummary]:
    """Of each period, with its ends as they were asked for: buckets may begin earlier and end later."""
    found = [summarized(series, subject.deadband_hs06) for series in periods]
    asked = sorted(subject.asked) or [(period.since, period.until) for period in found]
    return [
        replace(period, since=since, until=until) for period, (since, until) in zip(found, asked)
    ]


def _head(
    begin: str, summaries: Sequence[PeriodSummary], names: Sequence[str], subject: Subject
) -> Iterator[Markup]:
    first, *others = [joined(_between(*_moments(period))) for period in summaries]
    yield element("h1", begin, first, *(joined([" beside ", other]) for other in others))
    for period, name in zip(summaries, names):
        what = f"{name[0].upper()}{name[1:]}: " if name else ""
        yield element(
            "p",
            element(
                "span",
                what,
                *_between(told(period.since), f"{told(period.until)} UTC"),
                class_="period",
            ),
            f", {time_words.span(period.until - period.since)}.",
            class_="lead-in",
        )
        if len(summaries) == 1:
            yield _facts(period)
    for problem in subject.problems:
        yield element("p", problem, class_="note", role="note")


def _facts(period: PeriodSummary) -> Markup:
    pool, span = period.pool, max(1, period.until - period.since)
    facts = [
        ("Cycles", grouped(pool.cycles)),
        ("Incomplete", grouped(pool.cycles - pool.complete_cycles)),
        ("Time recorded", f"{min(1.0, pool.covered_seconds / span):.1%}"),
        ("Idle cores", _known(pool.idle_cores)),
        ("Idle core-hours", _known(pool.idle_core_hours)),
        ("Idle under targets", _known(pool.idle_target_cores)),
        ("Idle in grace", _known(pool.idle_grace_cores)),
        ("Nodes under targets", _known(pool.targets)),
        (
            "Cycle takes",
            "unknown" if pool.cycle_seconds is None else f"{pool.cycle_seconds:.1f} s",
        ),
    ]
    return element(
        "dl",
        joined(element("div", element("dt", name), element("dd", value)) for name, value in facts),
        class_="facts",
    )


def _all_groups(drawing: Drawing, names: Sequence[str], period: PeriodSummary) -> Iterator[Markup]:
    """The groups of the first level on one axis, as many as have a colour."""
    every = [group.group for group in period.groups]
    tops = [group for group in every if group.rpartition(".")[0] not in every]
    shown = tops[:LAYERS]
    if not shown:
        return
    drawings = [
        panel(
            drawing,
            kind,
            "all",
            "All groups",
            [name.removeprefix("period ").upper() for name in names],
        )
        for kind in overview_kinds(shown)
    ]
    left_out = f"The {len(shown)} of {counted(len(tops), 'group')} with the largest pledges."
    yield element(
        "section",
        element("h2", "All groups"),
        element("p", left_out, class_="small") if len(tops) > len(shown) else "",
        element("div", joined(drawings), class_="figures"),
        class_="all-groups",
        id="all-groups",
    )


def _overview(
    summaries: Sequence[PeriodSummary], names: Sequence[str], anchors: dict[str, str]
) -> Iterator[Markup]:
    if not anchors:
        yield element(
            "section",
            element("h2", "Nothing to show"),
            element("p", _why_empty(summaries)),
            class_="nothing",
        )
        return
    parts = [element("h2", "Summary")]
    for period, name in zip(summaries, names):
        if name:
            parts.append(element("h3", f"{name[0].upper()}{name[1:]}"))
        parts.append(
            summary(period, anchors)
            if period.groups
            else element("p", _why_empty([period]), class_="small empty")
        )
    yield element("section", *parts, class_="overview", id="summary")
    if len(summaries) > 1:
        tables = differences(summaries[0], summaries[1], ["A", "B"])
        yield element("section", element("h2", "Differences"), *tables, class_="differences")


def _waits(last: Optional[CycleRecord]) -> Iterator[Markup]:
    if last is None or not last.waits:
        return
    yield element(
        "section",
        element("h2", "Waiting times"),
        waits(last.waits, told(last.taken_at)),
        element("p", _WAITS, class_="small"),
        class_="overview",
        id="waits",
    )


def _pool(
    drawing: Drawing, names: Sequence[str], groups: Sequence[str], last: Optional[CycleRecord]
) -> Iterator[Markup]:
    if not any(series.buckets for series in drawing.periods):
        return
    drawings = [
        shown
        for kind in pool_kinds(groups)
        for shown in figures(drawing, kind, "pool", "The pool", names)
    ]
    yield element(
        "section",
        element("h2", "The pool"),
        *_multicore_only(last),
        element("div", joined(drawings), class_="figures"),
        class_="pool",
        id="pool",
    )


def _multicore_only(last: Optional[CycleRecord]) -> Iterator[Markup]:
    alone = multicore_only(last.nodes) if last else None
    if last is None or alone is None:
        return
    yield element(
        "p",
        f"At the last complete cycle, {told(last.taken_at)} UTC, {counted(alone.nodes, 'node')} "
        "took multicore jobs alone "
        f"(t1_MulticoreOnly), with {counted(alone.cores, 'core')}: {alone.multi_cores} held by "
        "multicore jobs, "
        f"{alone.single_cores} by single-core jobs, {alone.idle_cores} idle.",
        class_="small",
        id="multicore-only",
    )


def _group(drawing: Drawing, names: Sequence[str], group: str, anchor: str) -> Iterator[Markup]:
    drawings = [
        shown
        for kind in group_kinds(drawing, group)
        for shown in figures(drawing, kind, anchor, group, names)
    ]
    tables = [
        element(
            "div",
            numbers(series, group, name),
            class_="scroll",
            tabindex=0,
            role="region",
            aria_label=f"Numbers of {group}",
        )
        for series, name in zip(drawing.periods, names)
        if series.buckets
    ]
    yield element(
        "section",
        element("h2", group, id=f"{anchor}-h"),
        element("div", joined(drawings), class_="figures"),
        element(
            "div",
            element("a", "\u2191 Summary", href="#summary"),
            element("details", element("summary", f"Numbers of {group}"), *tables),
            class_="after",
        ),
        class_="group",
        id=anchor,
        aria_labelledby=f"{anchor}-h",
    )


def _foot(summaries: Sequence[PeriodSummary], subject: Subject) -> Iterator[Markup]:
    width = time_words.span(summaries[-1].bucket_seconds)
    deadband = (
        f" by more than the deadband as it is configured now, {grouped(subject.deadband_hs06)} HS06"
        if subject.deadband_hs06
        else ""
    )
    yield element("h2", "How to read it")
    notes = (
        _ERROR,
        f"Over and under: the mean error of intervals of {width} is above or below 0{deadband}.",
        _WORK,
        _TARGETS,
        (
            "A line goes through the mean of a pixel; its band, from the least to the greatest "
            f"mean of {width}: peaks stay."
        ),
        _SIGNS,
    )
    for note in notes:
        yield element("p", note)
    local = f" {subject.local_note}" if subject.local_note else ""
    yield element(
        "p", f"All times are UTC.{local} Made by sharectl report at {told(subject.made_at)} UTC."
    )


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


def _known(value: Optional[float]) -> str:
    return "unknown" if value is None else short(value)


def _moments(period: PeriodSummary) -> tuple[str, str]:
    """Begin and end: days, or minutes where there are few days between them."""
    length = 10 if period.until - period.since >= _DAYS_SECONDS else None
    return told(period.since)[:length], told(period.until)[:length]


def _between(begin: str, end: str) -> Iterator[Markup]:
    """From when to when, neither of them cut by the end of a line."""
    yield element("span", begin, class_="when")
    yield Markup(" to ")
    yield element("span", end, class_="when")
