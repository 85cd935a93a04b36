"""Lines of a cycle: priorities for the journal, warnings that stand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from poolbox.waiting import HANG_SECONDS
from sharectl.cli.cycle import new_warnings
from sharectl.publish.state import StateFile
from tests.unit.cli.conftest import Run


@pytest.mark.parametrize("is_the_journal", [True, False])
def test_each_line_has_its_priority_in_the_journal_alone(
    config: Path, tmp_path: Path, *, is_the_journal: bool
) -> None:
    metrics = f"metrics: {{textfile: {tmp_path}/missing/x.prom}}\n"
    config.write_text(f"{config.read_text()}{metrics}")
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


@pytest.mark.parametrize("written", [[{"a": 1}], "text", None, 7])
def test_any_warnings_may_be_in_the_file_of_the_last_cycle(
    run: Run, config: Path, written: object
) -> None:
    StateFile(config.parent / "state.json").note_cycle({"warnings": written})
    assert run("cycle")[0] == 75
