"""What one cycle saw, decided and changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Optional

from sharectl.explain.again import Explained, alike, targets_of
from sharectl.explain.group import Exchange, exchanges
from sharectl.explain.what_if import Budget, Flip, budget_for, cycle_flips, targets_in_all
from sharectl.plan.diff import ESTIMATING, PlanDiff, plan_diff
from sharectl.plan.records import CycleRecord

SHARE_OF_BUDGET = 2
"""A cycle tells of more than a group does, and is asked for first: it takes this part of the decisions."""

UNSEEN = "a decision; which one is not known, since what it would have told is not"
"""What would come of a source that did not answer."""


@dataclass(frozen=True)
class Otherwise:
    """What would change the plan of a cycle."""

    explained: Optional[Explained]
    """What was decided again; None if there was nothing to decide on."""
    flips: tuple[Flip, ...]
    tried_all: bool = True
    """Whether the pool was small enough to try all that could change it."""
    alike: bool = True
    """Whether deciding now comes to about as many targets as were recorded; else nothing is tried."""


@dataclass(frozen=True)
class CycleExplanation:
    """One cycle of the ledger."""

    record: CycleRecord
    before: Optional[CycleRecord]
    """The last cycle before that knew its nodes."""
    exchanges: tuple[Exchange, ...]
    diff: Optional[PlanDiff]
    """Beside ``before``; None if there is none, or if this cycle published nothing."""
    node_reasons: Mapping[str, int]
    """One of `sharectl.plan.plan.NODE_REASONS` -> nodes, the most first."""
    configuration_changed: bool
    """Whether what decides was another configuration in ``before``."""
    otherwise: Optional[Otherwise]
    """None of an imported cycle, or one without groups: it has no plan to change."""


def explain_cycle(
    record: CycleRecord, before: Optional[CycleRecord], explained: Optional[Explained]
) -> CycleExplanation:
    """Explanation of a cycle that was read with its nodes.

    Parameters
    ----------
    explained
        Its decision made again; None if it was not complete or was imported.
    """
    reasons = Counter(node.reason for node in record.nodes if node.reason is not None)
    return CycleExplanation(
        record=record,
        before=before,
        exchanges=exchanges(record),
        diff=_diff(record, before) if before is not None and record.nodes else None,
        node_reasons=dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
        configuration_changed=before is not None and before.configuration != record.configuration,
        otherwise=_otherwise(record, explained),
    )


def idle_by_target(record: CycleRecord) -> dict[str, float]:
    """Node with a target -> idle core-seconds expected for it; empty if the strategy did not say."""
    if record.strategy not in ESTIMATING:
        return {}
    return {node.node: node.idle_core_seconds for node in record.nodes if node.target is not None}


def _otherwise(record: CycleRecord, explained: Optional[Explained]) -> Optional[Otherwise]:
    if explained is None:
        silent = [source.name for source in record.sources if source.problem is not None]
        if record.complete or not silent:
            return None
        answer = f"{' and '.join(silent)} answer{'s' * (len(silent) == 1)}"
        return Otherwise(None, (Flip("answering", answer, None, None, UNSEEN),))
    about = alike(len(targets_of(record)), len(explained.decision.plan.targets))
    if not explained.tells_otherwise(same=about):
        return Otherwise(explained, (), alike=False)
    budget = Budget(budget_for(SHARE_OF_BUDGET * len(record.nodes)))
    found = cycle_flips(explained.case, explained.decision, budget)
    if record.reason == "disabled" and explained.decision.plan.targets:
        outcome = targets_in_all(explained.decision)
        found = (
            Flip("enabled", "sharectl is enabled (`sharectl enable`)", None, None, outcome),
            *found,
        )
    return Otherwise(explained, found, budget.enough)


def _diff(record: CycleRecord, before: CycleRecord) -> PlanDiff:
    idle = idle_by_target(before)
    nodes = {node.node: node for node in record.nodes}
    return plan_diff(targets_of(before), targets_of(record), nodes, idle, record.strategy)
