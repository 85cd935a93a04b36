"""Records of blocks of cores, and of what they have cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Optional

from sharectl.model import Kind, Standing, Target
from sharectl.plan.settings import NEGOTIATION_SECONDS
from sharectl.plan.waits import NodeCores

LONGEST_WAIT_SECONDS = 3600.0
"""Longest wait that is learnt from blocks that were taken."""

ALL_NODES = ""
"""Stands for every node in a `BackOff`."""

BlockKey = tuple[str, int, str]
"""Group, cores that its jobs request, and a node or `ALL_NODES`."""


class _OfKind:
    """Row of a group and of a size of jobs."""

    group: str
    cores: int

    @property
    def kind(self) -> Kind:
        """Helped group, and cores that its jobs request."""
        return self.group, self.cores


@dataclass(frozen=True)
class OpenBlock(_OfKind):
    """A target that stood at a look."""

    node: str
    group: str
    cores: int
    started_at: int
    """Start of its youngest job seen there, Unix seconds; that of the target if it had none."""
    free_since: Optional[int] = None
    """First look at which its cores stood free, Unix seconds; None if they do not."""
    idle_core_seconds: float = 0.0
    """Cores of its node that stood idle since a job took some, times seconds."""

    @property
    def place(self) -> BlockKey:
        """Group, cores and node."""
        return self.group, self.cores, self.node

    def free_seconds(self, now: int) -> int:
        """Time for which it stands free; 0 if it does not."""
        return 0 if self.free_since is None else now - self.free_since


@dataclass(frozen=True)
class NewJob(_OfKind):
    """A job that took a block, and has yet to run for long enough to earn others."""

    node: str
    group: str
    cores: int
    started_at: int
    """Unix seconds."""
    idle_core_seconds: float
    """Core-seconds that its block stood idle."""


@dataclass(frozen=True)
class BackOff(_OfKind):
    """Blocks of one kind that stood free for too long, on one node or on any."""

    group: str
    cores: int
    node: str
    """`ALL_NODES` for the whole kind."""
    failures: int
    """Number in a row, >= 1."""
    until: int
    """Unix seconds: end of the pause of a node; next try of the kind, as far as it is due."""
    idle_core_seconds: float = 0.0
    """Cost of the dearest block of the kind that failed last; 0 of a node."""


@dataclass(frozen=True)
class TakenBlocks(_OfKind):
    """Blocks of one kind that jobs took, and jobs that took none."""

    group: str
    cores: int
    wait_seconds: float
    """Longest time for which one stood free; it fades as others are taken sooner."""
    earned: float = 0.0
    """Blocks that may be open for them."""
    failed_jobs: int = 0
    """Jobs that waited while a block stood free for too long, and wait still."""
    lost_core_seconds: float = 0.0
    """Cost of earned blocks that were lost, less the allowance of the time since and a third of the
    cost of those that jobs took; below 0 if that is more."""


@dataclass(frozen=True)
class Loss:
    """Losses of a group."""

    group: str
    at: int
    """Unix seconds of the last one."""
    tried: tuple[int, ...] = ()
    """Sizes that had their turn since, with a target or without."""
    tried_at: int = 0
    """Unix seconds of the last turn; 0 before the first."""
    core_seconds: float = 0.0
    """Cost of all, less the allowance of the time since."""


@dataclass(frozen=True)
class BlockMemory:
    """Memory of blocks from one cycle to the next."""

    open: tuple[OpenBlock, ...] = ()
    """By node."""
    new_jobs: tuple[NewJob, ...] = ()
    """Jobs that have earned no block yet."""
    back_offs: tuple[BackOff, ...] = ()
    taken: tuple[TakenBlocks, ...] = ()
    losses: tuple[Loss, ...] = ()
    """Of a day, by group."""
    looked_at: int = 0
    """Unix seconds of the look; 0 before the first."""


NO_BLOCKS = BlockMemory()


@dataclass(frozen=True)
class BlockLook:
    """Blocks at one look at the pool, and what follows for a plan; by default nothing does."""

    memory: BlockMemory = NO_BLOCKS
    between_seconds: int = 0
    """Time since the look before; 0 if unknown."""
    given_back: frozenset[Target] = frozenset()
    """Targets that go."""
    left_alone: frozenset[BlockKey] = frozenset()
    """Places where no target may be made now."""
    left_alone_kinds: frozenset[Kind] = frozenset()
    """Kinds for which none may be made on any node."""
    failing_kinds: frozenset[Kind] = frozenset()
    """Kinds of which every job that waits left cores free: no demand."""
    most_new: Mapping[Kind, int] = field(default_factory=dict)
    """Kind of jobs that wait -> most targets that may be new; any number of others."""
    wait_seconds: Mapping[str, float] = field(default_factory=dict)
    """Node whose block stands free -> how much longer it is expected to wait."""

    @property
    def given_up_nodes(self) -> set[str]:
        """Nodes of targets that go, and nodes that are left alone."""
        return {target.node for target in self.given_back} | {node for *_, node in self.left_alone}


class IdleCores(NamedTuple):
    """Idle cores of the pool that are kept from jobs, each with one cause."""

    target: int
    """On nodes that act on a target."""
    grace: int
    """On other nodes, in grace."""


def idle_cores(nodes: Iterable[NodeCores], standing: Iterable[Standing]) -> IdleCores:
    """Idle cores under targets that stand, and under grace."""
    under = {stood.target.node for stood in standing}
    target = grace = 0
    for here in nodes:
        if here.node.name in under and here.node.obeyed_sequence != 0:
            target += here.idle_cores
        else:
            grace += min(here.idle_cores, here.node.grace_cores)
    return IdleCores(target, grace)


def expected_wait_seconds(taken: Optional[TakenBlocks], stood_seconds: float = 0.0) -> float:
    """Expected time until a free block is taken: as it has stood, at least as others waited."""
    usual = NEGOTIATION_SECONDS if taken is None else min(LONGEST_WAIT_SECONDS, taken.wait_seconds)
    return max(usual, stood_seconds)
