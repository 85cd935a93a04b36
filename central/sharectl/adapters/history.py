"""The two files of the seed: the jobs of the last cycle, and the errors of all cycles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sharectl.adapters import jobs_file, shares_error_log
from sharectl.core.model import GroupError, Snapshot


@dataclass(frozen=True)
class HistoryFiles:
    """``AcctGroup_hs06.txt`` and ``shares_Error.log``."""

    jobs_file: Path
    errors_log: Path
    errors_log_max_bytes: int
    errors_log_keep: int

    def record(self, snapshot: Snapshot, errors: Sequence[GroupError]) -> None:
        """Replace the one, add to the other; see `sharectl.ports.History`."""
        shares_error_log.append(
            self.errors_log,
            shares_error_log.rows(snapshot.taken_at, errors),
            self.errors_log_max_bytes,
            self.errors_log_keep,
        )
        jobs_file.write(self.jobs_file, snapshot)
