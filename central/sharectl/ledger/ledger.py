"""History of cycles: ``ledger/ledger.sqlite`` in the state directory, and the seed's two files."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Optional

from sharectl.errors import REPORT, NoLedgerError, StateError
from sharectl.ledger import cycles, database, error_log, jobs_file, sums
from sharectl.ledger.database import BUSY_SECONDS, UNREADABLE, CorruptError, transaction
from sharectl.ledger.retention import Keep, prune
from sharectl.ledger.series import Series
from sharectl.model import Snapshot
from sharectl.plan.records import CycleRecord
from sharectl.plan.waits import RunTimes

PLACE = Path("ledger", "ledger.sqlite")
"""Place of the file in ``state_directory``."""
MOST_PROBLEMS = 20

_PERIOD = "WHERE taken_at >= ? AND taken_at < ?"
_COUNTS = """
SELECT count(number) AS cycles, coalesce(sum(complete), 0) AS complete_cycles,
    min(taken_at) AS first_at, max(taken_at) AS last_at,
    page_count * page_size AS bytes
FROM pragma_page_count, pragma_page_size LEFT JOIN cycles
"""


@dataclass(frozen=True)
class Ledger:
    """The ledger at a path. Its methods raise StateError, which names the path and the remedy."""

    path: Path
    keep: Keep = field(default_factory=Keep)
    busy_seconds: float = BUSY_SECONDS

    def record(self, record: CycleRecord, snapshot: Snapshot) -> int:
        """Record a cycle; returns its number. A broken ledger is moved aside, a new one has it."""
        try:
            return self._record(record, snapshot)
        except CorruptError as error:
            aside = database.set_aside(self.path, record.taken_at)
            self._record(record, snapshot)
            raise StateError(
                f"{error.fact}: moved to {aside}, and a new ledger was begun, which has this cycle"
            ) from error

    def cycles(self, since: int, until: int, *, with_nodes: bool = False) -> Iterator[CycleRecord]:
        """Cycles from ``since`` until before ``until``, Unix seconds, the oldest first."""
        with database.reading(self.path, self.busy_seconds) as connection:
            where = f"{_PERIOD} ORDER BY taken_at, number"
            yield from cycles.read(connection, where, (since, until), with_nodes=with_nodes)

    def last_complete(self, since: int, until: int) -> Optional[CycleRecord]:
        """Last complete cycle from ``since`` until before ``until``, with its nodes."""
        return self._first(f"{_PERIOD} AND complete ORDER BY taken_at DESC LIMIT 1", since, until)

    def cycle(self, number: int) -> Optional[CycleRecord]:
        """Cycle of that number, complete or not, with its nodes."""
        return self._first("WHERE number = ?", number)

    def cycle_at(self, until: int) -> Optional[CycleRecord]:
        """Last cycle at or before ``until``, complete or not, with its nodes."""
        return self._first("WHERE taken_at <= ? ORDER BY taken_at DESC, number DESC LIMIT 1", until)

    def latest(self) -> Optional[CycleRecord]:
        """Cycle that was recorded last; one of a later time had a clock that was ahead."""
        return self._first("ORDER BY number DESC LIMIT 1")

    def run_times(self, groups: Iterable[str]) -> RunTimes:
        """Run times of these groups; nothing while there is no ledger."""
        try:
            with database.reading(self.path, self.busy_seconds, at_once=True) as connection:
                return cycles.learnt(connection, groups)
        except NoLedgerError:
            return {}

    def series(self, since: int, until: int, points: int = 500) -> Series:
        """Figures for about ``points`` points; see `sharectl.ledger.sums.layout`."""
        with database.reading(self.path, self.busy_seconds) as connection:
            return sums.series(connection, since, until, points)

    def span(self) -> Optional[tuple[int, int]]:
        """Unix seconds of the first and the last cycle; None without a cycle."""
        query = "SELECT min(taken_at), max(taken_at) FROM cycles"
        with database.reading(self.path, self.busy_seconds) as connection:
            first, last = connection.execute(query).fetchone()
            return None if first is None else (first, last)

    def check(self) -> dict[str, Any]:
        """Numbers of the ledger by name, and its faults, a line each, the first `MOST_PROBLEMS`."""
        with database.reading(self.path, self.busy_seconds) as connection:
            counts = dict(connection.execute(_COUNTS).fetchone())
            rows = connection.execute(f"PRAGMA integrity_check({MOST_PROBLEMS})").fetchall()
            faults = [f"SQLite: {message}" for (message,) in rows if message != "ok"]
            if faults:
                faults.insert(0, f"the file is damaged; {database.remedy_of(self.path)}")
            else:
                faults += islice(_unreadable_cycles(connection), MOST_PROBLEMS)
        aside = map(str, self.path.parent.glob(f"{self.path.name}.broken-*"))
        return {
            "path": str(self.path),
            **counts,
            "broken": sorted(path for path in aside if not path.endswith(database.BESIDE)),
            "problems": [f"{self.path}: {fault}" for fault in faults],
        }

    def _record(self, record: CycleRecord, snapshot: Snapshot) -> int:
        with database.writing(self.path, self.busy_seconds) as connection:
            with transaction(connection):
                number = cycles.write(connection, record)
                if record.complete:
                    cycles.learn(connection, snapshot)
                sums.renew(connection, record.taken_at)
                prune(connection, self.keep)
            return number

    def _first(self, where: str, *values: int) -> Optional[CycleRecord]:
        with database.reading(self.path, self.busy_seconds) as connection:
            return next(cycles.read(connection, where, values, with_nodes=True), None)


def _unreadable_cycles(connection: sqlite3.Connection) -> Iterator[str]:
    for (number,) in connection.execute("SELECT number FROM cycles ORDER BY number"):
        try:
            next(cycles.read(connection, "WHERE number = ?", (number,), with_nodes=True))
        except UNREADABLE as error:
            yield f"cycle {number} cannot be read: {error}"


@dataclass(frozen=True)
class Histories:
    """The seed's two files and the ledger; a `sharectl.cycle.ports.History`."""

    jobs_file: Path
    errors_log: Path
    ledger: Ledger

    def record(self, record: CycleRecord, snapshot: Snapshot) -> None:
        """Record a cycle in each; a failure of one leaves the others."""
        problems: list[StateError] = []
        for write in (self._write_files, self.ledger.record):
            try:
                write(record, snapshot)
            except StateError as error:
                problems.append(error)
            except Exception as error:  # noqa: BLE001 - the plan is out: no record may end a cycle
                fact = f"the cycle is not recorded: {type(error).__name__}: {error}"
                remedy = f"see `sharectl ledger check`; if that finds nothing, {REPORT}"
                problems.append(StateError(f"{fact}; {remedy}"))
        if problems:
            raise StateError(*(line for error in problems for line in error.problems))

    def run_times(self, groups: Sequence[str]) -> RunTimes:
        """Run times that the ledger has learnt."""
        return self.ledger.run_times(groups)

    def _write_files(self, record: CycleRecord, snapshot: Snapshot) -> None:
        if record.complete:
            errors = (control.error for control in record.groups)
            error_log.append(self.errors_log, record.taken_at, errors)
            jobs_file.write(self.jobs_file, snapshot)
