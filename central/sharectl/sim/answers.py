"""Answers of the twin: figures of one outcome, and their spread over seeds.

Sums are by `fsum`: `sum` rounds otherwise on Python 3.12 and later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from math import fsum, sqrt
from typing import Any, NamedTuple, Optional

from sharectl.model import OTHER
from sharectl.sim.records import CAUSES, GroupOutcome, Outcome, Waits

HOUR_SECONDS = 3600.0
NOTHING = "nothing to compare: no job of a configured group ran in the time that counts"
TOLERANCE_RATIO = 0.05
"""Errors up to this part of the power that a group is due do not count as time outside."""
WASTE = tuple(cause for cause in CAUSES if cause not in ("no-jobs", "unmatchable"))
"""Causes of idle cores while jobs wait that could run there."""


@dataclass(frozen=True)
class GroupFigures:
    """Figures of a group."""

    pledge_hs06: float
    error_rms_hs06: float
    error_rms_ratio: float
    """Of the power of the pool."""
    worst_error_hs06: float
    """The error that is furthest from 0, with its sign."""
    outside_ratio: Optional[float]
    """Part of the time with an error above 5 % of the power that is due; None without a pledge."""
    work_hs06_hours: float
    due_hs06_hours: float
    """The pledge's part of all work."""
    work_ratio: Optional[float]
    """Work by what is due; None where nothing is."""
    starts_by_cores: Mapping[int, int]
    done_by_cores: Mapping[int, int]
    waits_by_cores: Mapping[int, Waits]


@dataclass(frozen=True)
class Figures:
    """Figures of one outcome."""

    error_rms_hs06: float
    """Over all groups with a pledge, and over time."""
    error_rms_ratio: float
    """Of the power of the pool."""
    worst_group_rms_hs06: float
    """RMS error of the group whose is largest."""
    outside_ratio: float
    """Mean over these groups of the time outside 5 % of what is due."""
    idle_core_hours: float
    """While jobs were pending."""
    idle_ratio: float
    """These, of all core-hours of the pool."""
    idle_core_hours_by_cause: Mapping[str, float]
    used_ratio: float
    """Core-hours that jobs held, of all."""
    multicore_starts: int
    refusals: int
    evicted_jobs: int
    lost_core_hours: float
    drained_nodes: int
    cycles: int
    plans: int
    changed_targets: int
    groups: Mapping[str, GroupFigures]


class Spread(NamedTuple):
    """A figure over seeds."""

    mean: float
    sd: float
    """Standard deviation of a sample; 0 with one seed."""
    least: float
    most: float


def figures_of(outcome: Outcome) -> Figures:
    """Figures of an outcome, which may have been interrupted."""
    hours = _interval_seconds(outcome) / HOUR_SECONDS
    groups = {
        name: _group(group, outcome.pool_hs06, hours) for name, group in outcome.groups.items()
    }
    pledged = [group for name, group in groups.items() if name != OTHER and group.pledge_hs06 > 0]
    rms_hs06 = _root_mean_square(group.error_rms_hs06 for group in pledged)
    idle = {cause: outcome.idle_core_seconds.get(cause, 0.0) / HOUR_SECONDS for cause in CAUSES}
    core_hours = outcome.pool_cores * outcome.seconds / HOUR_SECONDS
    held = fsum(cores * hours for group in outcome.groups.values() for cores in group.cores)
    wasted = fsum(idle[cause] for cause in WASTE)
    starts = [group.starts_by_cores for group in outcome.groups.values()]
    return Figures(
        error_rms_hs06=rms_hs06,
        error_rms_ratio=_part(rms_hs06, outcome.pool_hs06),
        worst_group_rms_hs06=max((group.error_rms_hs06 for group in pledged), default=0.0),
        outside_ratio=_mean([group.outside_ratio or 0.0 for group in pledged]),
        idle_core_hours=wasted,
        idle_ratio=_part(wasted, core_hours),
        idle_core_hours_by_cause=idle,
        used_ratio=_part(held, core_hours),
        multicore_starts=sum(jobs for by in starts for cores, jobs in by.items() if cores > 1),
        refusals=outcome.refusals,
        evicted_jobs=outcome.evicted_jobs,
        lost_core_hours=outcome.lost_core_seconds / HOUR_SECONDS,
        drained_nodes=outcome.drained_nodes,
        cycles=outcome.cycles,
        plans=outcome.plans,
        changed_targets=outcome.changed_targets,
        groups=groups,
    )


def has_work(outcome: Outcome) -> bool:
    """Tell if a job of a configured group ran in the time that counts."""
    return any(g.work_hs06_hours > 0 for name, g in outcome.groups.items() if name != OTHER)


def due_hs06(group: GroupOutcome) -> list[float]:
    """The pledge's part of all power used, in each interval."""
    return [power - error for power, error in zip(group.power_hs06, group.error_hs06)]


def cumulated(values: Iterable[float], outcome: Outcome) -> list[float]:
    """Sums from the begin to the end of each interval, in hours of the values' unit."""
    hours = _interval_seconds(outcome) / HOUR_SECONDS
    return list(accumulate(value * hours for value in values))


def over_seeds(answers: Sequence[Figures]) -> dict[str, Any]:
    """Figures of several seeds: the keys of `Figures`, with a `Spread` for each number.

    A figure that no seed has is None.
    """
    merged: dict[str, Any] = _merged([asdict(figures) for figures in answers])
    return merged


def spread(values: Sequence[float]) -> Spread:
    """Mean, deviation and range of at least one value."""
    mean = _mean(values)
    squares = fsum((value - mean) ** 2 for value in values)
    deviation = sqrt(squares / (len(values) - 1)) if len(values) > 1 else 0.0
    return Spread(mean, deviation, min(values), max(values))


def _merged(values: Sequence[Any]) -> Any:
    if any(isinstance(value, dict) for value in values):
        mappings = [value for value in values if isinstance(value, dict)]
        names = dict.fromkeys(name for mapping in mappings for name in mapping)
        order = sorted(names) if all(isinstance(name, int) for name in names) else names
        return {name: _merged([m[name] for m in mappings if name in m]) for name in order}
    numbers = [value for value in values if value is not None]
    return spread(numbers) if numbers else None


def _group(group: GroupOutcome, pool_hs06: float, hours: float) -> GroupFigures:
    due = due_hs06(group)
    rms_hs06 = _root_mean_square(group.error_hs06)
    outside = [abs(error) > TOLERANCE_RATIO * part for error, part in zip(group.error_hs06, due)]
    due_hours = fsum(part * hours for part in due)
    return GroupFigures(
        pledge_hs06=group.pledge_hs06,
        error_rms_hs06=rms_hs06,
        error_rms_ratio=_part(rms_hs06, pool_hs06),
        worst_error_hs06=max(group.error_hs06, key=abs, default=0.0),
        outside_ratio=_mean(outside) if group.pledge_hs06 > 0 else None,
        work_hs06_hours=group.work_hs06_hours,
        due_hs06_hours=due_hours,
        work_ratio=group.work_hs06_hours / due_hours if due_hours > 0 else None,
        starts_by_cores=group.starts_by_cores,
        done_by_cores=group.done_by_cores,
        waits_by_cores=group.waits_by_cores,
    )


def _interval_seconds(outcome: Outcome) -> float:
    """Length of each interval."""
    times = outcome.times
    return times[1] - times[0] if len(times) > 1 else outcome.seconds


def _root_mean_square(values: Iterable[float]) -> float:
    return sqrt(_mean([value * value for value in values]))


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values) if values else 0.0


def _part(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
