"""Blocks of nodes in the ledger: each on the one of the cycle before, and every so often one that stands alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Optional

from sharectl.adapters.ledger_blocks import NO_BASE, Base, NodeRow, pack, unpack

NODES_A_BLOCK = 256
CYCLES_A_CHAIN = 12
"""To read a cycle so many blocks of each node are read at most."""

_BLOCKS_A_CYCLE = 2**16


class Chains:
    """Blocks through one connection; the last ones read are remembered, so that cycles in order are read once each."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._read: dict[tuple[int, Optional[int]], tuple[int, Base]] = {}

    def write(self, cycle: int, taken_at: int, rows: Iterable[NodeRow]) -> None:
        """Keep what the nodes of a cycle held."""
        before = self._last()
        parts: dict[int, list[NodeRow]] = {}
        for row in sorted(rows):
            parts.setdefault(row.node // NODES_A_BLOCK, []).append(row)
        for part, content in parts.items():
            base, number, chain, depth = self._base(before, part, cycle)
            seconds = max(0, taken_at - self._taken_at(number)) if number else 0
            self._connection.execute(
                "INSERT INTO node_blocks (id, base, chain, depth, block) VALUES (?, ?, ?, ?, ?)",
                (_first_id(cycle) + part, number, chain, depth, pack(content, base, seconds)),
            )

    def rows(self, cycle: int) -> list[NodeRow]:
        """What all nodes of a cycle held. Raises ValueError."""
        ids = self._connection.execute(
            "SELECT id FROM node_blocks WHERE id >= ? AND id < ?", (_first_id(cycle), _first_id(cycle + 1))
        ).fetchall()
        return [row for (one,) in ids for row in self._block(cycle, one % _BLOCKS_A_CYCLE).values()]

    def row(self, cycle: int, node: int) -> Optional[NodeRow]:
        """What one node held; None if the cycle does not know it. Raises ValueError."""
        return self._block(cycle, node // NODES_A_BLOCK, node).get(node)

    def _block(self, cycle: int, part: int, only: Optional[int] = None) -> Base:
        done, base = self._read.get((part, only), (0, NO_BASE))
        chain: list[bytes] = []
        number = cycle
        while number not in (0, done):
            found = self._connection.execute(
                "SELECT base, block FROM node_blocks WHERE id = ?", (_first_id(number) + part,)
            ).fetchone()
            if found is None and number == cycle:
                return NO_BASE
            if found is None or found[0] >= number:
                raise ValueError(
                    f"cycle {cycle}: the nodes of cycle {number}, which it goes by, are not there"
                )
            chain.append(found[1])
            number = found[0]
        if number == 0:
            base = NO_BASE
        for block in reversed(chain):
            base = {row.node: row for row in unpack(block, base, only)}
        self._read[part, only] = cycle, base
        return base

    def _base(self, before: int, part: int, cycle: int) -> tuple[Base, int, int, int]:
        """Base of a new block, its cycle (0: none), and the first cycle of the chain and the place in it."""
        alone = NO_BASE, 0, cycle, 0
        found = self._connection.execute(
            "SELECT chain, depth FROM node_blocks WHERE id = ?", (_first_id(before) + part,)
        ).fetchone()
        if found is None or found[1] + 1 >= CYCLES_A_CHAIN:
            return alone
        try:
            return self._block(before, part), before, found[0], found[1] + 1
        except ValueError:
            # What cannot be read is no base for what comes.
            return alone

    def _last(self) -> int:
        """Last cycle that has blocks; 0 if there is none."""
        newest = self._connection.execute("SELECT max(id) FROM node_blocks").fetchone()[0]
        return 0 if newest is None else int(newest) // _BLOCKS_A_CYCLE

    def _taken_at(self, cycle: int) -> int:
        row = self._connection.execute("SELECT taken_at FROM cycles WHERE number = ?", (cycle,)).fetchone()
        return int(row[0]) if row else 0


def first_cycle(connection: sqlite3.Connection) -> Optional[int]:
    """First cycle that has blocks; None if there is none."""
    oldest = connection.execute("SELECT min(id) FROM node_blocks").fetchone()[0]
    return None if oldest is None else int(oldest) // _BLOCKS_A_CYCLE


def remove_before(connection: sqlite3.Connection, cycle: int) -> int:
    """How many blocks were removed: those of earlier cycles, but for what the blocks from that cycle on go by."""
    needed = connection.execute(
        "SELECT min(chain) FROM (SELECT chain FROM node_blocks WHERE id >= ? ORDER BY id LIMIT ?)",
        (_first_id(cycle), _BLOCKS_A_CYCLE // NODES_A_BLOCK),
    ).fetchone()[0]
    first = cycle if needed is None else min(cycle, needed)
    return connection.execute("DELETE FROM node_blocks WHERE id < ?", (_first_id(first),)).rowcount


def _first_id(cycle: int) -> int:
    return cycle * _BLOCKS_A_CYCLE
