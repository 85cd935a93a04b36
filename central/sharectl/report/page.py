"""The page of ``sharectl report``: one HTML document that stands alone, and its numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from sharectl.ledger.series import Series
from sharectl.plan.limits import LIMITS
from sharectl.plan.plan import REASONS
from sharectl.plan.records import GROUP_REASONS, CycleRecord
from sharectl.report import series as over_time
from sharectl.report.svg import LINES, PLOT_WIDTH, begin_of, drawing
from sharectl.report.svg import page as html

BEGIN = begin_of("report")
POINTS = 2 * PLOT_WIDTH
"""Points to ask the ledger for: more nobody can see."""


@dataclass(frozen=True)
class Subject:
    """Facts about a report besides the series."""

    pool: str
    """Name of the pool; empty if it has none."""
    made_at: int
    """Unix seconds."""
    last: Optional[CycleRecord] = None
    """Last complete cycle of the period, with its nodes; None without one."""
    mode: str = ""
    """Mode of the configuration as it is now."""
    marks: over_time.Marks = ()
    """Changes of mode, switch and configuration, by `changes`."""


def changes(records: Iterable[CycleRecord]) -> Iterator[tuple[float, str]]:
    """Time and word of each change of mode, switch or configuration between records in order."""
    before: Optional[CycleRecord] = None
    for record in records:
        if before is not None and record.configuration != before.configuration:
            yield record.taken_at, "configured"
        off = record.reason == "disabled"
        if before is not None and off != (before.reason == "disabled"):
            yield record.taken_at, "off" if off else "on"
        elif before is not None and record.observed != before.observed:
            yield record.taken_at, "observe" if record.observed else "steer"
        before = record


def report(series: Series, subject: Subject, content: Mapping[str, Any]) -> str:
    """The page of a period; ``content`` is its `summary`."""
    groups = [group["group"] for group in content["groups"]]
    anchors = {group: f"g{number}" for number, group in enumerate(groups, start=1)}
    tops = over_time.top_groups(groups)
    sections = {
        anchor: over_time.group_figures(series, anchor, group) for group, anchor in anchors.items()
    }
    if series.buckets:
        sections["pool"] = over_time.pool_figures(series)
    if tops:
        sections["all"] = iter([over_time.main_figure(series, tops, subject.marks)])
    return html(
        Path(__file__).with_name("page.html"),
        "report",
        content=content,
        subject=subject,
        last=subject.last,
        words={"plan": REASONS, "limits": LIMITS, "groups": GROUP_REASONS},
        anchors=anchors,
        tops=tops,
        shown=min(LINES, len(tops)),
        figures={key: list(map(drawing, figures)) for key, figures in sections.items()},
    )
