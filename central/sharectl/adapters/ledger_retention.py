"""What the ledger lets go of: the oldest first, some of it a cycle.

Deleting frees pages inside the file, and new cycles use them; `PRAGMA incremental_vacuum` gives a bounded number of them
back to the disk. A full VACUUM would write the whole file anew, which takes minutes and as much room again; automatic
vacuum in full would move pages at each cycle for nothing.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from sharectl.adapters.ledger_chains import CYCLES_A_CHAIN, first_cycle, remove_before
from sharectl.core.ledger_series import DAY_SECONDS

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
    if used_bytes(connection) > keep.max_bytes and not _remove_nodes(connection, keep.cycles_a_time):
        _remove_cycles(connection, now, keep.cycles_a_time)


def shrink(connection: sqlite3.Connection, keep: Keep) -> None:
    """Give free pages back to the disk where the file is too large or an eighth of it is free; no transaction is open."""
    pages, free, size = _pages(connection)
    if free and (pages * size > keep.max_bytes or free * 8 > pages):
        # Each step of this statement gives back one page, and `execute` makes one step of what has no columns.
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
    return first is not None and remove_before(connection, min(first + max(most, CYCLES_A_CHAIN), newest)) > 0


def _remove_cycles(connection: sqlite3.Connection, before: int, most: int) -> None:
    rows = connection.execute(
        "SELECT number, taken_at FROM cycles WHERE taken_at < ? ORDER BY taken_at, number LIMIT ?",
        (before, most),
    ).fetchall()
    for number, _ in rows:
        for table, column in (("group_cycles", "cycle"), ("group_sizes", "cycle"), ("cycles", "number")):
            connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (number,))  # noqa: S608 - ours
    if rows:
        first = "SELECT coalesce(min(number), 0) FROM cycles WHERE NOT imported"
        remove_before(connection, connection.execute(first).fetchone()[0])
        left = connection.execute("SELECT min(taken_at) FROM cycles").fetchone()[0]
        for table in ("pool_rollups", "group_rollups", "size_rollups"):
            # A day that is only partly gone keeps its sums until it is.
            connection.execute(f"DELETE FROM {table} WHERE start < ?", (left // DAY_SECONDS * DAY_SECONDS,))  # noqa: S608
