"""Nodes of a cycle to and from the blocks of the ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from math import isfinite

from sharectl.adapters.ledger_blocks import NODES_A_BLOCK, HeldRow, NodeRow, TargetRow, pack, unpack
from sharectl.adapters.ledger_names import Lists
from sharectl.core.cycle_record import HeldJobs, NodeRecord
from sharectl.core.model import Target

_BLOCKS_A_CYCLE = 2**16
_MOST = 2**32 - 1


def ids_of(cycle: int) -> tuple[int, int]:
    """First id of the blocks of a cycle, and the first beyond."""
    return cycle * _BLOCKS_A_CYCLE, (cycle + 1) * _BLOCKS_A_CYCLE


def write(connection: sqlite3.Connection, lists: Lists, cycle: int, nodes: Iterable[NodeRecord]) -> None:
    """Keep what the nodes of a cycle held."""
    rows = sorted((_row(lists, node) for node in nodes), key=lambda row: row.node)
    begin, _ = ids_of(cycle)
    for number, first in enumerate(range(0, len(rows), NODES_A_BLOCK)):
        part = rows[first : first + NODES_A_BLOCK]
        connection.execute(
            "INSERT INTO node_blocks (id, first_node, block) VALUES (?, ?, ?)",
            (begin + number, part[0].node, pack(part)),
        )


def read(connection: sqlite3.Connection, lists: Lists, cycle: int) -> tuple[NodeRecord, ...]:
    """What all nodes of a cycle held, by name. Raises ValueError."""
    blocks = connection.execute(
        "SELECT block FROM node_blocks WHERE id >= ? AND id < ? ORDER BY id", ids_of(cycle)
    )
    found = [_record(lists, row) for (block,) in blocks for row in unpack(block)]
    return tuple(sorted(found, key=lambda node: node.node))


def history(
    connection: sqlite3.Connection, lists: Lists, name: str, since: int, until: int
) -> Iterator[tuple[int, int, NodeRecord]]:
    """Number and time of each cycle that knows the node, the oldest first, and what it held. Raises ValueError."""
    node = lists.nodes.known(name)
    if node is None:
        return
    cycles = connection.execute(
        "SELECT number, taken_at FROM cycles WHERE taken_at >= ? AND taken_at < ? ORDER BY taken_at, number",
        (since, until),
    )
    for number, taken_at in cycles:
        block = connection.execute(
            "SELECT block FROM node_blocks WHERE id >= ? AND id < ? AND first_node <= ? ORDER BY id DESC LIMIT 1",
            (*ids_of(number), node),
        ).fetchone()
        for row in unpack(block[0], node) if block else ():
            yield number, taken_at, _record(lists, row)


def _row(lists: Lists, node: NodeRecord) -> NodeRow:
    power = float(node.hs06_per_core)
    return NodeRow(
        node=lists.nodes.number(node.node),
        shape=lists.shapes.number(
            node.cores, power, node.memory_mib, int(node.controlled), int(node.reserved), int(node.draining)
        ),
        reason=lists.names.number(node.reason) if node.reason else 0,
        held=tuple(_held_row(lists, held) for held in node.held),
        target=(_target_row(lists, node.target),) if node.target else (),
        wait_seconds=_whole(node.wait_seconds),
        idle_core_seconds=_whole(node.idle_core_seconds),
    )


def _held_row(lists: Lists, held: HeldJobs) -> HeldRow:
    kind = lists.kinds.number(lists.names.number(held.group), held.cores)
    return HeldRow(kind, held.jobs, held.seconds, held.memory_mib)


def _target_row(lists: Lists, target: Target) -> TargetRow:
    held_back, helped = lists.names.number(target.held_back), lists.names.number(target.helped)
    return TargetRow(held_back, target.cap_cores, helped, target.request_cores)


def _whole(number: float) -> int:
    return min(_MOST, max(0, round(number))) if isfinite(number) else _MOST if number > 0 else 0


def _record(lists: Lists, row: NodeRow) -> NodeRecord:
    cores, power, memory_mib, controlled, reserved, draining = lists.shapes.row(row.shape)
    name = lists.nodes.row(row.node)[0]
    return NodeRecord(
        node=name,
        cores=cores,
        hs06_per_core=power,
        controlled=bool(controlled),
        held=tuple(_held(lists, held) for held in row.held),
        target=_target(lists, name, row.target[0]) if row.target else None,
        reason=lists.name(row.reason) if row.reason else None,
        wait_seconds=float(row.wait_seconds),
        idle_core_seconds=float(row.idle_core_seconds),
        memory_mib=memory_mib,
        reserved=bool(reserved),
        draining=bool(draining),
    )


def _held(lists: Lists, row: HeldRow) -> HeldJobs:
    group, cores = lists.kinds.row(row.kind)
    return HeldJobs(lists.name(group), cores, row.jobs, row.seconds, row.memory_mib)


def _target(lists: Lists, name: str, row: TargetRow) -> Target:
    return Target(name, lists.name(row.held_back), row.cap_cores, lists.name(row.helped), row.request_cores)
