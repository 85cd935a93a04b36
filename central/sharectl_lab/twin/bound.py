"""Least shortfall that any strategy can have that kills no job, from one pool at the begin.

A job that runs at the begin keeps its cores until it ends. So at every moment a group has at most
the cores of its first jobs that still run, and those that the ends of jobs have left free for jobs
of its sizes. The bound grants each group the most for every moment by itself: with all run times
and arrivals known, and whatever the moments before and the other groups would need.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import accumulate
from math import fsum, inf
from typing import Callable, NamedTuple

from sharectl.model import OTHER

_ROUNDING = 1e-9


class Held(NamedTuple):
    """Cores that a job holds at the begin."""

    cores: int
    group: str
    rest_seconds: float
    """Time until it ends."""


class Slot(NamedTuple):
    """Partitionable slot at the begin."""

    cores: int
    hs06_per_core: float
    held: Sequence[Held]
    sizes: Mapping[str, AbstractSet[int]]
    """Group -> cores of its jobs that the slot could run, whenever they come."""


class ComingJob(NamedTuple):
    """Job that waits at the begin or comes later, and that a slot could run."""

    at: float
    """Seconds since the begin, at least 0."""
    cores: int
    run_seconds: float


class Demand(NamedTuple):
    """Jobs of a group."""

    jobs: Sequence[ComingJob]
    kept_cores: Sequence[int]
    """Cores of the jobs that pilot factories keep pending, at the end of each interval. No core is
    taken to start two of these between two looks of their factory."""


@dataclass(frozen=True)
class Begin:
    """Pool at the begin of the time that counts, and the jobs of that time."""

    slots: Sequence[Slot]
    pledge_hs06: Mapping[str, float]
    demand: Mapping[str, Demand]
    """Group with jobs -> these; `OTHER` is one."""
    interval_seconds: float
    intervals: int
    shortest_seconds: float
    """Shortest run time of all jobs; 0 if it is not known."""


class Bound(NamedTuple):
    """Least shortfall of any strategy that kills no job, by idle cores."""

    idle_core_hours: Sequence[float]
    shortfall_rms_hs06: Sequence[float]
    """RMS over time of the sum over groups, with at most so many idle core-hours."""
    any_idle_rms_hs06: float
    """This, with any idle core-hours."""


def least_shortfalls_hs06(begin: Begin, idle_core_seconds: float = inf) -> list[float]:
    """Least shortfall of all groups in each interval, with at most so many idle core-seconds."""
    pool_hs06 = fsum(slot.cores * slot.hs06_per_core for slot in begin.slots)
    pledges = fsum(begin.pledge_hs06.values())
    mean_hs06 = pool_hs06 / max(1, sum(slot.cores for slot in begin.slots))
    taken = [0.0] * begin.intervals
    if OTHER in begin.demand or any(
        held.group == OTHER for slot in begin.slots for held in slot.held
    ):
        taken = [most.own_hs06 + most.new_hs06 for most in _most(begin, OTHER, inf)]
    least = [0.0] * begin.intervals
    for group, pledge_hs06 in begin.pledge_hs06.items():
        if pledge_hs06 <= 0 or group not in begin.demand:
            continue
        share = pledge_hs06 / pledges
        reached = []
        for most in _most(begin, group, idle_core_seconds):
            # What new jobs can have only grows.
            if most.new_hs06 >= share * pool_hs06:
                break
            reached.append(most)
        pending = _least_pending_cores(begin, group, reached)
        for place, (most, cores) in enumerate(zip(reached, pending)):
            # Whatever other groups can use, that much is due to a group with jobs for it.
            present_hs06 = max(0.0, pool_hs06 - taken[place])
            lack_hs06 = share * present_hs06 - most.own_hs06 - most.new_hs06
            least[place] += max(0.0, min(lack_hs06, cores * mean_hs06))
    return least


class _Most(NamedTuple):
    """Most that a group can have at any time of an interval."""

    own_hs06: float
    """Power of its jobs that ran at the begin."""
    new_hs06: float
    """Power of jobs that start later, and their cores."""
    new_cores: float


def _most(begin: Begin, group: str, idle_core_seconds: float) -> Iterator[_Most]:
    slots = [_Freed(slot, group, begin.shortest_seconds) for slot in begin.slots]
    own = sorted(
        (held.rest_seconds, held.cores * slot.hs06_per_core)
        for slot in begin.slots
        for held in slot.held
        if held.group == group
    )
    own_hs06 = fsum(hs06 for _, hs06 in own)
    ended = 0
    for number in range(begin.intervals):
        while ended < len(own) and own[ended][0] <= number * begin.interval_seconds:
            own_hs06 -= own[ended][1]
            ended += 1
        for slot in slots:
            slot.pass_until((number + 1) * begin.interval_seconds)
        new_hs06 = _within(slots, idle_core_seconds, lambda slot: slot.hs06_per_core)
        new_cores = _within(slots, idle_core_seconds, lambda _slot: 1.0)
        yield _Most(max(0.0, own_hs06), new_hs06, new_cores)


def _within(
    slots: Sequence[_Freed], idle_core_seconds: float, worth: Callable[[_Freed], float]
) -> float:
    """Most worth of all new cores with at most so many idle core-seconds.

    It counts parts of blocks: no choice of whole ones comes to more.
    """
    most, rest = 0.0, idle_core_seconds
    for slot in sorted(slots, key=lambda slot: slot.idle_by_core / worth(slot)):
        idle = slot.new_cores * slot.idle_by_core if slot.new_cores else 0.0
        part = min(1.0, rest / idle) if idle else 1.0
        most += part * slot.new_cores * worth(slot)
        rest = max(0.0, rest - idle)
    return most


class _Freed:
    """Cores of a slot that ends of jobs have left free for new jobs of a group."""

    __slots__ = ("_ends", "_filled", "_free", "_idle", "hs06_per_core", "idle_by_core", "new_cores")

    def __init__(self, slot: Slot, group: str, shortest_seconds: float) -> None:
        held = sum(job.cores for job in slot.held)
        ends = [(0.0, slot.cores - held), *((job.rest_seconds, job.cores) for job in slot.held)]
        ends = sorted(end for end in ends if end[1] > 0)
        self.hs06_per_core = slot.hs06_per_core
        sizes = sorted(size for size in slot.sizes.get(group, ()) if size <= slot.cores)
        self._filled = _filled(slot.cores, sizes)
        self._ends = ends[::-1]
        self._idle = sorted(_idle_by_core(ends, sizes, shortest_seconds), reverse=True)
        self._free = self.new_cores = 0
        self.idle_by_core = inf
        """Least idle core-seconds for each core of such a job."""

    def pass_until(self, seconds: float) -> None:
        """Let jobs end until a time."""
        while self._ends and self._ends[-1][0] <= seconds:
            self._free += self._ends.pop()[1]
        while self._idle and self._idle[-1][0] <= seconds:
            self.idle_by_core = min(self.idle_by_core, self._idle.pop()[1])
        self.new_cores = self._filled[self._free]


def _filled(cores: int, sizes: Sequence[int]) -> list[int]:
    """Most cores that jobs of these sizes take of each number of free cores."""
    filled: list[int] = []
    for free in range(cores + 1):
        filled.append(
            max((size + filled[free - size] for size in sizes if size <= free), default=0)
        )
    return filled


def _idle_by_core(
    ends: Sequence[tuple[float, int]], sizes: Sequence[int], shortest_seconds: float
) -> Iterator[tuple[float, float]]:
    """Time -> least idle core-seconds by core of a job that starts then.

    A core that comes free is idle until a job starts there, if not even the shortest one runs in
    between. The least is at an end, or where that is just over for a core.
    """
    enough = shortest_seconds * (1 - _ROUNDING)
    times = sorted({end for end, _ in ends} | {end + shortest_seconds for end, _ in ends})
    for time in times:
        latest = [(time - end, cores) for end, cores in reversed(ends) if end <= time]
        free = sum(cores for gap, cores in latest if gap >= enough)
        for size in sizes:
            missing, idle = size - free, 0.0
            for gap, cores in latest:
                if missing <= 0 or gap >= enough:
                    break
                idle += gap * min(cores, missing)
                missing -= cores
            if missing <= 0:
                yield time, idle / size


def _least_pending_cores(
    begin: Begin, group: str, most_of_group: Sequence[_Most]
) -> Iterator[float]:
    """Least cores that a group's pending jobs request at the end of each interval.

    Of the jobs that have come, those started hold the new cores or have ended, and so many can have
    ended as the shortest ones fit into the time that these cores had.
    """
    demand = begin.demand[group]
    by_time = sorted(demand.jobs)
    shortest = sorted(demand.jobs, key=lambda job: job.run_seconds)
    needs = list(accumulate(job.cores * job.run_seconds for job in shortest))
    cores = list(accumulate((job.cores for job in shortest), initial=0))
    arrived, had_core_seconds, place = 0, 0.0, 0
    for number, most in enumerate(most_of_group):
        end = (number + 1) * begin.interval_seconds
        while place < len(by_time) and by_time[place].at <= end:
            arrived += by_time[place].cores
            place += 1
        had_core_seconds += most.new_cores * begin.interval_seconds
        ended = bisect_right(needs, had_core_seconds)
        ended_cores = float(cores[ended])
        if ended < len(shortest):
            rest = had_core_seconds - (needs[ended - 1] if ended else 0.0)
            ended_cores += rest / shortest[ended].run_seconds
        yield max(0.0, arrived + demand.kept_cores[number] - most.new_cores - ended_cores)
