"""What a publication changes, node by node: what the audit tells."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Optional

from sharectl.core.model import Plan, Snapshot, Standing, Target

EXPIRED = "expired"
"""Reason of a change that no plan made: the plan before ran out and was not renewed in time."""


@dataclass(frozen=True)
class Change:
    """One node's target before and after; never the same."""

    node: str
    before: Optional[Target]
    after: Optional[Target]

    @property
    def kind(self) -> str:
        """`added`, `altered` or `removed`."""
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "altered"


@dataclass(frozen=True)
class ChangeRecord:
    """The changes of one publication, and why."""

    changes: tuple[Change, ...]
    plan: Plan
    reason: str
    """One of `sharectl.core.plan.REASONS`, or `EXPIRED`."""
    text: str = ""
    """What an operator gave as his reason."""
    snapshot: Optional[Snapshot] = None
    """What it was decided on; None if that takes none."""
    recovered: bool = False
    """Whether the publication before was not recorded: the changes are those of both."""


def changes(before: Iterable[Standing], after: Iterable[Standing]) -> tuple[Change, ...]:
    """Nodes whose target is another one after than before, by name."""
    old = {stood.target.node: stood.target for stood in before}
    new = {stood.target.node: stood.target for stood in after}
    return tuple(
        Change(node, old.get(node), new.get(node))
        for node in sorted(old.keys() | new.keys())
        if old.get(node) != new.get(node)
    )
