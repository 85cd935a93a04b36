"""Cost of each NEGOTIATOR_INTERVAL, and the choice of one with the knobs beside it.

The next cycle's timer is max(CYCLE_DELAY, INTERVAL - duration) after a cycle's end; a schedd's
RESCHEDULE (it sends one when jobs are submitted) sets it to now. When it fires, the cycle is put
off until CYCLE_DELAY after the last one's end and MIN_INTERVAL after its start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Optional

from sharectl.cadence.laws import Load

MOST_NEGOTIATING = 0.25
"""Share of the time that the negotiator may negotiate."""
TOLERANCE = 0.01
"""Share of the cores' time that a longer interval may lose beyond the best."""
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Knobs:
    """The negotiator's three, with HTCondor's defaults."""

    interval_seconds: float = 60
    cycle_delay_seconds: float = 20
    min_interval_seconds: float = 5

    def period_seconds(self, duration_seconds: float) -> float:
        """Time from a cycle's start to the next when no schedd calls."""
        called = max(self.min_interval_seconds, duration_seconds + self.cycle_delay_seconds)
        return max(self.interval_seconds, called)


@dataclass(frozen=True)
class Facts:
    """Run times, and facts of the pool that came with them."""

    load: Load
    cores: Optional[int] = None
    durations: tuple[float, ...] = ()
    """Of the negotiator's last cycles, whole seconds."""
    jobs_waited: bool = False
    """True if jobs waited in those cycles."""
    interval_seconds: Optional[float] = None
    """NEGOTIATOR_INTERVAL; None if it is unknown."""
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Terms:
    """Conditions of a choice."""

    intervals: tuple[float, ...]
    """Seconds, ascending."""
    worklife_seconds: float
    """CLAIM_WORKLIFE."""
    cores: Optional[int]
    """Of the pool; None if unknown."""
    duration_seconds: Optional[float]
    """Longest cycle; None if unknown."""

    def allows(self, interval_seconds: float) -> bool:
        """True if cycles leave the negotiator the time that it should have."""
        return (self.duration_seconds or 0.0) <= MOST_NEGOTIATING * interval_seconds


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
    """Costs of a load at each interval that can be kept, and the choice."""

    terms: Terms
    costs: tuple[IntervalCost, ...]
    default: Optional[IntervalCost] = None
    """HTCondor's; None if durations are unknown."""
    choice: Optional[IntervalCost] = None

    @property
    def best(self) -> IntervalCost:
        """Interval with the least idle time."""
        return min(self.costs, key=lambda cost: cost.idle)


def compare(load: Load, terms: Terms) -> Comparison:
    """Costs of intervals that can be kept, and the choice by the column of reused claims."""

    def cost_of(interval: float, period: float) -> IntervalCost:
        duration, worklife = terms.duration_seconds, terms.worklife_seconds
        # The last match of a cycle starts its job when the cycle ends.
        start = duration or 0.0
        alone = load.loading(period, 0, start)
        reused = load.loading(period, worklife, start) if worklife else alone
        negotiating = None if duration is None else duration / period
        return IntervalCost(interval, alone, reused, negotiating)

    costs = tuple(cost_of(at, at) for at in terms.intervals if terms.allows(at))
    if terms.duration_seconds is None:
        return Comparison(terms, costs)
    usual = Knobs()
    default = cost_of(usual.interval_seconds, usual.period_seconds(terms.duration_seconds))
    return Comparison(terms, costs, default, choose(costs, default))


def choose(offered: Sequence[IntervalCost], default: IntervalCost) -> Optional[IntervalCost]:
    """Longest interval that loses hardly more than the best, and no more than the default."""
    least = min((cost.idle for cost in offered), default=0.0)
    most = min(least + TOLERANCE, default.idle) + _ROUNDING
    kept = (cost for cost in offered if cost.idle <= most)
    return max(kept, key=lambda cost: cost.interval_seconds, default=None)


def knobs_of(interval_seconds: float, duration_seconds: float) -> Knobs:
    """Knobs for an interval and the longest cycle."""
    usual = Knobs()
    # Schedds that call all the time must not keep the negotiator busier than it may be.
    least_delay = ceil(duration_seconds * (1 / MOST_NEGOTIATING - 1))
    # A longer delay would make the period longer than the interval.
    most_delay = max(0, floor(interval_seconds - duration_seconds))
    delay = max(least_delay, min(usual.cycle_delay_seconds, most_delay))
    return Knobs(interval_seconds, delay, min(usual.min_interval_seconds, interval_seconds))
