"""Run times of the jobs of a pool, by group and size, and the loading factor of them together.

Expected loading factor when run times vary, with one job a claim or with claims that are used
again.

A slot works for the sum of the run times out of the sum of the times for which it is held, so its
loading factor is the ratio of the expectations (renewal and reward), E[D] / (C * E[q + ceil(r)]).
The mean of the jobs' own loading factors is something else: in it a short job, which wastes most of
a cycle, counts as much as a long one.

With CLAIM_WORKLIFE W > 0 a claim runs jobs back to back until one ends when the claim is older than
W (the startd asks for more than W, after each job). D is then L, the time of all jobs of a claim.
Jobs are taken to be independent of each other, and there to be always one more that may use the
claim (one of the same submitter that fits the slot).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil, floor
from operator import mul
from typing import Callable, Optional

from sharectl.cadence.loading import combined, jobs_of_claim, loading_factor
from sharectl.cadence.run_times import RunTimes, Seen

_STEPS = 2000
"""Steps of a claim's life; cycles of it too, beyond which the last one no longer matters (less than 0.05 %)."""


def expected_loading(
    run_times: RunTimes, cadence_seconds: float, worklife_seconds: float = 0
) -> float:
    """Fraction of time that a slot works, above 0 and at most 1.

    Parameters
    ----------
    worklife_seconds
        CLAIM_WORKLIFE. 0: one job a claim; below 0: claims do not age.
    """
    if worklife_seconds < 0:
        return 1.0
    if isinstance(run_times, Seen) and len(run_times.weights) == 1:
        (seconds,) = run_times.weights
        return loading_factor(seconds * jobs_of_claim(seconds, worklife_seconds), cadence_seconds)
    if worklife_seconds == 0:
        return min(
            1.0, run_times.mean_seconds / (cadence_seconds * run_times.cycles(cadence_seconds))
        )
    return _claims_loading(
        run_times, cadence_seconds, min(worklife_seconds, _STEPS * cadence_seconds)
    )


def _claims_loading(run_times: RunTimes, cadence_seconds: float, worklife_seconds: float) -> float:
    """E[L] / (C * E[cycles of L]), on a lattice that the cycles' beginnings are part of."""
    cycle_steps = ceil(
        cadence_seconds / max(run_times.resolution_seconds, worklife_seconds / _STEPS)
    )
    step_seconds = cadence_seconds / cycle_steps
    points = floor(worklife_seconds / step_seconds)
    # Every claim lasts past all cycles that begin up to its worklife: only those from here on are
    # in doubt.
    sure_cycles = points // cycle_steps + 1
    starts, mean_steps = _job_starts(run_times, step_seconds, points)
    after = run_times.cycles_after(step_seconds, cycle_steps, sure_cycles * cycle_steps, points)
    held_cycles: float = sure_cycles + sum(map(mul, starts, after))
    # Wald: a claim's jobs times their mean.
    return min(1.0, sum(starts) * mean_steps / (cycle_steps * held_cycles))


@lru_cache(maxsize=256)
def _job_starts(run_times: RunTimes, step_seconds: float, points: int) -> tuple[list[float], float]:
    """Expected number of jobs that a claim starts after 0 to ``points`` steps (renewal equation), and a job's mean.

    The same for most intervals, and what takes most of the time.
    """
    mean_steps, masses = run_times.steps(step_seconds, points)
    starts = [1.0]
    for step in range(1, points + 1):
        starts.append(sum(map(mul, masses[1 : step + 1], reversed(starts))))
    return starts, mean_steps


Job = tuple[str, int, int]
"""Group, cores, whole seconds."""
MOST_ROWS = 20
_MOST_PARTS = 30
OTHERS = "others"
ALL = "all"
_NUMBER = re.compile(r"([0-9]{1,18})")


@dataclass(frozen=True)
class Jobs:
    """Jobs that ran."""

    counted: Mapping[Job, int]
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Why -> jobs."""
    limit: Optional[int] = None
    """How many were looked at, if there are more than that."""

    @property
    def jobs(self) -> int:
        """How many ran."""
        return sum(self.counted.values())

    @property
    def core_seconds(self) -> int:
        """How much they worked."""
        return sum(cores * seconds * jobs for (_, cores, seconds), jobs in self.counted.items())


@dataclass(frozen=True)
class Load:
    """What slots work on: kinds of jobs, of which a claim runs one kind only."""

    name: str
    parts: tuple[tuple[float, RunTimes], ...]
    """Core seconds of each, or any measure of how much of the work it is; and its run times."""
    jobs: Optional[int] = None
    """None of a law."""

    @property
    def work(self) -> float:
        """Core seconds of all parts, or any measure of work."""
        return sum(work for work, _ in self.parts)

    @property
    def mean_seconds(self) -> float:
        """Mean run time of a job, jobs counted by their cores."""
        jobs = sum(work / run_times.mean_seconds for work, run_times in self.parts)
        return self.work / jobs

    def loading(self, cadence_seconds: float, worklife_seconds: float = 0) -> float:
        """Fraction of their cores' time that slots work; see `expected_loading`."""
        together = combined(
            (work, expected_loading(run_times, cadence_seconds, worklife_seconds))
            for work, run_times in self.parts
        )
        assert together is not None  # noqa: S101 - there is a part
        return together

    def worst_loading(
        self, cadence_seconds: float, worklife_seconds: float, change: float
    ) -> float:
        """The least, should all run times come out up to the share ``change`` shorter or longer.

        Only the ratio of times matters: longer jobs are the same as a shorter cadence and worklife.
        """
        factors = (1 + change * step / 2 for step in range(-2, 3))
        return min(
            self.loading(cadence_seconds / factor, worklife_seconds / factor) for factor in factors
        )


def _with_numbers(name: str) -> tuple[object, ...]:
    """Sorts names such that numbers in them, of up to 18 digits at a time, count as numbers."""
    return tuple(
        int(part) if number % 2 else part for number, part in enumerate(_NUMBER.split(name))
    )


_KEYS: Mapping[str, Callable[[Job], tuple[object, str]]] = {
    # what rows are sorted by, and their name
    "size": lambda job: (job[1], f"{job[1]} core{'s' if job[1] > 1 else ''}"),
    "group": lambda job: (_with_numbers(job[0]), job[0]),
}
BY = tuple(_KEYS)


def loads(jobs: Jobs, by: Optional[str] = None) -> tuple[Load, ...]:
    """All jobs together, then each size or group: `MOST_ROWS` at most, the last for the rest.

    Raises
    ------
    ValueError
        If no job ran.
    """
    if not jobs.counted:
        raise ValueError("no job with a known run time is in it")
    rows = [_load(ALL, jobs.counted)]
    if by is not None:
        rows += _by_key(jobs.counted, _KEYS[by])
    return tuple(rows)


def _by_key(counted: Mapping[Job, int], key: Callable[[Job], tuple[object, str]]) -> list[Load]:
    work: Counter[tuple[object, str]] = Counter()
    for job, jobs in counted.items():
        work[key(job)] += _core_seconds(job, jobs)
    shown = {
        row for row, _ in work.most_common(MOST_ROWS if len(work) <= MOST_ROWS else MOST_ROWS - 1)
    }
    split: defaultdict[tuple[object, str], dict[Job, int]] = defaultdict(dict)
    rest: dict[Job, int] = {}
    for job, jobs in counted.items():
        row = key(job)
        (split[row] if row in shown else rest)[job] = jobs
    rows = [_load(row[1], split[row]) for row in sorted(split)]
    if rest:
        rows.append(_load(f"{OTHERS} ({len(work) - len(shown)})", rest))
    return rows


def _load(name: str, counted: Mapping[Job, int]) -> Load:
    """Jobs of one group and size make a part; those of many small ones together one more."""
    work: Counter[tuple[str, int]] = Counter()
    for job, jobs in counted.items():
        work[job[:2]] += _core_seconds(job, jobs)
    own = {part for part, _ in work.most_common(_MOST_PARTS)}
    weights: defaultdict[Optional[tuple[str, int]], Counter[float]] = defaultdict(Counter)
    for (group, cores, seconds), jobs in counted.items():
        part = (group, cores)
        weights[part if part in own else None][seconds] += cores * jobs
    run_times = {part: Seen(found) for part, found in weights.items()}
    return Load(
        name,
        tuple((seen.weight * seen.mean_seconds, seen) for seen in run_times.values()),
        sum(counted.values()),
    )


def _core_seconds(job: Job, jobs: int) -> int:
    return job[1] * job[2] * jobs
