"""``ledger/ledger.sqlite`` in the state directory: every cycle, to be explained, replayed and drawn."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Optional

from sharectl.adapters import ledger_cycles, ledger_known, ledger_rollups, ledger_series
from sharectl.adapters.ledger_file import (
    BUSY_SECONDS,
    PLACE,
    CorruptError,
    errors_of,
    open_to_read,
    open_to_write,
    set_aside,
    transaction,
)
from sharectl.adapters.ledger_names import Lists
from sharectl.adapters.ledger_nodes import Nodes
from sharectl.adapters.ledger_retention import KEEP_DEFAULT, Keep, prune, shrink
from sharectl.adapters.ledger_schema import VERSION
from sharectl.core.cycle_record import CycleRecord, NodeRecord
from sharectl.core.ledger_series import Series
from sharectl.core.model import Snapshot
from sharectl.core.plan import Known
from sharectl.errors import StateError

__all__ = ["PLACE", "Keep", "Ledger", "NodeMoment"]


@dataclass(frozen=True)
class NodeMoment:
    """What one node held and was told in one cycle."""

    number: int
    """Of the cycle."""
    taken_at: int
    """Unix seconds."""
    node: NodeRecord


class Ledger:
    """The ledger at a path. Whatever goes wrong is a StateError that names it."""

    def __init__(self, path: Path, keep: Keep = KEEP_DEFAULT, busy_seconds: float = BUSY_SECONDS) -> None:
        self.path = path
        self.keep = keep
        self.busy_seconds = busy_seconds

    def record(self, record: CycleRecord, snapshot: Snapshot) -> int:
        """Number under which a cycle is kept from now on, with its nodes and what its snapshot tells of jobs.

        A ledger that is broken is moved aside under a name with the date, and a new one is begun: the cycle is kept.
        """
        try:
            return self._record(record, snapshot)
        except CorruptError as error:
            aside = set_aside(self.path, record.taken_at)
            self._record(record, snapshot)
            raise StateError(
                f"{error.fact}: moved to {aside}, and a new ledger was begun, which has this cycle; docs/ledger.md tells how "
                "to get out of the old one what can be read",
                supersedes=str(error),
            ) from error

    def is_readable(self) -> bool:
        """Whether there is a ledger, and this user may read it."""
        return os.access(self.path, os.R_OK)

    def cycles(self, since: int, until: int) -> Iterator[CycleRecord]:
        """Cycles from ``since`` until before ``until``, Unix seconds, the oldest first, without their nodes."""
        with self._reading() as (connection, lists):
            where = "WHERE taken_at >= ? AND taken_at < ? ORDER BY taken_at, number"
            yield from ledger_cycles.read(connection, lists, where, (since, until))

    def with_nodes(self, since: int, until: int) -> Iterator[CycleRecord]:
        """The same with their nodes."""
        with self._reading() as (connection, lists):
            where = "WHERE taken_at >= ? AND taken_at < ? ORDER BY taken_at, number"
            nodes = Nodes(connection, lists)
            for record in ledger_cycles.read(connection, lists, where, (since, until)):
                yield replace(record, nodes=nodes.read(record.number))

    def last_complete(self, since: int, until: int) -> Optional[CycleRecord]:
        """The last complete cycle from ``since`` until before ``until``, with its nodes; None if there is none."""
        where = "WHERE complete AND NOT imported AND taken_at >= ? AND taken_at < ? ORDER BY taken_at DESC LIMIT 1"
        return self._one(where, (since, until))

    def cycle(self, number: int) -> Optional[CycleRecord]:
        """Cycle of that number, complete or not, with its nodes; None if there is none."""
        return self._one("WHERE number = ?", (number,))

    def cycle_at(self, until: int) -> Optional[CycleRecord]:
        """The last cycle at or before those Unix seconds, complete or not, with its nodes; None if there is none."""
        return self._one("WHERE taken_at <= ? ORDER BY taken_at DESC, number DESC LIMIT 1", (until,))

    def latest(self) -> Optional[CycleRecord]:
        """The last cycle, complete or not, with its nodes; None if there is none."""
        # A cycle later than the one recorded last had a clock that was ahead.
        last = "SELECT taken_at FROM cycles WHERE NOT imported ORDER BY number DESC LIMIT 1"
        return self._one(
            f"WHERE imported OR taken_at <= ({last}) ORDER BY taken_at DESC, number DESC LIMIT 1", ()
        )

    def node_history(self, node: str, since: int, until: int) -> tuple[NodeMoment, ...]:
        """What a node held in each cycle from ``since`` until before ``until`` that knows it, the oldest first."""
        with self._reading() as (connection, lists):
            found = Nodes(connection, lists).history(node, since, until)
            return tuple(NodeMoment(number, taken_at, record) for number, taken_at, record in found)

    def known(self, groups: Iterable[str]) -> Known:
        """What is known of the run times of these groups; nothing while there is no ledger."""
        with errors_of(self.path):
            if not self.path.exists():
                return Known()
        # A cycle asks before it brings an older file up to date.
        with self._reading(at_once=True, oldest=ledger_known.SINCE_VERSION) as (connection, lists):
            return ledger_known.known(connection, lists, groups)

    def series(self, since: int, until: int, points: int = 500) -> Series:
        """Figures for about ``points`` points; see `sharectl.core.ledger_series.layout`."""
        with self._reading() as (connection, lists):
            return ledger_series.series(connection, lists, since, until, points)

    def span(self) -> Optional[tuple[int, int]]:
        """Unix seconds of the first and the last cycle; None if there is none."""
        with self._reading() as (connection, _):
            first, last = connection.execute("SELECT min(taken_at), max(taken_at) FROM cycles").fetchone()
            return None if first is None else (int(first), int(last))

    def _record(self, record: CycleRecord, snapshot: Snapshot) -> int:
        with (
            errors_of(self.path),
            contextlib.closing(open_to_write(self.path, self.busy_seconds)) as connection,
        ):
            lists = Lists(connection)
            with transaction(connection):
                number = ledger_cycles.write(connection, lists, record)
                Nodes(connection, lists).write(number, record)
                if record.complete:
                    ledger_known.learn(connection, lists, snapshot)
                ledger_rollups.refresh(connection, record.taken_at, record.taken_at + 1)
                prune(connection, self.keep)
            shrink(connection, self.keep)
            return number

    def _one(self, where: str, values: tuple[int, ...]) -> Optional[CycleRecord]:
        with self._reading() as (connection, lists):
            for record in ledger_cycles.read(connection, lists, where, values):
                return replace(record, nodes=Nodes(connection, lists).read(record.number))
            return None

    @contextlib.contextmanager
    def _reading(
        self, *, at_once: bool = False, oldest: int = VERSION
    ) -> Iterator[tuple[sqlite3.Connection, Lists]]:
        with (
            errors_of(self.path),
            contextlib.closing(
                open_to_read(self.path, self.busy_seconds, at_once=at_once, oldest=oldest)
            ) as connection,
        ):
            # One transaction: what a cycle adds or removes meanwhile is seen whole or not at all.
            connection.execute("BEGIN")
            try:
                yield connection, Lists(connection)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise StateError(
                    f"{self.path}: what is in it cannot be read: {error}; see `sharectl ledger check`"
                ) from error
