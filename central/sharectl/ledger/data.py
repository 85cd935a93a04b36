"""The ledger as a data set: which tables, which columns, in which units."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Callable, Union

from sharectl.ledger.series import UNKNOWN_SIZE
from sharectl.plan.records import CycleRecord

Value = Union[int, float, bool, str, None]
"""None where nothing is known, which is never zero."""

INTEGER, NUMBER, FLAG, TEXT = "integer", "number", "flag", "text"
"""Types of columns."""

FORMULA_BEGINS = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet would take for a formula."""


@dataclass(frozen=True)
class Column:
    """One column."""

    name: str
    """With its unit at the end, if it has one."""
    kind: str
    meaning: str


@dataclass(frozen=True)
class Table:
    """One table of the data set."""

    summary: str
    columns: tuple[Column, ...]
    rows: Callable[[CycleRecord], Iterator[tuple[Value, ...]]]
    """Rows of one cycle."""
    needs_nodes: bool = False


_CYCLE = (
    Column("cycle", INTEGER, "number of the cycle, as the ledger counts"),
    Column("taken_at_seconds", INTEGER, "when the pool was looked at, Unix seconds"),
)


def _groups(record: CycleRecord) -> Iterator[tuple[Value, ...]]:
    known = not record.imported
    for control in record.groups:
        error, usage = control.error, control.error.usage
        held = {
            cores: many
            for (group, cores), many in record.cores_by_size.items()
            if group == control.group
        }
        waiting = dict(usage.pending_by_cores)
        if not known:
            held = {1: usage.single_cores, UNKNOWN_SIZE: usage.multi_cores}
            waiting = {1: usage.pending_single_jobs, UNKNOWN_SIZE: usage.pending_multi_jobs}
        yield (
            record.number,
            record.taken_at,
            record.imported,
            control.group,
            error.pledge_hs06,
            usage.power_hs06,
            error.error_hs06,
            error.error_cores,
            error.power_minus_pledge_hs06,
            usage.single_cores,
            usage.multi_cores,
            usage.pending_single_jobs,
            usage.pending_multi_jobs,
            _by_size(held),
            _by_size(waiting),
            _by_size(dict(usage.unplaceable_by_cores)) if known else None,
            control.setpoint_hs06,
            control.control_error_hs06,
            control.output_hs06 if known else None,
            *record.target_nodes.get(control.group, (None, None)),
            *record.group_reasons.get(control.group, (None, None, None)),
            control.law if known else None,
            " ".join(control.acted),
            json.dumps(dict(control.state)),
            record.strategy if known else None,
            record.setpoint,
            record.configuration or None,
        )


def _waits(record: CycleRecord) -> Iterator[tuple[Value, ...]]:
    for waits in record.waits:
        for state, times in (("pending", waits.pending), ("started", waits.started)):
            if times is not None:
                yield (
                    record.number,
                    record.taken_at,
                    waits.group,
                    waits.cores,
                    state,
                    times.jobs,
                    times.sampled,
                    times.median_seconds,
                    times.longest_seconds,
                )


def _cycles(record: CycleRecord) -> Iterator[tuple[Value, ...]]:
    known = not record.imported
    looked = known and record.complete
    yield (
        record.number,
        record.taken_at,
        record.imported,
        record.complete,
        record.seconds if known else None,
        record.sequence,
        record.strategy if known else None,
        record.setpoint,
        record.reason,
        record.configuration or None,
        record.idle_cores if looked else None,
        record.idle_target_cores,
        record.idle_grace_cores,
        " ".join(f"{note.code}:{note.nodes}" for note in record.limits),
        json.dumps([[source.name, source.seconds, source.problem] for source in record.sources]),
        json.dumps(record.published),
        json.dumps(record.problems),
    )


def _nodes(record: CycleRecord) -> Iterator[tuple[Value, ...]]:
    for node in record.nodes:
        yield (
            record.number,
            record.taken_at,
            node.node,
            node.cores,
            node.hs06_per_core,
            node.memory_mib or None,
            node.controlled,
            node.reserved,
            node.draining,
            node.multicore_only,
            node.idle_cores,
            node.reason,
            node.target is not None,
        )


def _jobs(record: CycleRecord) -> Iterator[tuple[Value, ...]]:
    for node in record.nodes:
        for held in node.held:
            yield (
                record.number,
                record.taken_at,
                node.node,
                held.group,
                held.cores,
                held.jobs,
                held.seconds,
                held.memory_mib or None,
            )


def _targets(record: CycleRecord) -> Iterator[tuple[Value, ...]]:
    for node in record.nodes:
        if node.target is not None:
            yield (
                record.number,
                record.taken_at,
                node.node,
                node.target.held_back,
                node.target.cap_cores,
                node.target.helped,
                node.target.request_cores,
                node.reason,
                node.wait_seconds,
                node.idle_core_seconds,
            )


def _by_size(amounts: dict[int, int]) -> str:
    return " ".join(f"{cores}:{amounts[cores]}" for cores in sorted(amounts))


TABLES = {
    "groups": Table(
        "one row a group and complete cycle",
        (
            *_CYCLE,
            Column("imported", FLAG, "whether the row is from a shares_Error.log"),
            Column("group", TEXT, "name of the group; dots part the levels"),
            Column("pledge_hs06", NUMBER, "what it was promised (PLEDGE)"),
            Column("power_hs06", NUMBER, "power of the cores that it held"),
            Column("error_hs06", NUMBER, "power over its share of all power used (DHS)"),
            Column("error_cores", NUMBER, "cores over its share of all cores used (DC)"),
            Column("power_minus_pledge_hs06", NUMBER, "power over its pledge (DPHS)"),
            Column("single_cores", INTEGER, "cores held by jobs of one core (SC)"),
            Column("multi_cores", INTEGER, "cores held by jobs of more (MC)"),
            Column("pending_single_jobs", INTEGER, "jobs of one core that waited (PSC)"),
            Column("pending_multi_jobs", INTEGER, "jobs of more that waited (PMC)"),
            Column(
                "cores_by_size",
                TEXT,
                "cores of a job : cores held by such jobs, with blanks between; 0: unknown, "
                "above 1",
            ),
            Column("pending_by_size", TEXT, "cores requested : jobs that waited, likewise"),
            Column(
                "unplaceable_by_size",
                TEXT,
                "cores requested : those of them that no node could run if it were empty; empty "
                "where not known",
            ),
            Column("setpoint_hs06", NUMBER, "power that it was entitled to"),
            Column(
                "control_error_hs06",
                NUMBER,
                "power over the setpoint: what the law was given, or 0 where `acted` has "
                "no-demand or no-claimant",
            ),
            Column(
                "output_hs06",
                NUMBER,
                "power to move: above 0 to take from the group; empty where not known",
            ),
            Column(
                "held_back_nodes",
                INTEGER,
                "nodes on which a target held it back; empty where not known",
            ),
            Column(
                "helped_nodes", INTEGER, "nodes on which a target helped it; empty where not known"
            ),
            Column(
                "outcome",
                TEXT,
                "code of why it is helped, held back or neither; empty where not known",
            ),
            Column(
                "closed_nodes",
                INTEGER,
                "nodes with a target on which none of its jobs starts; empty where not known",
            ),
            Column(
                "other_sizes_closed_nodes",
                INTEGER,
                "nodes that help it where its pending jobs of other sizes do not start; empty "
                "where not known",
            ),
            Column("law", TEXT, "control law"),
            Column("acted", TEXT, "codes of what bounded or changed the output"),
            Column("state", TEXT, "state of the controller afterwards, JSON"),
            Column("strategy", TEXT, "control.strategy"),
            Column("setpoint", TEXT, "control.setpoint"),
            Column("configuration", TEXT, "digest of the configuration that decided"),
        ),
        _groups,
    ),
    "waits": Table(
        "one row a group, request size and state of jobs, of those of which waiting times are "
        "known",
        (
            *_CYCLE,
            Column("group", TEXT, "name of the group"),
            Column("request_cores", INTEGER, "cores that each job requests"),
            Column(
                "state",
                TEXT,
                "`pending`: jobs that waited; `started`: that had started in the hour before "
                "and still ran",
            ),
            Column("jobs", INTEGER, "jobs that were looked at"),
            Column("sampled", FLAG, "whether these were a sample"),
            Column(
                "median_seconds",
                INTEGER,
                "median time since submission; of started jobs until their start",
            ),
            Column("longest_seconds", INTEGER, "longest such time, of those that were looked at"),
        ),
        _waits,
    ),
    "cycles": Table(
        "one row a cycle, complete or not",
        (
            *_CYCLE,
            Column("imported", FLAG, "whether it is from a shares_Error.log"),
            Column("complete", FLAG, "whether every source answered"),
            Column("duration_seconds", NUMBER, "how long it took"),
            Column("sequence", INTEGER, "of the plan that was published; empty if none was"),
            Column("strategy", TEXT, "control.strategy"),
            Column("setpoint", TEXT, "control.setpoint"),
            Column("reason", TEXT, "code of why the plan has targets or none"),
            Column("configuration", TEXT, "digest of the configuration that decided"),
            Column("idle_cores", INTEGER, "cores that no job held; empty where not known"),
            Column(
                "idle_target_cores",
                INTEGER,
                "those that targets kept from jobs; empty where not known",
            ),
            Column("idle_grace_cores", INTEGER, "those that grace kept; empty where not known"),
            Column("limits", TEXT, "code : nodes, of each limit that acted"),
            Column(
                "sources", TEXT, "JSON: name, seconds and problem of each daemon that was asked"
            ),
            Column("published", TEXT, "JSON: where the plan went"),
            Column("problems", TEXT, "JSON: what went wrong"),
        ),
        _cycles,
    ),
    "nodes": Table(
        "one row a node and complete cycle",
        (
            *_CYCLE,
            Column("node", TEXT, "name of the node"),
            Column("cores", INTEGER, "of all its slots; 0 if it was gone and had a target"),
            Column("hs06_per_core", NUMBER, "power of one of them"),
            Column("memory_mib", INTEGER, "of all its slots; empty where not known"),
            Column("controlled", FLAG, "nodes.controlled"),
            Column("reserved", FLAG, "nodes.reserved"),
            Column("draining", FLAG, "whether it was being drained"),
            Column(
                "multicore_only",
                FLAG,
                "whether its START took no single-core job (t1_MulticoreOnly)",
            ),
            Column("idle_cores", INTEGER, "cores that no job held"),
            Column("reason", TEXT, "code of why it had its target or none"),
            Column("target", FLAG, "whether it had one"),
        ),
        _nodes,
        needs_nodes=True,
    ),
    "jobs": Table(
        "one row a node, group and size of job, in complete cycles",
        (
            *_CYCLE,
            Column("node", TEXT, "name of the node"),
            Column("group", TEXT, "name of the group, or other"),
            Column("job_cores", INTEGER, "cores that each held"),
            Column("jobs", INTEGER, "how many ran"),
            Column("mean_run_seconds", INTEGER, "how long they had run, to two digits"),
            Column(
                "mean_memory_mib",
                INTEGER,
                "memory that each held; where they differ the mean, to two digits; empty where "
                "not known",
            ),
        ),
        _jobs,
        needs_nodes=True,
    ),
    "targets": Table(
        "one row a target and cycle",
        (
            *_CYCLE,
            Column("node", TEXT, "name of the node"),
            Column("held_back", TEXT, "group that was held back"),
            Column("cap_cores", INTEGER, "most cores that it might hold there"),
            Column("helped", TEXT, "group that was let in"),
            Column("request_cores", INTEGER, "cores that its jobs had to request"),
            Column("reason", TEXT, "code of why"),
            Column(
                "wait_seconds", NUMBER, "expected time until the cores were free, to two digits"
            ),
            Column("idle_core_seconds", NUMBER, "expected idle cores times seconds, to two digits"),
        ),
        _targets,
        needs_nodes=True,
    ),
}
"""Name -> table."""


def plain(value: Value) -> str:
    """``value`` as text for CSV: empty for None, and no text that a spreadsheet would take for a formula."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, str):
        return f"'{value}" if value.startswith(FORMULA_BEGINS) else value
    return repr(value)
