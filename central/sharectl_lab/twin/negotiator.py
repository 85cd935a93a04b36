"""Negotiation cycle: which submitter gets how much, as HTCondor's negotiator decides it.

Groups negotiate in the order of their need, each up to its quota and the surplus that it may use.
Spins within a group give every submitter its share by priority, until nobody takes more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import fsum
from typing import NamedTuple, Optional

from sharectl_lab.twin.accountant import Accountant
from sharectl_lab.twin.group_quotas import MAX_ROUNDS, QuotaGroup, QuotaTree, by_use_of_quota
from sharectl_lab.twin.settings import Negotiator


class SubmitterAd(NamedTuple):
    """Submitter with pending jobs on one access point."""

    name: str
    """Accounting group, dot, user; what stands before the last dot is the group."""
    pending_weight: float
    access_point: int = 0


class PoolWeights(NamedTuple):
    """SLOT_WEIGHT of all slots, used or not."""

    total: float
    least: float = 0.0
    """Of the slot with the least; 0 while a partitionable slot is full."""


Match = Callable[[SubmitterAd, float], Optional[float]]
"""Makes one match for a submitter that costs at most the room that it is given, and returns its
cost. Without a match it returns `math.inf` if one of its jobs matches, but costs more, and None if
none matches any more in this cycle."""


def negotiate(
    knobs: Negotiator,
    tree: QuotaTree,
    submitters: Sequence[SubmitterAd],
    accountant: Accountant,
    weights: PoolWeights,
    now: float,
    match: Match,
) -> frozenset[str]:
    """Submitters that quotas and shares alone stopped in one negotiation cycle.

    Usages and priorities are those of its begin, whenever `match` charges the accountant. Quotas,
    surplus and autoregroup are the tree's; ``submitters`` have pending jobs on one access point.
    """
    cycle = _Cycle(knobs, tree, weights, match)
    cycle.fill_queues(submitters, accountant, now)
    if len(tree.groups) == 1:
        cycle.serve_group(cycle.queues[tree.root], math.inf, None)
    else:
        cycle.serve_groups()
    return frozenset(ad.name for ad in submitters if ad not in cycle.satisfied)


@dataclass(eq=False)
class _Entry:
    """Submitter ad in the queue of a group."""

    ad: SubmitterAd
    effective: float
    """Effective priority: the share of a submitter is inverse to it."""
    has_pending: bool
    starvation: float = math.inf
    """Part of its limit that it uses."""


class _Cycle:
    """A negotiation cycle in the making."""

    def __init__(
        self, knobs: Negotiator, tree: QuotaTree, weights: PoolWeights, match: Match
    ) -> None:
        self.preemption = knobs.consider_preemption
        self.tree = tree
        self.pool_weight = weights.total
        self.least_weight = weights.least
        self.match = match
        self.queues: dict[QuotaGroup, list[_Entry]] = {group: [] for group in tree.groups}
        self.usage: dict[str, float] = {}
        self.satisfied: set[SubmitterAd] = set()

    def fill_queues(
        self, submitters: Sequence[SubmitterAd], accountant: Accountant, now: float
    ) -> None:
        """Put every submitter into the queue of its group, with its usage and its requests."""
        tree = self.tree
        self.usage = {name: used for name, used in accountant.usages.items() if used > 0}
        for group in tree.groups:
            group.clear()
        for name, used in self.usage.items():
            tree.assigned(name).used += used
        for group in tree.groups:
            group.usage = group.requested = group.used
        ads = list(submitters)
        if self.preemption:
            # Submitters that only run jobs have an ad too, and a share in the first spin.
            pending = {ad.name for ad in submitters}
            ads += [SubmitterAd(name, 0.0) for name in self.usage if name not in pending]
        for ad in ads:
            group = tree.assigned(ad.name)
            group.requested += ad.pending_weight
            effective = accountant.effective_priority(ad.name, now)
            entry = _Entry(ad, effective, ad.pending_weight > 0)
            self.queues[group].append(entry)
            if group.autoregroup and group is not tree.root:
                self.queues[tree.root].append(entry)

    def serve_groups(self) -> None:
        """Allocate the pool to groups and let them negotiate, in rounds."""
        tree = self.tree
        tree.root.assign(self.pool_weight)
        for _ in range(MAX_ROUNDS):
            tree.root.fair_share()
            if tree.root.autoregroup:
                tree.root.quota = tree.root.allocated = self.pool_weight
            self._serve_allocations()
            allocated = fsum(group.allocated for group in tree.groups)
            taken = fsum(min(group.used, group.allocated) for group in tree.groups)
            for group in tree.groups:
                group.usage = group.used
                if group.used < group.allocated:
                    # What it did not take is for others in the next round.
                    group.requested = group.used
                else:
                    group.requested += group.allocated
            if taken >= allocated:
                break

    def _serve_allocations(self) -> None:
        """Let groups negotiate in the order of their need, up to their allocations."""
        tree = self.tree
        surplus = tree.accepts_surplus
        targets = ((group, group.allocated if surplus else group.quota) for group in tree.groups)
        widest = max(0.0, *(weight - group.usage for group, weight in targets))
        keys = {group: by_use_of_quota(group) for group in tree.groups}
        root = tree.root if tree.root.autoregroup else None
        for group in sorted(tree.groups, key=lambda group: (group is root, keys[group])):
            if group.allocated <= 0 or not self.queues[group]:
                continue
            if group.usage >= group.allocated and not self.preemption:
                continue
            # HTCondor divides 0 by 0 here, and so gives nothing to groups that miss something.
            limit = self._limit(group, 1.0 if widest > 0 else 0.0)
            # HTCondor hands the limit on as an integer.
            self.serve_group(
                self.queues[group], float(int(limit)), None if group is root else group
            )

    def _limit(self, group: QuotaGroup, part: float) -> float:
        """Weight that a group may use, of a part of the way to its target."""
        target = max(group.allocated, group.quota)
        missing = max(0.0, target - group.usage)
        limit = min(group.usage + missing * part, target) if missing > 0 else target
        more = limit - group.usage
        above: Optional[QuotaGroup] = group
        while above is not None:
            # NEGOTIATOR_STRICT_ENFORCE_QUOTA: without surplus a subtree stays within its quota.
            if not above.accept_surplus:
                more = min(more, max(0.0, above.configured - above.subtree_used()))
            above = above.parent
        return group.usage + more

    def serve_group(self, queue: list[_Entry], quota: float, group: Optional[QuotaGroup]) -> None:
        """Let submitters negotiate in spins; usage counts for a group that is not None."""
        is_first = True
        while self._spin(queue, quota, group, is_first=is_first):
            is_first = False

    def _spin(
        self, queue: list[_Entry], quota: float, group: Optional[QuotaGroup], *, is_first: bool
    ) -> bool:
        """Let each submitter take its share; tell if another spin may bring more."""
        # The first spin is also for machines that prefer a job, so that it goes on at the quota.
        stop = math.inf if is_first and self.preemption else quota
        used = group.used if group is not None else 0.0
        if group is not None and used >= stop:
            return False
        if not self.preemption:
            queue[:] = [entry for entry in queue if entry.has_pending]
        room = quota - used if group is not None else math.inf
        # A submitter with several access points counts once.
        priorities = {entry.ad.name: entry.effective for entry in queue}
        total = fsum(1.0 / effective for effective in priorities.values())
        unit = min(self.pool_weight, quota) / total if total > 0 else 0.0
        whole = pie = self._pie(queue, unit, room)
        if pie <= 0 and not self.preemption:
            return False
        if is_first:
            queue.sort(key=lambda entry: (entry.effective, entry.starvation))
        remaining = []
        for entry in queue:
            if group is not None and group.used >= stop:
                remaining.append(entry)
                continue
            if not entry.has_pending:
                continue
            limit, unclaimed = self._limits(entry, unit, room)
            limit = min(limit, pie)
            if is_first or limit >= self.least_weight:
                spent, satisfied = self._serve(entry.ad, limit, unclaimed)
                pie -= spent
                if satisfied:
                    self.satisfied.add(entry.ad)
                    continue
            remaining.append(entry)
        progress = pie < whole or len(remaining) < len(queue)
        queue[:] = remaining
        return progress and bool(remaining)

    def _pie(self, queue: Sequence[_Entry], unit: float, room: float) -> float:
        """Sum of the limits of all submitters in a spin."""
        pie = 0.0
        for entry in queue:
            limit, _ = self._limits(entry, unit, room)
            pie += limit
            usage = self.usage.get(entry.ad.name, 0.0)
            entry.starvation = usage / (usage + limit) if usage + limit > 0 else math.inf
        return pie

    def _limits(self, entry: _Entry, unit: float, room: float) -> tuple[float, float]:
        """Limit of a submitter in this spin, and that on slots without a claim.

        ``unit`` is the share of one whose effective priority is 1.
        """
        limit = max(0.0, unit / entry.effective - self.usage.get(entry.ad.name, 0.0))
        unclaimed = min(limit, max(0.0, room))
        return (limit if self.preemption else unclaimed), unclaimed

    def _serve(self, ad: SubmitterAd, limit: float, allowed: float) -> tuple[float, bool]:
        """Match jobs of a submitter: their weight, and if none is left to match."""
        spent = 0.0
        match = self.match
        while spent < limit:
            # One match in a spin may cost more than it may use, so that no crumbs are left.
            room = math.inf if spent <= 0 < allowed else allowed - spent
            cost = match(ad, room) if room > 0 else math.inf
            if cost is None or cost >= math.inf:
                satisfied = cost is None or room >= math.inf
                break
            spent += cost
        else:
            satisfied = False
        if spent > 0:
            self.usage[ad.name] = self.usage.get(ad.name, 0.0) + spent
            self.tree.assigned(ad.name).used += spent
        return spent, satisfied
