"""Blocks of cores that stand free under targets: taken by jobs, or given back.

A block stands free while a node under a target has at least as many idle cores as the target's jobs
request. One that no job takes is given back, and left alone for a time that doubles at each
failure. Jobs that start end the row.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Optional

from sharectl.model import Kind, Snapshot, Standing, Target
from sharectl.plan.settings import IN_A_ROW, NEGOTIATION_SECONDS, GiveUp
from sharectl.plan.waits import START_TOLERANCE_SECONDS, NodeCores

MOST_KNOWN_SECONDS = 3600.0
"""Longest wait that is learnt from blocks that were taken."""

MEMORY_BLOCKS = 16
"""Waits of about so many blocks are remembered."""

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
    """How long blocks of one kind stood free that were taken, the latest counting most."""

    group: str
    cores: int
    blocks: int
    wait_seconds: float
    """Mean, from the first look at which they stood free; 0 of those that never did."""
    deviation_seconds: float
    """Mean deviation from it."""

    @property
    def long_wait_seconds(self) -> float:
        """Wait that few of them exceed."""
        return min(MOST_KNOWN_SECONDS, self.wait_seconds + 2 * self.deviation_seconds)

    def after(self, wait_seconds: float) -> TakenBlocks:
        """Figures with one more block."""
        weight = 1 / min(self.blocks + 1, MEMORY_BLOCKS)
        error = wait_seconds - self.wait_seconds
        spread = abs(error) if self.blocks else wait_seconds / 2
        return replace(
            self,
            blocks=self.blocks + 1,
            wait_seconds=self.wait_seconds + weight * error,
            deviation_seconds=self.deviation_seconds + weight * (spread - self.deviation_seconds),
        )


@dataclass(frozen=True)
class BlockMemory:
    """Memory of blocks from one cycle to the next."""

    open: tuple[OpenBlock, ...] = ()
    """By node."""
    back_offs: tuple[BackOff, ...] = ()
    taken: tuple[TakenBlocks, ...] = ()

    @property
    def looked_at_anew(self) -> BlockMemory:
        """Memory in which the time of blocks that stand free begins again at the next look."""
        return replace(self, open=tuple(replace(block, free_since=None) for block in self.open))


NO_BLOCKS = BlockMemory()


@dataclass(frozen=True)
class IdleCores:
    """Idle cores of the pool that are kept from jobs, each with one cause."""

    target: int = 0
    """On nodes that act on a target."""
    grace: int = 0
    """On other nodes, in grace."""


NO_IDLE_CORES = IdleCores()


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

    @property
    def nodes(self) -> frozenset[str]:
        """Nodes whose target goes, or that are left alone."""
        back = {target.node for target in self.given_back}
        return frozenset(back | {node for _, _, node in self.left_alone})


NOT_LOOKED = BlockLook()
"""Bounds nothing."""


def expected_wait_seconds(taken: Optional[TakenBlocks], stood_seconds: float = 0.0) -> float:
    """Expected time until a free block is taken: as it has stood, at least as others waited."""
    usual = taken.long_wait_seconds if taken is not None else float(NEGOTIATION_SECONDS)
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
    before = {block.place: block for block in memory.open}
    taken = {(row.group, row.cores): row for row in memory.taken}
    takes, takers = Counter[Kind](), set[Place]()
    blocks: dict[Target, OpenBlock] = {}
    for stood in standing:
        target, kind = stood.target, stood.target.kind
        if target.node in nodes:
            block = OpenBlock(target.node, *kind, started_at=stood.since)
            block = before.get(block.place, block)
            blocks[target], starts = _seen(block, nodes[target.node], snapshot.taken_at, now)
            for start in starts:
                row = taken.get(kind, TakenBlocks(*kind, 0, 0.0, 0.0))
                taken[kind] = row.after(float(max(0, block.free_seconds(start))))
                takes[kind] += 1
                takers.add(block.place)
    pauses = _Pauses(memory.back_offs, now)
    patience = {
        kind: give_up.patience_seconds(
            expected_wait_seconds(taken.get(kind)), pauses.failures(kind)
        )
        for kind in {block.kind for block in blocks.values()}
    }
    failed = {
        target: block
        for target, block in blocks.items()
        if block.free_seconds(now) >= patience[block.kind]
    }
    waiting = {jobs.kind for jobs in snapshot.pending if jobs.jobs > 0 and jobs.placeable}
    pauses.succeed(takers)
    pauses.fail([block for block in failed.values() if block.kind in waiting], takes)
    alone = {place for place, row in pauses.rows.items() if now < row.until}
    kinds = {(group, cores) for group, cores, node in alone if node == ALL_NODES}
    staying = {
        target: block
        for target, block in blocks.items()
        if target not in failed and block.kind not in kinds
    }
    free = [block for block in staying.values() if block.free_since is not None]
    return BlockLook(
        BlockMemory(
            tuple(staying.values()),
            tuple(pauses.rows[place] for place in sorted(pauses.rows)),
            tuple(taken[kind] for kind in sorted(taken)),
        ),
        frozenset(blocks.keys() - staying.keys()),
        frozenset(place for place in alone if place[2] != ALL_NODES),
        frozenset(kinds),
        {
            kind: _most_new(kind, staying.values(), takes, pauses.failures(kind), nodes, give_up)
            for kind in waiting
        },
        {
            block.node: expected_wait_seconds(taken.get(block.kind), block.free_seconds(now))
            for block in free
        },
    )


def _seen(
    block: OpenBlock, here: NodeCores, taken_at: int, now: int
) -> tuple[OpenBlock, list[int]]:
    """The block now, and the starts of jobs that have taken it since the last look.

    A slot may have more cores than its job requests (quanta, MODIFY_REQUEST_EXPR_REQUESTCPUS).
    """
    starts = sorted(
        taken_at - jobs.seconds
        for jobs in here.running
        if jobs.group == block.group and jobs.cores >= block.cores
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


class _Pauses:
    """Kinds of blocks and places that are left alone."""

    def __init__(self, rows: Iterable[BackOff], now: int) -> None:
        # Each bounded from now on, whatever the clock was.
        bounded = (replace(row, until=min(row.until, now + MOST_SECONDS)) for row in rows)
        self.now = now
        self.rows = {
            (row.group, row.cores, row.node): row
            for row in bounded
            if now < row.until + FORGOTTEN_SECONDS
        }

    def failures(self, kind: Kind, node: str = ALL_NODES) -> int:
        """Failures of a kind in a row, as a whole or on a node."""
        row = self.rows.get((*kind, node))
        return row.failures if row else 0

    def succeed(self, takers: Collection[Place]) -> None:
        """End the pauses of kinds as a whole and of places, or all of a kind that failed."""
        kinds = {place[:2] for place in takers}
        failed = {kind for kind in kinds if self.failures(kind) >= IN_A_ROW}
        self.rows = {
            place: row
            for place, row in self.rows.items()
            if place[:2] not in kinds
            or not (place[2] == ALL_NODES or place in takers or place[:2] in failed)
        }

    def fail(self, blocks: Iterable[OpenBlock], takes: Mapping[Kind, int]) -> None:
        """Pause places; a whole kind too if no job of it started anywhere."""
        stood_seconds: defaultdict[Kind, list[int]] = defaultdict(list)
        for block in blocks:
            failures = self.failures(block.kind, block.node) + 1
            self._pause(block.place, failures, block.free_seconds(self.now))
            stood_seconds[block.kind].append(block.free_seconds(self.now))
        for kind, seconds in stood_seconds.items():
            before = self.failures(kind)
            place, most = (*kind, ALL_NODES), max(IN_A_ROW, before + 1)
            failures = min(most, before + len(seconds))
            if not takes.get(kind, 0) and failures < IN_A_ROW:
                self.rows[place] = BackOff(*place, failures, seconds=0.0, until=self.now)
            elif not takes.get(kind, 0):
                self._pause(place, failures, max(seconds))

    def _pause(self, place: Place, failures: int, stood_seconds: int) -> None:
        """Leave a place alone for twice as long as the time before."""
        before = self.rows.get(place)
        seconds = 2 * before.seconds if before and before.seconds else RETRY_TIMES * stood_seconds
        seconds = min(float(MOST_SECONDS), float(seconds))
        self.rows[place] = BackOff(*place, failures, seconds, self.now + int(seconds))


def _most_new(
    kind: Kind,
    staying: Iterable[OpenBlock],
    takes: Mapping[Kind, int],
    failures: int,
    nodes: Mapping[str, NodeCores],
    give_up: GiveUp,
) -> int:
    """Most new targets: blocks taken, and some to try, less those that stand free.

    Of a kind that failed as a whole, one alone until a job takes it.
    """
    blocks = [block for block in staying if block.kind == kind]
    if failures >= IN_A_ROW:
        return max(0, 1 - len(blocks))
    free = sum(
        nodes[block.node].idle_cores // block.cores
        for block in blocks
        if block.free_since is not None
    )
    pool_cores = sum(here.node.cores for here in nodes.values())
    return max(0, give_up.probes(pool_cores, kind[1]) + takes.get(kind, 0) - free)
