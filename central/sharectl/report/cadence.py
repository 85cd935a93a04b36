"""Costs of negotiation intervals and the choice of one: as JSON, and as one table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, TextIO

from sharectl.cadence.choice import MOST_NEGOTIATING, TOLERANCE, Comparison, Facts, IntervalCost
from sharectl.report.scale import brief
from sharectl.report.svg import render
from sharectl.report.tables import print_paragraph, print_table


def as_content(comparison: Comparison, facts: Facts) -> dict[str, Any]:
    """Run times, costs by interval, the recommendation (or null) and notes."""
    choice = comparison.choice
    return {
        "claim_worklife_seconds": comparison.worklife_seconds,
        "cores": facts.cores,
        "cycle_duration_seconds": facts.duration_seconds,
        "run_times": {"name": facts.name, "mean_seconds": facts.law.mean_seconds},
        "intervals": list(map(asdict, comparison.costs)),
        "default": asdict(comparison.default) if comparison.default else None,
        "recommendation": {**comparison.knobs, **asdict(choice)} if choice else None,
        "notes": _notes(comparison, facts),
    }


def print_findings(comparison: Comparison, facts: Facts, to: TextIO) -> None:
    """Print the table, notes as comments, and the recommendation as configuration."""
    worklife = comparison.worklife_seconds
    idle = "idle core-h/day" if facts.cores else "idle h/day of a core"
    columns = ["interval s", f"{_column(0)} %", idle]
    columns += [f"{_column(worklife)} %", idle] if worklife else []
    mean = brief(facts.law.mean_seconds)
    print_table(
        f"loading factor of {facts.name}, mean {mean} s: share of their time that slots work "
        "while jobs wait",
        [*columns, "in cycles"],
        [[*_cells(cost, facts.cores or 1, with_reuse=bool(worklife))] for cost in comparison.costs],
        to,
    )
    for note in _notes(comparison, facts):
        # HTCondor reads on in the next line after a backslash.
        print_paragraph(note.rstrip("\\"), to, "# ")
    to.writelines(f"{name} = {value}\n" for name, value in comparison.knobs.items())


def _cells(cost: IntervalCost, cores: int, *, with_reuse: bool) -> Iterator[object]:
    yield brief(cost.interval_seconds)
    for loading in (cost.loading_factor, cost.loading_factor_claims_reused)[: 1 + with_reuse]:
        yield round(100 * loading, 2)
        yield brief(24 * cores * (1 - loading))
    yield "?" if cost.negotiating_ratio is None else f"{cost.negotiating_ratio:.1%}"


def _notes(comparison: Comparison, facts: Facts) -> list[str]:
    """Assumptions, unknown values, and reasons for the choice."""
    text = render(
        "cadence.txt",
        most_negotiating=MOST_NEGOTIATING,
        tolerance=TOLERANCE,
        facts=facts,
        comparison=comparison,
        basis=_column(comparison.worklife_seconds),
    )
    return text.splitlines()


def _column(worklife_seconds: float) -> str:
    """Heading of the loading factor with this CLAIM_WORKLIFE."""
    if worklife_seconds == 0:
        return "one job a claim"
    if worklife_seconds < 0:
        return "claims reused for ever"
    return f"claims reused {brief(worklife_seconds)} s"
