"""Changes of a plan, as text and JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Optional, TextIO

from sharectl.model import Plan, Target
from sharectl.plan.diff import KINDS, PlanDiff
from sharectl.plan.plan import REASONS
from sharectl.report.tables import print_paragraph, print_table

ROWS = 14
"""Changes that one screen has room for."""


def changes_data(diff: PlanDiff) -> dict[str, Any]:
    """Changes, their number by kind, and the power that they move."""
    return {
        "counts": {kind: diff.count(kind) for kind in KINDS},
        "changes": [
            {"kind": change.kind, "nodes": change.nodes, **asdict(change)}
            for change in diff.changes
        ],
        "power_hs06": diff.power_hs06,
    }


def print_diff(diff: PlanDiff, decided: Plan, beside: str, to: TextIO) -> None:
    """Print counts, one screen of changes, and the power that they move."""
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
    print_paragraph(f"power that changes hands on known nodes, HS06: {power or 'none'}", to)


def target_words(target: Optional[Target]) -> str:
    """A target without its node: the cap of one group, and the job size of the other."""
    if target is None:
        return "-"
    return f"{target.held_back} <= {target.cap_cores}, {target.helped} by {target.request_cores}"
