"""Blocks of cores that stand free under targets: taken by jobs, or given back.

A block stands free while a node under a target has at least as many idle cores as the target's jobs
request. One that no job takes is given back, and left alone for a time that doubles at each
failure. Jobs that start end the row.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, Optional

from sharectl.model import Kind, Snapshot, Standing, Target
from sharectl.plan.settings import IN_A_ROW, NEGOTIATION_SECONDS, GiveUp
from sharectl.plan.waits import START_TOLERANCE_SECONDS, NodeCores

MOST_KNOWN_SECONDS = 3600.0
"""Longest wait that is learnt from blocks that were taken."""

FADING_RATIO = 15 / 16
"""Part of the longest wait that is left after a block that was taken sooner."""

RETRY_TIMES = 4
"""After the first failure, times as long as the block stood free."""

MOST_SECONDS = 6 * 3600
"""Longest time that anything is left alone."""

FORGOTTEN_SECONDS = 24 * 3600
"""A failure counts no more so long after its time is over."""

ALL_NODES = ""
"""Stands for every node in a `BackOff`."""

Place = tuple[str, int, str]
"""Group, cores that its jobs request, and a node or `ALL_NODES`."""


@dataclass(frozen=True)
class OpenBlock:
    """A target that stood at a look."""

    node: str
    group: str
    """Helped group."""
    cores: int
    """Cores that its jobs request."""
    started_at: int
    """Start of its youngest job seen there, Unix seconds; that of the target if it had none."""
    free_since: Optional[int] = None
    """First look at which its cores stood free, Unix seconds; None if they do not."""

    @property
    def kind(self) -> Kind:
        """Group and cores."""
        return self.group, self.cores

    @property
    def place(self) -> Place:
        """Group, cores and node."""
        return self.group, self.cores, self.node

    def free_seconds(self, now: int) -> int:
        """Time for which it stands free; 0 if it does not."""
        return 0 if self.free_since is None else now - self.free_since


@dataclass(frozen=True)
class BackOff:
    """Blocks of one kind that are left alone, on one node or on all."""

    group: str
    cores: int
    node: str
    """`ALL_NODES` for the whole kind."""
    failures: int
    """How often in a row, >= 1."""
    seconds: float
    """Length of its last pause; 0 of a kind that has failed less than `IN_A_ROW` times."""
    until: int
    """Unix seconds."""


@dataclass(frozen=True)
class TakenBlocks:
    """Blocks of one kind that jobs took."""

    group: str
    cores: int
    wait_seconds: float
    """Longest time for which one stood free; it fades as others are taken sooner."""


@dataclass(frozen=True)
class BlockMemory:
    """Memory of blocks from one cycle to the next."""

    open: tuple[OpenBlock, ...] = ()
    """By node."""
    back_offs: tuple[BackOff, ...] = ()
    taken: tuple[TakenBlocks, ...] = ()


NO_BLOCKS = BlockMemory()


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


@dataclass(frozen=True)
class BlockLook:
    """Blocks at one look at the pool, and what follows for a plan."""

    memory: BlockMemory = NO_BLOCKS
    given_back: frozenset[Target] = frozenset()
    """Targets that go."""
    left_alone: frozenset[Place] = frozenset()
    """Places where no target may be made now."""
    left_alone_kinds: frozenset[Kind] = frozenset()
    """Kinds for which none may be made on any node."""
    most_new: Mapping[Kind, int] = field(default_factory=dict)
    """Kind of jobs that wait -> most targets that may be new; any number of others."""
    wait_seconds: Mapping[str, float] = field(default_factory=dict)
    """Node whose block stands free -> how much longer it is expected to wait."""


NOT_LOOKED = BlockLook()
"""Bounds nothing."""


def expected_wait_seconds(taken: Optional[TakenBlocks], stood_seconds: float = 0.0) -> float:
    """Expected time until a free block is taken: as it has stood, at least as others waited."""
    usual = NEGOTIATION_SECONDS if taken is None else min(MOST_KNOWN_SECONDS, taken.wait_seconds)
    return max(usual, stood_seconds)


def look_at_blocks(
    memory: BlockMemory,
    standing: Iterable[Standing],
    snapshot: Snapshot,
    nodes: Mapping[str, NodeCores],
    now: int,
    give_up: GiveUp,
) -> BlockLook:
    """Blocks of the targets that stand, with the memory of the cycle before."""
    blocks, taken, takers = _followed(memory, standing, snapshot.taken_at, nodes, now)
    # No job comes to a closed node: that tells nothing of the jobs.
    blocks = {
        target: block
        for target, block in blocks.items()
        if nodes[target.node].node.admits(target.kind)
    }
    pauses = _paused_at(now, memory.back_offs)
    failed = {
        target: block
        for target, block in blocks.items()
        if block.free_seconds(now)
        >= give_up.patience_seconds(
            expected_wait_seconds(taken.get(block.kind)), _failures(pauses, block.kind)
        )
    }
    waiting = {jobs.kind for jobs in snapshot.pending if jobs.jobs > 0 and jobs.placeable}
    given_up = [block for block in failed.values() if block.kind in waiting]
    pauses = _paused_after(pauses, takers, given_up, now)
    alone = {place for place, row in pauses.items() if now < row.until}
    kinds = {(group, cores) for group, cores, node in alone if node == ALL_NODES}
    staying = {
        target: block
        for target, block in blocks.items()
        if target not in failed and block.kind not in kinds
    }
    takes = Counter(place[:2] for place in takers)
    stand = Counter(block.kind for block in staying.values())
    free, wait_seconds = Counter[Kind](), dict[str, float]()
    for block in staying.values():
        if block.free_since is not None:
            free[block.kind] += nodes[block.node].idle_cores // block.cores
            usual = taken.get(block.kind)
            wait_seconds[block.node] = expected_wait_seconds(usual, block.free_seconds(now))
    probes = partial(give_up.probes, sum(here.node.cores for here in nodes.values()))
    most_new = {
        # Of a kind that failed as a whole, one alone until a job takes it.
        kind: 1 - stand[kind]
        if _failures(pauses, kind) >= IN_A_ROW
        else probes(kind[1]) + takes[kind] - free[kind]
        for kind in waiting
    }
    return BlockLook(
        BlockMemory(
            tuple(staying.values()),
            tuple(pauses[place] for place in sorted(pauses)),
            tuple(taken[kind] for kind in sorted(taken)),
        ),
        given_back=frozenset(blocks.keys() - staying.keys()),
        left_alone=frozenset(place for place in alone if place[2] != ALL_NODES),
        left_alone_kinds=frozenset(kinds),
        most_new={kind: max(0, most) for kind, most in most_new.items()},
        wait_seconds=wait_seconds,
    )


def _followed(
    memory: BlockMemory,
    standing: Iterable[Standing],
    taken_at: int,
    nodes: Mapping[str, NodeCores],
    now: int,
) -> tuple[dict[Target, OpenBlock], dict[Kind, TakenBlocks], list[Place]]:
    """Blocks of the targets that stand, kinds that took some so far, and places of those taken."""
    before = {block.place: block for block in memory.open}
    taken = {(row.group, row.cores): row for row in memory.taken}
    blocks: dict[Target, OpenBlock] = {}
    takers: list[Place] = []
    for stood in standing:
        target, kind = stood.target, stood.target.kind
        if target.node in nodes:
            block = OpenBlock(target.node, *kind, started_at=stood.since)
            block = before.get(block.place, block)
            blocks[target], starts = _seen(block, nodes[target.node], taken_at, now)
            for start in starts:
                longest = taken[kind].wait_seconds * FADING_RATIO if kind in taken else 0.0
                taken[kind] = TakenBlocks(*kind, max(longest, float(block.free_seconds(start))))
                takers.append(block.place)
    return blocks, taken, takers


def _seen(
    block: OpenBlock, here: NodeCores, taken_at: int, now: int
) -> tuple[OpenBlock, list[int]]:
    """The block now, and the starts of jobs that have taken it since the last look.

    A slot may have more cores than its job requests (quanta, MODIFY_REQUEST_EXPR_REQUESTCPUS).
    """
    starts = sorted(
        taken_at - jobs.seconds
        for jobs in here.by_group.get(block.group, ())
        if jobs.cores >= block.cores
        for _ in range(jobs.jobs)
        if taken_at - jobs.seconds > block.started_at + START_TOLERANCE_SECONDS
    )
    free_since = None
    # A node that does not act on its target keeps no cores free.
    if here.node.obeyed_sequence != 0 and here.idle_cores >= block.cores:
        # After a start the cores that are idle are another block.
        free_since = now if starts or block.free_since is None else min(block.free_since, now)
    started_at = max([block.started_at, *starts])
    return replace(block, started_at=started_at, free_since=free_since), starts


def _paused_at(now: int, rows: Iterable[BackOff]) -> dict[Place, BackOff]:
    """Pauses that still count, each bounded from now on, whatever the clock was."""
    bounded = (replace(row, until=min(row.until, now + MOST_SECONDS)) for row in rows)
    return {
        (row.group, row.cores, row.node): row
        for row in bounded
        if now < row.until + FORGOTTEN_SECONDS
    }


def _failures(pauses: Mapping[Place, BackOff], kind: Kind, node: str = ALL_NODES) -> int:
    """Failures of a kind in a row, as a whole or on a node."""
    row = pauses.get((*kind, node))
    return row.failures if row else 0


def _paused_after(
    pauses: Mapping[Place, BackOff],
    takers: Collection[Place],
    given_up: Iterable[OpenBlock],
    now: int,
) -> dict[Place, BackOff]:
    """Pauses after starts of jobs, which end those of a place, or all of a kind that failed.

    Blocks that are given up pause their place, and the whole kind if no job of it started anywhere.
    """
    kinds = {place[:2] for place in takers}
    failed = {kind for kind in kinds if _failures(pauses, kind) >= IN_A_ROW}
    after = {
        place: row
        for place, row in pauses.items()
        if place[:2] not in kinds
        or not (place[2] == ALL_NODES or place in takers or place[:2] in failed)
    }

    def pause(place: Place, failures: int, stood_seconds: int) -> None:
        """Leave a place alone for twice as long as the time before."""
        last = after.get(place)
        seconds = 2 * last.seconds if last and last.seconds else RETRY_TIMES * stood_seconds
        seconds = min(float(MOST_SECONDS), float(seconds))
        after[place] = BackOff(*place, failures, seconds, now + int(seconds))

    stood_seconds: defaultdict[Kind, list[int]] = defaultdict(list)
    for block in given_up:
        stood_seconds[block.kind].append(block.free_seconds(now))
        failures = _failures(after, block.kind, block.node) + 1
        pause(block.place, failures, block.free_seconds(now))
    for kind, seconds in stood_seconds.items():
        before, place = _failures(after, kind), (*kind, ALL_NODES)
        failures = min(max(IN_A_ROW, before + 1), before + len(seconds))
        if kind not in kinds and failures < IN_A_ROW:
            after[place] = BackOff(*place, failures, seconds=0.0, until=now)
        elif kind not in kinds:
            pause(place, failures, max(seconds))
    return after
