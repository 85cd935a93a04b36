"""Explanation of a node: its target or the lack of one, and changes of that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from sharectl.explain.again import Explained, Otherwise
from sharectl.explain.what_if import Flip, node_conditions, node_knobs, target_on, under_target
from sharectl.plan.diff import power_moved_hs06
from sharectl.plan.nodes import NodeWords
from sharectl.plan.records import NodeRecord


@dataclass(frozen=True)
class Since:
    """Time since which a target is as it is."""

    at: int
    """Unix seconds."""
    exact: bool
    """True if it is known; else the target is at least as old."""


@dataclass(frozen=True)
class NodeExplanation:
    """Everything that led to a node's target, or to none."""

    node: NodeRecord
    since: Optional[Since]
    """None without a target."""
    says: Optional[NodeWords]
    """None if the node was not asked."""
    lost_hs06: float
    """Power that the held-back group is still to lose there."""
    gained_hs06: float
    otherwise: Otherwise

    @property
    def estimated(self) -> bool:
        """True if the costs of its target are known: held cores never come free at once."""
        node = self.node
        if node.target is None or node.wait_seconds > 0 or self.lost_hs06 <= 0:
            return True
        return node.idle_cores >= node.target.request_cores


def explain_node(
    explained: Explained, node: NodeRecord, since: Optional[Since], says: Optional[NodeWords]
) -> NodeExplanation:
    """Explanation of a node of the record."""
    lost, gained = power_moved_hs06(node.target, node) if node.target is not None else (0.0, 0.0)
    return NodeExplanation(node, since, says, lost, gained, _otherwise(explained, node))


def _otherwise(explained: Explained, record: NodeRecord) -> Otherwise:
    case, decision, outcome = explained.case, explained.decision, under_target(record.node)
    same = target_on(decision, record.node) == record.target
    node = next((node for node in case.snapshot.nodes if node.name == record.node), None)
    trials = explained.trials()
    flips: tuple[Flip, ...] = ()
    if node is not None and (same or explained.overruled):
        flips = trials.flips(node_knobs(case, decision, node), outcome) or trials.together(
            node_conditions(case, decision, node), outcome
        )
    return Otherwise(explained, outcome(decision), same, same, flips, trials.tried_all)
