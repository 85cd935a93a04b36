"""The page of ``sharectl report``: what it is about, the summary, the pool, and a section for each group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Optional

from sharectl.core import time_words
from sharectl.core.cycle_record import CycleRecord
from sharectl.core.ledger_series import Series
from sharectl.report import html_curves, html_tables
from sharectl.report.html import page
from sharectl.report.html_figures import Drawing, figures, group_kinds, overview_kinds, panel, pool_kinds
from sharectl.report.html_style import LAYERS
from sharectl.report.html_summary import PeriodSummary, multicore_only, summarized
from sharectl.report.svg import Markup, element, joined
from sharectl.report.svg_figure import PLOT_WIDTH, told
from sharectl.report.svg_scale import grouped, short
from sharectl.report.words import counted

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
    "Error is power in use less the setpoint: above 0 a group has more than it is entitled to. Output is the power that its "
    "controller wants to move: above 0, to take from the group; below, to give to it."
)
_WORK = (
    "Work is power times time. A complete cycle stands for the time since the complete cycle before it, at most an hour; time "
    "that none stands for is a gap: hatched, with open lines, and counted neither as work nor as pledge. Crosses are cycles in "
    "which a source did not answer."
)
_TARGETS = (
    "A target on a node holds one group back there and helps another; nodes with targets of the groups within a group count for it "
    "too. Idle cores are held by no job and so belong to no group: they are drawn for the pool."
)
_WAITS = (
    "Jobs wait from their submission until they start. Jobs that have started in the hour before and still ran tell how long started "
    "jobs have waited. Of a long queue a sample was looked at: then some job may have waited longer than the longest here."
)
_SIGNS = "Colour is never the only sign: lines differ in dashes, layers in patterns, and each has its name at its end."


def report(periods: Sequence[Series], subject: Subject) -> str:
    """The page of one period, or of two side by side, the earlier one first."""
    periods = _in_order(periods)
    layers = html_curves.layers_of(periods)
    drawing = Drawing(periods, layers, html_curves.sizes_known(periods), subject.deadband_hs06)
    summaries = _summaries(periods, subject)
    names = ["period A", "period B"] if len(periods) > 1 else [""]
    latest = summaries[-1]
    groups = [group.group for group in latest.groups]
    groups += [group.group for other in summaries for group in other.groups if group.group not in groups]
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
            *(section for group in anchors for section in _group(drawing, names, group, anchors[group])),
            id="figures",
        ),
        element("footer", *_foot(summaries, subject)),
    )


def as_content(periods: Sequence[Series], subject: Subject) -> dict[str, Any]:
    """The numbers of the page: made_at, deadband_hs06, periods (the earlier one first) with their pool and groups.

    Of the last complete cycle: waits_taken_at, waits, multicore_only (null if there are no such nodes).
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
                    {**asdict(group), "work_ratio": group.work_ratio, "error_ratio": group.error_ratio}
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
    return [replace(period, since=since, until=until) for period, (since, until) in zip(found, asked)]


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
                "span", what, *_between(told(period.since), f"{told(period.until)} UTC"), class_="period"
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
        panel(drawing, kind, "all", "All groups", [name.removeprefix("period ").upper() for name in names])
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
            html_tables.summary(period, anchors)
            if period.groups
            else element("p", _why_empty([period]), class_="small empty")
        )
    yield element("section", *parts, class_="overview", id="summary")
    if len(summaries) > 1:
        tables = html_tables.differences(summaries[0], summaries[1], ["A", "B"])
        yield element("section", element("h2", "Differences"), *tables, class_="differences")


def _waits(last: Optional[CycleRecord]) -> Iterator[Markup]:
    if last is None or not last.waits:
        return
    yield element(
        "section",
        element("h2", "Waiting times"),
        html_tables.waits(last.waits, told(last.taken_at)),
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
        shown for kind in pool_kinds(groups) for shown in figures(drawing, kind, "pool", "The pool", names)
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
        f"At the last complete cycle, {told(last.taken_at)} UTC, {counted(alone.nodes, 'node')} took multicore jobs alone "
        f"(t1_MulticoreOnly), with {counted(alone.cores, 'core')}: {alone.multi_cores} held by multicore jobs, "
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
            html_tables.numbers(series, group, name),
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
        f"A line goes through the mean of a pixel; its band, from the least to the greatest mean of {width}: peaks stay.",
        _SIGNS,
    )
    for note in notes:
        yield element("p", note)
    local = f" {subject.local_note}" if subject.local_note else ""
    yield element("p", f"All times are UTC.{local} Made by sharectl report at {told(subject.made_at)} UTC.")


def _why_empty(summaries: Sequence[PeriodSummary]) -> str:
    cycles = sum(period.pool.cycles for period in summaries)
    if cycles:
        return f"{counted(cycles, 'cycle')} ran, none of them complete: nothing is known of what the groups used."
    return "The ledger has no cycle in this period: check --from and --to, and whether `sharectl cycle` runs."


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
