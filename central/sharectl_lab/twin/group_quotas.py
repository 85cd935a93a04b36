"""Group quotas: the tree of accounting groups, and the weight that a cycle allocates to each.

HTCondor's `GroupEntry.cpp` with slot weights and static quotas: quotas first, then surplus.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import fsum
from typing import Optional

from sharectl_lab.twin.accountant import account_of

ROOT = "<none>"
"""Group of all submitters that have no other."""
MAX_ROUNDS = 3
"""GROUP_QUOTA_MAX_ALLOCATION_ROUNDS."""


@dataclass(frozen=True)
class GroupQuota:
    """Quota of an accounting group."""

    name: str
    """Such as `alice.prod`; `alice` has a quota of its own then."""
    quota: float
    """GROUP_QUOTA: weight."""
    accept_surplus: bool = False
    """GROUP_ACCEPT_SURPLUS: it takes what others leave of their quotas."""
    autoregroup: bool = False
    """GROUP_AUTOREGROUP: its submitters negotiate again for the whole pool, after all groups."""


class QuotaGroup:
    """Group in the tree, with the figures of one negotiation cycle (`GroupEntry`).

    `used` is the weight of its submitters now, without groups within it; `usage` is that at the
    begin of an allocation round.
    """

    def __init__(self, quota: GroupQuota, parent: Optional[QuotaGroup]) -> None:
        self.name = quota.name.lower()
        self.configured = quota.quota
        self.accept_surplus = quota.accept_surplus
        self.autoregroup = quota.autoregroup
        self.parent = parent
        self.children: dict[str, QuotaGroup] = {}
        self.clear()

    def clear(self) -> None:
        """Forget the figures of the last cycle."""
        self.used = self.usage = 0.0
        self.quota = self.requested = self.allocated = 0.0
        self.subtree_quota = self.subtree_requested = 0.0

    def subtree_used(self) -> float:
        """Weight that it and the groups within it use."""
        return self.used + fsum(child.subtree_used() for child in self.children.values())

    def assign(self, weight: float) -> None:
        """Divide the weight of a subtree into the quotas of its groups, which may come to more."""
        if weight <= 0:
            return
        self.subtree_quota = weight
        for child in self.children.values():
            child.assign(child.configured)
        # The root keeps what its children leave, so that the pool is not counted twice.
        taken = fsum(child.configured for child in self.children.values())
        self.quota = weight if self.parent is not None else max(0.0, weight - taken)

    def fair_share(self) -> float:
        """Allocate quotas, then surplus within the subtree; the surplus that nobody takes."""
        self.allocated = min(self.requested, self.quota)
        self.requested -= self.allocated
        self.subtree_requested = self.requested
        surplus = self.quota - self.allocated
        if not self.children:
            return surplus
        for child in self.children.values():
            surplus += child.fair_share()
            if child.accept_surplus:
                self.subtree_requested += child.subtree_requested
        return self._share_surplus(surplus)

    def _share_surplus(self, surplus: float) -> float:
        """Allocate surplus to a group and those within it alike; the surplus that nobody takes."""
        if surplus <= 0:
            return 0.0
        if self.subtree_requested <= 0:
            return surplus
        takers = [
            _Taker(child, child.subtree_quota, child.subtree_requested)
            for child in self.children.values()
            if child.accept_surplus and child.subtree_requested > 0
        ]
        own = _Taker(self, self.quota, self.requested)
        if self.requested > 0:
            takers.append(own)
        requested = self.subtree_requested
        if surplus >= requested:
            for taker in takers:
                taker.take(taker.requested)
            surplus -= requested
            requested = 0.0
        else:
            for by_quota in (True, False):
                untaken = _spread(takers, surplus, by_quota=by_quota)
                requested -= surplus - untaken
                surplus = untaken
        for taker in takers:
            if taker is not own and taker.allocated > 0:
                taker.group._share_surplus(taker.allocated)  # noqa: SLF001
        self.allocated += own.allocated
        self.requested -= own.allocated
        self.subtree_requested = requested
        return surplus


@dataclass
class _Taker:
    """Group that asks for surplus."""

    group: QuotaGroup
    quota: float
    requested: float
    allocated: float = 0.0

    def take(self, weight: float) -> None:
        """Allocate a part of what it requests."""
        self.allocated += weight
        self.requested -= weight


def _spread(takers: list[_Taker], surplus: float, *, by_quota: bool) -> float:
    """Give surplus in proportion to quotas, or in equal parts; the surplus that nobody takes."""
    while surplus > 0:
        asking = [taker for taker in takers if taker.requested > 0]
        total = fsum(taker.quota if by_quota else 1.0 for taker in asking)
        if total <= 0:
            break
        spread = 0.0
        all_taken = True
        for taker in asking:
            part = surplus * ((taker.quota if by_quota else 1.0) / total)
            if part > taker.requested:
                part = taker.requested
                all_taken = False
            taker.take(part)
            spread += part
        surplus = 0.0 if all_taken else max(0.0, surplus - spread)
    return surplus


def by_use_of_quota(group: QuotaGroup) -> float:
    """Place of a group in the order of negotiation: GROUP_SORT_EXPR's default."""
    if group.name == ROOT:
        return 3.4e38
    return group.used / group.quota if group.quota > 0 else 3.3e38


class QuotaTree:
    """Tree of accounting groups under the root group, which is alone without ``quotas``.

    Raises ValueError for a group that stands twice, or within one that is not there.
    """

    def __init__(self, quotas: Iterable[GroupQuota] = ()) -> None:
        self.root = QuotaGroup(GroupQuota(ROOT, 0.0, accept_surplus=True), None)
        self.groups = [self.root]
        """Level by level, each in the order of the names."""
        for quota in sorted(quotas, key=lambda q: (q.name.count("."), q.name.lower().split("."))):
            self._add(quota)
        self.root.autoregroup = any(group.autoregroup for group in self.groups)
        self.accepts_surplus = any(group.accept_surplus for group in self.groups[1:])
        self._assigned: dict[str, QuotaGroup] = {}

    def _add(self, quota: GroupQuota) -> None:
        above, _, last = quota.name.lower().rpartition(".")
        parent = self._deepest(above)
        if parent.name != (above or ROOT):
            raise ValueError(f"group {quota.name} has a quota, but {above} has none")
        if last in parent.children or not last:
            raise ValueError(f"group {quota.name!r} stands twice or has no name")
        parent.children[last] = QuotaGroup(quota, parent)
        self.groups.append(parent.children[last])

    def _deepest(self, account: str) -> QuotaGroup:
        group = self.root
        for part in account.split("."):
            child = group.children.get(part)
            if child is None:
                break
            group = child
        return group

    def assigned(self, submitter: str) -> QuotaGroup:
        """Group in which a submitter negotiates, and which its usage counts for."""
        group = self._assigned.get(submitter)
        if group is None:
            group = self._assigned[submitter] = self._deepest(account_of(submitter).lower())
        return group
