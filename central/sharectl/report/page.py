"""The page of ``sharectl report``: one HTML document that stands alone, and its numbers.

It runs no script and loads nothing; its Content-Security-Policy forbids both.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Optional

from sharectl.ledger.series import Series
from sharectl.plan.limits import LIMITS
from sharectl.plan.plan import REASONS
from sharectl.plan.records import GROUP_REASONS, CycleRecord, NodeRecord
from sharectl.report import series as over_time
from sharectl.report.scale import minute
from sharectl.report.svg import GROUPS, PLOT_WIDTH, page
from sharectl.report.tables import NONE
from sharectl.times import DAY_SECONDS, span

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

Content = dict[str, Any]


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
    tops = over_time.top_groups(by_group[-1])
    sections = {}
    if any(series.buckets for series in periods):
        sections["pool"] = ("The pool", over_time.pool_kinds(every))
    if tops:
        sections["all"] = ("All groups", [over_time.overview_kind(tops[:GROUPS])])
    layers = over_time.layers_of(periods)
    for group, anchor in anchors.items():
        kinds = over_time.group_kinds(group, layers, subject.deadband_hs06)
        sections[anchor] = (group, kinds)
    return page(
        Path(__file__).with_name("page.html"),
        verb="report",
        content=content,
        subject=subject,
        notes=subject.problems,
        waited=waited,
        titles=[_title(period) for period in content["periods"]],
        names=names,
        by_group=by_group,
        anchors=anchors,
        tops=tops,
        shown=min(GROUPS, len(tops)),
        figures={
            key: [
                drawing
                for kind in kinds
                for drawing in over_time.drawings(kind, periods, key, of, names, subject.marks)
            ]
            for key, (of, kinds) in sections.items()
        },
    )


def _title(period: Mapping[str, Any]) -> list[str]:
    """Begin and end: days, or minutes where there are few days between them."""
    since, until = period["since"], period["until"]
    length = 10 if until - since >= _MINUTES_UP_TO_SECONDS else None
    return [minute(since)[:length], minute(until)[:length]]


def waited(times: Optional[Mapping[str, Any]]) -> list[str]:
    """Jobs looked at, and their median and longest wait, in words; of the row of a kind of jobs."""
    if times is None:
        return [NONE] * 3
    least = "at least " if times["sampled"] else ""
    median, longest = span(times["median_seconds"]), span(times["longest_seconds"])
    return [str(times["jobs"]), median, f"{least}{longest}"]


# ---- numbers


def as_content(periods: Sequence[Series], subject: Subject) -> Content:
    """Numbers of the page, for the same periods."""
    return {
        "made_at": subject.made_at,
        "deadband_hs06": subject.deadband_hs06,
        "periods": [over_time.summary(series) for series in periods],
        "last_cycle": last_cycle(subject.last) if subject.last else None,
    }


def last_cycle(record: CycleRecord) -> Content:
    """Numbers and reasons of a cycle that was read with its nodes."""
    return {
        "taken_at": record.taken_at,
        "sequence": record.sequence,
        "observed": record.observed,
        "reason": record.reason,
        "says": REASONS.get(record.reason or "", ""),
        "limits": [
            {"code": note.code, "says": LIMITS[note.code], "nodes": note.nodes}
            for note in record.limits
        ],
        "groups": list(_groups(record)),
        "targets": _targets(record),
        "node_classes": _node_classes(record),
        "idle_cores": _idle_cores(record),
        "waits": [asdict(waits) for waits in record.waits],
    }


def _groups(record: CycleRecord) -> Iterator[Content]:
    for control in record.groups:
        reason = record.group_reasons.get(control.group)
        yield {
            "group": control.group,
            "setpoint_hs06": control.setpoint_hs06,
            "error_hs06": control.control_error_hs06,
            "output_hs06": control.output_hs06,
            "reason": reason.code if reason else None,
            "says": GROUP_REASONS.get(reason.code, "") if reason else "",
        }


def _targets(record: CycleRecord) -> list[Content]:
    """Pairs of groups, with the nodes on which one gives cores to the other, the most first."""
    targets = (node.target for node in record.nodes if node.target is not None)
    pairs = Counter((t.held_back, t.helped, t.request_cores) for t in targets)
    return [
        {"held_back": over, "helped": under, "request_cores": cores, "nodes": nodes}
        for (over, under, cores), nodes in sorted(pairs.items(), key=lambda row: (-row[1], row[0]))
    ]


def _node_classes(record: CycleRecord) -> list[Content]:
    """Nodes that have the same cores and power a core, the class with the most power first."""
    classes: defaultdict[tuple[int, float], list[NodeRecord]] = defaultdict(list)
    for node in record.nodes:
        if node.cores:
            classes[node.cores, round(node.hs06_per_core, 2)].append(node)
    rows: list[Content] = [
        {
            "cores": cores,
            "hs06_per_core": power,
            "nodes": len(nodes),
            "controlled": sum(node.controlled for node in nodes),
            "targets": sum(node.target is not None for node in nodes),
            "draining": sum(node.draining for node in nodes),
            "all_cores": cores * len(nodes),
            "idle_cores": sum(node.idle_cores for node in nodes),
            "hs06": cores * power * len(nodes),
        }
        for (cores, power), nodes in classes.items()
    ]
    return sorted(rows, key=lambda row: (-row["hs06"], -row["cores"]))


def _idle_cores(record: CycleRecord) -> list[Content]:
    """Cores without a job, by cause; those of draining nodes take no job at all."""
    target, grace = record.idle_target_cores, record.idle_grace_cores
    if target is None or grace is None:
        return [{"cause": "unknown", "cores": record.idle_cores}]
    others = max(0, record.idle_cores - target - grace)
    on_draining = (n.idle_cores for n in record.nodes if n.draining and n.target is None)
    draining = min(others, sum(on_draining))
    causes = {"target": target, "grace": grace, "draining": draining, "other": others - draining}
    return [{"cause": cause, "cores": cores} for cause, cores in causes.items()]
