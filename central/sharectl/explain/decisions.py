"""Decisions of cycles, made again to find what would change them, or by another law.

A replay is an open loop: the pool is what it was in each cycle and does not react. Controllers'
states and standing targets are carried on from the decisions made here, unless the configuration is
the one of then: that cycle decides on the state that it had.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from statistics import fmean
from typing import NamedTuple, Optional

from sharectl.control.setpoints import SETPOINTS, shared_ratio
from sharectl.cycle.record import case_of, record_of
from sharectl.explain import what_if
from sharectl.explain.what_if import Case, Flip, Outcome, Trials
from sharectl.model import Target
from sharectl.plan.diff import power_moved_hs06
from sharectl.plan.plan import Decision, PlanConfig, State
from sharectl.plan.records import CycleRecord, NodeRecord
from sharectl.shares.groups import GroupTree, first_level

OVERRULING = frozenset({"disabled", "foreign", "withdrawn"})
"""Reasons of `sharectl.plan.plan.REASONS` for no targets whatever the errors call for."""

OVERRULED, ANOTHER = "overruled", "another"
"""The cycle was kept from publishing; deciding now comes to another outcome than the cycle."""


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
    def agrees(self) -> bool:
        """True if deciding now comes to the recorded targets."""
        return set(targets_of(self.record)) == set(self.decision.plan.targets)


class Otherwise(NamedTuple):
    """Changes of a decision about a group, a node or the pool."""

    flips: tuple[Flip, ...]
    outcome: str
    """Outcome of deciding now."""
    note: str = ""
    """`OVERRULED` or `ANOTHER`; empty if deciding now comes to the recorded outcome."""
    tried_all: bool = True


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


def of_ledger(record: CycleRecord, config: PlanConfig) -> Explained:
    """A complete cycle, decided again with the configuration of now and its own pledges."""
    case = _case(record, config)
    return Explained("the ledger", record, case, case.decided())


def of_now(case: Case, source: str) -> Explained:
    """A decision made now, which is not published."""
    decision = case.decided()
    record = record_of(case.config, case.snapshot, decision, decision.plan, ())
    return Explained(source, record, case, decision)


def targets_of(record: CycleRecord) -> tuple[Target, ...]:
    """Targets that stood after a cycle, by node."""
    return tuple(node.target for node in record.nodes if node.target is not None)


def _case(record: CycleRecord, config: PlanConfig) -> Case:
    """Case of a complete cycle, with the groups, pledges and mode of then."""
    state, snapshot, run_times = case_of(record)
    return Case(_of_then(record, config), state, snapshot, record.taken_at, run_times)


def _of_then(record: CycleRecord, config: PlanConfig) -> PlanConfig:
    tree = GroupTree({control.group: control.error.pledge_hs06 for control in record.groups})
    return replace(
        config, pledge_hs06=tree.steered_hs06, own_hs06=tree.own_hs06, observes=record.observed
    )


def explain_group(explained: Explained, group: str) -> Otherwise:
    """Changes that would make a group give, receive, or do neither."""
    trials, outcome, flips = _Trials(explained), what_if.role(group), tuple[Flip, ...]()
    if group in trials.case.config.pledge_hs06:
        flips += trials.flips(what_if.limit_levers(trials), what_if.role(group, nodes=True))
        flips += trials.flips(what_if.group_levers(trials, group), outcome)
    were = what_if.counts(targets_of(explained.record), group)
    are = what_if.counts(explained.decision.plan.targets, group)
    return trials.otherwise(flips, outcome, same=were == are)


def explain_node(explained: Explained, record: NodeRecord) -> Otherwise:
    """Changes that would give a node a target, or take it away."""
    trials, outcome = _Trials(explained), what_if.under_target(record.node)
    nodes = [node for node in trials.case.snapshot.nodes if node.name == record.node]
    levers = what_if.node_levers(trials, nodes[0]) if nodes else ()
    same = what_if.target_on(explained.decision, record.node) == record.target
    return trials.otherwise(trials.flips(levers, outcome), outcome, same=same)


def explain_cycle(explained: Explained) -> Otherwise:
    """Changes that would give the pool more targets, or fewer."""
    trials, outcome = _Trials(explained), what_if.targets_in_all
    flips = trials.flips(what_if.cycle_levers(trials), outcome)
    return trials.otherwise(flips, outcome, same=explained.agrees)


class _Trials(Trials):
    """Trials of a decision of a cycle: the fewer, the larger the pool."""

    def __init__(self, explained: Explained) -> None:
        decisions = max(20, min(90, 40_000 // max(1, len(explained.record.nodes))))
        super().__init__(explained.case, explained.decision, decisions)
        self.note = OVERRULED if explained.record.reason in OVERRULING else ""

    def otherwise(self, flips: tuple[Flip, ...], outcome: Outcome, *, same: bool) -> Otherwise:
        """Changes, and the outcome of deciding now; ``same`` if that is the recorded outcome."""
        note = self.note or ("" if same else ANOTHER)
        return Otherwise(flips, outcome(self.decision), note, self.remaining >= 0)


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


def ratio_of(record: CycleRecord, setpoint: str) -> Optional[float]:
    """Power due to each HS06 pledged by one of `SETPOINTS`; None for one of another version."""
    if setpoint not in SETPOINTS:
        return None
    errors = {control.group: control.error for control in record.groups}
    groups = first_level(errors)
    present_hs06 = fsum(node.cores * node.hs06_per_core for node in record.nodes)
    pledges = {group: errors[group].pledge_hs06 for group in groups}
    usage = {group: errors[group].usage for group in groups}
    return shared_ratio(setpoint, pledges, usage, present_hs06)


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


def replayed(
    records: Iterable[CycleRecord],
    config: PlanConfig,
    unchanged: PlanConfig,
    configuration: str,
    *,
    withdraws: bool = False,
) -> Iterator[ReplayedCycle]:
    """Each cycle of ``records``, the oldest first, decided with ``config``.

    ``unchanged`` is the configuration of now, ``configuration`` its digest. An incomplete cycle
    withdraws all targets if ``withdraws`` (control.incomplete).
    """
    carried: Optional[State] = None
    for record in records:
        note = _not_compared(record)
        if note is not None:
            withdrawn = withdraws if note == "incomplete" else record.reason == "disabled"
            carried = replace(carried, standing=()) if carried and withdrawn else carried
            was = DecisionFigures(record.reason)
            yield ReplayedCycle(record.number, record.taken_at, was, None, note=note)
            continue
        case, targets = _case(record, config), _by_node(record.nodes)
        unchanged_case = replace(case, config=_of_then(record, unchanged))
        if record.configuration != configuration:
            note = "configuration"
        elif set(unchanged_case.decided().plan.targets) != set(targets.values()):
            note = "not-reproduced"
        if carried is None or (config is unchanged and note != "configuration"):
            carried = case.state
        other = replace(case, state=carried)
        decision = other.decided()
        would = _by_node(decision.nodes)
        either = targets.keys() | would.keys()
        yield ReplayedCycle(
            record.number,
            record.taken_at,
            _figures(record.reason, record.strategy, record.nodes, case),
            _figures(decision.plan.reason, config.strategy, decision.nodes, other),
            same_nodes=sum(targets.get(node) == would.get(node) for node in either),
            either_nodes=len(either),
            note=note,
        )
        carried = decision.state


def _not_compared(record: CycleRecord) -> Optional[str]:
    """One of `NOTES`; None for a cycle whose plan was its own."""
    if not (record.complete and record.groups):
        return "incomplete"
    if record.reason in OVERRULING:
        return "overruled"
    return "no-nodes" if record.basis is None else None


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
    reason: Optional[str], strategy: str, nodes: Iterable[NodeRecord], case: Case
) -> DecisionFigures:
    """Figures of a decision on ``case`` that comes to the targets of ``nodes``."""
    before = {stand.target.node: stand.target for stand in case.state.standing_at(case.now)}
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
        idle_core_seconds=idle if strategy == "many" else None,
        with_targets=int(bool(steered)),
    )
