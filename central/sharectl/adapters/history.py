"""The ledger, and the two files of the seed: the jobs of the last cycle, and the errors of all cycles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sharectl.adapters import jobs_file, shares_error_log
from sharectl.adapters.ledger import Ledger
from sharectl.core.cycle_record import CycleRecord
from sharectl.core.model import Snapshot
from sharectl.core.plan import Known
from sharectl.errors import StateError


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
        shares_error_log.append(
            self.errors_log,
            shares_error_log.rows(record.taken_at, [control.error for control in record.groups]),
            self.errors_log_max_bytes,
            self.errors_log_keep,
        )
        jobs_file.write(self.jobs_file, snapshot)


@dataclass(frozen=True)
class Histories:
    """All of it; see `sharectl.ports.History`."""

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
