"""What one cycle saw, decided and changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Optional

from sharectl.core.cycle_record import CycleRecord
from sharectl.core.explain_group import Exchange, exchanges
from sharectl.core.explaining import targets_of
from sharectl.core.plan_diff import ESTIMATING, PlanDiff, plan_diff


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
    """One of `sharectl.core.plan.NODE_REASONS` -> nodes, the most first."""
    configuration_changed: bool
    """Whether what decides was another configuration in ``before``."""


def explain_cycle(record: CycleRecord, before: Optional[CycleRecord]) -> CycleExplanation:
    """Explanation of a cycle that was read with its nodes."""
    reasons = Counter(node.reason for node in record.nodes if node.reason is not None)
    return CycleExplanation(
        record=record,
        before=before,
        exchanges=exchanges(record),
        diff=_diff(record, before) if before is not None and record.nodes else None,
        node_reasons=dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
        configuration_changed=before is not None and before.configuration != record.configuration,
    )


def idle_by_target(record: CycleRecord) -> dict[str, float]:
    """Node with a target -> idle core-seconds expected for it; empty if the strategy did not say."""
    if record.strategy not in ESTIMATING:
        return {}
    return {node.node: node.idle_core_seconds for node in record.nodes if node.target is not None}


def _diff(record: CycleRecord, before: CycleRecord) -> PlanDiff:
    idle = idle_by_target(before)
    nodes = {node.node: node for node in record.nodes}
    return plan_diff(targets_of(before), targets_of(record), nodes, idle, record.strategy)
