"""Audit: ``ledger/changes.jsonl`` has changes of nodes' targets, a JSON object a line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Optional

from sharectl.errors import LockedError, StateError
from sharectl.files import files
from sharectl.model import SCHEMA_VERSION, Disabled, Target
from sharectl.plan.diff import ChangeRecord
from sharectl.publish.disabled_file import user_name
from sharectl.words import printable

PLACE = Path("ledger", "changes.jsonl")

_MODE = 0o640
_MAX_NAME = 64


@dataclass(frozen=True)
class Who:
    """Author of changes: a user, who may have become that one by sudo, and a verb of sharectl."""

    user: str
    sudo_user: Optional[str]
    host: str
    verb: str

    @property
    def name(self) -> str:
        """Name in one word, for people."""
        return f"{self.sudo_user or self.user}@{self.host}"


def who_runs(verb: str, environment: Mapping[str, str]) -> Who:
    """Author of the changes of this process."""
    sudo_user = environment.get("SUDO_USER")
    return Who(
        user=printable(user_name(os.geteuid()), _MAX_NAME),
        sudo_user=printable(sudo_user, _MAX_NAME) if sudo_user else None,
        host=printable(os.uname().nodename, _MAX_NAME),
        verb=verb,
    )


@dataclass
class AuditFile:
    """Record of changes; see `sharectl.cycle.ports.Audit`."""

    state_directory: Path
    who: Who
    max_bytes: int = files.LOG_BYTES
    wait_seconds: float = 5.0

    def changed(self, record: ChangeRecord, now: int) -> None:
        """Add a line a node."""
        limits = [note.code for note in record.plan.limits]
        rows = (
            {
                "change": "removed" if change.after is None else change.kind,
                "node": change.nodes[0],
                "before": _target(change.before),
                "after": _target(change.after),
                "why": {"reason": record.reason, "text": record.text, "limits": limits},
                "sequence": record.plan.sequence,
                "recovered": record.recovered,
            }
            for change in record.changes
        )
        self._append("target", now, rows)

    def switched(self, off: Disabled, now: int, *, on: bool) -> None:
        """Add one line."""
        line = {"why": {"text": off.reason}, "by": off.who, "since": off.since, "until": off.until}
        self._append("enabled" if on else "disabled", now, [line])

    def _append(self, event: str, now: int, rows: Iterable[Mapping[str, Any]]) -> None:
        path = self.state_directory / PLACE
        head = {"schema_version": SCHEMA_VERSION, "time": now, "event": event}
        lines = [
            json.dumps(
                {**head, "who": asdict(self.who), **row}, ensure_ascii=False, separators=(",", ":")
            )
            for row in rows
        ]
        try:
            files.make_folder(path.parent)
            with files.only_one(path.parent, self.wait_seconds, is_folder=True):
                files.rotate(path, self.max_bytes, files.LOG_FILES)
                files.append_lines(path, lines, _MODE)
        except (OSError, LockedError) as error:
            raise StateError(
                f"{path}: not written: {error}; see its folder, and who holds it"
            ) from error


def _target(target: Optional[Target]) -> Optional[dict[str, Any]]:
    return {k: v for k, v in asdict(target).items() if k != "node"} if target else None
