"""Records of a cycle and its nodes, for the ledger, `explain`, `replay` and `report`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import floor, log10
from typing import NamedTuple, Optional

from sharectl.model import (
    GroupControl,
    JobWaits,
    LimitNote,
    Node,
    PendingJobs,
    RunningJobs,
    Snapshot,
    Source,
    Target,
)
from sharectl.plan.free_blocks import NO_BLOCKS, BlockMemory


class HeldJobs(NamedTuple):
    """Jobs of one group and size on one node."""

    group: str
    cores: int
    """Cores that each holds."""
    jobs: int
    seconds: int
    """Mean time that they have run, rounded to some per cent."""
    memory_mib: int = 0
    """Memory that each holds; where they differ the mean, rounded likewise; 0 if unknown."""


class TargetNodes(NamedTuple):
    """On how many nodes a target names a group, or one within it."""

    held_back: int
    """Nodes on which it is held back."""
    helped: int
    """Nodes on which it is helped."""


class GroupReason(NamedTuple):
    """Outcome of a cycle for one group."""

    code: str
    """One of `sharectl.plan.group_reasons.GROUP_REASONS`."""
    closed_nodes: int
    """Nodes with a target that names neither the group nor one within it: none of its jobs starts there."""
    other_sizes_closed_nodes: int
    """Nodes that help it where its pending jobs of other sizes do not start."""


@dataclass(frozen=True)
class NodeRecord:
    """Jobs, target and reason of one node."""

    node: str
    cores: int
    hs06_per_core: float
    controlled: bool
    held: tuple[HeldJobs, ...] = ()
    target: Optional[Target] = None
    """What stands after the cycle."""
    reason: Optional[str] = None
    """Why it was left out or has what it has: one of `sharectl.plan.plan.NODE_REASONS`."""
    wait_seconds: float = 0.0
    """Expected time until the target's cores are free; 0 without a target.

    The ledger keeps two digits.
    """
    idle_core_seconds: float = 0.0
    """Cores expected to stand idle meanwhile, times seconds. The ledger keeps two digits."""
    memory_mib: int = 0
    reserved: bool = False
    draining: bool = False
    multicore_only: bool = False
    """Whether its START takes no single-core job (t1_MulticoreOnly)."""

    @property
    def idle_cores(self) -> int:
        """Cores that no job holds."""
        return max(0, self.cores - sum(held.jobs * held.cores for held in self.held))


@dataclass(frozen=True)
class CycleRecord:
    """One cycle."""

    taken_at: int
    """Unix seconds; what ``explain cycle`` and ``replay`` know it by, besides its number."""
    seconds: float
    """How long it took."""
    complete: bool
    sources: tuple[Source, ...] = ()
    groups: tuple[GroupControl, ...] = ()
    """Empty if it was not complete."""
    pending: tuple[PendingJobs, ...] = ()
    """Jobs of ``groups`` that wait in none of the groups within these, alike in cores and about alike in memory: of those
    within a power of two the most, which is how plans see them."""
    waits: tuple[JobWaits, ...] = ()
    """Waiting times of jobs of ``groups``, by group and cores; without those of which nothing is known."""
    cores_by_size: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """Group -> cores of a job -> cores that its jobs of that size hold."""
    nodes: tuple[NodeRecord, ...] = ()
    sequence: Optional[int] = None
    """Of the plan that was published; None if none was."""
    strategy: str = "pair"
    setpoint: str = "in_use"
    """One of `sharectl.control.setpoints.SETPOINTS`."""
    reason: Optional[str] = None
    """Of the plan, one of `sharectl.plan.plan.REASONS`."""
    limits: tuple[LimitNote, ...] = ()
    published: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    configuration: str = ""
    """First 12 digits of the SHA-256 of what decides, to see when it was changed."""
    number: int = 0
    """Counted by the ledger; 0 if it has not been kept yet."""
    idle_cores: int = 0
    """Cores of all nodes that no job holds."""
    idle_target_cores: Optional[int] = None
    """Those that targets kept from jobs; None if unknown."""
    idle_grace_cores: Optional[int] = None
    """Those that grace kept from single-core jobs, on nodes that act on no target; None if unknown."""
    target_nodes: Mapping[str, TargetNodes] = field(default_factory=dict)
    """Group -> nodes with a target for it, after the cycle; without the groups of which it is not known, as in imported rows."""
    group_reasons: Mapping[str, GroupReason] = field(default_factory=dict)
    """Group -> why it is helped, held back or neither; empty where that is not known."""
    blocks: BlockMemory = NO_BLOCKS
    """Blocks of cores that stood free at its look, and those that no job took."""
    imported: bool = False
    """Whether it comes from a shares_Error.log: then nodes, outputs and setpoints are not known."""

    @property
    def pending_known(self) -> bool:
        """Tells if requests besides cores are recorded: imported rows have none."""
        waiting = any(
            jobs for group in self.groups for jobs in group.error.usage.pending_by_cores.values()
        )
        return bool(self.pending) or not waiting


ROUNDING_HS06 = 1e-6
"""An error of exactly n blocks pays for n blocks, whatever the last bits of the sums are."""


@dataclass(frozen=True)
class Wait:
    """Cost of a target until its cores are free."""

    seconds: float
    """Expected time."""
    idle_core_seconds: float
    """Cores expected to stand idle meanwhile, times seconds."""


@dataclass(frozen=True)
class Wanted:
    """Targets that the controllers' outputs call for, before limits act."""

    reason: str
    """One of `sharectl.plan.plan.REASONS`."""
    targets: tuple[Target, ...] = ()
    """At most one a node, the most useful first."""
    pair: Optional[tuple[str, str]] = None
    """Groups held back and helped, if there is one such pair."""
    notes: tuple[LimitNote, ...] = ()
    """What kept the strategy from doing better."""
    waits: Mapping[str, Wait] = field(default_factory=dict)
    """Node -> what the target called for there costs, if the strategy knows."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Node -> one of `sharectl.plan.plan.NODE_REASONS`, where the strategy knows better than the plan."""
    standing_waits: Mapping[str, Wait] = field(default_factory=dict)
    """Node -> what the target that stands there costs still, called for or not; likewise."""


NO_WAIT = Wait(0.0, 0.0)


def node_records(
    snapshot: Snapshot,
    targets: Iterable[Target],
    reasons: Mapping[str, str],
    waits: Mapping[str, Wait],
) -> tuple[NodeRecord, ...]:
    """A record for every node of the snapshot and every node with a target or a reason, by name."""
    held = _held(snapshot)
    stands = {target.node: target for target in targets}
    nodes = {node.name: node for node in snapshot.nodes}
    return tuple(
        _record(
            nodes.get(name) or _absent(name), held.get(name, ()), stands.get(name), reasons, waits
        )
        for name in sorted({*nodes, *stands, *reasons})
    )


@lru_cache(maxsize=65_536)
def rounded(number: int) -> int:
    """``number`` to two digits, so that the same is kept of what is nearly the same."""
    if number < 1:
        return 0
    return int(round(number, 1 - floor(log10(number))))


def _record(
    node: Node,
    held: tuple[HeldJobs, ...],
    target: Optional[Target],
    reasons: Mapping[str, str],
    waits: Mapping[str, Wait],
) -> NodeRecord:
    wait = waits.get(node.name, NO_WAIT) if target is not None else NO_WAIT
    return NodeRecord(
        node=node.name,
        cores=node.cores,
        hs06_per_core=node.hs06_per_core,
        controlled=node.controlled,
        held=held,
        target=target,
        reason=reasons.get(node.name),
        wait_seconds=wait.seconds,
        idle_core_seconds=wait.idle_core_seconds,
        memory_mib=node.memory_mib,
        reserved=node.reserved,
        draining=node.draining,
        multicore_only=node.multicore_only,
    )


def _absent(name: str) -> Node:
    return Node(name, name, cores=0, hs06_per_core=0.0, controlled=False)


def _held(snapshot: Snapshot) -> dict[str, tuple[HeldJobs, ...]]:
    """Jobs of each node by group and size."""
    jobs: defaultdict[str, list[RunningJobs]] = defaultdict(list)
    for job in snapshot.running:
        jobs[job.node].append(job)
    return {node: _by_kind(here) for node, here in jobs.items()}


def _by_kind(here: Iterable[RunningJobs]) -> tuple[HeldJobs, ...]:
    sums: dict[tuple[str, int], list[int]] = {}
    for job in here:
        row = sums.setdefault((job.group, job.cores), [0, 0, 0, 0, job.memory_mib])
        row[0] += job.jobs
        row[1] += job.seconds * job.jobs
        if job.memory_mib > 0:
            row[2] += job.jobs
            row[3] += job.memory_mib * job.jobs
            row[4] = job.memory_mib if row[4] == job.memory_mib else 0
    return tuple(_jobs(group, cores, row) for (group, cores), row in sorted(sums.items()))


def _jobs(group: str, cores: int, sums: list[int]) -> HeldJobs:
    jobs, seconds, with_memory, memory_mib, alike_mib = sums
    return HeldJobs(
        group,
        cores,
        jobs,
        rounded(seconds // jobs) if jobs else 0,
        # Exact where all hold the same: a job for which there is just enough room must fit again.
        alike_mib or (rounded(memory_mib // with_memory) if with_memory else 0),
    )
