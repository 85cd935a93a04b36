"""The ledger as CSV files, in bounded memory; docs/ledger.md has the meaning of each column."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any, Callable, Union

from sharectl.files import files
from sharectl.ledger.ledger import Ledger
from sharectl.plan.records import CycleRecord

Value = Union[int, float, bool, str, None]

FORMULA_BEGINS = ("=", "+", "-", "@", "\t", "\r")
"""Begins of a text that a spreadsheet takes for a formula."""

_SURE = 4
"""Columns that an earlier export of a table begins with."""


@dataclass(frozen=True)
class Table:
    """One table of the data set."""

    summary: str
    names: str
    """Names of the columns behind those of the cycle, parted by blanks."""
    make_rows: Callable[[CycleRecord], Iterator[dict[str, Any]]]
    """Values of each row by the name of their column, and by other names."""
    needs_nodes: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns."""
        return ("cycle", "taken_at_seconds", *self.names.split())

    def rows(self, record: CycleRecord) -> Iterator[tuple[Value, ...]]:
        """Rows of one cycle."""
        cycle = {"cycle": record.number, "taken_at_seconds": record.taken_at}
        for row in self.make_rows(record):
            yield tuple({**row, **cycle}[name] for name in self.columns)


# ---- rows


def _groups(record: CycleRecord) -> Iterator[dict[str, Any]]:
    for control in record.groups:
        usage = control.error.usage
        held_back, helped = record.target_nodes.get(control.group, (None, None))
        outcome, closed = record.group_reasons.get(control.group, (None, None))
        yield {
            **vars(usage),
            **vars(control.error),
            **vars(control),
            "cores_by_size": _by_size(record.cores_by_size.get(control.group, {})),
            "pending_by_size": _by_size(usage.pending_by_cores),
            "unplaceable_by_size": _by_size(usage.unplaceable_by_cores),
            "held_back_nodes": held_back,
            "helped_nodes": helped,
            "outcome": outcome,
            "closed_nodes": closed,
            "shadow_law": control.shadow.law if control.shadow else None,
            "shadow_output_hs06": control.shadow.output_hs06 if control.shadow else None,
            "acted": " ".join(control.acted),
            "state": json.dumps(dict(control.state)),
        }


def _cycles(record: CycleRecord) -> Iterator[dict[str, Any]]:
    yield {
        **vars(record),
        "duration_seconds": record.seconds,
        "idle_cores": record.idle_cores if record.complete else None,
        "limits": " ".join(f"{note.code}:{note.nodes}" for note in record.limits),
        "sources": json.dumps([[s.name, s.seconds, s.problem] for s in record.sources]),
        "published": json.dumps(record.published),
        "problems": json.dumps(record.problems),
    }


def _nodes(record: CycleRecord) -> Iterator[dict[str, Any]]:
    for node in record.nodes:
        memory_mib = node.memory_mib or None
        yield {**vars(node), "memory_mib": memory_mib, "idle_cores": node.idle_cores}


def _targets(record: CycleRecord) -> Iterator[dict[str, Any]]:
    for node in record.nodes:
        if node.target is not None:
            yield {**vars(node), **vars(node.target)}


def _by_size(amounts: Mapping[int, int]) -> str:
    return " ".join(f"{cores}:{amounts[cores]}" for cores in sorted(amounts))


TABLES = {
    "groups": Table(
        "one row a group and complete cycle",
        "group pledge_hs06 power_hs06 error_hs06 error_cores power_minus_pledge_hs06 "
        "single_cores multi_cores pending_single_jobs pending_multi_jobs cores_by_size "
        "pending_by_size unplaceable_by_size due_hs06 shortfall_hs06 setpoint_hs06 "
        "control_error_hs06 output_hs06 held_back_nodes helped_nodes outcome closed_nodes "
        "law acted state shadow_law shadow_output_hs06",
        _groups,
    ),
    "cycles": Table(
        "one row a cycle, complete or not",
        "observed complete duration_seconds sequence strategy setpoint reason configuration "
        "present_hs06 shortfall_hs06 idle_cores idle_target_cores idle_grace_cores limits sources "
        "published problems",
        _cycles,
    ),
    "nodes": Table(
        "one row a node and complete cycle",
        "node cores hs06_per_core memory_mib controlled reserved draining multicore_only "
        "idle_cores reason",
        _nodes,
        needs_nodes=True,
    ),
    "targets": Table(
        "one row a target and cycle",
        "node held_back cap_cores helped request_cores reason wait_seconds idle_core_seconds",
        _targets,
        needs_nodes=True,
    ),
}
"""Name → table."""


# ---- files


def write(path: Path, table: Table, ledger: Ledger, since: int, until: int) -> int:
    """Replace a file by an export; returns the number of rows."""
    records, passed = ledger.cycles(since, until, with_nodes=table.needs_nodes), count()
    # `zip` takes no number when there is no row any more.
    rows = (row for row, _ in zip(chain.from_iterable(map(table.rows, records)), passed))
    files.replace(path, _lines(table, rows), mode=0o640)
    return next(passed)


# `csv.writer` returns what its file returns of a line.
class _Line:
    @staticmethod
    def write(line: str) -> str:
        return line


def _lines(table: Table, rows: Iterable[Sequence[Value]]) -> Iterator[str]:
    writer: Any = csv.writer(_Line(), lineterminator="\n")
    yield writer.writerow(table.columns)
    for row in rows:
        yield writer.writerow(map(plain, row))


def plain(value: Value) -> Value:
    """``value`` for a CSV file, in which no text is a formula of a spreadsheet."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and value.startswith(FORMULA_BEGINS):
        return f"'{value}"
    return value


def refuse_foreign(path: Path, table: Table) -> None:
    """Raise StateError if a file is no earlier export of that table."""
    begin = ",".join(table.columns[:_SURE])
    files.refuse_foreign(path, begin, "earlier export of the same columns")
