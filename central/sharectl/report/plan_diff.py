"""What a plan would change, as JSON and for people."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Optional, TextIO

from sharectl.core.model import Plan, Target
from sharectl.core.plan import REASONS
from sharectl.core.plan_diff import KINDS, PlanDiff, TargetChange
from sharectl.report.screen import print_paragraph
from sharectl.report.tables import print_table
from sharectl.report.words import counted

ROWS = 14
"""Changes that one screen has room for."""


def as_data(diff: PlanDiff, decided: Plan, beside: str) -> dict[str, Any]:
    """Keys: beside (what it is compared with), sequence, reason, counts by kind, changes, effect."""
    return {
        "beside": beside,
        "sequence": decided.sequence,
        "reason": decided.reason,
        "counts": {kind: diff.count(kind) for kind in KINDS},
        "changes": [
            {
                "kind": change.kind,
                "nodes": change.nodes,
                "before": _data(change.before),
                "after": _data(change.after),
            }
            for change in diff.changes
        ],
        "effect": asdict(diff.effect),
    }


def print_diff(diff: PlanDiff, decided: Plan, beside: str, to: TextIO, *, everything: bool) -> None:
    """Print counts, the changes (those that fit on one screen unless ``everything``), and what they do."""
    counts = ", ".join(f"{diff.count(kind)} {kind}" for kind in KINDS)
    print_paragraph(f"beside {beside}: {counts}", to)
    print_paragraph(REASONS[decided.reason], to)
    rows = [change for change in diff.changes if everything or change.kind != "kept"]
    if rows:
        listed = rows if everything else rows[:ROWS]
        print_table("", ("change", "node", "before", "after"), [_row(change) for change in listed], to)
        if len(rows) > len(listed):
            to.write(f"… and {len(rows) - len(listed)} more: --all\n")
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


def _row(change: TargetChange) -> tuple[str, str, str, str]:
    return (change.kind, " -> ".join(change.nodes), words(change.before), words(change.after))


def words(target: Optional[Target]) -> str:
    """A target in words, without its node: who keeps how many cores, and who is let in by which size."""
    if target is None:
        return "-"
    return f"{target.held_back} <= {target.cap_cores}, {target.helped} by {target.request_cores}"


def _data(target: Optional[Target]) -> Optional[dict[str, Any]]:
    return None if target is None else asdict(target)
