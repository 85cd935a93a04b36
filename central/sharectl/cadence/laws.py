"""Laws of run times, of jobs that ran too, and their loading factor.

The loading factor is the share of its time that a slot works if it gets jobs at negotiation cycles
only, every C seconds, and jobs always wait. Jobs that run for D seconds and start s seconds after a
cycle's begin have E[D] / (C * E[ceil((s + D) / C)]): not the mean of the jobs' own factors, in
which a short job counts as much as a long one.

With CLAIM_WORKLIFE W > 0 a claim runs independent jobs back to back until one ends when the claim
is older than W. D is then L, the time of all jobs of a claim.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from math import ceil, exp, floor, fsum, log, log1p, sqrt
from operator import mul
from statistics import NormalDist
from typing import Callable, NamedTuple

MOST_SECONDS = 1e9
_ROUNDING = 1e-9
_BINS = 10_000
"""Run times of equal probability that stand for a law."""
_STEPS = 2000
"""Steps of a claim's life, and its most cycles: later ones change less than 0.05 %."""
_FORMS: Mapping[str, tuple[str, ...]] = {
    "constant": ("SECONDS",),
    "exponential": ("MEAN",),
    "log-normal": ("MEAN", "SD"),
}
"""Name of a law -> its parameters, in seconds."""


def cycles_held(run_time_seconds: float, cadence_seconds: float) -> int:
    """Cycles from a job's match to the first at which its slot can get another, at least 1."""
    # Floating point makes 3 * 0.1 / 0.1 more than 3.
    return max(1, ceil(run_time_seconds / cadence_seconds * (1 - _ROUNDING)))


@dataclass(frozen=True)
class RunTimeLaw:
    """Distribution of run times: their shares of all jobs, for expectations, and draws."""

    name: str
    """`constant`, `exponential`, `log-normal` or `weighted`."""
    parameters: tuple[float, ...]
    """Seconds; of a weighted law whole seconds and their weights in turn, both above 0."""

    @property
    def text(self) -> str:
        """Law as `parse` reads it."""
        return f"{self.name}:{','.join(map(plain, self.parameters))}"

    @property
    def seen(self) -> dict[float, float]:
        """Run time -> weight, of a weighted law."""
        return dict(zip(self.parameters[::2], self.parameters[1::2]))

    @property
    def is_continuous(self) -> bool:
        """True if run times may be anything above 0."""
        return self.name in ("exponential", "log-normal")

    @cached_property
    def mean_seconds(self) -> float:
        """Mean run time."""
        if self.name != "weighted":
            return self.parameters[0]
        return fsum(seconds * share for seconds, share in self.shares.items())

    @cached_property
    def shares(self) -> dict[float, float]:
        """Run time -> share of jobs; of a continuous law those of bins of equal probability."""
        if self.name == "weighted":
            weight = fsum(self.parameters[1::2])
            return {seconds: part / weight for seconds, part in self.seen.items()}
        mean = self.parameters[0]
        if self.name == "constant":
            return {mean: 1.0}
        quantile = self._quantile()
        middles = [quantile((number + 0.5) / _BINS) for number in range(_BINS - 1)]
        # The last bin has the tail, and makes the mean that of the law.
        counted = Counter([*middles, max(middles[-1], mean * _BINS - fsum(middles))])
        return {seconds: jobs / _BINS for seconds, jobs in counted.items()}

    def drawing(self, uniform: Callable[[], float]) -> Callable[[], float]:
        """Drawer of run times in seconds, above 0, from a drawer of numbers from 0 to below 1.

        Other methods of `Random` than this one differ between versions of Python.
        """
        if self.name == "constant":
            seconds = self.parameters[0]
            return lambda: seconds
        quantile = self._quantile()
        # 0 comes once in 2**53 draws, and no law has a run time for it.
        return lambda: quantile(uniform() or 0.5)

    def loading(
        self, cadence_seconds: float, worklife_seconds: float = 0, start_seconds: float = 0.0
    ) -> float:
        """Expected loading factor, above 0 and at most 1.

        With a CLAIM_WORKLIFE of 0 a claim has one job; with one below 0 claims do not age. Claims
        start ``start_seconds`` after the begin of a cycle, at most ``cadence_seconds``.
        """
        if worklife_seconds < 0:
            return 1.0
        if worklife_seconds > 0:
            most_seconds = min(worklife_seconds, _STEPS * cadence_seconds)
            return _claims_loading(self, cadence_seconds, most_seconds, start_seconds)
        cycles = fsum(
            cycles_held(start_seconds + seconds, cadence_seconds) * share
            for seconds, share in self.shares.items()
        )
        return min(1.0, self.mean_seconds / (cadence_seconds * cycles))

    def _quantile(self) -> Callable[[float], float]:
        """Run time that a share of all jobs, above 0 and below 1, stays below."""
        mean = self.parameters[0]
        if self.name == "exponential":
            return lambda share: -mean * log1p(-share)
        if self.name == "log-normal":
            deviation = self.parameters[1]
            spread = sqrt(log1p((deviation / mean) ** 2))
            # The logarithm of a run time is normal.
            inverse = NormalDist(log(mean) - spread**2 / 2, spread).inv_cdf
            return lambda share: exp(inverse(share))
        seconds = self.parameters[::2]
        sums = tuple(accumulate(self.parameters[1::2]))
        total, last = sums[-1], len(seconds) - 1
        return lambda share: seconds[min(last, bisect_right(sums, share * total))]


def _claims_loading(
    law: RunTimeLaw, cadence_seconds: float, worklife_seconds: float, start_seconds: float
) -> float:
    """E[L] / (C * E[cycles of s + L]), on a lattice that the cycles' beginnings are part of."""
    # HTCondor counts whole seconds.
    cycle_steps = ceil(cadence_seconds / max(1.0, worklife_seconds / _STEPS))
    step_seconds = cadence_seconds / cycle_steps
    points = floor(worklife_seconds / step_seconds)
    start = floor(start_seconds / step_seconds + 0.5)
    steps = _in_steps(law, step_seconds)
    starts = _job_starts(law, step_seconds, points)
    whole_cycles, rests = 0.0, [0.0] * cycle_steps
    for step, share in steps.items():
        whole_cycles += step // cycle_steps * share
        rests[step % cycle_steps] += share
    longer = [0.0, *accumulate(reversed(rests[1:]))][::-1]
    # A job holds one more cycle if it goes on at the next cycle's begin after its whole ones.
    held_cycles = ceil(start / cycle_steps) + fsum(
        jobs * (whole_cycles + longer[-(start + step) % cycle_steps])
        for step, jobs in enumerate(starts)
    )
    # Wald: a claim's jobs times their mean.
    mean_steps = fsum(map(mul, steps, steps.values()))
    return min(1.0, sum(starts) * mean_steps / (cycle_steps * held_cycles))


def _in_steps(law: RunTimeLaw, step_seconds: float) -> dict[int, float]:
    """Run times in whole steps, 1 at least -> shares of all jobs."""
    steps: defaultdict[int, float] = defaultdict(float)
    for seconds, share in law.shares.items():
        steps[max(1, floor(seconds / step_seconds + 0.5))] += share
    return steps


@lru_cache(maxsize=256)
def _job_starts(law: RunTimeLaw, step_seconds: float, points: int) -> list[float]:
    """Expected jobs that a claim starts after 0 to ``points`` steps.

    The renewal equation is the same for most intervals, and takes most of the time.
    """
    shares = _in_steps(law, step_seconds)
    masses = [shares.get(step, 0.0) for step in range(points + 1)]
    starts = [1.0]
    for step in range(1, points + 1):
        starts.append(sum(map(mul, masses[1 : step + 1], reversed(starts))))
    return starts


def plain(value: float) -> str:
    """Shortest text of a number."""
    return repr(int(value) if value == int(value) else value)


def constant(seconds: float) -> RunTimeLaw:
    """One run time."""
    return RunTimeLaw("constant", (seconds,))


def weighted(weights: Mapping[float, float]) -> RunTimeLaw:
    """Run times with weights, such as jobs that ran."""
    parts = (value for pair in sorted(weights.items()) for value in pair)
    return RunTimeLaw("weighted", tuple(parts))


def parse(text: str) -> RunTimeLaw:
    """Law by its name and parameters in seconds, such as ``log-normal:255,50``.

    Raises ValueError, which says what to write, if there is no such law.
    """
    name, _, words = text.partition(":")
    with suppress(ValueError):
        seconds = tuple(map(float, words.split(",")))
        valid = all(1 / MOST_SECONDS <= value <= MOST_SECONDS for value in seconds)
        if valid and len(seconds) == len(_FORMS.get(name, ())):
            return RunTimeLaw(name, seconds)
    forms = " ".join(f"{name}:{','.join(words)}" for name, words in _FORMS.items())
    raise ValueError(
        f"{text[:60]!r} is no law of run times; write one of {forms}, in seconds from "
        f"{1 / MOST_SECONDS:g} to {MOST_SECONDS:.0f}"
    )


# ---- jobs that ran


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


def law_of(jobs: Iterable[LoggedJob]) -> RunTimeLaw:
    """Run times of jobs, each counted by its cores."""
    cores: Counter[float] = Counter()
    for job in jobs:
        cores[job.run_seconds] += job.cores
    return weighted(cores)
