"""What a law and a strategy would have decided in cycles of the past, beside what was decided.

The loop is open: the pool is what it was in each cycle, whatever is decided now, and does not
react. Only what a cycle hands to the next (controllers' states, targets that stand) is that of the
decisions made here.

What a decision of the ledger was made from, so that it can be made again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import fsum
from typing import Optional

from sharectl.cycle.record import record_of, snapshot_of
from sharectl.explain.what_if import UNWILLING, Case
from sharectl.model import Snapshot, Standing, Target
from sharectl.plan.diff import ESTIMATING, power_moved_hs06
from sharectl.plan.nodes import UNKNOWN_CODE
from sharectl.plan.plan import Decision, Known, PlanConfig, State
from sharectl.plan.records import CycleRecord, NodeRecord
from sharectl.shares.groups import GroupTree

_OVERRULED = frozenset({"disabled", "withdrawn"})
"""Of `sharectl.plan.plan.REASONS`: why there were no targets whatever was decided."""

ALIKE_RATIO = 0.1
"""Part by which numbers of targets may differ and be alike still: on a large pool what is rounded always moves a few."""


@dataclass(frozen=True)
class Explained:
    """One decision with all that is known of how it came about."""

    source: str
    """Where it is from, such as ``the ledger``."""
    record: CycleRecord
    """Complete, with its nodes."""
    before: Optional[CycleRecord]
    """The complete cycle before; None if there is none."""
    case: Case
    decision: Decision
    """Made now from ``case``: what other decisions are compared with."""

    @property
    def overruled(self) -> bool:
        """Whether there were no targets whatever the errors called for."""
        return self.record.reason in _OVERRULED

    @property
    def agrees(self) -> bool:
        """Whether deciding now comes to the targets that were recorded."""
        return frozenset(targets_of(self.record)) == frozenset(self.decision.plan.targets)

    def tells_otherwise(self, *, same: bool) -> bool:
        """Whether it can be told what would change it: of another decision than the recorded one that would tell nothing.

        Parameters
        ----------
        same
            Whether deciding now comes to what was recorded for what is explained, or to about as
            much.
        """
        return same or self.overruled


def alike(were: int, are: int) -> bool:
    """Whether these are about as many; none and some never are."""
    return abs(were - are) <= ALIKE_RATIO * max(were, are)


def targets_of(record: CycleRecord) -> tuple[Target, ...]:
    """Targets that stood after a cycle, by node."""
    return tuple(node.target for node in record.nodes if node.target is not None)


def state_after(record: Optional[CycleRecord], validity_seconds: int) -> State:
    """State that a complete cycle left, as near as its record tells: since when a target stood it does not."""
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
    """What a complete cycle saw, as near as its record tells; nodes that it left out for what they said say so again."""
    snapshot = snapshot_of(record)
    unwilling = {node.node for node in record.nodes if node.reason in UNWILLING}
    nodes = (
        replace(node, refusal=UNKNOWN_CODE) if node.name in unwilling else node
        for node in snapshot.nodes
    )
    return replace(snapshot, nodes=tuple(nodes))


def with_pledges_of(record: CycleRecord, config: PlanConfig) -> PlanConfig:
    """``config`` with the groups and pledges that a complete cycle went by."""
    tree = GroupTree({control.group: control.error.pledge_hs06 for control in record.groups})
    return replace(config, pledge_hs06=tree.steered_hs06, own_hs06=tree.own_hs06)


def of_ledger(
    record: CycleRecord, before: Optional[CycleRecord], config: PlanConfig, known: Known
) -> Explained:
    """A complete cycle that was read with its nodes, decided again with the configuration of now and its own pledges."""
    state = state_after(before, config.validity_seconds)
    case = Case(
        with_pledges_of(record, config), state, snapshot_then(record), record.taken_at, known
    )
    return Explained("the ledger", record, before, case, case.decided())


def of_now(case: Case, before: Optional[CycleRecord], source: str) -> Explained:
    """What would be decided now, and is not published."""
    decision = case.decided()
    record = record_of(case.config, case.snapshot, decision, decision.plan, ())
    return Explained(source, record, before, case, decision)


Decide = Callable[[PlanConfig, State, Snapshot, int, Known], Decision]


@dataclass(frozen=True)
class Outcome:
    """What one cycle decides."""

    reason: Optional[str]
    """One of `sharectl.plan.plan.REASONS`; None if nothing was decided."""
    targets: int
    changed_nodes: int
    """Nodes whose target is another one than after the cycle before."""
    pairs: int
    """Groups that give, each with each that receives."""
    moved_hs06: float
    """Power that the targets are still to take from groups."""
    idle_core_seconds: Optional[float]
    """Expected for the targets that begin in this cycle; None if the strategy does not say."""


@dataclass(frozen=True)
class ReplayedCycle:
    """One cycle as it was, and as it would have been."""

    number: int
    taken_at: int
    """Unix seconds."""
    was: Outcome
    would: Optional[Outcome]
    """None if the cycle was not complete: nothing can be decided either."""
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
    """None as soon as one cycle does not say."""
    with_targets: int = 0
    """Cycles that have any."""

    def add(self, outcome: Outcome) -> None:
        """Count one cycle."""
        self.targets += outcome.targets
        self.changed_nodes += outcome.changed_nodes
        self.pairs += outcome.pairs
        self.moved_hs06 += outcome.moved_hs06
        self.with_targets += outcome.targets > 0
        if self.idle_core_seconds is None or outcome.idle_core_seconds is None:
            self.idle_core_seconds = None
        else:
            self.idle_core_seconds += outcome.idle_core_seconds


@dataclass
class Summary:
    """All cycles of a replay, counted one after the other."""

    cycles: int = 0
    compared: int = 0
    """Complete ones."""
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
        self.first_at = cycle.taken_at if self.first_at is None else self.first_at
        self.last_at = cycle.taken_at
        if cycle.would is None:
            return
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
    """How a replay decides."""

    config: PlanConfig
    known: Known
    """Run times as they are known today, and not as they were then."""
    decide: Decide
    own_pledges: bool = False
    """Whether the pledges of ``config`` count, and not those that each cycle went by."""
    withdraws: bool = False
    """Whether a cycle that was not complete withdraws all targets (control.incomplete)."""


def replayed(
    how: Replay, records: Iterable[CycleRecord], before: Optional[CycleRecord], state: State
) -> Iterator[ReplayedCycle]:
    """Each cycle of ``records``, the oldest first, which were read with their nodes; imported ones are left out.

    Parameters
    ----------
    before
        The last complete cycle before them: what the first one's changes are counted from.
    state
        What that one left.
    """
    stood = _by_node(before.nodes) if before is not None else {}
    for record in records:
        if record.imported:
            continue
        if not (record.complete and record.groups):
            if how.withdraws:
                state = replace(state, standing=())
            yield ReplayedCycle(record.number, record.taken_at, _nothing(record), None)
            continue
        config = how.config if how.own_pledges else with_pledges_of(record, how.config)
        held = {stand.target.node: stand.target for stand in state.standing_at(record.taken_at)}
        decision = how.decide(config, state, snapshot_then(record), record.taken_at, how.known)
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


def _nothing(record: CycleRecord) -> Outcome:
    return Outcome(record.reason, 0, 0, 0, 0.0, None)


def _outcome(
    reason: Optional[str], strategy: str, nodes: Iterable[NodeRecord], before: Mapping[str, Target]
) -> Outcome:
    under = [(node, node.target) for node in nodes if node.target is not None]
    targets = {node.node: target for node, target in under}
    begun = [node for node, target in under if before.get(node.node) != target]
    gone = sum(node not in targets for node in before)
    return Outcome(
        reason=reason,
        targets=len(targets),
        changed_nodes=len(begun) + gone,
        pairs=len({(target.held_back, target.helped) for target in targets.values()}),
        moved_hs06=fsum(power_moved_hs06(target, node)[0] for node, target in under),
        idle_core_seconds=fsum(node.idle_core_seconds for node in begun)
        if strategy in ESTIMATING
        else None,
    )
