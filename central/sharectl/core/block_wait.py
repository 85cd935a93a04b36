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
    number = sum(kind.jobs for kind in jobs)
    cores = sum(kind.cores * kind.jobs for kind in jobs)
    if cores < needed_cores:
        return Wait(inf, inf)
    whole_jobs = min(number, ceil(needed_cores * number / cores - 1e-9))
    due = whole_jobs * cores / (number + ORDER_CORRECTION)
    seconds = _time_until(jobs, cores, due)
    idle = sum(
        kind.cores
        * kind.jobs
        * (seconds - kind.expected_seconds * (1 - exp(-seconds / kind.expected_seconds)))
        for kind in jobs
    )
    return Wait(seconds, max(0.0, idle) + idle_cores * seconds)


def _time_until(jobs: Sequence[Leaving], cores: int, due_cores: float) -> float:
    """Time at which ``due_cores``, less than all ``cores``, are expected to be given back."""
    means = {kind.expected_seconds for kind in jobs}
    if len(means) == 1:
        return -means.pop() * log(1 - due_cores / cores)
    rates = [(kind.cores * kind.jobs, 1 / kind.expected_seconds) for kind in jobs]
    seconds = 0.0
    # The curve is concave, so Newton's steps come from below and never pass the answer.
    for _ in range(NEWTON_STEPS):
        left = [(held * exp(-rate * seconds), rate) for held, rate in rates]
        missing = due_cores - cores + sum(held for held, _ in left)
        step = missing / sum(held * rate for held, rate in left)
        seconds += step
        if step <= seconds * NEWTON_RATIO:
            break
    return seconds
