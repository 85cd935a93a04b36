"""Retention of the ledger: what goes when a cycle is added."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sharectl.settings import setting
from sharectl.times import DAY_SECONDS, HOUR_SECONDS

if TYPE_CHECKING:
    import sqlite3

HALF_LIFE_DAYS = 14
"""Run times of the newest day have weight 1, those of a day two weeks before it a half."""
WINDOW_DAYS = 90
"""Run times of older days have no weight."""
_USED_BYTES = """SELECT (page_count - freelist_count) * page_size
    FROM pragma_page_count, pragma_freelist_count, pragma_page_size"""


@dataclass(frozen=True)
class Keep:
    """Retention in `ledger/ledger.sqlite` (docs/ledger.md)."""

    days: int = setting(730, least=1, most=36500, key="keep_days")
    """Age at which cycles are removed."""
    nodes_days: int = 60
    """Age at which nodes, jobs and targets are removed; figures of groups stay. Half the file is of
    these, and `max_bytes` removes them first where it has to."""
    max_bytes: int = setting(2 * 2**30, least=2**20, most=2**44)
    """Largest file: beyond it the oldest node details go, then cycles."""
    cycles_a_time: int = 200
    """Cycles that go at most when one is added."""
    doubted_cycles: int = 50
    """Age counts from the cycle so many before the newest: a wrong clock removes nothing."""


def prune(connection: sqlite3.Connection, keep: Keep) -> None:
    """Remove what is too old or too much, within a transaction."""
    newest = "SELECT taken_at FROM cycles ORDER BY number DESC LIMIT ?"
    query = f"SELECT min(taken_at) FROM ({newest})"
    now = connection.execute(query, (keep.doubted_cycles,)).fetchone()[0]
    _remove(connection, keep, "cycles", now - keep.days * DAY_SECONDS)
    _remove(connection, keep, "nodes", now - keep.nodes_days * DAY_SECONDS)
    if _used_bytes(connection) > keep.max_bytes:
        removed = _remove(connection, keep, "nodes", now)
        if removed < keep.cycles_a_time and _used_bytes(connection) > keep.max_bytes:
            _remove(connection, keep, "cycles", now)
    hour = f"(SELECT min(taken_at) FROM cycles) / {HOUR_SECONDS} * {HOUR_SECONDS}"
    connection.execute(f"DELETE FROM sums WHERE start < {hour}")
    oldest_day = now // DAY_SECONDS - WINDOW_DAYS
    connection.execute("DELETE FROM remaining_times WHERE day < ?", (oldest_day,))


def _remove(connection: sqlite3.Connection, keep: Keep, table: str, before: int) -> int:
    oldest = f"SELECT rowid FROM {table} WHERE taken_at < ? ORDER BY taken_at, rowid LIMIT ?"
    query = f"DELETE FROM {table} WHERE rowid IN ({oldest})"
    return connection.execute(query, (before, keep.cycles_a_time)).rowcount


def _used_bytes(connection: sqlite3.Connection) -> int:
    """Bytes of the file without its free pages, which new cycles use."""
    return int(connection.execute(_USED_BYTES).fetchone()[0])
