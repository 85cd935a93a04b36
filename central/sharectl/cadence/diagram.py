"""Loading factor over the mean run time in cycles, of distributions from narrow to wide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Callable

from sharectl.cadence.laws import RunTimeLaw, constant, exponential, log_normal
from sharectl.cadence.run_times import times_of

DISTRIBUTIONS: Mapping[str, Callable[[float], RunTimeLaw]] = {
    "constant": constant,
    "SD 10\N{NARROW NO-BREAK SPACE}%": lambda mean: log_normal(mean, 0.1 * mean),
    "SD 50\N{NARROW NO-BREAK SPACE}%": lambda mean: log_normal(mean, 0.5 * mean),
    "exp.": exponential,
}
"""Name -> law of a mean; an SD is the standard deviation of a log-normal law, of its mean."""
MOST_CYCLES = 4
_STEPS = 20
"""Of a cycle."""

Points = list[tuple[float, float]]
"""Mean run time in cycles, loading factor."""


def formula(law_of: Callable[[float], RunTimeLaw]) -> Points:
    """Loading factors of jobs that start when a cycle begins."""
    means = (step / _STEPS for step in range(1, MOST_CYCLES * _STEPS + 1))
    return [(0.0, 0.0), *((mean, times_of(law_of(mean)).loading(1.0)) for mean in means)]
