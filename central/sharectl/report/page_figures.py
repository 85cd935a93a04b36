"""Figures of the page: of a group, of the pool, and of all groups on one axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Optional

from sharectl.ledger.series import GroupPoint, Series
from sharectl.report.scale import Tick, grouped, minute, short, time_ticks, unit_of
from sharectl.report.series import (
    Layers,
    Line,
    OfBucket,
    OfGroup,
    cumulative,
    curve,
    error_percent,
    gaps,
    group_summary,
    incomplete,
    layer_lines,
    mean_of_known,
    of_group,
    of_groups,
    of_pool,
    points_of,
)
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
    lines: Sequence[Line]
    says: Callable[[Series], str] = lambda _series: ""
    """Numbers of the figure in a few words."""
    cumulative: bool = False
    """True if lines are sums over time."""
    stacked: bool = False
    whole: bool = False
    crosses: bool = False
    between: Optional[tuple[float, float]] = None
    note: str = ""

    def curves(self, series: Series) -> list[Curve]:
        """Curves of a period."""
        draw = cumulative if self.cumulative else curve
        return [draw(series, line) for line in self.lines]


class Drawing(NamedTuple):
    """A figure with its caption, or a sentence in its place."""

    key: str
    title: str
    says: str
    svg: str
    missing: str


def group_kinds(
    group: str, layers: Layers, deadband_hs06: float, *, in_cores: bool
) -> list[FigureKind]:
    """Work against pledge, running and pending by size, error and output, and targets.

    Parameters
    ----------
    in_cores
        True to draw pending jobs by the cores they request, else by their number.
    """
    work = Line("work", of_group(group, lambda point: point.work_hs06_seconds))
    pledge = Line("pledge", of_group(group, lambda point: point.pledge_hs06_seconds))
    error = Line("error", of_group(group, lambda point: point.error_hs06))
    output = Line("output", of_group(group, lambda point: point.output_hs06))
    held_back = Line("held back", of_group(group, lambda point: point.held_back_nodes))
    helped = Line("helped", of_group(group, lambda point: point.helped_nodes))
    unit = "cores" if in_cores else "jobs"

    def running(point: GroupPoint) -> Mapping[int, float]:
        return point.cores_by_size

    def pending(point: GroupPoint) -> Mapping[int, float]:
        return {
            size: jobs * (size if in_cores else 1) for size, jobs in point.pending_by_size.items()
        }

    return [
        FigureKind(
            "work",
            "Work against pledge",
            "HS06-hours",
            [work, pledge],
            lambda series: _work_says(series, group),
            cumulative=True,
        ),
        _by_size("running", "cores", "cores", group, layers, running),
        _by_size("pending", "cores requested" if in_cores else unit, unit, group, layers, pending),
        FigureKind(
            "error",
            "Error and controller output",
            "HS06",
            [error, output],
            lambda series: _error_says(series, group),
            between=(-deadband_hs06, deadband_hs06) if deadband_hs06 > 0 else None,
            note=" (above 0: over the setpoint)",
        ),
        FigureKind(
            "targets",
            "Targets",
            "nodes",
            [held_back, helped],
            _means((held_back.value, "held back"), (helped.value, "helped")),
            whole=True,
        ),
    ]


def _by_size(
    key: str,
    words: str,
    unit: str,
    group: str,
    layers: Layers,
    by_size: Callable[[GroupPoint], Mapping[int, float]],
) -> FigureKind:
    return FigureKind(
        key,
        f"{key.capitalize()}, by job size",
        words,
        layer_lines(group, layers, by_size),
        _means((of_group(group, lambda point: sum(by_size(point).values())), unit)),
        stacked=True,
        whole=True,
    )


def top_groups(groups: Sequence[str]) -> list[str]:
    """Groups whose parent is not among them: others count with their parent."""
    return [group for group in groups if group.rpartition(".")[0] not in groups]


def pool_kinds(groups: Sequence[str]) -> list[FigureKind]:
    """Power of all groups, idle cores, nodes under targets, and durations of cycles."""
    tops = top_groups(groups)
    idle = [
        Line("idle", of_pool(lambda point: point.idle_cores)),
        Line("under targets", of_pool(lambda point: point.idle_target_cores)),
        Line("in grace", of_pool(lambda point: point.idle_grace_cores)),
    ]
    targets = Line("targets", of_pool(lambda point: point.targets))
    return [
        FigureKind(
            "power",
            "Power of all groups",
            "HS06",
            [
                Line("power", of_groups(tops, lambda point: point.power_hs06)),
                Line("pledge", of_groups(tops, lambda point: point.pledge_hs06)),
            ],
        ),
        FigureKind(
            "idle",
            "Idle cores",
            "cores",
            idle,
            _means((idle[0].value, "cores"), *((line.value, line.name) for line in idle[1:])),
            whole=True,
        ),
        FigureKind(
            "targets",
            "Nodes under targets",
            "nodes",
            [targets],
            _means((targets.value, "nodes")),
            whole=True,
        ),
        FigureKind(
            "cycles",
            "Duration of cycles",
            "seconds",
            [Line("duration", of_pool(lambda point: point.seconds))],
            _cycles_says,
            crosses=True,
        ),
    ]


def overview_kinds(groups: Sequence[str]) -> list[FigureKind]:
    """Error of groups on one axis, in % of their shares and in HS06."""

    def kind(key: str, words: str, value: OfGroup, unit: str) -> FigureKind:
        return FigureKind(
            key,
            "Error of groups",
            words,
            [
                Line(group, of_group(group, value), f"group{number}")
                for number, group in enumerate(groups)
            ],
            lambda series: _distance_says(series, groups, unit),
            note=" (above 0: over it)",
        )

    return [
        kind("error-share", "% of the share", error_percent, "%"),
        kind("error-hs06", "HS06", lambda point: point.error_hs06, "HS06"),
    ]


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
                gaps=[*gaps(series), *_beyond(series, seconds)],
                crosses=incomplete(series) if kind.crosses else (),
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
    unrecorded: list[tuple[float, float]] = []
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
        unrecorded += [(place - between, place)] if marks else []
        unrecorded += [(begin + shift, end + shift) for begin, end in gaps(series)]
        marks.append((place, name))
        for part in kind.curves(series):
            # Bands of several groups would hide each other.
            moved = [Value(value.place + shift, value.mean) for value in part.values]
            before = shown[part.style].values if part.style in shown else ()
            shown[part.style] = part._replace(values=[*before, *moved])
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
        gaps=unrecorded,
        note=kind.note,
        marks=marks if len(periods) > 1 else (),
    )
    says = "; ".join(f"{name} {kind.says(series)}".strip() for series, name in zip(periods, names))
    return _drawing(kind, figure, words, says, recorded=True)


def _drawing(kind: FigureKind, figure: Figure, title: str, says: str, *, recorded: bool) -> Drawing:
    known = any(value.mean is not None for part in figure.curves for value in part.values)
    why = "Not known: no complete cycle of this period recorded it."
    missing = why if recorded else "No cycle in this period."
    return Drawing(kind.key, title, says, svg(figure) if known else "", missing)


def _beyond(series: Series, seconds: int) -> list[tuple[float, float]]:
    """The part of the axis that only a longer period fills."""
    end = series.since + seconds
    return [(series.until, end)] if series.until < end else []


def _layers_in_use(layers: Sequence[Curve]) -> Sequence[Curve]:
    used = [layer for layer in layers if any(value.mean for value in layer.values)]
    return used or layers[:1]


def _description(kind: FigureKind, series: Series, shown: Sequence[Curve]) -> str:
    """The figure in words, for readers who do not see it."""
    sentences = [f"From {minute(series.since)} to {minute(series.until)} UTC, in {kind.words}."]
    for part in shown:
        known = [value.mean for value in part.values if value.mean is not None]
        if known:
            sentences.append(
                f"{part.name}: from {short(min(known))} to {short(max(known))}, at the end "
                f"{short(known[-1])}."
            )
    open_seconds = sum(end - begin for begin, end in gaps(series))
    if open_seconds:
        sentences.append(f"Not recorded: {span(open_seconds)}.")
    return " ".join(sentences)


def _means(*parts: tuple[OfBucket, str]) -> Callable[[Series], str]:
    """Caption of means over complete cycles, such as ``mean 5 held back, 2 helped``."""

    def says(series: Series) -> str:
        weights = [bucket.pool.complete_cycles for bucket in series.buckets]
        means = [
            (mean_of_known(zip(map(value, series.buckets), weights)), words)
            for value, words in parts
        ]
        known = [f"{short(mean)} {words}" for mean, words in means if mean is not None]
        return f"mean {', '.join(known)}" if known else ""

    return says


def _work_says(series: Series, group: str) -> str:
    ratio = group_summary(group, points_of([series], group)).work_ratio
    return "" if ratio is None else f"{ratio:.1%} of the pledge"


def _error_says(series: Series, group: str) -> str:
    points = points_of([series], group)
    return f"RMS error {short(group_summary(group, points).error_rms_hs06)} HS06" if points else ""


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
