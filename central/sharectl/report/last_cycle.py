"""The last complete cycle on the page: node classes, decisions with reasons, idle cores, waits."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Optional

from sharectl.plan.limits import LIMITS
from sharectl.plan.plan import REASONS
from sharectl.plan.records import GROUP_REASONS, CycleRecord, NodeRecord
from sharectl.report.tables import NONE
from sharectl.times import span

Row = dict[str, Any]


def as_content(record: CycleRecord) -> Row:
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
        "groups": _groups(record),
        "targets": _targets(record),
        "node_classes": _node_classes(record),
        "idle_cores": _idle_cores(record),
        "waits": [asdict(waits) for waits in record.waits],
    }


def _groups(record: CycleRecord) -> list[Row]:
    rows: list[Row] = []
    for control in record.groups:
        reason = record.group_reasons.get(control.group)
        rows.append(
            {
                "group": control.group,
                "setpoint_hs06": control.setpoint_hs06,
                "error_hs06": control.control_error_hs06,
                "output_hs06": control.output_hs06,
                "reason": reason.code if reason else None,
                "says": GROUP_REASONS.get(reason.code, "") if reason else "",
            }
        )
    return rows


def _targets(record: CycleRecord) -> list[Row]:
    """Pairs of groups, with the nodes on which one gives cores to the other, the most first."""
    pairs = Counter(
        (target.held_back, target.helped, target.request_cores)
        for target in (node.target for node in record.nodes)
        if target is not None
    )
    return [
        {"held_back": over, "helped": under, "request_cores": cores, "nodes": nodes}
        for (over, under, cores), nodes in sorted(pairs.items(), key=lambda row: (-row[1], row[0]))
    ]


def _node_classes(record: CycleRecord) -> list[Row]:
    """Nodes that have the same cores and power a core, the class with the most power first."""
    classes: defaultdict[tuple[int, float], list[NodeRecord]] = defaultdict(list)
    for node in record.nodes:
        if node.cores:
            classes[node.cores, round(node.hs06_per_core, 2)].append(node)
    rows: list[Row] = [
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


def _idle_cores(record: CycleRecord) -> list[Row]:
    """Cores that no job holds, by cause; those of draining nodes take no job at all."""
    target, grace = record.idle_target_cores, record.idle_grace_cores
    if target is None or grace is None:
        return [{"cause": "unknown", "cores": record.idle_cores}]
    rest = max(0, record.idle_cores - target - grace)
    on_draining = (n.idle_cores for n in record.nodes if n.draining and n.target is None)
    draining = min(rest, sum(on_draining))
    causes = {"target": target, "grace": grace, "draining": draining, "other": rest - draining}
    return [{"cause": cause, "cores": cores} for cause, cores in causes.items()]


def waited(times: Optional[Mapping[str, Any]]) -> list[str]:
    """Jobs looked at, and their median and longest wait, in words; of the row of a kind of jobs."""
    if times is None:
        return [NONE] * 3
    least = "at least " if times["sampled"] else ""
    median, longest = span(times["median_seconds"]), span(times["longest_seconds"])
    return [str(times["jobs"]), median, f"{least}{longest}"]
