"""Lines of a cycle: priorities for the journal, warnings that stand, and `mode: observe`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from poolbox.waiting import HANG_SECONDS
from sharectl.cli.cycle import new_warnings
from sharectl.publish import text
from sharectl.publish.state import StateFile
from tests.unit.cli.conftest import Run, add
from tests.unit.cli.test_disable_command import publish_targets


@pytest.mark.parametrize("is_the_journal", [True, False])
def test_each_line_has_its_priority_in_the_journal_alone(
    config: Path, tmp_path: Path, *, is_the_journal: bool
) -> None:
    add(config, f"metrics: {{textfile: {tmp_path}/missing/x.prom}}\n")
    with (tmp_path / "stderr").open("w+") as error:
        seen = os.fstat(error.fileno())
        stream = f"{seen.st_dev}:{seen.st_ino + (not is_the_journal)}"
        subprocess.run(
            [sys.executable, "-m", "sharectl", "cycle", "--config", str(config)],
            env={**os.environ, "JOURNAL_STREAM": stream},
            stdout=subprocess.DEVNULL,
            stderr=error,
            timeout=HANG_SECONDS,
            check=False,
        )
        error.seek(0)
        lines = error.read().splitlines()
    begins = [line.partition("sharectl: ")[0] for line in lines]
    assert begins == (["<4>", "<3>"] if is_the_journal else ["", ""])


def test_a_warning_that_stands_is_printed_once() -> None:
    stands, other = "alice has 150 HS06 of 900", "metrics.textfile: no room"
    assert new_warnings([stands], []) == [stands]
    assert new_warnings(["alice has 151.5 HS06 of 900", other], [stands]) == [other]
    assert new_warnings([stands], [other, None, 7]) == [stands]


# ---- mode: observe


def test_status_says_that_nothing_is_steered(run: Run, config: Path, tmp_path: Path) -> None:
    assert publish_targets(tmp_path) == ""
    assert text.FilePublisher(tmp_path / "sharectl.txt").look()[0].targets == 1
    assert StateFile(tmp_path / "state.json").load().sequence
    add(config, "mode: observe\n")
    _, out, err = run("status")
    assert "observe: nothing is steered" in out
    assert "the next cycle withdraws them" in err


@pytest.mark.parametrize("option", [["--dry-run"], []])
def test_a_cycle_that_observes_is_not_disabled(
    run: Run, config: Path, tmp_path: Path, option: list[str]
) -> None:
    assert publish_targets(tmp_path) == ""
    add(config, "mode: observe\n")
    _, line, _ = run("cycle", *option)
    assert " disabled=false " in line
    assert "1970" not in line
