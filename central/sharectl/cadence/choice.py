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

from sharectl.cadence.run_times import Load

DAY_HOURS = 24
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

    source: str
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
class Beside:
    """Cost of an interval less that of another one."""

    idle_ratio: float
    """Part of the cores' time."""
    negotiating_hours_per_day: float
    idle_core_hours_per_day: Optional[float]
    """None if the cores are unknown."""

    @property
    def costs_more_than_it_saves(self) -> bool:
        """True if it loses more core-hours than it saves, or any of unknown cores."""
        if self.idle_core_hours_per_day is None:
            return self.idle_ratio > _ROUNDING
        return self.idle_core_hours_per_day + self.negotiating_hours_per_day > _ROUNDING


@dataclass(frozen=True)
class Recommendation:
    """The interval to use, and those that it was compared with."""

    option: IntervalCost
    best: IntervalCost
    """The one with the least idle time that the negotiator can keep up with."""
    default: IntervalCost
    """HTCondor's default."""
    knobs: Knobs


@dataclass(frozen=True)
class Comparison:
    """Costs of a load at each interval, and the choice."""

    terms: Terms
    costs: tuple[IntervalCost, ...]
    choice: Optional[Recommendation]


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
    choice, usual = None, Knobs()
    if terms.duration_seconds is not None:
        period = usual.period_seconds(terms.duration_seconds)
        choice = choose(costs, cost_of(usual.interval_seconds, period), terms)
    return Comparison(terms, costs, choice)


def idle_core_hours(idle_ratio: float, cores: Optional[int]) -> Optional[float]:
    """Idle core-hours a day; None if the cores are unknown."""
    return None if cores is None else idle_ratio * cores * DAY_HOURS


def beside(
    option: IntervalCost, other: IntervalCost, cores: Optional[int], *, reused: bool = True
) -> Beside:
    """Cost of an interval less that of another one; durations of cycles are known."""
    alone = other.loading_factor - option.loading_factor
    idle = option.idle - other.idle if reused else alone
    negotiating = (option.negotiating_ratio or 0.0) - (other.negotiating_ratio or 0.0)
    return Beside(idle, negotiating * DAY_HOURS, idle_core_hours(idle, cores))


def choose(
    offered: Sequence[IntervalCost], default: IntervalCost, terms: Terms
) -> Optional[Recommendation]:
    """The longest interval that loses hardly more than the best and is worth its cost.

    An hour of negotiation that is saved is worth a core-hour. Where the cores are unknown, an
    interval may lose no more than HTCondor's default.
    """
    best = min(offered, key=lambda option: (option.idle, option.interval_seconds), default=None)
    if best is None:
        return None
    worthwhile = [
        option
        for option in offered
        if option.idle <= best.idle + TOLERANCE
        and not beside(option, default, terms.cores).costs_more_than_it_saves
    ]
    if not worthwhile:
        return None
    option = max(worthwhile, key=lambda option: option.interval_seconds)
    return Recommendation(option, best, default, _knobs(option.interval_seconds, terms))


def _knobs(interval: float, terms: Terms) -> Knobs:
    usual, duration = Knobs(), terms.duration_seconds or 0.0
    # Schedds that call all the time must not keep the negotiator busier than it may be.
    least_delay = ceil(duration * (1 / MOST_NEGOTIATING - 1))
    # A longer delay would make the period longer than the interval.
    most_delay = max(0, floor(interval - duration))
    delay = max(least_delay, min(usual.cycle_delay_seconds, most_delay))
    return Knobs(interval, delay, min(usual.min_interval_seconds, interval))
