"""Scenarios of a comparison: nodes, pledges, and every job with its time and its run time.

Times of a site are divided by a scale, 60 unless told otherwise: an hour becomes a minute.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Iterator, Mapping
from typing import Any, Callable

from poolbox.demo import scenario as demo

SCALE = 60.0
SECONDS = 540.0
WARM_UP_SECONDS = 45.0
MULTICORE_CORES = demo.MULTICORE_CORES
LEAST_RUN_SECONDS, MOST_RUN_SECONDS = 3600.0, 10_800.0
"""Run times at a site, between which every job's is drawn evenly."""
JOB_MEMORY_MIB, UNMATCHABLE_MEMORY_MIB = 32, 1_000_000
BURST_RATIO, SECOND_BURST_RATIO = 0.25, 0.55
"""Work of a burst in the group's due power over the whole time, and begin of the second burst."""
MULTICORE_JOBS_FACTOR = 1.5
"""Multicore jobs submitted: so many times those that the whole pool could run."""


@dataclasses.dataclass(frozen=True)
class Node:
    """An execute point with one partitionable slot."""

    name: str
    cores: int
    memory_mib: int
    hs06: float


@dataclasses.dataclass(frozen=True)
class Job:
    """A job; its place in the list is its number."""

    at: float
    """Submission, seconds since the end of the warm-up; negative within it."""
    group: str
    cores: int
    memory_mib: int
    run_seconds: float


@dataclasses.dataclass(frozen=True)
class Times:
    """Intervals of daemons, nodes and the loop, seconds: defaults at a site, divided by the scale.

    None is below what daemons keep up with when several pools share a machine.
    """

    negotiator_interval: int
    cycle_delay: int
    claim_worklife: int
    grace: int
    mc_grace_cron: int
    validity: int
    give_up: int
    horizon: int
    obey: int
    gap: int
    ewma_half_life: int
    pid_integral: int
    pid_filter: int

    @classmethod
    def scaled(cls, scale: float) -> Times:
        """Intervals at that scale."""

        def scaled(seconds: float, least: int) -> int:
            return max(least, round(seconds / scale))

        return cls(
            negotiator_interval=scaled(60, 2),
            cycle_delay=scaled(20, 1),
            claim_worklife=scaled(1200, 1),
            grace=scaled(480, 5),
            mc_grace_cron=scaled(60, 3),
            validity=scaled(3060, 60),
            give_up=scaled(120, 10),
            horizon=scaled(86_400, 60),
            obey=scaled(2340, 40),
            gap=scaled(3060, 30),
            ewma_half_life=scaled(3600, 1),
            pid_integral=scaled(28_800, 1),
            pid_filter=scaled(2040, 1),
        )


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Everything that strategies have in common."""

    name: str
    seed: int
    scale: float
    seconds: float
    """Time that counts, after the warm-up."""
    warm_up_seconds: float
    nodes: tuple[Node, ...]
    pledge_hs06: Mapping[str, float]
    jobs: tuple[Job, ...]
    """In the order of their submission."""

    @property
    def cores(self) -> int:
        """Cores of the pool."""
        return sum(node.cores for node in self.nodes)

    @property
    def times(self) -> Times:
        """Intervals that pools and twins are given."""
        return Times.scaled(self.scale)

    @property
    def multicore_share(self) -> float:
        """Part of the pledges of groups with multicore jobs."""
        multicore = {job.group for job in self.jobs if job.cores > 1}
        pledges = self.pledge_hs06
        return sum(pledges[group] for group in multicore) / sum(pledges.values())

    def as_json(self) -> dict[str, Any]:
        """Data for a file."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Comparison:
        """Comparison of `as_json`."""
        nodes = tuple(Node(**node) for node in data["nodes"])
        jobs = tuple(Job(**job) for job in data["jobs"])
        return cls(**{**data, "nodes": nodes, "jobs": jobs})


def two_groups(seed: int, seconds: float = SECONDS, scale: float = SCALE) -> Comparison:
    """One-core jobs of alice hold all cores, 8-core jobs of cms wait."""
    return _comparison("two-groups", demo.PLEDGE_HS06, seed, seconds, scale)


def three_groups(seed: int, seconds: float = SECONDS, scale: float = SCALE) -> Comparison:
    """Beside alice's, one-core jobs of lhcb; cms has as many jobs again that no node can run."""
    pledges = {"alice": 400.0, "cms": 480.0, "lhcb": 320.0}
    return _comparison("three-groups", pledges, seed, seconds, scale, unmatchable=True)


def bursts(seed: int, seconds: float = SECONDS, scale: float = SCALE) -> Comparison:
    """As two_groups, but cms has work for a quarter of the time only, twice."""
    whole = two_groups(seed, seconds, scale)
    fillers = [job for job in whole.jobs if job.cores == 1]
    multicore = [job for job in whole.jobs if job.cores > 1]
    mean = sum(job.run_seconds for job in multicore) / len(multicore)
    due = whole.cores * whole.multicore_share / MULTICORE_CORES
    count = max(1, round(due * seconds * BURST_RATIO / mean))
    first = multicore[:count]
    second = [
        dataclasses.replace(job, at=seconds * SECOND_BURST_RATIO)
        for job in multicore[count : 2 * count]
    ]
    return dataclasses.replace(whole, name="bursts", jobs=(*fillers, *first, *second))


SCENARIOS: dict[str, Callable[..., Comparison]] = {
    "two-groups": two_groups,
    "three-groups": three_groups,
    "bursts": bursts,
}
"""Name -> scenario for a seed, a duration and a scale."""


def _comparison(
    name: str,
    pledge_hs06: Mapping[str, float],
    seed: int,
    seconds: float,
    scale: float,
    *,
    unmatchable: bool = False,
) -> Comparison:
    nodes = tuple(
        Node(node.name, node.cores, node.memory_mib, node.power_hs06 or 0.0)
        for node in demo.nodes()
    )
    draw = random.Random(seed)
    bounds = LEAST_RUN_SECONDS / scale, MOST_RUN_SECONDS / scale
    jobs: list[Job] = []
    fillers = {group: pledge for group, pledge in pledge_hs06.items() if group != demo.HELPED}
    generations = (WARM_UP_SECONDS + seconds) / (sum(bounds) / 2)
    for group, pledge in fillers.items():
        running = math.ceil(demo.POOL_CORES * pledge / sum(fillers.values()))
        waiting = math.ceil(demo.POOL_CORES * generations)
        residual, whole = _residual_lives(draw, bounds, running), _lives(draw, bounds, waiting)
        jobs += [
            Job(-WARM_UP_SECONDS, group, 1, JOB_MEMORY_MIB, life) for life in (*residual, *whole)
        ]
    blocks = demo.POOL_CORES / MULTICORE_CORES
    for memory in [UNMATCHABLE_MEMORY_MIB] * unmatchable + [JOB_MEMORY_MIB]:
        lives = _lives(draw, bounds, math.ceil(MULTICORE_JOBS_FACTOR * blocks * generations))
        jobs += [Job(0.0, demo.HELPED, MULTICORE_CORES, memory, life) for life in lives]
    return Comparison(
        name, seed, scale, seconds, WARM_UP_SECONDS, nodes, dict(pledge_hs06), tuple(jobs)
    )


def _lives(draw: random.Random, bounds: tuple[float, float], count: int) -> Iterator[float]:
    least, most = bounds
    return (round(least + (most - least) * draw.random(), 2) for _ in range(count))


def _residual_lives(
    draw: random.Random, bounds: tuple[float, float], count: int
) -> Iterator[float]:
    """Rest of the run times of jobs that run at a moment, when long ones are met more often.

    With them ends are spread from the begin, as on a pool that has been full for long.
    """
    least, most = bounds
    return (
        round(draw.random() * math.sqrt(least**2 + draw.random() * (most**2 - least**2)), 2) + 1
        for _ in range(count)
    )
