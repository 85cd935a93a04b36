from __future__ import annotations

from math import isclose

import pytest

from poolbox.comparison import twin
from poolbox.comparison.scenario import FILL_SECONDS, SCENARIOS
from sharectl_lab.scenarios.strategies import Strategy
from sharectl_lab.scenarios.strategy_file import USUAL, read_strategies
from sharectl_lab.study.run import Run

SECONDS, SEED = 60.0, 5
STRATEGIES = read_strategies(",".join(USUAL))


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


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.name)
def test_no_strategy_does_anything_before_the_demand_comes(strategy: Strategy) -> None:
    made = SCENARIOS["steady"](SEED, SECONDS)
    run = Run(
        twin.twin_scenario(made, strategy),
        twin.twin_strategy(made, strategy),
        SEED,
        SECONDS,
        equal_start=True,
    )
    run.until(FILL_SECONDS - 0.01)
    held = sum(len(slot.claims) for slot in run.twin.slots)

    assert held > 0.95 * made.cores
    assert run.twin.counts["plans"] == run.twin.counts["drained_nodes"] == 0
    run.until(run.end)
    seen = run.twin.counts
    acted = seen["plans"] > 0, seen["drained_nodes"] > 0
    assert acted == (strategy.steering is not None, strategy.defrag is not None)
    static = {slot.multicore_only for slot in run.twin.slots}
    assert static == ({True, False} if strategy.static else {False})
