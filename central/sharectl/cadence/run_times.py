"""Loading factor: share of its time that a slot works if it gets jobs at negotiation cycles only.

A job runs for D seconds, its slot then stays empty until the next cycle begins, and cycles begin
every C seconds: the loading factor of one run time is D / (C * ceil(D / C)). A slot reaches it
while jobs wait for it all the time. A cycle takes time: jobs that start s seconds after its begin
have D / (C * ceil((s + D) / C)).

Where run times vary it is a ratio of expectations (renewal and reward), E[D] over
C * E[ceil((s + D) / C)]. The mean of the jobs' own factors is something else: in it a short job,
which wastes most of a cycle, counts as much as a long one.

With CLAIM_WORKLIFE W > 0 a claim runs jobs back to back until one ends when the claim is older
than W. D is then L, the time of all jobs of a claim. Jobs are independent of each other, and there
is always one more that may use the claim.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil, floor
from operator import mul
from typing import Callable, NamedTuple, Optional

from sharectl.cadence.laws import RunTimeLaw, constant, exponential, log_normal

CountedJob = tuple[str, int, int]
"""Group, cores, whole seconds."""


@dataclass
class JobsRun:
    """Jobs that ran, by group and size."""

    counted: Counter[CountedJob] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    """Reason -> jobs."""


class LoggedJob(NamedTuple):
    """A job that ran."""

    submitted_at: float
    """Seconds since any moment."""
    run_seconds: float
    cores: int
    memory_mib: int
    """Of the whole job; 0 if unknown."""
    user: str
    group: str
    queue: str


_ROUNDING = 1e-9
_STEPS = 2000
"""Steps of a claim's life, and its most cycles: later ones change less than 0.05 %."""
_MOST_PARTS = 30


def cycles_held(run_time_seconds: float, cadence_seconds: float) -> int:
    """Cycles from a job's match to the first at which its slot can get another, at least 1."""
    return max(1, _whole(run_time_seconds / cadence_seconds, ceil))


def loading_factor(
    run_time_seconds: float, cadence_seconds: float, start_seconds: float = 0.0
) -> float:
    """Loading factor of jobs of one run time that start so long after a cycle's begin."""
    cycles = cycles_held(start_seconds + run_time_seconds, cadence_seconds)
    held_seconds = cadence_seconds * cycles
    return min(1.0, run_time_seconds / held_seconds)


def jobs_of_claim(run_time_seconds: float, worklife_seconds: float) -> int:
    """Jobs of one run time until one ends when the claim is older than its worklife."""
    return _whole(worklife_seconds / run_time_seconds, floor) + 1


def _whole(value: float, otherwise: Callable[[float], int]) -> int:
    """Whole number that floating point cannot tell from ``value`` (3 * 0.1 / 0.1 is above 3)."""
    nearest = round(value)
    same = nearest > 0 and abs(value - nearest) <= _ROUNDING * nearest
    return nearest if same else otherwise(value)


class RunTimes:
    """Distribution of run times: seconds, above 0 -> weight, above 0, such as jobs.

    ``law`` is the continuous law that the weights stand for; without one they are whole seconds.
    """

    def __init__(self, weights: Mapping[float, float], law: Optional[RunTimeLaw] = None) -> None:
        self.weights = dict(weights)
        self.weight = float(sum(weights.values()))
        self.resolution_seconds = 0.0 if law else 1.0
        self.law = law
        self.mean_seconds = float(sum(map(mul, weights, weights.values()))) / self.weight

    def loading(
        self, cadence_seconds: float, worklife_seconds: float = 0, start_seconds: float = 0.0
    ) -> float:
        """Expected loading factor, above 0 and at most 1.

        With a CLAIM_WORKLIFE of 0 a claim has one job; with one below 0 claims do not age. Claims
        start ``start_seconds`` after the begin of a cycle, at most ``cadence_seconds``.
        """
        if worklife_seconds < 0:
            return 1.0
        if len(self.weights) == 1:
            (seconds,) = self.weights
            jobs = jobs_of_claim(seconds, worklife_seconds)
            return loading_factor(seconds * jobs, cadence_seconds, start_seconds)
        worklife = float(worklife_seconds)
        # Exponential jobs are as long from any moment on: so is the last one after the worklife.
        if worklife > 0 and (self.law is None or self.law.name != "exponential"):
            most_seconds = min(worklife, _STEPS * cadence_seconds)
            return _claims_loading(self, cadence_seconds, most_seconds, start_seconds)
        busy = worklife + self.mean_seconds
        return min(
            1.0, busy / (cadence_seconds * self._cycles(cadence_seconds, worklife + start_seconds))
        )

    def _cycles(self, cadence_seconds: float, start_seconds: float) -> float:
        """Expected cycles for which jobs hold a slot that start so long after a cycle's begin."""
        first, exact = 0, 0.0
        if self.law is not None:
            first = _STEPS
            for cycle in range(first):
                exact += (longer := self.law.longer(cycle * cadence_seconds - start_seconds))
                if longer < _ROUNDING:
                    break
        cycles = sum(
            max(0, cycles_held(start_seconds + seconds, cadence_seconds) - first) * weight
            for seconds, weight in self.weights.items()
        )
        return exact + cycles / self.weight

    def rounded(self, step_seconds: float) -> Iterable[tuple[int, float]]:
        """Run times in whole steps, 1 at least, and their probabilities."""
        for seconds, weight in self.weights.items():
            yield max(1, floor(seconds / step_seconds + 0.5)), weight / self.weight


def _claims_loading(
    run_times: RunTimes, cadence_seconds: float, worklife_seconds: float, start_seconds: float
) -> float:
    """E[L] / (C * E[cycles of s + L]), on a lattice that the cycles' beginnings are part of."""
    cycle_steps = ceil(
        cadence_seconds / max(run_times.resolution_seconds, worklife_seconds / _STEPS)
    )
    step_seconds = cadence_seconds / cycle_steps
    points = floor(worklife_seconds / step_seconds)
    start = floor(start_seconds / step_seconds + 0.5)
    # Every claim lasts past all cycles that begin up to its worklife: later ones are in doubt.
    sure_cycles = (start + points) // cycle_steps + 1
    starts, mean_steps = _job_starts(run_times, step_seconds, points)
    first = sure_cycles * cycle_steps - start
    after = _cycles_after(run_times, step_seconds, cycle_steps, first, points)
    held_cycles: float = sure_cycles + sum(map(mul, starts, after))
    # Wald: a claim's jobs times their mean.
    return min(1.0, sum(starts) * mean_steps / (cycle_steps * held_cycles))


@lru_cache(maxsize=256)
def _job_starts(run_times: RunTimes, step_seconds: float, points: int) -> tuple[list[float], float]:
    """Expected jobs that a claim starts after 0 to ``points`` steps, and a job's mean steps.

    The renewal equation is the same for most intervals, and takes most of the time.
    """
    masses = [0.0] * (points + 1)
    mean_steps = 0.0
    for step, share in run_times.rounded(step_seconds):
        mean_steps += step * share
        if step <= points:
            masses[step] += share
    starts = [1.0]
    for step in range(1, points + 1):
        starts.append(sum(map(mul, masses[1 : step + 1], reversed(starts))))
    return starts, mean_steps


def _cycles_after(
    run_times: RunTimes, step_seconds: float, cycle_steps: int, first: int, points: int
) -> list[float]:
    """Expected cycles from ``first`` - 0, 1 … ``points`` steps after a job's start to its end.

    Cycles begin ``cycle_steps`` apart; ``first`` is above ``points``.
    """
    # A longer job takes some whole cycles more and is otherwise like one of these.
    masses = [0.0] * (first + cycle_steps + 1)
    whole_cycles = 0.0
    for step, share in run_times.rounded(step_seconds):
        cycles = max(0, -((first + cycle_steps - step) // cycle_steps))
        masses[step - cycles * cycle_steps] += share
        whole_cycles += cycles * share
    longer = [0.0] * len(masses)
    for step in range(len(masses) - 2, -1, -1):
        longer[step] = longer[step + 1] + masses[step + 1]
    after: list[float] = []
    for back in range(points + 1):
        step = first - back
        later = (
            longer[step + cycle_steps] + whole_cycles
            if back < cycle_steps
            else after[back - cycle_steps]
        )
        after.append(longer[step] + later)
    return after


def times_of(law: RunTimeLaw) -> RunTimes:
    """Run times of a law."""
    return RunTimes(law.weights(), law if law.is_continuous else None)


DISTRIBUTIONS: Mapping[str, Callable[[float], RunTimeLaw]] = {
    "constant": constant,
    "SD 10\N{NARROW NO-BREAK SPACE}%": lambda mean: log_normal(mean, 0.1 * mean),
    "SD 50\N{NARROW NO-BREAK SPACE}%": lambda mean: log_normal(mean, 0.5 * mean),
    "exp.": exponential,
}
"""Name -> law of a mean; an SD is the standard deviation of a log-normal law, of its mean."""


def loading_by_cycles(
    law_of: Callable[[float], RunTimeLaw], most_cycles: int
) -> list[tuple[float, float]]:
    """Loading factor over the mean run time in cycles, of jobs that start when a cycle begins."""
    means = (step / 20 for step in range(1, most_cycles * 20 + 1))
    return [(0.0, 0.0), *((mean, times_of(law_of(mean)).loading(1.0)) for mean in means)]


# ---- jobs of a pool


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

    def loading(
        self, cadence_seconds: float, worklife_seconds: float = 0, start_seconds: float = 0.0
    ) -> float:
        """Work over the time for which slots are held; see `RunTimes.loading`."""
        held_work = sum(
            work / run_times.loading(cadence_seconds, worklife_seconds, start_seconds)
            for work, run_times in self.parts
        )
        return self.work / held_work


def load_of(counted: Mapping[CountedJob, int]) -> Load:
    """Load of jobs: those of one group and size are a part; those with least work share one."""
    work: Counter[tuple[str, int]] = Counter()
    for (group, cores, seconds), jobs in counted.items():
        work[group, cores] += cores * seconds * jobs
    alone = {part for part, _ in work.most_common(_MOST_PARTS)}
    weights: defaultdict[Optional[tuple[str, int]], Counter[float]] = defaultdict(Counter)
    for (group, cores, seconds), jobs in counted.items():
        part = (group, cores)
        weights[part if part in alone else None][seconds] += cores * jobs
    kinds = [RunTimes(seconds) for seconds in weights.values()]
    parts = tuple((run_times.weight * run_times.mean_seconds, run_times) for run_times in kinds)
    return Load("all jobs", parts, sum(counted.values()))
