"""Costs of negotiation intervals and the choice of one: as JSON, and as one table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, astuple
from typing import Any, TextIO

from sharectl.cadence.choice import (
    MOST_NEGOTIATING,
    TOLERANCE,
    Comparison,
    Facts,
    IntervalCost,
    knobs_of,
)
from sharectl.report.scale import brief
from sharectl.report.svg import render
from sharectl.report.tables import print_paragraph, print_table
from sharectl.times import DAY_SECONDS
from sharectl.words import counted

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
    return {
        "claim_worklife_seconds": terms.worklife_seconds,
        "cores": terms.cores,
        "cycle_duration_seconds": terms.duration_seconds,
        "run_times": {"name": load.name, "jobs": load.jobs, "mean_seconds": load.mean_seconds},
        "intervals": list(map(asdict, comparison.costs)),
        "default": asdict(comparison.default) if comparison.default else None,
        "recommendation": {**_knobs(comparison), **asdict(choice)} if choice else None,
        "notes": _sentences(comparison, facts, reasons=False),
    }


def print_findings(comparison: Comparison, facts: Facts, to: TextIO) -> None:
    """Print the table, notes as comments, and the recommendation as configuration."""
    cores, worklife = comparison.terms.cores, comparison.terms.worklife_seconds
    idle = "idle core-h/day" if cores else "idle h/day of a core"
    pool = f"; idle core-hours a day of {counted(cores, 'core')}" if cores else ""
    columns = ["interval s", f"{_column(0)} %", idle]
    columns += [f"{_column(worklife)} %", idle] if worklife else []
    print_table(
        f"loading factor of {facts.load.name}, mean {brief(facts.load.mean_seconds)} s: share "
        f"of their time that slots work while jobs wait{pool}",
        [*columns, "in cycles", "cycles/day"],
        [[*_cells(cost, cores or 1, with_reuse=bool(worklife))] for cost in comparison.costs],
        to,
    )
    # HTCondor reads on in the next line after a backslash.
    for note in _sentences(comparison, facts, reasons=False):
        print_paragraph(note.rstrip("\\"), to, "# ")
    if comparison.choice:
        to.write("\n# For the central manager; nothing has been changed.\n")
        for reason in _sentences(comparison, facts, reasons=True):
            print_paragraph(reason, to, "# ")
        for name, value in _knobs(comparison).items():
            print_paragraph(f"{_KNOBS[name]}, s", to, "# ")
            to.write(f"{name} = {value}\n")


def _cells(cost: IntervalCost, cores: int, *, with_reuse: bool) -> Iterator[object]:
    yield brief(cost.interval_seconds)
    for loading in (cost.loading_factor, cost.loading_factor_claims_reused)[: 1 + with_reuse]:
        yield round(100 * loading, 2)
        yield brief(24 * cores * (1 - loading))
    yield "?" if cost.negotiating_ratio is None else f"{cost.negotiating_ratio:.1%}"
    yield round(DAY_SECONDS / cost.interval_seconds)


def _knobs(comparison: Comparison) -> dict[str, int]:
    """Names and values of the knobs for the interval that is chosen."""
    interval = comparison.choice.interval_seconds if comparison.choice else 0
    knobs = knobs_of(interval, comparison.terms.duration_seconds or 0)
    return dict(zip(_KNOBS, map(round, astuple(knobs))))


def _sentences(comparison: Comparison, facts: Facts, *, reasons: bool) -> list[str]:
    """Reasons for the interval, or notes: assumptions, unknown values, why none is recommended."""
    text = render(
        "cadence.txt",
        reasons=reasons,
        terms=comparison.terms,
        most_negotiating=MOST_NEGOTIATING,
        tolerance=TOLERANCE,
        facts=facts,
        comparison=comparison,
        basis=_column(comparison.terms.worklife_seconds),
    )
    return text.splitlines()


def _column(worklife_seconds: float) -> str:
    """Heading of the loading factor with this CLAIM_WORKLIFE."""
    if worklife_seconds == 0:
        return "one job a claim"
    if worklife_seconds < 0:
        return "claims reused for ever"
    return f"claims reused {brief(worklife_seconds)} s"
