"""Laws of run times: by name, or as run times with weights.

A law gives run times in two ways: as weights, where an expectation is wanted, and drawn one by one.
Draws use only `Random.random`, because other methods differ between versions of Python.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from math import exp, fsum, log, log1p, sqrt
from statistics import NormalDist
from typing import Callable

MOST_SECONDS = 1e9
_BINS = 2000
"""Run times of equal probability that stand for a law."""
_FORMS: Mapping[str, tuple[str, ...]] = {
    "constant": ("SECONDS",),
    "exponential": ("MEAN",),
    "log-normal": ("MEAN", "SD"),
}
"""Name of a law -> its parameters, in seconds."""


@dataclass(frozen=True)
class RunTimeLaw:
    """Distribution of run times."""

    name: str
    """`constant`, `exponential`, `log-normal` or `weighted`."""
    parameters: tuple[float, ...]
    """Seconds; of a weighted law run times and their weights in turn, both above 0."""

    @property
    def text(self) -> str:
        """Law as `parse` reads it."""
        return f"{self.name}:{','.join(map(plain, self.parameters))}"

    @property
    def seen(self) -> dict[float, float]:
        """Run time -> weight, of a weighted law."""
        return dict(zip(self.parameters[::2], self.parameters[1::2]))

    @property
    def mean_seconds(self) -> float:
        """Mean run time."""
        if self.name != "weighted":
            return self.parameters[0]
        weights = self.seen
        total = fsum(seconds * weight for seconds, weight in weights.items())
        return total / fsum(weights.values())

    @property
    def is_continuous(self) -> bool:
        """True if run times may be anything, so that weights stand for bins."""
        return self.name in ("exponential", "log-normal")

    def weights(self) -> dict[float, float]:
        """Run time -> weight; a continuous law as means of bins of equal probability."""
        if self.name == "weighted":
            return self.seen
        mean = self.parameters[0]
        if self.name == "constant":
            return {mean: 1.0}
        quantile = self._quantile()
        if self.name == "exponential":
            return _binned(
                quantile, lambda seconds: mean - (seconds + mean) * exp(-seconds / mean), mean
            )
        law = self._normal()
        spread = law.stdev
        return _binned(quantile, lambda seconds: mean * law.cdf(log(seconds) - spread**2), mean)

    def longer(self, seconds: float) -> float:
        """Share of jobs that run longer, of a continuous law."""
        if seconds <= 0:
            return 1.0
        if self.name == "exponential":
            return exp(-seconds / self.mean_seconds)
        return 1 - self._normal().cdf(log(seconds))

    def drawing(self, uniform: Callable[[], float]) -> Callable[[], float]:
        """Drawer of run times in seconds, above 0, from a drawer of numbers from 0 to below 1."""
        if self.name == "constant":
            seconds = self.parameters[0]
            return lambda: seconds
        quantile = self._quantile()
        # 0 comes once in 2**53 draws, and no law has a run time for it.
        return lambda: quantile(uniform() or 0.5)

    def _quantile(self) -> Callable[[float], float]:
        """Run time that a share of all jobs, above 0 and below 1, stays below."""
        mean = self.parameters[0]
        if self.name == "exponential":
            return lambda share: -mean * log1p(-share)
        if self.name == "log-normal":
            inverse = self._normal().inv_cdf
            return lambda share: exp(inverse(share))
        seconds = self.parameters[::2]
        sums = tuple(accumulate(self.parameters[1::2]))
        total, last = sums[-1], len(seconds) - 1
        return lambda share: seconds[min(last, bisect_right(sums, share * total))]

    def _normal(self) -> NormalDist:
        """Law of the logarithm of a log-normal run time."""
        mean, deviation = self.parameters
        spread = sqrt(log1p((deviation / mean) ** 2))
        return NormalDist(log(mean) - spread**2 / 2, spread)


def plain(value: float) -> str:
    """Shortest text of a number."""
    return repr(int(value) if value == int(value) else value)


def constant(seconds: float) -> RunTimeLaw:
    """One run time."""
    return RunTimeLaw("constant", (seconds,))


def exponential(mean_seconds: float) -> RunTimeLaw:
    """Jobs that end with the same probability in every second, however long they have run."""
    return RunTimeLaw("exponential", (mean_seconds,))


def log_normal(mean_seconds: float, sd_seconds: float) -> RunTimeLaw:
    """Law whose logarithm is normal; mean and standard deviation are the run times' own."""
    return RunTimeLaw("log-normal", (mean_seconds, sd_seconds))


def weighted(weights: Mapping[float, float]) -> RunTimeLaw:
    """Run times with weights, such as jobs that ran."""
    parts = (value for pair in sorted(weights.items()) for value in pair)
    return RunTimeLaw("weighted", tuple(parts))


def _binned(
    quantile: Callable[[float], float], up_to: Callable[[float], float], mean_seconds: float
) -> dict[float, float]:
    """Law as means of bins of equal probability; ``up_to`` seconds is E[D; D <= seconds]."""
    edges = (quantile(number / _BINS) for number in range(1, _BINS))
    parts = [0.0, *map(up_to, edges), mean_seconds]
    least = mean_seconds * 1e-12  # differences of small parts are rounded
    weights: Counter[float] = Counter(
        max(least, (after - before) * _BINS) for before, after in zip(parts, parts[1:])
    )
    return dict(weights)


def parse(text: str) -> RunTimeLaw:
    """Law by its name and parameters in seconds, such as ``log-normal:255,50``.

    Raises ValueError, which says what to write, if there is no such law.
    """
    name, _, words = text.partition(":")
    if name not in _FORMS:
        forms = " ".join(f"{name}:{','.join(words)}" for name, words in _FORMS.items())
        raise ValueError(f"{text[:60]!r} is no law of run times; write one of {forms}")
    parts = words.split(",")
    if len(parts) != len(_FORMS[name]):
        raise ValueError(f"{text[:60]!r}: write {name}:{','.join(_FORMS[name])}, in seconds")
    return RunTimeLaw(name, tuple(_seconds(text, part) for part in parts))


def _seconds(text: str, part: str) -> float:
    try:
        value = float(part)
    except ValueError:
        value = 0.0
    if not 1 / MOST_SECONDS <= value <= MOST_SECONDS:
        raise ValueError(
            f"{text[:60]!r}: {part[:20]!r} is no run time; write seconds above 0, from "
            f"{1 / MOST_SECONDS:g} to {MOST_SECONDS:.0f}, such as 255"
        )
    return value
