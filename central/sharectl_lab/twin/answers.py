"""Answers of the twin: figures of one outcome, and their spread over seeds.

Sums are by `fsum`: `sum` rounds otherwise on Python 3.12 and later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import fsum, sqrt
from typing import Any, NamedTuple, Optional

from sharectl.model import OTHER
from sharectl.times import HOUR_SECONDS
from sharectl_lab.twin.records import CAUSES, COUNTS, GroupOutcome, Outcome, Waits

NOTHING = "nothing to compare: no job of a configured group ran in the time that counts"
WASTE = tuple(cause for cause in CAUSES if cause not in ("no-jobs", "unmatchable"))
"""Causes of idle cores while jobs wait that could run there."""
SERVED_RATIO = 0.9
"""Part of its due from which a group counts as served."""
LACKING_RATIO = 0.75
"""Part of its due below which a group must fall for a time to count: above it single jobs do it."""


class Lack(NamedTuple):
    """Time during which a group had less than `SERVED_RATIO` of its due."""

    seconds: float
    ended: bool
    """False if it had not ended with the last interval: it would have been longer."""


def lacks(
    due_hs06: Iterable[float], power_hs06: Iterable[float], interval_seconds: float
) -> list[Lack]:
    """Times from the begin of a group's shortfall until it has 90 % of its due, by their begin.

    Due and power are of consecutive intervals; times never below `LACKING_RATIO` are left out.
    """
    times: list[Lack] = []
    intervals, counts = 0, False
    for due, power in zip(due_hs06, power_hs06):
        if power < SERVED_RATIO * due:
            intervals += 1
            counts = counts or power < LACKING_RATIO * due
            continue
        if counts:
            times.append(Lack(intervals * interval_seconds, ended=True))
        intervals, counts = 0, False
    return [*times, Lack(intervals * interval_seconds, ended=False)] if counts else times


@dataclass(frozen=True)
class ToDue:
    """Times from the begin of a shortfall until the group has 90 % of its due."""

    times: int
    unended: int
    """Times that the end of the run cut off: they count with their length until then."""
    median_hours: Optional[float]
    """None without a time."""
    worst_hours: Optional[float]


@dataclass(frozen=True)
class GroupFigures:
    """Figures of a group."""

    pledge_hs06: float
    shortfall_rms_hs06: float
    shortfall_rms_ratio: float
    """This and the next: of the power present."""
    shortfall_mean_ratio: float
    to_due: ToDue
    work_hs06_hours: float
    due_hs06_hours: float
    work_ratio: Optional[float]
    """Work by what is due; None where nothing is."""
    starts_by_cores: Mapping[int, int]
    done_by_cores: Mapping[int, int]
    waits_by_cores: Mapping[int, Waits]


@dataclass(frozen=True)
class Figures:
    """Figures of one outcome."""

    shortfall_rms_hs06: float
    """RMS over time of the sum over groups."""
    shortfall_rms_ratio: float
    """This and the next: of the power present."""
    shortfall_mean_ratio: float
    to_due: ToDue
    """Of all groups."""
    idle_core_hours: float
    """While jobs were pending that could run there."""
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
    present_hs06 = _present_hs06(outcome)
    groups = {name: _group(group, outcome, present_hs06) for name, group in outcome.groups.items()}
    missing = missing_hs06(outcome)
    rms_hs06 = root_mean_square(missing)
    idle = {cause: outcome.idle_core_seconds.get(cause, 0.0) / HOUR_SECONDS for cause in CAUSES}
    hours = _interval_hours(outcome)
    core_hours = outcome.pool_cores * outcome.seconds / HOUR_SECONDS
    held = fsum(cores * hours for group in outcome.groups.values() for cores in group.cores)
    wasted = fsum(idle[cause] for cause in WASTE)
    starts = [group.starts_by_cores for group in outcome.groups.values()]
    counts: dict[str, Any] = {name: getattr(outcome, name) for name in COUNTS}
    return Figures(
        shortfall_rms_hs06=rms_hs06,
        shortfall_rms_ratio=_part(rms_hs06, present_hs06),
        shortfall_mean_ratio=_part(_mean(missing), present_hs06),
        to_due=_to_due(outcome.groups.values(), hours),
        idle_core_hours=wasted,
        idle_ratio=_part(wasted, core_hours),
        idle_core_hours_by_cause=idle,
        used_ratio=_part(held, core_hours),
        multicore_starts=sum(jobs for by in starts for cores, jobs in by.items() if cores > 1),
        lost_core_hours=outcome.lost_core_seconds / HOUR_SECONDS,
        groups=groups,
        **counts,
    )


def has_work(outcome: Outcome) -> bool:
    """Tell if a job of a configured group ran in the time that counts."""
    return any(g.work_hs06_hours > 0 for name, g in outcome.groups.items() if name != OTHER)


def shortfall_hs06(group: GroupOutcome) -> list[float]:
    """Power that is due and not used, in each interval."""
    return [max(0.0, due - power) for due, power in zip(group.due_hs06, group.power_hs06)]


def missing_hs06(outcome: Outcome) -> list[float]:
    """Power that is due to all groups and not used, in each interval."""
    return [fsum(parts) for parts in zip(*map(shortfall_hs06, outcome.groups.values()))]


def over_seeds(answers: Sequence[Figures]) -> dict[str, Any]:
    """Figures of several seeds: a `Spread` for each number; None for one that no seed has."""
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


def _group(group: GroupOutcome, outcome: Outcome, present_hs06: float) -> GroupFigures:
    missing, hours = shortfall_hs06(group), _interval_hours(outcome)
    rms_hs06 = root_mean_square(missing)
    due_hours = fsum(due * hours for due in group.due_hs06)
    return GroupFigures(
        pledge_hs06=group.pledge_hs06,
        shortfall_rms_hs06=rms_hs06,
        shortfall_rms_ratio=_part(rms_hs06, present_hs06),
        shortfall_mean_ratio=_part(_mean(missing), present_hs06),
        to_due=_to_due([group], hours),
        work_hs06_hours=group.work_hs06_hours,
        due_hs06_hours=due_hours,
        work_ratio=group.work_hs06_hours / due_hours if due_hours > 0 else None,
        starts_by_cores=group.starts_by_cores,
        done_by_cores=group.done_by_cores,
        waits_by_cores=group.waits_by_cores,
    )


def _to_due(groups: Iterable[GroupOutcome], interval_hours: float) -> ToDue:
    seconds = interval_hours * HOUR_SECONDS
    ordered = sorted(
        lack for group in groups for lack in lacks(group.due_hs06, group.power_hs06, seconds)
    )
    hours = [lack.seconds / HOUR_SECONDS for lack in ordered]
    return ToDue(
        times=len(hours),
        unended=sum(not lack.ended for lack in ordered),
        median_hours=hours[(len(hours) - 1) // 2] if hours else None,
        worst_hours=hours[-1] if hours else None,
    )


def _present_hs06(outcome: Outcome) -> float:
    """Mean power of the pool without that of groups that have no pledge."""
    others = outcome.groups.get(OTHER)
    return outcome.pool_hs06 - (_mean(others.power_hs06) if others else 0.0)


def _interval_hours(outcome: Outcome) -> float:
    times = outcome.times
    return (times[1] - times[0] if len(times) > 1 else outcome.seconds) / HOUR_SECONDS


def root_mean_square(values: Iterable[float]) -> float:
    """Root mean square; 0 of no value."""
    return sqrt(_mean([value * value for value in values]))


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values) if values else 0.0


def _part(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
