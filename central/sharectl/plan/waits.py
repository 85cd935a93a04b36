"""Cores that nodes hold, and the time until their jobs give them back.

Run times are learnt from jobs that ended between two looks at the pool. A life table has, for each
bin of age, how long jobs were watched and how many of them ended. Bins grow with the age: minutes
and weeks are learnt alike.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from math import ceil, exp, floor, inf, log, sqrt
from operator import itemgetter
from typing import NamedTuple

from sharectl.model import Kind, Node, RunningJobs, Snapshot

NO_MEMORY_LIMIT = 2**62

ORDER_CORRECTION = 0.56
"""The k-th of n exponential times has its mean where k / (n + 0.56) of them are over, within some
per cent for all k, n."""

NEWTON_STEPS, NEWTON_RATIO = 20, 1e-2

BIN_RATIO = sqrt(2)
"""Between the starts of two bins."""

EDGES_SECONDS = (0, *(round(60 * BIN_RATIO**step) for step in range(31)))
"""Where bins begin: 0, 1 minute, then two for each doubling, up to 23 days."""

PRIOR_LEAST_SECONDS, PRIOR_MOST_SECONDS = 1800.0, 172_800.0

START_TOLERANCE_SECONDS = 2
"""Daemons round: a job's start differs by so much from look to look."""

LONGEST_GAP_SECONDS = 4 * 3600
"""Looks further apart say too little of when a job ended."""

BinRow = tuple[int, float, float]
"""Start of a bin, seconds at risk, ends."""


class Wait(NamedTuple):
    """Cost of a target until its cores are free."""

    seconds: float
    """Expected time."""
    idle_core_seconds: float
    """Cores expected to stand idle meanwhile, times seconds."""


NO_WAIT = Wait(0.0, 0.0)


Leaving = tuple[int, int, float]
"""Jobs on one node that are alike: cores of each, >= 1, number, seconds that each still runs, > 0.

A plain tuple: a plan for a large pool makes a hundred thousand of them.
"""


def wait_for_cores(jobs: Sequence[Leaving], needed_cores: int, idle_cores: int) -> Wait:
    """Expected time until jobs have given back ``needed_cores``, and the cost of cores meanwhile.

    Each job ends after an exponential time of its mean. The cores given back by time t are then on
    average ``sum of cores * (1 - exp(-t / mean))``; the wait is when these reach the cores that
    must come free, in whole jobs, lowered to the mean of an order statistic (`ORDER_CORRECTION`).
    ``idle_cores``, which no job holds already, wait for the others.
    """
    if needed_cores <= 0:
        return NO_WAIT
    # Plain loops: a plan for a large pool asks this ten thousand times.
    number = cores = 0
    pace, parts = 0.0, []
    for of_each, count, mean in jobs:
        held, rate = of_each * count, 1 / mean
        number += count
        cores += held
        pace += held * rate
        parts.append((held, mean, rate))
    if cores < needed_cores:
        return Wait(inf, inf)
    whole_jobs = min(number, ceil(needed_cores * number / cores - 1e-9))
    due = whole_jobs * cores / (number + ORDER_CORRECTION)
    seconds = _time_until(parts, pace, cores, due)
    idle = 0.0
    for held, mean, _ in parts:
        idle += held * (seconds - mean * (1 - exp(-seconds / mean)))
    return Wait(seconds, max(0.0, idle) + idle_cores * seconds)


def _time_until(
    parts: Sequence[tuple[int, float, float]], pace: float, cores: int, due_cores: float
) -> float:
    """Time at which ``due_cores``, less than all ``cores``, are expected to be given back.

    ``parts`` are cores, and the mean time and the rate of their jobs; ``pace`` cores a second.
    """
    first = parts[0][1]
    if parts[-1][1] == first and all(mean == first for _, mean, _ in parts):
        return -first * log(1 - due_cores / cores)
    # The curve is concave, so Newton's steps come from below and never pass the answer.
    seconds = due_cores / pace
    for _ in range(NEWTON_STEPS - 1):
        staying_cores = pace = 0.0
        for held, _, rate in parts:
            staying = held * exp(-rate * seconds)
            staying_cores += staying
            pace += staying * rate
        step = (due_cores - cores + staying_cores) / pace
        seconds += step
        if step <= seconds * NEWTON_RATIO:
            break
    return seconds


def age_bin(age_seconds: float) -> int:
    """Number of the bin of an age; that of 0 for one below."""
    return bisect_right(EDGES_SECONDS, age_seconds, 1) - 1


@dataclass(frozen=True)
class RemainingTimes:
    """One group's life table."""

    bins: tuple[tuple[float, float], ...] = ((0.0, 0.0),) * len(EDGES_SECONDS)
    """For how long jobs of that age were watched, seconds added up, and how many of them ended."""

    @property
    def rates(self) -> tuple[float, ...]:
        """Ends of a job in a second, for each bin, > 0.

        They are what was seen, with one end of the prior added: a job of unknown kind is expected
        to run on for as long as it has run, at least some 17 minutes and at most a day.
        """
        rates = []
        for start, (seconds, ends) in zip(EDGES_SECONDS, self.bins):
            # Of a rate of 2 / age the mean rest is the age, here that of the middle of the bin.
            age_seconds = max(start * sqrt(BIN_RATIO), PRIOR_LEAST_SECONDS)
            prior = 2 / min(age_seconds, PRIOR_MOST_SECONDS)
            rates.append((ends + 1) / (seconds + 1 / prior))
        return tuple(rates)

    @cached_property
    def by_bin(self) -> tuple[float, ...]:
        """Mean time that a job in the middle of a bin still runs, seconds, > 0."""
        means, from_end = [], 0.0
        edges = zip(EDGES_SECONDS, (*EDGES_SECONDS[1:], inf), self.rates)
        for start, end, rate in reversed(list(edges)):
            stays, stays_half = exp(-rate * (end - start)), exp(-rate * (end - start) / 2)
            means.append((1 - stays_half) / rate + stays_half * from_end)
            from_end = (1 - stays) / rate + stays * from_end
        return tuple(reversed(means))

    def as_rows(self) -> tuple[BinRow, ...]:
        """The bins in which something was seen."""
        return tuple((start, *seen) for start, seen in zip(EDGES_SECONDS, self.bins) if any(seen))

    @classmethod
    def from_rows(cls, rows: Iterable[BinRow]) -> RemainingTimes:
        """Table of such rows; a row counts in the bin in which it starts."""
        bins = [(0.0, 0.0)] * len(EDGES_SECONDS)
        for start, seconds, ends in rows:
            number = age_bin(start)
            bins[number] = (bins[number][0] + seconds, bins[number][1] + ends)
        return cls(tuple(bins))


NOTHING_SEEN = RemainingTimes()
"""The prior alone."""

RunTimes = Mapping[str, RemainingTimes]
"""Group -> how long its jobs still run; of other groups nothing was seen."""

NOTHING_KNOWN: RunTimes = {}


def observed(previous: Snapshot, current: Snapshot) -> Mapping[str, RemainingTimes]:
    """Life table of each group from two looks: jobs of ``previous`` not in ``current`` have ended.

    Jobs are known by node, group, cores and start. One that ended was watched for half the time
    between the looks. Those of a node that is not seen any more tell nothing, nor do looks too far
    apart.
    """
    between = current.taken_at - previous.taken_at
    if not 0 < between <= LONGEST_GAP_SECONDS:
        return {}
    before, after = nodes_of(previous), nodes_of(current)
    tables: defaultdict[str, tuple[list[float], list[float]]] = defaultdict(
        lambda: ([0.0] * len(EDGES_SECONDS), [0.0] * len(EDGES_SECONDS))
    )
    for name in filter(after.__contains__, before):
        starts_now = _starts(after[name].running, current.taken_at)
        for kind, starts in _starts(before[name].running, previous.taken_at).items():
            at_risk_seconds, ends = tables[kind[0]]
            for start, stays in _matched(starts, starts_now.get(kind, [])):
                age = max(0, previous.taken_at - start)
                for number, seconds in _watched(age, age + (between if stays else between / 2)):
                    at_risk_seconds[number] += seconds
                if not stays:
                    ends[age_bin(age + between // 2)] += 1
    return {group: RemainingTimes(tuple(zip(*table))) for group, table in tables.items()}


def _starts(running: Iterable[RunningJobs], taken_at: int) -> dict[Kind, list[int]]:
    """Starts of a node's jobs, the earliest first, for each group and cores."""
    starts: defaultdict[Kind, list[int]] = defaultdict(list)
    for held in running:
        starts[held.group, held.cores] += [taken_at - held.seconds] * held.jobs
    for alike in starts.values():
        alike.sort()
    return starts


def _matched(before: Sequence[int], after: Sequence[int]) -> Iterable[tuple[int, bool]]:
    """Each start of before, in order, and whether a job of after, in order too, is the same."""
    place = 0
    for start in before:
        # A later start of before is as far from these, or farther.
        while place < len(after) and after[place] < start - START_TOLERANCE_SECONDS:
            place += 1
        same = place < len(after) and after[place] <= start + START_TOLERANCE_SECONDS
        place += same
        yield start, same


def _watched(begin: float, end: float) -> Iterable[tuple[int, float]]:
    """Bins in which a job was watched from one age to another, and seconds in each."""
    for number in range(age_bin(begin), age_bin(end) + 1):
        upper = EDGES_SECONDS[number + 1] if number + 1 < len(EDGES_SECONDS) else end
        yield number, min(end, upper) - max(begin, EDGES_SECONDS[number])


class NodeCores:
    """Jobs and cores of one node, added up when somebody wants them."""

    def __init__(self, node: Node, running: Sequence[RunningJobs] = ()) -> None:
        self.node = node
        self.running = running
        self.used_cores = sum([cores * jobs for _, _, cores, _, _, jobs, _ in running])
        self.idle_cores = max(0, node.cores - self.used_cores)
        """Cores that no job holds."""

    @cached_property
    def by_group(self) -> Mapping[str, list[RunningJobs]]:
        """Group -> its jobs."""
        by_group: dict[str, list[RunningJobs]] = {}
        for jobs in self.running:
            if jobs.group in by_group:
                by_group[jobs.group].append(jobs)
            else:  # a list of one, which takes less memory than one that has grown
                by_group[jobs.group] = [jobs]
        return by_group

    @cached_property
    def _held(self) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """Group -> cores that its jobs hold, and MiB: of none if some job does not tell."""
        held_cores: Counter[str] = Counter()
        held_mib: Counter[str] = Counter()
        all_tell = True
        for _, group, cores, _, _, jobs, memory_mib in self.running:
            held_cores[group] += cores * jobs
            held_mib[group] += memory_mib * jobs
            all_tell = all_tell and memory_mib > 0
        return held_cores, held_mib if all_tell else {}

    @property
    def held_cores(self) -> Mapping[str, int]:
        """Group -> cores that its jobs hold; 0 of any other."""
        return self._held[0]

    def cores_above(self, group: str, cap_cores: int) -> int:
        """Cores that the group holds above a cap."""
        return max(0, self.held_cores[group] - cap_cores)

    def could_bring(self, kind: Kind) -> bool:
        """True if a target here could bring a block of a kind, of cores not its group's."""
        group, cores = kind
        of_others = self.node.cores - self.held_cores[group]
        return self.node.controlled and self.node.admits(kind) and of_others >= cores

    def jobs(self, kind: Kind) -> int:
        """Number of jobs of a kind, with those of the group that are larger."""
        group, least_cores = kind
        return sum(row.jobs for row in self.by_group.get(group, ()) if row.cores >= least_cores)

    def memory_for(self, group: str, freed_cores: int) -> int:
        """MiB that a job may request once the group has given back so many cores.

        All of the node's if some job does not tell what it holds; no limit if that is unknown too.
        """
        if self.node.memory_mib <= 0:
            return NO_MEMORY_LIMIT
        held_cores, held_mib = self._held
        held, free_mib = held_cores[group], self.node.memory_mib - sum(held_mib.values())
        given_mib = held_mib[group] * freed_cores / held if held_mib and held else 0
        return floor(free_mib + given_mib)

    def stranded_cores(self, group: str, freed_cores: int, taken_mib: int) -> float:
        """Cores left without memory once jobs take cores of the group; below 0: those that get it.

        0 where cores run short before memory, or if a job does not tell what it holds.
        """
        held_cores, held_mib = self._held
        cores, memory_mib = self.node.cores, self.node.memory_mib
        used_mib, held = sum(held_mib.values()), held_cores[group]
        if not held or memory_mib <= 0 or used_mib * cores <= memory_mib * self.used_cores:
            return 0.0
        return (taken_mib - held_mib[group] * freed_cores / held) * cores / memory_mib

    def leaving_by_group(self, run_times: RunTimes) -> dict[str, list[Leaving]]:
        """Group, in order -> its jobs by cores and bin of age, with the time they still run."""
        alike: dict[tuple[str, int, int], int] = {}
        for _, name, cores, _, age_seconds, jobs, _ in self.running:
            # `age_bin`, a hundred thousand times.
            kind = (name, cores, bisect_right(EDGES_SECONDS, age_seconds, 1) - 1)
            alike[kind] = alike.get(kind, 0) + jobs
        by_group: dict[str, list[Leaving]] = {}
        for kind in sorted(alike):
            group, cores, number = kind
            if group not in by_group:
                by_group[group] = rows = []
                seconds = run_times.get(group, NOTHING_SEEN).by_bin
            rows.append((cores, alike[kind], seconds[number]))
        return by_group


def leaving_for(
    by_group: Mapping[str, Sequence[Leaving]],
    cores: int,
    held_back: str,
    renewing: Container[str] = (),
) -> Sequence[Leaving]:
    """Jobs of a node, as of `leaving_by_group`, that give up cores for jobs of so many cores.

    For single-core jobs the held-back group gives, for a block all groups do. A block of a group of
    ``renewing`` goes to the next job of that group: it brings no other block nearer.
    """
    if cores == 1:
        return by_group.get(held_back, ())
    return [
        row
        for group, rows in by_group.items()
        for row in rows
        if row[0] < cores or group not in renewing
    ]


def nodes_of(snapshot: Snapshot) -> dict[str, NodeCores]:
    """Node -> its jobs and cores."""
    running: dict[str, list[RunningJobs]] = {node.name: [] for node in snapshot.nodes}
    for name, jobs in groupby(snapshot.running, itemgetter(0)):
        if name in running:
            running[name] += jobs
    return {node.name: NodeCores(node, running[node.name]) for node in snapshot.nodes}
