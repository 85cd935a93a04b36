"""Cost of each NEGOTIATOR_INTERVAL, and the choice of one with the knobs beside it.

The next cycle's timer is max(CYCLE_DELAY, INTERVAL - duration) after a cycle's end; a schedd's
RESCHEDULE (it sends one when jobs are submitted) sets it to now. When it fires, the cycle is put
off until CYCLE_DELAY after the last one's end and MIN_INTERVAL after its start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, floor
from typing import Optional

from sharectl.cadence.laws import RunTimeLaw

MOST_NEGOTIATING = 0.25
"""Share of the time that the negotiator may negotiate."""
TOLERANCE = 0.01
"""Share of the cores' time that a longer interval may lose beyond the best."""
_ROUNDING = 1e-9
_INTERVAL, _CYCLE_DELAY, _MIN_INTERVAL = 60, 20, 5
"""HTCondor's defaults of the negotiator's knobs, seconds."""


@dataclass(frozen=True)
class Facts:
    """Run times, and facts of the pool that came with them."""

    name: str
    """Text of a law, or number of jobs."""
    law: RunTimeLaw
    cores: Optional[int] = None
    duration_seconds: Optional[float] = None
    """Longest cycle; None if unknown."""
    interval_seconds: Optional[float] = None
    """NEGOTIATOR_INTERVAL; None if it is unknown."""
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class IntervalCost:
    """Cost of one interval."""

    interval_seconds: float
    loading_factor: float
    """With one job a claim."""
    loading_factor_claims_reused: float
    negotiating_ratio: Optional[float]
    """Share of the time that the negotiator negotiates; None if durations are unknown."""

    @property
    def idle(self) -> float:
        """Share of the cores' time that is lost where claims are used again."""
        return 1 - self.loading_factor_claims_reused


@dataclass(frozen=True)
class Comparison:
    """Costs of run times at each interval that can be kept, and the choice."""

    worklife_seconds: float
    """CLAIM_WORKLIFE."""
    costs: tuple[IntervalCost, ...]
    left_out: tuple[float, ...]
    """Intervals at which the negotiator would negotiate too long."""
    default: Optional[IntervalCost] = None
    """HTCondor's; None if durations are unknown."""
    choice: Optional[IntervalCost] = None
    knobs: Mapping[str, int] = field(default_factory=dict)
    """Knobs of the choice -> seconds."""


def compare(facts: Facts, intervals: Sequence[float], worklife_seconds: float) -> Comparison:
    """Costs of intervals that can be kept, and the choice by the column of reused claims."""
    duration = facts.duration_seconds
    # The last match of a cycle starts its job when the cycle ends.
    start = duration or 0.0

    def cost_of(interval: float, period: float) -> IntervalCost:
        alone = facts.law.loading(period, 0, start)
        reused = facts.law.loading(period, worklife_seconds, start) if worklife_seconds else alone
        return IntervalCost(interval, alone, reused, None if duration is None else start / period)

    left_out = tuple(at for at in intervals if start > MOST_NEGOTIATING * at)
    costs = tuple(cost_of(at, at) for at in intervals if at not in left_out)
    if duration is None:
        return Comparison(worklife_seconds, costs, left_out)
    default = cost_of(_INTERVAL, max(_INTERVAL, duration + _CYCLE_DELAY))
    choice = choose(costs, default)
    knobs = knobs_of(choice.interval_seconds, duration) if choice else {}
    return Comparison(worklife_seconds, costs, left_out, default, choice, knobs)


def choose(offered: Sequence[IntervalCost], default: IntervalCost) -> Optional[IntervalCost]:
    """Longest interval that loses hardly more than the best, and no more than the default."""
    least = min((cost.idle for cost in offered), default=0.0)
    most = min(least + TOLERANCE, default.idle) + _ROUNDING
    kept = (cost for cost in offered if cost.idle <= most)
    return max(kept, key=lambda cost: cost.interval_seconds, default=None)


def knobs_of(interval_seconds: float, duration_seconds: float) -> dict[str, int]:
    """Knobs for an interval and the longest cycle, in whole seconds."""
    # Schedds that call all the time must not keep the negotiator busier than it may be.
    least_delay = ceil(duration_seconds * (1 / MOST_NEGOTIATING - 1))
    # A longer delay would make the period longer than the interval.
    most_delay = max(0, floor(interval_seconds - duration_seconds))
    return {
        "NEGOTIATOR_INTERVAL": round(interval_seconds),
        "NEGOTIATOR_CYCLE_DELAY": max(least_delay, min(_CYCLE_DELAY, most_delay)),
        "NEGOTIATOR_MIN_INTERVAL": min(_MIN_INTERVAL, round(interval_seconds)),
    }
