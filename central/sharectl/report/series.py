"""From buckets of the ledger to curves and gaps: missing is never zero, and what nobody recorded is left open.

The numbers of a period: what tables, captions and the JSON are made from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, inf, sqrt
from typing import Optional

from sharectl.ledger.series import HOUR_SECONDS as CURVES_HOUR_SECONDS
from sharectl.ledger.series import (
    MOST_COVERED_SECONDS,
    UNKNOWN_SIZE,
    Bucket,
    GroupPoint,
    PoolPoint,
    Series,
)
from sharectl.plan.records import NodeRecord
from sharectl.report.style import LAYERS
from sharectl.report.svg import PLOT_WIDTH, Curve, Value

_OTHERS = -1
"""Key of the layer of all sizes that have no layer of their own."""


@dataclass(frozen=True)
class Layers:
    """Job sizes that have a layer of their own, the same throughout a page."""

    sizes: tuple[int, ...]
    others: bool = False
    """Whether there are more, which share the last layer."""

    def of(self, by_size: Mapping[int, float]) -> dict[int, float]:
        """What each layer shows of amounts by job size; 0 where a known group has none."""
        shown = dict.fromkeys((*self.sizes, *([_OTHERS] if self.others else [])), 0.0)
        for size, amount in by_size.items():
            shown[size if size in shown else _OTHERS] += amount
        return shown

    @property
    def names(self) -> tuple[str, ...]:
        """A label for each layer, from the floor up."""
        named = tuple(_size_name(size) for size in self.sizes)
        return (*named, "others") if self.others else named


def layers_of(periods: Iterable[Series]) -> Layers:
    """The sizes that hold most cores or wait in the greatest number, at most `LAYERS`, by size."""
    held: dict[int, float] = {}
    for point in (
        point for series in periods for bucket in series.buckets for point in bucket.groups.values()
    ):
        for size, cores in point.cores_by_size.items():
            held[size] = held.get(size, 0.0) + point.cycles * cores
        for size, jobs in point.pending_by_size.items():
            held[size] = held.get(size, 0.0) + point.cycles * jobs * max(1, size)
    seen = sorted((size for size in held if held[size] > 0), key=lambda size: -held[size])
    if len(seen) <= LAYERS:
        return Layers(_by_size(seen))
    return Layers(_by_size(seen[: LAYERS - 1]), others=True)


def gaps(series: Series) -> tuple[tuple[float, float], ...]:
    """From and to, Unix seconds, that no complete cycle stands for."""
    found = []
    ended: float = series.since
    for bucket in series.buckets:
        if bucket.pool.complete_cycles:
            begun = bucket.start - min(bucket.pool.covered_seconds, MOST_COVERED_SECONDS)
            if begun > ended:
                found.append((ended, float(begun)))
            ended = bucket.start + series.bucket_seconds
    if series.until > ended:
        found.append((ended, float(series.until)))
    return tuple(found)


def incomplete(series: Series) -> list[float]:
    """Middles of the buckets that have a cycle that was not complete."""
    return [
        bucket.start + series.bucket_seconds / 2
        for bucket in series.buckets
        if bucket.pool.complete_cycles < bucket.pool.cycles
    ]


def cumulative(
    series: Series, group: str, name: str, amount: Callable[[GroupPoint], float]
) -> Curve:
    """Sum since the period began, in hours of what ``amount`` gives in seconds.

    In a gap the line is open and goes on where it was: nothing is known of what was worked there.
    """
    values: list[Value] = []
    total = 0.0
    fresh = True
    stops = [begin for begin, _end in gaps(series)]
    last_end: float = -inf
    for bucket in series.buckets:
        point = bucket.groups.get(group)
        if point is None:
            fresh = fresh or bucket.pool.complete_cycles > 0
            continue
        begin = bucket.start - min(bucket.pool.covered_seconds, MOST_COVERED_SECONDS)
        if fresh or any(last_end <= stop <= bucket.start for stop in stops):
            values += [Value(last_end, None)] if values else []
            values.append(Value(max(series.since, last_end, min(bucket.start, begin)), total))
        total += amount(point) / CURVES_HOUR_SECONDS
        last_end = bucket.start + series.bucket_seconds
        values.append(Value(last_end, total))
        fresh = False
    return Curve(name, style=name, values=values)


def group_curve(
    series: Series, group: str, name: str, value: Callable[[GroupPoint], Optional[float]]
) -> Curve:
    """One group's value over time, open where it is not known; the name without blanks is the class of its style."""
    readings = [
        (
            _middle(series, bucket),
            value(bucket.groups[group]) if group in bucket.groups else None,
            bucket.pool.complete_cycles,
        )
        for bucket in series.buckets
        if bucket.pool.complete_cycles
    ]
    return Curve(name, name.replace(" ", "-"), columns(series, readings))


def error_percent(point: GroupPoint) -> Optional[float]:
    """Error in % of the share that the group is entitled to; None if it is entitled to nothing."""
    share_hs06 = point.power_hs06 - point.error_hs06
    return 100 * point.error_hs06 / share_hs06 if share_hs06 > 0 else None


def sum_curve(
    series: Series, groups: Sequence[str], name: str, value: Callable[[GroupPoint], float]
) -> Curve:
    """Sum over groups over time; those that a complete cycle does not know have nothing to add."""
    readings = [
        (
            _middle(series, bucket),
            fsum(value(bucket.groups[group]) for group in groups if group in bucket.groups),
            bucket.pool.complete_cycles,
        )
        for bucket in series.buckets
        if bucket.pool.complete_cycles
    ]
    return Curve(name, name, columns(series, readings))


def pool_curve(series: Series, name: str, value: Callable[[PoolPoint], Optional[float]]) -> Curve:
    """One value of the pool over time, open where it is not known."""
    readings = [
        (_middle(series, bucket), value(bucket.pool), bucket.pool.cycles)
        for bucket in series.buckets
    ]
    return Curve(name, name, columns(series, readings))


def columns(series: Series, readings: Iterable[tuple[float, Optional[float], int]]) -> list[Value]:
    """Readings (moment, value, weight) by pixel column: their mean, and where there are several the least and the greatest.

    A column in which no reading has a value has none.
    """
    width_seconds = (series.until - series.since) / PLOT_WIDTH
    inside: dict[int, list[tuple[float, Optional[float], int]]] = {}
    for reading in readings:
        inside.setdefault(int((reading[0] - series.since) / width_seconds), []).append(reading)
    return [_column(several) for several in inside.values()]


def _column(inside: Sequence[tuple[float, Optional[float], int]]) -> Value:
    at = (inside[0][0] + inside[-1][0]) / 2
    if len(inside) == 1:
        return Value(at, inside[0][1])
    known = [(value, weight) for _at, value, weight in inside if value is not None]
    if not known:
        return Value(at, None)
    mean = sum(value * weight for value, weight in known) / sum(weight for _value, weight in known)
    return Value(at, mean, min(known)[0], max(known)[0])


def layer_curves(
    series: Series, group: str, layers: Layers, by_size: Callable[[GroupPoint], Mapping[int, float]]
) -> list[Curve]:
    """A curve for each layer, from the floor up, over the same moments."""
    shown = [
        (
            _middle(series, bucket),
            layers.of(by_size(bucket.groups[group])) if group in bucket.groups else None,
            bucket.pool,
        )
        for bucket in series.buckets
        if bucket.pool.complete_cycles
    ]
    return [
        Curve(
            name,
            f"layer{number}",
            columns(
                series,
                [
                    (at, None if parts is None else parts[key], pool.complete_cycles)
                    for at, parts, pool in shown
                ],
            ),
        )
        for number, (key, name) in enumerate(zip(layers.of({}), layers.names))
    ]


def pending_cores(point: GroupPoint) -> dict[int, float]:
    """Cores that pending jobs request, by size; sizes must be known."""
    return {size: size * jobs for size, jobs in point.pending_by_size.items()}


def sizes_known(periods: Iterable[Series]) -> bool:
    """Whether the size of every pending job is known: only then can cores be counted."""
    return not any(
        point.pending_by_size.get(UNKNOWN_SIZE)
        for series in periods
        for bucket in series.buckets
        for point in bucket.groups.values()
    )


def _middle(series: Series, bucket: Bucket) -> float:
    return bucket.start + series.bucket_seconds / 2


def _by_size(sizes: Sequence[int]) -> tuple[int, ...]:
    """Ascending, jobs of a size that is not known last."""
    return tuple(sorted(sizes, key=lambda size: size if size != UNKNOWN_SIZE else inf))


def _size_name(size: int) -> str:
    if size == UNKNOWN_SIZE:
        return "multicore"
    return "1 core" if size == 1 else f"{size} cores"


HOUR_SECONDS = 3600


@dataclass(frozen=True)
class GroupSummary:
    """One group over a period: means are over its complete cycles."""

    group: str
    pledge_hs06: float
    power_hs06: float
    work_hs06_hours: float
    pledge_hs06_hours: float
    """Pledge times the time that is recorded."""
    error_hs06: float
    error_rms_hs06: float
    over_ratio: float
    """Part of the recorded time in which the error was above the deadband."""
    under_ratio: float
    """Part in which it was below minus the deadband."""
    running_cores: float
    pending_jobs: float
    unplaceable_jobs: Optional[float]
    """Mean of those of them that no node could run if it were empty; None if no cycle knows."""
    held_back_nodes: Optional[float]
    """Mean of nodes on which a target held it back; None if no cycle knows."""
    helped_nodes: Optional[float]
    """Mean of nodes on which one helped it; None if no cycle knows."""

    @property
    def error_ratio(self) -> Optional[float]:
        """Mean error by the mean of what it was entitled to; None if that was nothing."""
        share_hs06 = self.power_hs06 - self.error_hs06
        return self.error_hs06 / share_hs06 if share_hs06 > 0 else None

    @property
    def work_ratio(self) -> Optional[float]:
        """Work by pledge; None without a pledge."""
        return self.work_hs06_hours / self.pledge_hs06_hours if self.pledge_hs06_hours > 0 else None


@dataclass(frozen=True)
class PoolSummary:
    """The pool over a period."""

    cycles: int
    complete_cycles: int
    covered_seconds: int
    """Time that complete cycles stand for."""
    idle_cores: Optional[float]
    """Mean; None if no cycle knows."""
    idle_core_hours: Optional[float]
    """Over the recorded time."""
    idle_target_cores: Optional[float]
    """Mean of those that targets kept from jobs; None if no cycle knows."""
    idle_grace_cores: Optional[float]
    """Mean of those that grace kept; None if no cycle knows."""
    targets: Optional[float]
    """Mean of nodes under a target; None if no cycle knows."""
    cycle_seconds: Optional[float]
    """Mean duration; None if no cycle knows."""


@dataclass(frozen=True)
class PeriodSummary:
    """A stretch of time and what the ledger says of it."""

    since: int
    until: int
    bucket_seconds: int
    pool: PoolSummary
    groups: tuple[GroupSummary, ...]
    """Those with the largest pledge first."""

    def of(self, group: str) -> Optional[GroupSummary]:
        """The group's summary; None if no complete cycle knows it."""
        return next((found for found in self.groups if found.group == group), None)


def summarized(series: Series, deadband_hs06: float = 0.0) -> PeriodSummary:
    """The numbers of a period.

    Parameters
    ----------
    deadband_hs06
        Errors of at most this size are neither over nor under, HS06, >= 0.
    """
    groups = [_group(series, group, deadband_hs06) for group in series.groups]
    groups.sort(key=lambda group: (-group.pledge_hs06, group.group))
    return PeriodSummary(
        series.since, series.until, series.bucket_seconds, _pool(series), tuple(groups)
    )


def _group(series: Series, group: str, deadband_hs06: float) -> GroupSummary:
    points = [bucket.groups[group] for bucket in series.buckets if group in bucket.groups]

    def mean(value: Callable[[GroupPoint], float]) -> float:
        return mean_of_known((value(point), point.cycles) for point in points) or 0.0

    return GroupSummary(
        group=group,
        pledge_hs06=mean(lambda point: point.pledge_hs06),
        power_hs06=mean(lambda point: point.power_hs06),
        work_hs06_hours=fsum(point.work_hs06_seconds for point in points) / HOUR_SECONDS,
        pledge_hs06_hours=fsum(point.pledge_hs06_seconds for point in points) / HOUR_SECONDS,
        error_hs06=mean(lambda point: point.error_hs06),
        error_rms_hs06=sqrt(mean(lambda point: point.error_rms_hs06**2)),
        over_ratio=mean(lambda point: point.error_hs06 > deadband_hs06),
        under_ratio=mean(lambda point: point.error_hs06 < -deadband_hs06),
        running_cores=mean(lambda point: fsum(point.cores_by_size.values())),
        pending_jobs=mean(lambda point: fsum(point.pending_by_size.values())),
        unplaceable_jobs=mean_of_known((point.unplaceable_jobs, point.cycles) for point in points),
        held_back_nodes=mean_of_known((point.held_back_nodes, point.cycles) for point in points),
        helped_nodes=mean_of_known((point.helped_nodes, point.cycles) for point in points),
    )


def _pool(series: Series) -> PoolSummary:
    points = [bucket.pool for bucket in series.buckets]

    def mean(value: Callable[[PoolPoint], Optional[float]]) -> Optional[float]:
        return mean_of_known((value(point), point.complete_cycles) for point in points)

    idle = [point for point in points if point.idle_cores is not None]
    return PoolSummary(
        cycles=sum(point.cycles for point in points),
        complete_cycles=sum(point.complete_cycles for point in points),
        covered_seconds=sum(point.covered_seconds for point in points),
        idle_cores=mean(lambda point: point.idle_cores),
        idle_core_hours=fsum((point.idle_cores or 0.0) * point.covered_seconds for point in idle)
        / HOUR_SECONDS
        if idle
        else None,
        idle_target_cores=mean(lambda point: point.idle_target_cores),
        idle_grace_cores=mean(lambda point: point.idle_grace_cores),
        targets=mean(lambda point: point.targets),
        cycle_seconds=mean_of_known((point.seconds, point.cycles) for point in points),
    )


@dataclass(frozen=True)
class MulticoreOnly:
    """Nodes that take multicore jobs alone (t1_MulticoreOnly), and how their cores were used in one cycle."""

    nodes: int
    cores: int
    multi_cores: int
    """Cores held by jobs of more than one core."""
    single_cores: int
    """Cores held by jobs of one core, which started before."""
    idle_cores: int


def multicore_only(nodes: Iterable[NodeRecord]) -> Optional[MulticoreOnly]:
    """Those of the nodes that take multicore jobs alone; None if there are none."""
    alone = [node for node in nodes if node.multicore_only]
    held = [jobs for node in alone for jobs in node.held]
    if not alone:
        return None
    return MulticoreOnly(
        nodes=len(alone),
        cores=sum(node.cores for node in alone),
        multi_cores=sum(jobs.jobs * jobs.cores for jobs in held if jobs.cores > 1),
        single_cores=sum(jobs.jobs for jobs in held if jobs.cores == 1),
        idle_cores=sum(node.idle_cores for node in alone),
    )


def mean_of_known(weighted: Iterable[tuple[Optional[float], int]]) -> Optional[float]:
    """Mean of the values that are known, by their weights; None if none is."""
    known = [(value, weight) for value, weight in weighted if value is not None and weight]
    weights = sum(weight for _value, weight in known)
    return fsum(value * weight for value, weight in known) / weights if weights else None
