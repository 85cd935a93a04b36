"""Costs of negotiation intervals and the choice of one: as JSON, as one table, as one figure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, TextIO

from sharectl.cadence.choice import (
    DAY_HOURS,
    MOST_NEGOTIATING,
    TOLERANCE,
    Comparison,
    Facts,
    beside,
    idle_core_hours,
)
from sharectl.cadence.run_times import DISTRIBUTIONS, cycles_held, loading_by_cycles
from sharectl.report.scale import Limits, brief, ticks_up_to
from sharectl.report.svg import GROUPS, Curve, Figure, document, render
from sharectl.report.tables import WIDTH, print_table
from sharectl.times import DAY_SECONDS
from sharectl.words import counted, printable

MOST_TEETH = 200
MOST_CYCLES = 4
"""Mean run times of the plot's distributions."""
_MOST_LINES = 12
"""Cycles of a claim that have a line each."""
_CLAIMS = ("", "_claims_reused")
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
    """Run times, costs by interval, the recommendation (or null) and notes."""
    terms, choice, load = comparison.terms, comparison.choice, facts.load
    intervals = []
    for cost in comparison.costs:
        row = {**asdict(cost), "cycles_per_day": DAY_SECONDS / cost.period_seconds}
        for claims in _CLAIMS:
            idle = 1 - row[f"loading_factor{claims}"]
            row[f"idle_core_hours_per_day{claims}"] = idle_core_hours(idle, terms.cores)
        intervals.append(row)
    content = {
        "source": facts.source,
        "claim_worklife_seconds": terms.worklife_seconds,
        "cores": terms.cores,
        "cycle_duration_seconds": terms.duration_seconds,
        "run_times": {"name": load.name, "jobs": load.jobs, "mean_seconds": load.mean_seconds},
        "intervals": intervals,
        "recommendation": None,
        "notes": _sentences(comparison, facts, reasons=False),
    }
    if choice is not None:
        option = choice.option
        content["recommendation"] = {
            **dict(zip(_KNOBS, map(round, asdict(choice.knobs).values()))),
            "by_column": _basis(comparison),
            "loading_factor": 1 - option.idle,
            "idle_core_hours_per_day": idle_core_hours(option.idle, terms.cores),
            "negotiating_ratio": option.negotiating_ratio,
            "beside_default": asdict(beside(option, choice.default, terms.cores)),
            "why": _sentences(comparison, facts, reasons=True),
        }
    return content


def print_findings(comparison: Comparison, facts: Facts, to: TextIO) -> None:
    """Print the table, notes as comments, and the recommendation as configuration."""
    content, cores = as_content(comparison, facts), comparison.terms.cores
    idle = "idle core-h/day" if cores else "idle h/day of a core"
    pool = f"; idle core-hours a day of {counted(cores, 'core')}" if cores else ""
    reused = comparison.terms.worklife_seconds != 0
    columns = ["interval s", "one job a claim %", idle]
    columns += [f"{_basis(comparison)} %", idle] if reused else []
    print_table(
        f"loading factor of {facts.load.name}, mean {brief(facts.load.mean_seconds)} s: share of "
        f"their time that slots work while jobs wait{pool}",
        [*columns, "in cycles", "cycles/day"],
        [[*_cells(row, _CLAIMS[: 1 + reused])] for row in content["intervals"]],
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


def _cells(row: dict[str, Any], claims: Sequence[str]) -> Iterator[object]:
    yield brief(row["interval_seconds"])
    for column in claims:
        loading, hours = row[f"loading_factor{column}"], row[f"idle_core_hours_per_day{column}"]
        yield round(100 * loading, 2)
        yield brief(DAY_HOURS * (1 - loading) if hours is None else hours)
    yield "?" if row["negotiating_ratio"] is None else f"{row['negotiating_ratio']:.1%}"
    yield round(row["cycles_per_day"])


def _sentences(comparison: Comparison, facts: Facts, *, reasons: bool) -> list[str]:
    """Reasons for the interval, or notes: assumptions, unknown values, why none is recommended."""
    terms, choice = comparison.terms, comparison.choice
    cost, alone = (
        beside(choice.option, choice.default, terms.cores, reused=reused) if choice else None
        for reused in (True, False)
    )
    text = render(
        "cadence.txt",
        reasons=reasons,
        terms=terms,
        most_negotiating=MOST_NEGOTIATING,
        tolerance=TOLERANCE,
        facts=facts,
        choice=choice,
        cost=cost,
        alone=alone,
        basis=_basis(comparison),
        now=comparison.now,
        late=[cost for cost in comparison.costs if cost.period_seconds > cost.interval_seconds],
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


def drawing(run_time_seconds: float, intervals: Sequence[float]) -> str:
    """SVG file: the time line of each interval, its saw-tooth, and distributions in cycles."""
    lines = [_time_line(run_time_seconds, interval) for interval in intervals]
    return document([*lines, _teeth_figure(intervals), _distributions_figure()])


def _time_line(run_time: float, interval: float) -> Figure:
    """Slot with one job a claim: the next one starts at the next negotiation cycle."""
    cycles = cycles_held(run_time, interval)
    held = cycles * interval
    busy, idle = [0.0, run_time], [run_time, held]
    begins = range(0, 2 * cycles + 1, 1 if cycles <= _MOST_LINES else cycles)
    parts = {
        f"D = {brief(run_time)} s": [(1.0, busy), (1.0, [at + held for at in busy])],
        f"Z = {brief(held)} s": [(0.5, [0.0, held])],
        f"I = {brief(held - run_time)} s": [(0.0, idle), (0.0, [at + held for at in idle])],
    }
    return Figure(
        key=f"time-line-{interval:g}",
        title=f"Time line of a claim, a cycle every {interval:g} s",
        description="A job runs for D. Its slot is idle for I, until a cycle begins (dotted "
        "lines). Z = D + I is one round, and D / Z is the loading factor.",
        across=(0.0, 2 * held),
        ticks=ticks_up_to(2 * held, 4),
        up=Limits(0.0, 1.0, 1.0),
        unit=f"cycle every {interval:g} s: loading D / Z = {run_time / held:.2%}",
        curves=[
            Curve(
                name,
                f"group{number}",
                [reading for y, xs in spans for reading in (*((x, y) for x in xs), (xs[1], None))],
            )
            for number, (name, spans) in enumerate(parts.items())
        ],
        marks=[(begin * interval, "") for begin in begins],
        across_words="seconds",
    )


def _teeth_figure(intervals: Sequence[float]) -> Figure:
    longest = 4 * max(intervals)
    teeth = {f"{interval:g} s": sawteeth(interval, longest) for interval in intervals}
    return Figure(
        key="saw-tooth",
        title="Loading factor over run time in seconds",
        description="It is 1 at whole numbers of cycles, and n / (n + 1) just past n.",
        across=(0.0, longest),
        ticks=ticks_up_to(longest, 5),
        up=Limits(0.0, 1.0, 0.25),
        unit="loading factor of jobs of one run time",
        curves=[
            Curve(name, f"group{number % GROUPS}", corners)
            for number, (name, corners) in enumerate(teeth.items())
        ],
        across_words="seconds",
    )


def _distributions_figure() -> Figure:
    curves = []
    for number, (name, law_of) in enumerate(DISTRIBUTIONS.items()):
        teeth = loading_by_cycles(law_of, MOST_CYCLES)
        if name == "constant":
            teeth = sawteeth(1.0, MOST_CYCLES)
        curves.append(Curve(name, f"group{number}", teeth))
    return Figure(
        key="distributions",
        title="Loading factor over mean run time in cycles",
        description="The wider run times are spread, the less is left of the saw-tooth.",
        across=(0.0, float(MOST_CYCLES)),
        ticks=ticks_up_to(MOST_CYCLES, 4),
        up=Limits(0.0, 1.0, 0.25),
        unit="loading factor",
        curves=curves,
        across_words="cycles",
    )
