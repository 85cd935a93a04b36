"""Costs of negotiation intervals and the choice of one: as JSON, as one table, as one figure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, TextIO

from sharectl.cadence.choice import (
    DAY_HOURS,
    Comparison,
    Cost,
    Recommendation,
    beside,
)
from sharectl.cadence.run_times import Facts
from sharectl.report.scale import AxisUnit, Limits, brief, ticks_up_to
from sharectl.report.svg import GROUPS, Curve, Figure, Value, document, render
from sharectl.report.tables import WIDTH, print_table
from sharectl.words import counted, printable

MOST_TEETH = 200
_KNOBS = {
    "NEGOTIATOR_INTERVAL": "at most so long from the start of a cycle to the next",
    "NEGOTIATOR_CYCLE_DELAY": (
        "at least so long from the end of a cycle to the next, also when a schedd calls for one"
    ),
    "NEGOTIATOR_MIN_INTERVAL": (
        "at least so long from the start of a cycle to the next when a schedd calls (HTCondor 9.2)"
    ),
}
"""Names of the fields of `Knobs`, in their order -> meaning."""


def as_content(comparison: Comparison, facts: Facts) -> dict[str, Any]:
    """Costs by load and interval, the recommendation (or null) and notes."""
    terms, choice = comparison.terms, comparison.choice
    return {
        "source": facts.source,
        "claim_worklife_seconds": terms.worklife_seconds,
        "cores": terms.cores,
        "cycle_duration_seconds": terms.duration_seconds,
        "run_times": [_cost_content(cost, comparison) for cost in comparison.costs],
        "recommendation": _recommendation(comparison, choice, facts) if choice else None,
        "notes": _sentences(comparison, facts, reasons=False),
    }


def _cost_content(cost: Cost, comparison: Comparison) -> dict[str, Any]:
    intervals = []
    for number, option in enumerate(cost.options):
        alone, reused = (
            comparison.idle_hours(cost, number, reused=reused) for reused in (False, True)
        )
        intervals.append(
            {
                "interval_seconds": option.interval_seconds,
                "kept": None if option.negotiating is None else not option.late,
                "cycles_begin_seconds_apart": option.period_seconds,
                "loading_factor": option.alone,
                "loading_factor_claims_reused": option.loading,
                "idle_core_hours_per_day": alone,
                "idle_core_hours_per_day_claims_reused": reused,
                "negotiating_ratio": option.negotiating,
                "cycles_per_day": option.cycles_per_day,
            }
        )
    load = cost.load
    share = None if load.jobs is None else comparison.share(cost)
    facts = {"name": load.name, "jobs": load.jobs, "mean_seconds": load.mean_seconds}
    return {**facts, "share_of_core_seconds": share, "intervals": intervals}


def _recommendation(comparison: Comparison, choice: Recommendation, facts: Facts) -> dict[str, Any]:
    cores, option = comparison.terms.cores, choice.option
    return {
        **dict(zip(_KNOBS, map(round, asdict(choice.knobs).values()))),
        "by_column": _basis(comparison),
        "loading_factor": option.loading,
        "idle_core_hours_per_day": None if cores is None else DAY_HOURS * cores * option.idle,
        "negotiating_ratio": option.negotiating,
        "beside_default": asdict(beside(option, choice.default, cores)),
        "why": _sentences(comparison, facts, reasons=True),
    }


def print_findings(comparison: Comparison, facts: Facts, to: TextIO) -> None:
    """Print the table, notes as comments, and the recommendation as configuration."""
    content, cores = as_content(comparison, facts), comparison.terms.cores
    idle = "idle core-h/day" if cores else "idle h/day of a core"
    pool = f"; idle core-hours a day of {counted(cores, 'core')}" if cores else ""
    load, several = comparison.costs[0].load, len(comparison.costs) > 1
    whose = "" if several else f" of {load.name}, mean {brief(load.mean_seconds)} s"
    columns = [*(("run times", "mean s") if several else ()), "interval s"]
    columns += ["one job a claim %", idle]
    columns += [f"{_basis(comparison)} %", idle] if comparison.terms.worklife_seconds else []
    print_table(
        f"loading factor{whose}: share of their time that slots work while jobs wait{pool}",
        [*columns, "in cycles", "cycles/day"],
        _rows(content, parts=bool(comparison.parts)),
        to,
    )
    for note in content["notes"]:
        print(_comment(note), file=to)
    if choice := content["recommendation"]:
        print("\n# For the central manager; nothing has been changed.", file=to)
        for reason in choice["why"]:
            print(_comment(reason), file=to)
        for name, meaning in _KNOBS.items():
            print(f"{_comment(f'{meaning}, s')}\n{name} = {choice[name]}", file=to)


def _rows(content: dict[str, Any], *, parts: bool) -> Iterator[Sequence[object]]:
    """All jobs at each interval; groups or sizes at the one that is recommended, or the longest."""
    loads, choice = content["run_times"], content["recommendation"]
    longest = loads[0]["intervals"][-1]["interval_seconds"]
    shown = choice["NEGOTIATOR_INTERVAL"] if choice else longest
    claims = ("", "_claims_reused") if content["claim_worklife_seconds"] else ("",)
    for load in loads:
        names = (load["name"], brief(load["mean_seconds"])) if len(loads) > 1 else ()
        for row in load["intervals"]:
            if parts and load is not loads[0] and row["interval_seconds"] != shown:
                continue
            cells: list[object] = [*names, brief(row["interval_seconds"])]
            for column in claims:
                loading = row[f"loading_factor{column}"]
                hours = row[f"idle_core_hours_per_day{column}"]
                hours = DAY_HOURS * (1 - loading) if hours is None else hours
                cells += [round(100 * loading, 2), brief(hours)]
            ratio = row["negotiating_ratio"]
            negotiating = "?" if ratio is None else f"{ratio:.1%}"
            yield (*cells, negotiating, round(row["cycles_per_day"]))


def _sentences(comparison: Comparison, facts: Facts, *, reasons: bool) -> list[str]:
    """Reasons for the interval, or notes: assumptions, unknown values, why none is recommended."""
    terms, choice = comparison.terms, comparison.choice
    option, default = (choice.option, choice.default) if choice else (None, None)
    cost, alone = (
        beside(option, default, terms.cores, reused=reused) if option and default else None
        for reused in (True, False)
    )
    timed = terms.duration_seconds is not None
    text = render(
        "cadence.txt",
        reasons=reasons,
        terms=terms,
        facts=facts,
        choice=choice,
        cost=cost,
        alone=alone,
        basis=_basis(comparison),
        now=comparison.now,
        parts=comparison.parts,
        several_laws=comparison.several_laws,
        late=[option for option in comparison.costs[0].options if timed and option.late],
    )
    return text.splitlines()


def _basis(comparison: Comparison) -> str:
    """Column that the recommendation goes by."""
    worklife = comparison.terms.worklife_seconds
    if worklife == 0:
        return "one job a claim"
    return "claims reused for ever" if worklife < 0 else f"claims reused {brief(worklife)} s"


def _comment(text: str) -> str:
    """Text as comments of HTCondor's configuration, none of which goes on in the next line."""
    return textwrap.fill(
        printable(text).rstrip("\\"),
        WIDTH,
        initial_indent="# ",
        subsequent_indent="# ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def sawteeth(interval_seconds: float, longest_seconds: float) -> list[tuple[float, float]]:
    """Corners of the saw-tooth: run time in seconds, loading factor; at most `MOST_TEETH` teeth."""
    corners = [(0.0, 0.0)]
    for tooth in range(1, MOST_TEETH + 1):
        end = min(tooth * interval_seconds, longest_seconds)
        corners.append((end, end / (tooth * interval_seconds)))
        if end == longest_seconds:
            break
        # Just past the beginning of a cycle a job holds its slot until the next.
        corners.append((end, tooth / (tooth + 1)))
    return corners


def figure(intervals: Sequence[float]) -> str:
    """SVG file of the saw-tooth over run times, for each interval."""
    longest = 4 * max(intervals)
    teeth = {f"{interval:g} s": sawteeth(interval, longest) for interval in intervals}
    drawing = Figure(
        key="saw-tooth",
        title="Loading factor over run time in seconds",
        description="It is 1 at whole numbers of cycles, and n / (n + 1) just past n.",
        across=(0.0, longest),
        ticks=ticks_up_to(longest, 5),
        up=Limits(0.0, 1.0, 0.25),
        unit=AxisUnit(1.0, "loading factor"),
        curves=[
            Curve(name, f"group{number % GROUPS}", [Value(*corner) for corner in corners])
            for number, (name, corners) in enumerate(teeth.items())
        ],
        across_words="seconds",
    )
    return document([drawing])
