from __future__ import annotations

from dataclasses import replace
from math import isclose
from random import Random

import pytest

from sharectl.model import RunningJobs, Snapshot
from sharectl.plan.waits import NOTHING_SEEN, Leaving, RemainingTimes, observed, wait_for_cores
from tests.fakes import NOW, snapshot


def jobs(node: str, *seconds: int, group: str = "alice", cores: int = 1) -> list[RunningJobs]:
    return [RunningJobs(node, group, cores, 10.0, each) for each in seconds]


def look(at: int, *held: RunningJobs) -> Snapshot:
    return replace(snapshot(held), taken_at=NOW + at)


def test_a_job_that_is_gone_has_ended_and_one_that_stays_was_watched() -> None:
    seen = observed(look(0, *jobs("wn-1", 30, 30, 5000)), look(100, *jobs("wn-1", 132, 5099, 10)))
    table = seen["alice"]
    assert sum(table.ends) == 1
    assert sum(table.at_risk_seconds) == 100 + 100 + 50


def test_jobs_are_told_apart_by_node_group_and_cores() -> None:
    seen = observed(
        look(0, *jobs("wn-1", 30), *jobs("wn-2", 30)),
        look(100, *jobs("wn-1", 130), *jobs("wn-2", 130, cores=8)),
    )
    assert sum(seen["alice"].ends) == 1


def test_a_node_that_is_gone_tells_nothing() -> None:
    assert observed(look(0, *jobs("wn-1", 30)), look(100, *jobs("wn-2", 130))) == {}


@pytest.mark.parametrize("seconds", [0, -5, 86_400])
def test_looks_too_far_apart_or_out_of_order_tell_nothing(seconds: int) -> None:
    assert observed(look(0, *jobs("wn-1", 30)), look(seconds, *jobs("wn-1", 30))) == {}


def test_rows_are_the_table() -> None:
    table = observed(look(0, *jobs("wn-1", 30, 700)), look(100, *jobs("wn-1", 130)))["alice"]
    assert RemainingTimes.from_rows(table.as_rows()) == table


def test_what_was_seen_outweighs_the_prior() -> None:
    # Jobs of 600 s on average, whatever their age.
    table = RemainingTimes.from_rows([(start, 6e8, 1e6) for start, _, _ in _every_bin()])
    assert all(
        isclose(table.expected_seconds(age), 600, rel_tol=0.01) for age in (0, 59, 1000, 1e7)
    )


def _every_bin() -> tuple[tuple[int, float, float], ...]:
    return RemainingTimes((1.0,) * 32, (1.0,) * 32).as_rows()


def test_of_unknown_jobs_the_older_is_expected_to_stay_longer() -> None:
    expected = [NOTHING_SEEN.expected_seconds(age) for age in (0, 60, 3600, 40_000)]
    assert expected == sorted(expected)
    assert 900 < expected[0] < 2000
    assert isclose(expected[2], 3600, rel_tol=0.2)


@pytest.mark.parametrize(
    ("kinds", "needed"),
    [
        ([Leaving(1, 64, 1000.0)], 8),
        ([Leaving(1, 8, 1000.0)], 8),
        ([Leaving(8, 1, 1000.0)], 8),
        ([Leaving(8, 4, 1000.0)], 5),
        ([Leaving(1, 10, 100.0), Leaving(1, 10, 5000.0)], 6),
    ],
)
def test_the_wait_is_that_of_jobs_drawn_at_random(kinds: list[Leaving], needed: int) -> None:
    draw, seconds, idle = Random(1), 0.0, 0.0
    for _ in range(4000):
        ends = sorted(
            (draw.expovariate(1 / kind.expected_seconds), kind.cores)
            for kind in kinds
            for _ in range(kind.jobs)
        )
        free, last = 0, 0.0
        for end, cores in ends:
            idle += free * (end - last)
            free, last = free + cores, end
            if free >= needed:
                break
        seconds += last
    found = wait_for_cores(kinds, needed, 0)
    assert isclose(found.seconds, seconds / 4000, rel_tol=0.15)
    # Of few large jobs nearly nothing is idle until the one that is enough.
    assert found.idle_core_seconds == pytest.approx(idle / 4000, rel=0.35, abs=4 * seconds / 4000)


def test_what_is_free_already_is_not_waited_for() -> None:
    assert wait_for_cores([Leaving(1, 8, 1000.0)], 0, 8).seconds == 0
