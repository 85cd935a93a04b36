"""Rows of shares_Error.log into the ledger, and out of it again."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from typing import NamedTuple, Optional

from sharectl.errors import InputError
from sharectl.files.packed import LogSource
from sharectl.ledger import cycles, sums
from sharectl.ledger.database import transaction
from sharectl.ledger.error_log import LogRow, stream
from sharectl.ledger.ledger import Ledger
from sharectl.ledger.retention import shrink
from sharectl.ledger.series import UNKNOWN_SIZE
from sharectl.model import GroupControl, GroupError
from sharectl.plan.records import CycleRecord
from sharectl.times import DAY_SECONDS

CLOCK_ERROR_SECONDS = DAY_SECONDS
"""A row may be so far in the future: clocks of other machines are wrong by hours."""
_ROWS_A_TIME = 5000
_CYCLES_A_TIME = 500
"""Rows and cycles of one transaction: a cycle of the pool waits no longer than for these."""
_IMPORTED = "imported AND taken_at >= ? AND taken_at < ?"


@dataclass
class Imported:
    """Result of an import."""

    rows: int = 0
    """Rows that were read."""
    cycles_added: int = 0
    rows_added: int = 0
    rows_known: int = 0
    """Rows of a time and group that the ledger has already: its own numbers stay."""
    rows_too_old: int = 0
    """Rows older than what is kept."""
    keep_days_needed: Optional[int] = None
    """``ledger.keep_days`` with which no row would be too old; None without such."""
    without_rows: list[str] = field(default_factory=list)
    """Names of files without rows."""


class Forgotten(NamedTuple):
    """Amount of imported rows that were removed, or would be."""

    cycles: int
    rows: int


def bring_in(ledger: Ledger, sources: Sequence[LogSource], now: int) -> Imported:
    """Add the rows of some logs, none of them twice.

    Raises InputError with all invalid rows of all files, or without a row: then nothing is added.
    Raises StateError if the ledger cannot be written.
    """
    horizon = now - ledger.keep.days * DAY_SECONDS
    done = _checked(sources, now, horizon)
    if done.rows_too_old < done.rows:
        with ledger.writing() as connection:
            for source in sources:
                young = (row for row in stream(source, []) if row.taken_at >= horizon)
                while batch := list(islice(young, _ROWS_A_TIME)):
                    with transaction(connection):
                        _add(connection, batch, done)
    return done


def imported(ledger: Ledger, since: int, until: int) -> Forgotten:
    """Amount of imported rows from ``since`` until before ``until``, Unix seconds."""
    query = f"SELECT count(*), coalesce(sum(groups), 0) FROM cycles WHERE {_IMPORTED}"
    with ledger.reading() as connection:
        return Forgotten(*connection.execute(query, (since, until)).fetchone())


def forget_imported(ledger: Ledger, since: int, until: int) -> Forgotten:
    """Remove imported rows from ``since`` until before ``until``, Unix seconds."""
    done = imported(ledger, since, until)
    if done.cycles:
        query = f"SELECT number, taken_at FROM cycles WHERE {_IMPORTED} ORDER BY taken_at LIMIT ?"
        with ledger.writing() as connection:
            while rows := connection.execute(query, (since, until, _CYCLES_A_TIME)).fetchall():
                with transaction(connection):
                    _remove(connection, [number for number, _ in rows])
                    _renew(connection, [taken_at for _, taken_at in rows])
            shrink(connection, ledger.keep)
    return done


def _checked(sources: Sequence[LogSource], now: int, horizon: int) -> Imported:
    """Counts of the rows before any is added. Raises InputError."""
    done, oldest = Imported(), now
    problems: list[str] = []
    for source in sources:
        before = done.rows
        try:
            for row in stream(source, problems):
                if row.taken_at > now + CLOCK_ERROR_SECONDS:
                    problems.append(
                        f"{source.name}:{row.line}: T0 {row.taken_at} is in the future: now it is "
                        f"{now}; correct or remove the row"
                    )
                done.rows += 1
                done.rows_too_old += row.taken_at < horizon
                oldest = min(oldest, row.taken_at)
        except InputError as error:
            problems += error.problems
        if done.rows == before:
            done.without_rows.append(source.name)
    if problems:
        raise InputError(problems)
    if not done.rows:
        raise InputError([f"{name}: has no rows: nothing was added" for name in done.without_rows])
    if done.rows_too_old:
        # A day more: it shall last until the next import.
        done.keep_days_needed = (now - oldest) // DAY_SECONDS + 2
    return done


def _add(connection: sqlite3.Connection, batch: Sequence[LogRow], done: Imported) -> None:
    """Add groups that are not there, to the imported cycle of their time if there is one."""
    times = []
    for taken_at, rows in groupby(batch, key=lambda row: row.taken_at):
        there = list(cycles.read(connection, "WHERE taken_at = ?", (taken_at,), with_nodes=False))
        names = {control.group for record in there for control in record.groups}
        fresh: dict[str, GroupError] = {}
        for row in rows:
            fresh.setdefault(row.error.group, row.error)
            done.rows_known += row.error.group in names or fresh[row.error.group] is not row.error
        for name in names & fresh.keys():
            del fresh[name]
        if fresh:
            times.append(taken_at)
            done.rows_added += len(fresh)
            earlier = [record for record in there if record.imported]
            done.cycles_added += not earlier
            _remove(connection, [record.number for record in earlier])
            cycles.write(connection, _record(taken_at, earlier, fresh.values()))
    _renew(connection, times)


def _record(
    taken_at: int, earlier: Sequence[CycleRecord], errors: Iterable[GroupError]
) -> CycleRecord:
    record = CycleRecord(taken_at, 0.0, complete=True, strategy="", imported=True)
    record, errors = next(iter(earlier), record), list(errors)
    held = {
        error.group: {1: error.usage.single_cores, UNKNOWN_SIZE: error.usage.multi_cores}
        for error in errors
    }
    groups = (*record.groups, *map(_control, errors))
    return replace(record, groups=groups, cores_by_size={**record.cores_by_size, **held})


def _control(error: GroupError) -> GroupControl:
    # The seed's law gives setpoint and error. The log has no outputs.
    return GroupControl(error, error.usage.power_hs06 - error.error_hs06, error.error_hs06, 0.0)


def _remove(connection: sqlite3.Connection, numbers: Iterable[int]) -> None:
    query = "DELETE FROM cycles WHERE number = ?"
    connection.executemany(query, ((number,) for number in numbers))


def _renew(connection: sqlite3.Connection, times: Iterable[int]) -> None:
    for _, day in groupby(sorted(times), key=lambda time: time // DAY_SECONDS):
        first, *others = day
        sums.renew(connection, first, others[-1] if others else first)
