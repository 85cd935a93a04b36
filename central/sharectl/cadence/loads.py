"""Jobs of a pool by group and size, and the loading factor of all of them together."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Callable, Optional

from sharectl.cadence.run_times import RunTimes

Job = tuple[str, int, int]
"""Group, cores, whole seconds."""
MOST_ROWS = 20
_MOST_PARTS = 30
_NUMBER = re.compile(r"([0-9]{1,18})")


@dataclass(frozen=True)
class JobsRun:
    """Jobs that ran."""

    counted: Mapping[Job, int]
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Reason -> jobs."""
    limit: Optional[int] = None
    """Most jobs that were read, if there were more."""

    @property
    def jobs(self) -> int:
        """Number of jobs."""
        return sum(self.counted.values())

    @property
    def core_seconds(self) -> int:
        """Work of all jobs."""
        return sum(_core_seconds(job, jobs) for job, jobs in self.counted.items())


@dataclass(frozen=True)
class Load:
    """Work of slots: kinds of jobs, of which a claim runs one kind only."""

    name: str
    parts: tuple[tuple[float, RunTimes], ...]
    """Core-seconds of each kind, or any measure of work, and its run times."""
    jobs: Optional[int] = None
    """None of a law."""

    @property
    def work(self) -> float:
        """Core-seconds of all parts, or any measure of work."""
        return sum(work for work, _ in self.parts)

    @property
    def mean_seconds(self) -> float:
        """Mean run time of a job, jobs counted by their cores."""
        return self.work / sum(work / run_times.mean_seconds for work, run_times in self.parts)

    def loading(self, cadence_seconds: float, worklife_seconds: float = 0) -> float:
        """Work over the time for which slots are held; see `RunTimes.loading`."""
        held = sum(
            work / run_times.loading(cadence_seconds, worklife_seconds)
            for work, run_times in self.parts
        )
        return self.work / held

    def worst_loading(
        self, cadence_seconds: float, worklife_seconds: float, change: float
    ) -> float:
        """Least loading factor if all run times change by up to the share ``change``.

        Only the ratio of times matters: longer jobs are the same as a shorter cadence and worklife.
        """
        factors = (1 + change * step / 2 for step in range(-2, 3))
        return min(
            self.loading(cadence_seconds / factor, worklife_seconds / factor) for factor in factors
        )


def _by_size(job: Job) -> tuple[object, str]:
    return job[1], f"{job[1]} core{'s' if job[1] > 1 else ''}"


def _by_group(job: Job) -> tuple[object, str]:
    """Group, whose numbers sort as numbers."""
    parts = _NUMBER.split(job[0])
    return tuple(int(part) if n % 2 else part for n, part in enumerate(parts)), job[0]


BY: Mapping[str, Callable[[Job], tuple[object, str]]] = {"size": _by_size, "group": _by_group}
"""Kind of rows -> sorting key and name of a job's row."""


def loads(jobs: JobsRun, by: Optional[str] = None) -> tuple[Load, ...]:
    """All jobs together, then each size or group: at most `MOST_ROWS`, the last for the rest.

    Raises
    ------
    ValueError
        If no job ran.
    """
    if not jobs.counted:
        raise ValueError("no job with a known run time is in it")
    rows = [_load("all", jobs.counted)]
    if by is None:
        return tuple(rows)
    split: defaultdict[tuple[object, str], dict[Job, int]] = defaultdict(dict)
    work: Counter[tuple[object, str]] = Counter()
    for job, count in jobs.counted.items():
        row = BY[by](job)
        split[row][job] = count
        work[row] += _core_seconds(job, count)
    most = MOST_ROWS if len(work) <= MOST_ROWS else MOST_ROWS - 1
    shown = sorted(row for row, _ in work.most_common(most))
    rows += [_load(row[1], split.pop(row)) for row in shown]
    if split:
        rest = {job: count for kind in split.values() for job, count in kind.items()}
        rows.append(_load(f"others ({len(split)})", rest))
    return tuple(rows)


def _load(name: str, counted: Mapping[Job, int]) -> Load:
    """Jobs of one group and size are a part; those with least work share one."""
    work: Counter[tuple[str, int]] = Counter()
    for job, jobs in counted.items():
        work[job[:2]] += _core_seconds(job, jobs)
    own = {part for part, _ in work.most_common(_MOST_PARTS)}
    weights: defaultdict[Optional[tuple[str, int]], Counter[float]] = defaultdict(Counter)
    for (group, cores, seconds), jobs in counted.items():
        part = (group, cores)
        weights[part if part in own else None][seconds] += cores * jobs
    kinds = [RunTimes(seen) for seen in weights.values()]
    parts = tuple((run_times.weight * run_times.mean_seconds, run_times) for run_times in kinds)
    return Load(name, parts, sum(counted.values()))


def _core_seconds(job: Job, jobs: int) -> int:
    return job[1] * job[2] * jobs
