"""The twin beside real pools with the same jobs: within 5 % of the pool's power.

A pool shows one course of many, so it is held against the mean of twins with jobs of other seeds.
Twice their standard deviation is chance; a deviation is an error of the twin if it is larger than
that and than 5 %.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from math import sqrt
from statistics import fmean, stdev
from typing import NamedTuple

import pytest

from poolbox import CannotBuildError
from poolbox.comparison import real, twin
from poolbox.comparison.recording import Record
from poolbox.comparison.scenario import steady
from sharectl_lab.scenarios.strategies import read_strategies
from tests.pool.conftest import unavailable

SECONDS, SEED, SEEDS = 360.0, 1, 20
STRATEGIES = {strategy.name: strategy for strategy in read_strategies("nothing,defrag,live")}
"""Pools side by side: more than three are slow on a machine of two cores."""
MOST_RATIO = 0.05
MOST_CHANCE_RATIO = 0.12
"""Chance must leave the strategies apart: cms has none of the pool, or some 40 %."""

pytestmark = pytest.mark.timeout(900)


class Deviation(NamedTuple):
    """A pool's figure less the mean of the twins', as parts of the pool."""

    ratio: float
    chance: float
    """Difference that chance alone may make between a course and the mean of the twins."""

    @property
    def counts(self) -> bool:
        return abs(self.ratio) > max(self.chance, MOST_RATIO)


def figures(record: Record) -> dict[str, float]:
    """Power of each group and power that is missing, as parts of the pool's power."""
    means = {group: hs06 / record.pool_hs06 for group, hs06 in record.mean_hs06.items()}
    return {**means, "missing": record.rms_percent / 100}


def deviations(pool: Record, twins: list[Record]) -> dict[str, Deviation]:
    seen = {}
    for name, ratio in figures(pool).items():
        ratios = [figures(record)[name] for record in twins]
        chance = 2 * stdev(ratios) * sqrt(1 + 1 / len(ratios))
        seen[name] = Deviation(ratio - fmean(ratios), chance)
    return seen


@pytest.fixture(scope="module")
def pools(pool_suite: str) -> dict[str, Record]:
    comparison = steady(SEED, SECONDS)

    def run(name: str) -> Record:
        return real.run(comparison, STRATEGIES[name], pool_suite)

    try:
        with ThreadPoolExecutor(len(STRATEGIES)) as side_by_side:
            return dict(zip(STRATEGIES, side_by_side.map(run, STRATEGIES)))
    except CannotBuildError as reason:
        unavailable(reason)


@pytest.fixture(scope="module")
def twins() -> dict[str, list[Record]]:
    return {
        name: [twin.run(steady(seed, SECONDS), strategy) for seed in range(1001, 1001 + SEEDS)]
        for name, strategy in STRATEGIES.items()
    }


def test_the_twin_uses_and_lacks_what_its_pool_does_and_no_other(
    pools: dict[str, Record], twins: dict[str, list[Record]]
) -> None:
    seen = {
        (name, figure): deviation
        for name, pool in pools.items()
        for figure, deviation in deviations(pool, twins[name]).items()
    }
    print({key: (f"{d.ratio:+.3f}", f"{d.chance:.3f}") for key, d in seen.items()})
    assert max(deviation.chance for deviation in seen.values()) < MOST_CHANCE_RATIO
    assert {key: deviation for key, deviation in seen.items() if deviation.counts} == {}
    for name, pool in pools.items():
        idle = fmean(record.idle_cores for record in twins[name])
        # Daemons of three pools on two cores take seconds between two jobs, those of the twin none.
        assert abs(pool.idle_cores - idle) <= 2 * MOST_RATIO * pool.pool_cores, name
    for other in ("defrag", "live"):
        told_apart = deviations(pools["nothing"], twins[other]).values()
        assert [deviation.counts for deviation in told_apart] == [True] * 3, other
