"""What the ledger keeps of one cycle, and what `explain`, `replay` and `report` are made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Optional

from sharectl.core.free_blocks import NO_BLOCKS, BlockMemory
from sharectl.core.model import GroupControl, JobWaits, LimitNote, PendingJobs, Source, Target


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
    """One of `sharectl.core.group_reasons.GROUP_REASONS`."""
    closed_nodes: int
    """Nodes with a target that names neither the group nor one within it: none of its jobs starts there."""
    other_sizes_closed_nodes: int
    """Nodes that help it where its pending jobs of other sizes do not start."""


@dataclass(frozen=True)
class NodeRecord:
    """What one node held and was told."""

    node: str
    cores: int
    hs06_per_core: float
    controlled: bool
    held: tuple[HeldJobs, ...] = ()
    target: Optional[Target] = None
    """What stands after the cycle."""
    reason: Optional[str] = None
    """Why it was left out or has what it has: one of `sharectl.core.plan.NODE_REASONS`."""
    wait_seconds: float = 0.0
    """Expected time until the target's cores are free; 0 without a target. The ledger keeps two digits."""
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
    cores_by_size: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """Group and cores of a job -> cores that its jobs of that size hold."""
    nodes: tuple[NodeRecord, ...] = ()
    sequence: Optional[int] = None
    """Of the plan that was published; None if none was."""
    strategy: str = "pair"
    setpoint: str = "in_use"
    """One of `sharectl.core.setpoints.SETPOINTS`."""
    reason: Optional[str] = None
    """Of the plan, one of `sharectl.core.plan.REASONS`."""
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
        """Whether it has what the jobs that wait request besides cores: imported and older rows have not."""
        waiting = any(jobs for group in self.groups for jobs in group.error.usage.pending_by_cores.values())
        return bool(self.pending) or not waiting
