"""Rows of shares_Error.log into the ledger: what was there before the ledger was."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as altered
from itertools import groupby
from typing import Optional

from sharectl.adapters import ledger_cycles, ledger_rollups, shares_error_log
from sharectl.adapters.ledger import Ledger
from sharectl.adapters.ledger_file import errors_of, open_to_write, transaction
from sharectl.adapters.ledger_names import Lists
from sharectl.adapters.log_source import LogSource
from sharectl.adapters.shares_error_log import FIGURES, LogRow
from sharectl.core.cycle_record import CycleRecord
from sharectl.core.groups import GROUP_NAME
from sharectl.core.ledger_series import DAY_SECONDS
from sharectl.core.model import GroupControl, GroupError
from sharectl.errors import InputError

CYCLES_A_TIME = 500
"""Cycles that one transaction adds: a cycle of the pool waits no longer than for these."""

CLOCK_ERROR_SECONDS = DAY_SECONDS
"""A row may be so far in the future: clocks of other machines are wrong by hours."""

MOST_NAMED = 20
"""Rows that differ are named one by one, at most so many."""

_MOST_NUMBER = 2**53
_MOST_TIME = 253_402_300_799
_SIGNED = frozenset({"DC", "DHS", "DPHS"})


@dataclass
class Imported:
    """What an import did."""

    rows: int = 0
    """Rows that were read."""
    cycles_added: int = 0
    rows_added: int = 0
    rows_known: int = 0
    """Rows that the ledger had already."""
    rows_differing: int = 0
    """Rows of a cycle and group that the ledger has with other numbers: what it has stays."""
    differing: list[str] = field(default_factory=list)
    """Which they are and in what they differ, the first `MOST_NAMED`."""
    rows_too_old: int = 0
    """Rows older than what is kept."""
    keep_days_needed: Optional[int] = None
    """``ledger.keep_days`` with which none would have been too old; None if none was."""
    without_rows: list[str] = field(default_factory=list)
    """Names of files that have none."""


@dataclass(frozen=True)
class _Batch:
    """Where a batch is from and goes to."""

    connection: sqlite3.Connection
    lists: Lists
    name: str
    """Of the file."""
    horizon: int
    """Unix seconds: what is older is left out."""


def bring_in(ledger: Ledger, sources: Sequence[LogSource], now: int) -> Imported:
    """What became of the rows of some logs; none is added twice, however often it is brought in.

    Raises
    ------
    InputError
        If any row of any file is not as it should be, or no file has any: then nothing is brought in.
    StateError
        If the ledger cannot be written.
    """
    done = Imported()
    horizon = now - ledger.keep.days * DAY_SECONDS
    if not _check(sources, now, horizon, done):
        return done
    done.rows = done.rows_too_old = 0
    with errors_of(ledger.path), contextlib.closing(open_to_write(ledger.path)) as connection:
        lists = Lists(connection)
        for source in sources:
            to = _Batch(connection, lists, source.name, horizon)
            for batch in _batches(_rows(source, [])):
                with transaction(connection):
                    _add(to, batch, done)
    return done


def _check(sources: Sequence[LogSource], now: int, horizon: int, done: Imported) -> bool:
    """Whether any row is young enough to be kept; ``done`` is told of the others."""
    problems: list[str] = []
    oldest = now
    for source in sources:
        before = done.rows
        try:
            for row in _rows(source, problems):
                problems += _wrong(source.name, row, now)
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
    return done.rows_too_old < done.rows


def _rows(source: LogSource, problems: list[str]) -> Iterator[LogRow]:
    for row in shares_error_log.stream(source, problems):
        yield row._replace(error=altered(row.error, group=row.error.group.lower()))


def _wrong(name: str, row: LogRow, now: int) -> Iterator[str]:
    where = f"{name}:{row.line}"
    if not 0 < row.taken_at <= _MOST_TIME:
        yield f"{where}: T0 {row.taken_at} is no Unix time up to the year 9999; correct or remove the row"
    elif row.taken_at > now + CLOCK_ERROR_SECONDS:
        yield f"{where}: T0 {row.taken_at} is in the future: now it is {now}; correct or remove the row"
    if not all(GROUP_NAME.fullmatch(part) for part in row.error.group.split(".")):
        yield f"{where}: {row.error.group[:64]!r} is no name of a group: letters, digits, _ and -; remove the row"
    for column, number in zip(FIGURES, shares_error_log.figures(row.error)):
        if abs(number) > _MOST_NUMBER or (number < 0 and column not in _SIGNED):
            least = "" if column in _SIGNED else " or below 0"
            yield f"{where}: {column} {str(number)[:32]} is out of range: beyond 2^53{least}; correct or remove the row"


def _batches(rows: Iterator[LogRow]) -> Iterator[list[tuple[int, list[LogRow]]]]:
    batch: list[tuple[int, list[LogRow]]] = []
    for taken_at, of_cycle in groupby(rows, key=lambda row: row.taken_at):
        batch.append((taken_at, list(of_cycle)))
        if len(batch) == CYCLES_A_TIME:
            yield batch
            batch = []
    if batch:
        yield batch


def _add(to: _Batch, batch: Sequence[tuple[int, list[LogRow]]], done: Imported) -> None:
    touched = []
    for taken_at, rows in batch:
        done.rows += len(rows)
        if taken_at < to.horizon:
            done.rows_too_old += len(rows)
            continue
        fresh = _fresh(to, taken_at, rows, done)
        if fresh:
            _write(to.connection, to.lists, taken_at, fresh, done)
            touched.append(taken_at)
    if touched:
        ledger_rollups.renew(to.connection, touched)


def _fresh(to: _Batch, taken_at: int, rows: Sequence[LogRow], done: Imported) -> list[GroupError]:
    """Rows of groups that the ledger does not have of that time; ``done`` is told of the others."""
    there = _figures_there(to.connection, to.lists, taken_at)
    fresh = []
    for row in rows:
        group, given = row.error.group, shares_error_log.figures(row.error)
        if group not in there:
            fresh.append(row.error)
            there[group] = [given]
        elif given in there[group]:
            done.rows_known += 1
        else:
            done.rows_differing += 1
            if len(done.differing) < MOST_NAMED:
                done.differing.append(_difference(f"{to.name}:{row.line}", row, there[group][0]))
    return fresh


def _difference(where: str, row: LogRow, there: tuple[int, ...]) -> str:
    given = shares_error_log.figures(row.error)
    columns = ", ".join(
        f"{column} {new}, not {old}" for column, new, old in zip(FIGURES, given, there) if new != old
    )
    return f"{where}: T0 {row.taken_at} {row.error.group} differs from what the ledger has: {columns}; that was left as it is"


def _write(
    connection: sqlite3.Connection, lists: Lists, taken_at: int, errors: Sequence[GroupError], done: Imported
) -> None:
    """Add groups to the cycle that was imported of that time, or to a new one."""
    record = CycleRecord(
        taken_at,
        0.0,
        complete=True,
        groups=tuple(_control(error) for error in errors),
        strategy="",
        imported=True,
    )
    done.rows_added += len(errors)
    found = connection.execute(
        "SELECT number FROM cycles WHERE taken_at = ? AND imported", (taken_at,)
    ).fetchone()
    if found is None:
        done.cycles_added += 1
        ledger_cycles.write(connection, lists, record)
        return
    earlier = next(ledger_cycles.read(connection, lists, "WHERE number = ?", found))
    whole = CycleRecord(taken_at, 0.0, complete=True, groups=(*earlier.groups, *record.groups), imported=True)
    ledger_cycles.rewrite(connection, lists, found[0], whole)


def _control(error: GroupError) -> GroupControl:
    # The seed's law: setpoint and error are those of the row; what was done about it, the log does not say.
    return GroupControl(error, error.usage.power_hs06 - error.error_hs06, error.error_hs06, 0.0)


def _figures_there(
    connection: sqlite3.Connection, lists: Lists, taken_at: int
) -> dict[str, list[tuple[int, ...]]]:
    """Group -> numbers as the log has them, of each cycle of that time."""
    found: dict[str, list[tuple[int, ...]]] = {}
    for (number,) in connection.execute(
        "SELECT number FROM cycles WHERE taken_at = ?", (taken_at,)
    ).fetchall():
        for error in ledger_cycles.errors(connection, lists, number):
            found.setdefault(error.group, []).append(shares_error_log.figures(error))
    return found
