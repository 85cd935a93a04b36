"""Decisions of cycles, made again to find what would change them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import fsum
from typing import NamedTuple, Optional

from sharectl.cycle.record import record_of, snapshot_of
from sharectl.explain import what_if
from sharectl.explain.what_if import UNWILLING, Case, Flip, Trials
from sharectl.model import Snapshot, Standing, Target
from sharectl.plan.diff import ESTIMATING, PlanDiff, plan_diff, power_moved_hs06
from sharectl.plan.nodes import UNKNOWN_CODE
from sharectl.plan.plan import Decision, Known, PlanConfig, State
from sharectl.plan.records import CycleRecord, NodeRecord
from sharectl.shares.groups import GroupTree

_OVERRULED = frozenset({"disabled", "withdrawn"})
"""Reasons of `sharectl.plan.plan.REASONS` for no targets whatever the errors call for."""

ALIKE_RATIO = 0.1
"""Part by which alike numbers of targets may differ: rounding moves a few on a large pool."""

UNSEEN = "a decision; which one is not known, since what it would have told is not"
"""Outcome if a source that was silent had answered."""


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


class Exchange(NamedTuple):
    """Power that one group gives to another, by jobs of one size."""

    held_back: str
    helped: str
    request_cores: int
    nodes: tuple[str, ...]
    lost_hs06: float
    """Power that the held-back group is still to lose."""
    gained_hs06: float
    """Power that the helped group gains in whole jobs."""


class Since(NamedTuple):
    """Time since which a target is as it is."""

    at: int
    """Unix seconds."""
    exact: bool
    """True if it is known; else the target is at least as old."""


# ---- decisions made again


def of_ledger(
    record: CycleRecord, before: Optional[CycleRecord], config: PlanConfig, run_times: Known
) -> Explained:
    """A complete cycle, decided again with the configuration of now and its own pledges.

    ``before`` is the complete cycle before.
    """
    state = state_after(before, config.validity_seconds)
    config = with_pledges_of(record, config)
    case = Case(config, state, snapshot_then(record), record.taken_at, run_times)
    return Explained("the ledger", record, case, case.decided())


def of_now(case: Case, source: str) -> Explained:
    """A decision made now, which is not published."""
    decision = case.decided()
    record = record_of(case.config, case.snapshot, decision, decision.plan, ())
    return Explained(source, record, case, decision)


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


# ---- explanations


def explain_group(explained: Explained, group: str) -> Otherwise:
    """Changes that would make a group give, receive, or do neither."""
    case, decision, outcome = explained.case, explained.decision, what_if.role(group)
    were = what_if.counts(targets_of(explained.record), group)
    are = what_if.counts(decision.plan.targets, group)

    def flips(trials: Trials) -> tuple[Flip, ...]:
        if group not in case.config.pledge_hs06:
            return ()
        limits = what_if.limit_levers(case, decision)
        on_nodes = trials.flips(limits, what_if.role(group, nodes=True))
        return (*on_nodes, *trials.flips(what_if.group_levers(case, decision, group), outcome))

    about = all(map(alike, were, are))
    return _otherwise(explained, outcome, flips, same=were == are, about=about)


def explain_node(explained: Explained, record: NodeRecord) -> Otherwise:
    """Changes that would give a node a target, or take it away."""
    case, decision, outcome = explained.case, explained.decision, what_if.under_target(record.node)
    same = what_if.target_on(decision, record.node) == record.target

    def flips(trials: Trials) -> tuple[Flip, ...]:
        node = next((node for node in case.snapshot.nodes if node.name == record.node), None)
        if node is None:
            return ()
        return trials.flips(what_if.node_levers(case, decision, node), outcome) or trials.together(
            what_if.node_conditions(case, decision, node), outcome
        )

    return _otherwise(explained, outcome, flips, same=same, about=same)


def explain_cycle(record: CycleRecord, explained: Optional[Explained]) -> Optional[Otherwise]:
    """Changes that would give the pool more targets, or fewer; None if there is no plan to change.

    ``explained`` is the decision of the cycle made again; None if it was incomplete or imported.
    """
    if explained is None:
        silent = [source.name for source in record.sources if source.problem is not None]
        answer = f"{' and '.join(silent)} answer{'s' * (len(silent) == 1)}"
        change = Flip("answering", answer, None, None, UNSEEN)
        return Otherwise(None, flips=(change,)) if silent and not record.complete else None
    targets, outcome = explained.decision.plan.targets, what_if.targets_in_all
    now, enabled = outcome(explained.decision), "sharectl is enabled (`sharectl enable`)"
    is_off = record.reason == "disabled" and targets
    first = (Flip("enabled", enabled, None, None, now),) if is_off else ()
    return _otherwise(
        explained,
        outcome,
        lambda trials: (*first, *what_if.cycle_flips(trials)),
        same=explained.agrees,
        about=alike(len(targets_of(record)), len(targets)),
    )


def _otherwise(
    explained: Explained,
    outcome: what_if.Outcome,
    flips: Callable[[Trials], tuple[Flip, ...]],
    *,
    same: bool,
    about: bool,
) -> Otherwise:
    """Outcome of deciding now; changes only if that is about the recorded outcome."""
    decisions = max(20, min(90, 40_000 // max(1, len(explained.record.nodes))))
    trials = Trials(explained.case, explained.decision, decisions)
    changes = flips(trials) if about or explained.overruled else ()
    now = outcome(explained.decision)
    return Otherwise(explained, now, same, about, changes, trials.remaining >= 0)


def exchanges(record: CycleRecord) -> tuple[Exchange, ...]:
    """Exchanges of a cycle, the most power first."""
    moves: defaultdict[tuple[str, str, int], list[tuple[str, float, float]]] = defaultdict(list)
    for node in record.nodes:
        if node.target is not None:
            purpose = (node.target.held_back, node.target.helped, node.target.request_cores)
            moves[purpose].append((node.node, *power_moved_hs06(node.target, node)))
    rows = []
    for purpose, moved in moves.items():
        nodes, lost, gained = zip(*moved)
        rows.append(Exchange(*purpose, nodes, fsum(lost), fsum(gained)))
    return tuple(sorted(rows, key=lambda e: (-e.lost_hs06, *e[:3])))


def diff_of(record: CycleRecord, before: Optional[CycleRecord]) -> Optional[PlanDiff]:
    """Changes beside the cycle before; None without that, or without nodes."""
    if before is None or not record.nodes:
        return None
    nodes = {node.node: node for node in record.nodes}
    idle = idle_by_target(before)
    return plan_diff(targets_of(before), targets_of(record), nodes, idle, record.strategy)


def idle_by_target(record: CycleRecord) -> dict[str, float]:
    """Node with a target -> idle core-seconds expected for it; empty without an estimate."""
    if record.strategy not in ESTIMATING:
        return {}
    return {node.node: node.idle_core_seconds for node in record.nodes if node.target is not None}
