"""The JSON that commands print, each object with its kind and the version of its schema."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sharectl.model import OTHER, SCHEMA_VERSION, GroupError, GroupUsage, JobWaits, Plan, Snapshot
from sharectl.shares.errors import usage_by_group

if TYPE_CHECKING:  # a snapshot needs no plans
    from sharectl.plan.records import CycleRecord


def dumps(kind: str, content: Mapping[str, Any]) -> str:
    """``content`` as JSON text, with ``schema_version`` and ``kind`` in front."""
    return json.dumps({"schema_version": SCHEMA_VERSION, "kind": kind, **content}, indent=2)


def snapshot(taken: Snapshot, groups: tuple[str, ...]) -> dict[str, Any]:
    """Look at a pool.

    Keys: taken_at, complete, groups (usage by group, ``other`` last), others, nodes, pending,
    waits, unplaceable, untried, sources.
    """
    memory = Counter({node.name: 0 for node in taken.nodes})
    for job in taken.running:
        memory[job.node] += job.jobs * job.memory_mib
    return {
        "taken_at": taken.taken_at,
        "complete": taken.complete,
        "groups": {
            group: _usage(used) for group, used in usage_by_group(taken, (*groups, OTHER)).items()
        },
        "others": [asdict(part) for part in taken.others],
        "nodes": [
            {**asdict(node), "cores_by_group": cores, "held_memory_mib": memory[node.name]}
            for node, cores in zip(taken.nodes, _cores_by_group(taken))
        ],
        "pending": [asdict(waiting) for waiting in taken.pending],
        "waits": waits(taken.waits),
        "unplaceable": [asdict(jobs) for jobs in taken.unplaceable],
        "untried": taken.untried,
        "sources": [asdict(source) for source in taken.sources],
    }


def errors(taken_at: int, rows: tuple[GroupError, ...]) -> dict[str, Any]:
    """Keys: taken_at, groups (a list in the order of the rows, unrounded)."""
    return {
        "taken_at": taken_at,
        "groups": [
            {
                "group": row.group,
                "pledge_hs06": row.pledge_hs06,
                "error_cores": row.error_cores,
                "error_hs06": row.error_hs06,
                "power_minus_pledge_hs06": row.power_minus_pledge_hs06,
                **_usage(row.usage),
            }
            for row in rows
        ],
    }


def plan(decided: Plan) -> dict[str, Any]:
    """All fields of the plan: what ``sharectl publish`` reads."""
    return asdict(decided)


def group_reasons(record: CycleRecord) -> list[dict[str, Any]]:
    """Keys: group, code, says, closed_nodes, other_sizes_closed_nodes; of groups with a reason."""
    from sharectl.plan.records import GROUP_REASONS

    return [
        {"group": group, "says": GROUP_REASONS[reason.code], **reason._asdict()}
        for group, reason in record.group_reasons.items()
    ]


def waits(jobs: Iterable[JobWaits]) -> list[dict[str, Any]]:
    """Keys: group, cores, pending and started (null where unknown); by group and size."""
    return [asdict(row) for row in jobs]


def _usage(used: GroupUsage) -> dict[str, Any]:
    return {**asdict(used), "cores": used.cores}


def _cores_by_group(taken: Snapshot) -> list[dict[str, int]]:
    held: dict[str, dict[str, int]] = {node.name: {} for node in taken.nodes}
    for job in taken.running:
        cores = held.setdefault(job.node, {})
        cores[job.group] = cores.get(job.group, 0) + job.jobs * job.cores
    return [held[node.name] for node in taken.nodes]
