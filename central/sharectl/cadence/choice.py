"""Cost of each NEGOTIATOR_INTERVAL, and the choice of one with the knobs beside it.

The next cycle's timer is max(CYCLE_DELAY, INTERVAL - duration) after a cycle's end; a schedd's
RESCHEDULE (it sends one when jobs are submitted) sets it to now. When it fires, the cycle is put
off until CYCLE_DELAY after the last one's end and MIN_INTERVAL after its start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Callable, Optional

from sharectl.cadence.loads import Load

DAY_SECONDS = 86400
DAY_HOURS = 24
CHANGE = 0.1
"""Share by which run times may come out shorter or longer than they were."""
_ROUNDING = 1e-9

Loading = Callable[[float], float]
"""Seconds from the start of a cycle to the next -> loading factor."""


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


@dataclass(frozen=True)
class IntervalCost:
    """Cost of one interval."""

    interval_seconds: float
    loading: float
    """The slots' loading factor."""
    negotiating: Optional[float]
    """Share of the time that the negotiator negotiates; None if durations are unknown."""
    late_seconds: Optional[float] = None
    """Time between cycles if the interval cannot be kept, to which all figures belong."""

    @property
    def idle(self) -> float:
        """Share of the cores' time that is lost."""
        return 1 - self.loading

    @property
    def cycles_per_day(self) -> float:
        """Negotiation cycles a day."""
        return DAY_SECONDS / (self.late_seconds or self.interval_seconds)

    def idle_hours(self, cores: Optional[float]) -> Optional[float]:
        """Idle core-hours a day; None if the cores are unknown."""
        return None if cores is None else self.idle * cores * DAY_HOURS


@dataclass(frozen=True)
class Beside:
    """Cost of an option less that of another one."""

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
    """The recommendation."""

    option: IntervalCost
    best: IntervalCost
    """The option with the least idle time that the negotiator can keep up with."""
    beside_default: Beside
    """Cost beside HTCondor's default."""
    knobs: Knobs
    worst_loading: float
    """Least loading factor if run times came out up to `CHANGE` shorter or longer."""
    phase: bool
    """True if that is clearly worse: it matters where in a cycle jobs end."""


@dataclass(frozen=True)
class Cost:
    """A load at some intervals."""

    load: Load
    alone: tuple[IntervalCost, ...]
    """One job a claim."""
    reused: tuple[IntervalCost, ...]
    """Claims that are used again."""


@dataclass(frozen=True)
class Comparison:
    """Costs of all loads, and the choice."""

    terms: Terms
    costs: tuple[Cost, ...]
    """The first is of all jobs, or of the first law."""
    now: Optional[IntervalCost]
    """The negotiator's own configuration; None if it is unknown."""
    choice: Optional[Recommendation]
    alone_beside_default: Optional[Beside]
    """Cost of the choice beside the default with one job a claim."""

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
        option, every = (
            (row.reused if reused else row.alone)[number] for row in (cost, self.costs[0])
        )
        if self.terms.cores is None:
            return None
        share = self.share(cost) * every.loading / option.loading if cost in self.parts else 1.0
        return option.idle_hours(self.terms.cores * share)


def compare(loads: Sequence[Load], terms: Terms, own: Optional[Knobs] = None) -> Comparison:
    """Costs of all intervals, and the choice by the column of claims that are used again.

    Parameters
    ----------
    loads
        All jobs and then their parts, or laws.
    own
        The negotiator's own configuration.
    """

    def options(load: Load, worklife: float) -> tuple[IntervalCost, ...]:
        return tuple(
            _option(interval, lambda seconds: load.loading(seconds, worklife), terms)
            for interval in sorted(terms.intervals)
        )

    worklife, duration = terms.worklife_seconds, terms.duration_seconds
    costs = []
    for load in loads:
        alone = options(load, 0)
        costs.append(Cost(load, alone, options(load, worklife) if worklife else alone))
    first = loads[0]
    if len(loads) > 1 and first.jobs is None:
        return Comparison(terms, tuple(costs), None, None, None)
    now = None
    if own is not None:
        period = max(1.0, own.period_seconds(duration or 0))
        if period <= DAY_SECONDS:
            negotiating = None if duration is None else duration / period
            now = IntervalCost(period, first.loading(period, worklife), negotiating)
    if duration is None:
        return Comparison(terms, tuple(costs), now, None, None)
    choice = choose(
        costs[0].reused,
        default_option(lambda seconds: first.loading(seconds, worklife), duration),
        terms,
        lambda interval: first.worst_loading(interval, worklife, CHANGE),
    )
    without = None
    if choice is not None and worklife:
        alone_option = costs[0].alone[costs[0].reused.index(choice.option)]
        usual = default_option(first.loading, duration)
        without = beside(alone_option, usual, terms.cores)
    return Comparison(terms, tuple(costs), now, choice, without)


def _option(interval: float, loading: Loading, terms: Terms) -> IntervalCost:
    """Cost of an interval; one that may be chosen is kept, because it brings its own delay."""
    if terms.duration_seconds is None:
        return IntervalCost(interval, loading(interval), None)
    soonest = terms.duration_seconds + terms.cycle_delay_seconds
    if interval >= soonest or terms.allows(interval):
        return IntervalCost(interval, loading(interval), terms.duration_seconds / interval)
    return IntervalCost(interval, loading(soonest), terms.duration_seconds / soonest, soonest)


def default_option(loading: Loading, duration_seconds: float) -> IntervalCost:
    """IntervalCost of HTCondor's default knobs."""
    usual = Knobs()
    period = usual.period_seconds(duration_seconds)
    late = period if period > usual.interval_seconds else None
    return IntervalCost(usual.interval_seconds, loading(period), duration_seconds / period, late)


def beside(option: IntervalCost, other: IntervalCost, cores: Optional[int]) -> Beside:
    """Cost of an option less that of another one; durations of cycles are known."""
    idle = option.idle - other.idle
    negotiating = (option.negotiating or 0.0) - (other.negotiating or 0.0)
    hours = None if cores is None else idle * cores * DAY_HOURS
    return Beside(idle, negotiating * DAY_HOURS, hours)


def choose(
    offered: Sequence[IntervalCost], default: IntervalCost, terms: Terms, worst_loading: Loading
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
    chosen = max(worthwhile, key=lambda option: option.interval_seconds)
    worst = worst_loading(chosen.interval_seconds)
    phase = worst < chosen.loading - terms.tolerance
    return Recommendation(
        chosen,
        best,
        beside(chosen, default, terms.cores),
        _knobs(chosen, terms, phase=phase),
        worst,
        phase,
    )


def _knobs(option: IntervalCost, terms: Terms, *, phase: bool) -> Knobs:
    usual, interval, duration = Knobs(), option.interval_seconds, terms.duration_seconds or 0.0
    # Schedds that call all the time must not keep the negotiator busier than it may be.
    least_delay = ceil(duration * (1 / terms.most_negotiating - 1))
    # A longer delay would make the period longer than the interval.
    most_delay = max(0, floor(interval - duration))
    return Knobs(
        interval,
        max(least_delay, min(usual.cycle_delay_seconds, most_delay)),
        # Cycles that schedds call for would come out of step with jobs that end just in time.
        interval if phase else min(usual.min_interval_seconds, interval),
    )
