from __future__ import annotations

import stat
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from sharectl.errors import StateError
from sharectl.files.files import only_one
from sharectl.model import Disabled, LimitNote, Plan, Target
from sharectl.plan.diff import Change, ChangeRecord
from sharectl.publish.audit import AuditFile, Who, who_runs
from tests.fakes import NOW
from tests.logs import changes_in

WHO = Who("sharectl", "ann", "cm.example.org", "cycle")
BEFORE, AFTER = Target("wn-1", "alice", 56, "cms", 8), Target("wn-1", "alice", 48, "cms", 8)
LIMITS = (LimitNote("dwell", 2),)
PLAN = Plan(7, NOW, NOW + 60, ("alice", "cms"), (AFTER,), "targets", "alice", "cms", LIMITS)
OFF = Disabled("cooling", "ann@cm", NOW, NOW + 60)


def audit(folder: Path, max_bytes: int = 10**6) -> AuditFile:
    return AuditFile(folder, WHO, max_bytes)


def test_a_change_tells_who_what_and_why(tmp_path: Path) -> None:
    record = ChangeRecord((Change(BEFORE, AFTER),), PLAN, "targets")
    audit(tmp_path).changed(record, NOW)
    target = {"held_back": "alice", "helped": "cms", "request_cores": 8}
    assert changes_in(tmp_path) == [
        {
            "schema_version": 1,
            "time": NOW,
            "event": "target",
            "who": asdict(WHO),
            "change": "altered",
            "node": "wn-1",
            "before": {**target, "cap_cores": 56},
            "after": {**target, "cap_cores": 48},
            "why": {"reason": "targets", "text": "", "limits": ["dwell"]},
            "sequence": 7,
            "recovered": False,
        }
    ]


def test_switching_is_a_line_too_which_only_the_owner_and_his_group_read(tmp_path: Path) -> None:
    audit(tmp_path).switched(OFF, NOW, on=False)
    audit(tmp_path).switched(OFF, NOW + 9, on=True)
    keys = ("event", "time", "by", "until")
    assert [tuple(line[key] for key in keys) for line in changes_in(tmp_path)] == [
        ("disabled", NOW, "ann@cm", NOW + 60),
        ("enabled", NOW + 9, "ann@cm", NOW + 60),
    ]
    ledger = tmp_path / "ledger"
    assert stat.S_IMODE((ledger / "changes.jsonl").stat().st_mode) == 0o640
    assert stat.S_IMODE(ledger.stat().st_mode) & 0o027 == 0


def test_every_line_is_json_and_the_longest_fit_also_after_rotation(tmp_path: Path) -> None:
    off = Disabled("\U0001f600" * 500, "ann@cm", NOW)
    long = Target("n" * 253, "a" * 64, 100_000, "b" * 64, 1024)
    record = ChangeRecord((Change(None, long),), PLAN, "disabled", off.reason)
    for _ in range(9):
        audit(tmp_path).switched(off, NOW, on=False)
        audit(tmp_path).changed(record, NOW)
    assert len(changes_in(tmp_path)) == 18
    for _ in range(3):
        audit(tmp_path, 4096).switched(off, NOW, on=False)
    names = [f"changes.jsonl{end}" for end in ("", ".1", ".2")]
    assert sorted(path.name for path in (tmp_path / "ledger").iterdir()) == names
    assert changes_in(tmp_path)


def test_a_folder_that_another_process_holds_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "ledger"
    folder.mkdir()
    slow = replace(audit(tmp_path), wait_seconds=0.0)
    with only_one(folder, 0, is_folder=True), pytest.raises(StateError, match="ledger"):
        slow.switched(OFF, NOW, on=False)


def test_names_that_come_from_outside_are_cut_and_seen() -> None:
    who = who_runs("disable", {"SUDO_USER": "a\n\x1b" + "b" * 900})
    assert who.sudo_user == "a\\n\\x1b" + "b" * 57
    assert who.name == f"{who.sudo_user}@{who.host}"
    assert who_runs("cycle", {}).sudo_user is None
