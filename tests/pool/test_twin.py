"""The twin beside real pools with the same jobs: usage of groups within 5 % of the capacity.

A pool shows one course of many: jobs start where a core happens to be free, and a block of 8 cores
that starts half a minute later is 1 % of this pool's usage. So the pool is held against the mean of
twins with jobs of other seeds. Twice their standard deviation is chance; a deviation counts
as an error of the twin if it is larger than that and than 5 %.
"""

from __future__ import annotations

import os
import statistics
from concurrent.futures import ThreadPoolExecutor

import pytest

from poolbox import CannotBuildError
from poolbox.comparison import real, twin
from poolbox.comparison.deviation import MOST_RATIO, contradictions, deviations
from poolbox.comparison.recording import STEP_SECONDS, Figures
from poolbox.comparison.scenario import two_groups
from sharectl.sim.strategy_file import read_strategies

SECONDS, SEED, SEEDS = 180.0, 1, 20
STRATEGIES = {strategy.name: strategy for strategy in read_strategies("nothing,defrag,live")}
"""Pools side by side: more than three are slow on a machine of two cores."""
MOST_CHANCE_RATIO = 0.12
"""Chance must leave the strategies apart: cms has none of the pool, or some 30 %."""

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def pools(pool_suite: str) -> dict[str, Figures]:
    comparison = two_groups(SEED, SECONDS)

    def run(name: str) -> Figures:
        return real.run(comparison, STRATEGIES[name], pool_suite).figures

    try:
        with ThreadPoolExecutor(len(STRATEGIES)) as side_by_side:
            return dict(zip(STRATEGIES, side_by_side.map(run, STRATEGIES)))
    except CannotBuildError as reason:
        (pytest.fail if os.environ.get("POOL_REQUIRED") == "1" else pytest.skip)(str(reason))


@pytest.fixture(scope="module")
def twins() -> dict[str, list[Figures]]:
    """Twins of every strategy: the first with the pool's own jobs."""
    return {
        name: [
            twin.run(two_groups(seed, SECONDS), strategy, STEP_SECONDS, seed)
            for seed in (SEED, *range(1001, 1001 + SEEDS))
        ]
        for name, strategy in STRATEGIES.items()
    }


def test_groups_use_what_the_twin_says(
    pools: dict[str, Figures], twins: dict[str, list[Figures]]
) -> None:
    cores = two_groups(SEED, SECONDS).cores
    seen = {
        (name, deviation.group): deviation
        for name, pool in pools.items()
        for deviation in deviations(pool, twins[name][0], twins[name][1:], cores)
    }
    print({key: (f"{d.ratio:+.3f}", f"{d.chance:.3f}") for key, d in seen.items()})

    assert max(deviation.chance for deviation in seen.values()) < MOST_CHANCE_RATIO
    assert {
        key: (deviation.ratio, deviation.chance)
        for key, deviation in seen.items()
        if abs(deviation.ratio) > MOST_RATIO and deviation.error
    } == {}


def test_a_twin_of_another_strategy_is_told_apart(
    pools: dict[str, Figures], twins: dict[str, list[Figures]]
) -> None:
    cores = two_groups(SEED, SECONDS).cores

    for other in ("defrag", "live"):
        for deviation in deviations(pools["nothing"], twins[other][0], twins[other][1:], cores):
            assert deviation.error > MOST_RATIO, other


def test_strategies_have_one_order_and_idle_cores_are_alike(
    pools: dict[str, Figures], twins: dict[str, list[Figures]]
) -> None:
    errors = {name: [f.worst_rms_hs06 for f in others[1:]] for name, others in twins.items()}
    pool_hs06 = {name: figures.worst_rms_hs06 for name, figures in pools.items()}

    assert contradictions(pool_hs06, errors) == []
    cores = two_groups(SEED, SECONDS).cores
    for name, pool in pools.items():
        idle = statistics.fmean(figures.mean_idle_cores for figures in twins[name][1:])
        # Daemons of three pools on two cores take seconds between two jobs, those of the twin none.
        assert abs(pool.mean_idle_cores - idle) <= 2 * MOST_RATIO * cores, name
