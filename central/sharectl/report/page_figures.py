"""Figures of the page: lines over time of a group, of the pool, and of all groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import NamedTuple, Optional

from sharectl.ledger.series import Bucket, Series
from sharectl.report import svg
from sharectl.report.scale import minute, time_ticks
from sharectl.report.series import (
    Layers,
    OfBucket,
    Values,
    curves,
    gaps,
    sums,
)
from sharectl.report.svg import Curve, Figure, described
from sharectl.times import span

_TIME_TICKS = 5


class FigureKind(NamedTuple):
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


def _of(lines: Mapping[str, str], group: Optional[str] = None) -> OfBucket:
    """Lines of attributes of the pool, or of a group."""

    def values(bucket: Bucket) -> Values:
        point = bucket.pool if group is None else bucket.groups.get(group)
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

        title = f"{key.capitalize()}, by job size"
        return FigureKind(key, title, unit, values, style="layer")

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
    kind: FigureKind, periods: Sequence[Series], key: str, subject: str, names: Sequence[str]
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
                between=kind.between,
                broad=kind.broad,
                missing="" if drawable else missing,
            )
        )
    return svg.drawings(figures)


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
