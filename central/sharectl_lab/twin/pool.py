"""Nodes, partitionable slots and claims of the twin, and the cores that groups hold of them."""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import partial
from math import inf
from typing import Optional

from sharectl.model import OTHER
from sharectl.shares.groups import is_within
from sharectl_lab.twin.records import NodeSpec, SlotSpec
from sharectl_lab.twin.start import SlotTarget
from sharectl_lab.workload.draw import JobKind


class Claim:
    """A dynamic slot, with the job that runs in it."""

    __slots__ = (
        "cores", "disk_kib", "group", "job", "kind", "memory_mib", "number", "run_until", "since",
        "slot", "started_at", "submitted_at",
    )  # fmt: skip

    def __init__(self, slot: SimSlot, kind: ShapedKind, now: float) -> None:
        self.slot = slot
        self.kind = kind
        """Kind for which it was made: its cores, memory and disk."""
        self.job = kind
        """Kind of the job that runs now."""
        self.cores = kind.cores
        self.memory_mib = kind.memory_mib
        self.disk_kib = kind.disk_kib
        self.group = kind.group
        self.since = now
        self.started_at = now
        """Start of the job that runs now."""
        self.submitted_at = now
        self.run_until = inf
        self.number = 0
        """Number of its job's start: events of earlier ones are void."""


class ShapedKind:
    """A `JobKind` as the engine sees it, with its pending jobs."""

    __slots__ = (
        "access_point", "account", "attributes", "cores", "custom", "disk_kib", "group",
        "memory_mib", "number", "pending", "placeable", "requirements", "shape", "sizes",
        "submitter", "wanted_cores",
    )  # fmt: skip

    def __init__(self, number: int, kind: JobKind, group: str) -> None:
        self.number = number
        self.account = kind.account
        self.submitter = kind.submitter
        self.cores = kind.cores
        self.memory_mib = kind.memory_mib
        self.disk_kib = kind.disk_kib
        self.custom = kind.custom
        self.requirements = kind.requirements
        self.attributes = dict(kind.attributes)
        self.access_point = kind.access_point
        self.group = group
        """Configured group, or `OTHER`."""
        self.shape = -1
        self.placeable = True
        """Tells if a slot could run it if it were empty."""
        self.pending: deque[tuple[float, float]] = deque()
        """Submission and run time of each pending job, the oldest first."""
        self.wanted_cores = kind.cores
        """Cores that a pending job counts for, before it has a slot."""
        self.sizes: Optional[dict[int, ShapedKind]] = {} if kind.whole_node else None
        """Cores of a node -> a request for the whole node there; None if it has one value."""

    def on(self, slot: SimSlot) -> ShapedKind:
        """Return the request as it is on a slot, with the same pending jobs."""
        if self.sizes is None:
            return self
        cores = slot.node.spec.cores
        if cores not in self.sizes:
            sized = self.sizes[cores] = copy(self)
            sized.cores, sized.sizes = cores, None
        return self.sizes[cores]


class SimSlot:
    """A partitionable slot."""

    __slots__ = (
        "cause", "claims", "counted_cores", "counted_taken", "draining", "free_cores",
        "free_custom", "free_disk_kib", "free_memory_mib", "held_back_cores", "idle_as",
        "logged_at", "multicore_only", "node", "order", "room_since", "room_until", "spec",
        "starts", "taken_since", "target", "total_cores", "version",
    )  # fmt: skip

    def __init__(self, node: SimNode, spec: SlotSpec) -> None:
        self.node = node
        self.spec = spec
        self.total_cores = spec.cores
        self.free_cores = spec.cores
        self.free_memory_mib = spec.memory_mib
        self.free_disk_kib = spec.disk_kib
        self.free_custom = dict(spec.custom)
        self.claims: dict[Claim, None] = {}
        """In the order in which they were made."""
        self.starts: defaultdict[tuple[str, int, int], array[int]] = defaultdict(
            partial(array, "q")
        )
        """Group, cores and memory -> starts of the jobs that run, whole seconds, in order."""
        self.multicore_only = node.spec.multicore_only
        self.draining = False
        self.target: Optional[SlotTarget] = None
        # `StartSlot` says what these are.
        self.held_back_cores = self.counted_cores = self.taken_since = 0
        self.room_since = -inf
        self.counted_taken = 0
        """Cores taken when job_ctl last looked."""
        self.room_until = 0.0
        """cron: time at which a job took these cores."""
        self.order = 0
        """Place among slots that are as good."""
        self.version = 0
        self.logged_at = -1
        self.cause = ""
        """Cause of its idle cores, counted as ``idle_as`` cores."""
        self.idle_as = 0

    def begin(self, claim: Claim, now: float) -> None:
        """Have a job run in a claim from a time on."""
        claim.started_at = now
        insort(self.starts[claim.group, claim.cores, claim.memory_mib], int(now))

    def end(self, claim: Claim) -> None:
        """Have the job of a claim run no longer."""
        starts = self.starts[claim.group, claim.cores, claim.memory_mib]
        del starts[bisect_left(starts, int(claim.started_at))]

    def fits(self, kind: ShapedKind) -> bool:
        """Tell if its free resources are enough for a job."""
        kind = kind.on(self)
        return (
            kind.cores <= self.free_cores
            and kind.memory_mib <= self.free_memory_mib
            and kind.disk_kib <= self.free_disk_kib
            and (not kind.custom or self._has(self.free_custom, kind.custom))
        )

    def could_fit(self, kind: ShapedKind) -> bool:
        """Tell if its resources would be enough if it were empty."""
        kind, spec = kind.on(self), self.spec
        return (
            kind.cores <= spec.cores
            and kind.memory_mib <= spec.memory_mib
            and kind.disk_kib <= spec.disk_kib
            and (not kind.custom or self._has(spec.custom, kind.custom))
        )

    @staticmethod
    def _has(amounts: Mapping[str, int], custom: Iterable[tuple[str, int]]) -> bool:
        return all(amounts.get(name, 0) >= count for name, count in custom)


class SimNode:
    """An execute point."""

    __slots__ = ("draining", "mc_grace_phase", "number", "slots", "spec")

    def __init__(self, number: int, spec: NodeSpec) -> None:
        self.number = number
        self.spec = spec
        self.draining = False
        self.mc_grace_phase = 0.0
        """Time of the first run of mc_grace.py."""
        self.slots = [SimSlot(self, slot) for slot in spec.slots]

    def claims(self) -> list[Claim]:
        """Claims of all slots, of each in the order in which they were made."""
        return [claim for slot in self.slots for claim in slot.claims]


def group_of(account: str, groups: Sequence[str]) -> str:
    """Longest of ``groups`` that an account is, or is within; `OTHER` without one."""
    within = [name for name in groups if is_within(account, name)]
    return max(within, key=len, default=OTHER)
