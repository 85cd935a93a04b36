from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sharectl.cli.main import main
from sharectl.ledger.ledger import PLACE, Ledger
from tests.fakes import NOW
from tests.made_cycles import PERIOD_SECONDS, incomplete, made

CYCLES = 20
END = NOW + CYCLES * PERIOD_SECONDS


class Runs:
    """Runs of ``sharectl report`` over a ledger whose tenth cycle is incomplete."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.out = folder / "out"
        self.page = self.out / "index.html"
        self._capsys = capsys
        self._config = folder / "sharectl.yaml"
        self._config.write_text(
            "groups: {alice: {pledge_hs06: 100}, cms: {pledge_hs06: 300}}\n"
            f"pool: {{name: t1}}\nstate_directory: {folder}\n",
            encoding="utf-8",
        )

    def __call__(self, *more: object, out: Path | None = None) -> tuple[int, str, str]:
        words = ["report", "--config", self._config, "-o", out or self.out]
        try:
            code = main([str(word) for word in (*words, "--from", NOW, "--to", END, *more)])
        except SystemExit as ended:
            code = int(ended.code or 0)
        return code, *self._capsys.readouterr()

    def content(self, *more: object) -> dict[str, Any]:
        code, printed, problems = self("--json", *more)
        assert (code, problems) == (0, "")
        content: dict[str, Any] = json.loads(printed)
        return content


@pytest.fixture
def runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Runs:
    ledger = Ledger(tmp_path / PLACE)
    for number in range(CYCLES):
        ledger.record(*(incomplete(number) if number == 10 else made(number)))
    return Runs(tmp_path, capsys)


def test_the_page_is_all_that_is_written_and_loads_nothing(runs: Runs) -> None:
    runs.out = runs.folder / "new" / "folder"
    runs.page = runs.out / "index.html"
    code, printed, problems = runs()
    assert (code, problems) == (0, "")
    assert printed.startswith(f"{runs.page}: ")
    assert printed.rstrip().endswith("20 cycles, 2 groups")
    assert [path.name for path in runs.out.iterdir()] == ["index.html"]
    assert stat.S_IMODE(runs.page.stat().st_mode) == 0o644
    page = runs.page.read_text(encoding="utf-8")
    assert page.lstrip().startswith("<!DOCTYPE html>")
    assert page.count('<svg class="figure"') == 1 + 4 + 2 * 5
    banned = ("<script", "http:", "https:", "url(h", "@import", "style=", "onload")
    assert [word for word in banned if word in page] == []
    (runs.out / "notes.txt").write_text("mine", encoding="utf-8")
    before = runs.page.stat().st_ino
    assert runs("--compare", NOW, NOW + 3 * PERIOD_SECONDS)[0] == 0
    assert runs.page.stat().st_ino != before, "an older report is replaced"
    assert sorted(path.name for path in runs.out.iterdir()) == ["index.html", "notes.txt"]


@pytest.mark.parametrize("kind", ["page", "link", "fifo", "folder", "no folder"])
def test_a_foreign_file_is_not_replaced(runs: Runs, kind: str) -> None:
    runs.out.mkdir()
    target = runs.folder / "target"
    target.write_text("<html>home</html>", encoding="utf-8")

    def no_folder() -> None:
        runs.out.rmdir()
        runs.out.write_text("mine", encoding="utf-8")

    makers: dict[str, Callable[[], object]] = {
        "page": lambda: runs.page.write_text("<html>home</html>", encoding="utf-8"),
        "link": lambda: runs.page.symlink_to(target),
        "fifo": lambda: os.mkfifo(runs.page),
        "folder": runs.page.mkdir,
        "no folder": no_folder,
    }
    makers[kind]()
    there = runs.out if kind == "no folder" else runs.page
    before = there.lstat()
    code, _, problems = runs()
    assert (code, str(there) in problems) == (74, True)
    assert target.read_text(encoding="utf-8") == "<html>home</html>"
    assert (there.lstat().st_ino, there.lstat().st_size) == (before.st_ino, before.st_size)


def test_a_period_without_a_cycle_replaces_no_page(runs: Runs) -> None:
    assert runs()[0] == 0
    before = runs.page.read_bytes()
    for more in (["--from", END, "--to", END + 86400], ["--compare", "-60d", "-30d"]):
        code, printed, problems = runs(*more)
        assert (code, printed, "no cycle in that time" in problems) == (1, "", True)
    assert runs.page.read_bytes() == before


def test_json_has_the_numbers_of_the_page(runs: Runs) -> None:
    content = runs.content("--compare", NOW, NOW + PERIOD_SECONDS)
    assert (content["schema_version"], content["kind"]) == (1, "report")
    before, period = content["periods"]
    assert (period["since"], period["until"]) == (NOW, END), "the shorter one is first"
    assert (before["since"], before["pool"]["cycles"]) == (NOW, 1)
    assert (period["pool"]["cycles"], period["pool"]["complete_cycles"]) == (20, 19)
    alice, cms = sorted(period["groups"], key=lambda group: group["group"])
    ratio = cms["work_hs06_hours"] / cms["pledge_hs06_hours"]
    assert cms["work_ratio"] == pytest.approx(ratio)
    targets = period["pool"]["targets"]
    assert (alice["held_back_nodes"], alice["helped_nodes"]) == (targets, 0)
    assert (cms["held_back_nodes"], cms["helped_nodes"]) == (0, targets)


@pytest.mark.parametrize("words", [["--from", "now", "--to", "-1d"], ["--compare", "-1d", "-2d"]])
def test_periods_are_in_order(runs: Runs, words: list[str]) -> None:
    code, _, problems = runs(*words)
    assert (code, words[0] in problems) == (2, True)


@pytest.mark.parametrize(
    ("since", "until", "begin", "notes"),
    [
        (NOW - 30 * 86400, END, NOW, 1),
        (NOW - 360, END, NOW, 1),
        (NOW, END, NOW, 0),
        (NOW + 7, NOW + 9000, NOW + 7, 0),
    ],
)
def test_the_page_begins_where_the_ledger_does(
    runs: Runs, since: int, until: int, begin: int, notes: int
) -> None:
    (period,) = runs.content("--from", since, "--to", until)["periods"]
    assert (period["since"], period["until"]) == (begin, until)
    page = runs.page.read_text(encoding="utf-8")
    assert page.count("The ledger begins at 2023-11-14 22:13:20 UTC") == notes
