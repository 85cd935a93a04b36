"""Run times of jobs in the twin, learnt as the ledger learns them.

Jobs of a look are sums by bin of age; the ledger compares job by job (`plan.waits.observed`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Optional

from sharectl.ledger.retention import HALF_LIFE_DAYS, WINDOW_DAYS
from sharectl.plan.waits import EDGES_SECONDS, LONGEST_GAP_SECONDS, RemainingTimes, RunTimes
from sharectl.times import DAY_SECONDS
from sharectl_lab.twin.pool import Claim

BINS = len(EDGES_SECONDS)
_WIDTHS = [end - start for start, end in zip(EDGES_SECONDS, EDGES_SECONDS[1:])]


class Ages:
    """Jobs of one group by bin of age: their number, and the sum of their ages in seconds."""

    __slots__ = ("jobs", "seconds")

    def __init__(self) -> None:
        self.jobs = [0] * BINS
        self.seconds = [0.0] * BINS

    def add(self, number: int, jobs: int, seconds: float) -> None:
        """Add jobs of the bin of that number, whose ages come to so many seconds."""
        self.jobs[number] += jobs
        self.seconds[number] += seconds

    def less(self, one: Ages, other: Ages) -> Ages:
        """Jobs that are in neither of two others."""
        rest = Ages()
        rest.jobs = [a - b - c for a, b, c in zip(self.jobs, one.jobs, other.jobs)]
        rest.seconds = [a - b - c for a, b, c in zip(self.seconds, one.seconds, other.seconds)]
        return rest

    def watched(self) -> list[float]:
        """Seconds that the jobs spent in each bin."""
        spent, older = [0.0] * BINS, 0
        for number in range(BINS - 1, -1, -1):
            jobs = self.jobs[number]
            spent[number] = self.seconds[number] - jobs * EDGES_SECONDS[number]
            if older:
                spent[number] += older * _WIDTHS[number]
            older += jobs
        return spent


_Tables = dict[str, tuple[list[float], list[float]]]
"""Group -> seconds watched and ends, by bin."""


class LearntRunTimes:
    """Life tables of the groups, from look to look. Times are Unix seconds."""

    def __init__(self, groups: Iterable[str]) -> None:
        self._groups = tuple(groups)
        self.last_at: Optional[int] = None
        """Last look; None before the first."""
        self._before: dict[str, Ages] = {}
        """Jobs of the last look."""
        self._ended: dict[str, list[int]] = {group: [] for group in self._groups}
        """Group -> age at the last look of each job that has ended since."""
        self._days: defaultdict[int, _Tables] = defaultdict(self._tables)
        self._older: tuple[int, _Tables] = (0, {})
        """Newest day, and the sum of all days before it as they weigh then."""

    def _tables(self) -> _Tables:
        return {group: ([0.0] * BINS, [0.0] * BINS) for group in self._groups}

    def note_end(self, claim: Claim, started_at: int) -> None:
        """Note the end of a job; jobs that no look has seen teach nothing."""
        ended = self._ended.get(claim.group)
        if ended is not None and self.last_at is not None and started_at <= self.last_at:
            ended.append(self.last_at - started_at)

    def look(self, at: int, jobs: Mapping[str, Ages], new: Mapping[str, Ages]) -> None:
        """Learn from the time since the last look; ``new`` are jobs that began since.

        Each job watched before and now, less its time up to the last look, is its time between.
        One that ended was watched for half the time between the looks.
        """
        last, self.last_at = self.last_at, at
        between = 0 if last is None else at - last
        before, self._before = self._before, {}
        for group in self._groups:
            ended, self._ended[group] = self._ended[group], []
            now = self._before[group] = jobs.get(group) or Ages()
            if not 0 < between <= LONGEST_GAP_SECONDS:
                continue
            watched, ends = self._days[at // DAY_SECONDS][group]
            stayed = now.less(before[group], new.get(group) or Ages())
            for age in ended:
                end = age + between / 2
                number = bisect_right(EDGES_SECONDS, end) - 1
                stayed.add(number, 1, end)
                ends[number] += 1.0
            for number, seconds in enumerate(stayed.watched()):
                watched[number] += max(0.0, seconds)

    def run_times(self) -> RunTimes:
        """Run times as learnt up to the last look; newer days weigh more."""
        if not self._days:
            return {}
        newest = max(self._days)
        if self._older[0] != newest:
            older = self._tables()
            for day, tables in self._days.items():
                if newest - WINDOW_DAYS < day < newest:
                    weight = 0.5 ** ((newest - day) / HALF_LIFE_DAYS)
                    for group in self._groups:
                        for column, more in zip(older[group], tables[group]):
                            column[:] = [a + b * weight for a, b in zip(column, more)]
            self._older = (newest, older)
        today, older = self._days[newest], self._older[1]
        learnt = {}
        for group in self._groups:
            (watched, ends), (more, more_ends) = today[group], older[group]
            bins = [(a + b, c + d) for a, b, c, d in zip(watched, more, ends, more_ends)]
            if any(map(any, bins)):
                learnt[group] = RemainingTimes(tuple(bins))
        return learnt
