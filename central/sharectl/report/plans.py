"""Changes of a plan, and cycles of the past decided again: as text and JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Optional, TextIO

from sharectl.explain.decisions import NOTES, ReplayedCycle, summed
from sharectl.model import Plan, Target
from sharectl.plan.diff import KINDS, PlanDiff
from sharectl.plan.plan import REASONS
from sharectl.report.tables import UNKNOWN, print_paragraph, print_table
from sharectl.words import counted

ROWS = 14
"""Changes that one screen has room for."""
OPEN_LOOP = (
    "open loop: the pool is what it was in each cycle and does not react to what is decided "
    "here; what such a law would have made of the pool is not told"
)


def changes_data(diff: PlanDiff) -> dict[str, Any]:
    """Changes, their number by kind, and their effect."""
    return {
        "counts": {kind: diff.count(kind) for kind in KINDS},
        "changes": [
            {"kind": change.kind, "nodes": change.nodes, **asdict(change)}
            for change in diff.changes
        ],
        "effect": {
            "power_hs06": diff.power_hs06,
            "idle_core_seconds": diff.idle_core_seconds,
            "unknown_nodes": diff.unknown_nodes,
        },
    }


def print_diff(diff: PlanDiff, decided: Plan, beside: str, to: TextIO) -> None:
    """Print counts, one screen of changes, and their effect."""
    counts = ", ".join(f"{diff.count(kind)} {kind}" for kind in KINDS)
    print_paragraph(f"beside {beside}: {counts}", to)
    print_paragraph(REASONS[decided.reason], to)
    changed = [change for change in diff.changes if change.kind != "kept"]
    if not changed:
        return
    rows = [
        (c.kind, " -> ".join(c.nodes), target_words(c.before), target_words(c.after))
        for c in changed[:ROWS]
    ]
    print_table("", ("change", "node", "before", "after"), rows, to)
    if len(changed) > ROWS:
        to.write(f"… and {len(changed) - ROWS} more: --json\n")
    power = ", ".join(f"{group} {gain:+.0f}" for group, gain in diff.power_hs06.items())
    print_paragraph(f"power that changes hands, HS06: {power or 'none'}", to)
    idle = diff.idle_core_seconds
    come = "unknown" if idle is None else f"{idle:.0f}"
    print_paragraph(f"idle core-seconds expected: {come} for targets that come", to)
    if diff.unknown_nodes:
        nodes = counted(diff.unknown_nodes, "node")
        print_paragraph(f"left out, since nothing is known of them: {nodes}", to)


def target_words(target: Optional[Target]) -> str:
    """A target without its node: the cap of one group, and the job size of the other."""
    if target is None:
        return "-"
    return f"{target.held_back} <= {target.cap_cores}, {target.helped} by {target.request_cores}"


def replay_data(cycles: Sequence[ReplayedCycle], heading: Mapping[str, Any]) -> dict[str, Any]:
    """Keys: those of ``heading``, note, cycles, summary."""
    summary = summed(cycles)
    return {
        **heading,
        "note": OPEN_LOOP,
        "cycles": [
            {
                "cycle": cycle.number,
                "taken_at": cycle.taken_at,
                "agreement_ratio": cycle.agreement_ratio if cycle.would else None,
                "was": cycle.was._asdict(),
                "would": cycle.would._asdict() if cycle.would else None,
                "note": cycle.note,
            }
            for cycle in cycles
        ],
        "summary": {
            **summary._asdict(),
            "was": summary.was._asdict(),
            "would": summary.would._asdict(),
            "notes": dict(summary.notes),
        },
    }


def print_replay(cycles: Sequence[ReplayedCycle], decides: str, to: TextIO) -> None:
    """Print means over the cycles; `replay_data` has each."""
    summary = summed(cycles)
    number = summary.compared
    print_paragraph(f"decided by {decides}", to)
    means = []
    for name, side in (("was", summary.was), ("would have been", summary.would)):
        counts = (side.targets, side.pairs, side.changed_nodes)
        moved, idle = round(side.moved_hs06 / number), side.idle_core_seconds
        idle_each = UNKNOWN if idle is None else round(idle / number)
        active = f"{side.with_targets / number:.0%}"
        means.append((name, active, *(f"{n / number:.1f}" for n in counts), moved, idle_each))
    print_table(
        f"means of {counted(number, 'compared cycle')} of {summary.cycles}",
        ("", "active", "targets", "pairs", "changed", "HS06 to move", "idle core-s"),
        means,
        to,
    )
    print_paragraph(
        "active: cycles with any target; agree: nodes with the same target in both, of "
        f"those with one in either: {summary.agreement_ratio:.1%} on average, and all of them "
        f"in {counted(summary.identical, 'cycle')}",
        to,
    )
    for note, cycles_noted in summary.notes.items():
        print_paragraph(f"{counted(cycles_noted, 'cycle')}: {NOTES[note]}", to)
    print_paragraph(OPEN_LOOP, to)
