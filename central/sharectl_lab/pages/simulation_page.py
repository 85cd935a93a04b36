"""The page of ``sharectl simulate``: verdict, shortfall against idle cores, groups over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import ceil, fsum
from pathlib import Path
from typing import Callable, Optional

from sharectl.report.scale import short, ticks_up_to
from sharectl.report.svg import LINES, PLOT_WIDTH, Curve, Figure, Reading, described, drawing
from sharectl.report.svg import page as html
from sharectl.times import DAY_SECONDS
from sharectl_lab.pages.simulation import Simulation, days_of, tables_of, verdict
from sharectl_lab.twin.answers import WASTE, missing_hs06
from sharectl_lab.twin.records import CAUSES, Outcome

BEGIN = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="generator" content="sharectl simulate">
"""
"""Begin of every page: `sharectl simulate` replaces no other file."""
MOST_POINTS = PLOT_WIDTH
"""Points of a line: one for each unit across the plot."""
_TICKS = 5
_Section = tuple[str, str, str, list[dict[str, str]]]
"""Anchor, heading, words, and drawings."""


def page(simulation: Simulation) -> str:
    """One HTML document that stands alone; it runs no script and loads nothing."""
    first = simulation.outcomes[0]
    notes = [] if simulation.complete else ["Interrupted: figures are of what was simulated."]
    return html(
        Path(__file__).with_name("simulation.html"),
        verb="simulate",
        title=f"Strategies on {simulation.scenario}",
        verdict=verdict(simulation),
        figures_of_pool=[
            ("Simulated", days_of(simulation.days)),
            ("Seeds", ", ".join(map(str, simulation.seeds))),
            ("Cores", short(first.pool_cores)),
            ("Power", f"{short(first.pool_hs06)} HS06"),
            ("Groups", short(len(simulation.groups))),
        ],
        notes=[*notes, *simulation.notes],
        summaries=simulation.strategies,
        tables=[
            (title, [(heading, "") for heading in columns], cells)
            for title, columns, cells in tables_of(simulation)
        ],
        figures=list(_sections(simulation)),
        causes={cause: CAUSES[cause] for cause in WASTE},
        seeds=len(simulation.seeds),
        bound=simulation.bound,
    )


def _sections(simulation: Simulation) -> Iterator[_Section]:
    price = _price(simulation)
    if price is not None:
        words = "Down is better, and left is cheaper. A point is a strategy, the mean over seeds; "
        words += "the lines through it are the standard deviation."
        yield "price", "Shortfall against idle cores", words, [drawing(price)]
    firsts = [row.outcomes[0] for row in simulation.rows if row.outcomes[0].times]
    if not firsts:
        return
    few = f" The first {LINES} strategies." if len(firsts) > LINES else ""
    seed = f"Seed {simulation.seeds[0]}." if len(simulation.seeds) > 1 else ""
    days = max(outcome.times[-1] / DAY_SECONDS for outcome in firsts)

    def figure(
        key: str, caption: str, title: str, values: Callable[[Outcome], Sequence[float]]
    ) -> Figure:
        curves = [
            Curve(outcome.strategy, f"group{place}", _means(outcome, values(outcome)))
            for place, outcome in enumerate(firsts[:LINES])
        ]
        return Figure(
            key=key,
            title=title,
            caption=caption,
            description=described("In HS06.", curves),
            across=(0.0, days),
            ticks=ticks_up_to(days, _TICKS),
            unit="HS06",
            curves=curves,
            across_words="days",
            broad=not caption,
        )

    total = figure("shortfall", "", "Shortfall, HS06 over days", missing_hs06)
    words = f"Power that is due and not used. {seed}{few}"
    yield "shortfall", "Shortfall over time", words, [drawing(total)]
    shown = []
    for place, name in enumerate(simulation.groups, start=1):
        power = partial(_power, name)
        shown.append(drawing(figure(f"g{place}", name, f"{name}, HS06 over days", power)))
    yield "groups", "Groups over time", f"Power that each group uses. {seed}{few}", shown


def _power(name: str, outcome: Outcome) -> Sequence[float]:
    return outcome.groups[name].power_hs06


def _price(simulation: Simulation) -> Optional[Figure]:
    """Shortfall of each strategy against its idle core-hours, with the bound."""
    rows = [row for row in simulation.rows if row.complete]
    curves, spreads = [], []
    for place, row in enumerate(rows):
        idle, missing = row.figures["idle_core_hours"], row.figures["shortfall_rms_hs06"]
        curves.append(Curve(row.name, f"group{place % LINES}", [(idle.mean, missing.mean)]))
        if idle.sd or missing.sd:
            low, high = max(0.0, missing.mean - missing.sd), missing.mean + missing.sd
            spreads.append(((idle.mean, low), (idle.mean, high)))
            low, high = max(0.0, idle.mean - idle.sd), idle.mean + idle.sd
            spreads.append(((low, missing.mean), (high, missing.mean)))
    most = max((row.figures["idle_core_hours"].most for row in rows), default=0.0)
    if not most:
        return None
    words = [
        f"{curve.name}: {short(missing)} with {short(idle)} idle core-hours."
        for curve in curves
        for idle, missing in curve.readings
    ]
    if simulation.bound:
        least = [shortfall.mean for shortfall in simulation.bound["shortfall_rms_hs06"]]
        bound = zip(simulation.bound["idle_core_hours"], least)
        curves.append(Curve("bound", "pledge", list(bound)))
    return Figure(
        key="price",
        title="Shortfall (RMS) against idle core-hours while jobs waited",
        description=" ".join(["In HS06.", *words]),
        across=(0.0, most),
        ticks=ticks_up_to(most, 2 * _TICKS),
        unit="HS06, RMS over time",
        curves=curves,
        points=True,
        spreads=spreads,
        across_words="idle core-hours",
        broad=True,
    )


def _means(outcome: Outcome, values: Sequence[float]) -> list[Reading]:
    """Means of at most `MOST_POINTS` stretches, each at its end in days."""
    step = max(1, ceil(len(values) / MOST_POINTS))
    stretches = [values[begin : begin + step] for begin in range(0, len(values), step)]
    ends = outcome.times[step - 1 :: step]
    return [
        (end / DAY_SECONDS, fsum(stretch) / len(stretch)) for end, stretch in zip(ends, stretches)
    ]
