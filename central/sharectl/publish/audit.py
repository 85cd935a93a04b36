"""``ledger/changes.jsonl`` in the state directory: changes of nodes' targets, a JSON object a line.

A line ``{}``, with blanks, fills a page, so that no reader sees half a line.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Optional

from sharectl.errors import LockedError, StateError
from sharectl.files import files
from sharectl.files.files import only_one
from sharectl.model import Disabled, Snapshot, Target
from sharectl.plan.diff import Change, ChangeRecord
from sharectl.publish.switch import user_name
from sharectl.words import printable

PLACE = Path("ledger", "changes.jsonl")
SCHEMA_VERSION = 1

_MODE = 0o640
_MAX_NAME = 64


@dataclass(frozen=True)
class Who:
    """Author of changes."""

    user: str
    sudo_user: Optional[str]
    """SUDO_USER: user who became that one by sudo."""
    host: str
    verb: str
    """Verb of ``sharectl``."""

    @property
    def name(self) -> str:
        """In one word, for people."""
        return f"{self.sudo_user or self.user}@{self.host}"


def who_runs(verb: str, environment: Mapping[str, str]) -> Who:
    """Author of the changes of this process."""
    sudo_user = environment.get("SUDO_USER")
    return Who(
        user=printable(user_name(os.geteuid()), _MAX_NAME),
        sudo_user=printable(sudo_user, _MAX_NAME) if sudo_user else None,
        host=printable(platform.node(), _MAX_NAME),
        verb=verb,
    )


@dataclass
class AuditFile:
    """Record of changes; see `sharectl.cycle.ports.Audit`."""

    state_directory: Path
    who: Who
    configuration: Mapping[str, Any]
    max_bytes: int
    """Size from which it is rotated."""
    keep: int
    """Old files that remain."""
    wait_seconds: float = 5.0

    @property
    def path(self) -> Path:
        """File of the record."""
        return self.state_directory / PLACE

    def changed(self, record: ChangeRecord, now: int) -> None:
        """Add a line a node."""
        common = {
            "why": {
                "reason": record.reason,
                "text": record.text,
                "limits": [note.code for note in record.plan.limits],
            },
            "sequence": record.plan.sequence,
            "recovered": record.recovered,
            "inputs_sha256": {
                "configuration": digest(self.configuration),
                "snapshot": digest(canonical(record.snapshot)) if record.snapshot else None,
                "plan": None if record.snapshot else digest(asdict(record.plan)),
            },
        }
        head = self._head("target", now)
        self._append({**head, **_change(change), **common} for change in record.changes)

    def switched(self, off: Disabled, now: int, *, on: bool) -> None:
        """Add one line."""
        line = {
            **self._head("enabled" if on else "disabled", now),
            "why": {"text": off.reason},
            "by": off.who,
            "since": off.since,
            "until": off.until,
        }
        self._append([line])

    def _head(self, event: str, now: int) -> dict[str, Any]:
        return {
            "schema_version": SCHEMA_VERSION,
            "time": now,
            "event": event,
            "who": asdict(self.who),
        }

    def _append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        lines = [json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows]
        folder = self.path.parent
        try:
            files.make_folder(folder)
            with only_one(folder, self.wait_seconds, is_folder=True):
                files.rotate(self.path, self.max_bytes, self.keep)
                files.append_lines(self.path, lines, _MODE, filler="{}")
        except OSError as error:
            raise StateError(
                f"{folder}: cannot be made: {error.strerror}; make it, or make room"
            ) from error
        except LockedError as error:
            raise StateError(
                f"{self.path}: not written: another process holds {folder}; look for it"
            ) from error


def digest(data: Any) -> str:
    """SHA-256 of ``data`` as canonical JSON: sorted keys, no blanks, ASCII."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return sha256(text.encode("ascii")).hexdigest()


def canonical(snapshot: Snapshot) -> dict[str, Any]:
    """Plain data of a snapshot, without the order and the durations of daemons' answers."""
    return {
        "taken_at": snapshot.taken_at,
        "collector_started_at": snapshot.collector_started_at,
        "nodes": _ordered(snapshot.nodes),
        "running": _ordered(snapshot.running),
        "pending": _ordered(snapshot.pending),
        "sources": sorted([source.name, source.problem or ""] for source in snapshot.sources),
    }


def _ordered(records: Iterable[Any]) -> list[dict[str, Any]]:
    """Fields of each record; not by `asdict`, which copies each name and number deeply."""
    return [
        vars(record) for record in sorted(records, key=lambda record: tuple(vars(record).values()))
    ]


def _change(change: Change) -> dict[str, Any]:
    return {
        "change": change.kind,
        "node": change.node,
        "before": _target(change.before),
        "after": _target(change.after),
    }


def _target(target: Optional[Target]) -> Optional[dict[str, Any]]:
    if target is None:
        return None
    return {name: value for name, value in asdict(target).items() if name != "node"}
