"""Curves, gaps and means of a period of the ledger. Missing is never zero."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import fsum, inf
from typing import Any, NamedTuple, Optional

from sharectl.ledger.series import (
    HOUR_SECONDS,
    MOST_COVERED_SECONDS,
    UNKNOWN_SIZE,
    Bucket,
    GroupPoint,
    PoolPoint,
    Series,
)
from sharectl.plan.records import NodeRecord
from sharectl.report.svg import LAYERS, PLOT_WIDTH, Curve, Value

_OTHERS = -1
"""Key of the layer of all sizes without their own."""

OfGroup = Callable[[GroupPoint], Optional[float]]
OfPool = Callable[[PoolPoint], Optional[float]]
OfBucket = Callable[[Bucket], Optional[float]]
"""Value of a curve; None where it is unknown."""


class Line(NamedTuple):
    """A curve to be drawn."""

    name: str
    value: OfBucket
    style: str = ""
    """Empty: the name, with hyphens for blanks."""


class Layers(NamedTuple):
    """Job sizes that have a layer, the same throughout a page; others share the last."""

    sizes: tuple[int, ...]

    def amount(self, by_size: Mapping[int, float], size: int) -> float:
        """Amount of the layer of a size; 0 where a group has none."""
        if size == _OTHERS:
            return fsum(amount for other, amount in by_size.items() if other not in self.sizes)
        return by_size.get(size, 0.0)

    @property
    def names(self) -> list[str]:
        """Label of each layer, from the floor up."""
        special = {_OTHERS: "others", UNKNOWN_SIZE: "multicore", 1: "1 core"}
        return [special.get(size, f"{size} cores") for size in self.sizes]


def layers_of(periods: Iterable[Series]) -> Layers:
    """At most `LAYERS` sizes, ascending: those with most cores held or requested."""
    cores: Counter[int] = Counter()
    for point in points_of(periods):
        for size, held in point.cores_by_size.items():
            cores[size] += point.cycles * held  # type: ignore[assignment]  # counts are floats
        for size, jobs in point.pending_by_size.items():
            cores[size] += point.cycles * jobs * max(1, size)  # type: ignore[assignment]
    seen = [size for size, amount in cores.most_common() if amount > 0]
    shown = seen if len(seen) <= LAYERS else seen[: LAYERS - 1]
    sizes = sorted(shown, key=lambda size: size or inf)  # jobs of unknown size last
    return Layers((*sizes, *([_OTHERS] if len(seen) > LAYERS else [])))


def points_of(periods: Iterable[Series], group: Optional[str] = None) -> list[GroupPoint]:
    """Points of a group, or of all groups."""
    return [
        point
        for series in periods
        for bucket in series.buckets
        for name, point in bucket.groups.items()
        if group in (None, name)
    ]


def sizes_known(periods: Iterable[Series]) -> bool:
    """True if the size of every pending job is known: then cores can be counted."""
    return not any(point.pending_by_size.get(UNKNOWN_SIZE) for point in points_of(periods))


def gaps(series: Series) -> list[tuple[float, float]]:
    """Begin and end, Unix seconds, of each time for which no complete cycle stands."""
    unrecorded: list[tuple[float, float]] = []
    ended: float = series.since
    for bucket in series.buckets:
        if bucket.pool.complete_cycles:
            begun = bucket.start - min(bucket.pool.covered_seconds, MOST_COVERED_SECONDS)
            if begun > ended:
                unrecorded.append((ended, float(begun)))
            ended = bucket.start + series.bucket_seconds
    if series.until > ended:
        unrecorded.append((ended, float(series.until)))
    return unrecorded


def incomplete(series: Series) -> list[float]:
    """Middles of the buckets with an incomplete cycle, Unix seconds."""
    return [
        bucket.start + series.bucket_seconds / 2
        for bucket in series.buckets
        if bucket.pool.complete_cycles < bucket.pool.cycles
    ]


def of_group(group: str, value: OfGroup) -> OfBucket:
    """Value of one group."""
    return lambda bucket: value(bucket.groups[group]) if group in bucket.groups else None


def of_groups(groups: Sequence[str], value: OfGroup) -> OfBucket:
    """Sum over groups; a group that a complete cycle does not know adds nothing."""

    def total(bucket: Bucket) -> Optional[float]:
        points = [bucket.groups[group] for group in groups if group in bucket.groups]
        return fsum(value(point) or 0.0 for point in points) if bucket.groups else None

    return total


def of_pool(value: OfPool) -> OfBucket:
    """Value of the pool."""
    return lambda bucket: value(bucket.pool)


def layer_lines(
    group: str, layers: Layers, by_size: Callable[[GroupPoint], Mapping[int, float]]
) -> list[Line]:
    """A line for each layer, from the floor up."""

    def of_layer(size: int) -> OfBucket:
        return of_group(group, lambda point: layers.amount(by_size(point), size))

    return [
        Line(name, of_layer(size), f"layer{number}")
        for number, (size, name) in enumerate(zip(layers.sizes, layers.names))
    ]


def curve(series: Series, line: Line) -> Curve:
    """Values over time by pixel column: their mean, and the least and the greatest of several."""
    seconds = (series.until - series.since) / PLOT_WIDTH
    columns: dict[int, list[tuple[float, Optional[float], int]]] = {}
    for bucket in series.buckets:
        middle, amount = bucket.start + series.bucket_seconds / 2, line.value(bucket)
        weight = bucket.pool.complete_cycles
        if weight or amount is not None:
            reading = (middle, amount, weight or bucket.pool.cycles)
            columns.setdefault(int((middle - series.since) / seconds), []).append(reading)
    style = line.style or line.name.replace(" ", "-")
    return Curve(line.name, style, [_column(readings) for readings in columns.values()])


def _column(readings: Sequence[tuple[float, Optional[float], int]]) -> Value:
    at = (readings[0][0] + readings[-1][0]) / 2
    known = [amount for _at, amount, _weight in readings if amount is not None]
    mean = mean_of_known((amount, weight) for _at, amount, weight in readings)
    if len(readings) == 1 or not known:
        return Value(at, mean)
    return Value(at, mean, min(known), max(known))


def cumulative(series: Series, line: Line) -> Curve:
    """Sum since the period began, in hours of the value's unit, which is in seconds.

    In a gap the line is open and goes on where it was, because work is unknown there.
    """
    values: list[Value] = []
    total = 0.0
    fresh = True
    stops = [begin for begin, _end in gaps(series)]
    last_end: float = -inf
    for bucket in series.buckets:
        amount = line.value(bucket)
        if amount is None:
            fresh = fresh or bucket.pool.complete_cycles > 0
            continue
        begin = bucket.start - min(bucket.pool.covered_seconds, MOST_COVERED_SECONDS)
        if fresh or any(last_end <= stop <= bucket.start for stop in stops):
            values += [Value(last_end, None)] if values else []
            values.append(Value(max(series.since, last_end, min(bucket.start, begin)), total))
        total += amount / HOUR_SECONDS
        last_end = bucket.start + series.bucket_seconds
        values.append(Value(last_end, total))
        fresh = False
    return Curve(line.name, line.style or line.name, values)


def error_percent(point: GroupPoint) -> Optional[float]:
    """Error in % of the group's share; None if its share is nothing."""
    ratio = _ratio(point.error_hs06, point.power_hs06 - point.error_hs06)
    return None if ratio is None else 100 * ratio


@dataclass(frozen=True)
class GroupSummary:
    """One group over a period: means over complete cycles; None where no cycle knows."""

    group: str
    pledge_hs06: float
    power_hs06: float
    work_hs06_hours: float
    pledge_hs06_hours: float
    """Pledge times the recorded time."""
    error_hs06: float
    error_rms_hs06: float
    output_hs06: Optional[float]
    """Of the controller."""
    over_ratio: float
    """Part of the recorded time with an error above the deadband."""
    under_ratio: float
    """Part with an error below minus the deadband."""
    running_cores: float
    pending_jobs: float
    unplaceable_jobs: Optional[float]
    """Pending jobs that no node could run if it were empty."""
    held_back_nodes: Optional[float]
    helped_nodes: Optional[float]

    @property
    def error_ratio(self) -> Optional[float]:
        """Mean error by the mean of its share; None if that is nothing."""
        return _ratio(self.error_hs06, self.power_hs06 - self.error_hs06)

    @property
    def work_ratio(self) -> Optional[float]:
        """Work by pledge; None without a pledge."""
        return _ratio(self.work_hs06_hours, self.pledge_hs06_hours)


@dataclass(frozen=True)
class PoolSummary:
    """The pool over a period: means, None where no cycle knows."""

    cycles: int
    complete_cycles: int
    covered_seconds: int
    """Time that complete cycles stand for."""
    idle_cores: Optional[float]
    idle_core_hours: Optional[float]
    """Sum over the recorded time."""
    idle_target_cores: Optional[float]
    """Idle cores that targets kept from jobs."""
    idle_grace_cores: Optional[float]
    """Idle cores that grace kept from jobs."""
    targets: Optional[float]
    """Nodes under a target."""
    cycle_seconds: Optional[float]
    """Duration of a cycle."""


@dataclass(frozen=True)
class PeriodSummary:
    """Numbers of a period, groups with the largest pledge first."""

    since: int
    until: int
    bucket_seconds: int
    pool: PoolSummary
    groups: tuple[GroupSummary, ...]

    def of(self, group: str) -> Optional[GroupSummary]:
        """The group's summary; None if no complete cycle knows it."""
        return next((summary for summary in self.groups if summary.group == group), None)

    def content(self) -> dict[str, Any]:
        """The numbers for JSON."""
        groups = [
            {**asdict(group), "work_ratio": group.work_ratio, "error_ratio": group.error_ratio}
            for group in self.groups
        ]
        return {**asdict(self), "groups": groups}


def summarized(series: Series, deadband_hs06: float = 0.0) -> PeriodSummary:
    """Numbers of a period; errors of at most the deadband are neither over nor under."""
    groups = [
        group_summary(group, points_of([series], group), deadband_hs06) for group in series.groups
    ]
    groups.sort(key=lambda group: (-group.pledge_hs06, group.group))
    return PeriodSummary(
        series.since, series.until, series.bucket_seconds, _pool(series), tuple(groups)
    )


def group_summary(
    group: str, points: Sequence[GroupPoint], deadband_hs06: float = 0.0
) -> GroupSummary:
    """Numbers of one group over some of its points."""

    def known(value: OfGroup) -> Optional[float]:
        return mean_of_known((value(point), point.cycles) for point in points)

    def mean(value: OfGroup) -> float:
        return known(value) or 0.0

    return GroupSummary(
        group=group,
        pledge_hs06=mean(lambda point: point.pledge_hs06),
        power_hs06=mean(lambda point: point.power_hs06),
        work_hs06_hours=fsum(point.work_hs06_seconds for point in points) / HOUR_SECONDS,
        pledge_hs06_hours=fsum(point.pledge_hs06_seconds for point in points) / HOUR_SECONDS,
        error_hs06=mean(lambda point: point.error_hs06),
        error_rms_hs06=mean(lambda point: point.error_rms_hs06**2) ** 0.5,
        output_hs06=known(lambda point: point.output_hs06),
        over_ratio=mean(lambda point: point.error_hs06 > deadband_hs06),
        under_ratio=mean(lambda point: point.error_hs06 < -deadband_hs06),
        running_cores=mean(lambda point: fsum(point.cores_by_size.values())),
        pending_jobs=mean(lambda point: fsum(point.pending_by_size.values())),
        unplaceable_jobs=known(lambda point: point.unplaceable_jobs),
        held_back_nodes=known(lambda point: point.held_back_nodes),
        helped_nodes=known(lambda point: point.helped_nodes),
    )


def _pool(series: Series) -> PoolSummary:
    points = [bucket.pool for bucket in series.buckets]

    def mean(value: OfPool) -> Optional[float]:
        return mean_of_known((value(point), point.complete_cycles) for point in points)

    idle = [
        point.idle_cores * point.covered_seconds / HOUR_SECONDS
        for point in points
        if point.idle_cores is not None
    ]
    return PoolSummary(
        cycles=sum(point.cycles for point in points),
        complete_cycles=sum(point.complete_cycles for point in points),
        covered_seconds=sum(point.covered_seconds for point in points),
        idle_cores=mean(lambda point: point.idle_cores),
        idle_core_hours=fsum(idle) if idle else None,
        idle_target_cores=mean(lambda point: point.idle_target_cores),
        idle_grace_cores=mean(lambda point: point.idle_grace_cores),
        targets=mean(lambda point: point.targets),
        cycle_seconds=mean_of_known((point.seconds, point.cycles) for point in points),
    )


def multicore_only(nodes: Iterable[NodeRecord]) -> Optional[dict[str, int]]:
    """Nodes that take multicore jobs alone (t1_MulticoreOnly), and their cores; None if none do."""
    alone = [node for node in nodes if node.multicore_only]
    held = [jobs for node in alone for jobs in node.held]
    if not alone:
        return None
    return {
        "nodes": len(alone),
        "cores": sum(node.cores for node in alone),
        "multi_cores": sum(jobs.jobs * jobs.cores for jobs in held if jobs.cores > 1),
        "single_cores": sum(jobs.jobs for jobs in held if jobs.cores == 1),
        "idle_cores": sum(node.idle_cores for node in alone),
    }


def mean_of_known(weighted: Iterable[tuple[Optional[float], int]]) -> Optional[float]:
    """Weighted mean of the known values; None if there is none."""
    known = [(value, weight) for value, weight in weighted if value is not None and weight]
    weights = sum(weight for _value, weight in known)
    return fsum(value * weight for value, weight in known) / weights if weights else None


def _ratio(part: float, whole: float) -> Optional[float]:
    return part / whole if whole > 0 else None
