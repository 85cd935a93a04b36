"""Rows of shares_Error.log into the ledger: what was there before the ledger was.

``AcctGroup_hs06.txt``: a row a job, as the seed's ``condor_q … -af`` command prints them.

JobStatus (1 or 2), node (or ``PEND``), group, seconds running, cores, HS06 per core.

``shares_Error.log``: each group's error, one row a group and cycle (seed 004).

The ledger, and the two files of the seed: the jobs of the last cycle, and the errors of all cycles.

Imported rows out of the ledger again; what a cycle recorded is never touched.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as altered
from itertools import groupby
from math import isfinite
from pathlib import Path
from typing import NamedTuple, Optional

from sharectl.errors import InputError, StateError
from sharectl.files import files
from sharectl.files import files as pipes
from sharectl.files.packed import LogSource, file_source, opened
from sharectl.ledger import cycles as ledger_cycles
from sharectl.ledger import sums
from sharectl.ledger.database import Lists, errors_of, open_to_read, open_to_write, transaction
from sharectl.ledger.ledger import Ledger, shrink
from sharectl.ledger.series import DAY_SECONDS
from sharectl.model import (
    DEFAULT_NODE_CORES,
    DEFAULT_NODE_HS06,
    GroupControl,
    GroupError,
    GroupUsage,
    Node,
    PendingJobs,
    RunningJobs,
    Snapshot,
)
from sharectl.plan.nodes import HOST_NAME
from sharectl.plan.plan import Known
from sharectl.plan.records import CycleRecord
from sharectl.shares.groups import GROUP_NAME, group_of

PENDING_NODE = "PEND"
IDLE, RUNNING = 1, 2

MAX_CORES = 1_000_000
MAX_SECONDS = 10**10
MAX_PROBLEMS = 20
"""Problems that one error message lists."""
MAX_LINE = 2**20
"""Characters of a line that are looked at."""

_DEFAULT_POWER = DEFAULT_NODE_HS06 / DEFAULT_NODE_CORES
# The group is the one column that a user writes: it may hold blanks, or nothing, so it is what the
# others leave over.
_ROW = re.compile(
    r"(?P<status>\S+)\s+(?P<node>\S+)\s(?P<group>.*)\s(?P<seconds>\S+)\s+(?P<cores>\S+)\s+(?P<power>\S+)"
)
_NO_VALUE = frozenset(("undefined", "error"))
_SILENCE = "All queues are empty"
"""What ``condor_q -global`` prints on standard output where there is no job."""
_ROWS_A_CHUNK = 1000


@dataclass(frozen=True)
class JobRows:
    """What a jobs file holds."""

    running: tuple[RunningJobs, ...]
    pending: tuple[PendingJobs, ...]
    ignored_rows: int
    """Rows of jobs that neither run nor wait (held, completed), or that run without a slot (local, grid universe)."""
    defaulted_rows: int
    """Rows of running jobs whose cores or power condor_q could not tell: they count by default."""


def write(path: Path, snapshot: Snapshot) -> None:
    """Replace the file at ``path`` by the jobs of ``snapshot``, running ones first.

    Raises
    ------
    StateError
        If it cannot be written.
    """
    files.replace(path, _lines(snapshot))


def read_jobs(path: Path, groups: Collection[str]) -> JobRows:
    """Jobs of a file, their groups matched against ``groups``.

    A value that condor_q printed as ``undefined`` or ``error`` takes the seed's default.

    Raises
    ------
    InputError
        If it cannot be read, or has rows that are none; all of them are named.
    """
    try:
        with pipes.open_text(path, errors="replace") as file:
            return parse(files.lines_of(file, MAX_LINE), str(path), groups)
    except OSError as error:
        raise InputError([f"{path}: cannot be read: {error.strerror}"]) from error


def parse(lines: Iterable[str], name: str, groups: Collection[str]) -> JobRows:
    """Jobs of the rows ``lines``; ``name`` is what messages call the file. Raises as `read`."""
    running: list[RunningJobs] = []
    pending: Counter[tuple[str, int]] = Counter()
    ignored = defaulted = 0
    problems: list[str] = []
    wrong_rows = 0
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("#") or text == _SILENCE:
            continue
        try:
            status, job = _job(text, groups)
        except ValueError as error:
            wrong_rows += 1
            if wrong_rows <= MAX_PROBLEMS:
                problems.append(f"{name}:{number}: {error}")
            continue
        if status == RUNNING and job.node != PENDING_NODE:
            running.append(job)
            defaulted += not _NO_VALUE.isdisjoint(text.split()[-2:])
        elif status == IDLE:
            pending[job.group, job.cores] += 1
        else:
            ignored += 1
    if problems:
        rest = wrong_rows - len(problems)
        raise InputError([*problems, f"… and {rest} more like these"] if rest else problems)
    waiting = tuple(PendingJobs(group, cores, jobs) for (group, cores), jobs in pending.items())
    return JobRows(tuple(running), waiting, ignored, defaulted)


def _job(text: str, groups: Collection[str]) -> tuple[int, RunningJobs]:
    row = _ROW.fullmatch(text)
    if row is None:
        raise ValueError(
            "needs 6 columns: JobStatus, node or PEND, group, seconds running, cores, HS06 per "
            "core; "
            f"found {len(text.split())}"
        )
    status = int(_number("JobStatus", row["status"], 0, 9))
    group = row["group"].strip()
    # HTCondor wrote cores and power of a job that runs; those of one that waits may be whatever its
    # user wished.
    provisioned = status == RUNNING
    return status, RunningJobs(
        node=_node(row["node"]),
        group=group_of(None if group in _NO_VALUE else group, groups),
        cores=_provisioned(row["cores"]) if provisioned else _requested(row["cores"]),
        hs06_per_core=_power(row["power"]) if provisioned else _DEFAULT_POWER,
        # A node's clock may be a little ahead of the schedd's.
        seconds=max(
            0,
            _jobs_file_whole(
                "seconds running", row["seconds"], -MAX_SECONDS, MAX_SECONDS, default=0
            ),
        ),
    )


def _node(text: str) -> str:
    if text in _NO_VALUE:
        return PENDING_NODE
    if not HOST_NAME.fullmatch(text):
        raise ValueError(f"node is {text[:40]!r}; write a host name or {PENDING_NODE}")
    return text if text == PENDING_NODE else text.lower()


def _number(
    what: str, text: str, least: float, most: float, default: Optional[float] = None
) -> float:
    if default is not None and text in _NO_VALUE:
        return default
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{what} is {text[:40]!r}; write a number") from None
    if not (isfinite(value) and least <= value <= most):
        raise ValueError(f"{what} is {text[:40]!r}; write a number from {least:g} to {most:g}")
    return value


def _jobs_file_whole(what: str, text: str, least: int, most: int, default: int) -> int:
    value = _number(what, text, least, most, default)
    if value != int(value):
        raise ValueError(f"{what} is {text[:40]!r}; write a whole number")
    return int(value)


def _provisioned(text: str) -> int:
    """Cores of a job that runs; HTCondor lets a job have 0, which is counted as 1."""
    return max(1, _jobs_file_whole("cores", text, 0, MAX_CORES, default=1))


def _requested(text: str) -> int:
    """Cores that a pending job requests: 1 if that is less, nothing or no number, cut to a whole number."""
    try:
        value = float(text)
    except ValueError:
        return 1
    return int(min(value, MAX_CORES)) if value >= 1 else 1


def _power(text: str) -> float:
    value = _number("HS06 per core", text, 0, 1e6, default=_DEFAULT_POWER)
    if value == 0:
        raise ValueError("HS06 per core is 0; write the power of one core, such as 10.0")
    return value


def _lines(snapshot: Snapshot) -> Iterator[str]:
    power = f"{_DEFAULT_POWER:.12g}"
    for job in snapshot.running:
        row = (
            f"{RUNNING} {job.node} {job.group} {job.seconds} {job.cores} {job.hs06_per_core:.12g}\n"
        )
        yield from _repeated(row, job.jobs)
    for jobs in snapshot.pending:
        row = f"{IDLE} {PENDING_NODE} {jobs.group} 0 {jobs.cores} {power}\n"
        yield from _repeated(row, jobs.jobs)


def _repeated(row: str, times: int) -> Iterator[str]:
    """``row`` so many times, in chunks: 100,000 pending jobs are not held in memory at once."""
    chunks, rest = divmod(times, _ROWS_A_CHUNK)
    for _ in range(chunks):
        yield row * _ROWS_A_CHUNK
    yield row * rest


def as_snapshot(
    rows: JobRows,
    taken_at: int,
    controlled: Mapping[str, bool],
    reserved: Collection[str] = frozenset(),
) -> Snapshot:
    """Snapshot made of the rows of a file, for replaying a decision.

    Parameters
    ----------
    rows
        What `read` returned.
    taken_at
        Unix seconds.
    controlled
        Node -> whether it is under control.
    reserved
        Nodes that are kept free of targets.
    """
    power = {job.node: job.hs06_per_core for job in rows.running}
    return Snapshot(
        taken_at=taken_at,
        nodes=tuple(
            Node(
                node,
                node,
                cores=0,
                hs06_per_core=power[node],
                controlled=under,
                reserved=node in reserved,
            )
            for node, under in controlled.items()
        ),
        running=rows.running,
        pending=rows.pending,
    )


HEADER = "# T0 VO PLEDGE DC SC MC DHS DPHS PSC PMC"
_NAMES = HEADER.split()[1:]
_COLUMNS = len(_NAMES)
FIGURES = tuple(_NAMES[2:])
"""Names of the columns after T0 and VO, in the order of `figures`."""
_MAX_LINE = 1000
_MAX_PROBLEMS = 20


class LogRow(NamedTuple):
    """One row."""

    line: int
    """Number of its line, from 1."""
    taken_at: int
    """Unix seconds of the cycle."""
    error: GroupError


def rows(taken_at: int, errors: Iterable[GroupError]) -> list[str]:
    """Rows of one cycle, whitespace-separated, without a newline, in the order of ``errors``.

    Errors are cut to whole numbers towards zero, as the seed's rows are: only then do its three DC
    agree.
    """
    return [_row(taken_at, error) for error in errors]


def append(path: Path, lines: list[str], max_bytes: int, keep: int) -> None:
    """Add rows to the log at ``path``, rotating it first at ``max_bytes``; every file begins with the header.

    Raises
    ------
    StateError
        If that fails; the log then ends where it ended before.
    """
    files.rotate(path, max_bytes, keep)
    fresh = not path.exists() or path.stat().st_size == 0
    files.append_lines(path, [HEADER, *lines] if fresh else lines)


def read_error_log(path: Path) -> tuple[tuple[int, GroupError], ...]:
    """Rows of the log at ``path``, oldest first: Unix seconds of the cycle, and one group's error.

    Numbers are as whole as they were written; power is DPHS + PLEDGE.

    Raises
    ------
    InputError
        If it cannot be read, or a row is not as it should be; the first `_MAX_PROBLEMS` such rows
        at once.
    """
    problems: list[str] = []
    found = tuple((row.taken_at, row.error) for row in stream(file_source(path), problems))
    if problems:
        raise InputError(problems)
    return found


def stream(source: LogSource, problems: list[str]) -> Iterator[LogRow]:
    """The same one by one, without holding them; what is wrong with rows is added to ``problems``.

    It ends at `_MAX_PROBLEMS` of a file. A header is passed over also where its ``#`` is missing.

    Raises
    ------
    InputError
        If the log cannot be read.
    """
    known = len(problems)
    with opened(source) as file:
        for number, line in enumerate(files.lines_of(file, _MAX_LINE), start=1):
            words = line.split()
            if words and not line.startswith("#") and words != _NAMES:
                try:
                    row = LogRow(number, *_error(words))
                except (ValueError, OverflowError):
                    problems.append(_problem(source.name, number, line))
                else:
                    yield row
            if len(problems) - known == _MAX_PROBLEMS:
                break


def figures(error: GroupError) -> tuple[int, ...]:
    """Numbers of a row after T0 and VO, as the log has them."""
    usage = error.usage
    return (
        _shares_error_log_whole(error.pledge_hs06),
        _shares_error_log_whole(error.error_cores),
        usage.single_cores,
        usage.multi_cores,
        _shares_error_log_whole(error.error_hs06),
        _shares_error_log_whole(error.power_minus_pledge_hs06),
        usage.pending_single_jobs,
        usage.pending_multi_jobs,
    )


def _problem(name: str, number: int, line: str) -> str:
    return (
        f"{name}:{number}: needs {_COLUMNS} columns, all but the second whole numbers ({HEADER}); "
        f"found {line.rstrip()[:200]!r}; remove the row"
    )


def _error(columns: list[str]) -> tuple[int, GroupError]:
    group = columns.pop(1) if len(columns) == _COLUMNS else ""
    if not group:
        raise ValueError
    (
        taken_at,
        pledge,
        error_cores,
        single,
        multi,
        error_hs06,
        less_pledge,
        pending_single,
        pending_multi,
    ) = map(int, columns)
    usage = GroupUsage(
        single_cores=single,
        multi_cores=multi,
        power_hs06=float(less_pledge + pledge),
        pending_single_jobs=pending_single,
        pending_multi_jobs=pending_multi,
    )
    return taken_at, GroupError(
        group=group,
        pledge_hs06=float(pledge),
        error_cores=float(error_cores),
        error_hs06=float(error_hs06),
        power_minus_pledge_hs06=float(less_pledge),
        usage=usage,
    )


def _row(taken_at: int, error: GroupError) -> str:
    return " ".join(map(str, (taken_at, error.group, *figures(error))))


def _shares_error_log_whole(value: float) -> int:
    """``value`` cut towards zero; the last bits of a sum do not turn 3 into 2."""
    return int(round(value, 6))


@dataclass(frozen=True)
class HistoryFiles:
    """``AcctGroup_hs06.txt`` and ``shares_Error.log``."""

    jobs_file: Path
    errors_log: Path
    errors_log_max_bytes: int
    errors_log_keep: int

    def record(self, record: CycleRecord, snapshot: Snapshot) -> None:
        """Add to the one, replace the other, if the cycle is complete. Raises StateError."""
        if not record.complete:
            return
        append(
            self.errors_log,
            rows(record.taken_at, [control.error for control in record.groups]),
            self.errors_log_max_bytes,
            self.errors_log_keep,
        )
        write(self.jobs_file, snapshot)


@dataclass(frozen=True)
class Histories:
    """All of it; see `sharectl.cycle.ports.History`."""

    files: HistoryFiles
    ledger: Ledger

    def record(self, record: CycleRecord, snapshot: Snapshot) -> None:
        """Keep a cycle in each; what fails in one does not keep it from the other."""
        problems: list[StateError] = []
        for keep in (self.files.record, self.ledger.record):
            try:
                keep(record, snapshot)
            except StateError as error:
                problems.append(error)
        if problems:
            superseded = "".join(error.supersedes for error in problems)
            raise StateError("\n".join(map(str, problems)), superseded)

    def known(self, groups: Sequence[str]) -> Known:
        """What the ledger has learnt."""
        return self.ledger.known(groups)


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
        If any row of any file is not as it should be, or no file has any: then nothing is brought
        in.
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
    for row in stream(source, problems):
        yield row._replace(error=altered(row.error, group=row.error.group.lower()))


def _wrong(name: str, row: LogRow, now: int) -> Iterator[str]:
    where = f"{name}:{row.line}"
    if not 0 < row.taken_at <= _MOST_TIME:
        yield (
            f"{where}: T0 {row.taken_at} is no Unix time up to the year 9999; correct or remove the "
            "row"
        )
    elif row.taken_at > now + CLOCK_ERROR_SECONDS:
        yield f"{where}: T0 {row.taken_at} is in the future: now it is {now}; correct or remove the row"
    if not all(GROUP_NAME.fullmatch(part) for part in row.error.group.split(".")):
        yield (
            f"{where}: {row.error.group[:64]!r} is no name of a group: letters, digits, _ and -; "
            "remove the row"
        )
    for column, number in zip(FIGURES, figures(row.error)):
        if abs(number) > _MOST_NUMBER or (number < 0 and column not in _SIGNED):
            least = "" if column in _SIGNED else " or below 0"
            yield (
                f"{where}: {column} {str(number)[:32]} is out of range: beyond 2^53{least}; correct or "
                "remove the row"
            )


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
        sums.renew(to.connection, touched)


def _fresh(to: _Batch, taken_at: int, rows: Sequence[LogRow], done: Imported) -> list[GroupError]:
    """Rows of groups that the ledger does not have of that time; ``done`` is told of the others."""
    there = _figures_there(to.connection, to.lists, taken_at)
    fresh = []
    for row in rows:
        group, given = row.error.group, figures(row.error)
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
    given = figures(row.error)
    columns = ", ".join(
        f"{column} {new}, not {old}"
        for column, new, old in zip(FIGURES, given, there)
        if new != old
    )
    return (
        f"{where}: T0 {row.taken_at} {row.error.group} differs from what the ledger has: "
        f"{columns}; that was left as it is"
    )


def _write(
    connection: sqlite3.Connection,
    lists: Lists,
    taken_at: int,
    errors: Sequence[GroupError],
    done: Imported,
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
    whole = CycleRecord(
        taken_at, 0.0, complete=True, groups=(*earlier.groups, *record.groups), imported=True
    )
    ledger_cycles.rewrite(connection, lists, found[0], whole)


def _control(error: GroupError) -> GroupControl:
    # The seed's law: setpoint and error are those of the row; what was done about it, the log does
    # not say.
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
            found.setdefault(error.group, []).append(figures(error))
    return found


_MEANT = "imported AND taken_at >= ? AND taken_at < ?"


@dataclass
class Forgotten:
    """What was removed, or would be."""

    cycles: int = 0
    rows: int = 0


def imported(ledger: Ledger, since: int, until: int) -> Forgotten:
    """How much of it is imported, from ``since`` until before ``until``, Unix seconds.

    Raises StateError.
    """
    rows = f"SELECT count(*) FROM cycles JOIN group_cycles ON cycle = number WHERE {_MEANT}"  # noqa: S608 - ours
    cycles = f"SELECT count(*) FROM cycles WHERE {_MEANT}"  # noqa: S608 - ours
    with errors_of(ledger.path), contextlib.closing(open_to_read(ledger.path)) as connection:
        connection.execute("BEGIN")
        return Forgotten(
            *(connection.execute(one, (since, until)).fetchone()[0] for one in (cycles, rows))
        )


def forget_imported(ledger: Ledger, since: int, until: int) -> Forgotten:
    """What was removed: all imported cycles from ``since`` until before ``until``, Unix seconds.

    Raises StateError.
    """
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
            done.rows += connection.execute(
                "DELETE FROM group_cycles WHERE cycle = ?", (number,)
            ).rowcount
            connection.execute("DELETE FROM group_sizes WHERE cycle = ?", (number,))
            connection.execute("DELETE FROM cycles WHERE number = ?", (number,))
        if found:
            sums.renew(connection, [taken_at for _, taken_at in found])
        done.cycles += len(found)
        return bool(found)
