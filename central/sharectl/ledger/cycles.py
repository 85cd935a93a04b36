"""Cycles to and from the tables of the ledger.

Each cycle is one compressed JSON document, and its nodes another, kept for a shorter time.
`group_cycles` has the figures of groups again, for sums over time.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, astuple, fields, replace
from itertools import islice
from typing import Any, Optional

from sharectl.files.documents import record_of
from sharectl.ledger.database import insert
from sharectl.model import Target
from sharectl.plan.records import CycleRecord, HeldJobs, NodeRecord, rounded

_NODE = [field.name for field in fields(NodeRecord) if field.name not in ("held", "target")]
_MOST_SECONDS = 1e12


def write(connection: sqlite3.Connection, record: CycleRecord) -> int:
    """Record a cycle; returns its number."""
    values: dict[str, object] = {**vars(record), "number": None, "covered_seconds": 0}
    values["targets"] = sum(node.target is not None for node in record.nodes)
    if record.imported or not record.complete:
        values.update(idle_cores=None, targets=None)
    if record.imported:
        values.update(seconds=None)
    number = insert(connection, "cycles", {**values, "record": _packed_record(record)})
    _write_groups(connection, number, record)
    if record.nodes:
        detail = _packed(_node_columns(record.nodes))
        values = {"cycle": number, "taken_at": record.taken_at, "detail": detail}
        insert(connection, "nodes", values)
    return number


def rewrite(connection: sqlite3.Connection, record: CycleRecord) -> None:
    """Put ``record`` in the place of the imported cycle of its number."""
    connection.execute("DELETE FROM group_cycles WHERE cycle = ?", (record.number,))
    connection.execute(
        "UPDATE cycles SET record = ? WHERE number = ?", (_packed_record(record), record.number)
    )
    _write_groups(connection, record.number, record)


def read(
    connection: sqlite3.Connection, where: str, values: Iterable[object], *, with_nodes: bool
) -> Iterator[CycleRecord]:
    """Cycles that a condition on `cycles` selects. Raises ValueError, LookupError or TypeError."""
    query = f"SELECT number, record FROM cycles {where}"
    for number, packed in connection.execute(query, tuple(values)):
        record = record_of(CycleRecord, _text(packed))
        yield replace(record, number=number, nodes=nodes(connection, number) if with_nodes else ())


def nodes(connection: sqlite3.Connection, number: int) -> tuple[NodeRecord, ...]:
    """Nodes of a cycle; none once they are removed. Raises as `read`."""
    row = connection.execute("SELECT detail FROM nodes WHERE cycle = ?", (number,)).fetchone()
    return tuple(_nodes(json.loads(_text(row[0])))) if row else ()


def targets(connection: sqlite3.Connection, number: int) -> dict[str, Optional[Target]]:
    """Targets of a cycle that has its nodes, by node. Raises as `read`."""
    row = connection.execute("SELECT detail FROM nodes WHERE cycle = ?", (number,)).fetchone()
    columns = json.loads(_text(row[0]))
    return {
        node: target and Target(node, *target)
        for node, target in zip(columns["node"], columns["targets"])
    }


def remove(connection: sqlite3.Connection, numbers: Iterable[int]) -> None:
    """Remove cycles with all that belongs to them, but for their part of the sums."""
    for number in numbers:
        for table in ("group_cycles", "nodes"):
            connection.execute(f"DELETE FROM {table} WHERE cycle = ?", (number,))
        connection.execute("DELETE FROM cycles WHERE number = ?", (number,))


def _write_groups(connection: sqlite3.Connection, number: int, record: CycleRecord) -> None:
    for control in record.groups:
        usage = control.error.usage
        held_back, helped = record.target_nodes.get(control.group, (None, None))
        values = {
            **vars(usage),
            **vars(control.error),
            **vars(control),
            "cycle": number,
            "name": control.group,
            "held_back_nodes": held_back,
            "helped_nodes": helped,
            "unplaceable_jobs": sum(usage.unplaceable_by_cores.values()),
            "cores_by_size": json.dumps(dict(record.cores_by_size.get(control.group, {}))),
            "pending_by_size": json.dumps(dict(usage.pending_by_cores)),
        }
        if record.imported:
            values.update(output_hs06=None, unplaceable_jobs=None)
        insert(connection, "group_cycles", values)


def _packed_record(record: CycleRecord) -> bytes:
    return _packed(asdict(replace(record, nodes=())))


def _packed(content: object) -> bytes:
    return zlib.compress(json.dumps(content, separators=(",", ":")).encode("ascii"))


def _text(packed: bytes) -> bytes:
    try:
        return zlib.decompress(packed)
    except zlib.error as error:
        raise ValueError(str(error)) from error


def _node_columns(nodes: Iterable[NodeRecord]) -> dict[str, Any]:
    """Columns of nodes, and of the jobs on them: zlib packs columns better than rows."""
    records = [
        replace(
            node,
            wait_seconds=_to_two_digits(node.wait_seconds),
            idle_core_seconds=_to_two_digits(node.idle_core_seconds),
        )
        for node in {node.node: node for node in nodes}.values()
    ]
    return {
        **{name: [getattr(node, name) for node in records] for name in _NODE},
        "targets": [node.target and astuple(node.target)[1:] for node in records],
        "kinds": [len(node.held) for node in records],
        "held": list(zip(*(jobs for node in records for jobs in node.held))),
    }


def _to_two_digits(number: float) -> float:
    return float(rounded(min(number, _MOST_SECONDS)))


def _nodes(columns: dict[str, Any]) -> Iterator[NodeRecord]:
    held = map(HeldJobs, *columns["held"]) if columns["held"] else iter(())
    rows = zip(*(columns[name] for name in _NODE))
    for row, target, kinds in zip(rows, columns["targets"], columns["kinds"]):
        values = dict(zip(_NODE, row))
        yield NodeRecord(
            **values,
            target=target and Target(values["node"], *target),
            held=tuple(islice(held, kinds)),
        )
