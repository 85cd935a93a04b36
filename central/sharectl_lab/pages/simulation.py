"""Outcomes of the twin: verdict, tables and JSON, with the strategies side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from math import fsum
from typing import Any, NamedTuple, Optional, TextIO

from sharectl.model import OTHER
from sharectl.report.tables import NONE, number, print_paragraph, print_table
from sharectl.times import DAY_SECONDS
from sharectl.words import counted
from sharectl_lab.twin.answers import (
    HOUR_SECONDS,
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


class Row(NamedTuple):
    """A strategy, and its figures over seeds."""

    name: str
    answers: Sequence[Figures]
    figures: Mapping[str, Any]

    def mean(self, key: str) -> float:
        """Mean of a figure over seeds."""
        mean: float = self.figures[key].mean
        return mean


# ---- JSON


def as_content(simulation: Simulation) -> dict[str, Any]:
    """Figures of each strategy: mean, sd, least and most over its seeds.

    Keys: scenario, days, seeds, complete, notes, pool_cores, pool_hs06, bound (least shortfall by
    idle core-hours, null without ``--bound``), strategies; of a strategy: strategy, summary,
    complete, runs, and the figures of `sharectl_lab.twin.answers.Figures`.
    """
    strategies = []
    for row, outcomes in zip(rows_of(simulation), by_strategy(simulation)):
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


def by_strategy(simulation: Simulation) -> Iterator[list[Outcome]]:
    """Outcomes of each strategy, by seed."""
    for _name, outcomes in groupby(simulation.outcomes, key=lambda outcome: outcome.strategy):
        yield list(outcomes)


def _are_complete(simulation: Simulation, outcomes: Sequence[Outcome]) -> bool:
    """Return whether a strategy has its outcome of each seed."""
    return len(outcomes) == len(simulation.seeds) and all(o.complete for o in outcomes)


def rows_of(simulation: Simulation) -> list[Row]:
    """Figures of each strategy."""
    rows = []
    for outcomes in by_strategy(simulation):
        answers = [figures_of(outcome) for outcome in outcomes]
        rows.append(Row(outcomes[0].strategy, answers, over_seeds(answers)))
    return rows


def complete_rows(simulation: Simulation) -> list[Row]:
    """Strategies that have an outcome of each seed."""
    of_strategy = zip(rows_of(simulation), by_strategy(simulation))
    return [row for row, outcomes in of_strategy if _are_complete(simulation, outcomes)]


# ---- verdict


def verdict(simulation: Simulation) -> list[str]:
    """Sentences on the best strategy: what it gains against the usual one, and what it costs.

    Differences are those of the same seeds; one within its standard deviation is no difference. Of
    strategies whose shortfalls do not differ the best is the usual one, or kills the fewest jobs
    and idles least.
    """
    rows = complete_rows(simulation)
    if len(rows) < LEAST_COMPARED or not simulation.comparable:
        return []
    usual = next((row for row in rows if row.name == "nothing"), rows[0])
    least = min(rows, key=lambda row: row.mean("shortfall_rms_hs06"))
    equal = [row for row in rows if not _differ(row, least)]
    cheapest = min(equal, key=lambda row: (row.mean("evicted_jobs"), row.mean("idle_core_hours")))
    best = usual if usual in equal else cheapest
    sentences = list(_gains(best, usual, equal))
    if best is not usual:
        core_hours = simulation.outcomes[0].pool_cores * simulation.outcomes[0].seconds / 3600
        sentences.append(_costs(best, usual, core_hours))
    if simulation.bound and simulation.bound["any_idle_rms_hs06"].most > 0:
        hs06 = cell(simulation.bound["any_idle_rms_hs06"])
        sentences.append(f"No strategy that kills no job gets below {hs06} HS06 from this start.")
    if len(simulation.seeds) == 1:
        sentences.append("One seed shows no spread: --seeds 3 tells differences from chance.")
    return sentences


def _gains(best: Row, usual: Row, equal: Sequence[Row]) -> Iterator[str]:
    shortfall, part = _SHORTFALLS[:2]
    amount = f"{shortfall.cell(best.figures)} HS06, {part.cell(best.figures)} % of the power"
    if best is usual:
        yield f"No strategy has a smaller shortfall than {usual.name}: {amount}."
    else:
        rest = shortfall.cell(usual.figures)
        yield f"Best is {best.name}: its shortfall is {amount}, where {usual.name} has {rest}."
        after, usually = (row.figures["to_due"] for row in (best, usual))
        if after["median_hours"] and usually["median_hours"]:
            never = usually["unended"].mean == usually["times"].mean
            rest = "never" if never else f"after {cell(usually['median_hours'])}"
            yield (
                "A group that lacks more than a quarter of its due has 90 % of it after "
                f"{cell(after['median_hours'])} hours (median), with {usual.name} {rest}."
            )
    others = [row.name for row in equal if row is not best]
    if others:
        yield f"No difference in shortfall beyond the spread: {', '.join(others)}."


def _costs(best: Row, usual: Row, core_hours: float) -> str:
    idle = _difference(best, usual, "idle_core_hours")
    words = f"It idles as many core-hours as {usual.name}"
    if abs(idle.mean) > idle.sd:
        less = Spread(-idle.mean, idle.sd, -idle.most, -idle.least)
        amount = cell(idle if idle.mean > 0 else less)
        ratio = abs(idle.mean) / core_hours
        more = "more" if idle.mean > 0 else "less"
        words = f"It idles {amount} core-hours {more} than {usual.name}"
        words += f", {ratio:.2%} of the pool's".replace("%", " %")
    if not best.mean("evicted_jobs"):
        return f"{words}, and kills no job."
    killed, lost = (cell(best.figures[key]) for key in ("evicted_jobs", "lost_core_hours"))
    return f"{words}, and kills {killed} jobs, which lose {lost} core-hours."


def _difference(row: Row, other: Row, key: str) -> Spread:
    """Difference of a figure, seed by seed."""
    pairs = zip(row.answers, other.answers)
    return spread([getattr(figures, key) - getattr(beside, key) for figures, beside in pairs])


def _differ(row: Row, other: Row) -> bool:
    difference = _difference(row, other, "shortfall_rms_hs06")
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
    rows = rows_of(simulation)
    groups = len([name for name in names_of(rows) if name != OTHER]) - MOST_COLUMNS
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
        f"{simulation.scenario}: {state}{days_of(simulation.days)}, {words}; "
        f"{counted(first.pool_cores, 'core')}, {first.pool_hs06:.0f} HS06"
    )


def _mark(simulation: Simulation, outcomes: Sequence[Outcome]) -> str:
    """Name of a strategy, with the days that an interrupted run has."""
    name = outcomes[0].strategy
    if _are_complete(simulation, outcomes):
        return name
    days = fsum(outcome.seconds for outcome in outcomes) / DAY_SECONDS
    return f"{name} ({number(days)} of {days_of(simulation.days * len(simulation.seeds))})"


def days_of(days: float) -> str:
    """Number of days in words."""
    return f"{days:g} day" if days == 1 else f"{days:g} days"


def tables_of(simulation: Simulation) -> Iterator[tuple[str, Sequence[str], list[list[str]]]]:
    """Title, headings and rows of each table that has figures."""
    rows = [
        row._replace(name=_mark(simulation, outcomes))
        for row, outcomes in zip(rows_of(simulation), by_strategy(simulation))
    ]
    headings, shortfalls = _figures(_SHORTFALLS, rows)
    if simulation.bound:
        hs06 = simulation.bound["any_idle_rms_hs06"]
        ratio = cell(hs06, 100 / simulation.outcomes[0].pool_hs06)
        shortfalls.append([BOUND, cell(hs06), ratio, *[NONE] * (len(_SHORTFALLS) - 2)])
    tables = {
        "shortfall (RMS), and idle cores while jobs waited": (headings, shortfalls),
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


def _figures(columns: Sequence[_Column], rows: Sequence[Row]) -> _Cells:
    cells = [[row.name, *(column.cell(row.figures) for column in columns)] for row in rows]
    return ["strategy", *(column.heading for column in columns)], cells


def _causes(rows: Sequence[Row]) -> _Cells:
    key = "idle_core_hours_by_cause"
    causes = [cause for cause in WASTE if any(row.figures[key][cause].most > 0 for row in rows)]
    cells = [[row.name, *(cell(row.figures[key][cause]) for cause in causes)] for row in rows]
    return ["strategy", *causes], cells


def names_of(rows: Sequence[Row]) -> list[str]:
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


def _groups(rows: Sequence[Row], column: _Column) -> _Cells:
    names = [name for name in names_of(rows) if name != OTHER][:MOST_COLUMNS]
    cells = [[row.name, *(column.cell(row.figures["groups"][n]) for n in names)] for row in rows]
    return ["strategy", *names], cells


def _kinds(rows: Sequence[Row]) -> list[tuple[str, int]]:
    """Groups with the sizes of their jobs that started."""
    kinds: dict[str, set[int]] = {name: set() for name in names_of(rows)}
    for row in rows:
        for name, group in row.figures["groups"].items():
            kinds.get(name, set()).update(group["waits_by_cores"])
    return [(name, cores) for name, sizes in kinds.items() for cores in sorted(sizes)]


def _waits(rows: Sequence[Row]) -> _Cells:
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
