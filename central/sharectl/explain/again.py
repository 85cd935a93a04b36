"""Decisions of recorded cycles, made again: to explain them, or by another law (replay).

A replay is an open loop: the pool is what it was in each cycle and does not react. Controllers'
states and standing targets are carried on from the decisions made here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import fsum
from typing import Optional

from sharectl.cycle.record import record_of, snapshot_of
from sharectl.explain.what_if import UNWILLING, Case, Flip, Trials
from sharectl.model import Snapshot, Standing, Target
from sharectl.plan.diff import ESTIMATING, power_moved_hs06
from sharectl.plan.nodes import UNKNOWN_CODE
from sharectl.plan.plan import Decision, Known, PlanConfig, State, decide
from sharectl.plan.records import CycleRecord, NodeRecord
from sharectl.shares.groups import GroupTree

_OVERRULED = frozenset({"disabled", "withdrawn"})
"""Reasons of `sharectl.plan.plan.REASONS` for no targets whatever the errors call for."""

ALIKE_RATIO = 0.1
"""Part by which alike numbers of targets may differ: rounding moves a few on a large pool."""


@dataclass(frozen=True)
class Explained:
    """One decision, with everything that it was made from."""

    source: str
    """Such as ``the ledger``."""
    record: CycleRecord
    """Complete, with its nodes."""
    case: Case
    decision: Decision
    """Made now from ``case``."""

    @property
    def overruled(self) -> bool:
        """True if there were no targets whatever the errors called for."""
        return self.record.reason in _OVERRULED

    @property
    def agrees(self) -> bool:
        """True if deciding now comes to the recorded targets."""
        return set(targets_of(self.record)) == set(self.decision.plan.targets)

    def trials(self, part: int = 1) -> Trials:
        """Trials of some seconds on a pool of this size, divided by ``part``."""
        decisions = 40_000 // max(1, part * len(self.record.nodes))
        return Trials(self.case, self.decision, max(12, min(90, decisions)))


@dataclass(frozen=True)
class Otherwise:
    """Changes of a decision about a group, a node or the pool."""

    explained: Optional[Explained]
    """None where there was nothing to decide on."""
    outcome: Optional[str] = None
    """Outcome of deciding now."""
    same: bool = True
    """True if that is the recorded outcome."""
    alike: bool = True
    """True if it is about the recorded outcome."""
    flips: tuple[Flip, ...] = ()
    tried_all: bool = True

    @property
    def applies(self) -> bool:
        """True if ``flips`` are those of the recorded decision."""
        return self.alike or (self.explained is not None and self.explained.overruled)


def alike(were: int, are: int) -> bool:
    """Compare two numbers of targets: about the same, where 0 is like 0 alone."""
    return abs(were - are) <= ALIKE_RATIO * max(were, are)


def targets_of(record: CycleRecord) -> tuple[Target, ...]:
    """Targets that stood after a cycle, by node."""
    return tuple(node.target for node in record.nodes if node.target is not None)


def state_after(record: Optional[CycleRecord], validity_seconds: int) -> State:
    """State that a complete cycle left; targets count as begun in that cycle."""
    if record is None:
        return State()
    return State(
        sequence=record.sequence or 0,
        nodes=len(record.nodes),
        standing=tuple(Standing(target, record.taken_at) for target in targets_of(record)),
        standing_until=record.taken_at + validity_seconds,
        controllers={control.group: control.state for control in record.groups},
        blocks=record.blocks,
    )


def snapshot_then(record: CycleRecord) -> Snapshot:
    """Snapshot of a complete cycle; nodes that were unwilling then are so again."""
    snapshot = snapshot_of(record)
    unwilling = {node.node for node in record.nodes if node.reason in UNWILLING}
    nodes = (
        replace(node, refusal=UNKNOWN_CODE) if node.name in unwilling else node
        for node in snapshot.nodes
    )
    return replace(snapshot, nodes=tuple(nodes))


def with_pledges_of(record: CycleRecord, config: PlanConfig) -> PlanConfig:
    """Configuration with the groups and pledges of a complete cycle."""
    tree = GroupTree({control.group: control.error.pledge_hs06 for control in record.groups})
    return replace(config, pledge_hs06=tree.steered_hs06, own_hs06=tree.own_hs06)


def of_ledger(
    record: CycleRecord, before: Optional[CycleRecord], config: PlanConfig, known: Known
) -> Explained:
    """A complete cycle, decided again with the configuration of now and its own pledges.

    Parameters
    ----------
    before
        The complete cycle before; None if there is none.
    """
    state = state_after(before, config.validity_seconds)
    config = with_pledges_of(record, config)
    case = Case(config, state, snapshot_then(record), record.taken_at, known)
    return Explained("the ledger", record, case, case.decided())


def of_now(case: Case, source: str) -> Explained:
    """A decision made now, which is not published."""
    decision = case.decided()
    record = record_of(case.config, case.snapshot, decision, decision.plan, ())
    return Explained(source, record, case, decision)


@dataclass(frozen=True)
class Outcome:
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


@dataclass(frozen=True)
class ReplayedCycle:
    """One cycle as it was, and as it would have been."""

    number: int
    taken_at: int
    """Unix seconds."""
    was: Outcome
    would: Optional[Outcome]
    """None of an incomplete cycle: nothing can be decided."""
    same_nodes: int = 0
    """Nodes whose target is the same in both."""
    either_nodes: int = 0
    """Nodes that have a target in one of them."""

    @property
    def agreement_ratio(self) -> float:
        """Part of the nodes with a target that have the same in both; 1 if there is none."""
        return self.same_nodes / self.either_nodes if self.either_nodes else 1.0


@dataclass
class Sums:
    """One side of a summary, over the complete cycles."""

    targets: int = 0
    changed_nodes: int = 0
    pairs: int = 0
    moved_hs06: float = 0.0
    idle_core_seconds: Optional[float] = 0.0
    """None as soon as one cycle has no estimate."""
    with_targets: int = 0
    """Cycles that have any."""

    def add(self, outcome: Outcome) -> None:
        """Count one cycle."""
        self.targets += outcome.targets
        self.changed_nodes += outcome.changed_nodes
        self.pairs += outcome.pairs
        self.moved_hs06 += outcome.moved_hs06
        self.with_targets += outcome.targets > 0
        sums = (self.idle_core_seconds, outcome.idle_core_seconds)
        self.idle_core_seconds = None if None in sums else fsum(filter(None, sums))


@dataclass
class Summary:
    """All cycles of a replay, counted one after the other."""

    cycles: int = 0
    compared: int = 0
    """Complete cycles."""
    identical: int = 0
    """Cycles that come to the same targets."""
    agreement_sum: float = 0.0
    first_at: Optional[int] = None
    last_at: Optional[int] = None
    was: Sums = field(default_factory=Sums)
    would: Sums = field(default_factory=Sums)

    def add(self, cycle: ReplayedCycle) -> None:
        """Count one cycle."""
        self.cycles += 1
        self.first_at = self.first_at or cycle.taken_at
        self.last_at = cycle.taken_at
        if cycle.would is not None:
            self.compared += 1
            self.identical += cycle.same_nodes == cycle.either_nodes
            self.agreement_sum += cycle.agreement_ratio
            self.was.add(cycle.was)
            self.would.add(cycle.would)

    @property
    def agreement_ratio(self) -> Optional[float]:
        """Mean over the complete cycles; None if there is none."""
        return self.agreement_sum / self.compared if self.compared else None


@dataclass(frozen=True)
class Replay:
    """Way in which a replay decides."""

    config: PlanConfig
    known: Known
    """Run times as they are known today."""
    own_pledges: bool = False
    """True if the pledges of ``config`` count, not those recorded with each cycle."""
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
        if record.imported:
            continue
        if not (record.complete and record.groups):
            if how.withdraws:
                state = replace(state, standing=())
            yield ReplayedCycle(record.number, record.taken_at, Outcome(record.reason), None)
            continue
        config = how.config if how.own_pledges else with_pledges_of(record, how.config)
        held = {stand.target.node: stand.target for stand in state.standing_at(record.taken_at)}
        decision = decide(config, state, snapshot_then(record), record.taken_at, how.known)
        state = decision.state
        was, would = _by_node(record.nodes), _by_node(decision.nodes)
        either = {*was, *would}
        yield ReplayedCycle(
            number=record.number,
            taken_at=record.taken_at,
            was=_outcome(record.reason, record.strategy, record.nodes, stood),
            would=_outcome(decision.plan.reason, how.config.strategy, decision.nodes, held),
            same_nodes=sum(was.get(node) == would.get(node) for node in either),
            either_nodes=len(either),
        )
        stood = was


def _by_node(nodes: Iterable[NodeRecord]) -> dict[str, Target]:
    return {node.node: node.target for node in nodes if node.target is not None}


def _outcome(
    reason: Optional[str], strategy: str, nodes: Iterable[NodeRecord], before: Mapping[str, Target]
) -> Outcome:
    steered = [(node, node.target) for node in nodes if node.target is not None]
    begun = [node for node, target in steered if before.get(node.node) != target]
    gone = before.keys() - {node.node for node, _ in steered}
    idle = fsum(node.idle_core_seconds for node in begun)
    return Outcome(
        reason=reason,
        targets=len(steered),
        changed_nodes=len(begun) + len(gone),
        pairs=len({(target.held_back, target.helped) for _, target in steered}),
        moved_hs06=fsum(power_moved_hs06(target, node)[0] for node, target in steered),
        idle_core_seconds=idle if strategy in ESTIMATING else None,
    )
