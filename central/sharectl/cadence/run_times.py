"""Run times, as a law or as they were seen: what a loading factor needs to know of them.

Every kind answers the same questions about D, the seconds that a job taken at random runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import erfc, exp, expm1, floor, isfinite, log, pi, sqrt
from typing import Callable, Protocol

from sharectl.cadence.loading import cycles_held

_MOST_TERMS = 1000
_NEGLIGIBLE = 1e-15


class RunTimes(Protocol):
    """Run times of jobs."""

    def __hash__(self) -> int:
        """By identity."""

    @property
    def mean_seconds(self) -> float:
        """E[D]."""

    @property
    def resolution_seconds(self) -> float:
        """What run times are as good as rounded to; 0 if they may be anything."""

    def cycles(self, cadence_seconds: float) -> float:
        """E[q + ceil(r)]: cycles that a slot is held for a job."""

    def steps(self, step_seconds: float, points: int) -> tuple[float, list[float]]:
        """The same rounded to whole steps, 1 at least: their mean, and the probabilities of 0 to ``points`` steps."""

    def cycles_after(
        self, step_seconds: float, cycle_steps: int, first: int, points: int
    ) -> list[float]:
        """E[cycles that begin from ``first`` - 0, 1 … ``points`` steps after a job's start until it has ended].

        Parameters
        ----------
        cycle_steps
            Steps between the beginnings of two cycles.
        first
            Above ``points``.
        """


class Law:
    """A law with a density.

    Parameters
    ----------
    longer
        Seconds -> P(D > seconds).
    excess
        Seconds -> E[max(0, D - seconds)].
    """

    resolution_seconds = 0.0

    def __init__(self, longer: Callable[[float], float], excess: Callable[[float], float]) -> None:
        self.mean_seconds = excess(0.0)
        self.longer = longer
        self.excess = excess

    def cycles(self, cadence_seconds: float) -> float:
        """See `RunTimes`."""
        return self.cycles_from(0.0, cadence_seconds)

    def cycles_from(self, seconds: float, cadence_seconds: float) -> float:
        """P(D > s) + P(D > s + C) + …: cycles that begin from s on until the job has ended.

        What comes after many terms is taken as their integral (Euler and Maclaurin, to the second
        term).
        """
        total = 0.0
        for number in range(_MOST_TERMS):
            term = self.longer(seconds + number * cadence_seconds)
            if term <= _NEGLIGIBLE:
                return total
            total += term
        rest = seconds + _MOST_TERMS * cadence_seconds
        return total + self.excess(rest) / cadence_seconds + self.longer(rest) / 2

    def steps(self, step_seconds: float, points: int) -> tuple[float, list[float]]:
        """See `RunTimes`. A job of x steps runs from x - 0.5 to x + 0.5 of them."""
        longer = [1.0, *(self.longer((step + 0.5) * step_seconds) for step in range(1, points + 1))]
        masses = [0.0, *(before - after for before, after in zip(longer, longer[1:]))]
        return 1 + self.cycles_from(1.5 * step_seconds, step_seconds), masses

    def cycles_after(
        self, step_seconds: float, cycle_steps: int, first: int, points: int
    ) -> list[float]:
        """See `RunTimes`."""
        after: list[float] = []
        for back in range(points + 1):
            seconds = (first - back + 0.5) * step_seconds
            after.append(
                self.cycles_from(seconds, step_seconds * cycle_steps)
                if back < cycle_steps
                else self.longer(seconds) + after[back - cycle_steps]
            )
        return after


class Exponential(Law):
    """Jobs that end with the same probability in every second, however long they have run."""

    def __init__(self, mean_seconds: float) -> None:
        _check(mean=mean_seconds)
        super().__init__(
            lambda seconds: exp(-seconds / mean_seconds),
            lambda seconds: mean_seconds * exp(-seconds / mean_seconds),
        )

    def cycles_from(self, seconds: float, cadence_seconds: float) -> float:
        """See `Law`; the sum is geometric, hence closed."""
        return self.longer(seconds) / -expm1(-cadence_seconds / self.mean_seconds)


def normal(mean_seconds: float, sd_seconds: float) -> Law:
    """Normal law of which only what is above 0 is kept, scaled up to 1: D given that D > 0.

    The mean that comes out is above ``mean_seconds``, noticeably so where ``sd_seconds`` is over a
    third of it.
    """
    _check(mean=mean_seconds, sd=sd_seconds)
    kept = _above(-mean_seconds / sd_seconds)

    def longer(seconds: float) -> float:
        return min(1.0, _above((seconds - mean_seconds) / sd_seconds) / kept)

    def excess(seconds: float) -> float:
        z = (seconds - mean_seconds) / sd_seconds
        return max(0.0, sd_seconds * (exp(-z * z / 2) / sqrt(2 * pi) - z * _above(z)) / kept)

    return Law(longer, excess)


def log_normal(mean_seconds: float, sd_seconds: float) -> Law:
    """Law whose logarithm is normal; mean and standard deviation are the run times' own, not the logarithms'."""
    _check(mean=mean_seconds, sd=sd_seconds)
    spread = sqrt(log(1 + (sd_seconds / mean_seconds) ** 2))
    middle = log(mean_seconds) - spread**2 / 2

    def longer(seconds: float) -> float:
        return _above((log(seconds) - middle) / spread) if seconds > 0 else 1.0

    def excess(seconds: float) -> float:
        if seconds <= 0:
            return mean_seconds - seconds
        z = (log(seconds) - middle) / spread
        return max(0.0, mean_seconds * _above(z - spread) - seconds * _above(z))

    return Law(longer, excess)


class Seen:
    """Run times that were seen; one of them is a constant run time.

    Parameters
    ----------
    weights
        Seconds, above 0 -> weight, above 0, such as jobs.
    resolution_seconds
        See `RunTimes`.
    """

    def __init__(self, weights: Mapping[float, float], resolution_seconds: float = 1.0) -> None:
        if not weights:
            raise ValueError("there is no run time")
        _check(**{"shortest run time": min(weights), "longest run time": max(weights)})
        self.weights = dict(weights)
        self.weight = sum(weights.values())
        self.resolution_seconds = resolution_seconds
        self.mean_seconds = (
            sum(seconds * weight for seconds, weight in weights.items()) / self.weight
        )

    def cycles(self, cadence_seconds: float) -> float:
        """See `RunTimes`."""
        held = sum(
            cycles_held(seconds, cadence_seconds) * weight
            for seconds, weight in self.weights.items()
        )
        return held / self.weight

    def steps(self, step_seconds: float, points: int) -> tuple[float, list[float]]:
        """See `RunTimes`. Run times are rounded to the nearest step."""
        masses = [0.0] * (points + 1)
        mean = 0.0
        for step, share in self._rounded(step_seconds):
            mean += step * share
            if step <= points:
                masses[step] += share
        return mean, masses

    def cycles_after(
        self, step_seconds: float, cycle_steps: int, first: int, points: int
    ) -> list[float]:
        """See `RunTimes`."""
        # A longer job takes some whole cycles more and is otherwise like one of these: no list is
        # as long as it.
        masses = [0.0] * (first + cycle_steps + 1)
        whole_cycles = 0.0
        for step, share in self._rounded(step_seconds):
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

    def _rounded(self, step_seconds: float) -> Iterable[tuple[int, float]]:
        for seconds, weight in self.weights.items():
            yield max(1, floor(seconds / step_seconds + 0.5)), weight / self.weight


def _check(**seconds: float) -> None:
    for name, value in seconds.items():
        if not (isfinite(value) and value > 0):
            raise ValueError(f"{name} is {value!r}; write seconds above 0")


def _above(z: float) -> float:
    """P(Z > z) of the standard normal law."""
    return erfc(z / sqrt(2)) / 2
