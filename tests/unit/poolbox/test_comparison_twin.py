from __future__ import annotations

from dataclasses import replace
from math import isclose

import pytest

from poolbox.comparison import twin
from poolbox.comparison.scenario import SCENARIOS, UNMATCHABLE_MEMORY_MIB
from sharectl.sim.strategy_file import USUAL, read_strategies

SECONDS, SEED, STEP = 60.0, 5, 5.0


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_twin_has_the_jobs_of_the_pool_in_their_order(name: str) -> None:
    made = SCENARIOS[name](SEED, SECONDS)
    (nothing,) = read_strategies("nothing")
    workload = twin.twin_scenario(made, nothing, STEP).workload()
    arrivals = [(arrival, workload.kinds[arrival.kind]) for arrival in workload.arrivals()]
    due = [job for job in made.jobs if job.at < SECONDS]

    assert [arrival.run_seconds for arrival, _ in arrivals] == [job.run_seconds for job in due]
    assert [(kind.account, kind.cores) for _, kind in arrivals] == [
        (job.group, job.cores) for job in due
    ]
    for (arrival, kind), job in zip(arrivals, due):
        assert isclose(arrival.at, made.warm_up_seconds + job.at, abs_tol=0.1)
        assert (kind.memory_mib > 16_384) == (job.memory_mib == UNMATCHABLE_MEMORY_MIB)


@pytest.mark.parametrize("strategy", read_strategies(",".join(USUAL)), ids=lambda item: item.name)
def test_figures_of_a_twin_are_of_the_whole_pool_and_the_time_that_counts(strategy: object) -> None:
    (chosen,) = [item for item in read_strategies(",".join(USUAL)) if item == strategy]
    made = SCENARIOS["three-groups"](SEED, SECONDS)

    seen = twin.run(made, chosen, STEP, SEED)

    assert seen.times == tuple(STEP * place for place in range(1, 13))
    assert set(seen.cores) == set(made.pledge_hs06)
    for idle, *held in zip(seen.idle_cores, *seen.cores.values()):
        assert idle >= -1e-6
        assert isclose(idle + sum(held), made.cores)


def test_intervals_of_the_strategy_are_scaled_once() -> None:
    made = SCENARIOS["two-groups"](SEED, SECONDS)
    live, defrag = read_strategies("live:period_seconds=1200,defrag")

    assert dict(twin.twin_strategy(made, live).loop)["period_seconds"] == 20.0
    scaled = twin.twin_strategy(made, defrag).defrag
    assert scaled is not None
    assert scaled == replace(
        scaled, interval_seconds=10.0, machines_per_hour=3600.0, max_concurrent=2, max_whole=5
    )
