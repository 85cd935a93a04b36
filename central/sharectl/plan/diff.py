"""What another set of targets would change: node by node, and in power that changes hands.

What a publication changes, node by node: what the audit tells.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import fsum
from typing import Optional

from sharectl.model import Plan, Snapshot, Standing, Target
from sharectl.plan.records import NodeRecord

EXPIRED = "expired"
"""Reason of a change that no plan made: the plan before ran out and was not renewed in time."""


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
    """The changes of one publication, and why."""

    changes: tuple[Change, ...]
    plan: Plan
    reason: str
    """One of `sharectl.plan.plan.REASONS`, or `EXPIRED`."""
    text: str = ""
    """What an operator gave as his reason."""
    snapshot: Optional[Snapshot] = None
    """What it was decided on; None if that takes none."""
    recovered: bool = False
    """Whether the publication before was not recorded: the changes are those of both."""


def changes(before: Iterable[Standing], after: Iterable[Standing]) -> tuple[Change, ...]:
    """Nodes whose target is another one after than before, by name."""
    old = {stood.target.node: stood.target for stood in before}
    new = {stood.target.node: stood.target for stood in after}
    return tuple(
        Change(node, old.get(node), new.get(node))
        for node in sorted(old.keys() | new.keys())
        if old.get(node) != new.get(node)
    )


KINDS = {
    "added": "the node gets a target",
    "kept": "the node's target stays as it is",
    "moved": "the target goes to another node: the same groups and size of jobs there",
    "altered": "the node's target becomes another one",
    "dropped": "the node has no target any more",
}
"""Kind of a change -> what it is."""

ESTIMATING = frozenset({"many"})
"""Strategies that say how long cores will stand idle."""


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
    """What targets would do on the nodes as they are now, all but those that are kept."""

    power_hs06: Mapping[str, float]
    """Group -> power that it gains by them, HS06; below 0: that it loses."""
    idle_core_seconds: Optional[float]
    """Cores that are expected to stand idle for the targets that come, times seconds; None if the strategy does not say."""
    spared_idle_core_seconds: Optional[float]
    """The same for those that go; None if that is not known of all of them."""
    unknown_nodes: int = 0
    """Nodes of targets of which nothing is known: their effect is left out."""


@dataclass(frozen=True)
class PlanDiff:
    """All changes, each node in one of them, and what they do together."""

    changes: tuple[TargetChange, ...]
    effect: Effect
    """That of the targets after, less that of those before."""

    def count(self, kind: str) -> int:
        """How many changes of that kind there are."""
        return sum(change.kind == kind for change in self.changes)


def plan_diff(
    before: Iterable[Target],
    after: Iterable[Target],
    nodes: Mapping[str, NodeRecord],
    idle_before_core_seconds: Mapping[str, float],
    strategy: str,
) -> PlanDiff:
    """Changes from ``before`` to ``after``, at most one target a node each: what moves and alters first, by node.

    Parameters
    ----------
    nodes
        Node -> what it holds, and what its target of ``after`` costs.
    idle_before_core_seconds
        Node -> what its target of ``before`` costs, where that is known.
    strategy
        Of ``after``; whether it estimates costs is in `ESTIMATING`.
    """
    old = {target.node: target for target in before}
    new = {target.node: target for target in after}
    return PlanDiff(
        _changes(old, new), _effect(old, new, nodes, idle_before_core_seconds, strategy)
    )


def power_moved_hs06(target: Target, node: NodeRecord) -> tuple[float, float]:
    """Power that the held-back group is still to lose by ``target``, and that the helped one gains in whole jobs, HS06."""
    held = sum(jobs.jobs * jobs.cores for jobs in node.held if jobs.group == target.held_back)
    freed, idle = max(0, held - target.cap_cores), node.idle_cores
    jobs_more = (idle + freed) // target.request_cores - idle // target.request_cores
    return freed * node.hs06_per_core, jobs_more * target.request_cores * node.hs06_per_core


def _changes(old: Mapping[str, Target], new: Mapping[str, Target]) -> tuple[TargetChange, ...]:
    gone = [old[node] for node in sorted(old) if node not in new]
    come = [new[node] for node in sorted(new) if node not in old]
    moved = _moved(gone, come)
    left = {target.node for target in moved}
    arrived = {target.node for target in moved.values()}
    both = [(old[node], new[node]) for node in sorted(old) if node in new]
    return (
        *(TargetChange("moved", was, is_now) for was, is_now in moved.items()),
        *(TargetChange("altered", was, is_now) for was, is_now in both if was != is_now),
        *(TargetChange("added", None, target) for target in come if target.node not in arrived),
        *(TargetChange("dropped", target, None) for target in gone if target.node not in left),
        *(TargetChange("kept", was, is_now) for was, is_now in both if was == is_now),
    )


def _moved(gone: Iterable[Target], come: Iterable[Target]) -> dict[Target, Target]:
    """Target that goes -> the one that comes for it: of the same groups and size, by name of node."""
    waiting: defaultdict[tuple[str, str, int], list[Target]] = defaultdict(list)
    for target in come:
        waiting[_purpose(target)].append(target)
    return {
        target: waiting[_purpose(target)].pop(0) for target in gone if waiting.get(_purpose(target))
    }


def _purpose(target: Target) -> tuple[str, str, int]:
    return (target.held_back, target.helped, target.request_cores)


def _effect(
    old: Mapping[str, Target],
    new: Mapping[str, Target],
    nodes: Mapping[str, NodeRecord],
    idle_before: Mapping[str, float],
    strategy: str,
) -> Effect:
    different = [node for node in sorted({*old, *new}) if old.get(node) != new.get(node)]
    known = [node for node in different if node in nodes]
    gains: defaultdict[str, list[float]] = defaultdict(list)
    for sign, targets in ((-1.0, old), (1.0, new)):
        for node in known:
            target = targets.get(node)
            if target is not None:
                lost, gained = power_moved_hs06(target, nodes[node])
                gains[target.held_back].append(-sign * lost)
                gains[target.helped].append(sign * gained)
    going = [node for node in different if node in old]
    spared = [idle_before[node] for node in going if node in idle_before]
    return Effect(
        {group: fsum(parts) for group, parts in sorted(gains.items())},
        fsum(nodes[node].idle_core_seconds for node in known if node in new)
        if strategy in ESTIMATING
        else None,
        fsum(spared) if len(spared) == len(going) else None,
        len(different) - len(known),
    )
