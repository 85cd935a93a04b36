"""The ledger as a data set: its tables, their columns and units, and the rows of one cycle.

None stands for what is not known, which is never zero.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Union

if TYPE_CHECKING:
    from sharectl.plan.records import CycleRecord

Value = Union[int, float, bool, str, None]
Row = dict[str, Any]
"""Values by the name of their column, and by other names."""

INTEGER, NUMBER, FLAG, TEXT = "integer", "number", "flag", "text"

FORMULA_BEGINS = ("=", "+", "-", "@", "\t", "\r")
"""Begins of a text that a spreadsheet takes for a formula."""

_CYCLE = """
cycle | integer | number of the cycle, as the ledger counts
taken_at_seconds | integer | when the pool was looked at, Unix seconds
"""
_GROUPS = """
imported | flag | whether the row is from a shares_Error.log
group | text | name of the group; dots part the levels
pledge_hs06 | number | what it was promised (PLEDGE)
power_hs06 | number | power of the cores that it held
error_hs06 | number | power over its share of all power used (DHS)
error_cores | number | cores over its share of all cores used (DC)
power_minus_pledge_hs06 | number | power over its pledge (DPHS)
single_cores | integer | cores held by jobs of one core (SC)
multi_cores | integer | cores held by jobs of more (MC)
pending_single_jobs | integer | jobs of one core that waited (PSC)
pending_multi_jobs | integer | jobs of more that waited (PMC)
cores_by_size | text | pairs SIZE:CORES held; SIZE 0: multicore, size unknown
pending_by_size | text | pairs SIZE:JOBS that waited
unplaceable_by_size | text | pairs SIZE:JOBS that waited and fit on no empty node
setpoint_hs06 | number | power that it was entitled to
control_error_hs06 | number | power over the setpoint; 0 if `acted` has no-demand or no-claimant
output_hs06 | number | power to move: above 0 to take from the group
held_back_nodes | integer | nodes on which a target held it back
helped_nodes | integer | nodes on which a target helped it
outcome | text | code of why it was helped, held back or neither
closed_nodes | integer | nodes with a target on which none of its jobs starts
other_sizes_closed_nodes | integer | nodes that help it, closed to its jobs of other sizes
law | text | control law
acted | text | codes of what bounded or changed the output
state | text | state of the controller afterwards, JSON
strategy | text | control.strategy
setpoint | text | control.setpoint
configuration | text | digest of the configuration that decided
"""
_WAITS = """
group | text | name of the group
request_cores | integer | cores that each job requests
state | text | `pending`; or `started`: in the hour before, and still running
jobs | integer | jobs that were looked at
sampled | flag | whether these were a sample
median_seconds | integer | median time since submission; of started jobs until their start
longest_seconds | integer | longest such time
"""
_CYCLES = """
imported | flag | whether it is from a shares_Error.log
complete | flag | whether every source answered
duration_seconds | number | how long it took
sequence | integer | of the plan that was published; empty if none was
strategy | text | control.strategy
setpoint | text | control.setpoint
reason | text | code of why the plan has targets or none
configuration | text | digest of the configuration that decided
idle_cores | integer | cores that no job held
idle_target_cores | integer | those that targets kept from jobs
idle_grace_cores | integer | those that grace kept
limits | text | code : nodes, of each limit that acted
sources | text | JSON: name, seconds and problem of each daemon that was asked
published | text | JSON: where the plan went
problems | text | JSON: what went wrong
"""
_NODES = """
node | text | name of the node
cores | integer | of all its slots; 0 if it was gone and had a target
hs06_per_core | number | power of one of them
memory_mib | integer | of all its slots
controlled | flag | nodes.controlled
reserved | flag | nodes.reserved
draining | flag | whether it was being drained
multicore_only | flag | whether its START took no single-core job (t1_MulticoreOnly)
idle_cores | integer | cores that no job held
reason | text | code of why it had its target or none
target | flag | whether it had one
"""
_JOBS = """
node | text | name of the node
group | text | name of the group, or other
job_cores | integer | cores that each held
jobs | integer | how many ran
mean_run_seconds | integer | how long they had run, to two digits
mean_memory_mib | integer | memory that each held; where they differ the mean, to two digits
"""
_TARGETS = """
node | text | name of the node
held_back | text | group that was held back
cap_cores | integer | most cores that it might hold there
helped | text | group that was let in
request_cores | integer | cores that its jobs had to request
reason | text | code of why
wait_seconds | number | expected time until the cores were free, to two digits
idle_core_seconds | number | expected idle cores times seconds, to two digits
"""


class Column(NamedTuple):
    """One column."""

    name: str
    """With its unit at the end, if it has one."""
    kind: str
    """`INTEGER`, `NUMBER`, `FLAG` or `TEXT`."""
    meaning: str


@dataclass(frozen=True)
class Table:
    """One table of the data set."""

    summary: str
    text: str
    """A line a column: name, kind, meaning."""
    make_rows: Callable[[CycleRecord], Iterator[Row]]
    needs_nodes: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns, in order."""
        lines = (_CYCLE + self.text).strip().replace("\n\n", "\n").splitlines()
        return tuple(Column(*line.split(" | ")) for line in lines)

    def rows(self, record: CycleRecord) -> Iterator[tuple[Value, ...]]:
        """Rows of one cycle."""
        names = [column.name for column in self.columns]
        cycle = {"cycle": record.number, "taken_at_seconds": record.taken_at}
        for row in self.make_rows(record):
            yield tuple({**row, **cycle}[name] for name in names)


def plain(value: Value) -> str:
    """``value`` as text of a CSV file: empty for None, and never a formula of a spreadsheet."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, str):
        return f"'{value}" if value.startswith(FORMULA_BEGINS) else value
    return repr(value)


def _groups(record: CycleRecord) -> Iterator[Row]:
    recorded = not record.imported
    for control in record.groups:
        usage = control.error.usage
        held_back, helped = record.target_nodes.get(control.group, (None, None))
        outcome, closed, other_sizes = record.group_reasons.get(control.group, (None, None, None))
        yield {
            **vars(usage),
            **vars(control.error),
            **vars(control),
            "imported": record.imported,
            "cores_by_size": _by_size(record.cores_by_size.get(control.group, {})),
            "pending_by_size": _by_size(usage.pending_by_cores),
            "unplaceable_by_size": _by_size(usage.unplaceable_by_cores) if recorded else None,
            "output_hs06": control.output_hs06 if recorded else None,
            "held_back_nodes": held_back,
            "helped_nodes": helped,
            "outcome": outcome,
            "closed_nodes": closed,
            "other_sizes_closed_nodes": other_sizes,
            "law": control.law if recorded else None,
            "acted": " ".join(control.acted),
            "state": json.dumps(dict(control.state)),
            **_decided_by(record),
        }


def _waits(record: CycleRecord) -> Iterator[Row]:
    for waits in record.waits:
        for state, times in (("pending", waits.pending), ("started", waits.started)):
            if times is not None:
                yield {
                    **vars(times),
                    "group": waits.group,
                    "request_cores": waits.cores,
                    "state": state,
                }


def _cycles(record: CycleRecord) -> Iterator[Row]:
    recorded = not record.imported
    sources = [[source.name, source.seconds, source.problem] for source in record.sources]
    yield {
        **vars(record),
        "duration_seconds": record.seconds if recorded else None,
        "idle_cores": record.idle_cores if recorded and record.complete else None,
        "limits": " ".join(f"{note.code}:{note.nodes}" for note in record.limits),
        "sources": json.dumps(sources),
        "published": json.dumps(record.published),
        "problems": json.dumps(record.problems),
        **_decided_by(record),
    }


def _decided_by(record: CycleRecord) -> Row:
    return {
        "strategy": None if record.imported else record.strategy,
        "setpoint": record.setpoint,
        "configuration": record.configuration or None,
    }


def _nodes(record: CycleRecord) -> Iterator[Row]:
    for node in record.nodes:
        yield {
            **vars(node),
            "memory_mib": node.memory_mib or None,
            "idle_cores": node.idle_cores,
            "target": node.target is not None,
        }


def _jobs(record: CycleRecord) -> Iterator[Row]:
    for node in record.nodes:
        for held in node.held:
            yield {
                "node": node.node,
                "group": held.group,
                "job_cores": held.cores,
                "jobs": held.jobs,
                "mean_run_seconds": held.seconds,
                "mean_memory_mib": held.memory_mib or None,
            }


def _targets(record: CycleRecord) -> Iterator[Row]:
    for node in record.nodes:
        if node.target is not None:
            yield {**vars(node), **vars(node.target)}


def _by_size(amounts: Mapping[int, int]) -> str:
    return " ".join(f"{cores}:{amounts[cores]}" for cores in sorted(amounts))


TABLES = {
    "groups": Table("one row a group and complete cycle", _GROUPS, _groups),
    "waits": Table(
        "one row a group, request size and state of jobs, where waiting times are known",
        _WAITS,
        _waits,
    ),
    "cycles": Table("one row a cycle, complete or not", _CYCLES, _cycles),
    "nodes": Table("one row a node and complete cycle", _NODES, _nodes, needs_nodes=True),
    "jobs": Table(
        "one row a node, group and size of job, in complete cycles", _JOBS, _jobs, needs_nodes=True
    ),
    "targets": Table("one row a target and cycle", _TARGETS, _targets, needs_nodes=True),
}
"""Name -> table."""
