"""Which NEGOTIATOR_INTERVAL to choose, with NEGOTIATOR_CYCLE_DELAY and NEGOTIATOR_MIN_INTERVAL.

The next cycle's timer is max(CYCLE_DELAY, INTERVAL - duration) after a cycle's end; a schedd's
RESCHEDULE (it sends one when jobs are submitted) sets it to now. When it fires, the cycle is put
off until CYCLE_DELAY after the last one's end and MIN_INTERVAL after its start.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Callable, Optional

DAY_SECONDS = 86400
_DAY_HOURS = 24
CHANGE = 0.1
"""Share by which run times may come out shorter or longer than they were."""
_ROUNDING = 1e-9
CLOCK_SECONDS = 1
"""The negotiator's clock counts whole seconds: a cycle may have taken so much longer than it says."""


@dataclass(frozen=True)
class Knobs:
    """The negotiator's three, with HTCondor's defaults."""

    interval_seconds: float = 60
    cycle_delay_seconds: float = 20
    min_interval_seconds: float = 5

    def period_seconds(self, duration_seconds: float) -> float:
        """From a cycle's start to the next when nobody calls, if cycles take ``duration_seconds``."""
        return max(self.interval_seconds, self.shortest_period_seconds(duration_seconds))

    def shortest_period_seconds(self, duration_seconds: float) -> float:
        """The same when schedds call all the time."""
        return max(self.min_interval_seconds, duration_seconds + self.cycle_delay_seconds)


@dataclass(frozen=True)
class Option:
    """What one interval costs."""

    interval_seconds: float
    loading: float
    """The slots' loading factor, as jobs and claims are."""
    negotiating: Optional[float]
    """Share of the time that the negotiator negotiates; None if it is not known how long its cycles take."""
    late_seconds: Optional[float] = None
    """How far apart cycles begin if the interval cannot be kept, which all figures are then of; None if it can be."""

    @property
    def idle(self) -> float:
        """Share of the cores' time that is lost."""
        return 1 - self.loading

    @property
    def cycles_per_day(self) -> float:
        """Negotiation cycles a day."""
        return DAY_SECONDS / (self.late_seconds or self.interval_seconds)


@dataclass(frozen=True)
class Beside:
    """What an option costs beside another one."""

    idle_ratio: float
    """Part of the cores' time that it loses more; negative: less."""
    negotiating_hours_per_day: float
    """Hours a day that the negotiator negotiates more; negative: less."""
    idle_core_hours_per_day: Optional[float]
    """Idle core-hours a day more; negative: less; None if the cores are not known."""

    @property
    def costs_more_than_it_saves(self) -> bool:
        """Whether it loses more core-hours than it saves; of a pool of unknown cores, whether it loses any."""
        if self.idle_core_hours_per_day is None:
            return self.idle_ratio > _ROUNDING
        return self.idle_core_hours_per_day + self.negotiating_hours_per_day > _ROUNDING


@dataclass(frozen=True)
class Choice:
    """What is recommended."""

    option: Option
    best: Option
    """The option with the least idle time that the negotiator can keep up with."""
    beside_default: Beside
    """What it costs beside HTCondor's default."""
    knobs: Knobs
    worst_loading: float
    """Its loading factor if run times came out up to `CHANGE` shorter or longer, at worst."""
    phase: bool
    """Whether that is clearly worse: it matters where in a cycle jobs end."""


def options(
    loading: Sequence[tuple[float, float]], duration_seconds: Optional[float]
) -> tuple[Option, ...]:
    """Options from intervals and their loading factors, the shortest interval first."""
    return tuple(
        Option(interval, factor, None if duration_seconds is None else duration_seconds / interval)
        for interval, factor in sorted(loading)
    )


def options_as_kept(
    intervals: Iterable[float],
    loading: Callable[[float], float],
    duration_seconds: Optional[float],
    cycle_delay_seconds: float,
    most_negotiating: float,
) -> tuple[Option, ...]:
    """Options of intervals, of those that cannot be kept with what comes of them; the shortest interval first.

    Parameters
    ----------
    loading
        Seconds from the start of a cycle to the next -> loading factor.
    cycle_delay_seconds
        From a cycle's end to the next; shorter for an interval that `choose` may choose, which
        brings its own.
    """
    if duration_seconds is None:
        return options([(interval, loading(interval)) for interval in intervals], None)
    soonest = duration_seconds + cycle_delay_seconds
    kept = {
        interval: interval >= soonest or _possible(interval, duration_seconds, most_negotiating)
        for interval in sorted(intervals)
    }
    late = loading(soonest) if not all(kept.values()) else 0.0
    return tuple(
        Option(interval, loading(interval), duration_seconds / interval)
        if keeps
        else Option(interval, late, duration_seconds / soonest, soonest)
        for interval, keeps in kept.items()
    )


def _possible(interval_seconds: float, duration_seconds: float, most_negotiating: float) -> bool:
    """Whether the negotiator negotiates for no more of its time than it may."""
    return duration_seconds <= most_negotiating * interval_seconds


def default_option(loading: Callable[[float], float], duration_seconds: float) -> Option:
    """Option of HTCondor's default knobs. Parameters as of `options_as_kept`."""
    usual = Knobs()
    period = usual.period_seconds(duration_seconds)
    late = period if period > usual.interval_seconds else None
    return Option(usual.interval_seconds, loading(period), duration_seconds / period, late)


def beside(option: Option, other: Option, cores: Optional[int]) -> Beside:
    """Cost of an option beside another one, on so many cores; of both it is known how long cycles take."""
    idle = option.idle - other.idle
    negotiating = (option.negotiating or 0.0) - (other.negotiating or 0.0)
    return Beside(
        idle, negotiating * _DAY_HOURS, None if cores is None else idle * cores * _DAY_HOURS
    )


def choose(
    offered: Sequence[Option],
    default: Option,
    cores: Optional[int],
    duration_seconds: float,
    most_negotiating: float,
    tolerance: float,
    worst_loading: Callable[[float], float],
) -> Optional[Choice]:
    """The longest interval that loses hardly more than the best, and costs no more than it saves; None without one.

    Parameters
    ----------
    default
        What HTCondor's default costs: an hour of negotiation that is saved is worth a core-hour.
    cores
        Cores of the pool; None if they are not known: then nothing is recommended that loses more
        than the default.
    duration_seconds
        How long a cycle takes at most.
    most_negotiating
        Share of the time that the negotiator may negotiate, above 0 and below 1.
    tolerance
        Share of the cores' time that may be lost beyond the best option: what a longer interval is
        worth.
    worst_loading
        Interval in seconds -> `Choice.worst_loading`.
    """
    possible = [
        option
        for option in offered
        if _possible(option.interval_seconds, duration_seconds, most_negotiating)
    ]
    if not possible:
        return None
    best = min(possible, key=lambda option: (option.idle, option.interval_seconds))
    chosen = max(
        (
            option
            for option in possible
            if option.idle <= best.idle + tolerance
            and not beside(option, default, cores).costs_more_than_it_saves
        ),
        key=lambda option: option.interval_seconds,
        default=None,
    )
    if chosen is None:
        return None
    worst = worst_loading(chosen.interval_seconds)
    phase = worst < chosen.loading - tolerance
    return Choice(
        chosen,
        best,
        beside(chosen, default, cores),
        _knobs(chosen, duration_seconds, most_negotiating, phase=phase),
        worst,
        phase,
    )


def _knobs(
    option: Option, duration_seconds: float, most_negotiating: float, *, phase: bool
) -> Knobs:
    usual = Knobs()
    interval = option.interval_seconds
    # Schedds that call all the time must not keep the negotiator busier than it may be.
    least_delay = ceil(duration_seconds * (1 / most_negotiating - 1))
    # A longer delay would make the period longer than the interval.
    most_delay = max(0, floor(interval - duration_seconds))
    return Knobs(
        interval,
        max(least_delay, min(usual.cycle_delay_seconds, most_delay)),
        # Cycles that schedds call for would come out of step with jobs that end just in time.
        interval if phase else min(usual.min_interval_seconds, interval),
    )
