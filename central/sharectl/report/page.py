"""The page of ``sharectl report``: one HTML document that stands alone, and its numbers.

It runs no script and loads nothing; its Content-Security-Policy forbids both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from sharectl.ledger.series import Series
from sharectl.plan.records import CycleRecord
from sharectl.report import last_cycle
from sharectl.report.page_figures import (
    drawings,
    group_kinds,
    overview_kind,
    pool_kinds,
    top_groups,
)
from sharectl.report.scale import minute
from sharectl.report.series import layers_of, summary
from sharectl.report.svg import GROUPS, PLOT_WIDTH, page
from sharectl.times import DAY_SECONDS

BEGIN = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="generator" content="sharectl report">
"""
"""Begin of every page, as the template has it: `sharectl report` replaces no other file."""
POINTS = 2 * PLOT_WIDTH
"""Points to ask the ledger for: more nobody can see."""
_MINUTES_UP_TO_SECONDS = 2 * DAY_SECONDS


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
    last: Optional[CycleRecord] = None
    """Last complete cycle of the latest period, with its nodes; None without one."""


def report(periods: Sequence[Series], subject: Subject, content: Mapping[str, Any]) -> str:
    """The page of one period, or of two side by side, the earlier one first.

    ``content`` is that of `as_content`.
    """
    names = ["period A", "period B"] if len(periods) > 1 else [""]
    by_group = [
        {group["group"]: group for group in period["groups"]} for period in content["periods"]
    ]
    every = list(dict.fromkeys(group for groups in reversed(by_group) for group in groups))
    anchors = {group: f"g{number}" for number, group in enumerate(every, start=1)}
    tops = top_groups(by_group[-1])
    sections = {"pool": ("The pool", pool_kinds(every))} if any(s.buckets for s in periods) else {}
    if tops:
        sections["all"] = ("All groups", [overview_kind(tops[:GROUPS])])
    layers = layers_of(periods)
    for group, anchor in anchors.items():
        sections[anchor] = (group, group_kinds(group, layers, subject.deadband_hs06))
    return page(
        Path(__file__).with_name("page.html"),
        verb="report",
        content=content,
        subject=subject,
        notes=subject.problems,
        waited=last_cycle.waited,
        titles=[_title(period) for period in content["periods"]],
        names=names,
        by_group=by_group,
        anchors=anchors,
        tops=tops,
        shown=min(GROUPS, len(tops)),
        figures={
            key: [drawing for kind in kinds for drawing in drawings(kind, periods, key, of, names)]
            for key, (of, kinds) in sections.items()
        },
    )


def _title(period: Mapping[str, Any]) -> list[str]:
    """Begin and end: days, or minutes where there are few days between them."""
    since, until = period["since"], period["until"]
    length = 10 if until - since >= _MINUTES_UP_TO_SECONDS else None
    return [minute(since)[:length], minute(until)[:length]]


def as_content(periods: Sequence[Series], subject: Subject) -> dict[str, Any]:
    """Numbers of the page, for the same periods."""
    return {
        "made_at": subject.made_at,
        "deadband_hs06": subject.deadband_hs06,
        "periods": [summary(series) for series in periods],
        "last_cycle": last_cycle.as_content(subject.last) if subject.last else None,
    }
