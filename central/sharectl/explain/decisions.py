"""Decisions of cycles, made again to find what would change them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from math import fsum
from typing import NamedTuple, Optional

from sharectl.control.setpoints import SETPOINTS, shared_ratio
from sharectl.cycle.record import case_of, record_of
from sharectl.explain import what_if
from sharectl.explain.what_if import Case, Flip, Outcome
from sharectl.model import Target
from sharectl.plan.diff import power_moved_hs06
from sharectl.plan.plan import Decision, PlanConfig
from sharectl.plan.records import CycleRecord
from sharectl.shares.groups import GroupTree, first_level

OVERRULING = frozenset({"disabled", "foreign", "withdrawn"})
"""Reasons of `sharectl.plan.plan.REASONS` for no targets whatever the errors call for."""

OVERRULED, ANOTHER = "overruled", "another"
"""The cycle was kept from publishing; deciding now comes to other targets than the cycle."""


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
    """`OVERRULED` or `ANOTHER`; empty if deciding now comes to the recorded targets."""


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
    """A complete cycle, decided again with the configuration of now, its own pledges and mode."""
    state, snapshot, run_times = case_of(record)
    tree = GroupTree({control.group: control.error.pledge_hs06 for control in record.groups})
    config = replace(
        config, pledge_hs06=tree.steered_hs06, own_hs06=tree.own_hs06, observes=record.observed
    )
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


def otherwise(explained: Explained, outcome: Outcome, node: Optional[str] = None) -> Otherwise:
    """Changes that would change an outcome; one node, or all, may come under control."""
    note = "" if explained.agrees else ANOTHER
    if explained.record.reason in OVERRULING:
        note = OVERRULED
    nodes = [record.node for record in explained.record.nodes] if node is None else [node]
    flips = what_if.flips(explained.case, explained.decision, outcome, nodes)
    return Otherwise(flips, outcome(explained.decision), note)


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
