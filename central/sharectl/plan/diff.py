"""Changes from some targets to others: for the audit, ``plan --diff`` and explanations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import fsum
from operator import attrgetter
from typing import Optional

from sharectl.model import Plan, Snapshot, Standing, Target
from sharectl.plan.records import NodeRecord

EXPIRED = "expired"
"""Reason of a change that no plan made: the plan before ran out and was not renewed in time."""

KINDS = {
    "added": "the node gets a target",
    "kept": "the target stays as it is",
    "moved": "the target goes to another node, for the same groups and size of jobs",
    "altered": "the node gets another target",
    "dropped": "the node has no target any more",
}
"""Kind of a change -> its sentence."""

_purpose = attrgetter("held_back", "helped", "request_cores")

ESTIMATING = frozenset({"many"})
"""Strategies that estimate how long cores will stand idle."""


@dataclass(frozen=True)
class Change:
    """One node's target before and after; never the same."""

    node: str
    before: Optional[Target]
    after: Optional[Target]

    @property
    def kind(self) -> str:
        """`added`, `altered` or `removed`."""
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "altered"


@dataclass(frozen=True)
class ChangeRecord:
    """Changes of one publication."""

    changes: tuple[Change, ...]
    plan: Plan
    reason: str
    """One of `sharectl.plan.plan.REASONS`, or `EXPIRED`."""
    text: str = ""
    """An operator's reason."""
    snapshot: Optional[Snapshot] = None
    """Snapshot of the decision; None if that takes none."""
    recovered: bool = False
    """True if the publication before was not recorded: the changes are those of both."""


def changes(before: Iterable[Standing], after: Iterable[Standing]) -> tuple[Change, ...]:
    """Nodes whose target differs, by name."""
    old = {stood.target.node: stood.target for stood in before}
    new = {stood.target.node: stood.target for stood in after}
    return tuple(
        Change(node, old.get(node), new.get(node))
        for node in sorted(old.keys() | new.keys())
        if old.get(node) != new.get(node)
    )


@dataclass(frozen=True)
class TargetChange:
    """One target before and after; on two nodes if it is moved."""

    kind: str
    """One of `KINDS`."""
    before: Optional[Target]
    after: Optional[Target]

    @property
    def nodes(self) -> tuple[str, ...]:
        """The node, or the one before and the one after."""
        return tuple(dict.fromkeys(target.node for target in (self.before, self.after) if target))


@dataclass(frozen=True)
class Effect:
    """Effect of all targets but the kept ones, on the nodes as they are now."""

    power_hs06: Mapping[str, float]
    """Group -> power that it gains, HS06; below 0: that it loses."""
    idle_core_seconds: Optional[float]
    """Expected for the targets that come; None if the strategy has no estimate."""
    spared_idle_core_seconds: Optional[float]
    """Expected for the targets that go; None if one of them is not known."""
    unknown_nodes: int = 0
    """Nodes that are left out because nothing is known of them."""


@dataclass(frozen=True)
class PlanDiff:
    """All changes, each node in one of them, and their effect."""

    changes: tuple[TargetChange, ...]
    effect: Effect

    def count(self, kind: str) -> int:
        """Number of changes of a kind."""
        return sum(change.kind == kind for change in self.changes)


def plan_diff(
    before: Iterable[Target],
    after: Iterable[Target],
    nodes: Mapping[str, NodeRecord],
    idle_before_core_seconds: Mapping[str, float],
    strategy: str,
) -> PlanDiff:
    """Changes from ``before`` to ``after``, which have one target a node.

    Parameters
    ----------
    nodes
        Node -> what it holds, and the costs of its target of ``after``.
    idle_before_core_seconds
        Node -> costs of its target of ``before``, where they are known.
    strategy
        Strategy of ``after``.
    """
    old = {target.node: target for target in before}
    new = {target.node: target for target in after}
    return PlanDiff(
        _target_changes(old, new),
        _effect(old, new, nodes, idle_before_core_seconds, estimated=strategy in ESTIMATING),
    )


def power_moved_hs06(target: Target, node: NodeRecord) -> tuple[float, float]:
    """Power that the held-back group is still to lose, and that whole jobs of the helped gain."""
    held = sum(jobs.jobs * jobs.cores for jobs in node.held if jobs.group == target.held_back)
    freed, idle = max(0, held - target.cap_cores), node.idle_cores
    jobs_more = (idle + freed) // target.request_cores - idle // target.request_cores
    return freed * node.hs06_per_core, jobs_more * target.request_cores * node.hs06_per_core


def _target_changes(
    old: Mapping[str, Target], new: Mapping[str, Target]
) -> tuple[TargetChange, ...]:
    """Moved and altered targets first, then by node."""
    come: defaultdict[tuple[str, str, int], list[Target]] = defaultdict(list)
    for node in sorted(new.keys() - old.keys()):
        come[_purpose(new[node])].append(new[node])
    moved, dropped = [], []
    for node in sorted(old.keys() - new.keys()):
        arrivals = come[_purpose(old[node])]
        if arrivals:
            moved.append(TargetChange("moved", old[node], arrivals.pop(0)))
        else:
            dropped.append(TargetChange("dropped", old[node], None))
    both = [(old[node], new[node]) for node in sorted(old.keys() & new.keys())]
    added = sorted(
        (target for targets in come.values() for target in targets), key=attrgetter("node")
    )
    return (
        *moved,
        *(TargetChange("altered", was, now) for was, now in both if was != now),
        *(TargetChange("added", None, target) for target in added),
        *dropped,
        *(TargetChange("kept", was, now) for was, now in both if was == now),
    )


def _effect(
    old: Mapping[str, Target],
    new: Mapping[str, Target],
    nodes: Mapping[str, NodeRecord],
    idle_before: Mapping[str, float],
    *,
    estimated: bool,
) -> Effect:
    different = [node for node in sorted({*old, *new}) if old.get(node) != new.get(node)]
    recorded = [node for node in different if node in nodes]
    gains: defaultdict[str, list[float]] = defaultdict(list)
    for sign, targets in ((-1.0, old), (1.0, new)):
        for node in filter(targets.__contains__, recorded):
            target = targets[node]
            lost, gained = power_moved_hs06(target, nodes[node])
            gains[target.held_back].append(-sign * lost)
            gains[target.helped].append(sign * gained)
    come = fsum(nodes[node].idle_core_seconds for node in recorded if node in new)
    spared = [idle_before.get(node) for node in different if node in old]
    return Effect(
        power_hs06={group: fsum(parts) for group, parts in sorted(gains.items())},
        idle_core_seconds=come if estimated else None,
        spared_idle_core_seconds=None if None in spared else fsum(filter(None, spared)),
        unknown_nodes=len(different) - len(recorded),
    )
