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

DAY_SECONDS = 86400
DAY_HOURS = 24
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Knobs:
    """The negotiator's three, with HTCondor's defaults."""

    interval_seconds: float = 60
    cycle_delay_seconds: float = 20
    min_interval_seconds: float = 5

    def period_seconds(self, duration_seconds: float) -> float:
        """Time from a cycle's start to the next when no schedd calls."""
        return max(self.interval_seconds, self.shortest_period_seconds(duration_seconds))

    def shortest_period_seconds(self, duration_seconds: float) -> float:
        """Time from a cycle's start to the next when schedds call all the time."""
        return max(self.min_interval_seconds, duration_seconds + self.cycle_delay_seconds)


@dataclass(frozen=True)
class Terms:
    """Conditions of a choice."""

    intervals: tuple[float, ...]
    """Seconds."""
    worklife_seconds: float
    """CLAIM_WORKLIFE."""
    cores: Optional[int]
    """Of the pool; None if unknown."""
    duration_seconds: Optional[float]
    """Longest cycle; None if unknown."""
    most_negotiating: float
    """Share of the time that the negotiator may negotiate, above 0 and below 1."""
    tolerance: float
    """Share of the cores' time that a longer interval may lose beyond the best."""
    cycle_delay_seconds: float = Knobs.cycle_delay_seconds

    def allows(self, interval_seconds: float) -> bool:
        """Return whether cycles leave the negotiator the time that it should have."""
        return (self.duration_seconds or 0.0) <= self.most_negotiating * interval_seconds

    def period_seconds(self, interval_seconds: float) -> float:
        """Time between cycles; an allowed interval is kept, because it brings its delay."""
        if self.duration_seconds is None or self.allows(interval_seconds):
            return interval_seconds
        return max(interval_seconds, self.duration_seconds + self.cycle_delay_seconds)


@dataclass(frozen=True)
class IntervalCost:
    """Cost of one interval."""

    interval_seconds: float
    period_seconds: float
    """Time between cycles, to which all figures belong: longer if the interval cannot be kept."""
    loading: float
    """The slots' loading factor with claims that are used again."""
    alone: float
    """With one job a claim."""
    negotiating: Optional[float]
    """Share of the time that the negotiator negotiates; None if durations are unknown."""

    @property
    def idle(self) -> float:
        """Share of the cores' time that is lost."""
        return 1 - self.loading

    @property
    def late(self) -> bool:
        """True if the interval cannot be kept."""
        return self.period_seconds > self.interval_seconds

    @property
    def cycles_per_day(self) -> float:
        """Negotiation cycles a day."""
        return DAY_SECONDS / self.period_seconds


def cost_of(load: Load, terms: Terms, interval: float, period: float) -> IntervalCost:
    """Cost of an interval whose cycles begin ``period`` seconds apart."""
    alone, duration = load.loading(period), terms.duration_seconds
    worklife = terms.worklife_seconds
    loading = load.loading(period, worklife) if worklife else alone
    negotiating = None if duration is None else duration / period
    return IntervalCost(interval, period, loading, alone, negotiating)


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
class Cost:
    """A load at each interval."""

    load: Load
    options: tuple[IntervalCost, ...]


@dataclass(frozen=True)
class Comparison:
    """Costs of all loads, and the choice."""

    terms: Terms
    costs: tuple[Cost, ...]
    """The first is of all jobs, or of the first law."""
    now: Optional[IntervalCost] = None
    """The negotiator's configuration as it is; None if it is unknown."""
    choice: Optional[Recommendation] = None

    @property
    def several_laws(self) -> bool:
        """True if loads are laws, none of which is the pool's."""
        return len(self.costs) > 1 and self.costs[0].load.jobs is None

    @property
    def parts(self) -> tuple[Cost, ...]:
        """Groups or sizes of which the first of the costs is made."""
        return () if self.several_laws else self.costs[1:]

    def share(self, cost: Cost) -> float:
        """Share of all core-seconds of work."""
        return cost.load.work / self.costs[0].load.work

    def idle_hours(self, cost: Cost, number: int, *, reused: bool) -> Optional[float]:
        """Idle core-hours a day at an interval; None if the cores are unknown.

        A group or size has a share of the cores: that of all core-seconds, idle ones too, that its
        jobs hold.
        """
        loading, every = (
            row.options[number].loading if reused else row.options[number].alone
            for row in (cost, self.costs[0])
        )
        if self.terms.cores is None:
            return None
        share = self.share(cost) * every / loading if cost in self.parts else 1.0
        return (1 - loading) * share * self.terms.cores * DAY_HOURS


def compare(loads: Sequence[Load], terms: Terms, configured: Optional[Knobs] = None) -> Comparison:
    """Costs of all intervals, and the choice by the column of claims that are used again.

    ``loads`` are all jobs and then their parts, or laws; ``configured`` the knobs as they are.
    """
    costs = tuple(
        Cost(
            load,
            tuple(
                cost_of(load, terms, interval, terms.period_seconds(interval))
                for interval in sorted(terms.intervals)
            ),
        )
        for load in loads
    )
    comparison = Comparison(terms, costs)
    duration = terms.duration_seconds
    if comparison.several_laws:
        return comparison
    now = choice = None
    if configured is not None:
        period = max(1.0, configured.period_seconds(duration or 0))
        now = cost_of(loads[0], terms, period, period)
    if duration is not None:
        usual = Knobs()
        period = usual.period_seconds(duration)
        default = cost_of(loads[0], terms, usual.interval_seconds, period)
        choice = choose(costs[0].options, default, terms)
    return Comparison(terms, costs, now, choice)


def beside(
    option: IntervalCost, other: IntervalCost, cores: Optional[int], *, reused: bool = True
) -> Beside:
    """Cost of an interval less that of another one; durations of cycles are known."""
    idle = other.loading - option.loading if reused else other.alone - option.alone
    negotiating = (option.negotiating or 0.0) - (other.negotiating or 0.0)
    hours = None if cores is None else idle * cores * DAY_HOURS
    return Beside(idle, negotiating * DAY_HOURS, hours)


def choose(
    offered: Sequence[IntervalCost], default: IntervalCost, terms: Terms
) -> Optional[Recommendation]:
    """The longest interval that loses hardly more than the best and is worth its cost.

    An hour of negotiation that is saved is worth a core-hour. Where the cores are unknown, an
    interval may lose no more than HTCondor's default.
    """
    possible = [option for option in offered if terms.allows(option.interval_seconds)]
    best = min(possible, key=lambda option: (option.idle, option.interval_seconds), default=None)
    if best is None:
        return None
    worthwhile = [
        option
        for option in possible
        if option.idle <= best.idle + terms.tolerance
        and not beside(option, default, terms.cores).costs_more_than_it_saves
    ]
    if not worthwhile:
        return None
    option = max(worthwhile, key=lambda option: option.interval_seconds)
    return Recommendation(option, best, default, _knobs(option.interval_seconds, terms))


def _knobs(interval: float, terms: Terms) -> Knobs:
    usual, duration = Knobs(), terms.duration_seconds or 0.0
    # Schedds that call all the time must not keep the negotiator busier than it may be.
    least_delay = ceil(duration * (1 / terms.most_negotiating - 1))
    # A longer delay would make the period longer than the interval.
    most_delay = max(0, floor(interval - duration))
    delay = max(least_delay, min(usual.cycle_delay_seconds, most_delay))
    return Knobs(interval, delay, min(usual.min_interval_seconds, interval))
