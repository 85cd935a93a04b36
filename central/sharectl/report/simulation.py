"""Outcomes of the twin: tables, JSON and the page, with the strategies side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from math import ceil, fsum
from typing import Any, Callable, NamedTuple, Optional, TextIO

from sharectl.model import OTHER
from sharectl.report.scale import short, ticks_up_to
from sharectl.report.svg import (
    GROUPS,
    LAYERS,
    Curve,
    Figure,
    Reading,
    described,
    layers_in_use,
    limits_of,
    svg,
)
from sharectl.report.svg import page as html
from sharectl.report.tables import NONE, number, print_paragraph, print_table
from sharectl.sim.answers import (
    HOUR_SECONDS,
    NOTHING,
    WASTE,
    Figures,
    Spread,
    cumulated,
    figures_of,
    has_work,
    over_seeds,
    shortfall_hs06,
)
from sharectl.sim.records import CAUSES, Outcome
from sharectl.times import DAY_SECONDS
from sharectl.words import counted

BEGIN = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="generator" content="sharectl simulate">
"""
"""Begin of every page: `sharectl simulate` replaces no other file."""
MOST_COLUMNS = 8
"""Groups that a table has."""
MOST_KINDS = 10
"""Groups with a job size that a table has."""
MOST_POINTS = 296
"""Points of a line: one for each unit across the plot."""
_TICKS = 5
_WHOLE_FROM = 100


@dataclass(frozen=True)
class Simulation:
    """Outcomes of strategies on one scenario."""

    scenario: str
    strategies: Mapping[str, str]
    """Strategy -> its summary, in the order of the tables."""
    seeds: tuple[int, ...]
    days: float
    """Time that was to be simulated of each, after the warm-up."""
    outcomes: Sequence[Outcome]
    """By strategy, then by seed; those that were not begun are absent."""
    omissions: tuple[str, ...] = ()
    """Notes on jobs that are left out, and on attributes that nobody has."""

    @property
    def comparable(self) -> bool:
        """Return whether a job of a group ran, or may have been about to."""
        return not self.complete or any(map(has_work, self.outcomes))

    @property
    def notes(self) -> list[str]:
        """Notes on all, for every reader."""
        notes = [*self.omissions, *(outcome.note for outcome in self.outcomes if outcome.note)]
        if not self.comparable:
            idle_seconds = [outcome.idle_core_seconds for outcome in self.outcomes]
            cause = max(CAUSES, key=lambda name: fsum(by.get(name, 0.0) for by in idle_seconds))
            return [*notes, f"{NOTHING}; cores are idle because {CAUSES[cause]}"]
        ran = {outcome.strategy for outcome in self.outcomes if has_work(outcome)}
        idle = dict.fromkeys(o.strategy for o in self.outcomes if o.complete)
        silent = [name for name in idle if ran and name not in ran]
        notes += [f"with {', '.join(silent)} no job of a group ran"] if silent else []
        return list(dict.fromkeys(notes))

    @property
    def complete(self) -> bool:
        """Return whether each run ended."""
        runs = len(self.strategies) * len(self.seeds)
        return len(self.outcomes) == runs and all(o.complete for o in self.outcomes)


class _Row(NamedTuple):
    """A strategy, and its figures over seeds."""

    name: str
    answers: Sequence[Figures]
    figures: Mapping[str, Any]


# ---- JSON


def as_content(simulation: Simulation) -> dict[str, Any]:
    """Figures of each strategy: mean, sd, least and most over its seeds.

    Keys: scenario, days, seeds, complete, notes, pool_cores, pool_hs06, strategies; of a strategy:
    strategy, summary, complete, runs, and the figures of `sharectl.sim.answers.Figures`.
    """
    strategies = []
    for row, outcomes in zip(_rows(simulation), _by_strategy(simulation)):
        runs = [
            {"seed": o.seed, "seconds": o.seconds, "complete": o.complete, "note": o.note}
            for o in outcomes
        ]
        strategies.append(
            {
                "strategy": row.name,
                "summary": simulation.strategies[row.name],
                "complete": _are_complete(simulation, outcomes),
                "runs": runs,
                **_plain(row.figures),
            }
        )
    pool = simulation.outcomes[0] if simulation.outcomes else None
    return {
        "scenario": simulation.scenario,
        "days": simulation.days,
        "seeds": list(simulation.seeds),
        "complete": simulation.complete,
        "notes": simulation.notes,
        "pool_cores": pool.pool_cores if pool else None,
        "pool_hs06": pool.pool_hs06 if pool else None,
        "strategies": strategies,
    }


def with_series(simulation: Simulation) -> dict[str, Any]:
    """The keys of `as_content`, and all outcomes with their figures over time."""
    return {**as_content(simulation), "outcomes": [asdict(o) for o in simulation.outcomes]}


def _plain(value: Any) -> Any:
    if isinstance(value, Spread):
        return value._asdict()
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return value


def _by_strategy(simulation: Simulation) -> Iterator[list[Outcome]]:
    for _name, outcomes in groupby(simulation.outcomes, key=lambda outcome: outcome.strategy):
        yield list(outcomes)


def _are_complete(simulation: Simulation, outcomes: Sequence[Outcome]) -> bool:
    """Return whether a strategy has its outcome of each seed."""
    return len(outcomes) == len(simulation.seeds) and all(o.complete for o in outcomes)


def _rows(simulation: Simulation) -> list[_Row]:
    rows = []
    for outcomes in _by_strategy(simulation):
        answers = [figures_of(outcome) for outcome in outcomes]
        rows.append(_Row(outcomes[0].strategy, answers, over_seeds(answers)))
    return rows


# ---- tables


class _Column(NamedTuple):
    """A column of a table: key of the figure, heading, unit."""

    key: str
    heading: str
    factor: float = 1.0

    def cell(self, figures: Mapping[str, Any]) -> str:
        """Figure of a strategy or group."""
        value: Any = figures
        for part in self.key.split("."):
            value = value[part]
        return _cell(value, self.factor)


_SHORTFALLS = (
    _Column("shortfall_rms_hs06", "shortfall HS06"),
    _Column("shortfall_rms_ratio", "% of power", 100),
    _Column("shortfall_mean_ratio", "mean %", 100),
    _Column("to_due.median_hours", "hours to 90 % of due"),
    _Column("to_due.worst_hours", "longest"),
    _Column("idle_core_hours", "idle core-h"),
    _Column("used_ratio", "used %", 100),
)
_PRICE = (
    _Column("multicore_starts", "multicore starts"),
    _Column("refusals", "refused"),
    _Column("evicted_jobs", "evicted jobs"),
    _Column("lost_core_hours", "lost core-h"),
    _Column("drained_nodes", "drained nodes"),
    _Column("changed_targets", "changed targets"),
)


def print_simulation(simulation: Simulation, to: TextIO) -> None:
    """Print the tables: shortfall and idle cores, prices, causes, groups, waits."""
    if not simulation.outcomes:
        print_paragraph("interrupted before a run had a result", to)
        return
    rows = _rows(simulation)
    marks = {name: _mark(simulation, name) for name in simulation.strategies}
    print_paragraph(_title(simulation), to)
    for note in simulation.notes:
        print_paragraph(note, to)
    if not simulation.comparable:
        return
    for title, columns, cells in _tables(rows):
        to.write("" if to.isatty() else "\n")
        print_table(title, columns, [[marks[row[0]], *row[1:]] for row in cells], to)
    groups = len([name for name in _names(rows) if name != OTHER]) - MOST_COLUMNS
    kinds = len(_kinds(rows)) - MOST_KINDS
    if groups > 0 or kinds > 0:
        hidden = [(groups, "group"), (kinds, "wait")]
        words = " and ".join(counted(count, noun) for count, noun in hidden if count > 0)
        to.write(f"… and {words} more: --json\n")


def _title(simulation: Simulation) -> str:
    first, seeds = simulation.outcomes[0], simulation.seeds
    means = ", mean±sd" if len(seeds) > 1 else ""
    words = f"seeds {seeds[0]} to {seeds[-1]}{means}" if means else f"seed {seeds[0]}"
    state = "" if simulation.complete else "INTERRUPTED, "
    return (
        f"{simulation.scenario}: {state}{_days(simulation.days)}, {words}; "
        f"{counted(first.pool_cores, 'core')}, {first.pool_hs06:.0f} HS06"
    )


def _mark(simulation: Simulation, name: str) -> str:
    """Name of a strategy, with the days that an interrupted run has."""
    outcomes = [outcome for outcome in simulation.outcomes if outcome.strategy == name]
    if _are_complete(simulation, outcomes):
        return name
    days = fsum(outcome.seconds for outcome in outcomes) / DAY_SECONDS
    return f"{name} ({number(days)} of {_days(simulation.days * len(simulation.seeds))})"


def _days(days: float) -> str:
    return f"{days:g} day" if days == 1 else f"{days:g} days"


def _tables(rows: Sequence[_Row]) -> Iterator[tuple[str, Sequence[str], list[list[str]]]]:
    """Title, headings and rows of each table that has figures."""
    tables = {
        "shortfall (RMS), and idle cores while jobs waited": _figures(_SHORTFALLS, rows),
        "what it costs besides": _figures(_PRICE, rows),
        "idle core-hours while jobs waited, by cause": _causes(rows),
        "shortfall of groups (RMS), HS06": _groups(rows, _Column("shortfall_rms_hs06", "")),
        "work of groups, % of what is due": _groups(rows, _Column("work_ratio", "", 100)),
        "waits by group and cores of a job, hours: median / 95 %": _waits(rows),
    }
    for title, (columns, cells) in tables.items():
        if len(columns) > 1:
            yield title, columns, cells


_Cells = tuple[Sequence[str], list[list[str]]]
"""Headings of a table, and its rows, which begin with the strategy."""


def _figures(columns: Sequence[_Column], rows: Sequence[_Row]) -> _Cells:
    cells = [[row.name, *(column.cell(row.figures) for column in columns)] for row in rows]
    return ["strategy", *(column.heading for column in columns)], cells


def _causes(rows: Sequence[_Row]) -> _Cells:
    key = "idle_core_hours_by_cause"
    causes = [cause for cause in WASTE if any(row.figures[key][cause].most > 0 for row in rows)]
    cells = [[row.name, *(_cell(row.figures[key][cause]) for cause in causes)] for row in rows]
    return ["strategy", *causes], cells


def _names(rows: Sequence[_Row]) -> list[str]:
    """Groups, largest pledges first; `OTHER` only if it worked."""
    groups = {name: group for row in rows for name, group in row.answers[0].groups.items()}
    active = {
        name
        for row in rows
        for figures in row.answers
        for name, group in figures.groups.items()
        if name != OTHER or group.work_hs06_hours > 0
    }
    return sorted(active, key=lambda name: (name == OTHER, -groups[name].pledge_hs06, name))


def _groups(rows: Sequence[_Row], column: _Column) -> _Cells:
    names = [name for name in _names(rows) if name != OTHER][:MOST_COLUMNS]
    cells = [[row.name, *(column.cell(row.figures["groups"][n]) for n in names)] for row in rows]
    return ["strategy", *names], cells


def _kinds(rows: Sequence[_Row]) -> list[tuple[str, int]]:
    """Groups with the sizes of their jobs that started."""
    kinds: dict[str, set[int]] = {name: set() for name in _names(rows)}
    for row in rows:
        for name, group in row.figures["groups"].items():
            kinds.get(name, set()).update(group["waits_by_cores"])
    return [(name, cores) for name, sizes in kinds.items() for cores in sorted(sizes)]


def _waits(rows: Sequence[_Row]) -> _Cells:
    kinds = _kinds(rows)[:MOST_KINDS]
    cells = []
    for row in rows:
        waits = [row.figures["groups"][name]["waits_by_cores"].get(c) for name, c in kinds]
        cells.append([row.name, *map(_wait, waits)])
    return ["strategy", *(f"{name} {cores}" for name, cores in kinds)], cells


def _wait(waits: Optional[Mapping[str, Spread]]) -> str:
    if waits is None:
        return NONE
    keys = ("median_seconds", "p95_seconds")
    return " / ".join(number(waits[key].mean / HOUR_SECONDS) for key in keys)


def _cell(figure: Optional[Spread], factor: float = 1.0) -> str:
    """Mean, and the deviation if there is one, with as many digits as the mean has."""
    if figure is None:
        return NONE
    if figure.least == figure.most == int(figure.least) and factor == 1:
        return number(figure.least, 0)
    mean = figure.mean * factor
    digits = 0 if factor == 1 and abs(mean) >= _WHOLE_FROM else 1
    deviation = f"±{number(figure.sd * factor, digits)}" if figure.most > figure.least else ""
    return f"{number(mean, digits)}{deviation}"


# ---- page


def page(simulation: Simulation) -> str:
    """One HTML document that stands alone; it runs no script and loads nothing."""
    rows, first = _rows(simulation), simulation.outcomes[0]
    facts = {
        "Simulated": _days(simulation.days),
        "Seeds": ", ".join(map(str, simulation.seeds)),
        "Cores": short(first.pool_cores),
        "Power": f"{short(first.pool_hs06)} HS06",
        "Groups": short(len([name for name in _names(rows) if name != OTHER])),
    }
    marks = {name: _mark(simulation, name) for name in simulation.strategies}
    notes = [] if simulation.complete else ["Interrupted: figures are of what was simulated."]
    return html(
        "simulation.html",
        verb="simulate",
        title=f"Strategies on {simulation.scenario}",
        lead="Simulated: the same jobs on the same pool, each strategy by itself.",
        facts=list(facts.items()),
        notes=[*notes, *simulation.notes],
        summaries=simulation.strategies,
        tables=[
            (title, [(heading, "") for heading in columns], [[marks[c[0]], *c[1:]] for c in cells])
            for title, columns, cells in _tables(rows)
        ],
        figures=list(_sections(simulation, rows)),
        causes={cause: CAUSES[cause] for cause in WASTE},
        seeds=len(simulation.seeds),
    )


_Section = tuple[str, str, str, list[dict[str, str]]]
"""Anchor, heading, words, and drawings."""


def _sections(simulation: Simulation, rows: Sequence[_Row]) -> Iterator[_Section]:
    """Shortfall of groups, idle cores by cause, each group's work: a figure a strategy."""
    firsts = [outcomes[0] for outcomes in _by_strategy(simulation)]
    names = [name for name in _names(rows) if name != OTHER]
    days = max(max((o.times[-1] for o in firsts if o.times), default=1.0) / DAY_SECONDS, 1e-3)
    shown = names[:GROUPS]

    def section(anchor: str, heading: str, words: str, kind: _Kind) -> _Section:
        return anchor, heading, words, _drawings(kind, anchor, heading, firsts, days)

    few = f", the {GROUPS} with the largest pledges" if len(names) > GROUPS else ""
    yield section(
        "shortfall",
        "Shortfall of groups",
        f"Power that is due and not used{few}.",
        _Kind("HS06", lambda o: _shortfalls(o, shown)),
    )
    yield section(
        "missing",
        "Work that groups miss",
        f"Cumulative shortfall{few}.",
        _Kind("HS06-hours", lambda o: _shortfalls(o, shown, summed=True)),
    )
    causes = _shown_causes(firsts)
    yield section(
        "idle",
        "Idle cores while jobs waited",
        "By cause; causes without a core are left out.",
        _Kind("cores", lambda o: _idle(o, causes), stacked=True),
    )
    for place, name in enumerate(names, start=1):
        yield section(
            f"g{place}",
            f"{name}: work against due",
            "Cumulative work, and the work that is due.",
            _Kind("HS06-hours", lambda o, name=name: _work(o, name)),  # type: ignore[misc]
        )


class _Kind(NamedTuple):
    """Figure that each strategy has on the same axes."""

    unit: str
    curves: Callable[[Outcome], Sequence[Curve]]
    stacked: bool = False


def _drawings(
    kind: _Kind, key: str, heading: str, outcomes: Sequence[Outcome], days: float
) -> list[dict[str, str]]:
    drawn = [kind.curves(outcome) for outcome in outcomes]
    limits = limits_of(drawn, stacked=kind.stacked)
    drawings = []
    for place, (outcome, curves) in enumerate(zip(outcomes, drawn), start=1):
        figure = Figure(
            key=f"{key}-{place}",
            title=f"{outcome.strategy}: {heading}",
            description=described(f"In {kind.unit.partition(' (')[0]}.", curves),
            across=(0.0, days),
            ticks=ticks_up_to(days, _TICKS),
            up=limits,
            unit=kind.unit,
            curves=curves,
            stacked=kind.stacked,
            across_words="days",
        )
        missing = "" if outcome.times else "Interrupted before the first interval ended."
        drawing = {"key": key, "title": outcome.strategy, "missing": missing}
        drawings.append({**drawing, "svg": "" if missing else svg(figure)})
    return drawings


def _shortfalls(outcome: Outcome, names: Sequence[str], *, summed: bool = False) -> list[Curve]:
    """Shortfall of each group, or its sum over time."""
    curves = []
    for place, group in enumerate(map(outcome.groups.get, names)):
        missing = shortfall_hs06(group) if group else ()
        sums = _last(outcome, cumulated(missing, outcome)) if summed else None
        curves.append(Curve(names[place], f"group{place}", sums or _means(outcome, missing)))
    return curves


def _shown_causes(outcomes: Sequence[Outcome]) -> Mapping[str, Sequence[str]]:
    """Layer -> its causes: those of most idle time, and all others as one."""
    seconds = {
        cause: fsum(outcome.idle_core_seconds.get(cause, 0.0) for outcome in outcomes)
        for cause in WASTE
    }
    used = [cause for cause in WASTE if seconds[cause] > 0]
    largest = sorted(used, key=lambda cause: -seconds[cause])
    alone = largest if len(largest) <= LAYERS else largest[: LAYERS - 1]
    layers: dict[str, Sequence[str]] = {cause: [cause] for cause in used if cause in alone}
    others = [cause for cause in used if cause not in alone]
    return {**layers, "others": others} if others else layers


def _idle(outcome: Outcome, layers: Mapping[str, Sequence[str]]) -> Sequence[Curve]:
    zeros = (0.0,) * len(outcome.times)
    curves = []
    for place, (name, causes) in enumerate((layers or {"idle": ()}).items()):
        rows = [outcome.idle_cores.get(cause, zeros) for cause in causes] or [zeros]
        cores = [fsum(values) for values in zip(*rows)]
        curves.append(Curve(name, f"layer{place}", _means(outcome, cores)))
    return layers_in_use(curves)


def _work(outcome: Outcome, name: str) -> list[Curve]:
    group = outcome.groups.get(name)
    if group is None:
        return []
    lines = {"work": group.power_hs06, "pledge": group.due_hs06}
    return [
        Curve(line, line, _last(outcome, cumulated(values, outcome)))
        for line, values in lines.items()
    ]


def _means(outcome: Outcome, values: Sequence[float]) -> list[Reading]:
    """Means of at most `MOST_POINTS` stretches, each at its end in days."""
    step = max(1, ceil(len(values) / MOST_POINTS))
    stretches = [values[begin : begin + step] for begin in range(0, len(values), step)]
    ends = outcome.times[step - 1 :: step]
    return [
        (end / DAY_SECONDS, fsum(stretch) / len(stretch)) for end, stretch in zip(ends, stretches)
    ]


def _last(outcome: Outcome, sums: Sequence[float]) -> list[Reading]:
    """At most `MOST_POINTS` of the sums, in days, from 0 at the begin."""
    step = max(1, ceil(len(sums) / MOST_POINTS))
    ends = zip(outcome.times[step - 1 :: step], sums[step - 1 :: step])
    return [(0.0, 0.0), *((end / DAY_SECONDS, value) for end, value in ends)]
