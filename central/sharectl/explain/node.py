"""Why a node has its target, or has none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from sharectl.explain.again import Explained
from sharectl.explain.what_if import (
    Budget,
    Flip,
    budget_for,
    conditions,
    flips,
    needed_together,
    node_knobs,
    target_on,
    under_target,
)
from sharectl.plan.diff import power_moved_hs06
from sharectl.plan.nodes import NodeWords
from sharectl.plan.records import NodeRecord


@dataclass(frozen=True)
class Since:
    """Since when a target is as it is."""

    at: int
    """Unix seconds."""
    exact: bool
    """Whether it is known; else it is at least as old."""


@dataclass(frozen=True)
class NodeExplanation:
    """All that led to what one node was told."""

    node: NodeRecord
    since: Optional[Since]
    """None without a target."""
    says: Optional[NodeWords]
    """None if it was not asked."""
    lost_hs06: float
    """Power that the held-back group is still to lose there."""
    gained_hs06: float
    has_target: bool
    """What deciding now comes to."""
    same: bool
    """Whether that is the target, or none, that was recorded."""
    flips: tuple[Flip, ...]
    """Empty where `sharectl.explain.again.Explained.tells_otherwise` is false."""
    tried_all: bool
    """Whether the pool was small enough to try all that could change it."""

    @property
    def estimated(self) -> bool:
        """Whether it is known what its target costs: cores that are held come free after some time, never at once."""
        node = self.node
        if node.target is None or node.wait_seconds > 0 or self.lost_hs06 <= 0:
            return True
        return node.idle_cores >= node.target.request_cores


def explain_node(
    explained: Explained, node: NodeRecord, since: Optional[Since], says: Optional[NodeWords]
) -> NodeExplanation:
    """Explanation of a node that the record has."""
    budget = Budget(budget_for(len(explained.record.nodes)))
    lost, gained = power_moved_hs06(node.target, node) if node.target is not None else (0.0, 0.0)
    decided = target_on(explained.decision, node.node)
    same = decided == node.target
    return NodeExplanation(
        node=node,
        since=since if node.target is not None else None,
        says=says,
        lost_hs06=lost,
        gained_hs06=gained,
        has_target=decided is not None,
        same=same,
        flips=_flips(explained, node.node, budget) if explained.tells_otherwise(same=same) else (),
        tried_all=budget.enough,
    )


def _flips(explained: Explained, name: str, budget: Budget) -> tuple[Flip, ...]:
    case = explained.case
    there = next((node for node in case.snapshot.nodes if node.name == name), None)
    if there is None:
        return ()
    outcome = under_target(name)
    found = flips(case, node_knobs(case, explained.decision, there), outcome, budget)
    return found or needed_together(
        case, conditions(case, explained.decision, there), outcome, budget
    )
