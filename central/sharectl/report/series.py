"""Numbers, curves and figures of periods of the ledger. Missing is never zero."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, inf
from operator import attrgetter
from typing import Any, Optional

from sharectl.ledger.series import MOST_COVERED_SECONDS, Bucket, GroupPoint, PoolPoint, Series
from sharectl.report import svg
from sharectl.report.scale import minute, time_ticks
from sharectl.report.svg import LAYERS, Curve, Figure, Reading, described
from sharectl.times import HOUR_SECONDS, span

Values = Mapping[str, Optional[float]]
"""Line -> its value in one bucket; None where it is unknown."""
OfBucket = Callable[[Bucket], Values]
Layers = Mapping[str, Sequence[int]]
"""Layer -> job sizes in it, the same throughout a page."""
Marks = Sequence[tuple[float, str]]
"""Unix seconds of changes, and a word for each."""

_LAYER_NAMES = {1: "1 core"}
_TIME_TICKS = 5
_GROUP_MEANS = (
    *("due_hs06", "shortfall_hs06", "output_hs06", "unplaceable_jobs"),
    *("held_back_nodes", "helped_nodes"),
)
_POOL_MEANS = (
    *("present_hs06", "shortfall_hs06", "idle_cores", "idle_target_cores", "idle_grace_cores"),
    "targets",
)


# ---- numbers


def layers_of(periods: Iterable[Series]) -> Layers:
    """At most `LAYERS` layers, from the floor up: sizes with most cores, and all others as one."""
    cores: Counter[int] = Counter()
    for point in points_of(periods):
        for size, running in point.cores_by_size.items():
            cores[size] += point.cycles * running  # type: ignore[assignment]  # counts are floats
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


def summary(series: Series) -> dict[str, Any]:
    """Numbers of a period, groups by falling pledge."""
    groups = [_group_summary(group, points_of([series], group)) for group in series.groups]
    return {
        "since": series.since,
        "until": series.until,
        "bucket_seconds": series.bucket_seconds,
        "pool": _pool_summary([bucket.pool for bucket in series.buckets]),
        "groups": sorted(groups, key=lambda group: (-group["pledge_hs06"], group["group"])),
    }


def _group_summary(group: str, points: Sequence[GroupPoint]) -> dict[str, Any]:
    """Numbers of one group: sums, and means over complete cycles; None where no cycle knows."""

    def mean(value: Callable[[GroupPoint], Optional[float]]) -> Optional[float]:
        return _mean((value(point), point.cycles) for point in points)

    work = fsum(point.work_hs06_seconds for point in points) / HOUR_SECONDS
    pledge = fsum(point.pledge_hs06_seconds for point in points) / HOUR_SECONDS
    return {
        "group": group,
        **{key: mean(attrgetter(key)) or 0.0 for key in ("pledge_hs06", "power_hs06")},
        "work_hs06_hours": work,
        "pledge_hs06_hours": pledge,
        "work_ratio": work / pledge if pledge > 0 else None,
        "error_hs06": mean(attrgetter("error_hs06")) or 0.0,
        "running_cores": mean(lambda point: fsum(point.cores_by_size.values())) or 0.0,
        "pending_jobs": mean(lambda point: fsum(point.pending_by_size.values())) or 0.0,
        **{key: mean(attrgetter(key)) for key in _GROUP_MEANS},
        "shortfall_rms_hs06": _root(mean(attrgetter("shortfall_squares"))),
    }


def _pool_summary(points: Sequence[PoolPoint]) -> dict[str, Any]:
    """Sums, and means; None where no cycle knows."""

    def mean(key: str) -> Optional[float]:
        return _mean((getattr(point, key), point.complete_cycles) for point in points)

    idle = [p.idle_cores * p.covered_seconds for p in points if p.idle_cores is not None]
    return {
        "cycles": sum(point.cycles for point in points),
        "complete_cycles": sum(point.complete_cycles for point in points),
        "covered_seconds": sum(point.covered_seconds for point in points),
        **{key: mean(key) for key in _POOL_MEANS},
        "shortfall_rms_hs06": _root(mean("shortfall_squares")),
        "idle_core_hours": fsum(idle) / HOUR_SECONDS if idle else None,
        "cycle_seconds": _mean((point.seconds, point.cycles) for point in points),
    }


def _mean(weighted: Iterable[tuple[Optional[float], int]]) -> Optional[float]:
    """Weighted mean of the values that are known; None without such values."""
    values = [(value, weight) for value, weight in weighted if value is not None and weight]
    weights = sum(weight for _value, weight in values)
    return fsum(value * weight for value, weight in values) / weights if weights else None


def _root(square: Optional[float]) -> Optional[float]:
    return None if square is None else square**0.5


# ---- curves


def gaps(series: Series) -> list[tuple[float, float]]:
    """Begin and end, Unix seconds, of each time for which no complete cycle stands."""
    unrecorded: list[tuple[float, float]] = []
    ended: float = series.since
    for bucket in series.buckets:
        if bucket.pool.complete_cycles:
            if (begun := _begin(bucket)) > ended:
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


# ---- figures


@dataclass(frozen=True)
class FigureKind:
    """One figure, which each period has on the same axes."""

    key: str
    title: str
    unit: str
    values: OfBucket
    style: str = ""
    """Begin of numbered styles, ``group`` or ``layer`` (stacked); empty: names of the lines."""
    summed: bool = False
    """True for sums over time."""
    crosses: bool = False
    """True for a cross at each incomplete cycle."""
    between: Optional[tuple[float, float]] = None
    broad: bool = False
    """True for the main figure: across the page, with the marks of changes."""


def _of(lines: Mapping[str, str], group: str = "") -> OfBucket:
    """Lines of attributes of a group, or of the pool without one."""

    def values(bucket: Bucket) -> Values:
        points: Mapping[str, Any] = {"": bucket.pool, **bucket.groups}
        point = points.get(group)
        return {name: getattr(point, key) for name, key in lines.items()} if point else {}

    return values


def group_kinds(group: str, layers: Layers, deadband_hs06: float) -> list[FigureKind]:
    """Work against pledge, running and pending by size, error and output, and targets."""

    def by_size(key: str, attribute: str, unit: str) -> FigureKind:
        def values(bucket: Bucket) -> Values:
            if group not in bucket.groups:
                return {}
            amounts = getattr(bucket.groups[group], attribute)
            return {
                name: fsum(amounts.get(size, 0.0) for size in sizes)
                for name, sizes in layers.items()
            }

        return FigureKind(key, f"{key.capitalize()}, by job size", unit, values, style="layer")

    work = {"work": "work_hs06_seconds", "pledge": "pledge_hs06_seconds"}
    error = _of({"error": "error_hs06", "output": "output_hs06"}, group)
    targets = _of({"held back": "held_back_nodes", "helped": "helped_nodes"}, group)
    deadband = (-deadband_hs06, deadband_hs06) if deadband_hs06 > 0 else None
    above = "HS06 (above 0: over the setpoint)"
    return [
        FigureKind("work", "Work against pledge", "HS06-hours", _of(work, group), summed=True),
        by_size("running", "cores_by_size", "cores"),
        by_size("pending", "pending_by_size", "jobs"),
        FigureKind("error", "Error and controller output", above, error, between=deadband),
        FigureKind("targets", "Targets", "nodes", targets),
    ]


def top_groups(groups: Iterable[str]) -> list[str]:
    """Groups whose parent is not among them: others count with their parent."""
    names = list(groups)
    return [group for group in names if group.rpartition(".")[0] not in names]


def pool_kinds(groups: Sequence[str]) -> list[FigureKind]:
    """Power of all groups, idle cores, nodes under targets, and durations of cycles."""
    tops = top_groups(groups)

    def power(bucket: Bucket) -> Values:
        points = [bucket.groups[group] for group in tops if group in bucket.groups]
        powers, pledges = ([p.power_hs06 for p in points], [p.pledge_hs06 for p in points])
        return {"power": fsum(powers), "pledge": fsum(pledges)} if bucket.groups else {}

    idle = {
        "idle": "idle_cores",
        "under targets": "idle_target_cores",
        "in grace": "idle_grace_cores",
    }
    targets, duration = _of({"targets": "targets"}), _of({"duration": "seconds"})
    return [
        FigureKind("power", "Power of all groups", "HS06", power),
        FigureKind("idle", "Idle cores", "cores", _of(idle)),
        FigureKind("targets", "Nodes under targets", "nodes", targets),
        FigureKind("duration", "Duration of cycles", "seconds", duration, crosses=True),
    ]


def overview_kind(groups: Sequence[str]) -> FigureKind:
    """Shortfall of groups on one axis, in % of the power that is present."""

    def shortfalls(bucket: Bucket) -> Values:
        values: dict[str, Optional[float]] = dict.fromkeys(groups) if bucket.groups else {}
        for group in bucket.groups.keys() & values.keys():
            missing, present = bucket.groups[group].shortfall_hs06, bucket.pool.present_hs06
            values[group] = 100 * missing / present if missing is not None and present else None
        return values

    unit = "% of the power present"
    title = "Shortfall of groups: power that is due and not used"
    return FigureKind("shortfall", title, unit, shortfalls, "group", broad=True)


def drawings(
    kind: FigureKind,
    periods: Sequence[Series],
    key: str,
    subject: str,
    names: Sequence[str],
    marks: Marks = (),
) -> list[dict[str, str]]:
    """The figure of each period, on the same axes.

    Parameters
    ----------
    key
        Begin of the identifiers.
    subject
        Group or pool, for titles.
    names
        Of the periods; one empty string if there is only one.
    """
    seconds = max(series.until - series.since for series in periods)
    figures = []
    for number, (series, name) in enumerate(zip(periods, names), start=1):
        caption, end = f"{kind.title}{f', {name}' if name else ''}", series.since + seconds
        lines = _curves(kind, series)
        drawable = any(value is not None for line in lines for _place, value in line.readings)
        unknown = "Not known: no complete cycle of this period recorded it."
        missing = unknown if series.buckets else "No cycle in this period."
        figures.append(
            Figure(
                key=f"{key}-{kind.key}{f'-{number}' if name else ''}",
                title=f"{subject}: {caption}",
                caption=caption,
                description=_description(kind, series, lines),
                across=(series.since, end),
                ticks=time_ticks(series.since, end, _TIME_TICKS * (1 + kind.broad)),
                unit=kind.unit,
                curves=lines,
                stacked=kind.style == "layer",
                # Only a longer period fills the rest of the axis.
                gaps=[*gaps(series), *([(series.until, end)] if series.until < end else [])],
                crosses=[
                    bucket.start + series.bucket_seconds / 2
                    for bucket in series.buckets
                    if kind.crosses and bucket.pool.complete_cycles < bucket.pool.cycles
                ],
                marks=_spaced(marks, series.since, end) if kind.broad else (),
                between=kind.between,
                broad=kind.broad,
                missing="" if drawable else missing,
            )
        )
    return svg.drawings(figures)


def _spaced(marks: Marks, begin: float, end: float) -> list[tuple[float, str]]:
    """Marks between two times; words that would lie on those before, or leave the figure, go."""
    spaced, room = [], (end - begin) / 4
    free = begin
    for at, word in marks:
        if begin < at < end:
            fits = free <= at <= end - room
            spaced.append((at, word if fits else ""))
            free = at + room if fits else free
    return spaced


def _curves(kind: FigureKind, series: Series) -> list[Curve]:
    lines = (sums if kind.summed else curves)(series, kind.values)
    return [
        Curve(name, f"{kind.style}{number}" if kind.style else name.replace(" ", "-"), readings)
        for number, (name, readings) in enumerate(lines.items())
    ]


def _description(kind: FigureKind, series: Series, lines: Sequence[Curve]) -> str:
    """The figure in words, for readers who do not see it."""
    unit = kind.unit.partition(" (")[0]
    begin = f"From {minute(series.since)} to {minute(series.until)} UTC, in {unit}."
    words = described(begin, lines)
    open_seconds = sum(end - begin for begin, end in gaps(series))
    return f"{words} Not recorded: {span(open_seconds)}." if open_seconds else words
