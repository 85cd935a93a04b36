"""`metrics.textfile`: a cycle writes it, and never fails because of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sharectl.publish.state import StateFile
from tests.unit.cli.conftest import Run


@pytest.fixture
def textfile(config: Path, tmp_path: Path) -> Path:
    path = tmp_path / "metrics" / "sharectl.prom"
    with config.open("a", encoding="utf-8") as file:
        file.write(f"metrics: {{textfile: {path}}}\n")
    return path


def test_a_cycle_without_an_answer_writes_metrics_for_all(run: Run, textfile: Path) -> None:
    textfile.parent.mkdir()
    before = os.umask(0o077)
    try:
        assert run("cycle")[0] == 75
    finally:
        os.umask(before)
    text = textfile.read_text(encoding="utf-8")
    assert "sharectl_last_cycle_success 0.0\n" in text
    assert 'sharectl_source_success{source="collector"} 0.0\n' in text
    assert textfile.stat().st_mode & 0o777 == 0o644
    assert [path.name for path in textfile.parent.iterdir()] == ["sharectl.prom"]


def test_the_last_success_stays_while_cycles_fail(run: Run, textfile: Path) -> None:
    textfile.parent.mkdir()
    state = StateFile(textfile.parents[1] / "state.json")
    state.note_cycle({"taken_at": 7, "succeeded_at": 7})
    for _ in range(2):
        run("cycle")
    assert "sharectl_last_success_timestamp_seconds 7.0\n" in textfile.read_text(encoding="utf-8")
    assert state.last_cycle()["succeeded_at"] == 7


def test_metrics_that_cannot_be_written_are_a_problem_of_status_alone(
    run: Run, textfile: Path
) -> None:
    code, _, err = run("cycle")
    assert code == 75, "that of a pool without an answer"
    assert f"warning: metrics.textfile: {textfile}: cannot be written" in err
    _, _, err = run("status")
    assert f"last cycle: metrics.textfile: {textfile}: cannot be written" in err
    textfile.parent.mkdir()
    run("cycle")
    assert textfile.exists()
    assert "metrics.textfile" not in run("status")[2]


@pytest.mark.parametrize("kind", ["file", "link"])
def test_somebody_elses_file_stays(run: Run, textfile: Path, tmp_path: Path, kind: str) -> None:
    textfile.parent.mkdir()
    other = textfile if kind == "file" else tmp_path / "other.prom"
    other.write_text("node_boot_time_seconds 1\n", encoding="utf-8")
    if kind == "link":
        textfile.symlink_to(other)
    _, _, err = run("cycle")
    assert "not replaced: it is no file of sharectl's metrics" in err
    assert textfile.read_text(encoding="utf-8") == "node_boot_time_seconds 1\n"
    assert textfile.is_symlink() == (kind == "link")
