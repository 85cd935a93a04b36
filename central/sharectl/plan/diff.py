"""Changes from some targets to others: for the audit, ``plan --diff`` and explanations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import fsum
from operator import attrgetter
from typing import Optional

from sharectl.model import Plan, Standing, Target
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

_ORDER = ("moved", "altered", "added", "dropped", "kept")

_purpose = attrgetter("held_back", "helped", "request_cores")


@dataclass(frozen=True)
class Change:
    """One target before and after; on two nodes if it is moved."""

    before: Optional[Target]
    after: Optional[Target]

    @property
    def nodes(self) -> tuple[str, ...]:
        """The node, or the one before and the one after."""
        return tuple(dict.fromkeys(target.node for target in (self.before, self.after) if target))

    @property
    def kind(self) -> str:
        """One of `KINDS`."""
        if self.before is None or self.after is None:
            return "added" if self.before is None else "dropped"
        if self.before.node != self.after.node:
            return "moved"
        return "kept" if self.before == self.after else "altered"


@dataclass(frozen=True)
class ChangeRecord:
    """Changes of one publication."""

    changes: tuple[Change, ...]
    plan: Plan
    reason: str
    """One of `sharectl.plan.plan.REASONS`, or `EXPIRED`."""
    text: str = ""
    """An operator's reason."""
    recovered: bool = False
    """True if the publication before was not recorded: the changes are those of both."""


def changes(before: Iterable[Standing], after: Iterable[Standing]) -> tuple[Change, ...]:
    """Nodes whose target differs, by name."""
    rows = _by_node([stood.target for stood in before], [stood.target for stood in after])
    return tuple(change for change in rows if change.kind != "kept")


def _by_node(before: Iterable[Target], after: Iterable[Target]) -> list[Change]:
    """Each node's target before and after, by name."""
    old = {target.node: target for target in before}
    new = {target.node: target for target in after}
    return [Change(old.get(node), new.get(node)) for node in sorted({*old, *new})]


@dataclass(frozen=True)
class PlanDiff:
    """All changes, each node in one of them, and the effect of those that keep no target."""

    changes: tuple[Change, ...]
    power_hs06: Mapping[str, float]
    """Group -> power that it gains, HS06; below 0: that it loses."""
    idle_core_seconds: Optional[float]
    """Expected for the targets that come; None if the strategy has no estimate."""
    unknown_nodes: int
    """Nodes that are left out because nothing is known of them."""

    def count(self, kind: str) -> int:
        """Number of changes of a kind."""
        return sum(change.kind == kind for change in self.changes)


def plan_diff(
    before: Iterable[Target],
    after: Iterable[Target],
    nodes: Mapping[str, NodeRecord],
    strategy: str,
) -> PlanDiff:
    """Changes from ``before`` to ``after``, which have one target a node.

    ``nodes`` have what they hold, and the costs of their targets by the ``strategy`` of ``after``.
    """
    rows = _by_node(before, after)
    different = [change for change in rows if change.kind != "kept"]
    recorded = [
        (change, nodes[node]) for change in different for node in change.nodes if node in nodes
    ]
    gains: defaultdict[str, list[float]] = defaultdict(list)
    for change, node in recorded:
        for sign, target in ((-1.0, change.before), (1.0, change.after)):
            if target:
                lost, gained = power_moved_hs06(target, node)
                gains[target.held_back].append(-sign * lost)
                gains[target.helped].append(sign * gained)
    come = fsum(node.idle_core_seconds for change, node in recorded if change.after)
    return PlanDiff(
        changes=tuple(sorted(_moves(rows), key=lambda change: _ORDER.index(change.kind))),
        power_hs06={group: fsum(parts) for group, parts in sorted(gains.items())},
        idle_core_seconds=come if strategy == "many" else None,
        unknown_nodes=len(different) - len(recorded),
    )


def power_moved_hs06(target: Target, node: NodeRecord) -> tuple[float, float]:
    """Power that the held-back group is still to lose, and that whole jobs of the helped gain."""
    held = sum(jobs.jobs * jobs.cores for jobs in node.held if jobs.group == target.held_back)
    freed, idle = max(0, held - target.cap_cores), node.idle_cores
    jobs_more = (idle + freed) // target.request_cores - idle // target.request_cores
    return freed * node.hs06_per_core, jobs_more * target.request_cores * node.hs06_per_core


def _moves(rows: Sequence[Change]) -> Iterator[Change]:
    """Changes, where a target that goes and one that comes for the same purpose are one move."""
    come: defaultdict[object, list[Change]] = defaultdict(list)
    for change in rows:
        if change.kind == "added":
            come[_purpose(change.after)].append(change)
    for change in rows:
        arrivals = come[_purpose(change.before)] if change.kind == "dropped" else []
        if arrivals:
            yield Change(change.before, arrivals.pop(0).after)
        elif change.kind != "added":
            yield change
    yield from sorted(chain(*come.values()), key=attrgetter("nodes"))
