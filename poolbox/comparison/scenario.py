"""Scenarios of a comparison: nodes, pledges, and every job with its time and its run time.

Times of a site are divided by `SCALE`: an hour becomes a minute.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Iterator, Mapping
from typing import Callable

from poolbox.demo import scenario as demo
from sharectl.times import PERIOD_SECONDS, validity_of

SCALE = 60
SECONDS = 1080.0
FILL_SECONDS = 45.0
"""Least time from the submission of the one-core jobs to that of the multicore jobs."""
MULTICORE_CORES = demo.MULTICORE_CORES
RUN_SECONDS = 60.0, 180.0
"""Run times between which every job's is drawn evenly."""
JOB_MEMORY_MIB = 32
BURST_RATIO, SECOND_BURST_RATIO = 0.25, 0.55
"""Work of a burst in the group's due power over the whole time, and begin of the second burst."""
MULTICORE_JOBS_FACTOR = 1.5
"""Multicore jobs submitted: so many times those that the whole pool could run."""

TIMES = {
    name: max(least, round(seconds / SCALE))
    for name, seconds, least in (
        ("negotiator_interval", 60, 2),
        ("cycle_delay", 20, 1),
        ("claim_worklife", 1200, 1),
        ("grace", 480, 5),
        ("mc_grace_cron", 60, 3),
        ("validity", validity_of(PERIOD_SECONDS), 60),
        ("give_up", 120, 10),
    )
}
"""Interval of daemons, nodes or the loop, seconds: of a site, divided by the scale, and at least
as long as daemons keep up with when several pools share a machine."""


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


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Everything that strategies have in common."""

    name: str
    seed: int
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
    def multicore_share(self) -> float:
        """Part of the pledges of groups with multicore jobs."""
        multicore = {job.group for job in self.jobs if job.cores > 1}
        pledges = self.pledge_hs06
        return sum(pledges[group] for group in multicore) / sum(pledges.values())


def steady(seed: int, seconds: float = SECONDS) -> Comparison:
    """One-core jobs of alice hold all cores, 8-core jobs of cms come and never end."""
    nodes = tuple(
        Node(node.name, node.cores, node.memory_mib, node.power_hs06 or 0.0)
        for node in demo.nodes()
    )
    draw = random.Random(seed)
    generations = (FILL_SECONDS + seconds) / (sum(RUN_SECONDS) / 2)
    waiting = math.ceil(demo.POOL_CORES * generations)
    blocks = math.ceil(MULTICORE_JOBS_FACTOR * waiting / MULTICORE_CORES)
    lives = (*_residual_lives(draw, demo.POOL_CORES), *_lives(draw, waiting))
    jobs = [Job(-FILL_SECONDS, demo.HELD_BACK, 1, life) for life in lives]
    jobs += [Job(0.0, demo.HELPED, MULTICORE_CORES, life) for life in _lives(draw, blocks)]
    return Comparison("steady", seed, seconds, nodes, demo.PLEDGE_HS06, tuple(jobs))


def bursts(seed: int, seconds: float = SECONDS) -> Comparison:
    """As steady, but cms has work for a quarter of the time only, twice."""
    whole = steady(seed, seconds)
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
"""Name -> scenario for a seed and a duration."""


def _lives(draw: random.Random, count: int) -> Iterator[float]:
    least, most = RUN_SECONDS
    return (round(least + (most - least) * draw.random(), 2) for _ in range(count))


def _residual_lives(draw: random.Random, count: int) -> Iterator[float]:
    """Rest of the run times of jobs that run at a moment, when long ones are met more often.

    With them ends are spread from the begin, as on a pool that has been full for long.
    """
    least, most = RUN_SECONDS
    return (
        round(draw.random() * math.sqrt(least**2 + draw.random() * (most**2 - least**2)), 2) + 1
        for _ in range(count)
    )
