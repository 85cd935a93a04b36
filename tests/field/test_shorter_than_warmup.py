"""A log that ends before the time that counts: nothing can be compared, and the exit code is 65."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharectl.cli.main import main
from sharectl_lab.twin.answers import NOTHING
from tests.field.simulated import POOL, Simulate, is_shown, notes, simulate

__all__ = ["simulate"]
ROW = "1 {0} 0 {1} 8 -1 -1 8 -1 -1 1 1 1 1 1 -1 -1 -1\n"
SWF = f'{POOL}swf: {{file: log.swf, groups: {{"*": cms}}}}\n'
SHORT = (
    "the log's last job is submitted 1 hours after its first, and nothing counts before "
    "warmup_hours (24): write a smaller warmup_hours"
)


def test_it_says_so(simulate: Simulate, tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(ROW.format(0, 600) + ROW.format(3600, 600))
    simulated = simulate(SWF)
    assert (simulated.code, simulated.notes) == (
        65,
        [SHORT, f"{NOTHING}; cores are idle because no job is pending"],
    )
    assert [is_shown(simulated, note) for note in simulated.notes] == [True, True]
    assert "shortfall" not in simulated.screen


def test_jobs_that_run_on_after_the_warm_up_count(simulate: Simulate, tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(ROW.format(0, 90_000) + ROW.format(3600, 600))
    simulated = simulate(SWF)
    assert (simulated.code, simulated.notes) == (0, [SHORT])
    assert simulated.strategy["used_ratio"]["mean"] == pytest.approx(
        8 * 3600 / 32 / 86_400, rel=0.1
    )


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (
            ROW.format(0, 1),
            [("the log has jobs for 0.000278 hours, and days (1) count an empty pool too: write "
             "such as days: 0.0035")],
        ),
        (ROW.format(0, 600) + ROW.format(46_000, 600), []),
        (ROW.format(46_000, 600) + ROW.format(0, 600), []),
        (
            ROW.format(0, 50_000) + ROW.format(100_000, 600),
            ["jobs left out: 1 (submitted after the days that are simulated)"],
        ),
    ],
    ids=["one second", "half of the time", "unsorted", "late"],
)  # fmt: skip
def test_a_log_shorter_or_longer_than_the_days(
    tmp_path: Path, rows: str, expected: list[str]
) -> None:
    (tmp_path / "log.swf").write_text(rows)
    assert notes(f"{SWF}warmup_hours: 0\n", tmp_path) == expected


@pytest.mark.parametrize(
    "words",
    [
        ("tune", "--over", "control.law=latest|pid", "--trials", "1", "--cores", "1"),
        ("learn", "--hours", "1", "--generations", "1", "--population", "2", "--jobs", "1"),
    ],
)
def test_nothing_can_be_tuned_or_learned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    (tmp_path / "log.swf").write_text(ROW.format(0, 600))
    (tmp_path / "mine.yaml").write_text(SWF)
    verb, *options = words
    more = ["-o", str(tmp_path / "policy.json")] if verb == "learn" else []
    assert main([verb, str(tmp_path / "mine.yaml"), *options, *more]) == 65
    out, err = capsys.readouterr()
    first, last = err.splitlines()
    assert "the log's last job is submitted 0 hours after its first, and nothing" in first
    assert (last.endswith(NOTHING), out) == (True, "")
    assert not (tmp_path / "policy.json").exists()
