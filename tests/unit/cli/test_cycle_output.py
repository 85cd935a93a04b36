"""Lines of a cycle: priorities for the journal, `-q` and `-v`, warnings that stand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from poolbox.waiting import HANG_SECONDS
from sharectl.cli.cycle import due_warnings
from sharectl.times import DAY_SECONDS
from tests.unit.cli.conftest import Run

NOW = 1_800_000_000


@pytest.mark.parametrize("is_the_journal", [True, False])
def test_each_line_has_its_priority_in_the_journal_alone(
    config: Path, tmp_path: Path, *, is_the_journal: bool
) -> None:
    with (tmp_path / "stderr").open("w+") as error:
        seen = os.fstat(error.fileno())
        stream = f"{seen.st_dev}:{seen.st_ino + (not is_the_journal)}"
        subprocess.run(
            [sys.executable, "-m", "sharectl", "cycle", "-v", "--config", str(config)],
            env={**os.environ, "JOURNAL_STREAM": stream},
            stdout=subprocess.DEVNULL,
            stderr=error,
            timeout=HANG_SECONDS,
            check=False,
        )
        error.seek(0)
        lines = error.read().splitlines()
    begins = [line.partition("sharectl: ")[0] for line in lines]
    assert begins == (["<5>", "<3>"] if is_the_journal else ["", ""])


def test_quiet_prints_problems_alone_and_verbose_each_answer(run: Run) -> None:
    code, out, problem = run("cycle")
    assert (code, out.count("\n")) == (75, 1)
    assert run("cycle", "-q")[1:] == ("", problem)
    _, out, err = run("cycle", "--verbose")
    assert out.startswith("mode=steer complete=false ")
    answer, end = err.splitlines()
    assert answer.startswith("sharectl: collector: 127.0.0.1:1: nobody listens")
    assert answer.endswith(" s)")
    assert f"{end}\n" == problem
    assert run("cycle", "-q", "-v")[0] == 2


def test_a_warning_that_stands_is_printed_once_a_day() -> None:
    stands, other = "alice has 150 HS06 of 900", "metrics.textfile: no room"
    due, warned_at = due_warnings([stands], {}, NOW)
    assert due == [stands]
    due, warned_at = due_warnings(["alice has 151.5 HS06 of 900", other], warned_at, NOW + 1020)
    assert due == [other], "of one kind if numbers alone differ"
    due, warned_at = due_warnings([], warned_at, NOW + 2040)
    assert due_warnings([stands], warned_at, NOW + DAY_SECONDS - 1)[0] == []
    due, warned_at = due_warnings([stands], warned_at, NOW + DAY_SECONDS)
    assert due == [stands]
    assert [*warned_at.values()] == [NOW + 1020, NOW + DAY_SECONDS]
    assert due_warnings([stands], warned_at, NOW)[0] == [stands], "the clock was ahead"


@pytest.mark.parametrize("written", [{"a": "x"}, {"a": None, "b": [1]}, {"a": 1e400}, [1], None, 7])
def test_times_of_warnings_that_are_none_count_as_never(written: object) -> None:
    assert due_warnings(["alice has 150 HS06"], written, NOW) == (
        ["alice has 150 HS06"],
        {"alice has # HS#": NOW},
    )
