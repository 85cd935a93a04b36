"""Cycles of the past, decided again by another law.

A replay is an open loop: the pool is what it was in each cycle and does not react. Controllers'
states and standing targets are carried on from the decisions made here, unless the configuration is
the one of then: that cycle decides on the state that it had.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from statistics import fmean
from typing import NamedTuple, Optional

from sharectl.cycle.record import case_of
from sharectl.explain.decisions import OVERRULING, with_pledges_of
from sharectl.model import Standing, Target
from sharectl.plan.diff import ESTIMATING, power_moved_hs06
from sharectl.plan.plan import Decision, PlanConfig, State, decide
from sharectl.plan.records import CycleRecord, NodeRecord

NOTES: Mapping[str, str] = {
    "incomplete": "the pool did not answer completely",
    "overruled": "sharectl was disabled, or another installation published",
    "no-nodes": "its nodes are not in the ledger any more (60 days)",
    "configuration": "another configuration than that of now decided then",
    "not-reproduced": "without a change it does not come to its own targets either: the ledger "
    "lacks something of it",
}
"""Cause why a cycle is not compared, the first three, or not by the change alone -> sentence."""


class DecisionFigures(NamedTuple):
    """Decision of one cycle, in numbers."""

    reason: Optional[str]
    """One of `sharectl.plan.plan.REASONS`; None if nothing was decided."""
    targets: int = 0
    changed_nodes: int = 0
    """Nodes whose target differs from that after the cycle before."""
    pairs: int = 0
    """Pairs of a group that gives and one that receives."""
    moved_hs06: float = 0.0
    """Power that the targets are still to take from groups."""
    idle_core_seconds: Optional[float] = None
    """Expected for the targets that begin in this cycle; None if the strategy has no estimate."""
    with_targets: int = 0
    """1 if there are targets; of sums, the number of such cycles."""


class ReplayedCycle(NamedTuple):
    """One cycle as it was, and as it would have been."""

    number: int
    taken_at: int
    """Unix seconds."""
    was: DecisionFigures
    would: Optional[DecisionFigures]
    """None of a cycle that is not compared."""
    same_nodes: int = 0
    """Nodes whose target is the same in both."""
    either_nodes: int = 0
    """Nodes that have a target in one of them."""
    note: Optional[str] = None
    """One of `NOTES`."""

    @property
    def agreement_ratio(self) -> float:
        """Part of the nodes with a target that have the same in both; 1 without any."""
        return self.same_nodes / self.either_nodes if self.either_nodes else 1.0


class Summary(NamedTuple):
    """All cycles of a replay; sums and means are of those compared."""

    cycles: int
    compared: int
    """Complete cycles whose plan was their own."""
    identical: int
    """Compared cycles that come to the same targets."""
    agreement_ratio: float
    was: DecisionFigures
    """Sums; idle core-seconds are None if one has no estimate."""
    would: DecisionFigures
    notes: Mapping[str, int]
    """One of `NOTES` -> cycles."""


@dataclass(frozen=True)
class Replay:
    """Way in which a replay decides."""

    config: PlanConfig
    unchanged: PlanConfig
    """Configuration of now; ``config`` may differ from it."""
    configuration: str
    """Digest of ``unchanged``, as records have it."""
    withdraws: bool = False
    """True if an incomplete cycle withdraws all targets (control.incomplete)."""


def replayed(how: Replay, records: Iterable[CycleRecord]) -> Iterator[ReplayedCycle]:
    """Each cycle of ``records``, the oldest first, with its nodes; imported ones are left out."""
    carried: Optional[State] = None
    for record in records:
        number, now = record.number, record.taken_at
        if record.imported:
            continue
        note = _not_compared(record)
        if note is not None:
            withdrawn = how.withdraws if note == "incomplete" else record.reason == "disabled"
            carried = replace(carried, standing=()) if carried and withdrawn else carried
            yield ReplayedCycle(number, now, DecisionFigures(record.reason), None, note=note)
            continue
        state, snapshot, run_times = case_of(record)
        was = _by_node(record.nodes)

        def decided(config: PlanConfig, before: State) -> Decision:
            return decide(with_pledges_of(record, config), before, snapshot, now, run_times)  # noqa: B023

        if record.configuration != how.configuration:
            note = "configuration"
        elif {target.node: target for target in decided(how.unchanged, state).plan.targets} != was:
            note = "not-reproduced"
        if carried is None or (how.config is how.unchanged and note != "configuration"):
            carried = state
        decision, before = decided(how.config, carried), carried
        carried, would = decision.state, _by_node(decision.nodes)
        either = {*was, *would}
        yield ReplayedCycle(
            number,
            now,
            _figures(record.reason, record.strategy, record.nodes, state.standing_at(now)),
            _figures(
                decision.plan.reason,
                how.config.strategy,
                decision.nodes,
                before.standing_at(now),
            ),
            same_nodes=sum(was.get(node) == would.get(node) for node in either),
            either_nodes=len(either),
            note=note,
        )


def _not_compared(record: CycleRecord) -> Optional[str]:
    """One of `NOTES`; None for a cycle whose plan was its own."""
    causes = {
        "incomplete": not (record.complete and record.groups),
        "overruled": record.reason in OVERRULING,
        "no-nodes": record.basis is None,
    }
    return next((note for note, applies in causes.items() if applies), None)


def summed(cycles: Sequence[ReplayedCycle]) -> Summary:
    """Summary of cycles, at least one of them compared."""
    compared = [cycle for cycle in cycles if cycle.would is not None]
    return Summary(
        cycles=len(cycles),
        compared=len(compared),
        identical=sum(cycle.same_nodes == cycle.either_nodes for cycle in compared),
        agreement_ratio=fmean(cycle.agreement_ratio for cycle in compared),
        was=_sums(cycle.was for cycle in compared),
        would=_sums(cycle.would for cycle in compared if cycle.would is not None),
        notes=Counter(cycle.note for cycle in cycles if cycle.note),
    )


def _sums(figures: Iterable[DecisionFigures]) -> DecisionFigures:
    _, targets, changed, pairs, moved, idle, active = zip(*figures)
    seconds = None if None in idle else fsum(idle)
    sums = sum(targets), sum(changed), sum(pairs), fsum(moved), seconds, sum(active)
    return DecisionFigures(None, *sums)


def _by_node(nodes: Iterable[NodeRecord]) -> dict[str, Target]:
    return {node.node: node.target for node in nodes if node.target is not None}


def _figures(
    reason: Optional[str],
    strategy: str,
    nodes: Iterable[NodeRecord],
    standing: Iterable[Standing],
) -> DecisionFigures:
    before = {stand.target.node: stand.target for stand in standing}
    steered = [(node, node.target) for node in nodes if node.target is not None]
    begun = [node for node, target in steered if before.get(node.node) != target]
    gone = before.keys() - {node.node for node, _ in steered}
    idle = fsum(node.idle_core_seconds for node in begun)
    return DecisionFigures(
        reason=reason,
        targets=len(steered),
        changed_nodes=len(begun) + len(gone),
        pairs=len({(target.held_back, target.helped) for _, target in steered}),
        moved_hs06=fsum(power_moved_hs06(target, node)[0] for node, target in steered),
        idle_core_seconds=idle if strategy in ESTIMATING else None,
        with_targets=int(bool(steered)),
    )
