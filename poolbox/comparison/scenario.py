"""Scenarios of a comparison: nodes, pledges, and every job with its time and its run time.

Times of a site are divided by a scale, 60 unless told otherwise: an hour becomes a minute.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Iterator, Mapping
from typing import Callable

from poolbox.demo import scenario as demo

SCALE = 60.0
SECONDS = 1080.0
FILL_SECONDS = 45.0
"""Least time from the submission of the one-core jobs to that of the multicore jobs."""
MULTICORE_CORES = demo.MULTICORE_CORES
LEAST_RUN_SECONDS, MOST_RUN_SECONDS = 3600.0, 10_800.0
"""Run times at a site, between which every job's is drawn evenly."""
JOB_MEMORY_MIB = 32
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
    """Submission, seconds since the demand for multicore cores came; negative before."""
    group: str
    cores: int
    run_seconds: float


TIMES: Mapping[str, tuple[int, int]] = {
    "negotiator_interval": (60, 2),
    "cycle_delay": (20, 1),
    "claim_worklife": (1200, 1),
    "grace": (480, 5),
    "mc_grace_cron": (60, 3),
    "validity": (3060, 60),
    "give_up": (120, 10),
    "horizon": (86_400, 60),
    "obey": (2340, 40),
}
"""Interval of daemons, nodes or the loop -> seconds at a site, divided by the scale, and the least
that daemons keep up with when several pools share a machine."""


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Everything that strategies have in common."""

    name: str
    seed: int
    scale: float
    seconds: float
    """Time that counts: from the demand for multicore cores on."""
    nodes: tuple[Node, ...]
    pledge_hs06: Mapping[str, float]
    jobs: tuple[Job, ...]
    """In the order of their submission."""

    @property
    def cores(self) -> int:
        """Cores of the pool."""
        return sum(node.cores for node in self.nodes)

    @property
    def pool_hs06(self) -> float:
        """Power of the pool."""
        return sum(node.hs06 for node in self.nodes)

    @property
    def times(self) -> dict[str, int]:
        """Intervals of `TIMES` that pools and twins are given, seconds."""
        return {
            name: max(least, round(seconds / self.scale))
            for name, (seconds, least) in TIMES.items()
        }

    @property
    def multicore_share(self) -> float:
        """Part of the pledges of groups with multicore jobs."""
        multicore = {job.group for job in self.jobs if job.cores > 1}
        pledges = self.pledge_hs06
        return sum(pledges[group] for group in multicore) / sum(pledges.values())


def steady(seed: int, seconds: float = SECONDS, scale: float = SCALE) -> Comparison:
    """One-core jobs of alice hold all cores, 8-core jobs of cms come and never end."""
    nodes = tuple(
        Node(node.name, node.cores, node.memory_mib, node.power_hs06 or 0.0)
        for node in demo.nodes()
    )
    draw = random.Random(seed)
    bounds = LEAST_RUN_SECONDS / scale, MOST_RUN_SECONDS / scale
    generations = (FILL_SECONDS + seconds) / (sum(bounds) / 2)
    waiting = math.ceil(demo.POOL_CORES * generations)
    blocks = math.ceil(MULTICORE_JOBS_FACTOR * waiting / MULTICORE_CORES)
    lives = (*_residual_lives(draw, bounds, demo.POOL_CORES), *_lives(draw, bounds, waiting))
    jobs = [Job(-FILL_SECONDS, demo.HELD_BACK, 1, life) for life in lives]
    jobs += [Job(0.0, demo.HELPED, MULTICORE_CORES, life) for life in _lives(draw, bounds, blocks)]
    return Comparison("steady", seed, scale, seconds, nodes, demo.PLEDGE_HS06, tuple(jobs))


def bursts(seed: int, seconds: float = SECONDS, scale: float = SCALE) -> Comparison:
    """As steady, but cms has work for a quarter of the time only, twice."""
    whole = steady(seed, seconds, scale)
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


SCENARIOS: dict[str, Callable[..., Comparison]] = {"steady": steady, "bursts": bursts}
"""Name -> scenario for a seed, a duration and a scale."""


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
