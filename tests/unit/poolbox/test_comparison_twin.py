from __future__ import annotations

from math import isclose

import pytest

from poolbox.comparison import twin
from poolbox.comparison.scenario import FILL_SECONDS, SCENARIOS
from sharectl_lab.scenarios.strategies import read_strategies

SECONDS, SEED = 60.0, 5


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_twin_has_the_jobs_of_the_pool_in_their_order(name: str) -> None:
    made = SCENARIOS[name](SEED, SECONDS)
    (nothing,) = read_strategies("nothing")
    workload = twin.twin_scenario(made, nothing).workload()
    arrivals = [(arrival, workload.kinds[arrival.kind]) for arrival in workload.arrivals()]
    due = [job for job in made.jobs if job.at < SECONDS]

    assert [arrival.run_seconds for arrival, _ in arrivals] == [job.run_seconds for job in due]
    assert [(kind.account, kind.cores) for _, kind in arrivals] == [
        (job.group, job.cores) for job in due
    ]
    for (arrival, _), job in zip(arrivals, due):
        assert isclose(arrival.at, FILL_SECONDS + job.at, abs_tol=0.1)
