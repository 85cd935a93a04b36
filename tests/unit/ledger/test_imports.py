"""``sharectl ledger import``."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sharectl.errors import InputError
from sharectl.ledger import error_log
from sharectl.ledger.error_log import CLOCK_ERROR_SECONDS, bring_in
from sharectl.ledger.ledger import Ledger
from sharectl.ledger.retention import Keep
from sharectl.ledger.series import UNKNOWN_SIZE
from sharectl.plan.records import CycleRecord
from sharectl.times import DAY_SECONDS
from tests.fakes import NOW
from tests.made_cycles import PERIOD_SECONDS, incomplete, made

Run = Callable[..., int]
Capture = pytest.CaptureFixture[str]

EVER = 2**40
T0 = 1627101243
ROWS = (
    f"{T0} cms 87100 -542 0 4888 -3321 -29403 0 12784",
    f"{T0} atlas 105300 -4024 2536 0 -33917 -65442 5006 1221",
    f"{T0} alice 71400 4566 4566 0 37238 15861 4211 0",
)


def log_of(folder: Path, *rows: str, name: str = "errors.log") -> Path:
    path = folder / name
    path.write_text("\n".join(rows) + "\n")
    return path


def log_at(folder: Path, *times: int, name: str = "errors.log") -> Path:
    """A log of cycles at some Unix seconds, as `made` makes them."""
    errors = [control.error for control in made(0)[0].groups]
    rows = [row for time in times for row in error_log.rows(time, errors)]
    return log_of(folder, error_log.HEADER, *rows, name=name)


def periods(numbers: range) -> list[int]:
    return [NOW + number * PERIOD_SECONDS for number in numbers]


def add(ledger: Ledger, folder: Path, *times: int) -> None:
    bring_in(ledger, [log_at(folder, *times)], max(times))


def times_in(ledger: Ledger) -> list[int]:
    return [record.taken_at for record in ledger.cycles(0, EVER)]


def test_each_row_is_added_once_whatever_its_numbers(
    run: Run, ledger: Ledger, state: Path, tmp_path: Path, capsys: Capture
) -> None:
    log = log_at(tmp_path, *periods(range(4, 9)))
    rotated = log_at(tmp_path, *periods(range(5)), name="errors.log.1")
    assert run("import", log, rotated, "--json") == 0
    done = json.loads(capsys.readouterr().out)
    counts = ("rows", "rows_added", "cycles_added", "rows_known")
    assert [done[name] for name in counts] == [20, 18, 9, 2]
    assert state.stat().st_mode & 0o777 == 0o755, "nodes may read there"
    before = ledger.path.read_bytes()
    other = rotated.read_text().replace(" 0 ", " 1 ")
    assert other != rotated.read_text()
    assert run("import", log_of(tmp_path, other), "--json") == 0
    assert json.loads(capsys.readouterr().out)["rows_known"] == 10
    assert ledger.path.read_bytes() == before
    assert times_in(ledger) == periods(range(9))
    assert {(record.imported, len(record.groups)) for record in ledger.cycles(0, EVER)} == {
        (True, 2)
    }
    assert run("check", "--all") == 0


def test_imported_figures_are_those_of_recorded_cycles_and_unknown_ones_are_not_zero(
    ledger: Ledger, tmp_path: Path
) -> None:
    times = [NOW + hours * 3600 for hours in (-30, -1, 0, 1, 23, 24, 25, 100)]
    live = Ledger(tmp_path / "live")
    for time in times:
        live.record(CycleRecord(time, 1.0, complete=True, groups=made(0)[0].groups), made(0)[1])
    add(ledger, tmp_path, *times[::2])
    add(ledger, tmp_path, *times[1::2])
    for points in (1, 10, 200):
        period = (NOW - 2 * DAY_SECONDS, NOW + 5 * DAY_SECONDS, points)
        buckets = zip(ledger.series(*period).buckets, live.series(*period).buckets)
        for bucket, same in buckets:
            alice, cms = bucket.groups["alice"], bucket.groups["cms"]
            work = same.groups["alice"].work_hs06_seconds
            assert alice.work_hs06_seconds == pytest.approx(work)
            assert bucket.pool.covered_seconds == same.pool.covered_seconds
            assert (bucket.pool.idle_cores, bucket.pool.targets) == (None, None)
            assert (alice.output_hs06, alice.helped_nodes, alice.unplaceable_jobs) == (None,) * 3
            assert (set(alice.cores_by_size), set(cms.cores_by_size)) == ({1}, {UNKNOWN_SIZE})


def test_recorded_cycles_stay_as_they_are(ledger: Ledger, tmp_path: Path) -> None:
    for record, seen in (made(0), incomplete(2), made(90)):
        ledger.record(record, seen)
    before = list(ledger.cycles(0, EVER, with_nodes=True))
    # The last one alters the time that a recorded cycle covers, on the day after.
    add(ledger, tmp_path, NOW - DAY_SECONDS, *periods(range(2)), NOW + 90 * PERIOD_SECONDS - 300)
    after = list(ledger.cycles(0, EVER, with_nodes=True))
    assert [record for record in after if not record.imported] == before
    assert len(after) > len(before)


def test_a_clock_may_be_wrong_by_a_day(ledger: Ledger, tmp_path: Path) -> None:
    log = [log_of(tmp_path, ROWS[0])]
    with pytest.raises(InputError, match=r"errors\.log:1: needs"):
        bring_in(ledger, log, T0 - CLOCK_ERROR_SECONDS - 1)
    assert bring_in(ledger, log, T0 - CLOCK_ERROR_SECONDS).rows_added == 1


def test_rows_that_are_too_old_are_left_out_and_the_key_is_named(
    run: Run, config: Path, state: Path, tmp_path: Path, capsys: Capture
) -> None:
    config.write_text(config.read_text().replace("36500", "30"))
    log = log_of(tmp_path, *ROWS)
    assert run("import", log, "--json") == 1
    streams = capsys.readouterr()
    needed = json.loads(streams.out)["keep_days_needed"]
    assert f"set ledger.keep_days to {needed} or more" in streams.err
    assert not state.exists()
    young = log_of(tmp_path, *ROWS, ROWS[0].replace(str(T0), str(T0 + 86400 * 9)))
    ledger = Ledger(tmp_path / "ledger", Keep(days=5))
    done = bring_in(ledger, [young], T0 + 86400 * 10)
    assert (done.rows, done.rows_too_old, done.rows_added, done.keep_days_needed) == (4, 3, 1, 12)


BAD_ROWS = (
    f"{T0} cms 87100 -542 0 4888",
    f"{T0} cms 1 1 1 1 1 1 1 x",
    f"{T0} =cmd 1 1 1 1 1 1 1 1",
    f"{T0} cms..prod 1 1 1 1 1 1 1 1",
    "99999999999999 cms 1 1 1 1 1 1 1 1",
    "0 cms 1 1 1 1 1 1 1 1",
    ROWS[1].replace(" 2536 ", " -2536 "),
    ROWS[1].replace(" 105300 ", " -5 "),
    ROWS[1].replace(" -4024 ", f" -{2**60} "),
    ROWS[1].replace(" 5006 ", f" {'9' * 4000} "),
    error_log.HEADER.lstrip("# ").replace("SC MC", "MC SC"),
)


def test_all_bad_rows_of_all_files_are_named_and_nothing_is_brought_in(
    run: Run, state: Path, tmp_path: Path, capsys: Capture
) -> None:
    header = error_log.HEADER.lstrip("# ").replace(" ", "\t")
    good, missing = log_of(tmp_path, header, *ROWS), tmp_path / "missing.log"
    bad = log_of(tmp_path, *BAD_ROWS, name="bad.log")
    assert run("import", good, bad, missing, tmp_path) == 65
    places = [line.split(": ")[1] for line in capsys.readouterr().err.splitlines()]
    rows = [f"{bad}:{number}" for number in range(1, len(BAD_ROWS) + 1)]
    assert places == [*rows, str(missing), str(tmp_path)]
    assert run("import", log_of(tmp_path, error_log.HEADER, name="empty.log")) == 65
    assert not state.exists()
    assert run("import", good) == 0


def test_a_pipe_is_refused_and_a_packed_log_is_read(
    run: Run, ledger: Ledger, tmp_path: Path
) -> None:
    pipe, packed = tmp_path / "pipe", tmp_path / "log.gz"
    os.mkfifo(pipe)
    assert run("import", pipe) == 65
    packed.write_bytes(gzip.compress("\n".join(ROWS).encode()))
    assert run("import", packed) == 0
    assert times_in(ledger) == [T0]
