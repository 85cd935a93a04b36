"""Time to fill an empty pool with single-core jobs, a bounded number of matches a cycle.

Matches of the cycles so far hold their cores until a cycle begins at which their claims have ended.
The first cycle begins at 0, with jobs for all cores.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Optional

from sharectl.cadence.choice import Terms
from sharectl.cadence.run_times import Load

_ROUNDING = 1e-9
_LEAST_GAIN = 1e-6
"""Cores that a further cycle adds at least, or the pool is never full."""
_MOST_CYCLES = 1_000_000


@dataclass(frozen=True)
class Filling:
    """Matches of a cycle, each of one core."""

    matches: int
    """At most so many."""
    match_seconds: float = 0.002
    """Time that each adds to the cycle."""


def fill_seconds(
    load: Load, terms: Terms, filling: Filling, interval_seconds: float
) -> Optional[float]:
    """Time from a cycle's begin in an empty pool until all of its cores have a job.

    None if it is never full, or its cores are unknown. A claim ends with the first job after
    CLAIM_WORKLIFE, whose rest is taken for as long as a job.
    """
    if terms.cores is None:
        return None
    base = terms.duration_seconds or 0.0
    full_seconds = base + filling.matches * filling.match_seconds
    period = replace(terms, duration_seconds=full_seconds).period_seconds(interval_seconds)
    ends = _ends(load)
    held, cycles = 0.0, 0
    while terms.cores - held > filling.matches:
        cycles += 1
        lived_seconds = cycles * period - base - terms.worklife_seconds
        kept = 1.0 if terms.worklife_seconds < 0 else _longer(ends, lived_seconds)
        gain = filling.matches * kept
        if gain < _LEAST_GAIN or cycles > _MOST_CYCLES:
            return None
        held += gain
    return cycles * period + base + (terms.cores - held) * filling.match_seconds


_Ends = tuple[list[float], list[float]]
"""Run times, ascending, and the weight of those up to each."""


def _ends(load: Load) -> _Ends:
    """Run times of all jobs, which count by their cores."""
    weights: defaultdict[float, float] = defaultdict(float)
    for work, part in load.parts:
        jobs = work / part.mean_seconds
        for seconds, weight in part.weights.items():
            weights[seconds] += jobs * weight / part.weight
    run_times = sorted(weights)
    return run_times, list(accumulate(weights[seconds] for seconds in run_times))


def _longer(ends: _Ends, seconds: float) -> float:
    """Share of jobs that run longer."""
    run_times, sums = ends
    place = bisect_right(run_times, seconds * (1 + _ROUNDING))
    return 1 - sums[place - 1] / sums[-1] if place else 1.0
