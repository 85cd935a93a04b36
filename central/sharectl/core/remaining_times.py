"""How long running jobs still run, learnt from what ended between one look at the pool and the next.

A life table by age: in each bin of it, how long jobs were watched and how many of them ended. Bins grow with the age,
so that minutes and weeks are learnt alike.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import exp, fsum, sqrt

from sharectl.core.model import RunningJobs, Snapshot

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
        """What both have seen."""
        return RemainingTimes(
            tuple(map(sum, zip(self.at_risk_seconds, other.at_risk_seconds))),
            tuple(map(sum, zip(self.ends, other.ends))),
        )

    def expected_seconds(self, age_seconds: float) -> float:
        """Mean time that a job of this age still runs, seconds, > 0.

        Each bin's rate of ends is what was seen, with one end of the prior added: a job of unknown kind is expected to
        run on for as long as it has run, at least some 17 minutes and at most a day.
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
        left = [1 / self._rates[-1]]
        widths = [end - start for start, end in zip(EDGES_SECONDS, EDGES_SECONDS[1:])]
        for rate, width in reversed(list(zip(self._rates, widths))):
            stays = exp(-rate * width)
            left.append((1 - stays) / rate + stays * left[-1])
        return tuple(reversed(left))


NOTHING_SEEN = RemainingTimes()
"""The prior alone."""


def observed(previous: Snapshot, current: Snapshot) -> Mapping[str, RemainingTimes]:
    """What two looks tell of each group: those of ``previous`` that are not in ``current`` have ended between.

    Jobs are known by node, group, cores and start. One that ended was watched for half the time between the looks.
    Those of a node that is not seen any more tell nothing, nor do looks too far apart.
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
            rows[group].append((age, age + (between if stays else between / 2), 0.0 if stays else 1.0))
    return {group: _table(seen) for group, seen in rows.items()}


def _prior_rate(age_seconds: float) -> float:
    # Of a rate of 2 / age the mean rest is the age itself; the age is that of the middle of a bin that begins there.
    return 2 / min(max(age_seconds * sqrt(BIN_RATIO), PRIOR_LEAST_SECONDS), PRIOR_MOST_SECONDS)


def _starts(taken: Snapshot) -> dict[tuple[str, str, int], list[int]]:
    """Start of each running job by node, group and cores, earliest first."""
    starts: defaultdict[tuple[str, str, int], list[int]] = defaultdict(list)
    for held in taken.running:
        starts[held.node, held.group, held.cores] += [_start(taken, held)] * held.jobs
    return {key: sorted(found) for key, found in starts.items()}


def _start(taken: Snapshot, held: RunningJobs) -> int:
    return taken.taken_at - held.seconds


def _matched(before: Iterable[int], after: Iterable[int]) -> list[tuple[int, bool]]:
    """Each start of before, and whether one of after is the same job; both earliest first."""
    left = iter(after)
    candidate = next(left, None)
    found = []
    for start in before:
        while candidate is not None and candidate < start - START_TOLERANCE_SECONDS:
            candidate = next(left, None)
        stays = candidate is not None and candidate <= start + START_TOLERANCE_SECONDS
        found.append((start, stays))
        if stays:
            candidate = next(left, None)
    return found


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
