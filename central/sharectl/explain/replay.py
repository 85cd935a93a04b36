"""Cycles of the past, decided again by another law.

A replay is an open loop: the pool is what it was in each cycle and does not react. Controllers'
states and standing targets are carried on from the decisions made here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from statistics import fmean
from typing import NamedTuple, Optional

from sharectl.cycle.record import snapshot_of
from sharectl.explain.decisions import with_pledges_of
from sharectl.model import Target
from sharectl.plan.diff import ESTIMATING, power_moved_hs06
from sharectl.plan.plan import PlanConfig, State, decide
from sharectl.plan.records import CycleRecord, NodeRecord
from sharectl.plan.waits import RunTimes


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
    """None of an incomplete cycle: nothing can be decided."""
    same_nodes: int = 0
    """Nodes whose target is the same in both."""
    either_nodes: int = 0
    """Nodes that have a target in one of them."""

    @property
    def agreement_ratio(self) -> float:
        """Part of the nodes with a target that have the same in both; 1 without any."""
        return self.same_nodes / self.either_nodes if self.either_nodes else 1.0


class Summary(NamedTuple):
    """All cycles of a replay; sums and means are of those compared."""

    cycles: int
    compared: int
    """Complete cycles."""
    identical: int
    """Complete cycles that come to the same targets."""
    agreement_ratio: float
    was: DecisionFigures
    """Sums; idle core-seconds are None if one has no estimate."""
    would: DecisionFigures


@dataclass(frozen=True)
class Replay:
    """Way in which a replay decides."""

    config: PlanConfig
    run_times: RunTimes
    """Run times as they are known today."""
    withdraws: bool = False
    """True if an incomplete cycle withdraws all targets (control.incomplete)."""


def replayed(
    how: Replay, records: Iterable[CycleRecord], before: Optional[CycleRecord], state: State
) -> Iterator[ReplayedCycle]:
    """Each cycle of ``records``, the oldest first, with its nodes; imported ones are left out.

    Parameters
    ----------
    before
        The last complete cycle before them, from which the first one's changes are counted.
    state
        State that it left.
    """
    stood = _by_node(before.nodes) if before is not None else {}
    for record in records:
        number, now = record.number, record.taken_at
        if record.imported:
            continue
        if not (record.complete and record.groups):
            state = replace(state, standing=()) if how.withdraws else state
            yield ReplayedCycle(number, now, DecisionFigures(record.reason), None)
            continue
        config = with_pledges_of(record, how.config)
        held = {stand.target.node: stand.target for stand in state.standing_at(now)}
        decision = decide(config, state, snapshot_of(record), now, how.run_times)
        state = decision.state
        was, would = _by_node(record.nodes), _by_node(decision.nodes)
        either = {*was, *would}
        yield ReplayedCycle(
            number,
            now,
            _figures(record.reason, record.strategy, record.nodes, stood),
            _figures(decision.plan.reason, how.config.strategy, decision.nodes, held),
            same_nodes=sum(was.get(node) == would.get(node) for node in either),
            either_nodes=len(either),
        )
        stood = was


def summed(cycles: Sequence[ReplayedCycle]) -> Summary:
    """Summary of cycles, at least one of them complete."""
    compared = [cycle for cycle in cycles if cycle.would is not None]
    return Summary(
        cycles=len(cycles),
        compared=len(compared),
        identical=sum(cycle.same_nodes == cycle.either_nodes for cycle in compared),
        agreement_ratio=fmean(cycle.agreement_ratio for cycle in compared),
        was=_sums(cycle.was for cycle in compared),
        would=_sums(cycle.would for cycle in compared if cycle.would is not None),
    )


def _sums(figures: Iterable[DecisionFigures]) -> DecisionFigures:
    _, targets, changed, pairs, moved, idle, active = zip(*figures)
    seconds = None if None in idle else fsum(idle)
    sums = sum(targets), sum(changed), sum(pairs), fsum(moved), seconds, sum(active)
    return DecisionFigures(None, *sums)


def _by_node(nodes: Iterable[NodeRecord]) -> dict[str, Target]:
    return {node.node: node.target for node in nodes if node.target is not None}


def _figures(
    reason: Optional[str], strategy: str, nodes: Iterable[NodeRecord], before: Mapping[str, Target]
) -> DecisionFigures:
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
