"""What the ledger lets go of: the oldest first, some of it a cycle.

Deleting frees pages inside the file, and new cycles use them; `PRAGMA incremental_vacuum` gives a bounded number of them
back to the disk. A full VACUUM would write the whole file anew, which takes minutes and as much room again; automatic
vacuum in full would move pages at each cycle for nothing.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from sharectl.adapters.ledger_chains import first_cycle, remove_before
from sharectl.core.ledger_series import DAY_SECONDS

CYCLES_A_TIME = 200
"""So many cycles go at most when one is added."""

PAGES_A_TIME = 4096
DOUBTED_CYCLES = 50
"""Age is told from the cycle so many before the newest: a clock that is wrong for some hours removes nothing."""


@dataclass(frozen=True)
class Keep:
    """What is kept."""

    days: int = 730
    max_bytes: int = 2 * 2**30
    """Largest size of the file; what nodes held goes first, then whole cycles."""


KEEP_DEFAULT = Keep()


def prune(connection: sqlite3.Connection, keep: Keep) -> None:
    """Remove what is too old or too much, within a transaction."""
    now = connection.execute(
        "SELECT min(taken_at) FROM (SELECT taken_at FROM cycles ORDER BY number DESC LIMIT ?)",
        (DOUBTED_CYCLES,),
    ).fetchone()[0]
    if now is None:
        return
    horizon = now - keep.days * DAY_SECONDS
    _remove_cycles(connection, horizon)
    connection.execute("DELETE FROM remaining_times WHERE day < ?", (horizon // DAY_SECONDS,))
    if used_bytes(connection) > keep.max_bytes and not _remove_nodes(connection):
        _remove_cycles(connection, now)


def shrink(connection: sqlite3.Connection, keep: Keep) -> None:
    """Give free pages back to the disk where the file is too large or an eighth of it is free; no transaction is open."""
    pages, free, size = _pages(connection)
    if free and (pages * size > keep.max_bytes or free * 8 > pages):
        connection.execute(f"PRAGMA incremental_vacuum({PAGES_A_TIME})").fetchall()


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


def _remove_nodes(connection: sqlite3.Connection) -> bool:
    """Whether any blocks of nodes were left to remove: those of the oldest cycles go."""
    first = first_cycle(connection)
    newest = connection.execute("SELECT max(number) FROM cycles").fetchone()[0]
    return first is not None and remove_before(connection, min(first + CYCLES_A_TIME, newest)) > 0


def _remove_cycles(connection: sqlite3.Connection, before: int) -> None:
    rows = connection.execute(
        "SELECT number, taken_at FROM cycles WHERE taken_at < ? ORDER BY taken_at, number LIMIT ?",
        (before, CYCLES_A_TIME),
    ).fetchall()
    for number, _ in rows:
        for table, column in (("group_cycles", "cycle"), ("group_sizes", "cycle"), ("cycles", "number")):
            connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (number,))  # noqa: S608 - ours
    if rows:
        first = "SELECT coalesce(min(number), 0) FROM cycles WHERE NOT imported"
        remove_before(connection, connection.execute(first).fetchone()[0])
        day = rows[-1][1] // DAY_SECONDS * DAY_SECONDS
        for table in ("pool_rollups", "group_rollups", "size_rollups"):
            # The day that is only partly gone keeps its sums until it is.
            connection.execute(f"DELETE FROM {table} WHERE start < ?", (day,))  # noqa: S608 - ours
