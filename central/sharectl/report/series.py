"""Numbers, curves and figures of a period of the ledger. Missing is never zero."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import fsum
from typing import Any, NamedTuple, Optional

from sharectl.ledger.series import MOST_COVERED_SECONDS, Bucket, PoolPoint, Series
from sharectl.report.scale import minute, time_ticks
from sharectl.report.svg import LINES, Curve, Figure, Reading, described
from sharectl.times import HOUR_SECONDS, span

Values = Mapping[str, Optional[float]]
"""Line -> its value in one bucket; None where it is unknown."""
OfBucket = Callable[[Bucket], Values]
Marks = Sequence[tuple[float, str]]
"""Unix seconds of changes, and a word for each."""

_TIME_TICKS = 5
_GROUP_MEANS = (
    *("pledge_hs06", "power_hs06", "error_hs06", "due_hs06", "shortfall_hs06", "output_hs06"),
    *("single_cores", "multi_cores", "pending_single_jobs", "pending_multi_jobs"),
    *("unplaceable_jobs", "held_back_nodes", "helped_nodes"),
)
_POOL_MEANS = (
    *("present_hs06", "shortfall_hs06", "idle_cores", "idle_target_cores", "idle_grace_cores"),
    "targets",
)


# ---- numbers


def summary(series: Series) -> dict[str, Any]:
    """Numbers of a period, groups by falling pledge."""
    groups = [_group_summary(series, group) for group in series.groups]
    return {
        "since": series.since,
        "until": series.until,
        "bucket_seconds": series.bucket_seconds,
        "pool": _pool_summary([bucket.pool for bucket in series.buckets]),
        "groups": sorted(groups, key=lambda group: (-group["pledge_hs06"], group["group"])),
    }


def _group_summary(series: Series, group: str) -> dict[str, Any]:
    """Numbers of one group: sums, and means over complete cycles; None where no cycle knows."""
    points = [bucket.groups[group] for bucket in series.buckets if group in bucket.groups]

    def mean(key: str) -> Optional[float]:
        return _mean((getattr(point, key), point.cycles) for point in points)

    work = fsum(point.work_hs06_seconds for point in points) / HOUR_SECONDS
    pledge = fsum(point.pledge_hs06_seconds for point in points) / HOUR_SECONDS
    squares = mean("shortfall_squares")
    return {
        "group": group,
        "work_hs06_hours": work,
        "pledge_hs06_hours": pledge,
        "work_ratio": work / pledge if pledge > 0 else None,
        **{key: mean(key) for key in _GROUP_MEANS},
        "shortfall_rms_hs06": None if squares is None else squares**0.5,
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
        "idle_core_hours": fsum(idle) / HOUR_SECONDS if idle else None,
        "cycle_seconds": _mean((point.seconds, point.cycles) for point in points),
    }


def _mean(weighted: Iterable[tuple[Optional[float], int]]) -> Optional[float]:
    """Weighted mean of the values that are known; None without such values."""
    values = [(value, weight) for value, weight in weighted if value is not None and weight]
    weights = sum(weight for _value, weight in values)
    return fsum(value * weight for value, weight in values) / weights if weights else None


# ---- curves


def gaps(series: Series) -> list[tuple[float, float]]:
    """Begin and end, Unix seconds, of each time for which no complete cycle stands."""
    unrecorded: list[tuple[float, float]] = []
    ended: float = series.since
    for bucket in series.buckets:
        if bucket.pool.complete_cycles:
            begun = float(bucket.start - min(bucket.pool.covered_seconds, MOST_COVERED_SECONDS))
            if begun > ended:
                unrecorded.append((ended, begun))
            ended = bucket.start + series.bucket_seconds
    if series.until > ended:
        unrecorded.append((ended, float(series.until)))
    return unrecorded


def curves(series: Series, values: OfBucket) -> dict[str, list[Reading]]:
    """Lines through the middles of buckets; None where a complete cycle does not know a value."""
    middle = series.bucket_seconds / 2
    rows = [(bucket, values(bucket)) for bucket in series.buckets]
    return {
        name: [
            (bucket.start + middle, row.get(name))
            for bucket, row in rows
            if bucket.pool.complete_cycles or row.get(name) is not None
        ]
        for name in dict.fromkeys(name for _bucket, row in rows for name in row)
    }


# ---- figures


class _Plot(NamedTuple):
    """A figure before its curves."""

    key: str
    title: str
    unit: str
    values: OfBucket
    style: str = ""
    """Begin of numbered styles; empty: names of the lines."""


def group_figures(series: Series, key: str, group: str) -> Iterator[Figure]:
    """Power against pledge, running and pending jobs, error and output, and targets."""
    power = _of({"power": "power_hs06", "pledge": "pledge_hs06", "due": "due_hs06"}, group)
    running = _of({"single-core": "single_cores", "multicore": "multi_cores"}, group)
    pending = {"single-core": "pending_single_jobs", "multicore": "pending_multi_jobs"}
    error = _of({"error": "error_hs06", "output": "output_hs06"}, group)
    targets = _of({"held back": "held_back_nodes", "helped": "helped_nodes"}, group)
    for plot in (
        _Plot("power", "Power, pledge and due", "HS06", power),
        _Plot("running", "Cores of running jobs", "cores", running),
        _Plot("pending", "Pending jobs", "jobs", _of(pending, group)),
        _Plot("error", "Error and controller output", "HS06 (above 0: over the setpoint)", error),
        _Plot("targets", "Targets", "nodes", targets),
    ):
        yield _figure(plot, series, key, group)


def pool_figures(series: Series) -> Iterator[Figure]:
    """Power of all groups, and idle cores."""
    tops = top_groups(series.groups)

    def power(bucket: Bucket) -> Values:
        points = [bucket.groups[group] for group in tops if group in bucket.groups]
        powers, pledges = ([p.power_hs06 for p in points], [p.pledge_hs06 for p in points])
        return {"power": fsum(powers), "pledge": fsum(pledges)} if bucket.groups else {}

    idle = {
        "idle": "idle_cores",
        "under targets": "idle_target_cores",
        "in grace": "idle_grace_cores",
    }
    for plot in (
        _Plot("power", "Power of all groups", "HS06", power),
        _Plot("idle", "Idle cores", "cores", _of(idle)),
    ):
        yield _figure(plot, series, "pool", "The pool")


def main_figure(series: Series, groups: Sequence[str], marks: Marks) -> Figure:
    """Shortfall of the first groups on one axis, in % of the power present; across the page."""

    def shortfalls(bucket: Bucket) -> Values:
        values: dict[str, Optional[float]] = dict.fromkeys(groups[:LINES]) if bucket.groups else {}
        for group in bucket.groups.keys() & values.keys():
            missing, present = bucket.groups[group].shortfall_hs06, bucket.pool.present_hs06
            values[group] = 100 * missing / present if missing is not None and present else None
        return values

    title = "Shortfall of groups: power that is due and not used"
    plot = _Plot("shortfall", title, "% of the power present", shortfalls, "group")
    return _figure(plot, series, "all", "All groups", marks)


def top_groups(groups: Iterable[str]) -> list[str]:
    """Groups whose parent is not among them: others count with their parent."""
    names = list(groups)
    return [group for group in names if group.rpartition(".")[0] not in names]


def _of(lines: Mapping[str, str], group: str = "") -> OfBucket:
    """Lines of attributes of a group, or of the pool without one."""

    def values(bucket: Bucket) -> Values:
        points: Mapping[str, Any] = {"": bucket.pool, **bucket.groups}
        point = points.get(group)
        return {name: getattr(point, key) for name, key in lines.items()} if point else {}

    return values


def _figure(
    plot: _Plot, series: Series, key: str, subject: str, marks: Optional[Marks] = None
) -> Figure:
    """Figure of a group or the pool, the ``subject``; one with ``marks`` is the main one."""
    broad = marks is not None
    lines = [
        Curve(name, f"{plot.style}{number}" if plot.style else name.replace(" ", "-"), readings)
        for number, (name, readings) in enumerate(curves(series, plot.values).items())
    ]
    begin = f"From {minute(series.since)} to {minute(series.until)} UTC"
    words = described(f"{begin}, in {plot.unit.partition(' (')[0]}.", lines)
    open_times = gaps(series)
    open_seconds = fsum(end - begin for begin, end in open_times)
    return Figure(
        key=f"{key}-{plot.key}",
        title=f"{subject}: {plot.title}",
        caption=plot.title,
        description=f"{words} Not recorded: {span(open_seconds)}." if open_seconds else words,
        across=(series.since, series.until),
        ticks=time_ticks(series.since, series.until, _TIME_TICKS * (1 + broad)),
        unit=plot.unit,
        curves=lines,
        gaps=open_times,
        marks=_spaced(marks or (), series.since, series.until),
        broad=broad,
    )


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
