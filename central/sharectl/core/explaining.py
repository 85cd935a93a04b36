"""What a decision of the ledger was made from, so that it can be made again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Optional

from sharectl.core.cycle_record import CycleRecord
from sharectl.core.group_tree import GroupTree
from sharectl.core.model import Snapshot, Standing, Target
from sharectl.core.node_reasons import UNKNOWN_CODE
from sharectl.core.plan import Decision, Known, PlanConfig, State
from sharectl.core.recording import record_of
from sharectl.core.replay import snapshot_of
from sharectl.core.what_if import Case
from sharectl.core.what_if_knobs import UNWILLING

_OVERRULED = frozenset({"disabled", "withdrawn"})
"""Of `sharectl.core.plan.REASONS`: why there were no targets whatever was decided."""

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
            Whether deciding now comes to what was recorded for what is explained, or to about as much.
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
        replace(node, refusal=UNKNOWN_CODE) if node.name in unwilling else node for node in snapshot.nodes
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
    case = Case(with_pledges_of(record, config), state, snapshot_then(record), record.taken_at, known)
    return Explained("the ledger", record, before, case, case.decided())


def of_now(case: Case, before: Optional[CycleRecord], source: str) -> Explained:
    """What would be decided now, and is not published."""
    decision = case.decided()
    record = record_of(case.config, case.snapshot, decision, decision.plan, ())
    return Explained(source, record, before, case, decision)
