"""Outcomes of the twin: verdict, tables and JSON, with the strategies side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import groupby
from math import fsum
from typing import Any, NamedTuple, Optional, TextIO

from sharectl.model import OTHER
from sharectl.report.tables import NONE, number, print_paragraph, print_table
from sharectl.times import HOUR_SECONDS
from sharectl.words import counted
from sharectl_lab.twin.answers import (
    NOTHING,
    WASTE,
    Figures,
    Spread,
    figures_of,
    has_work,
    over_seeds,
    spread,
)
from sharectl_lab.twin.bound import Bound
from sharectl_lab.twin.records import CAUSES, Outcome

MOST_COLUMNS = 8
"""Groups that a table has."""
MOST_KINDS = 10
"""Groups with a job size that a table has."""
LEAST_COMPARED = 2
BOUND = "(bound)"
"""Row of the least shortfall that is possible."""
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
    bounds: tuple[Bound, ...] = ()
    """Least shortfall of each seed, if `--bound` asked for it."""
    omissions: tuple[str, ...] = ()
    """Notes on jobs that are left out, and on attributes that nobody has."""

    @property
    def bound(self) -> Optional[dict[str, Any]]:
        """The fields of `Bound`, those of shortfalls as a `Spread` over seeds."""
        if not self.bounds:
            return None
        return {
            "idle_core_hours": list(self.bounds[0].idle_core_hours),
            "shortfall_rms_hs06": [
                spread(of_seeds) for of_seeds in zip(*(b.shortfall_rms_hs06 for b in self.bounds))
            ],
            "any_idle_rms_hs06": spread([bound.any_idle_rms_hs06 for bound in self.bounds]),
        }

    @cached_property
    def rows(self) -> list[Row]:
        """Strategies with an outcome, and their figures."""
        rows = []
        for name, some in groupby(self.outcomes, key=lambda outcome: outcome.strategy):
            outcomes = list(some)
            complete = len(outcomes) == len(self.seeds) and all(o.complete for o in outcomes)
            answers = [figures_of(outcome) for outcome in outcomes]
            rows.append(Row(name, outcomes, complete, answers, over_seeds(answers)))
        return rows

    @property
    def groups(self) -> list[str]:
        """Groups of the scenario, largest pledges first."""
        pledges = self.outcomes[0].groups if self.outcomes else {}
        names = [name for name in pledges if name != OTHER]
        return sorted(names, key=lambda name: (-pledges[name].pledge_hs06, name))

    @property
    def comparable(self) -> bool:
        """Return whether a job of a group ran, or may have been about to."""
        return not self.complete or any(map(has_work, self.outcomes))

    @property
    def notes(self) -> list[str]:
        """Notes on all, for every reader."""
        notes = [*self.omissions]
        if not self.comparable:
            idle_seconds = [outcome.idle_core_seconds for outcome in self.outcomes]
            cause = max(CAUSES, key=lambda name: fsum(by.get(name, 0.0) for by in idle_seconds))
            return [*notes, f"{NOTHING}; cores are idle because {CAUSES[cause]}"]
        silent = [row.name for row in self.rows if not any(map(has_work, row.outcomes))]
        if silent and self.complete:
            notes.append(f"with {', '.join(silent)} no job of a group ran")
        return list(dict.fromkeys(notes))

    @property
    def complete(self) -> bool:
        """Return whether each run ended."""
        return len(self.rows) == len(self.strategies) and all(row.complete for row in self.rows)


class Row(NamedTuple):
    """A strategy, its outcomes by seed, and its figures over seeds."""

    name: str
    outcomes: Sequence[Outcome]
    complete: bool
    answers: Sequence[Figures]
    figures: Mapping[str, Any]

    def mean(self, key: str) -> float:
        """Mean of a figure over seeds."""
        mean: float = self.figures[key].mean
        return mean


# ---- JSON


def as_content(simulation: Simulation) -> dict[str, Any]:
    """Each strategy's `Figures`: mean, sd, least and most over its seeds."""
    strategies = [
        {
            "strategy": row.name,
            "summary": simulation.strategies[row.name],
            "complete": row.complete,
            "runs": [
                {"seed": o.seed, "seconds": o.seconds, "complete": o.complete} for o in row.outcomes
            ],
            **_plain(row.figures),
        }
        for row in simulation.rows
    ]
    pool = simulation.outcomes[0] if simulation.outcomes else None
    return {
        "scenario": simulation.scenario,
        "days": simulation.days,
        "seeds": list(simulation.seeds),
        "complete": simulation.complete,
        "notes": simulation.notes,
        "pool_cores": pool.pool_cores if pool else None,
        "pool_hs06": pool.pool_hs06 if pool else None,
        "bound": _plain(simulation.bound),
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
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value


# ---- verdict


def verdict(simulation: Simulation) -> list[str]:
    """Sentences on the best strategy: what it gains against the usual one, and what it costs.

    Of strategies whose shortfalls do not differ, seed by seed, beyond their standard deviation, the
    best is the usual one, or kills the fewest jobs and idles least.
    """
    rows = [row for row in simulation.rows if row.complete]
    if len(rows) < LEAST_COMPARED or not simulation.comparable:
        return []
    usual = next((row for row in rows if row.name == "nothing"), rows[0])
    least = min(rows, key=lambda row: row.mean("shortfall_rms_hs06"))
    equal = [row for row in rows if not _differ(row, least)]
    cheapest = min(equal, key=lambda row: (row.mean("evicted_jobs"), row.mean("idle_core_hours")))
    best = usual if usual in equal else cheapest
    amount, power, idle = (column.cell(best.figures) for column in _VERDICT)
    words = f"its shortfall is {amount} HS06, {power} % of the power, with {idle} idle core-hours"
    if best is usual:
        sentences = [f"No strategy has a smaller shortfall than {usual.name}: {words}."]
    else:
        amount, _power, idle = (column.cell(usual.figures) for column in _VERDICT)
        words += f", where {usual.name} has {amount} HS06 and {idle} core-hours"
        killed, lost = (cell(best.figures[key]) for key in ("evicted_jobs", "lost_core_hours"))
        sentences = [f"Best is {best.name}: {words}."]
        if best.mean("evicted_jobs"):
            sentences.append(f"It kills {killed} jobs, which lose {lost} core-hours.")
    if others := [row.name for row in equal if row is not best]:
        sentences.append(f"No difference in shortfall beyond the spread: {', '.join(others)}.")
    if simulation.bound and simulation.bound["any_idle_rms_hs06"].most > 0:
        hs06 = cell(simulation.bound["any_idle_rms_hs06"])
        sentences.append(f"No strategy that kills no job gets below {hs06} HS06 from this start.")
    if len(simulation.seeds) == 1:
        sentences.append("One seed shows no spread: --seeds 3 tells differences from chance.")
    return sentences


def _differ(row: Row, other: Row) -> bool:
    """True if shortfalls differ seed by seed by more than the standard deviation."""
    pairs = zip(row.answers, other.answers)
    difference = spread([a.shortfall_rms_hs06 - b.shortfall_rms_hs06 for a, b in pairs])
    return abs(difference.mean) > difference.sd


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
        return cell(value, self.factor)


_SHORTFALLS = (
    _Column("shortfall_rms_hs06", "shortfall HS06"),
    _Column("shortfall_rms_ratio", "% of power", 100),
    _Column("to_due.median_hours", "hours to 90 % of due"),
    _Column("idle_core_hours", "idle core-h"),
    _Column("used_ratio", "used %", 100),
)
_VERDICT = (_SHORTFALLS[0], _SHORTFALLS[1], _SHORTFALLS[3])
_PRICE = (
    _Column("multicore_starts", "multicore starts"),
    _Column("refusals", "refused"),
    _Column("evicted_jobs", "evicted jobs"),
    _Column("lost_core_hours", "lost core-h"),
    _Column("drained_nodes", "drained nodes"),
    _Column("changed_targets", "changed targets"),
)


def print_simulation(simulation: Simulation, to: TextIO) -> None:
    """Print verdict and tables: shortfall and idle cores, prices, causes, groups, waits."""
    if not simulation.outcomes:
        print_paragraph("interrupted before a run had a result", to)
        return
    for paragraph in (_title(simulation), *simulation.notes, *verdict(simulation)):
        print_paragraph(paragraph, to)
    if not simulation.comparable:
        return
    for title, columns, cells in tables_of(simulation):
        to.write("" if to.isatty() else "\n")
        print_table(title, columns, cells, to)
    if len(simulation.groups) > MOST_COLUMNS or len(_kinds(simulation)) > MOST_KINDS:
        to.write("… all groups and waits: --json\n")


def _title(simulation: Simulation) -> str:
    first, seeds = simulation.outcomes[0], simulation.seeds
    means = ", mean±sd" if len(seeds) > 1 else ""
    words = f"seeds {seeds[0]} to {seeds[-1]}{means}" if means else f"seed {seeds[0]}"
    state = "" if simulation.complete else "INTERRUPTED, "
    return (
        f"{simulation.scenario}: {state}{days_of(simulation.days)}, {words}; "
        f"{counted(first.pool_cores, 'core')}, {first.pool_hs06:.0f} HS06"
    )


def days_of(days: float) -> str:
    """Number of days in words."""
    return f"{days:g} day" if days == 1 else f"{days:g} days"


def tables_of(simulation: Simulation) -> Iterator[tuple[str, Sequence[str], list[list[str]]]]:
    """Title, headings and rows of each table that has figures."""
    rows = [
        row if row.complete else row._replace(name=f"{row.name} (interrupted)")
        for row in simulation.rows
    ]
    causes = [
        _Column(f"idle_core_hours_by_cause.{cause}", cause)
        for cause in WASTE
        if any(row.figures["idle_core_hours_by_cause"][cause].most > 0 for row in rows)
    ]
    tables: list[tuple[str, Sequence[_Column]]] = [
        ("shortfall (RMS), and idle cores while jobs waited", _SHORTFALLS),
        ("what it costs besides", _PRICE),
        ("idle core-hours while jobs waited, by cause", causes),
    ]
    for title, columns in tables:
        cells = [[row.name, *(column.cell(row.figures) for column in columns)] for row in rows]
        if columns is _SHORTFALLS and simulation.bound:
            hs06 = simulation.bound["any_idle_rms_hs06"]
            ratio = cell(hs06, 100 / simulation.outcomes[0].pool_hs06)
            cells.append([BOUND, cell(hs06), ratio, *[NONE] * (len(columns) - 2)])
        if columns:
            yield title, ["strategy", *(column.heading for column in columns)], cells
    names = simulation.groups[:MOST_COLUMNS]
    cells = [
        [row.name, *(cell(row.figures["groups"][name]["shortfall_rms_hs06"]) for name in names)]
        for row in rows
    ]
    yield "shortfall of groups (RMS), HS06", ["strategy", *names], cells
    kinds = _kinds(simulation)[:MOST_KINDS]
    cells = [[row.name, *(_wait(row, *kind) for kind in kinds)] for row in rows]
    if kinds:
        headings = ["strategy", *(f"{name} {cores}" for name, cores in kinds)]
        yield "waits by group and cores of a job, hours: median / 95 %", headings, cells


def _kinds(simulation: Simulation) -> list[tuple[str, int]]:
    """Groups with the sizes of their jobs that started."""
    return [
        (name, cores)
        for name in simulation.groups
        for cores in sorted({c for o in simulation.outcomes for c in o.groups[name].waits_by_cores})
    ]


def _wait(row: Row, name: str, cores: int) -> str:
    waits = row.figures["groups"][name]["waits_by_cores"].get(cores)
    if waits is None:
        return NONE
    keys = ("median_seconds", "p95_seconds")
    return " / ".join(number(waits[key].mean / HOUR_SECONDS) for key in keys)


def cell(figure: Optional[Spread], factor: float = 1.0) -> str:
    """Mean, and the deviation if there is one, with as many digits as the mean has."""
    if figure is None:
        return NONE
    if figure.least == figure.most == int(figure.least) and factor == 1:
        return number(figure.least, 0)
    mean = figure.mean * factor
    digits = 0 if factor == 1 and abs(mean) >= _WHOLE_FROM else 1
    deviation = f"±{number(figure.sd * factor, digits)}" if figure.most > figure.least else ""
    return f"{number(mean, digits)}{deviation}"
