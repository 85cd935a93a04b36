"""Changes of a plan, as text and JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Optional, TextIO

from sharectl.model import Plan, Target
from sharectl.plan.diff import KINDS, PlanDiff
from sharectl.plan.plan import REASONS
from sharectl.report.tables import print_screen


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
    """Print counts, the power that the changes move, and the changes; a terminal gets a screen."""
    counts = ", ".join(f"{diff.count(kind)} {kind}" for kind in KINDS)
    power = ", ".join(f"{group} {gain:+.0f}" for group, gain in diff.power_hs06.items())
    rows = [("plan", REASONS[decided.reason])]
    rows.append(("power", f"changes hands on known nodes, HS06: {power or 'none'}"))
    for change in diff.changes:
        if change.kind != "kept":
            targets = f"{target_words(change.before)} -> {target_words(change.after)}"
            rows.append((change.kind, f"{' -> '.join(change.nodes)}: {targets}"))
    print_screen(f"beside {beside}: {counts}", rows, to)


def target_words(target: Optional[Target]) -> str:
    """A target without its node: the cap of one group, and the job size of the other."""
    if target is None:
        return "-"
    return f"{target.held_back} <= {target.cap_cores}, {target.helped} by {target.request_cores}"
