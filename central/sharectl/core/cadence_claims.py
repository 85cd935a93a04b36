"""Expected loading factor when run times vary, with one job a claim or with claims that are used again.

A slot works for the sum of the run times out of the sum of the times for which it is held, so its loading factor is
the ratio of the expectations (renewal and reward), E[D] / (C * E[q + ceil(r)]). The mean of the jobs' own loading
factors is something else: in it a short job, which wastes most of a cycle, counts as much as a long one.

With CLAIM_WORKLIFE W > 0 a claim runs jobs back to back until one ends when the claim is older than W (the startd asks
for more than W, after each job). D is then L, the time of all jobs of a claim. Jobs are taken to be independent of
each other, and there to be always one more that may use the claim (one of the same submitter that fits the slot).
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, floor
from operator import mul

from sharectl.core.cadence import jobs_of_claim, loading_factor
from sharectl.core.run_times import RunTimes, Seen

_STEPS = 2000
"""Steps of a claim's life; cycles of it too, beyond which the last one no longer matters (less than 0.05 %)."""


def expected_loading(run_times: RunTimes, cadence_seconds: float, worklife_seconds: float = 0) -> float:
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
        return min(1.0, run_times.mean_seconds / (cadence_seconds * run_times.cycles(cadence_seconds)))
    return _claims_loading(run_times, cadence_seconds, min(worklife_seconds, _STEPS * cadence_seconds))


def _claims_loading(run_times: RunTimes, cadence_seconds: float, worklife_seconds: float) -> float:
    """E[L] / (C * E[cycles of L]), on a lattice that the cycles' beginnings are part of."""
    cycle_steps = ceil(cadence_seconds / max(run_times.resolution_seconds, worklife_seconds / _STEPS))
    step_seconds = cadence_seconds / cycle_steps
    points = floor(worklife_seconds / step_seconds)
    # Every claim lasts past all cycles that begin up to its worklife: only those from here on are in doubt.
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
