"""Figures of the page: lines over time of a group, of the pool, and of all groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import fsum
from typing import NamedTuple, Optional

from sharectl.ledger.series import Bucket, Series
from sharectl.report.scale import grouped, minute, percent, short, time_ticks, unit_of
from sharectl.report.series import (
    Layers,
    OfBucket,
    Values,
    curves,
    gaps,
    group_summary,
    mean_of_known,
    points_of,
    ratio,
    sums,
)
from sharectl.report.svg import Curve, Figure, Value, limits_of, svg
from sharectl.times import span

_TIME_TICKS = 5


class FigureKind(NamedTuple):
    """One figure, which each period has on the same axes."""

    key: str
    title: str
    unit: str
    values: OfBucket
    says: Optional[Callable[[Series], str]] = None
    """Caption."""
    style: str = ""
    """Begin of the lines' styles, which are then numbered; empty: their names."""
    summed: bool = False
    """True for sums over time."""
    stacked: bool = False
    whole: bool = False
    crosses: bool = False
    """True for a cross at each incomplete cycle."""
    between: Optional[tuple[float, float]] = None
    note: str = ""


def _of(lines: Mapping[str, str], group: Optional[str] = None) -> OfBucket:
    """Lines of attributes of the pool, or of a group."""

    def values(bucket: Bucket) -> Values:
        point = bucket.pool if group is None else bucket.groups.get(group)
        return {name: getattr(point, key) for name, key in lines.items()} if point else {}

    return values


def group_kinds(
    group: str, layers: Layers, deadband_hs06: float, *, in_cores: bool
) -> list[FigureKind]:
    """Work against pledge, running and pending by size, error and output, and targets.

    Parameters
    ----------
    in_cores
        True to draw pending jobs by the cores they request, else by their number.
    """

    def by_size(key: str, attribute: str, unit: str, *, as_cores: bool = False) -> FigureKind:
        def values(bucket: Bucket) -> Values:
            if group not in bucket.groups:
                return {}
            amounts = getattr(bucket.groups[group], attribute)
            return {
                name: fsum(amounts.get(size, 0.0) * (size if as_cores else 1) for size in sizes)
                for name, sizes in layers.items()
            }

        title = f"{key.capitalize()}, by job size"
        return FigureKind(key, title, unit, values, style="layer", stacked=True, whole=True)

    def work_says(series: Series) -> str:
        done = group_summary(group, points_of([series], group))["work_ratio"]
        return "" if done is None else f"{percent(done)} of the pledge"

    def error_says(series: Series) -> str:
        points = points_of([series], group)
        error = group_summary(group, points)["error_rms_hs06"]
        return f"RMS error {short(error)} HS06" if points else ""

    pending = "cores requested" if in_cores else "jobs"
    work = {"work": "work_hs06_seconds", "pledge": "pledge_hs06_seconds"}
    error = {"error": "error_hs06", "output": "output_hs06"}
    targets = {"held back": "held_back_nodes", "helped": "helped_nodes"}
    return [
        FigureKind(
            "work", "Work against pledge", "HS06-hours", _of(work, group), work_says, summed=True
        ),
        by_size("running", "cores_by_size", "cores"),
        by_size("pending", "pending_by_size", pending, as_cores=in_cores),
        FigureKind(
            "error",
            "Error and controller output",
            "HS06",
            _of(error, group),
            error_says,
            between=(-deadband_hs06, deadband_hs06) if deadband_hs06 > 0 else None,
            note=" (above 0: over the setpoint)",
        ),
        FigureKind("targets", "Targets", "nodes", _of(targets, group), whole=True),
    ]


def top_groups(groups: Sequence[str]) -> list[str]:
    """Groups whose parent is not among them: others count with their parent."""
    return [group for group in groups if group.rpartition(".")[0] not in groups]


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
        FigureKind("power", "Power of all groups", "HS06", power, lambda _series: ""),
        FigureKind("idle", "Idle cores", "cores", _of(idle), whole=True),
        FigureKind("targets", "Nodes under targets", "nodes", targets, whole=True),
        FigureKind("cycles", "Duration of cycles", "seconds", duration, _cycles_say, crosses=True),
    ]


def overview_kinds(groups: Sequence[str]) -> list[FigureKind]:
    """Error of groups on one axis, in % of their shares and in HS06."""

    def values(bucket: Bucket, *, of_shares: bool) -> Values:
        errors: dict[str, Optional[float]] = {}
        for group in groups if bucket.groups else ():
            point = bucket.groups.get(group)
            if point is None or not of_shares:
                errors[group] = point.error_hs06 if point else None
            else:
                part = ratio(point.error_hs06, point.power_hs06 - point.error_hs06)
                errors[group] = None if part is None else 100 * part
        return errors

    return [
        FigureKind(
            key,
            f"Error of groups, {unit}",
            unit,
            partial(values, of_shares=of_shares),
            partial(_distance_says, groups=groups, of_shares=of_shares),
            style="group",
            note=" (above 0: over it)",
        )
        for key, unit, of_shares in (
            ("error-share", "% of the share", True),
            ("error-hs06", "HS06", False),
        )
    ]


def drawings(
    kind: FigureKind, periods: Sequence[Series], key: str, subject: str, names: Sequence[str]
) -> list[dict[str, str]]:
    """The figure of each period: key, title, says, svg, and missing, in the place of an empty svg.

    Parameters
    ----------
    key
        Begin of the identifiers.
    subject
        Group or pool, for titles.
    names
        Of the periods; one empty string if there is only one.
    """
    shown = [_curves(kind, series) for series in periods]
    limits = limits_of(shown, stacked=kind.stacked, also=kind.between or ())
    seconds = max(series.until - series.since for series in periods)
    drawn = []
    for number, (series, lines, name) in enumerate(zip(periods, shown, names), start=1):
        title, end = f"{kind.title}{f', {name}' if name else ''}", series.since + seconds
        figure = Figure(
            key=f"{key}-{kind.key}{f'-{number}' if name else ''}",
            title=f"{subject}: {title}",
            description=_description(kind, series, lines),
            across=(series.since, end),
            ticks=time_ticks(series.since, end, _TIME_TICKS),
            up=limits,
            unit=unit_of(limits, kind.unit, whole=kind.whole),
            curves=_layers_in_use(lines) if kind.stacked else lines,
            stacked=kind.stacked,
            # Only a longer period fills the rest of the axis.
            gaps=[*gaps(series), *([(series.until, end)] if series.until < end else [])],
            crosses=[
                bucket.start + series.bucket_seconds / 2
                for bucket in series.buckets
                if kind.crosses and bucket.pool.complete_cycles < bucket.pool.cycles
            ],
            between=kind.between,
            note=kind.note,
        )
        drawable = any(value.mean is not None for line in lines for value in line.values)
        unknown = "Not known: no complete cycle of this period recorded it."
        drawn.append(
            {
                "key": kind.key,
                "title": title,
                "says": kind.says(series) if kind.says else _means(kind, series),
                "svg": svg(figure) if drawable else "",
                "missing": unknown if series.buckets else "No cycle in this period.",
            }
        )
    return drawn


def _curves(kind: FigureKind, series: Series) -> list[Curve]:
    lines = (sums if kind.summed else curves)(series, kind.values)
    if kind.style == "group":  # bands of several groups would hide each other
        lines = {name: [Value(*value[:2]) for value in values] for name, values in lines.items()}
    return [
        Curve(name, f"{kind.style}{number}" if kind.style else name.replace(" ", "-"), values)
        for number, (name, values) in enumerate(lines.items())
    ]


def _layers_in_use(layers: Sequence[Curve]) -> Sequence[Curve]:
    used = [layer for layer in layers if any(value.mean for value in layer.values)]
    return used or layers[:1]


def _description(kind: FigureKind, series: Series, lines: Sequence[Curve]) -> str:
    """The figure in words, for readers who do not see it."""
    sentences = [f"From {minute(series.since)} to {minute(series.until)} UTC, in {kind.unit}."]
    for line in lines:
        means = [value.mean for value in line.values if value.mean is not None]
        if means:
            sentences.append(
                f"{line.name}: from {short(min(means))} to {short(max(means))}, at the end "
                f"{short(means[-1])}."
            )
    open_seconds = sum(end - begin for begin, end in gaps(series))
    if open_seconds:
        sentences.append(f"Not recorded: {span(open_seconds)}.")
    return " ".join(sentences)


def _means(kind: FigureKind, series: Series) -> str:
    """Means over complete cycles, such as ``mean 5 held back, 2 helped``."""
    rows = [(kind.values(bucket), bucket.pool.complete_cycles) for bucket in series.buckets]
    if kind.stacked:
        unit = kind.unit.partition(" ")[0]
        rows = [({unit: fsum(value or 0.0 for value in row.values())}, n) for row, n in rows if row]
    means = {
        name: mean_of_known((row.get(name), weight) for row, weight in rows)
        for name in dict.fromkeys(name for row, _weight in rows for name in row)
    }
    words = [
        f"{short(mean)} {kind.unit if name == kind.key else name}"
        for name, mean in means.items()
        if mean is not None
    ]
    return f"mean {', '.join(words)}" if words else ""


def _distance_says(series: Series, *, groups: Sequence[str], of_shares: bool) -> str:
    """Mean of the sum of the groups' absolute errors."""
    points = [point for group in groups for point in points_of([series], group)]
    cycles = sum(bucket.pool.complete_cycles for bucket in series.buckets)
    error = sum(abs(point.error_hs06) * point.cycles for point in points)
    share = sum((point.power_hs06 - point.error_hs06) * point.cycles for point in points)
    if of_shares:
        return f"off by {percent(error / share)} of the shares" if share > 0 else ""
    return f"off by {short(error / cycles)} HS06 in all" if cycles else ""


def _cycles_say(series: Series) -> str:
    lost = sum(bucket.pool.cycles - bucket.pool.complete_cycles for bucket in series.buckets)
    return f"{grouped(lost)} incomplete" if lost else "all complete" if series.buckets else ""
