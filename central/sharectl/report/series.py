"""Numbers and curves of a period of the ledger. Missing is never zero."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import fsum, inf
from operator import attrgetter
from typing import Any, Optional

from sharectl.ledger.series import (
    HOUR_SECONDS,
    MOST_COVERED_SECONDS,
    UNKNOWN_SIZE,
    Bucket,
    GroupPoint,
    PoolPoint,
    Series,
)
from sharectl.report.svg import LAYERS, Reading

Values = Mapping[str, Optional[float]]
"""Line -> its value in one bucket; None where it is unknown."""
OfBucket = Callable[[Bucket], Values]
Layers = Mapping[str, Sequence[int]]
"""Layer -> job sizes in it, the same throughout a page."""

_LAYER_NAMES = {UNKNOWN_SIZE: "multicore", 1: "1 core"}


def layers_of(periods: Iterable[Series]) -> Layers:
    """At most `LAYERS` layers, from the floor up: sizes with most cores, and all others as one."""
    cores: Counter[int] = Counter()
    for point in points_of(periods):
        for size, held in point.cores_by_size.items():
            cores[size] += point.cycles * held  # type: ignore[assignment]  # counts are floats
        for size, jobs in point.pending_by_size.items():
            cores[size] += point.cycles * jobs * max(1, size)  # type: ignore[assignment]
    sizes = [size for size, amount in cores.most_common() if amount > 0]
    alone = sizes if len(sizes) <= LAYERS else sizes[: LAYERS - 1]
    layers = {
        _LAYER_NAMES.get(size, f"{size} cores"): [size]
        for size in sorted(alone, key=lambda size: size or inf)
    }
    return {**layers, "others": sizes[len(alone) :]} if len(alone) < len(sizes) else layers


def points_of(periods: Iterable[Series], group: Optional[str] = None) -> list[GroupPoint]:
    """Points of a group, or of all groups."""
    return [
        point
        for series in periods
        for bucket in series.buckets
        for name, point in bucket.groups.items()
        if group in (None, name)
    ]


def gaps(series: Series) -> list[tuple[float, float]]:
    """Begin and end, Unix seconds, of each time for which no complete cycle stands."""
    unrecorded: list[tuple[float, float]] = []
    ended: float = series.since
    for bucket in series.buckets:
        if bucket.pool.complete_cycles:
            begun = _begin(bucket)
            if begun > ended:
                unrecorded.append((ended, begun))
            ended = bucket.start + series.bucket_seconds
    if series.until > ended:
        unrecorded.append((ended, float(series.until)))
    return unrecorded


def _begin(bucket: Bucket) -> float:
    """Begin of the time that a bucket stands for."""
    return float(bucket.start - min(bucket.pool.covered_seconds, MOST_COVERED_SECONDS))


def curves(series: Series, values: OfBucket) -> dict[str, list[Reading]]:
    """Lines over time through the middles of buckets."""
    middle = series.bucket_seconds / 2
    return {
        name: [(bucket.start + middle, value) for bucket, value in readings]
        for name, readings in _lines(series, values).items()
    }


def _lines(series: Series, values: OfBucket) -> dict[str, list[tuple[Bucket, Optional[float]]]]:
    """Values of each line; None where a complete cycle does not know it."""
    rows = [(bucket, values(bucket)) for bucket in series.buckets]
    return {
        name: [
            (bucket, row.get(name))
            for bucket, row in rows
            if bucket.pool.complete_cycles or row.get(name) is not None
        ]
        for name in dict.fromkeys(name for _bucket, row in rows for name in row)
    }


def sums(series: Series, values: OfBucket) -> dict[str, list[Reading]]:
    """Sums of the period from its begin, in hours of the values' units, which are in seconds."""
    summed = {}
    for name, readings in _lines(series, values).items():
        total, ended = 0.0, float(series.since)
        corners: list[Reading] = []
        for bucket, value in readings:
            if value is not None:
                begin = max(ended, _begin(bucket))
                if begin > ended or not corners:
                    corners.append((begin, total))
                total += value / HOUR_SECONDS
                ended = float(bucket.start + series.bucket_seconds)
                corners.append((ended, total))
        summed[name] = corners
    return summed


def summary(series: Series) -> dict[str, Any]:
    """Numbers of a period, groups by falling pledge."""
    groups = [group_summary(group, points_of([series], group)) for group in series.groups]
    return {
        "since": series.since,
        "until": series.until,
        "bucket_seconds": series.bucket_seconds,
        "pool": _pool_summary(series),
        "groups": sorted(groups, key=lambda group: (-group["pledge_hs06"], group["group"])),
    }


def group_summary(group: str, points: Sequence[GroupPoint]) -> dict[str, Any]:
    """Numbers of one group: sums, and means over complete cycles; None where no cycle knows."""

    def mean(value: Callable[[GroupPoint], Optional[float]]) -> Optional[float]:
        return mean_of_known((value(point), point.cycles) for point in points)

    def mean_or_0(value: Callable[[GroupPoint], float]) -> float:
        return mean(value) or 0.0

    work = fsum(point.work_hs06_seconds for point in points) / HOUR_SECONDS
    pledge = fsum(point.pledge_hs06_seconds for point in points) / HOUR_SECONDS
    return {
        "group": group,
        "pledge_hs06": mean_or_0(attrgetter("pledge_hs06")),
        "power_hs06": mean_or_0(attrgetter("power_hs06")),
        "work_hs06_hours": work,
        "pledge_hs06_hours": pledge,
        "due_hs06": mean(attrgetter("due_hs06")),
        "shortfall_hs06": mean(attrgetter("shortfall_hs06")),
        "shortfall_rms_hs06": root(mean(attrgetter("shortfall_squares"))),
        "error_hs06": mean_or_0(attrgetter("error_hs06")),
        "running_cores": mean_or_0(lambda point: fsum(point.cores_by_size.values())),
        "pending_jobs": mean_or_0(lambda point: fsum(point.pending_by_size.values())),
        "output_hs06": mean(attrgetter("output_hs06")),
        "unplaceable_jobs": mean(attrgetter("unplaceable_jobs")),
        "held_back_nodes": mean(attrgetter("held_back_nodes")),
        "helped_nodes": mean(attrgetter("helped_nodes")),
        "work_ratio": ratio(work, pledge),
    }


def _pool_summary(series: Series) -> dict[str, Any]:
    """Sums, and means; None where no cycle knows."""
    points = [bucket.pool for bucket in series.buckets]

    def mean(value: Callable[[PoolPoint], Optional[float]]) -> Optional[float]:
        return mean_of_known((value(point), point.complete_cycles) for point in points)

    idle = [p.idle_cores * p.covered_seconds for p in points if p.idle_cores is not None]
    return {
        "cycles": sum(point.cycles for point in points),
        "complete_cycles": sum(point.complete_cycles for point in points),
        "covered_seconds": sum(point.covered_seconds for point in points),
        "present_hs06": mean(attrgetter("present_hs06")),
        "shortfall_hs06": mean(attrgetter("shortfall_hs06")),
        "shortfall_rms_hs06": root(mean(attrgetter("shortfall_squares"))),
        "idle_cores": mean(attrgetter("idle_cores")),
        "idle_target_cores": mean(attrgetter("idle_target_cores")),
        "idle_grace_cores": mean(attrgetter("idle_grace_cores")),
        "targets": mean(attrgetter("targets")),
        "idle_core_hours": fsum(idle) / HOUR_SECONDS if idle else None,
        "cycle_seconds": mean_of_known((point.seconds, point.cycles) for point in points),
    }


def mean_of_known(weighted: Iterable[tuple[Optional[float], int]]) -> Optional[float]:
    """Weighted mean of the values that are known; None without such values."""
    values = [(value, weight) for value, weight in weighted if value is not None and weight]
    weights = sum(weight for _value, weight in values)
    return fsum(value * weight for value, weight in values) / weights if weights else None


def root(square: Optional[float]) -> Optional[float]:
    """Square root; None of None."""
    return None if square is None else square**0.5


def ratio(part: float, whole: float) -> Optional[float]:
    """Part by whole; None if there is no whole."""
    return part / whole if whole > 0 else None
