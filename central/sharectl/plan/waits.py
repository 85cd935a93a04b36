"""How long running jobs still run, learnt from what ended between one look at the pool and the next.

A life table by age: in each bin of it, how long jobs were watched and how many of them ended. Bins
grow with the age, so that minutes and weeks are learnt alike.

How long it takes until a group's jobs on one node have given enough cores back.

What each node holds, as plans need it: cores and memory by group, with how long they are expected
to be held.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, exp, floor, fsum, inf, log, sqrt
from typing import NamedTuple

from sharectl.model import Node, RunningJobs, Snapshot
from sharectl.plan.assignment import NO_MEMORY_LIMIT
from sharectl.plan.records import Wait

ORDER_CORRECTION = 0.56
"""The k-th of n exponential times has its mean where k / (n + 0.56) of them are over, within some per cent for all k, n."""

NEWTON_STEPS = 20
NEWTON_RATIO = 1e-2


class Leaving(NamedTuple):
    """Jobs on one node that are alike."""

    cores: int
    """Cores that each holds, >= 1."""
    jobs: int
    expected_seconds: float
    """Mean time that each still runs, > 0."""


def wait_for_cores(jobs: Sequence[Leaving], needed_cores: int, idle_cores: int) -> Wait:
    """Expected time until ``jobs`` have given back ``needed_cores``, and what stands idle meanwhile.

    Each job ends after an exponential time of its own mean. The cores given back by time t are then
    on average ``sum of cores * (1 - exp(-t / mean))``; the wait is when these reach the cores that
    must come free, in whole jobs, lowered so that it is the mean of an order statistic
    (`ORDER_CORRECTION`).

    Parameters
    ----------
    idle_cores
        Cores that no job holds already, and that wait for the others.
    """
    if needed_cores <= 0:
        return Wait(0.0, 0.0)
    # Plain loops: a plan for a large pool asks this ten thousand times.
    number = cores = 0
    for held, count, _ in jobs:
        number += count
        cores += held * count
    if cores < needed_cores:
        return Wait(inf, inf)
    whole_jobs = min(number, ceil(needed_cores * number / cores - 1e-9))
    due = whole_jobs * cores / (number + ORDER_CORRECTION)
    seconds = _time_until(jobs, cores, due)
    idle = 0.0
    for held, count, mean in jobs:
        idle += held * count * (seconds - mean * (1 - exp(-seconds / mean)))
    return Wait(seconds, max(0.0, idle) + idle_cores * seconds)


def _time_until(jobs: Sequence[Leaving], cores: int, due_cores: float) -> float:
    """Time at which ``due_cores``, less than all ``cores``, are expected to be given back."""
    first = jobs[0].expected_seconds
    if all(mean == first for _, _, mean in jobs):
        return -first * log(1 - due_cores / cores)
    rates = [(held * count, 1 / mean) for held, count, mean in jobs]
    seconds = 0.0
    # The curve is concave, so Newton's steps come from below and never pass the answer.
    for _ in range(NEWTON_STEPS):
        staying_cores = pace = 0.0
        for held, rate in rates:
            staying = held * exp(-rate * seconds)
            staying_cores += staying
            pace += staying * rate
        step = (due_cores - cores + staying_cores) / pace
        seconds += step
        if step <= seconds * NEWTON_RATIO:
            break
    return seconds


BIN_RATIO = sqrt(2)
"""Between the starts of two bins."""

EDGES_SECONDS = (0, *(round(60 * BIN_RATIO**step) for step in range(31)))
"""Where bins begin: 0, 1 minute, then two for each doubling, up to 23 days."""

PRIOR_LEAST_SECONDS, PRIOR_MOST_SECONDS = 1800.0, 172_800.0
START_TOLERANCE_SECONDS = 2
"""Daemons round: a job's start differs by so much from look to look."""

LONGEST_GAP_SECONDS = 4 * 3600
"""Looks further apart say too little of when a job ended."""

Row = tuple[int, float, float]
"""Start of a bin, seconds at risk, ends."""


def age_bin(age_seconds: float) -> int:
    """Number of the bin of an age; that of 0 for one below."""
    return bisect_right(EDGES_SECONDS, max(0.0, age_seconds)) - 1


@dataclass(frozen=True)
class RemainingTimes:
    """One group's life table."""

    at_risk_seconds: tuple[float, ...] = (0.0,) * len(EDGES_SECONDS)
    """By bin: for how long jobs of that age were watched, added up over all jobs."""
    ends: tuple[float, ...] = (0.0,) * len(EDGES_SECONDS)
    """By bin: how many of them ended."""

    def __add__(self, other: RemainingTimes) -> RemainingTimes:
        """Sum of two tables."""
        return RemainingTimes(
            tuple(map(sum, zip(self.at_risk_seconds, other.at_risk_seconds))),
            tuple(map(sum, zip(self.ends, other.ends))),
        )

    def expected_seconds(self, age_seconds: float) -> float:
        """Mean time that a job of this age still runs, seconds, > 0.

        Each bin's rate of ends is what was seen, with one end of the prior added: a job of unknown
        kind is expected to run on for as long as it has run, at least some 17 minutes and at most a
        day.
        """
        age = max(0.0, age_seconds)
        number = age_bin(age)
        rate = self._rates[number]
        if number + 1 == len(EDGES_SECONDS):
            return 1 / rate
        stays = exp(-rate * (EDGES_SECONDS[number + 1] - age))
        return (1 - stays) / rate + stays * self._from_edge[number + 1]

    def as_rows(self) -> tuple[Row, ...]:
        """The bins in which something was seen."""
        rows = zip(EDGES_SECONDS, self.at_risk_seconds, self.ends)
        return tuple((start, seconds, ends) for start, seconds, ends in rows if seconds or ends)

    @classmethod
    def from_rows(cls, rows: Iterable[Row]) -> RemainingTimes:
        """Table of such rows; a row counts in the bin in which it starts."""
        seconds, ends = [0.0] * len(EDGES_SECONDS), [0.0] * len(EDGES_SECONDS)
        for start, at_risk, ended in rows:
            number = age_bin(start)
            seconds[number] += at_risk
            ends[number] += ended
        return cls(tuple(seconds), tuple(ends))

    @cached_property
    def _rates(self) -> tuple[float, ...]:
        """Ends a second, by bin."""
        return tuple(
            (ends + 1) / (seconds + 1 / _prior_rate(start))
            for start, seconds, ends in zip(EDGES_SECONDS, self.at_risk_seconds, self.ends)
        )

    @cached_property
    def _from_edge(self) -> tuple[float, ...]:
        """Mean time that a job still runs which has just reached the start of a bin, seconds."""
        means = [1 / self._rates[-1]]
        widths = [end - start for start, end in zip(EDGES_SECONDS, EDGES_SECONDS[1:])]
        for rate, width in reversed(list(zip(self._rates, widths))):
            stays = exp(-rate * width)
            means.append((1 - stays) / rate + stays * means[-1])
        return tuple(reversed(means))


NOTHING_SEEN = RemainingTimes()
"""The prior alone."""


def observed(previous: Snapshot, current: Snapshot) -> Mapping[str, RemainingTimes]:
    """Life table of each group from two looks: jobs of ``previous`` not in ``current`` have ended.

    Jobs are known by node, group, cores and start. One that ended was watched for half the time
    between the looks. Those of a node that is not seen any more tell nothing, nor do looks too far
    apart.
    """
    between = current.taken_at - previous.taken_at
    if not 0 < between <= LONGEST_GAP_SECONDS:
        return {}
    there = {node.name for node in current.nodes}
    later = _starts(current)
    rows: defaultdict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for (node, group, cores), starts in _starts(previous).items():
        if node not in there:
            continue
        for start, stays in _matched(starts, later.get((node, group, cores), ())):
            age = max(0, previous.taken_at - start)
            rows[group].append(
                (age, age + (between if stays else between / 2), 0.0 if stays else 1.0)
            )
    return {group: _table(seen) for group, seen in rows.items()}


def _prior_rate(age_seconds: float) -> float:
    # Of a rate of 2 / age the mean rest is the age itself; the age is that of the middle of a bin
    # that begins there.
    return 2 / min(max(age_seconds * sqrt(BIN_RATIO), PRIOR_LEAST_SECONDS), PRIOR_MOST_SECONDS)


def _starts(taken: Snapshot) -> dict[tuple[str, str, int], list[int]]:
    """Start of each running job by node, group and cores, earliest first."""
    starts: defaultdict[tuple[str, str, int], list[int]] = defaultdict(list)
    for held in taken.running:
        starts[held.node, held.group, held.cores] += [_start(taken, held)] * held.jobs
    return {key: sorted(seconds) for key, seconds in starts.items()}


def _start(taken: Snapshot, held: RunningJobs) -> int:
    return taken.taken_at - held.seconds


def _matched(before: Iterable[int], after: Iterable[int]) -> list[tuple[int, bool]]:
    """Each start of before, and whether one of after is the same job; both earliest first."""
    later = iter(after)
    candidate = next(later, None)
    matches = []
    for start in before:
        while candidate is not None and candidate < start - START_TOLERANCE_SECONDS:
            candidate = next(later, None)
        stays = candidate is not None and candidate <= start + START_TOLERANCE_SECONDS
        matches.append((start, stays))
        if stays:
            candidate = next(later, None)
    return matches


def _table(seen: Iterable[tuple[float, float, float]]) -> RemainingTimes:
    """Table of jobs watched from one age to another, and whether they ended then."""
    seconds: list[list[float]] = [[] for _ in EDGES_SECONDS]
    ends = [0.0] * len(EDGES_SECONDS)
    for begin, end, ended in seen:
        first, last = age_bin(begin), age_bin(end)
        for number in range(first, last + 1):
            upper = EDGES_SECONDS[number + 1] if number + 1 < len(EDGES_SECONDS) else end
            seconds[number].append(min(end, upper) - max(begin, EDGES_SECONDS[number]))
        ends[last] += ended
    return RemainingTimes(tuple(map(fsum, seconds)), tuple(ends))


@dataclass
class NodeCores:
    """One node."""

    node: Node
    idle_cores: int = 0
    """Cores that no job holds."""
    held_cores: dict[str, int] = field(default_factory=dict)
    """Group -> cores, of all groups."""
    held_mib: dict[str, int] = field(default_factory=dict)
    memory_known: bool = True
    """Whether all jobs say what memory they hold."""
    ages: dict[str, dict[tuple[int, int], int]] = field(default_factory=dict)
    """Group -> cores of a job and bin of its age -> jobs; of the groups asked for."""

    def memory_for(self, group: str, freed_cores: int) -> int:
        """MiB that a job may request once the group has given back so many cores; no limit if that is not known."""
        if self.node.memory_mib <= 0:
            return NO_MEMORY_LIMIT
        if not self.memory_known:
            return self.node.memory_mib
        free = self.node.memory_mib - sum(self.held_mib.values())
        held = self.held_cores.get(group, 0)
        return floor(free + (self.held_mib.get(group, 0) * freed_cores / held if held else 0))


def cores_of_nodes(
    snapshot: Snapshot, names: Collection[str], groups: Collection[str]
) -> dict[str, NodeCores]:
    """Cores of each of the nodes named, with ages of jobs of ``groups``."""
    nodes = {node.name: NodeCores(node) for node in snapshot.nodes if node.name in names}
    for job in snapshot.running:
        here = nodes.get(job.node)
        if here is None:
            continue
        group, jobs = job.group, job.jobs
        here.held_cores[group] = here.held_cores.get(group, 0) + job.cores * jobs
        if job.memory_mib > 0:
            here.held_mib[group] = here.held_mib.get(group, 0) + job.memory_mib * jobs
        else:
            here.memory_known = False
        if group in groups:
            kinds = here.ages.setdefault(group, {})
            key = (job.cores, age_bin(job.seconds))
            kinds[key] = kinds.get(key, 0) + jobs
    for here in nodes.values():
        here.idle_cores = max(0, here.node.cores - sum(here.held_cores.values()))
    return nodes


class Expected:
    """Expected time that jobs still run, by group and bin of age."""

    def __init__(self, remaining: Mapping[str, RemainingTimes]) -> None:
        self._remaining = remaining
        self._seconds: dict[tuple[str, int], float] = {}

    def seconds(self, group: str, number: int) -> float:
        """Of a job in the middle of the bin."""
        key = (group, number)
        known = self._seconds.get(key)
        if known is None:
            start = EDGES_SECONDS[number]
            end = EDGES_SECONDS[number + 1] if number + 1 < len(EDGES_SECONDS) else start
            known = self._remaining.get(group, NOTHING_SEEN).expected_seconds((start + end) / 2)
            self._seconds[key] = known
        return known

    def cores_a_second(self, node: NodeCores, group: str) -> float:
        """How fast the group's jobs on the node are expected to give cores back."""
        kinds = node.ages.get(group, {})
        return fsum(
            [cores * jobs / self.seconds(group, number) for (cores, number), jobs in kinds.items()]
        )

    def leaving(self, node: NodeCores, group: str) -> list[Leaving]:
        """The group's jobs on the node, always in one order."""
        return [
            Leaving(cores, jobs, self.seconds(group, number))
            for (cores, number), jobs in sorted(node.ages.get(group, {}).items())
        ]
