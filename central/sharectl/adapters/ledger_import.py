"""Rows of shares_Error.log into the ledger: what was there before the ledger was."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from sharectl.adapters import ledger_cycles, ledger_rollups, shares_error_log
from sharectl.adapters.ledger import Ledger
from sharectl.adapters.ledger_file import errors_of, open_to_write, transaction
from sharectl.adapters.ledger_names import Lists
from sharectl.core.cycle_record import CycleRecord
from sharectl.core.groups import GROUP_NAME
from sharectl.core.ledger_series import DAY_SECONDS
from sharectl.core.model import GroupControl, GroupError
from sharectl.errors import InputError

CYCLES_A_TIME = 500
"""Cycles that one transaction adds: a cycle of the pool waits no longer than for these."""

_MOST_NUMBER = 2**53
_MOST_TIME = 253_402_300_799
_Rows = list[tuple[int, GroupError]]


@dataclass
class Imported:
    """What an import did."""

    rows: int = 0
    """Rows that were read."""
    cycles_added: int = 0
    rows_added: int = 0
    rows_known: int = 0
    """Rows of a cycle and group that the ledger had already."""
    rows_too_old: int = 0
    """Rows older than what is kept."""


def bring_in(ledger: Ledger, paths: Sequence[Path], now: int) -> Imported:
    """What became of the rows of some logs; none is added twice, however often it is brought in.

    Raises
    ------
    InputError
        If any row of any file is not as it should be: then nothing is brought in.
    StateError
        If the ledger cannot be written.
    """
    _check(paths)
    done = Imported()
    horizon = now - ledger.keep.days * DAY_SECONDS
    with errors_of(ledger.path), contextlib.closing(open_to_write(ledger.path)) as connection:
        lists = Lists(connection)
        for path in paths:
            for batch in _batches(_rows(path, [])):
                with transaction(connection):
                    _add(connection, lists, batch, horizon, done)
    return done


def _check(paths: Iterable[Path]) -> None:
    problems: list[str] = []
    for path in paths:
        try:
            for taken_at, error in _rows(path, problems):
                problems += _wrong(path, taken_at, error)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)


def _rows(path: Path, problems: list[str]) -> Iterator[tuple[int, GroupError]]:
    for taken_at, error in shares_error_log.stream(path, problems):
        yield taken_at, replace(error, group=error.group.lower())


def _wrong(path: Path, taken_at: int, error: GroupError) -> Iterator[str]:
    if not 0 < taken_at <= _MOST_TIME:
        yield f"{path}: T0 {taken_at} is no Unix time up to the year 9999; remove the row"
    if not all(GROUP_NAME.fullmatch(part) for part in error.group.split(".")):
        yield f"{path}: T0 {taken_at}: {error.group[:64]!r} is no name of a group: letters, digits, _ and -; remove the row"
    usage = error.usage
    numbers = (error.pledge_hs06, error.error_hs06, error.error_cores, usage.power_hs06, usage.single_cores)
    counts = (usage.multi_cores, usage.pending_single_jobs, usage.pending_multi_jobs, error.pledge_hs06)
    if any(abs(number) > _MOST_NUMBER for number in (*numbers, *counts)) or min(counts) < 0:
        yield f"{path}: T0 {taken_at} {error.group}: a number is out of range; remove the row"


def _batches(rows: Iterator[tuple[int, GroupError]]) -> Iterator[list[tuple[int, _Rows]]]:
    batch: list[tuple[int, _Rows]] = []
    for taken_at, of_cycle in groupby(rows, key=lambda row: row[0]):
        batch.append((taken_at, list(of_cycle)))
        if len(batch) == CYCLES_A_TIME:
            yield batch
            batch = []
    if batch:
        yield batch


def _add(
    connection: sqlite3.Connection,
    lists: Lists,
    batch: Sequence[tuple[int, _Rows]],
    horizon: int,
    done: Imported,
) -> None:
    touched = []
    for taken_at, rows in batch:
        done.rows += len(rows)
        if taken_at < horizon:
            done.rows_too_old += len(rows)
            continue
        known = _known_groups(connection, lists, taken_at)
        fresh = {error.group: error for _, error in reversed(rows) if error.group not in known}
        done.rows_known += len(rows) - len(fresh)
        if fresh:
            _write(connection, lists, taken_at, list(reversed(fresh.values())), done)
            touched.append(taken_at)
    if touched:
        ledger_rollups.recover(connection, min(touched), max(touched) + 1)
        for _ in ledger_rollups.refresh_days(connection, [*touched, *_after(connection, max(touched))]):
            pass


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


def _known_groups(connection: sqlite3.Connection, lists: Lists, taken_at: int) -> set[str]:
    rows = connection.execute(
        "SELECT group_id FROM cycles JOIN group_cycles ON cycle = number WHERE taken_at = ?", (taken_at,)
    )
    return {lists.name(group) for (group,) in rows}


def _after(connection: sqlite3.Connection, taken_at: int) -> list[int]:
    """Time of the next complete cycle, which stands for less time now; none if there is none."""
    row = connection.execute("SELECT min(taken_at) FROM cycles WHERE complete AND taken_at > ?", (taken_at,))
    return [time for (time,) in row if time is not None]
