"""``ledger/ledger.sqlite`` in the state directory: every cycle, to be explained, replayed and drawn.

What the ledger lets go of: the oldest first, some of it a cycle.

Deleting frees pages inside the file, and new cycles use them; `PRAGMA incremental_vacuum` gives a
bounded number of them back to the disk. A full VACUUM would write the whole file anew, which takes
minutes and as much room again; automatic vacuum in full would move pages at each cycle for nothing.

What is in a ledger, and whether it is in order.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import isclose
from pathlib import Path
from typing import Any, Optional

from sharectl.errors import StateError
from sharectl.ledger import cycles as ledger_cycles
from sharectl.ledger import sums
from sharectl.ledger.database import (
    BUSY_SECONDS,
    PLACE,
    VERSION,
    CorruptError,
    Lists,
    errors_of,
    open_to_read,
    open_to_write,
    remedy_of,
    set_aside,
    transaction,
)
from sharectl.ledger.nodes import CYCLES_A_CHAIN, Nodes, first_cycle, remove_before
from sharectl.ledger.series import DAY_SECONDS, Series
from sharectl.model import Snapshot
from sharectl.plan.plan import Known
from sharectl.plan.records import CycleRecord, NodeRecord

PAGES_A_TIME = 4096
"""Pages that are given back at most when a cycle is added."""


@dataclass(frozen=True)
class Keep:
    """What is kept."""

    days: int = 730
    max_bytes: int = 2 * 2**30
    """Largest size of the file; what nodes held goes first, then whole cycles."""
    cycles_a_time: int = 200
    """So many cycles go at most when one is added."""
    doubted_cycles: int = 50
    """Age is told from the cycle so many before the newest: a clock that is wrong for some hours removes nothing."""


KEEP_DEFAULT = Keep()


def prune(connection: sqlite3.Connection, keep: Keep) -> None:
    """Remove what is too old or too much, within a transaction."""
    now = connection.execute(
        "SELECT min(taken_at) FROM (SELECT taken_at FROM cycles ORDER BY number DESC LIMIT ?)",
        (keep.doubted_cycles,),
    ).fetchone()[0]
    if now is None:
        return
    horizon = now - keep.days * DAY_SECONDS
    _remove_cycles(connection, horizon, keep.cycles_a_time)
    connection.execute("DELETE FROM remaining_times WHERE day < ?", (horizon // DAY_SECONDS,))
    if used_bytes(connection) > keep.max_bytes and not _remove_nodes(
        connection, keep.cycles_a_time
    ):
        _remove_cycles(connection, now, keep.cycles_a_time)


def shrink(connection: sqlite3.Connection, keep: Keep) -> None:
    """Give free pages back to the disk where the file is too large or an eighth of it is free; no transaction is open."""
    pages, free, size = _pages(connection)
    if free and (pages * size > keep.max_bytes or free * 8 > pages):
        # Each step of this statement gives back one page, and `execute` makes one step of what has
        # no columns.
        connection.executescript(f"PRAGMA incremental_vacuum({PAGES_A_TIME})")


def used_bytes(connection: sqlite3.Connection) -> int:
    """Bytes of the file that hold something."""
    pages, free, size = _pages(connection)
    return (pages - free) * size


def _pages(connection: sqlite3.Connection) -> tuple[int, int, int]:
    pages, free, size = (
        int(connection.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size")
    )
    return pages, free, size


def _remove_nodes(connection: sqlite3.Connection, most: int) -> bool:
    """Whether any blocks of nodes were left to remove: those of the oldest cycles go."""
    first = first_cycle(connection)
    newest = connection.execute("SELECT max(number) FROM cycles").fetchone()[0]
    return (
        first is not None
        and remove_before(connection, min(first + max(most, CYCLES_A_CHAIN), newest)) > 0
    )


def _remove_cycles(connection: sqlite3.Connection, before: int, most: int) -> None:
    rows = connection.execute(
        "SELECT number, taken_at FROM cycles WHERE taken_at < ? ORDER BY taken_at, number LIMIT ?",
        (before, most),
    ).fetchall()
    for number, _ in rows:
        for table, column in (
            ("group_cycles", "cycle"),
            ("group_sizes", "cycle"),
            ("cycles", "number"),
        ):
            connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (number,))  # noqa: S608 - ours
    if rows:
        first = "SELECT coalesce(min(number), 0) FROM cycles WHERE NOT imported"
        remove_before(connection, connection.execute(first).fetchone()[0])
        left = connection.execute("SELECT min(taken_at) FROM cycles").fetchone()[0]
        for table in ("pool_rollups", "group_rollups", "size_rollups"):
            # A day that is only partly gone keeps its sums until it is.
            connection.execute(
                f"DELETE FROM {table} WHERE start < ?",  # noqa: S608 - ours
                (left // DAY_SECONDS * DAY_SECONDS,),
            )


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

    def __init__(
        self, path: Path, keep: Keep = KEEP_DEFAULT, busy_seconds: float = BUSY_SECONDS
    ) -> None:
        self.path = path
        self.keep = keep
        self.busy_seconds = busy_seconds

    def record(self, record: CycleRecord, snapshot: Snapshot) -> int:
        """Number under which a cycle is kept from now on, with its nodes and what its snapshot tells of jobs.

        A ledger that is broken is moved aside under a name with the date, and a new one is begun:
        the cycle is kept.
        """
        try:
            return self._record(record, snapshot)
        except CorruptError as error:
            aside = set_aside(self.path, record.taken_at)
            self._record(record, snapshot)
            raise StateError(
                f"{error.fact}: moved to {aside}, and a new ledger was begun, which has this "
                "cycle; docs/ledger.md tells how "
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
        where = (
            "WHERE complete AND NOT imported AND taken_at >= ? AND taken_at < ? ORDER BY taken_at "
            "DESC LIMIT 1"
        )
        return self._one(where, (since, until))

    def cycle(self, number: int) -> Optional[CycleRecord]:
        """Cycle of that number, complete or not, with its nodes; None if there is none."""
        return self._one("WHERE number = ?", (number,))

    def cycle_at(self, until: int) -> Optional[CycleRecord]:
        """The last cycle at or before those Unix seconds, complete or not, with its nodes; None if there is none."""
        return self._one(
            "WHERE taken_at <= ? ORDER BY taken_at DESC, number DESC LIMIT 1", (until,)
        )

    def latest(self) -> Optional[CycleRecord]:
        """The last cycle, complete or not, with its nodes; None if there is none."""
        # A cycle later than the one recorded last had a clock that was ahead.
        last = "SELECT taken_at FROM cycles WHERE NOT imported ORDER BY number DESC LIMIT 1"
        return self._one(
            f"WHERE imported OR taken_at <= ({last}) ORDER BY taken_at DESC, number DESC LIMIT 1",
            (),
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
        with self._reading(at_once=True, oldest=ledger_cycles.SINCE_VERSION) as (connection, lists):
            return ledger_cycles.known(connection, lists, groups)

    def series(self, since: int, until: int, points: int = 500) -> Series:
        """Figures for about ``points`` points; see `sharectl.ledger.series.layout`."""
        with self._reading() as (connection, lists):
            return sums.series(connection, lists, since, until, points)

    def span(self) -> Optional[tuple[int, int]]:
        """Unix seconds of the first and the last cycle; None if there is none."""
        with self._reading() as (connection, _):
            first, last = connection.execute(
                "SELECT min(taken_at), max(taken_at) FROM cycles"
            ).fetchone()
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
                    ledger_cycles.learn(connection, lists, snapshot)
                sums.refresh(connection, record.taken_at, record.taken_at + 1)
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
                    f"{self.path}: what is in it cannot be read: {error}; see `sharectl ledger "
                    "check`"
                ) from error


MOST_PROBLEMS = 20
LAST_CYCLES = 200
"""Cycles that are read whole unless all are to be."""

_BROKEN = (
    "the file is damaged {places}, named below: figures of old cycles may be wrong or missing, "
    "the plans of cycles "
    "are not; {remedy}. To begin a new one now, move the file and its -wal and -shm away while "
    "no cycle runs"
)

_COUNTS = {
    "cycles": "SELECT count(*) FROM cycles",
    "complete_cycles": "SELECT count(*) FROM cycles WHERE complete",
    "imported_cycles": "SELECT count(*) FROM cycles WHERE imported",
    "first_at": "SELECT min(taken_at) FROM cycles",
    "last_at": "SELECT max(taken_at) FROM cycles",
    "groups": "SELECT count(DISTINCT group_id) FROM group_rollups",
    "nodes": "SELECT count(*) FROM nodes",
    "first_cycle_with_nodes": "SELECT min(id) / 65536 FROM node_blocks",
    "schema_version": "PRAGMA user_version",
    "pages": "PRAGMA page_count",
    "free_pages": "PRAGMA freelist_count",
    "page_bytes": "PRAGMA page_size",
}


def info(ledger: Ledger) -> dict[str, Any]:
    """Numbers of a ledger, by name. Raises StateError."""
    with errors_of(ledger.path), contextlib.closing(open_to_read(ledger.path)) as connection:
        said = {name: connection.execute(query).fetchone()[0] for name, query in _COUNTS.items()}
    pages, free, size = (said.pop(name) for name in ("pages", "free_pages", "page_bytes"))
    return {
        "path": str(ledger.path),
        **said,
        "bytes": pages * size,
        "free_bytes": free * size,
        "keep_days": ledger.keep.days,
        "max_bytes": ledger.keep.max_bytes,
        "broken": [str(path) for path in broken_ones(ledger.path)],
    }


def broken_ones(path: Path) -> list[Path]:
    """Ledgers that were put aside since they were broken, the oldest first."""
    found = path.parent.glob(f"{path.name}.broken-*")
    return sorted(one for one in found if not one.name.endswith(("-wal", "-shm")))


def problems(ledger: Ledger, *, every_cycle: bool) -> list[str]:
    """What is not in order, one line each, the first `MOST_PROBLEMS`. Raises StateError."""
    with errors_of(ledger.path), contextlib.closing(open_to_read(ledger.path)) as connection:
        found = [f"SQLite: {said}" for said in _integrity(connection)]
        if found:
            found.insert(
                0, _BROKEN.format(places=_places(len(found)), remedy=remedy_of(ledger.path))
            )
        else:
            connection.execute("BEGIN")
            for part in (
                _rollups(connection),
                _cycles(connection, None if every_cycle else LAST_CYCLES),
            ):
                found += [line for line, _ in zip(part, range(MOST_PROBLEMS))]
    return [f"{ledger.path}: {line}" for line in found[: MOST_PROBLEMS + 1]]


def _places(count: int) -> str:
    return (
        "at one place"
        if count == 1
        else f"at {count} places{' or more' if count >= MOST_PROBLEMS else ''}"
    )


def _integrity(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute(f"PRAGMA integrity_check({MOST_PROBLEMS})").fetchall()
    return [said for (said,) in rows if said != "ok"]


def _rollups(connection: sqlite3.Connection) -> Iterator[str]:
    """Days whose sums are not those of their cycles; of the oldest day some cycles may be gone already."""
    whole = "SELECT min(taken_at), max(taken_at) FROM cycles"
    first, last = connection.execute(whole).fetchone()
    if first is None:
        return
    since = (first // DAY_SECONDS + 1) * DAY_SECONDS
    until = (last // DAY_SECONDS + 1) * DAY_SECONDS
    made, kept = (
        sums.sums(connection, since, until, DAY_SECONDS, level) for level in (0, DAY_SECONDS)
    )
    for of_cycles, of_rollups in zip(made, kept):
        there = {_key(row): row for row in of_rollups}
        for row in of_cycles:
            if not _same(row, there.pop(_key(row), ())):
                yield f"sums of the day that begins at {row[0]} are not those of its cycles"
        for start, *_ in there.values():
            yield f"there are sums of the day that begins at {start}, which has no such cycles"


def _key(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Bucket, and what else a row is known by: as many columns as stand before the sums."""
    columns = {5: 3, 13: 1, 17: 2}
    return row[: columns[len(row)]]


def _same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return len(one) == len(other) and all(
        a == b or (a is not None and b is not None and isclose(a, b, rel_tol=1e-9, abs_tol=1e-6))
        for a, b in zip(one, other)
    )


def _cycles(connection: sqlite3.Connection, most: Optional[int]) -> Iterator[str]:
    lists = Lists(connection)
    nodes = Nodes(connection, lists)
    numbers = "SELECT number FROM cycles ORDER BY number DESC LIMIT ?"
    rows = connection.execute(numbers, (-1 if most is None else most,)).fetchall()
    for (number,) in reversed(rows):
        try:
            for record in ledger_cycles.read(connection, lists, "WHERE number = ?", (number,)):
                _read_nodes(nodes, number, complete=record.complete)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            yield f"cycle {number} cannot be read: {error}"


def _read_nodes(nodes: Nodes, number: int, *, complete: bool) -> None:
    if nodes.read(number) and not complete:
        raise ValueError("it was not complete, and has nodes")
