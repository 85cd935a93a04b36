"""Cycles, their groups and their nodes, to and from the tables of the ledger.

`details` and `nodes` hold one zlib-compressed JSON document a cycle.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, fields, replace
from itertools import islice
from typing import Any, Optional

from sharectl.ledger.database import insert
from sharectl.ledger.series import UNKNOWN_SIZE
from sharectl.model import (
    GroupControl,
    GroupError,
    GroupUsage,
    JobWaits,
    LimitNote,
    PendingJobs,
    Source,
    Target,
    WaitTimes,
)
from sharectl.plan.free_blocks import BackOff, BlockMemory, OpenBlock, TakenBlocks
from sharectl.plan.records import (
    CycleRecord,
    GroupReason,
    HeldJobs,
    NodeRecord,
    TargetNodes,
    rounded,
)
from sharectl.shares.demand import unplaceable_by_cores

_LISTS = {"sources": Source, "limits": LimitNote, "pending": PendingJobs}
_BLOCKS = {"open": OpenBlock, "back_offs": BackOff, "taken": TakenBlocks}
_USAGE = [field.name for field in fields(GroupUsage) if not field.name.endswith("_by_cores")]
_ERROR = [field.name for field in fields(GroupError) if field.name not in ("group", "usage")]
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
    number = insert(connection, "cycles", values)
    write_groups(connection, number, record)
    if not record.imported:
        insert(connection, "details", {"cycle": number, "detail": _packed(_detail(record))})
    if record.nodes:
        detail = _packed(_node_columns(record.nodes))
        values = {"cycle": number, "taken_at": record.taken_at, "detail": detail}
        insert(connection, "nodes", values)
    return number


def write_groups(
    connection: sqlite3.Connection, number: int, record: CycleRecord, first_place: int = 0
) -> None:
    """Add the groups of a record to cycle ``number``."""
    held: dict[str, dict[int, int]] = {}
    for (group, cores), amount in record.cores_by_size.items():
        held.setdefault(group, {})[cores] = amount
    for place, control in enumerate(record.groups, first_place):
        usage = control.error.usage
        sizes, pending = held.get(control.group, {}), usage.pending_by_cores
        if record.imported:
            sizes = {1: usage.single_cores, UNKNOWN_SIZE: usage.multi_cores}
            pending = {1: usage.pending_single_jobs, UNKNOWN_SIZE: usage.pending_multi_jobs}
        held_back, helped = record.target_nodes.get(control.group, (None, None))
        values = {
            **vars(usage),
            **vars(control.error),
            **vars(control),
            "cycle": number,
            "place": place,
            "name": control.group,
            "held_back_nodes": held_back,
            "helped_nodes": helped,
            "unplaceable_jobs": sum(usage.unplaceable_by_cores.values()),
            "cores_by_size": json.dumps(sizes),
            "pending_by_size": json.dumps(dict(pending)),
        }
        if record.imported:
            values.update(output_hs06=None, unplaceable_jobs=None)
        insert(connection, "group_cycles", values)


def read(
    connection: sqlite3.Connection, where: str, values: Iterable[object], *, with_nodes: bool
) -> Iterator[CycleRecord]:
    """Cycles that a condition on `cycles` selects. Raises ValueError, LookupError or TypeError."""
    query = f"SELECT cycles.*, detail FROM cycles LEFT JOIN details ON cycle = number {where}"
    for row in connection.execute(query, tuple(values)):
        record = _record(connection, dict(row))
        if with_nodes:
            record = replace(record, nodes=nodes(connection, record.number))
        yield record


def nodes(connection: sqlite3.Connection, number: int) -> tuple[NodeRecord, ...]:
    """Nodes of a cycle; none once they are removed. Raises as `read`."""
    row = connection.execute("SELECT detail FROM nodes WHERE cycle = ?", (number,)).fetchone()
    return tuple(_nodes(_unpacked(row[0]))) if row else ()


def targets(connection: sqlite3.Connection, number: int) -> dict[str, Optional[Target]]:
    """Targets of a cycle that has its nodes, by node. Raises as `read`."""
    row = connection.execute("SELECT detail FROM nodes WHERE cycle = ?", (number,)).fetchone()
    columns = _unpacked(row[0])
    return {
        node: target and Target(node, *target)
        for node, target in zip(columns["node"], columns["targets"])
    }


def remove(connection: sqlite3.Connection, numbers: Iterable[int]) -> None:
    """Remove cycles with all that belongs to them, but for their part of the sums."""
    for number in numbers:
        for table in ("group_cycles", "details", "nodes"):
            connection.execute(f"DELETE FROM {table} WHERE cycle = ?", (number,))
        connection.execute("DELETE FROM cycles WHERE number = ?", (number,))


def sizes_of(text: str) -> dict[int, int]:
    """Cores of a job -> amount, from the JSON of a row."""
    return {int(cores): amount for cores, amount in json.loads(text).items()}


def _packed(content: object) -> bytes:
    return zlib.compress(json.dumps(content, separators=(",", ":")).encode("ascii"))


def _unpacked(detail: bytes) -> Any:
    try:
        return json.loads(zlib.decompress(detail))
    except zlib.error as error:
        raise ValueError(str(error)) from error


def _detail(record: CycleRecord) -> dict[str, Any]:
    return {
        **{name: [astuple(row) for row in getattr(record, name)] for name in _LISTS},
        "published": record.published,
        "problems": record.problems,
        "waits": [astuple(row) for row in record.waits],
        "group_reasons": record.group_reasons,
        "blocks": {name: list(map(astuple, getattr(record.blocks, name))) for name in _BLOCKS},
        "controllers": [(group.law, dict(group.state), group.acted) for group in record.groups],
    }


_EMPTY_DETAIL = _detail(CycleRecord(0, 0.0, complete=True))


def _record(connection: sqlite3.Connection, row: dict[str, Any]) -> CycleRecord:
    del row["covered_seconds"], row["targets"]
    packed = row.pop("detail")
    if packed is None and not row["imported"]:
        raise ValueError("its detail is missing")
    detail = _unpacked(packed) if packed else _EMPTY_DETAIL
    for name, empty in (("complete", False), ("imported", False), ("seconds", 0.0)):
        row[name] = type(empty)(row[name] or empty)
    lists: dict[str, Any] = {
        name: tuple(kind(*entry) for entry in detail[name]) for name, kind in _LISTS.items()
    }
    blocks: dict[str, Any] = {
        name: tuple(kind(*entry) for entry in detail["blocks"][name])
        for name, kind in _BLOCKS.items()
    }
    record = CycleRecord(
        **{**row, "idle_cores": row["idle_cores"] or 0},
        **lists,
        published=tuple(detail["published"]),
        problems=tuple(detail["problems"]),
        waits=tuple(_waits(*entry) for entry in detail["waits"]),
        group_reasons={name: GroupReason(*why) for name, why in detail["group_reasons"].items()},
        blocks=BlockMemory(**blocks),
    )
    return _with_groups(connection, record, detail["controllers"])


def _waits(group: str, cores: int, *times: Optional[list[Any]]) -> JobWaits:
    return JobWaits(group, cores, *(None if row is None else WaitTimes(*row) for row in times))


def _with_groups(
    connection: sqlite3.Connection, record: CycleRecord, controllers: list[Any]
) -> CycleRecord:
    """``record`` with the groups of its number."""
    groups: list[GroupControl] = []
    held: dict[tuple[str, int], int] = {}
    target_nodes: dict[str, TargetNodes] = {}
    query = "SELECT * FROM group_cycles WHERE cycle = ? ORDER BY place"
    for row in connection.execute(query, (record.number,)):
        control, name = _control(row, record), row["name"]
        if not record.imported:
            law, state, acted = controllers[len(groups)]
            control = replace(control, law=law, state=state, acted=tuple(acted))
            held.update({(name, cores): n for cores, n in sizes_of(row["cores_by_size"]).items()})
        if row["held_back_nodes"] is not None:
            target_nodes[name] = TargetNodes(row["held_back_nodes"], row["helped_nodes"])
        groups.append(control)
    return replace(record, groups=tuple(groups), cores_by_size=held, target_nodes=target_nodes)


def _control(row: Mapping[str, Any], record: CycleRecord) -> GroupControl:
    usage = GroupUsage(
        **{name: row[name] for name in _USAGE},
        pending_by_cores={} if record.imported else sizes_of(row["pending_by_size"]),
        unplaceable_by_cores=unplaceable_by_cores(record.pending, row["name"]),
    )
    return GroupControl(
        GroupError(row["name"], usage=usage, **{name: row[name] for name in _ERROR}),
        row["setpoint_hs06"],
        row["control_error_hs06"],
        row["output_hs06"] or 0.0,
    )


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
