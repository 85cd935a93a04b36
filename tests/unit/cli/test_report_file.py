"""`report.file`: a cycle writes the page, and never fails because of it."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from sharectl.ledger.ledger import PLACE, Ledger
from sharectl.report.page import BEGIN
from tests.simulated import PERIOD_SECONDS, cycles
from tests.unit.cli.conftest import Run


@pytest.fixture
def page(config: Path, tmp_path: Path) -> Path:
    """Page of a pool whose ledger has cycles of the last hours."""
    path = tmp_path / "www" / "index.html"
    with config.open("a", encoding="utf-8") as file:
        file.write(f"report: {{file: {path}}}\n")
    return path


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """Ledger whose last cycle ended just now."""
    ledger = Ledger(tmp_path / PLACE)
    made = list(cycles(0.2))
    ahead = int(time.time()) - 60 - made[-1][0].taken_at
    for record, seen in made:
        at = record.taken_at + ahead
        ledger.record(replace(record, taken_at=at), replace(seen, taken_at=at))
    return ledger


def test_a_cycle_writes_the_page_of_the_last_days(run: Run, page: Path, ledger: Ledger) -> None:
    assert run("cycle")[0] == 75, "no pool is there"
    text = page.read_text(encoding="utf-8")
    assert text.startswith(BEGIN)
    first = ledger.span()
    assert first is not None
    assert first[0] < time.time() - 0.1 * 86_400 - PERIOD_SECONDS
    assert "The last complete cycle" in text
    assert "report.file" not in run("status")[2]
    assert json.loads(run("status", "--json")[1])["last_cycle"]["report_problem"] is None


@pytest.mark.usefixtures("ledger")
def test_a_young_page_is_left_alone(run: Run, page: Path) -> None:
    run("cycle")
    inode = page.stat().st_ino
    os.utime(page, (time.time() - 3500,) * 2)
    run("cycle")
    assert page.stat().st_ino == inode
    for age in (3700, -3700):
        os.utime(page, (time.time() - age,) * 2)
        run("cycle")
        assert time.time() - page.stat().st_mtime < 1800, age


@pytest.mark.usefixtures("ledger")
def test_a_page_that_cannot_be_written_is_a_problem_of_status_alone(run: Run, page: Path) -> None:
    page.parent.mkdir()
    page.write_text("<html>home</html>", encoding="utf-8")
    os.utime(page, (0, 0))
    code, _, err = run("cycle")
    assert code == 75, "that of a pool without an answer"
    assert f"warning: report.file: {page}: " in err
    assert page.read_text(encoding="utf-8") == "<html>home</html>"
    assert f"last cycle: report.file: {page}: " in run("status")[2]
    page.unlink()
    run("cycle")
    assert "report.file" not in run("status")[2]


@pytest.mark.usefixtures("ledger")
def test_the_old_page_stays_while_the_ledger_cannot_be_read(
    run: Run, page: Path, tmp_path: Path
) -> None:
    run("cycle")
    before = page.read_bytes()
    os.utime(page, (0, 0))
    with closing(sqlite3.connect(tmp_path / PLACE)) as connection:
        connection.execute("PRAGMA user_version = 99")
    _, _, err = run("cycle")
    assert "report.file: " in err
    assert page.read_bytes() == before


@pytest.mark.usefixtures("ledger")
def test_a_dry_run_writes_no_page_and_no_metrics(run: Run, config: Path, page: Path) -> None:
    metrics = config.parent / "x.prom"
    config.write_text(f"{config.read_text()}metrics: {{textfile: {metrics}}}\n", encoding="utf-8")
    run("cycle", "--dry-run")
    assert not page.exists()
    assert not metrics.exists()


@pytest.mark.parametrize("key", ["metrics: {textfile", "history: {jobs_file"])
def test_a_page_in_the_place_of_another_file_is_refused(run: Run, config: Path, key: str) -> None:
    path = config.parent / "a.prom"
    with config.open("a", encoding="utf-8") as file:
        file.write(f"report: {{file: {path}}}\n{key}: {path}}}\n")
    code, _, err = run("cycle")
    assert (code, "report.file" in err) == (78, True)
