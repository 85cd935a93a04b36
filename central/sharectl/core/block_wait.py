"""How long it takes until a group's jobs on one node have given enough cores back."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, exp, inf, log
from typing import NamedTuple

from sharectl.core.wanted import Wait

ORDER_CORRECTION = 0.56
"""The k-th of n exponential times has its mean where k / (n + 0.56) of them are over, within some per cent for all k, n."""

NEWTON_STEPS = 20
NEWTON_RATIO = 1e-2


class Leaving(NamedTuple):
    """Jobs on one node that are alike."""

    cores: int
    """Cores that each holds, >= 1."""
    jobs: int
    expected_seconds: float
    """Mean time that each still runs, > 0."""


def wait_for_cores(jobs: Sequence[Leaving], needed_cores: int, idle_cores: int) -> Wait:
    """Expected time until ``jobs`` have given back ``needed_cores``, and what stands idle meanwhile.

    Each job ends after an exponential time of its own mean. The cores given back by time t are then on average
    ``sum of cores * (1 - exp(-t / mean))``; the wait is when these reach the cores that must come free, in whole jobs,
    lowered so that it is the mean of an order statistic (`ORDER_CORRECTION`).

    Parameters
    ----------
    idle_cores
        Cores that no job holds already, and that wait for the others.
    """
    if needed_cores <= 0:
        return Wait(0.0, 0.0)
    # Plain loops: a plan for a large pool asks this ten thousand times.
    number = cores = 0
    for held, count, _ in jobs:
        number += count
        cores += held * count
    if cores < needed_cores:
        return Wait(inf, inf)
    whole_jobs = min(number, ceil(needed_cores * number / cores - 1e-9))
    due = whole_jobs * cores / (number + ORDER_CORRECTION)
    seconds = _time_until(jobs, cores, due)
    idle = 0.0
    for held, count, mean in jobs:
        idle += held * count * (seconds - mean * (1 - exp(-seconds / mean)))
    return Wait(seconds, max(0.0, idle) + idle_cores * seconds)


def _time_until(jobs: Sequence[Leaving], cores: int, due_cores: float) -> float:
    """Time at which ``due_cores``, less than all ``cores``, are expected to be given back."""
    first = jobs[0].expected_seconds
    if all(mean == first for _, _, mean in jobs):
        return -first * log(1 - due_cores / cores)
    rates = [(held * count, 1 / mean) for held, count, mean in jobs]
    seconds = 0.0
    # The curve is concave, so Newton's steps come from below and never pass the answer.
    for _ in range(NEWTON_STEPS):
        left = pace = 0.0
        for held, rate in rates:
            staying = held * exp(-rate * seconds)
            left += staying
            pace += staying * rate
        step = (due_cores - cores + left) / pace
        seconds += step
        if step <= seconds * NEWTON_RATIO:
            break
    return seconds
