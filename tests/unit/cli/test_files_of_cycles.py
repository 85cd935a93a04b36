"""`metrics.textfile` and `report.file`: cycles write them, and never fail because of them."""

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
from sharectl.publish.state import StateFile
from sharectl.report.page import BEGIN
from tests.simulated import PERIOD_SECONDS, cycles
from tests.unit.cli.conftest import Run, add


def with_file(config: Path, key: str) -> Path:
    """Path in a new folder, which the configuration names by a key."""
    path = config.parent / "written" / ("x.prom" if key == "metrics.textfile" else "index.html")
    section, _, name = key.partition(".")
    add(config, f"{section}: {{{name}: {path}}}\n")
    path.parent.mkdir()
    return path


@pytest.fixture
def textfile(config: Path) -> Path:
    return with_file(config, "metrics.textfile")


@pytest.fixture
def page(config: Path) -> Path:
    """Page of a pool whose ledger has cycles of the last hours; the last one ended just now."""
    ledger = Ledger(config.parent / PLACE)
    made = list(cycles(0.2))
    ahead = int(time.time()) - 60 - made[-1][0].taken_at
    for record, seen in made:
        at = record.taken_at + ahead
        ledger.record(replace(record, taken_at=at), replace(seen, taken_at=at))
    return with_file(config, "report.file")


def test_a_cycle_without_an_answer_writes_metrics_for_all(run: Run, textfile: Path) -> None:
    before = os.umask(0o077)
    try:
        assert run("cycle")[0] == 75
    finally:
        os.umask(before)
    text = textfile.read_text(encoding="utf-8")
    assert "sharectl_last_cycle_success 0.0\n" in text
    assert 'sharectl_source_success{source="collector"} 0.0\n' in text
    assert textfile.stat().st_mode & 0o777 == 0o644
    assert [path.name for path in textfile.parent.iterdir()] == [textfile.name]


def test_the_last_success_stays_while_cycles_fail(run: Run, textfile: Path) -> None:
    state = StateFile(textfile.parents[1] / "state.json")
    state.note_cycle({"taken_at": 7, "succeeded_at": 7})
    for _ in range(2):
        run("cycle")
    assert "sharectl_last_success_timestamp_seconds 7.0\n" in textfile.read_text(encoding="utf-8")
    assert state.last_cycle()["succeeded_at"] == 7


def test_a_cycle_writes_the_page_of_the_last_days_once_an_hour(run: Run, page: Path) -> None:
    assert run("cycle")[0] == 75, "no pool is there"
    text = page.read_text(encoding="utf-8")
    assert text.startswith(BEGIN)
    first = Ledger(page.parents[1] / PLACE).span()
    assert first is not None
    assert first[0] < time.time() - 0.1 * 86_400 - PERIOD_SECONDS
    assert "The last complete cycle" in text
    assert json.loads(run("status", "--json")[1])["last_cycle"]["unwritten"] == []
    inode = page.stat().st_ino
    os.utime(page, (time.time() - 3500,) * 2)
    run("cycle")
    assert page.stat().st_ino == inode
    for age in (3700, -3700):
        os.utime(page, (time.time() - age,) * 2)
        run("cycle")
        assert time.time() - page.stat().st_mtime < 1800, age


@pytest.mark.parametrize("key", ["textfile", "page"])
def test_a_file_of_somebody_else_stays_and_is_a_problem_of_status_alone(
    run: Run, key: str, request: pytest.FixtureRequest
) -> None:
    path: Path = request.getfixturevalue(key)
    path.write_text("<html>home</html>", encoding="utf-8")
    os.utime(path, (0, 0))
    code, _, err = run("cycle")
    words = f"{'report.file' if key == 'page' else 'metrics.textfile'}: {path}: not replaced"
    assert (code, f"warning: {words}" in err) == (75, True), "the code is that of the pool"
    assert path.read_text(encoding="utf-8") == "<html>home</html>"
    assert f"last cycle: {words}" in run("status")[2]
    path.unlink()
    run("cycle")
    assert path.exists()
    assert words not in run("status")[2]


def test_the_old_page_stays_while_the_ledger_cannot_be_read(run: Run, page: Path) -> None:
    run("cycle")
    before = page.read_bytes()
    os.utime(page, (0, 0))
    with closing(sqlite3.connect(page.parents[1] / PLACE)) as connection:
        connection.execute("PRAGMA user_version = 99")
    _, _, err = run("cycle")
    assert "report.file: " in err
    assert page.read_bytes() == before


@pytest.mark.parametrize("key", ["textfile", "page"])
def test_a_dry_run_writes_neither(run: Run, key: str, request: pytest.FixtureRequest) -> None:
    path: Path = request.getfixturevalue(key)
    run("cycle", "--dry-run")
    assert not path.exists()


def test_a_page_in_the_place_of_another_file_is_refused(run: Run, config: Path) -> None:
    path = config.parent / "a.prom"
    add(config, f"report: {{file: {path}}}\nmetrics: {{textfile: {path}}}\n")
    code, _, err = run("cycle")
    assert (code, "report.file" in err) == (78, True)
