"""Which figures a group and the pool have, over one period or over two on the same axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Optional

from sharectl.ledger.series import GroupPoint, PoolPoint, Series
from sharectl.report import series as curves
from sharectl.report.series import mean_of_known
from sharectl.report.svg import (
    Axis,
    Curve,
    Figure,
    Markup,
    Part,
    Value,
    drawn,
    element,
    grouped,
    limits_of,
    short,
    told,
    unit_of,
)
from sharectl.times import span

_BETWEEN_RATIO = 0.02
"""Room between two periods in one panel, as a part of their time."""


@dataclass(frozen=True)
class Drawing:
    """What all figures of a page have in common."""

    periods: Sequence[Series]
    layers: curves.Layers
    pending_in_cores: bool
    """Whether pending jobs are drawn by the cores they request; by their number if not."""
    deadband_hs06: float = 0.0
    seconds: int = field(init=False)
    """Time from left to right: the longest period's."""

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "seconds", max(series.until - series.since for series in self.periods)
        )


@dataclass(frozen=True)
class Kind:
    """One figure, for each period."""

    key: str
    title: str
    words: str
    """Unit of its values."""
    curves: Callable[[Series], Sequence[Curve]]
    says: Callable[[Series], str]
    """What the figure shows, in a few words with numbers."""
    stacked: bool = False
    whole: bool = False
    crosses: bool = False
    between: Optional[tuple[float, float]] = None
    note: str = ""


def group_kinds(drawing: Drawing, group: str) -> tuple[Kind, ...]:
    """Work against pledge, running and pending by size, error and output, and the group's targets."""
    pending = (
        curves.pending_cores if drawing.pending_in_cores else (lambda point: point.pending_by_size)
    )
    deadband = drawing.deadband_hs06
    return (
        Kind(
            "work",
            "Work against pledge",
            "HS06-hours",
            lambda series: (
                curves.cumulative(series, group, "work", lambda point: point.work_hs06_seconds),
                curves.cumulative(series, group, "pledge", lambda point: point.pledge_hs06_seconds),
            ),
            lambda series: _work_says(series, group),
        ),
        Kind(
            "running",
            "Running, by job size",
            "cores",
            lambda series: curves.layer_curves(
                series, group, drawing.layers, lambda point: point.cores_by_size
            ),
            lambda series: _mean_says(
                series, group, lambda point: sum(point.cores_by_size.values()), "cores"
            ),
            stacked=True,
            whole=True,
        ),
        Kind(
            "pending",
            "Pending, by job size",
            "cores requested" if drawing.pending_in_cores else "jobs",
            lambda series: curves.layer_curves(series, group, drawing.layers, pending),
            lambda series: _mean_says(
                series,
                group,
                lambda point: sum(pending(point).values()),
                "cores" if drawing.pending_in_cores else "jobs",
            ),
            stacked=True,
            whole=True,
        ),
        Kind(
            "error",
            "Error and controller output",
            "HS06",
            lambda series: (
                curves.group_curve(series, group, "error", lambda point: point.error_hs06),
                curves.group_curve(series, group, "output", lambda point: point.output_hs06),
            ),
            lambda series: _error_says(series, group),
            between=(-deadband, deadband) if deadband > 0 else None,
            note=" (above 0: over the setpoint)",
        ),
        Kind(
            "targets",
            "Targets",
            "nodes",
            lambda series: (
                curves.group_curve(series, group, "held back", lambda point: point.held_back_nodes),
                curves.group_curve(series, group, "helped", lambda point: point.helped_nodes),
            ),
            lambda series: _targets_says(series, group),
            whole=True,
        ),
    )


def pool_kinds(groups: Sequence[str]) -> tuple[Kind, ...]:
    """Power of all groups, idle cores, targets, and how cycles went.

    Parameters
    ----------
    groups
        All groups; those whose parent is among them count with it.
    """
    tops = [group for group in groups if group.rpartition(".")[0] not in groups]
    return (
        Kind(
            "power",
            "Power of all groups",
            "HS06",
            lambda series: (
                curves.sum_curve(series, tops, "power", lambda point: point.power_hs06),
                curves.sum_curve(series, tops, "pledge", lambda point: point.pledge_hs06),
            ),
            lambda _series: "",
        ),
        Kind(
            "idle",
            "Idle cores",
            "cores",
            lambda series: (
                curves.pool_curve(series, "idle", lambda point: point.idle_cores),
                curves.pool_curve(series, "under targets", lambda point: point.idle_target_cores),
                curves.pool_curve(series, "in grace", lambda point: point.idle_grace_cores),
            ),
            _idle_says,
            whole=True,
        ),
        Kind(
            "targets",
            "Nodes under targets",
            "nodes",
            lambda series: (curves.pool_curve(series, "targets", lambda point: point.targets),),
            lambda series: _pool_says(series, lambda point: point.targets, "nodes"),
            whole=True,
        ),
        Kind(
            "cycles",
            "Duration of cycles",
            "seconds",
            lambda series: (curves.pool_curve(series, "duration", lambda point: point.seconds),),
            _cycles_says,
            crosses=True,
        ),
    )


def overview_kinds(groups: Sequence[str]) -> tuple[Kind, ...]:
    """Error of groups on one axis, in % of their shares and in HS06."""

    def kind(
        key: str, title: str, words: str, value: Callable[[GroupPoint], Optional[float]], says: str
    ) -> Kind:
        return Kind(
            key,
            title,
            words,
            lambda series: [
                replace(
                    curves.group_curve(series, group, "", value), name=group, style=f"group{number}"
                )
                for number, group in enumerate(groups)
            ],
            lambda series: _distance_says(series, groups, says),
            note=" (above 0: over it)",
        )

    return (
        kind("error-share", "Error of groups", "% of the share", curves.error_percent, "%"),
        kind("error-hs06", "Error of groups", "HS06", lambda point: point.error_hs06, "HS06"),
    )


def panel(drawing: Drawing, kind: Kind, key: str, subject: str, names: Sequence[str]) -> Markup:
    """A ``figure`` element with all periods beside each other on one axis.

    Parameters as of `figures`.
    """
    lengths = [series.until - series.since for series in drawing.periods]
    begin, between = drawing.periods[0].since, _BETWEEN_RATIO * sum(lengths)
    parts: list[Part] = []
    shown: dict[str, Curve] = {}
    gaps: list[tuple[float, float]] = []
    place = float(begin)
    for series, name in zip(drawing.periods, names):
        shift = place - series.since
        parts.append(Part(name, series.since, series.until, shift))
        gaps += [(start + shift, end + shift) for start, end in curves.gaps(series)]
        for curve in kind.curves(series):
            # Of several groups the bands of peaks would hide each other.
            moved = [Value(value.seconds + shift, value.mean) for value in curve.values]
            shown[curve.style] = replace(
                curve, values=[*(shown[curve.style].values if curve.style in shown else ()), *moved]
            )
        place += series.until - series.since + between
        gaps.append((place - between, place))
    gaps.pop()
    found = list(shown.values())
    limits = limits_of([found])
    axis = Axis(
        place - between - begin,
        limits,
        unit_of(max(abs(limits.least), abs(limits.most)), kind.words),
    )
    says = "; ".join(
        f"{name} {kind.says(series)}".strip() for series, name in zip(drawing.periods, names)
    )
    figure = Figure(
        key=f"{key}-{kind.key}",
        title=f"{subject}: {kind.title}, {kind.words}",
        description=" ".join(
            _description(kind, series, kind.curves(series)) for series in drawing.periods
        ),
        since=begin,
        curves=found,
        axis=axis,
        gaps=gaps,
        note=kind.note,
        parts=parts if len(parts) > 1 else (),
    )
    return _captioned(kind.key, f"{kind.title}, {kind.words}", says, figure, recorded=True)


def figures(
    drawing: Drawing, kind: Kind, key: str, subject: str, names: Sequence[str]
) -> list[Markup]:
    """A ``figure`` element for each period, on the same axes; where a period has nothing to show, it says so.

    Parameters
    ----------
    key
        Begin of the identifiers.
    subject
        Whose figure it is, for its title.
    names
        Of the periods; empty strings where there is only one.
    """
    found = [kind.curves(series) for series in drawing.periods]
    limits = limits_of(found, stacked=kind.stacked, also=kind.between or ())
    largest = max(abs(limits.least), abs(limits.most))
    axis = Axis(drawing.seconds, limits, unit_of(largest, kind.words, whole=kind.whole))
    return [
        _figure(
            kind,
            Figure(
                key=f"{key}-{kind.key}{'' if len(names) == 1 else f'-{number + 1}'}",
                title=f"{subject}: {kind.title}{f', {name}' if name else ''}",
                description=_description(kind, series, shown),
                since=series.since,
                curves=_shown(shown, stacked=kind.stacked),
                axis=axis,
                stacked=kind.stacked,
                gaps=[*curves.gaps(series), *_beyond(series, drawing.seconds)],
                marks=curves.incomplete(series) if kind.crosses else (),
                between=kind.between,
                note=kind.note,
            ),
            series,
            name,
        )
        for number, (series, shown, name) in enumerate(zip(drawing.periods, found, names))
    ]


def _figure(kind: Kind, figure: Figure, series: Series, name: str) -> Markup:
    title = f"{kind.title}{f', {name}' if name else ''}"
    return _captioned(kind.key, title, kind.says(series), figure, recorded=bool(series.buckets))


def _captioned(key: str, title: str, says: str, figure: Figure, *, recorded: bool) -> Markup:
    """A figure with its caption; where nothing is known, a sentence in its place."""
    caption = element("figcaption", element("h3", title), element("span", says, class_="says"))
    if any(value.mean is not None for curve in figure.curves for value in curve.values):
        return element("figure", caption, drawn(figure), class_=key)
    missing = (
        "Not known: no complete cycle of this period recorded it."
        if recorded
        else "No cycle in this period."
    )
    return element("figure", caption, element("p", missing, class_="small empty"), class_=key)


def _shown(found: Sequence[Curve], *, stacked: bool) -> Sequence[Curve]:
    """Without layers that hold nothing in this period."""
    if not stacked:
        return found
    return [curve for curve in found if any(value.mean for value in curve.values)] or found[:1]


def _beyond(series: Series, seconds: int) -> list[tuple[float, float]]:
    """What the other period's axis has more of."""
    end = series.since + seconds
    return [(float(series.until), float(end))] if series.until < end else []


def _description(kind: Kind, series: Series, shown: Sequence[Curve]) -> str:
    """The figure in words, for those who do not see it."""
    said = [f"From {told(series.since)} to {told(series.until)} UTC, in {kind.words}."]
    for curve in shown:
        known = [value.mean for value in curve.values if value.mean is not None]
        if known:
            said.append(
                f"{curve.name}: from {short(min(known))} to {short(max(known))}, at the end "
                f"{short(known[-1])}."
            )
    open_seconds = sum(end - begin for begin, end in curves.gaps(series))
    if open_seconds:
        said.append(f"Not recorded: {span(open_seconds)}.")
    return " ".join(said)


def _points(series: Series, group: str) -> list[GroupPoint]:
    return [bucket.groups[group] for bucket in series.buckets if group in bucket.groups]


def _work_says(series: Series, group: str) -> str:
    points = _points(series, group)
    pledged = sum(point.pledge_hs06_seconds for point in points)
    worked = sum(point.work_hs06_seconds for point in points)
    return f"{worked / pledged:.1%} of the pledge" if pledged > 0 else ""


def _mean_says(series: Series, group: str, value: Callable[[GroupPoint], float], words: str) -> str:
    points = _points(series, group)
    cycles = sum(point.cycles for point in points)
    return (
        f"mean {short(sum(value(point) * point.cycles for point in points) / cycles)} {words}"
        if cycles
        else ""
    )


def _pool_says(series: Series, value: Callable[[PoolPoint], Optional[float]], words: str) -> str:
    mean = mean_of_known(
        (value(bucket.pool), bucket.pool.complete_cycles) for bucket in series.buckets
    )
    return "" if mean is None else f"mean {short(mean)} {words}"


def _idle_says(series: Series) -> str:
    parts = (
        ("", lambda point: point.idle_cores),
        (" under targets", lambda point: point.idle_target_cores),
        (" in grace", lambda point: point.idle_grace_cores),
    )
    said = [(_pool_says(series, value, "cores"), words) for words, value in parts]
    return ", ".join(f"{mean}{words}" for mean, words in said if mean)


def _targets_says(series: Series, group: str) -> str:
    points = _points(series, group)
    held_back = mean_of_known((point.held_back_nodes, point.cycles) for point in points)
    helped = mean_of_known((point.helped_nodes, point.cycles) for point in points)
    if held_back is None or helped is None:
        return ""
    return f"mean {short(held_back)} held back, {short(helped)} helped"


def _distance_says(series: Series, groups: Sequence[str], words: str) -> str:
    """Mean of the sum of the groups' errors without their signs, in HS06 or in % of the groups' shares."""
    points = [point for group in groups for point in _points(series, group)]
    cycles = sum(bucket.pool.complete_cycles for bucket in series.buckets)
    error = sum(abs(point.error_hs06) * point.cycles for point in points)
    share = sum((point.power_hs06 - point.error_hs06) * point.cycles for point in points)
    if words == "%":
        return f"off by {error / share:.1%} of the shares" if share > 0 else ""
    return f"off by {short(error / cycles)} HS06 in all" if cycles else ""


def _error_says(series: Series, group: str) -> str:
    points = _points(series, group)
    cycles = sum(point.cycles for point in points)
    if not cycles:
        return ""
    square: float = sum(point.error_rms_hs06**2 * point.cycles for point in points) / cycles
    return f"RMS error {short(square**0.5)} HS06"


def _cycles_says(series: Series) -> str:
    lost = sum(bucket.pool.cycles - bucket.pool.complete_cycles for bucket in series.buckets)
    return f"{grouped(lost)} incomplete" if lost else "all complete" if series.buckets else ""
