"""From buckets of the ledger to curves and gaps: missing is never zero, and what nobody recorded is left open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, inf
from typing import Optional

from sharectl.core.ledger_series import (
    HOUR_SECONDS,
    MOST_COVERED_SECONDS,
    UNKNOWN_SIZE,
    Bucket,
    GroupPoint,
    PoolPoint,
    Series,
)
from sharectl.report.html_style import LAYERS
from sharectl.report.svg_figure import PLOT_WIDTH, Curve, Value

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


def cumulative(series: Series, group: str, name: str, amount: Callable[[GroupPoint], float]) -> Curve:
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
        total += amount(point) / HOUR_SECONDS
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
        (_middle(series, bucket), value(bucket.pool), bucket.pool.cycles) for bucket in series.buckets
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
