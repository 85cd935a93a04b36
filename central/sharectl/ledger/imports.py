"""Rows of shares_Error.log into the ledger, and out of it again."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Optional

from sharectl.errors import InputError
from sharectl.ledger import cycles, sums
from sharectl.ledger.database import transaction
from sharectl.ledger.error_log import stream
from sharectl.ledger.ledger import Ledger
from sharectl.ledger.retention import shrink
from sharectl.ledger.series import UNKNOWN_SIZE
from sharectl.model import GroupControl, GroupError
from sharectl.plan.records import CycleRecord
from sharectl.times import DAY_SECONDS

CLOCK_ERROR_SECONDS = DAY_SECONDS
"""A row may be so far in the future: clocks of other machines are wrong by hours."""
_CYCLES_A_TIME = 500
"""Cycles of one transaction: a cycle of the pool waits no longer than for these."""


@dataclass
class Imported:
    """Result of an import."""

    rows: int = 0
    """Rows that were read."""
    cycles_added: int = 0
    rows_added: int = 0
    rows_known: int = 0
    """Rows of a time that the ledger has already: its own numbers stay."""
    rows_too_old: int = 0
    """Rows older than what is kept."""
    keep_days_needed: Optional[int] = None
    """``ledger.keep_days`` with which no row would be too old; None without such."""


def bring_in(ledger: Ledger, logs: Sequence[Path], now: int) -> Imported:
    """Add the rows of some logs, none of them twice.

    Raises InputError with all invalid rows of all files, or without a row: then nothing is added.
    Raises StateError if the ledger cannot be written.
    """
    horizon = now - ledger.keep.days * DAY_SECONDS
    done = _checked(logs, now, horizon)
    if done.rows_too_old < done.rows:
        with ledger.writing() as connection:
            for log in logs:
                young = (row for row in stream(log, []) if row[0] >= horizon)
                by_time = groupby(young, key=itemgetter(0))
                looks = ((time, [error for _, error in rows]) for time, rows in by_time)
                while batch := list(islice(looks, _CYCLES_A_TIME)):
                    with transaction(connection):
                        _add(connection, batch, done)
    return done


def forget_imported(ledger: Ledger) -> int:
    """Remove what was imported; returns the number of the cycles. Raises StateError."""
    query = "SELECT number, taken_at FROM cycles WHERE imported ORDER BY taken_at LIMIT ?"
    removed = 0
    ledger.span()  # raises without a ledger
    with ledger.writing() as connection:
        while rows := connection.execute(query, (_CYCLES_A_TIME,)).fetchall():
            with transaction(connection):
                numbers = ((number,) for number, _ in rows)
                connection.executemany("DELETE FROM cycles WHERE number = ?", numbers)
                _renew(connection, [taken_at for _, taken_at in rows])
            removed += len(rows)
        shrink(connection, ledger.keep)
    return removed


def _checked(logs: Sequence[Path], now: int, horizon: int) -> Imported:
    """Counts of the rows before any is added. Raises InputError."""
    done, oldest = Imported(), now
    problems: list[str] = []
    for log in logs:
        if log.is_fifo():
            problems.append(f"{log}: is a pipe, and a log is read twice; write it to a file")
            continue
        try:
            for taken_at, _ in stream(log, problems, now + CLOCK_ERROR_SECONDS):
                done.rows += 1
                done.rows_too_old += taken_at < horizon
                oldest = min(oldest, taken_at)
        except InputError as error:
            problems += error.problems
    if not done.rows and not problems:
        problems = [f"{log}: has no rows: nothing was added" for log in logs]
    if problems:
        raise InputError(problems)
    if done.rows_too_old:
        # A day more: it shall last until the next import.
        done.keep_days_needed = (now - oldest) // DAY_SECONDS + 2
    return done


def _add(
    connection: sqlite3.Connection, batch: Iterable[tuple[int, list[GroupError]]], done: Imported
) -> None:
    times, there = [], "SELECT 1 FROM cycles WHERE taken_at = ?"
    for taken_at, rows in batch:
        is_known = connection.execute(there, (taken_at,)).fetchone() is not None
        errors = {} if is_known else {error.group: error for error in rows}
        if errors:
            cycles.write(connection, _record(taken_at, errors.values()))
            times.append(taken_at)
        done.rows_added += len(errors)
        done.rows_known += len(rows) - len(errors)
    done.cycles_added += len(times)
    _renew(connection, times)


def _record(taken_at: int, errors: Iterable[GroupError]) -> CycleRecord:
    groups, cores_by_size = [], {}
    for error in errors:
        usage = error.usage
        # The seed's law gives setpoint and error. The log has no outputs.
        setpoint_hs06 = usage.power_hs06 - error.error_hs06
        groups.append(GroupControl(error, setpoint_hs06, error.error_hs06, 0.0))
        cores_by_size[error.group] = {1: usage.single_cores, UNKNOWN_SIZE: usage.multi_cores}
    return CycleRecord(
        taken_at,
        0.0,
        complete=True,
        groups=tuple(groups),
        cores_by_size=cores_by_size,
        strategy="",
        imported=True,
    )


def _renew(connection: sqlite3.Connection, times: Iterable[int]) -> None:
    for _, day in groupby(sorted(times), key=lambda time: time // DAY_SECONDS):
        first, *others = day
        sums.renew(connection, first, others[-1] if others else first)
