"""Cycles to and from the ledger: a document each, and one of its nodes, kept for a shorter time."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Optional

from sharectl.files.documents import record_of
from sharectl.ledger.database import packed, unpacked
from sharectl.model import Target
from sharectl.plan.records import CycleRecord, NodeRecord, rounded

_MOST_SECONDS = 1e12


def write(connection: sqlite3.Connection, record: CycleRecord) -> int:
    """Record a cycle; returns its number."""
    knows_nodes = record.complete and not record.imported
    values = {
        **vars(record),
        "seconds": None if record.imported else record.seconds,
        "groups": len(record.groups),
        "idle_cores": record.idle_cores if knows_nodes else None,
        "targets": sum(node.target is not None for node in record.nodes) if knows_nodes else None,
        "record": packed(replace(record, nodes=())),
    }
    query = (
        "INSERT INTO cycles VALUES (NULL, :taken_at, :seconds, :complete, :imported, 0, :groups, "
        ":idle_cores, :idle_target_cores, :idle_grace_cores, :targets, :record)"
    )
    number = connection.execute(query, values).lastrowid or 0
    if record.nodes:
        detail = packed([_kept(node) for node in record.nodes])
        query = "INSERT INTO nodes VALUES (?, ?, ?)"
        connection.execute(query, (number, record.taken_at, detail))
    return number


def read(
    connection: sqlite3.Connection, where: str, values: Iterable[object], *, with_nodes: bool
) -> Iterator[CycleRecord]:
    """Cycles that a condition on `cycles` selects. Raises ValueError, LookupError or TypeError."""
    query = f"SELECT number, record FROM cycles {where}"
    for number, document in connection.execute(query, tuple(values)):
        record = record_of(CycleRecord, unpacked(document))
        yield replace(record, number=number, nodes=nodes(connection, number) if with_nodes else ())


def nodes(connection: sqlite3.Connection, number: int) -> tuple[NodeRecord, ...]:
    """Nodes of a cycle; none once they are removed. Raises as `read`."""
    return record_of(tuple[NodeRecord, ...], _detail(connection, number))


def targets(connection: sqlite3.Connection, number: int) -> dict[str, Optional[Target]]:
    """Target of each node of a cycle. Raises as `read`."""
    return {
        node["node"]: node["target"] and Target(**node["target"])
        for node in json.loads(_detail(connection, number))
    }


def _detail(connection: sqlite3.Connection, number: int) -> bytes:
    row = connection.execute("SELECT detail FROM nodes WHERE cycle = ?", (number,)).fetchone()
    return unpacked(row[0]) if row else b"[]"


def _kept(node: NodeRecord) -> NodeRecord:
    """``node`` with times of two digits, which pack better."""
    times = (node.wait_seconds, node.idle_core_seconds)
    wait, idle = (float(rounded(min(time, _MOST_SECONDS))) for time in times)
    return replace(node, wait_seconds=wait, idle_core_seconds=idle)
