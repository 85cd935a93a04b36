"""Changes of a plan, and cycles of the past decided again: as text, JSON and CSV."""

from __future__ import annotations

import csv
import heapq
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Optional, TextIO

from sharectl.explain.again import Outcome, ReplayedCycle, Summary
from sharectl.model import SCHEMA_VERSION, Plan, Target
from sharectl.plan.diff import KINDS, PlanDiff
from sharectl.plan.plan import REASONS
from sharectl.report.tables import print_paragraph, print_table, printable
from sharectl.times import shown
from sharectl.words import counted

ROWS = 14
"""Changes that one screen has room for."""


def diff_data(diff: PlanDiff, decided: Plan, beside: str) -> dict[str, Any]:
    """Keys: beside (the other plan), sequence, reason, counts by kind, changes, effect."""
    return {
        "beside": beside,
        "sequence": decided.sequence,
        "reason": decided.reason,
        **changes_data(diff),
    }


def changes_data(diff: PlanDiff) -> dict[str, Any]:
    """Keys: counts by kind, changes, effect."""
    return {
        "counts": {kind: diff.count(kind) for kind in KINDS},
        "changes": [
            {"kind": change.kind, "nodes": change.nodes, **asdict(change)}
            for change in diff.changes
        ],
        "effect": asdict(diff.effect),
    }


def print_diff(diff: PlanDiff, decided: Plan, beside: str, to: TextIO, *, everything: bool) -> None:
    """Print counts, changes (one screen of them unless ``everything``) and their effect."""
    counts = ", ".join(f"{diff.count(kind)} {kind}" for kind in KINDS)
    print_paragraph(f"beside {beside}: {counts}", to)
    print_paragraph(REASONS[decided.reason], to)
    rows = [change for change in diff.changes if everything or change.kind != "kept"]
    shown_rows = rows if everything else rows[:ROWS]
    if rows:
        print_table(
            "",
            ("change", "node", "before", "after"),
            [
                (
                    change.kind,
                    " -> ".join(change.nodes),
                    target_words(change.before),
                    target_words(change.after),
                )
                for change in shown_rows
            ],
            to,
        )
    if len(rows) > len(shown_rows):
        to.write(f"… and {len(rows) - len(shown_rows)} more: --all\n")
    if any(change.kind != "kept" for change in diff.changes):
        _print_effect(diff, to)


def _print_effect(diff: PlanDiff, to: TextIO) -> None:
    effect = diff.effect
    power = ", ".join(f"{group} {gain:+.0f}" for group, gain in effect.power_hs06.items()) or "none"
    print_paragraph(f"power that changes hands, HS06: {power}", to)
    come, gone = (
        "unknown" if idle is None else f"{idle:.0f}"
        for idle in (effect.idle_core_seconds, effect.spared_idle_core_seconds)
    )
    idle = f"{come} for targets that come, {gone} spared by those that go"
    print_paragraph(f"idle core-seconds expected: {idle}", to)
    if effect.unknown_nodes:
        print_paragraph(
            f"left out, since nothing is known of them: {counted(effect.unknown_nodes, 'node')}", to
        )


def target_words(target: Optional[Target]) -> str:
    """A target without its node: the cap of one group, and the job size of the other."""
    if target is None:
        return "-"
    return f"{target.held_back} <= {target.cap_cores}, {target.helped} by {target.request_cores}"


OPEN_LOOP = (
    "open loop: the pool is what it was in each cycle and does not react to what is decided "
    "here; what such a law would have made of the pool is not told"
)
MAY_DIFFER = (
    "where nothing was changed decisions can differ too: run times are those known today and "
    "jobs' ages are rounded, so that of nodes about alike another one is chosen, whose target "
    "then stands in the cycles after (docs/why.md)"
)
LISTED = 8
"""Cycles that one screen has room for."""

_FIELDS = ("reason", "targets", "changed_nodes", "pairs", "moved_hs06", "idle_core_seconds")
COLUMNS = (
    "cycle",
    "taken_at",
    "agreement_ratio",
    *(f"{side}_{name}" for side in ("was", "would") for name in _FIELDS),
)


def write_csv(cycles: Iterable[ReplayedCycle], heading: Mapping[str, Any], to: TextIO) -> Summary:
    """Write a row for each cycle; cells of unknown values are empty."""
    del heading
    summary = Summary()
    rows = csv.writer(to, lineterminator="\n")
    rows.writerow(COLUMNS)
    for cycle in _counted(cycles, summary):
        ratio = round(cycle.agreement_ratio, 4) if cycle.would else None
        values = (*_values(cycle.was), *_values(cycle.would))
        rows.writerow(map(_cell, (cycle.number, cycle.taken_at, ratio, *values)))
    return summary


def write_json(cycles: Iterable[ReplayedCycle], heading: Mapping[str, Any], to: TextIO) -> Summary:
    """Write one object: heading, cycles on a line each, summary."""
    summary = Summary()
    opening = {"schema_version": SCHEMA_VERSION, "kind": "replay", **heading, "note": OPEN_LOOP}
    to.write(json.dumps(opening)[:-1] + ', "cycles": [')
    for number, cycle in enumerate(_counted(cycles, summary)):
        content = {
            "cycle": cycle.number,
            "taken_at": cycle.taken_at,
            "agreement_ratio": cycle.agreement_ratio if cycle.would else None,
            "was": asdict(cycle.was),
            "would": asdict(cycle.would) if cycle.would else None,
        }
        to.write(f"{',' if number else ''}\n{json.dumps(content)}")
    to.write(f'\n], "summary": {json.dumps(_summary_data(summary))}}}\n')
    return summary


def write_text(
    cycles: Iterable[ReplayedCycle], heading: Mapping[str, Any], to: TextIO, *, everything: bool
) -> Summary:
    """Print the cycles that differ most, or a line for each; then the summary."""
    summary = Summary()
    if everything:
        _write_rows(_counted(cycles, summary), to)
    else:
        # Only the cycles that are printed are held at once.
        differing = (
            cycle for cycle in _counted(cycles, summary) if cycle.same_nodes < cycle.either_nodes
        )
        most = heapq.nsmallest(
            LISTED, differing, key=lambda cycle: (cycle.agreement_ratio, cycle.taken_at)
        )
        if most:
            title = "the cycles that differ most, those first"
            print_table(title, _TABLE, map(_row, most), to)
    if summary.cycles:
        _print_summary(summary, heading, to)
    return summary


FORMATS = {"json": write_json, "csv": write_csv}


def _summary_data(summary: Summary) -> dict[str, Any]:
    return {
        "cycles": summary.cycles,
        "compared": summary.compared,
        "identical": summary.identical,
        "agreement_ratio": summary.agreement_ratio,
        "first_at": summary.first_at,
        "last_at": summary.last_at,
        "was": asdict(summary.was),
        "would": asdict(summary.would),
        "note": MAY_DIFFER if summary.identical < summary.compared else None,
    }


def _counted(cycles: Iterable[ReplayedCycle], summary: Summary) -> Iterator[ReplayedCycle]:
    for cycle in cycles:
        summary.add(cycle)
        yield cycle


_TABLE = ("cycle", "time", "agree", "targets", "pairs", "HS06", "would", "pairs", "HS06")
_WIDTHS = (6, 19, 5, 7, 5, 6, 5, 5, 6)


def _row(cycle: ReplayedCycle) -> tuple[object, ...]:
    was, would = cycle.was, cycle.would
    return (
        cycle.number,
        shown(cycle.taken_at).rpartition(" ")[0],
        f"{cycle.agreement_ratio:.0%}" if would else "-",
        *(was.targets, was.pairs, round(was.moved_hs06)),
        *((would.targets, would.pairs, round(would.moved_hs06)) if would else "---"),
    )


def _write_rows(cycles: Iterable[ReplayedCycle], to: TextIO) -> None:
    """Print a row for each cycle as it comes: widths are fixed because later rows are unknown."""
    for number, cells in enumerate(map(_row, cycles)):
        if not number:
            to.write(_in_columns(_TABLE))
        to.write(_in_columns(cells))


def _in_columns(cells: Sequence[object]) -> str:
    return "  ".join(f"{cell!s:>{width}}" for cell, width in zip(cells, _WIDTHS)) + "\n"


def _print_summary(summary: Summary, heading: Mapping[str, Any], to: TextIO) -> None:
    sides = {"was": summary.was, "would have been": summary.would}
    compared = max(1, summary.compared)
    print_paragraph(f"decided by {heading['decides']}", to)
    print_table(
        f"means of {counted(summary.compared, 'complete cycle')} of {summary.cycles}",
        ("", "active", "targets", "pairs", "changed", "HS06 to move", "idle core-s"),
        [
            (
                name,
                f"{side.with_targets / compared:.0%}",
                f"{side.targets / compared:.1f}",
                f"{side.pairs / compared:.1f}",
                f"{side.changed_nodes / compared:.1f}",
                round(side.moved_hs06 / compared),
                "?" if side.idle_core_seconds is None else round(side.idle_core_seconds / compared),
            )
            for name, side in sides.items()
        ],
        to,
    )
    if summary.agreement_ratio is not None:
        print_paragraph(
            "active: cycles with any target; agree: nodes with the same target in both, of "
            f"those with one in either: {summary.agreement_ratio:.1%} on average, and all of them "
            f"in {counted(summary.identical, 'cycle')}",
            to,
        )
    if summary.identical < summary.compared:
        print_paragraph(MAY_DIFFER, to)
    print_paragraph(OPEN_LOOP, to)


def _values(outcome: Optional[Outcome]) -> list[Any]:
    return [getattr(outcome, name, None) for name in _FIELDS]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.1f}" if isinstance(value, float) and abs(value) > 1 else printable(value)
