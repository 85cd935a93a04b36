from __future__ import annotations

import random
from math import ceil, exp, log, sqrt
from statistics import NormalDist

import pytest

from sharectl.cadence.choice import IntervalCost, Knobs, Terms, choose
from sharectl.cadence.laws import loading_factor, parse, weighted
from sharectl.cadence.run_times import LoggedJob, load_of
from sharectl.condor.negotiator import Cycle, cycles_of

DRAWS = 100_000


@pytest.mark.parametrize(
    ("run_time", "cadence", "factor"),
    [
        # The examples of Erlandson's text.
        (255, 60, 0.85),
        (255, 300, 0.85),
        (601, 60, 601 / 660),
        (90, 50, 0.9),
        (3 * 0.1, 0.1, 1.0),
        (5e-324, 300, 0.0),
    ],
)
def test_known_values(run_time: float, cadence: float, factor: float) -> None:
    assert loading_factor(run_time, cadence) == pytest.approx(factor, abs=1e-12)


@pytest.mark.parametrize("start", [0, 5])
@pytest.mark.parametrize(
    ("cadence", "worklife"), [(60, 0), (300, 0), (60, 1200), (300, 1200), (45, 300)]
)
def test_exponential_run_times_are_exact(cadence: int, worklife: int, start: int) -> None:
    """P(claim > t) = exp((W - t) / mean) from t = W on: the sum over cycles, term by term."""
    ends = (cycle * cadence - start - worklife for cycle in range(2000))
    held = sum(exp(-max(0, end) / 255) for end in ends)
    loading = parse("exponential:255").loading(cadence, worklife, start)
    assert loading == pytest.approx((worklife + 255) / (cadence * held), abs=1e-6)


def test_log_normal_run_times_are_those_of_their_distribution_function() -> None:
    law = NormalDist(log(255) - log(1 + (400 / 255) ** 2) / 2, sqrt(log(1 + (400 / 255) ** 2)))
    held = 1 + sum(1 - law.cdf(log(60 * cycle)) for cycle in range(1, 20_000))
    assert parse("log-normal:255,400").loading(60) == pytest.approx(255 / 60 / held, abs=1e-5)


@pytest.mark.parametrize("worklife", [0, 1200])
@pytest.mark.parametrize("cadence", [60, 300])
def test_the_expectation_is_what_sampling_gives(cadence: float, worklife: float) -> None:
    weights: dict[float, float] = {5: 3, 60: 2, 61: 1, 300: 4, 5000: 0.1}
    draws = random.Random(7)
    busy = slot_seconds = 0.0
    jobs = 0
    while jobs < DRAWS:
        claim = 0.0
        while claim <= worklife:
            claim += draws.choices([*weights], [*weights.values()])[0]
            jobs += 1
        busy += claim
        slot_seconds += cadence * ceil(claim / cadence)
    # One job a claim: the error of 100,000 draws is some 0.002 with the longest tail.
    loading = weighted(weights).loading(cadence, worklife)
    assert loading == pytest.approx(busy / slot_seconds, abs=0.006)


def test_many_kinds_of_jobs_have_the_loading_of_each() -> None:
    """Jobs count by their cores; kinds with little work, which share a part, lose nothing."""
    jobs = [
        LoggedJob(0, 30 * number, number % 9, 0, "user", f"group{number}.prod", "")
        for number in range(1, 60)
        for _ in range(number)
        if number % 9
    ]
    load = load_of(jobs)
    held = sum(300 * ceil(job.run_seconds / 300) * job.cores for job in jobs)
    assert load.loading(300) == pytest.approx(load.work / held)


def test_the_three_knobs_mean_different_things() -> None:
    knobs = Knobs(interval_seconds=60, cycle_delay_seconds=20, min_interval_seconds=5)
    assert [knobs.period_seconds(duration) for duration in (1, 40, 41, 100)] == [60, 60, 61, 120]
    assert [knobs.shortest_period_seconds(duration) for duration in (1, 40)] == [21, 60]
    assert Knobs(10, 1, 30).period_seconds(2) == 30


def test_a_slow_negotiator_gets_a_longer_interval_and_a_longer_delay() -> None:
    offered = [IntervalCost(seconds, seconds, 0.9, 0.9, 30 / seconds) for seconds in (20, 60, 120)]
    longest = IntervalCost(300, 300, 0.9, 0.9, 0.1)
    choice = choose(offered, offered[1], Terms((), 0, 10, 30))
    assert choice is not None
    assert (choice.option.interval_seconds, choice.knobs) == (120, Knobs(120, 90, 5))
    assert choose([*offered, longest], offered[1], Terms((), 0, 10, 100)) is None


def test_cycles_of_a_negotiator_with_a_short_or_invalid_ad() -> None:
    assert cycles_of({}) == []
    ad = {
        "LastNegotiationCycleDuration0": 3,
        "LastNegotiationCyclePeriod0": 63,
        "LastNegotiationCycleNumIdleJobs0": 5,
        "LastNegotiationCycleDuration1": 2,
        "LastNegotiationCyclePeriod1": 0,
        "LastNegotiationCycleDuration2": "long",
        "LastNegotiationCycleDuration3": -5,
    }
    assert cycles_of(ad) == [Cycle(3, 63, 5), Cycle(2, None, None)]
