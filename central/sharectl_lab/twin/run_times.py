"""Run times of jobs in the twin, learnt as the ledger learns them.

The ledger compares two looks at the pool job by job (`sharectl.plan.waits.observed`). Here the jobs
of a look are sums by bin of age, and only jobs that end are looked at alone.
"""

from __future__ import annotations

from bisect import bisect_right
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


class _Day:
    """Life tables of one day: seconds watched and ends, by group and bin."""

    def __init__(self, groups: Iterable[str]) -> None:
        self.tables = {group: ([0.0] * BINS, [0.0] * BINS) for group in groups}

    def add(self, other: _Day, weight: float) -> None:
        for group, mine in self.tables.items():
            for column, more in zip(mine, other.tables[group]):
                for number, value in enumerate(more):
                    column[number] += value * weight


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
        self._days: dict[int, _Day] = {}
        self._older: tuple[int, _Day] = (0, _Day(()))
        """Newest day, and the sum of all days before it as they weigh then."""

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
            now = jobs.get(group) or Ages()
            self._before[group] = now
            if 0 < between <= LONGEST_GAP_SECONDS:
                table = self._day(at // DAY_SECONDS).tables[group]
                self._learn(table, (before[group], now, new.get(group) or Ages()), ended, between)

    @staticmethod
    def _learn(
        table: tuple[list[float], list[float]],
        looks: tuple[Ages, Ages, Ages],
        ended: Iterable[int],
        between: int,
    ) -> None:
        before, now, new = looks
        watched, ends = table
        stayed = Ages()
        for number in range(BINS):
            stayed.jobs[number] = now.jobs[number] - before.jobs[number] - new.jobs[number]
            stayed.seconds[number] = (
                now.seconds[number] - before.seconds[number] - new.seconds[number]
            )
        for age in ended:
            end = age + between / 2
            number = bisect_right(EDGES_SECONDS, end) - 1
            stayed.add(number, 1, end)
            ends[number] += 1.0
        for number, seconds in enumerate(stayed.watched()):
            watched[number] += max(0.0, seconds)

    def _day(self, number: int) -> _Day:
        if number not in self._days:
            self._days[number] = _Day(self._groups)
        return self._days[number]

    def run_times(self) -> RunTimes:
        """Run times as learnt up to the last look; newer days weigh more."""
        if not self._days:
            return {}
        newest = max(self._days)
        if self._older[0] != newest:
            older = _Day(self._groups)
            for day, table in self._days.items():
                if newest - WINDOW_DAYS < day < newest:
                    older.add(table, 0.5 ** ((newest - day) / HALF_LIFE_DAYS))
            self._older = (newest, older)
        today, older = self._days[newest], self._older[1]
        learnt = {}
        for group in self._groups:
            (watched, ends), (more, more_ends) = today.tables[group], older.tables[group]
            bins = [(a + b, c + d) for a, b, c, d in zip(watched, more, ends, more_ends)]
            if any(map(any, bins)):
                learnt[group] = RemainingTimes(tuple(bins))
        return learnt
