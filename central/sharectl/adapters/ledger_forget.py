"""Imported rows out of the ledger again; what a cycle recorded is never touched."""

from __future__ import annotations

import contextlib
import sqlite3
from dataclasses import dataclass

from sharectl.adapters import ledger_rollups
from sharectl.adapters.ledger import Ledger
from sharectl.adapters.ledger_file import errors_of, open_to_read, open_to_write, transaction
from sharectl.adapters.ledger_import import CYCLES_A_TIME
from sharectl.adapters.ledger_retention import shrink

_MEANT = "imported AND taken_at >= ? AND taken_at < ?"


@dataclass
class Forgotten:
    """What was removed, or would be."""

    cycles: int = 0
    rows: int = 0


def imported(ledger: Ledger, since: int, until: int) -> Forgotten:
    """How much of it is imported, from ``since`` until before ``until``, Unix seconds. Raises StateError."""
    rows = f"SELECT count(*) FROM cycles JOIN group_cycles ON cycle = number WHERE {_MEANT}"  # noqa: S608 - ours
    cycles = f"SELECT count(*) FROM cycles WHERE {_MEANT}"  # noqa: S608 - ours
    with errors_of(ledger.path), contextlib.closing(open_to_read(ledger.path)) as connection:
        connection.execute("BEGIN")
        return Forgotten(*(connection.execute(one, (since, until)).fetchone()[0] for one in (cycles, rows)))


def forget_imported(ledger: Ledger, since: int, until: int) -> Forgotten:
    """What was removed: all imported cycles from ``since`` until before ``until``, Unix seconds. Raises StateError."""
    done = Forgotten()
    if not imported(ledger, since, until).cycles:
        return done
    with errors_of(ledger.path), contextlib.closing(open_to_write(ledger.path)) as connection:
        while _remove(connection, since, until, done):
            pass
        shrink(connection, ledger.keep)
    return done


def _remove(connection: sqlite3.Connection, since: int, until: int, done: Forgotten) -> bool:
    """Whether there was any of it left to remove: some, so that a cycle of the pool does not wait for all."""
    with transaction(connection):
        found = connection.execute(
            f"SELECT number, taken_at FROM cycles WHERE {_MEANT} ORDER BY taken_at LIMIT ?",  # noqa: S608 - ours
            (since, until, CYCLES_A_TIME),
        ).fetchall()
        for number, _ in found:
            done.rows += connection.execute("DELETE FROM group_cycles WHERE cycle = ?", (number,)).rowcount
            connection.execute("DELETE FROM group_sizes WHERE cycle = ?", (number,))
            connection.execute("DELETE FROM cycles WHERE number = ?", (number,))
        if found:
            ledger_rollups.renew(connection, [taken_at for _, taken_at in found])
        done.cycles += len(found)
        return bool(found)
