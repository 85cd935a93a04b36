"""``shares_Error.log``: the groups' errors, one row a group and cycle, and its import."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, islice
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Optional

from sharectl.errors import InputError
from sharectl.files import files
from sharectl.files.packed import opened, rows_of
from sharectl.ledger import cycles, sums
from sharectl.ledger.database import transaction
from sharectl.ledger.series import UNKNOWN_SIZE
from sharectl.model import GroupControl, GroupError, GroupUsage
from sharectl.plan.records import CycleRecord
from sharectl.shares.groups import GROUP_NAME
from sharectl.times import DAY_SECONDS

if TYPE_CHECKING:
    import sqlite3

    from sharectl.ledger.ledger import Ledger

_COLUMNS = {
    "PLEDGE": "pledge_hs06",
    "DC": "error_cores",
    "SC": "usage.single_cores",
    "MC": "usage.multi_cores",
    "DHS": "error_hs06",
    "DPHS": "power_minus_pledge_hs06",
    "PSC": "usage.pending_single_jobs",
    "PMC": "usage.pending_multi_jobs",
}
"""Column after T0 and VO -> its attribute of a `GroupError`."""
_NAMES = ["T0", "VO", *_COLUMNS]
HEADER = f"# {' '.join(_NAMES)}"
_figures = attrgetter(*_COLUMNS.values())
CLOCK_ERROR_SECONDS = DAY_SECONDS
"""A row may be so far in the future: clocks of other machines are wrong by hours."""
_CYCLES_A_TIME = 500
"""Cycles of one transaction: a cycle of the pool waits no longer than for these."""
_MAX_LINE = 1000
_MOST_TIME = 253_402_300_799
_MOST_NUMBER = 2**53
_SIGNED = frozenset({"DC", "DHS", "DPHS"})
_NEEDS = (
    f"needs {len(_NAMES)} columns ({HEADER}): Unix seconds, not in the future, a group of letters, "
    "digits, _, - and dots, and whole numbers up to 2^53, of which only DC, DHS and DPHS may be "
    "below 0"
)


def rows(taken_at: int, errors: Iterable[GroupError]) -> list[str]:
    """Rows of one cycle, without a newline, in the order of ``errors``.

    Errors are cut to whole numbers towards zero, as in the seed's rows: so its three DC agree.
    """
    # The last bits of a sum do not turn 3 into 2.
    return [
        " ".join(map(str, (taken_at, error.group, *(int(round(n, 6)) for n in _figures(error)))))
        for error in errors
    ]


def append(path: Path, lines: list[str], max_bytes: int, keep: int) -> None:
    """Add rows to the log, which is rotated first at ``max_bytes``; each file has the header.

    Raises StateError if that fails; the log then ends where it ended before.
    """
    files.rotate(path, max_bytes, keep)
    fresh = not path.exists() or path.stat().st_size == 0
    files.append_lines(path, [HEADER, *lines] if fresh else lines)


def stream(
    path: Path, problems: list[str], latest: int = _MOST_TIME
) -> Iterator[tuple[int, GroupError]]:
    """Unix seconds, up to ``latest``, and error of each row.

    Invalid rows are added to ``problems``, at most 20. Raises InputError if the log cannot be read.
    """
    parse = partial(_row, latest=latest)
    with opened(path) as file:
        lines = files.lines_of(file, _MAX_LINE)
        yield from rows_of(lines, str(path), parse, _NEEDS, problems)


def _row(line: str, latest: int) -> Optional[tuple[int, GroupError]]:
    """Unix seconds and error of a row; None of a comment, and of a header without its ``#``."""
    words = line.split()
    if not words or line.startswith("#") or words == _NAMES:
        return None
    taken_at, group, numbers = int(words[0]), words[1], dict(zip(_COLUMNS, map(int, words[2:])))
    if (
        len(words) != len(_NAMES)
        or not 0 < taken_at <= latest
        or not all(map(GROUP_NAME.fullmatch, group.split(".")))
        or any(abs(number) > _MOST_NUMBER for number in numbers.values())
        or any(number < 0 for name, number in numbers.items() if name not in _SIGNED)
    ):
        raise ValueError
    usage = GroupUsage(
        single_cores=numbers["SC"],
        multi_cores=numbers["MC"],
        power_hs06=float(numbers["DPHS"] + numbers["PLEDGE"]),
        pending_single_jobs=numbers["PSC"],
        pending_multi_jobs=numbers["PMC"],
        pending_by_cores={1: numbers["PSC"], UNKNOWN_SIZE: numbers["PMC"]},
    )
    return taken_at, GroupError(
        group.lower(),
        pledge_hs06=float(numbers["PLEDGE"]),
        error_cores=float(numbers["DC"]),
        error_hs06=float(numbers["DHS"]),
        power_minus_pledge_hs06=float(numbers["DPHS"]),
        usage=usage,
    )


# ---- import


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
                cycles_of_log = ((time, [error for _, error in rows]) for time, rows in by_time)
                while batch := list(islice(cycles_of_log, _CYCLES_A_TIME)):
                    with transaction(connection):
                        _add(connection, batch, done)
    return done


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
