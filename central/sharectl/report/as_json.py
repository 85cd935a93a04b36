"""The JSON that commands print, each object with its kind and the version of its schema."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Optional

from sharectl.model import OTHER, SCHEMA_VERSION, GroupError, GroupUsage, Snapshot
from sharectl.shares.errors import usage_by_group
from sharectl.shares.groups import usage_with_subgroups

if TYPE_CHECKING:  # a snapshot needs no plans
    from sharectl.plan.records import CycleRecord


def dumps(kind: str, content: Mapping[str, Any]) -> str:
    """``content`` as JSON text, with ``schema_version`` and ``kind`` in front."""
    text = json.dumps({"schema_version": SCHEMA_VERSION, "kind": kind, **content}, indent=2)
    return text.replace("\x7f", r"\u007f")  # of ASCII's control characters JSON's rules omit one


def snapshot(taken: Snapshot, groups: tuple[str, ...]) -> dict[str, Any]:
    """Jobs and nodes; sums of an incomplete look are null, and so are lists without a row."""
    cores: defaultdict[str, Counter[str]] = defaultdict(Counter)
    memory_mib: Counter[str] = Counter()
    for job in taken.running:
        cores[job.node][job.group] += job.jobs * job.cores
        memory_mib[job.node] += job.jobs * job.memory_mib

    def rows(records: Iterable[Any]) -> Optional[list[dict[str, Any]]]:
        every = [asdict(record) for record in records]
        return every if every or taken.complete else None

    by_group = usage_with_subgroups(usage_by_group(taken, (*groups, OTHER)))
    usage = {group: _usage(used) for group, used in by_group.items()}
    nodes = rows(taken.nodes)
    for node in nodes or ():
        of_jobs = {
            "cores_by_group": dict(cores[node["name"]]),
            "held_memory_mib": memory_mib[node["name"]],
        }
        node.update(of_jobs if taken.complete else dict.fromkeys(of_jobs))
    return {
        "taken_at": taken.taken_at,
        "complete": taken.complete,
        "groups": usage if taken.complete else {g: dict.fromkeys(row) for g, row in usage.items()},
        "others": rows(taken.others),
        "nodes": nodes,
        "pending": rows(taken.pending),
        "waits": rows(taken.waits),
        "unplaceable": rows(taken.unplaceable),
        "untried": taken.untried,
        "over_budget": taken.over_budget,
        "sources": rows(taken.sources),
    }


def errors(taken_at: int, rows: tuple[GroupError, ...]) -> dict[str, Any]:
    """Errors in the order of the rows, unrounded."""
    groups = [{**asdict(row), **_usage(row.usage)} for row in rows]
    for group in groups:
        del group["usage"]
    return {"taken_at": taken_at, "groups": groups}


def group_reasons(record: CycleRecord) -> list[dict[str, Any]]:
    """Reasons of the groups that have one."""
    from sharectl.plan.records import GROUP_REASONS

    return [
        {"group": group, "says": GROUP_REASONS[reason.code], **reason._asdict()}
        for group, reason in record.group_reasons.items()
    ]


def _usage(used: GroupUsage) -> dict[str, Any]:
    return {**asdict(used), "cores": used.cores}
