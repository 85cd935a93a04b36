"""One cycle: what it decided, what that changed, and what would change it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Optional

from sharectl.explain.again import Explained, Otherwise, alike, targets_of
from sharectl.explain.group import Exchange, exchanges
from sharectl.explain.what_if import Flip, cycle_flips, targets_in_all
from sharectl.plan.diff import ESTIMATING, PlanDiff, plan_diff
from sharectl.plan.records import CycleRecord

PART = 2
"""A cycle takes this part of the decisions that a group does: it is asked for first."""

UNSEEN = "a decision; which one is not known, since what it would have told is not"
"""Outcome if a source that was silent had answered."""


@dataclass(frozen=True)
class CycleExplanation:
    """One cycle of the ledger."""

    record: CycleRecord
    before: Optional[CycleRecord]
    """The last complete cycle before."""
    exchanges: tuple[Exchange, ...]
    diff: Optional[PlanDiff]
    """Beside ``before``; None if there is none, or if this cycle has no nodes."""
    node_reasons: Mapping[str, int]
    """One of `sharectl.plan.plan.NODE_REASONS` -> nodes, the most first."""
    otherwise: Optional[Otherwise]
    """None of an imported cycle, or one without groups: it has no plan to change."""

    @property
    def configuration_changed(self) -> bool:
        """True if another configuration decided in ``before``."""
        return self.before is not None and self.before.configuration != self.record.configuration


def explain_cycle(
    record: CycleRecord, before: Optional[CycleRecord], explained: Optional[Explained]
) -> CycleExplanation:
    """Explanation of a cycle with its nodes.

    Parameters
    ----------
    explained
        Its decision made again; None if it was incomplete or imported.
    """
    reasons = Counter(node.reason for node in record.nodes if node.reason is not None)
    diff = None
    if before is not None and record.nodes:
        nodes = {node.node: node for node in record.nodes}
        idle = idle_by_target(before)
        diff = plan_diff(targets_of(before), targets_of(record), nodes, idle, record.strategy)
    return CycleExplanation(
        record=record,
        before=before,
        exchanges=exchanges(record),
        diff=diff,
        node_reasons=dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
        otherwise=_silent(record) if explained is None else _otherwise(explained),
    )


def idle_by_target(record: CycleRecord) -> dict[str, float]:
    """Node with a target -> idle core-seconds expected for it; empty without an estimate."""
    if record.strategy not in ESTIMATING:
        return {}
    return {node.node: node.idle_core_seconds for node in record.nodes if node.target is not None}


def _silent(record: CycleRecord) -> Optional[Otherwise]:
    silent = [source.name for source in record.sources if source.problem is not None]
    if record.complete or not silent:
        return None
    answer = f"{' and '.join(silent)} answer{'s' * (len(silent) == 1)}"
    return Otherwise(None, flips=(Flip("answering", answer, None, None, UNSEEN),))


def _otherwise(explained: Explained) -> Otherwise:
    targets, outcome = explained.decision.plan.targets, targets_in_all(explained.decision)
    about = alike(len(targets_of(explained.record)), len(targets))
    if not (about or explained.overruled):
        return Otherwise(explained, outcome, same=False, alike=False)
    trials = explained.trials(PART)
    flips = cycle_flips(trials)
    if explained.record.reason == "disabled" and targets:
        enabled = "sharectl is enabled (`sharectl enable`)"
        flips = (Flip("enabled", enabled, None, None, outcome), *flips)
    return Otherwise(explained, outcome, explained.agrees, about, flips, trials.tried_all)
