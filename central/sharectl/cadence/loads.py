"""Jobs of a pool by group and size, and the loading factor of all of them together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Callable, Optional

from sharectl.cadence.run_times import RunTimes

Job = tuple[str, int, int]
"""Group, cores, whole seconds."""
MOST_ROWS = 20
_MOST_PARTS = 30


@dataclass
class JobsRun:
    """Jobs that ran."""

    counted: Counter[Job] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    """Reason -> jobs."""
    full: bool = False
    """True if no more jobs were looked at."""

    @property
    def core_hours(self) -> float:
        """Work of all jobs."""
        return sum(_core_seconds(job, jobs) for job, jobs in self.counted.items()) / 3600


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


@dataclass(frozen=True)
class Facts:
    """Run times, and facts of the pool that came with them."""

    source: str
    loads: tuple[Load, ...]
    cores: Optional[int] = None
    durations: tuple[float, ...] = ()
    """Of the negotiator's last cycles, whole seconds."""
    jobs_waited: bool = False
    """True if jobs waited in those cycles."""
    knobs: Mapping[str, int] = field(default_factory=dict)
    """The negotiator's."""
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


BY: Mapping[str, Callable[[Job], str]] = {
    "size": lambda job: f"{job[1]} core{'s' if job[1] > 1 else ''}",
    "group": lambda job: job[0],
}
"""Kind of rows -> name of a job's row."""


def loads(counted: Mapping[Job, int], by: Optional[str] = None) -> tuple[Load, ...]:
    """All jobs together, then sizes or groups, those with most work first.

    There are at most `MOST_ROWS`, of which the last has the rest.
    """
    rows = [_load("all", counted)]
    if by is None:
        return tuple(rows)
    split: defaultdict[str, dict[Job, int]] = defaultdict(dict)
    work: Counter[str] = Counter()
    for job, jobs in counted.items():
        row = BY[by](job)
        split[row][job] = jobs
        work[row] += _core_seconds(job, jobs)
    shown = [row for row, _ in work.most_common(MOST_ROWS - (len(work) > MOST_ROWS))]
    rows += [_load(row, split.pop(row)) for row in shown]
    if split:
        rest = {job: jobs for kind in split.values() for job, jobs in kind.items()}
        rows.append(_load(f"others ({len(split)})", rest))
    return tuple(rows)


def _load(name: str, counted: Mapping[Job, int]) -> Load:
    """Jobs of one group and size are a part; those with least work share one."""
    work: Counter[tuple[str, int]] = Counter()
    for job, jobs in counted.items():
        work[job[:2]] += _core_seconds(job, jobs)
    alone = {part for part, _ in work.most_common(_MOST_PARTS)}
    weights: defaultdict[Optional[tuple[str, int]], Counter[float]] = defaultdict(Counter)
    for (group, cores, seconds), jobs in counted.items():
        part = (group, cores)
        weights[part if part in alone else None][seconds] += cores * jobs
    kinds = [RunTimes(seconds) for seconds in weights.values()]
    parts = tuple((run_times.weight * run_times.mean_seconds, run_times) for run_times in kinds)
    return Load(name, parts, sum(counted.values()))


def _core_seconds(job: Job, jobs: int) -> int:
    return job[1] * job[2] * jobs
