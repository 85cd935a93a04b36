"""Costs of negotiation intervals and the choice of one: as JSON, and as one table."""

from __future__ import annotations

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
from sharectl.report.scale import brief
from sharectl.report.svg import render
from sharectl.report.tables import print_paragraph, print_table
from sharectl.times import DAY_SECONDS
from sharectl.words import counted

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
        row = {**asdict(cost), "cycles_per_day": DAY_SECONDS / cost.interval_seconds}
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
            "by_column": _column(terms.worklife_seconds),
            "loading_factor": 1 - option.idle,
            "idle_core_hours_per_day": idle_core_hours(option.idle, terms.cores),
            "negotiating_ratio": option.negotiating_ratio,
            "beside_default": asdict(beside(option, choice.default, terms.cores)),
            "why": _sentences(comparison, facts, reasons=True),
        }
    return content


def print_findings(content: dict[str, Any], to: TextIO) -> None:
    """Print the table, notes as comments, and the recommendation as configuration."""
    cores, run_times = content["cores"], content["run_times"]
    idle = "idle core-h/day" if cores else "idle h/day of a core"
    pool = f"; idle core-hours a day of {counted(cores, 'core')}" if cores else ""
    worklife = content["claim_worklife_seconds"]
    columns = ["interval s", f"{_column(0)} %", idle]
    columns += [f"{_column(worklife)} %", idle] if worklife else []
    print_table(
        f"loading factor of {run_times['name']}, mean {brief(run_times['mean_seconds'])} s: share "
        f"of their time that slots work while jobs wait{pool}",
        [*columns, "in cycles", "cycles/day"],
        [[*_cells(row, _CLAIMS if worklife else _CLAIMS[:1])] for row in content["intervals"]],
        to,
    )
    # HTCondor reads on in the next line after a backslash.
    for note in content["notes"]:
        print_paragraph(note.rstrip("\\"), to, "# ")
    if choice := content["recommendation"]:
        to.write("\n# For the central manager; nothing has been changed.\n")
        for reason in choice["why"]:
            print_paragraph(reason, to, "# ")
        for name, meaning in _KNOBS.items():
            print_paragraph(f"{meaning}, s", to, "# ")
            to.write(f"{name} = {choice[name]}\n")


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
        basis=_column(terms.worklife_seconds),
        too_short=[at for at in terms.intervals if not terms.allows(at)],
    )
    return text.splitlines()


def _column(worklife_seconds: float) -> str:
    """Heading of the loading factor with this CLAIM_WORKLIFE."""
    if worklife_seconds == 0:
        return "one job a claim"
    if worklife_seconds < 0:
        return "claims reused for ever"
    return f"claims reused {brief(worklife_seconds)} s"
