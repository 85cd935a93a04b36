"""Decisions of cycles, made again to find what would change them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from math import fsum
from typing import NamedTuple, Optional

from sharectl.control.setpoints import SETPOINTS, shared_ratio
from sharectl.cycle.record import case_of, record_of
from sharectl.explain import what_if
from sharectl.explain.what_if import Case, Flip, Trials
from sharectl.model import GroupControl, Target
from sharectl.plan.diff import PlanDiff, plan_diff, power_moved_hs06
from sharectl.plan.plan import Decision, PlanConfig
from sharectl.plan.records import CycleRecord, NodeRecord
from sharectl.shares.groups import GroupTree, first_level

OVERRULING = frozenset({"disabled", "foreign", "withdrawn"})
"""Reasons of `sharectl.plan.plan.REASONS` for no targets whatever the errors call for."""

OVERRULED, ANOTHER = "overruled", "another"
"""The cycle was kept from publishing; deciding now comes to another outcome than the cycle."""

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
    def agrees(self) -> bool:
        """True if deciding now comes to the recorded targets."""
        return set(targets_of(self.record)) == set(self.decision.plan.targets)


class Otherwise(NamedTuple):
    """Changes of a decision about a group, a node or the pool."""

    flips: tuple[Flip, ...]
    outcome: Optional[str] = None
    """Outcome of deciding now; None if that cannot be done."""
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


# ---- decisions made again


def of_ledger(record: CycleRecord, config: PlanConfig) -> Explained:
    """A complete cycle, decided again with the configuration of now and its own pledges."""
    state, snapshot, run_times = case_of(record)
    config = with_pledges_of(record, config)
    case = Case(config, state, snapshot, record.taken_at, run_times)
    return Explained("the ledger", record, case, case.decided())


def of_now(case: Case, source: str) -> Explained:
    """A decision made now, which is not published."""
    decision = case.decided()
    record = record_of(case.config, case.snapshot, decision, decision.plan, ())
    return Explained(source, record, case, decision)


def targets_of(record: CycleRecord) -> tuple[Target, ...]:
    """Targets that stood after a cycle, by node."""
    return tuple(node.target for node in record.nodes if node.target is not None)


def with_pledges_of(record: CycleRecord, config: PlanConfig) -> PlanConfig:
    """Configuration with the groups, pledges and mode of a complete cycle."""
    tree = GroupTree({control.group: control.error.pledge_hs06 for control in record.groups})
    return replace(
        config,
        pledge_hs06=tree.steered_hs06,
        own_hs06=tree.own_hs06,
        observes=record.observed,
    )


# ---- explanations


def explain_group(explained: Explained, group: str) -> Otherwise:
    """Changes that would make a group give, receive, or do neither."""
    trials, outcome, flips = _trials(explained), what_if.role(group), tuple[Flip, ...]()
    if group in trials.case.config.pledge_hs06:
        flips += trials.flips(what_if.limit_levers(trials), what_if.role(group, nodes=True))
        flips += trials.flips(what_if.group_levers(trials, group), outcome)
    were = what_if.counts(targets_of(explained.record), group)
    are = what_if.counts(explained.decision.plan.targets, group)
    return _otherwise(explained, trials, flips, outcome, same=were == are)


def explain_node(explained: Explained, record: NodeRecord) -> Otherwise:
    """Changes that would give a node a target, or take it away."""
    trials, outcome = _trials(explained), what_if.under_target(record.node)
    nodes = [node for node in trials.case.snapshot.nodes if node.name == record.node]
    levers = what_if.node_levers(trials, nodes[0]) if nodes else ()
    same = what_if.target_on(explained.decision, record.node) == record.target
    return _otherwise(explained, trials, trials.flips(levers, outcome), outcome, same=same)


def explain_cycle(record: CycleRecord, explained: Optional[Explained]) -> Optional[Otherwise]:
    """Changes that would give the pool more targets, or fewer; None if there is no plan to change.

    ``explained`` is the decision of the cycle made again; None if it was incomplete or imported.
    """
    if explained is None:
        silent = [source.name for source in record.sources if source.problem is not None]
        answer = f"{' and '.join(silent)} answer{'s' * (len(silent) == 1)}"
        change = Flip("answering", answer, None, None, UNSEEN)
        return Otherwise((change,)) if silent and not record.complete else None
    trials, outcome = _trials(explained), what_if.targets_in_all
    flips = trials.flips(what_if.cycle_levers(trials), outcome)
    if record.reason == "disabled" and explained.decision.plan.targets:
        words = "sharectl is enabled (`sharectl enable`)"
        flips = (Flip("enabled", words, None, None, outcome(explained.decision)), *flips)
    return _otherwise(explained, trials, flips, outcome, same=explained.agrees)


def _trials(explained: Explained) -> Trials:
    """Trials of a decision: the fewer, the larger the pool."""
    decisions = max(20, min(90, 40_000 // max(1, len(explained.record.nodes))))
    return Trials(explained.case, explained.decision, decisions)


def _otherwise(
    explained: Explained,
    trials: Trials,
    flips: tuple[Flip, ...],
    outcome: what_if.Outcome,
    *,
    same: bool,
) -> Otherwise:
    """Changes, and the outcome of deciding now; ``same`` if that is the recorded outcome."""
    overruled = explained.record.reason in OVERRULING
    note = OVERRULED if overruled else "" if same else ANOTHER
    return Otherwise(flips, outcome(explained.decision), note, trials.remaining >= 0)


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


def is_withheld(control: GroupControl) -> bool:
    """True if the law got an error of 0 because nobody is to collect the error later."""
    return bool({"no-demand", "no-claimant"}.intersection(control.acted))


def ratio_of(record: CycleRecord, setpoint: str) -> Optional[float]:
    """Power due to each HS06 pledged by one of `SETPOINTS`; None for one of another version."""
    errors = {control.group: control.error for control in record.groups}
    groups = first_level(errors)
    present_hs06 = fsum(node.cores * node.hs06_per_core for node in record.nodes)
    pledges = {group: errors[group].pledge_hs06 for group in groups}
    usage = {group: errors[group].usage for group in groups}
    if setpoint not in SETPOINTS:
        return None
    return shared_ratio(setpoint, pledges, usage, present_hs06)


def diff_of(record: CycleRecord, before: Optional[CycleRecord]) -> Optional[PlanDiff]:
    """Changes beside the cycle before; None without that, or without nodes."""
    if before is None or not record.nodes:
        return None
    nodes = {node.node: node for node in record.nodes}
    return plan_diff(targets_of(before), targets_of(record), nodes, record.strategy)
