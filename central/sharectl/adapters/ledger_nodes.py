"""Nodes of a cycle to and from the blocks of the ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from math import isfinite

from sharectl.adapters.ledger_blocks import (
    Held,
    NodeRow,
    TargetRow,
    code_of,
    memory_code_of,
    memory_of,
    value_of,
)
from sharectl.adapters.ledger_chains import Chains
from sharectl.adapters.ledger_names import Lists
from sharectl.core.cycle_record import CycleRecord, HeldJobs, NodeRecord
from sharectl.core.model import Target

_MOST = 10**12


class Nodes:
    """What nodes held and were told, through one connection."""

    def __init__(self, connection: sqlite3.Connection, lists: Lists) -> None:
        self._connection = connection
        self._lists = lists
        self._chains = Chains(connection)
        self._held: dict[Held, HeldJobs] = {}

    def write(self, number: int, record: CycleRecord) -> None:
        """Keep the nodes of a cycle; of two with one name the last."""
        rows = {row.node: row for row in (_row(self._lists, node) for node in record.nodes)}
        self._chains.write(number, record.taken_at, rows.values())

    def read(self, number: int) -> tuple[NodeRecord, ...]:
        """What all nodes of a cycle held, by name. Raises ValueError."""
        found = [self._record(row) for row in self._chains.rows(number)]
        return tuple(sorted(found, key=lambda node: node.node))

    def history(self, name: str, since: int, until: int) -> Iterator[tuple[int, int, NodeRecord]]:
        """Number and time of each cycle that knows the node, the oldest first, and what it held. Raises ValueError."""
        node = self._lists.nodes.known(name)
        if node is None:
            return
        cycles = self._connection.execute(
            "SELECT number, taken_at FROM cycles WHERE taken_at >= ? AND taken_at < ? ORDER BY taken_at, number",
            (since, until),
        )
        for number, taken_at in cycles:
            row = self._chains.row(number, node)
            if row is not None:
                yield number, taken_at, self._record(row)

    def _record(self, row: NodeRow) -> NodeRecord:
        lists = self._lists
        cores, power, memory_mib, controlled, reserved, draining, multicore_only = lists.shapes.row(row.shape)
        name = lists.nodes.row(row.node)[0]
        return NodeRecord(
            node=name,
            cores=cores,
            hs06_per_core=power,
            controlled=bool(controlled),
            held=tuple(self._jobs(held) for held in row.held),
            target=_target(lists, name, row.target) if row.target else None,
            reason=lists.name(row.reason) if row.reason else None,
            wait_seconds=float(value_of(row.wait)),
            idle_core_seconds=float(value_of(row.idle)),
            memory_mib=memory_mib,
            reserved=bool(reserved),
            draining=bool(draining),
            multicore_only=bool(multicore_only),
        )

    def _jobs(self, held: Held) -> HeldJobs:
        jobs = self._held.get(held)
        if jobs is None:
            kind, many, age, memory = held
            group, cores = self._lists.kinds.row(kind)
            jobs = HeldJobs(self._lists.name(group), cores, many, value_of(age), memory_of(memory))
            self._held[held] = jobs
        return jobs


def _row(lists: Lists, node: NodeRecord) -> NodeRow:
    power = float(node.hs06_per_core)
    return NodeRow(
        node=lists.nodes.number(node.node),
        shape=lists.shapes.number(
            node.cores,
            power,
            node.memory_mib,
            *map(int, (node.controlled, node.reserved, node.draining, node.multicore_only)),
        ),
        reason=lists.names.number(node.reason) if node.reason else 0,
        held=tuple(_held(lists, held) for held in node.held),
        target=_target_row(lists, node.target) if node.target else None,
        wait=code_of(_bounded(node.wait_seconds)),
        idle=code_of(_bounded(node.idle_core_seconds)),
    )


def _held(lists: Lists, held: HeldJobs) -> Held:
    kind = lists.kinds.number(lists.names.number(held.group), held.cores)
    return kind, held.jobs, code_of(held.seconds), memory_code_of(held.memory_mib)


def _target_row(lists: Lists, target: Target) -> TargetRow:
    held_back, helped = lists.names.number(target.held_back), lists.names.number(target.helped)
    return TargetRow(held_back, target.cap_cores, helped, target.request_cores)


def _bounded(number: float) -> float:
    return min(_MOST, max(0.0, number)) if isfinite(number) else float(_MOST) * (number > 0)


def _target(lists: Lists, name: str, row: TargetRow) -> Target:
    return Target(name, lists.name(row.held_back), row.cap_cores, lists.name(row.helped), row.request_cores)
