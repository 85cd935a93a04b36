from __future__ import annotations

import hashlib
from collections import Counter

import pytest

from sharectl.cadence.laws import parse, weighted
from sharectl_lab.workload.draw import DrawnWorkload, JobStream, Phase

HOUR = 3600.0
BURST = Phase(begin_hours=1, length_hours=1, every_hours=4, factor=5)
STREAMS = [
    JobStream("alice.prod", 8, parse("log-normal:3600,1800"), per_hour=30, phases=(BURST,)),
    JobStream("cms", run_time=parse("exponential:600"), per_hour=200, users=3, access_points=2),
    JobStream("atlas", run_time=weighted({60: 1, 300: 2}), per_hour=20, at_start=5),
    JobStream("lhcb", run_time=parse("exponential:900"), keep_pending=7, users=3),
]
DIGEST = "464cceb60243b229"
"""Of jobs and factories of seed 1, nine digits of each number."""


def test_a_seed_gives_the_same_jobs_on_every_python() -> None:
    workload = DrawnWorkload(STREAMS, 1, 24 * HOUR)
    digest = hashlib.sha256()
    for job in workload.arrivals():
        digest.update(f"{job.at:.9g} {job.kind} {job.run_seconds:.9g}\n".encode())
    for factory in workload.factories:
        for _ in range(100):
            digest.update(f"{factory.draw_seconds():.9g}\n".encode())
    assert digest.hexdigest()[:16] == DIGEST


def test_phases_that_overlap_multiply() -> None:
    phases = (Phase(10, factor=3), Phase(5, begin_hours=5, factor=2), Phase(1, begin_hours=9))
    jobs = DrawnWorkload([JobStream(per_hour=1000, phases=phases)], 3, 11 * HOUR).arrivals()
    by_hour = Counter(int(job.at / HOUR) for job in jobs)
    expected = [3000] * 5 + [6000] * 4 + [0, 1000]
    assert [by_hour[hour] for hour in range(11)] == pytest.approx(expected, abs=400)


def test_a_factory_stops_in_an_outage_and_comes_back() -> None:
    outage = Phase(begin_hours=48, length_hours=18, every_hours=72)
    stream = JobStream(keep_pending=10, factory_seconds=30, phases=(outage,))
    (factory,) = DrawnWorkload([stream], 1, 1e9).factories
    assert (factory.keep_pending, factory.period_seconds) == (10, 30)
    active = [factory.is_active(hour * HOUR) for hour in (0, 47.9, 48, 65.9, 66, 119, 120, 138)]
    assert active == [True, True, False, False, True, True, False, True]
    once = DrawnWorkload([JobStream(keep_pending=1, phases=(Phase(1),))], 1, 1e9).factories[0]
    assert [once.is_active(at) for at in (0, HOUR - 1, HOUR, 1e8)] == [False, False, True, True]
