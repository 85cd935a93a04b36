from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from sharectl.model import RunningJobs, Snapshot
from sharectl.plan import waits
from sharectl.plan.waits import Leaving, RemainingTimes, observed
from tests.fakes import NOW, snapshot


def jobs(node: str, *seconds: int, cores: int = 1) -> list[RunningJobs]:
    return [RunningJobs(node, "alice", cores, 10.0, each) for each in seconds]


def look(at: int, *held: RunningJobs) -> Snapshot:
    return replace(snapshot(held), taken_at=NOW + at)


@pytest.mark.parametrize(
    ("before", "after", "watched"),
    [
        # A job that is gone has ended: it was watched for half the time. One of 10 s is new.
        (jobs("wn-1", 30, 30, 5000), jobs("wn-1", 132, 5099, 10), (100 + 100 + 50, 1)),
        # Jobs are told apart by node, group and cores.
        (
            [*jobs("wn-1", 30), *jobs("wn-2", 30)],
            [*jobs("wn-1", 130), *jobs("wn-2", 130, cores=8)],
            (150, 1),
        ),
    ],
)
def test_jobs_that_are_gone_have_ended_and_others_were_watched(
    before: list[RunningJobs], after: list[RunningJobs], watched: tuple[float, float]
) -> None:
    table = observed(look(0, *before), look(100, *after))["alice"]
    assert tuple(map(sum, zip(*table.bins))) == watched
    assert RemainingTimes.from_rows(table.as_rows()) == table


@pytest.mark.parametrize(
    ("seconds", "node"), [(100, "wn-2"), (0, "wn-1"), (-5, "wn-1"), (86_400, "wn-1")]
)
def test_nodes_that_are_gone_and_looks_far_apart_or_out_of_order_tell_nothing(
    seconds: int, node: str
) -> None:
    assert observed(look(0, *jobs("wn-1", 30)), look(seconds, *jobs(node, 30))) == {}


@pytest.mark.parametrize(
    ("kinds", "needed"),
    [
        ([(1, 64, 1000.0)], 8),
        ([(8, 4, 1000.0)], 5),
        ([(1, 10, 100.0), (1, 10, 5000.0)], 6),
        ([(1, 8, 1000.0)], 0),
    ],
)
def test_the_wait_is_that_of_jobs_drawn_at_random(kinds: list[Leaving], needed: int) -> None:
    draw, seconds, idle = Random(1), 0.0, 0.0
    for _ in range(4000 if needed else 0):
        ends = sorted(
            (draw.expovariate(1 / seconds_each), cores)
            for cores, number, seconds_each in kinds
            for _ in range(number)
        )
        free, last = 0, 0.0
        for end, cores in ends:
            idle += free * (end - last)
            free, last = free + cores, end
            if free >= needed:
                break
        seconds += last
    wait = waits.wait_for_cores(kinds, needed, 0)
    assert wait.seconds == pytest.approx(seconds / 4000, rel=0.15)
    # Of few large jobs nearly nothing is idle until the one that is enough.
    assert wait.idle_core_seconds == pytest.approx(idle / 4000, rel=0.35, abs=4 * seconds / 4000)
