"""Figures of the page: of a group, of the pool, and of all groups on one axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Optional

from sharectl.ledger.series import GroupPoint, PoolPoint, Series
from sharectl.report import series as curves
from sharectl.report.scale import Tick, grouped, minute, short, time_ticks, unit_of
from sharectl.report.series import group_summary, mean_of_known, points_of
from sharectl.report.svg import Curve, Figure, Value, limits_of, svg
from sharectl.times import span

_BETWEEN_RATIO = 0.02
"""Room between two periods in one figure, as a part of their time."""
_TIME_TICKS, _PART_TICKS = 5, 3


@dataclass(frozen=True)
class FigureKind:
    """One figure, for each period or for all of them together."""

    key: str
    title: str
    words: str
    """Unit of its values."""
    curves: Callable[[Series], Sequence[Curve]]
    says: Callable[[Series], str]
    """Numbers of the figure in a few words."""
    stacked: bool = False
    whole: bool = False
    crosses: bool = False
    between: Optional[tuple[float, float]] = None
    note: str = ""


class Drawing(NamedTuple):
    """A figure with its caption, or a sentence in its place."""

    key: str
    title: str
    says: str
    svg: str
    missing: str


def group_kinds(
    group: str, layers: curves.Layers, deadband_hs06: float, *, in_cores: bool
) -> list[FigureKind]:
    """Work against pledge, running and pending by size, error and output, and targets.

    Parameters
    ----------
    in_cores
        Whether pending jobs are drawn by the cores they request, not by their number.
    """

    def pending(point: GroupPoint) -> dict[int, float]:
        return {
            size: jobs * (size if in_cores else 1) for size, jobs in point.pending_by_size.items()
        }

    def of_group(name: str, value: curves.OfGroup) -> Callable[[Series], Curve]:
        return lambda series: curves.group_curve(series, group, name, value)

    error = of_group("error", lambda point: point.error_hs06)
    output = of_group("output", lambda point: point.output_hs06)
    held_back = of_group("held back", lambda point: point.held_back_nodes)
    helped = of_group("helped", lambda point: point.helped_nodes)
    requested = "cores" if in_cores else "jobs"
    return [
        FigureKind(
            "work",
            "Work against pledge",
            "HS06-hours",
            lambda series: [
                curves.cumulative(series, group, "work", lambda point: point.work_hs06_seconds),
                curves.cumulative(series, group, "pledge", lambda point: point.pledge_hs06_seconds),
            ],
            lambda series: _work_says(series, group),
        ),
        FigureKind(
            "running",
            "Running, by job size",
            "cores",
            lambda series: curves.layer_curves(
                series, group, layers, lambda point: point.cores_by_size
            ),
            lambda series: _mean_says(
                series, group, lambda point: sum(point.cores_by_size.values()), "cores"
            ),
            stacked=True,
            whole=True,
        ),
        FigureKind(
            "pending",
            "Pending, by job size",
            "cores requested" if in_cores else "jobs",
            lambda series: curves.layer_curves(series, group, layers, pending),
            lambda series: _mean_says(
                series, group, lambda point: sum(pending(point).values()), requested
            ),
            stacked=True,
            whole=True,
        ),
        FigureKind(
            "error",
            "Error and controller output",
            "HS06",
            lambda series: [error(series), output(series)],
            lambda series: _error_says(series, group),
            between=(-deadband_hs06, deadband_hs06) if deadband_hs06 > 0 else None,
            note=" (above 0: over the setpoint)",
        ),
        FigureKind(
            "targets",
            "Targets",
            "nodes",
            lambda series: [held_back(series), helped(series)],
            lambda series: _targets_says(series, group),
            whole=True,
        ),
    ]


def top_groups(groups: Sequence[str]) -> list[str]:
    """Groups whose parent is not among them: others count with their parent."""
    return [group for group in groups if group.rpartition(".")[0] not in groups]


def pool_kinds(groups: Sequence[str]) -> list[FigureKind]:
    """Power of all groups, idle cores, nodes under targets, and durations of cycles."""
    tops = top_groups(groups)
    idle: tuple[tuple[str, curves.OfPool], ...] = (
        ("idle", lambda point: point.idle_cores),
        ("under targets", lambda point: point.idle_target_cores),
        ("in grace", lambda point: point.idle_grace_cores),
    )

    def idle_says(series: Series) -> str:
        means = [(_pool_says(series, value, "cores"), name) for name, value in idle]
        return ", ".join(
            mean if name == "idle" else f"{mean} {name}" for mean, name in means if mean
        )

    return [
        FigureKind(
            "power",
            "Power of all groups",
            "HS06",
            lambda series: [
                curves.sum_curve(series, tops, "power", lambda point: point.power_hs06),
                curves.sum_curve(series, tops, "pledge", lambda point: point.pledge_hs06),
            ],
            lambda _series: "",
        ),
        FigureKind(
            "idle",
            "Idle cores",
            "cores",
            lambda series: [curves.pool_curve(series, name, value) for name, value in idle],
            idle_says,
            whole=True,
        ),
        FigureKind(
            "targets",
            "Nodes under targets",
            "nodes",
            lambda series: [curves.pool_curve(series, "targets", lambda point: point.targets)],
            lambda series: _pool_says(series, lambda point: point.targets, "nodes"),
            whole=True,
        ),
        FigureKind(
            "cycles",
            "Duration of cycles",
            "seconds",
            lambda series: [curves.pool_curve(series, "duration", lambda point: point.seconds)],
            _cycles_says,
            crosses=True,
        ),
    ]


def overview_kinds(groups: Sequence[str]) -> list[FigureKind]:
    """Error of groups on one axis, in % of their shares and in HS06."""

    def kind(key: str, words: str, value: curves.OfGroup, unit: str) -> FigureKind:
        return FigureKind(
            key,
            "Error of groups",
            words,
            lambda series: [
                # Bands of several groups would hide each other.
                _without_bands(curves.group_curve(series, group, group, value, f"group{number}"))
                for number, group in enumerate(groups)
            ],
            lambda series: _distance_says(series, groups, unit),
            note=" (above 0: over it)",
        )

    return [
        kind("error-share", "% of the share", curves.error_percent, "%"),
        kind("error-hs06", "HS06", lambda point: point.error_hs06, "HS06"),
    ]


def _without_bands(curve: Curve) -> Curve:
    return curve._replace(values=[Value(value.place, value.mean) for value in curve.values])


def drawings(
    kind: FigureKind, periods: Sequence[Series], key: str, subject: str, names: Sequence[str]
) -> list[Drawing]:
    """A figure for each period, on the same axes.

    Parameters
    ----------
    key
        Begin of the identifiers.
    subject
        Group or pool, for titles.
    names
        Of the periods; one empty string if there is only one.
    """
    shown = [kind.curves(series) for series in periods]
    limits = limits_of(shown, stacked=kind.stacked, also=kind.between or ())
    seconds = max(series.until - series.since for series in periods)
    return [
        _drawing(
            kind,
            Figure(
                key=f"{key}-{kind.key}{f'-{number}' if name else ''}",
                title=f"{subject}: {kind.title}{f', {name}' if name else ''}",
                description=_description(kind, series, drawn),
                across=(series.since, series.since + seconds),
                ticks=time_ticks(series.since, series.since + seconds, _TIME_TICKS),
                up=limits,
                unit=unit_of(max(map(abs, limits[:2])), kind.words, whole=kind.whole),
                curves=_layers_in_use(drawn) if kind.stacked else drawn,
                stacked=kind.stacked,
                gaps=[*curves.gaps(series), *_beyond(series, seconds)],
                crosses=curves.incomplete(series) if kind.crosses else (),
                between=kind.between,
                note=kind.note,
            ),
            f"{kind.title}{f', {name}' if name else ''}",
            kind.says(series),
            recorded=bool(series.buckets),
        )
        for number, (series, drawn, name) in enumerate(zip(periods, shown, names), start=1)
    ]


def side_by_side(kind: FigureKind, periods: Sequence[Series], names: Sequence[str]) -> Drawing:
    """One figure of all groups, with the periods beside each other on one axis."""
    between = _BETWEEN_RATIO * sum(series.until - series.since for series in periods)
    shown: dict[str, Curve] = {}
    gaps: list[tuple[float, float]] = []
    marks: list[tuple[float, str]] = []
    ticks: list[Tick] = []
    place: float = periods[0].since
    for series, name in zip(periods, names):
        shift = place - series.since
        count = max(_PART_TICKS, _TIME_TICKS // len(periods))
        ticks += [
            Tick(value + shift, label)
            for value, label in time_ticks(series.since, series.until, count)
        ]
        gaps += [(place - between, place)] if marks else []
        gaps += [(begin + shift, end + shift) for begin, end in curves.gaps(series)]
        marks.append((place, name))
        for curve in kind.curves(series):
            moved = [Value(value.place + shift, value.mean) for value in curve.values]
            before = shown[curve.style].values if curve.style in shown else ()
            shown[curve.style] = curve._replace(values=[*before, *moved])
        place = series.until + shift + between
    drawn = list(shown.values())
    limits = limits_of([drawn])
    words = f"{kind.title}, {kind.words}"
    figure = Figure(
        key=f"all-{kind.key}",
        title=f"All groups: {words}",
        description=" ".join(_description(kind, series, kind.curves(series)) for series in periods),
        across=(periods[0].since, place - between),
        ticks=ticks,
        up=limits,
        unit=unit_of(max(map(abs, limits[:2])), kind.words),
        curves=drawn,
        gaps=gaps,
        note=kind.note,
        marks=marks if len(periods) > 1 else (),
    )
    says = "; ".join(f"{name} {kind.says(series)}".strip() for series, name in zip(periods, names))
    return _drawing(kind, figure, words, says, recorded=True)


def _drawing(kind: FigureKind, figure: Figure, title: str, says: str, *, recorded: bool) -> Drawing:
    known = any(value.mean is not None for curve in figure.curves for value in curve.values)
    why = "Not known: no complete cycle of this period recorded it."
    missing = why if recorded else "No cycle in this period."
    return Drawing(kind.key, title, says, svg(figure) if known else "", missing)


def _beyond(series: Series, seconds: int) -> list[tuple[float, float]]:
    """The part of the axis that only a longer period fills."""
    end = series.since + seconds
    return [(series.until, end)] if series.until < end else []


def _layers_in_use(layers: Sequence[Curve]) -> Sequence[Curve]:
    used = [curve for curve in layers if any(value.mean for value in curve.values)]
    return used or layers[:1]


def _description(kind: FigureKind, series: Series, shown: Sequence[Curve]) -> str:
    """The figure in words, for readers who do not see it."""
    sentences = [f"From {minute(series.since)} to {minute(series.until)} UTC, in {kind.words}."]
    for curve in shown:
        known = [value.mean for value in curve.values if value.mean is not None]
        if known:
            sentences.append(
                f"{curve.name}: from {short(min(known))} to {short(max(known))}, at the end "
                f"{short(known[-1])}."
            )
    open_seconds = sum(end - begin for begin, end in curves.gaps(series))
    if open_seconds:
        sentences.append(f"Not recorded: {span(open_seconds)}.")
    return " ".join(sentences)


def _work_says(series: Series, group: str) -> str:
    ratio = group_summary(group, points_of([series], group)).work_ratio
    return "" if ratio is None else f"{ratio:.1%} of the pledge"


def _error_says(series: Series, group: str) -> str:
    points = points_of([series], group)
    return f"RMS error {short(group_summary(group, points).error_rms_hs06)} HS06" if points else ""


def _targets_says(series: Series, group: str) -> str:
    summary = group_summary(group, points_of([series], group))
    if summary.held_back_nodes is None or summary.helped_nodes is None:
        return ""
    return f"mean {short(summary.held_back_nodes)} held back, {short(summary.helped_nodes)} helped"


def _mean_says(series: Series, group: str, value: curves.OfGroup, words: str) -> str:
    points = points_of([series], group)
    return _mean_words(mean_of_known((value(point), point.cycles) for point in points), words)


def _pool_says(series: Series, value: Callable[[PoolPoint], Optional[float]], words: str) -> str:
    pools = [bucket.pool for bucket in series.buckets]
    return _mean_words(mean_of_known((value(pool), pool.complete_cycles) for pool in pools), words)


def _mean_words(mean: Optional[float], words: str) -> str:
    return "" if mean is None else f"mean {short(mean)} {words}"


def _distance_says(series: Series, groups: Sequence[str], unit: str) -> str:
    """Mean of the sum of the groups' absolute errors, in HS06 or in % of their shares."""
    points = [point for group in groups for point in points_of([series], group)]
    cycles = sum(bucket.pool.complete_cycles for bucket in series.buckets)
    error = sum(abs(point.error_hs06) * point.cycles for point in points)
    share = sum((point.power_hs06 - point.error_hs06) * point.cycles for point in points)
    if unit == "%":
        return f"off by {error / share:.1%} of the shares" if share > 0 else ""
    return f"off by {short(error / cycles)} HS06 in all" if cycles else ""


def _cycles_says(series: Series) -> str:
    lost = sum(bucket.pool.cycles - bucket.pool.complete_cycles for bucket in series.buckets)
    return f"{grouped(lost)} incomplete" if lost else "all complete" if series.buckets else ""
