"""The ledger as CSV and Parquet files for others, in bounded memory.

docs/ledger.md has the meaning of each column. None stands for what is not known, which is never
zero.
"""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, Callable, Optional, Union

from sharectl.errors import MissingExtraError, StateError
from sharectl.files import files
from sharectl.ledger.ledger import Ledger
from sharectl.plan.records import CycleRecord, by_size

Value = Union[int, float, bool, str, None]

FORMULA_BEGINS = ("=", "+", "-", "@", "\t", "\r")
"""Begins of a text that a spreadsheet takes for a formula."""

_ROWS_A_TIME = 20_000
_SURE = 4
"""Columns that an earlier export of a table begins with."""
_KINDS = {
    "flag": "imported observed complete sampled controlled reserved draining multicore_only target",
    "number": "pledge_hs06 power_hs06 error_hs06 error_cores power_minus_pledge_hs06 setpoint_hs06 "
    "control_error_hs06 output_hs06 due_hs06 shortfall_hs06 present_hs06 shadow_output_hs06 "
    "duration_seconds hs06_per_core wait_seconds idle_core_seconds",
    "text": "group cores_by_size pending_by_size unplaceable_by_size outcome law acted state "
    "shadow_law strategy setpoint configuration reason limits sources published problems node "
    "held_back helped",
}
"""Kind → columns of it in any table; all others are integers."""


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
    def columns(self) -> dict[str, str]:
        """Name of each column → its kind."""
        names = ["cycle", "taken_at_seconds", *self.names.split()]
        kinds = {name: kind for kind, of_kind in _KINDS.items() for name in of_kind.split()}
        return {name: kinds.get(name, "integer") for name in names}

    def rows(self, record: CycleRecord) -> Iterator[tuple[Value, ...]]:
        """Rows of one cycle."""
        names = tuple(self.columns)
        cycle = {"cycle": record.number, "taken_at_seconds": record.taken_at}
        for row in self.make_rows(record):
            yield tuple({**row, **cycle}[name] for name in names)


# ---- rows


def _groups(record: CycleRecord) -> Iterator[dict[str, Any]]:
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
            "shadow_law": control.shadow.law if control.shadow else None,
            "shadow_output_hs06": control.shadow.output_hs06 if control.shadow else None,
            "acted": " ".join(control.acted),
            "state": json.dumps(dict(control.state)),
            **_decided_by(record),
        }


def _waits(record: CycleRecord) -> Iterator[dict[str, Any]]:
    for waits in record.waits:
        for state, times in (("pending", waits.pending), ("started", waits.started)):
            if times is not None:
                kind = {"group": waits.group, "request_cores": waits.cores, "state": state}
                yield {**vars(times), **kind}


def _cycles(record: CycleRecord) -> Iterator[dict[str, Any]]:
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


def _decided_by(record: CycleRecord) -> dict[str, Any]:
    return {
        "strategy": None if record.imported else record.strategy,
        "setpoint": record.setpoint,
        "configuration": record.configuration or None,
    }


def _nodes(record: CycleRecord) -> Iterator[dict[str, Any]]:
    for node in record.nodes:
        memory_mib, is_target = node.memory_mib or None, node.target is not None
        more = {"memory_mib": memory_mib, "idle_cores": node.idle_cores, "target": is_target}
        yield {**vars(node), **more}


def _jobs(record: CycleRecord) -> Iterator[dict[str, Any]]:
    for node in record.nodes:
        for group, cores, jobs, seconds, memory_mib in by_size(node.held):
            yield {
                "node": node.node,
                "group": group,
                "job_cores": cores,
                "jobs": jobs,
                "mean_run_seconds": seconds,
                "mean_memory_mib": memory_mib or None,
            }


def _targets(record: CycleRecord) -> Iterator[dict[str, Any]]:
    for node in record.nodes:
        if node.target is not None:
            yield {**vars(node), **vars(node.target), "observed": record.observed}


def _by_size(amounts: Mapping[int, int]) -> str:
    return " ".join(f"{cores}:{amounts[cores]}" for cores in sorted(amounts))


TABLES = {
    "groups": Table(
        "one row a group and complete cycle",
        "imported group pledge_hs06 power_hs06 error_hs06 error_cores power_minus_pledge_hs06 "
        "single_cores multi_cores pending_single_jobs pending_multi_jobs cores_by_size "
        "pending_by_size unplaceable_by_size due_hs06 shortfall_hs06 setpoint_hs06 "
        "control_error_hs06 output_hs06 held_back_nodes helped_nodes outcome closed_nodes "
        "other_sizes_closed_nodes law acted state shadow_law shadow_output_hs06 strategy setpoint "
        "configuration",
        _groups,
    ),
    "waits": Table(
        "one row a group, request size and state of jobs, where waiting times are known",
        "group request_cores state jobs sampled median_seconds longest_seconds",
        _waits,
    ),
    "cycles": Table(
        "one row a cycle, complete or not",
        "imported observed complete duration_seconds sequence strategy setpoint reason "
        "configuration present_hs06 shortfall_hs06 idle_cores idle_target_cores idle_grace_cores "
        "limits sources published problems",
        _cycles,
    ),
    "nodes": Table(
        "one row a node and complete cycle",
        "node cores hs06_per_core memory_mib controlled reserved draining multicore_only "
        "idle_cores reason target",
        _nodes,
        needs_nodes=True,
    ),
    "jobs": Table(
        "one row a node, group and size of job, in complete cycles",
        "node group job_cores jobs mean_run_seconds mean_memory_mib",
        _jobs,
        needs_nodes=True,
    ),
    "targets": Table(
        "one row a target and cycle",
        "node observed held_back cap_cores helped request_cores reason wait_seconds "
        "idle_core_seconds",
        _targets,
        needs_nodes=True,
    ),
}
"""Name → table."""


# ---- files


def write(
    path: Optional[Path], form: str, table: Table, ledger: Ledger, since: int, until: int
) -> int:
    """Replace a file by an export as csv or parquet; returns the number of its rows.

    It goes to standard output if ``path`` is None. Raises as `_write_parquet`.
    """
    records = ledger.cycles(since, until, with_nodes=table.needs_nodes)
    passed = count()
    # `zip` takes no number when there is no row any more.
    rows = (row for row, _ in zip(chain.from_iterable(map(table.rows, records)), passed))
    if path is None:
        sys.stdout.writelines(_csv(table, rows))
    elif form == "parquet":
        _write_parquet(path, table, rows)
    else:
        files.replace(path, _csv(table, rows), mode=0o640)
    return next(passed)


class _Line:
    """File for `csv.writer`, which then returns its lines."""

    @staticmethod
    def write(line: str) -> str:
        return line


def _csv(table: Table, rows: Iterable[Sequence[Value]]) -> Iterator[str]:
    """Lines of a CSV file (RFC 4180 but for the line ends)."""
    writer: Any = csv.writer(_Line(), lineterminator="\n")
    yield writer.writerow(table.columns)
    for row in rows:
        yield writer.writerow(map(plain, row))


def plain(value: Value) -> str:
    """``value`` as text of a CSV file: empty for None, and never a formula of a spreadsheet."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, str):
        return f"'{value}" if value.startswith(FORMULA_BEGINS) else value
    return repr(value)


def _write_parquet(path: Path, table: Table, rows: Iterator[Sequence[Value]]) -> None:
    """Replace a Parquet file whole or not at all, row group by row group.

    Raises MissingExtraError without pyarrow, StateError if the file cannot be written.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError(
            "Parquet needs pyarrow, which is not installed: in the checkout `pip install "
            "'.[parquet]'`, or export with --format csv"
        ) from error
    types = {"integer": pa.int64(), "number": pa.float64(), "flag": pa.bool_(), "text": pa.string()}
    schema = pa.schema([(name, types[kind]) for name, kind in table.columns.items()])
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with parquet.ParquetWriter(str(beside), schema, compression="zstd") as writer:
            while part := list(islice(rows, _ROWS_A_TIME)):
                columns = [
                    pa.array(list(column), field.type) for column, field in zip(zip(*part), schema)
                ]
                writer.write_batch(pa.record_batch(columns, schema=schema))
        beside.chmod(0o640)
        beside.replace(path)
    except OSError as error:
        raise StateError(
            f"{path}: cannot be written: {error.strerror or error}; make room, or name another"
        ) from error
    finally:
        with suppress(OSError):
            beside.unlink()


def refuse_foreign(path: Path, form: str, table: Table) -> None:
    """Raise StateError if a file is no earlier export of that form: csv or parquet."""
    begin = "PAR1" if form == "parquet" else ",".join(islice(table.columns, _SURE))
    files.refuse_foreign(path, begin, f"earlier {form} export of the same columns")
