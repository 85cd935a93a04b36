"""Loading factor: the fraction of time that a slot works when it gets its next job at a negotiation cycle only.

A job runs for D seconds, its slot then stays empty until the next cycle begins, and cycles begin
every C seconds: the loading factor of one run time is D / (C * (q + ceil(r))) with q = floor(D / C)
and r = D / C - q.

It is what a slot reaches while jobs wait for it all the time; without them it stands idle for
another reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, floor, isfinite
from typing import Optional

# What is a whole number as far as floating point can tell is taken for one: 3 * 0.1 / 0.1 is above
# 3.
_ROUNDING = 1e-9


def cycles_held(run_time_seconds: float, cadence_seconds: float) -> int:
    """Cycles from a job's start to the first one at which its slot can get another: q + ceil(r), at least 1.

    Raises
    ------
    ValueError
        If either is not above 0, or there are more cycles than a float can count.
    """
    for name, value in (("run time", run_time_seconds), ("cadence", cadence_seconds)):
        if not (isfinite(value) and value > 0):
            raise ValueError(f"{name} is {value!r}; write seconds above 0")
    cycles = run_time_seconds / cadence_seconds
    if not isfinite(cycles):
        raise ValueError(f"{run_time_seconds!r} s are too many cycles of {cadence_seconds!r} s")
    nearest = round(cycles)
    # A quotient can be too small for a float, hence the last part.
    return nearest if _same(cycles, nearest) else ceil(cycles) or 1


def loading_factor(run_time_seconds: float, cadence_seconds: float) -> float:
    """Fraction of time that a slot works on jobs of one run time, above 0 and at most 1.

    Raises as `cycles_held`.
    """
    held_seconds = cadence_seconds * cycles_held(run_time_seconds, cadence_seconds)
    return min(1.0, run_time_seconds / held_seconds)


def jobs_of_claim(run_time_seconds: float, worklife_seconds: float) -> int:
    """Jobs of one run time that a claim runs until one ends when the claim is older than ``worklife_seconds``."""
    jobs = worklife_seconds / run_time_seconds
    nearest = round(jobs)
    return (nearest if _same(jobs, nearest) else floor(jobs)) + 1


def combined(parts: Iterable[tuple[float, float]]) -> Optional[float]:
    """Loading factor of a pool: work over the time for which slots are held; None if there is no part.

    Parameters
    ----------
    parts
        Core seconds of work of one kind of jobs, and its own loading factor.
    """
    busy_core_seconds = held_core_seconds = 0.0
    for core_seconds, loading in parts:
        busy_core_seconds += core_seconds
        held_core_seconds += core_seconds / loading
    return busy_core_seconds / held_core_seconds if held_core_seconds else None


def _same(value: float, whole: int) -> bool:
    return whole > 0 and abs(value - whole) <= _ROUNDING * whole
