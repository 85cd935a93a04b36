"""No growth over many cycles while all that can fail does: `bench/endurance.py`, in short."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.pool import long_run
from tests.pool.conftest import OpenBox
from tests.pool.long_run import LongRun

ROUNDS = 1


@pytest.fixture(scope="module")
def run(open_box: OpenBox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LongRun]:
    """A run through all faults, after which sharectl is switched off."""
    with (
        open_box(long_run.SPEC) as box,
        long_run.long_run(box, tmp_path_factory.mktemp("run")) as run,
    ):
        run.go(ROUNDS)
        box.wait_until(run.acts, "nodes act on targets as before")
        yield run


def test_cycles_fail_as_documented_and_the_next_ones_bring_all_back(run: LongRun) -> None:
    assert set(run.after) == set(run.faults())
    codes = long_run.exit_codes(run)
    assert set().union(*codes.values()) <= {0, 74, 75, -9}
    assert codes["disk full"] == codes["no place for targets"] == Counter({74: ROUNDS})
    assert codes["schedd hangs"] == codes["collector dead"] == Counter({75: ROUNDS})
    assert codes["cycle killed"] == Counter({-9: ROUNDS})
    last = run.cycles[-1]
    assert last.exit_code == 0, last.stderr
    assert last.targets > 0
    assert run.job_ctl_times, "nodes look for their targets"


def test_nothing_grows_and_nothing_is_left(run: LongRun) -> None:
    for name, trend in long_run.of_cycles(run).items():
        assert trend.growth <= 1.1, name
    for rows in (run.descriptors, run.resident_kib):
        trends = long_run.of_daemons(rows)
        assert trends
        for name, trend in trends.items():
            assert trend.growth <= 1.3, name
    assert long_run.too_large(run) == []
    assert run.leftovers() == []


def test_no_core_is_idle_in_the_end(run: LongRun) -> None:
    """Last of the file."""
    run.end()
