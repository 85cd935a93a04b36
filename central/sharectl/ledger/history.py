"""History of cycles: the ledger, and the seed's two files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sharectl.errors import StateError
from sharectl.ledger import error_log, jobs_file
from sharectl.ledger.ledger import Ledger
from sharectl.model import Snapshot
from sharectl.plan.records import CycleRecord
from sharectl.plan.waits import RunTimes


@dataclass(frozen=True)
class Histories:
    """The seed's two files and the ledger; a `sharectl.cycle.ports.History`."""

    jobs_file: Path
    errors_log: Path
    errors_log_max_bytes: int
    errors_log_keep: int
    ledger: Ledger

    def record(self, record: CycleRecord, snapshot: Snapshot) -> None:
        """Record a cycle in each; a failure of one leaves the others."""
        problems: list[StateError] = []
        for write in (self._write_files, self.ledger.record):
            try:
                write(record, snapshot)
            except StateError as error:
                problems.append(error)
            except ValueError as error:
                reason = f"the cycle is not recorded: {error}; please report this line"
                problems.append(StateError(reason))
        if problems:
            superseded = "".join(error.supersedes for error in problems)
            raise StateError("\n".join(map(str, problems)), superseded)

    def run_times(self, groups: Sequence[str]) -> RunTimes:
        """Run times that the ledger has learnt."""
        return self.ledger.run_times(groups)

    def _write_files(self, record: CycleRecord, snapshot: Snapshot) -> None:
        if record.complete:
            errors = [control.error for control in record.groups]
            lines = error_log.rows(record.taken_at, errors)
            error_log.append(
                self.errors_log, lines, self.errors_log_max_bytes, self.errors_log_keep
            )
            jobs_file.write(self.jobs_file, snapshot)
