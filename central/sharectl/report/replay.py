"""``sharectl replay``: rows as they come, and a summary; as text, JSON or CSV, without holding all of them."""

from __future__ import annotations

import csv
import heapq
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Optional, TextIO

from sharectl.core.model import SCHEMA_VERSION
from sharectl.core.replaying import Outcome, ReplayedCycle, Summary
from sharectl.core.time_words import shown
from sharectl.report.screen import print_paragraph
from sharectl.report.table_layout import shown as printable
from sharectl.report.tables import print_table
from sharectl.report.words import counted

OPEN_LOOP = (
    "open loop: the pool is what it was in each cycle and does not react to what is decided here; what such a law would "
    "have made of the pool is not told"
)
MAY_DIFFER = (
    "where nothing was changed decisions can differ too: run times are those known today and jobs' ages are rounded, so "
    "that of nodes about alike another one is chosen, whose target then stands in the cycles after (docs/why.md)"
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
    """A row a cycle; cells of what is not known are empty."""
    del heading
    summary = Summary()
    rows = csv.writer(to, lineterminator="\n")
    rows.writerow(COLUMNS)
    for cycle in _counted(cycles, summary):
        rows.writerow([_cell(value) for value in _flat(cycle).values()])
    return summary


def write_json(cycles: Iterable[ReplayedCycle], heading: Mapping[str, Any], to: TextIO) -> Summary:
    """One object: heading, cycles one a line, summary."""
    summary = Summary()
    opening = {"schema_version": SCHEMA_VERSION, "kind": "replay", **heading, "note": OPEN_LOOP}
    to.write(json.dumps(opening)[:-1] + ', "cycles": [')
    to.writelines(
        f"{',' if number else ''}\n{json.dumps(_data(cycle))}"
        for number, cycle in enumerate(_counted(cycles, summary))
    )
    to.write(f'\n], "summary": {json.dumps(summary_data(summary))}}}\n')
    return summary


def write_text(
    cycles: Iterable[ReplayedCycle], heading: Mapping[str, Any], to: TextIO, *, everything: bool
) -> Summary:
    """The cycles that differ most, or a line for each; then the summary."""
    summary = Summary()
    seen = _counted(cycles, summary)
    if everything:
        _write_rows(seen, to)
    else:
        listed = _most_different(seen)
        if listed:
            print_table(
                "the cycles that differ most, those first", _TABLE, [_row(cycle) for cycle in listed], to
            )
    if summary.cycles:
        _print_summary(summary, heading, to)
    return summary


FORMATS: Mapping[str, Callable[[Iterable[ReplayedCycle], Mapping[str, Any], TextIO], Summary]] = {
    "json": write_json,
    "csv": write_csv,
}


def summary_data(summary: Summary) -> dict[str, Any]:
    """The summary for JSON."""
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


def _most_different(cycles: Iterable[ReplayedCycle]) -> list[ReplayedCycle]:
    """Those whose targets agree least, these first; only so many are held at once."""
    differing = (cycle for cycle in cycles if cycle.same_nodes < cycle.either_nodes)
    return heapq.nsmallest(LISTED, differing, key=lambda cycle: (cycle.agreement_ratio, cycle.taken_at))


_TABLE = ("cycle", "time", "agree", "targets", "pairs", "HS06", "would", "pairs", "HS06")
_WIDTHS = (6, 19, 5, 7, 5, 6, 5, 5, 6)


def _row(cycle: ReplayedCycle) -> tuple[object, ...]:
    would = cycle.would
    theirs = (would.targets, would.pairs, round(would.moved_hs06)) if would else ("-", "-", "-")
    was = cycle.was
    return (
        cycle.number,
        shown(cycle.taken_at).rpartition(" ")[0],
        f"{cycle.agreement_ratio:.0%}" if would else "-",
        *(was.targets, was.pairs, round(was.moved_hs06)),
        *theirs,
    )


def _write_rows(cycles: Iterable[ReplayedCycle], to: TextIO) -> None:
    """A row a cycle as it comes, below one heading: columns have fixed widths, since the rows to come are not known."""
    for number, cells in enumerate(map(_row, cycles)):
        if not number:
            to.write(f"{_in_columns(_TABLE)}\n")
        to.write(f"{_in_columns(cells)}\n")


def _in_columns(cells: Sequence[object]) -> str:
    return "  ".join(f"{cell!s:>{width}}" for cell, width in zip(cells, _WIDTHS))


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
                *(_mean(total, compared) for total in (side.targets, side.pairs, side.changed_nodes)),
                round(side.moved_hs06 / compared),
                "?" if side.idle_core_seconds is None else round(side.idle_core_seconds / compared),
            )
            for name, side in sides.items()
        ],
        to,
    )
    agreement = summary.agreement_ratio
    if agreement is not None:
        print_paragraph(
            f"active: cycles with any target; agree: nodes with the same target in both, of those with one in either: "
            f"{agreement:.1%} on average, and all of them in {counted(summary.identical, 'cycle')}",
            to,
        )
    if summary.identical < summary.compared:
        print_paragraph(MAY_DIFFER, to)
    print_paragraph(OPEN_LOOP, to)


def _mean(total: float, count: int) -> str:
    return f"{total / count:.1f}"


def _data(cycle: ReplayedCycle) -> dict[str, Any]:
    return {
        "cycle": cycle.number,
        "taken_at": cycle.taken_at,
        "agreement_ratio": cycle.agreement_ratio if cycle.would else None,
        "was": asdict(cycle.was),
        "would": asdict(cycle.would) if cycle.would else None,
    }


def _flat(cycle: ReplayedCycle) -> dict[str, Any]:
    ratio = round(cycle.agreement_ratio, 4) if cycle.would else None
    return dict(
        zip(
            COLUMNS,
            (cycle.number, cycle.taken_at, ratio, *_values(cycle.was), *_values(cycle.would)),
        )
    )


def _values(outcome: Optional[Outcome]) -> list[Any]:
    return [getattr(outcome, name, None) for name in _FIELDS]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.1f}" if isinstance(value, float) and abs(value) > 1 else printable(value)
