from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sharectl.ledger.ledger import PLACE, Ledger
from tests.fakes import NOW
from tests.made_cycles import PERIOD_SECONDS, incomplete, made
from tests.unit.cli.conftest import Run

CYCLES = 20
END = NOW + CYCLES * PERIOD_SECONDS


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Folder of the page, which is missing."""
    return tmp_path / "new" / "out"


@pytest.fixture
def report(run: Run, out: Path, tmp_path: Path) -> Run:
    """``sharectl report`` over a ledger whose tenth cycle is incomplete."""
    ledger = Ledger(tmp_path / PLACE)
    for number in range(CYCLES):
        ledger.record(*(incomplete(number) if number == 10 else made(number)))
    return partial(run, "report", "-o", out, "--from", NOW, "--to", END)


def content_of(report: Run, *more: object) -> dict[str, Any]:
    code, printed, problems = report("--json", *more)
    assert (code, problems) == (0, "")
    content: dict[str, Any] = json.loads(printed)
    return content


def test_the_page_is_all_that_is_written_and_loads_nothing(report: Run, out: Path) -> None:
    code, printed, problems = report()
    index = out / "index.html"
    assert (code, problems) == (0, "")
    assert printed.startswith(f"{index}: ")
    assert printed.rstrip().endswith("20 cycles, 2 groups")
    assert [path.name for path in out.iterdir()] == ["index.html"]
    assert stat.S_IMODE(index.stat().st_mode) == 0o644
    page = index.read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert page.count('<svg class="figure"') == 2 + 2 + 2 * 5
    banned = ("<script", "http:", "https:", "url(h", "@import", "style=", "onload")
    assert [word for word in banned if word in page] == []
    before = index.stat().st_ino
    assert report()[0] == 0
    assert index.stat().st_ino != before, "an older report is replaced"


@pytest.mark.parametrize("kind", ["page", "link", "fifo", "folder", "no folder"])
def test_a_foreign_file_is_not_replaced(report: Run, out: Path, tmp_path: Path, kind: str) -> None:
    target, there = tmp_path / "target", out if kind == "no folder" else out / "index.html"
    target.write_text("<html>home</html>", encoding="utf-8")
    there.parent.mkdir(parents=True)
    makers: dict[str, Callable[[], object]] = {
        "link": lambda: there.symlink_to(target),
        "fifo": lambda: os.mkfifo(there),
        "folder": there.mkdir,
    }
    makers.get(kind, lambda: there.write_text("<html>home</html>", encoding="utf-8"))()
    before = there.lstat()
    code, _, problems = report()
    assert (code, str(there) in problems) == (74, True)
    assert target.read_text(encoding="utf-8") == "<html>home</html>"
    assert (there.lstat().st_ino, there.lstat().st_size) == (before.st_ino, before.st_size)


def test_json_has_the_numbers_of_the_page(report: Run) -> None:
    period = content_of(report)
    assert (period["schema_version"], period["kind"]) == (1, "report")
    assert (period["since"], period["until"]) == (NOW, END)
    assert (period["pool"]["cycles"], period["pool"]["complete_cycles"]) == (20, 19)
    alice, cms = sorted(period["groups"], key=lambda group: group["group"])
    ratio = cms["work_hs06_hours"] / cms["pledge_hs06_hours"]
    assert cms["work_ratio"] == pytest.approx(ratio)
    targets = period["pool"]["targets"]
    assert (alice["held_back_nodes"], alice["helped_nodes"]) == (targets, 0)
    assert (cms["held_back_nodes"], cms["helped_nodes"]) == (0, targets)
