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
from typing import Callable, Optional

from sharectl.model import Snapshot, Standing, Target
from sharectl.plan.settings import IN_A_ROW, NEGOTIATION_SECONDS, GiveUp

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

START_TOLERANCE_SECONDS = 2
"""Daemons round: a job's start differs by so much from look to look."""

ALL_NODES = ""
"""Stands for every node in a `BackOff`."""

Kind = tuple[str, int]
"""Group, and cores that its jobs request."""


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
        return (self.group, self.cores)


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


def idle_cores(snapshot: Snapshot, standing: Iterable[Standing]) -> IdleCores:
    """Idle cores under targets that stand, and under grace."""
    under = {stood.target.node for stood in standing}
    held: Counter[str] = Counter()
    for jobs in snapshot.running:
        held[jobs.node] += jobs.cores * jobs.jobs
    target = grace = 0
    for node in snapshot.nodes:
        idle = max(0, node.cores - held[node.name])
        if node.name in under and node.obeyed_sequence != 0:
            target += idle
        else:
            grace += min(idle, node.grace_cores)
    return IdleCores(target, grace)


@dataclass(frozen=True)
class BlockLook:
    """Blocks at one look at the pool, and what follows for a plan."""

    memory: BlockMemory = NO_BLOCKS
    given_back: frozenset[Target] = frozenset()
    """Targets that go."""
    left_alone: frozenset[tuple[str, int, str]] = frozenset()
    """Group, cores and node for which no target may be made now."""
    left_alone_kinds: frozenset[Kind] = frozenset()
    """Kinds for which none may be made on any node."""
    new: Mapping[Kind, int] = field(default_factory=dict)
    """Kind -> most targets that may be new, of kinds that are not tried for the first time."""
    probes: Optional[Callable[[int], int]] = None
    """Cores of a block -> most new targets of such a kind; None where nothing is bounded."""
    wait_seconds: Mapping[str, float] = field(default_factory=dict)
    """Node whose block stands free -> how much longer it is expected to wait."""

    @property
    def nodes(self) -> frozenset[str]:
        """Nodes whose target goes, or that are left alone."""
        back = {target.node for target in self.given_back}
        return frozenset(back | {node for _, _, node in self.left_alone})

    def most_new(self, kind: Kind) -> Optional[int]:
        """Most targets of a kind that may be new; None for any number."""
        return None if self.probes is None else self.new.get(kind, self.probes(kind[1]))


NOT_LOOKED = BlockLook()
"""Bounds nothing."""


def expected_wait_seconds(taken: Optional[TakenBlocks], stood_seconds: float = 0.0) -> float:
    """Expected time until a free block is taken: as it has stood, at least as others waited."""
    usual = taken.long_wait_seconds if taken is not None else float(NEGOTIATION_SECONDS)
    return max(usual, stood_seconds)


def look_at_blocks(
    memory: BlockMemory, standing: Iterable[Standing], snapshot: Snapshot, now: int, give_up: GiveUp
) -> BlockLook:
    """Blocks of the targets that stand, seen at Unix time ``now``.

    Parameters
    ----------
    memory
        As the cycle before left it.
    """
    standing = tuple(standing)
    nodes = _nodes_under(snapshot, standing)
    seen = _Seen(memory)
    for stood in standing:
        if stood.target.node in nodes:
            seen.add(stood, nodes[stood.target.node], now)
    blocks, taken, takes = seen.blocks, seen.taken, seen.takes
    waiting = {
        (jobs.group, jobs.cores) for jobs in snapshot.pending if jobs.jobs > 0 and jobs.placeable
    }
    rows = _forgotten(memory.back_offs, now)
    failures = {kind: row.failures for kind, row in _of_kinds(rows).items()}
    failed = [
        block
        for _, block in blocks
        if _stood_too_long(
            block,
            now,
            give_up.patience_seconds(
                expected_wait_seconds(taken.get(block.kind)), failures.get(block.kind, 0)
            ),
        )
    ]
    rows = _after_takes(rows, set(takes), seen.takers)
    rows = _after_failures(rows, [block for block in failed if block.kind in waiting], takes, now)
    kinds = frozenset(kind for kind, row in _of_kinds(rows).items() if now < row.until)
    late = {(block.node, block.kind) for block in failed}
    given_back = frozenset(
        target
        for target, block in blocks
        if block.kind in kinds or (block.node, block.kind) in late
    )
    staying = [block for target, block in blocks if target not in given_back]
    free: Counter[Kind] = Counter()
    for block in staying:
        if block.free_since is not None:
            free[block.kind] += nodes[block.node].idle_cores // block.cores
    tries = partial(give_up.probes, sum(node.cores for node in snapshot.nodes))
    return BlockLook(
        BlockMemory(tuple(staying), rows, tuple(taken[kind] for kind in sorted(taken))),
        given_back,
        frozenset((row.group, row.cores, row.node) for row in rows if row.node and now < row.until),
        kinds,
        _most_new(staying, free, takes, rows, tries),
        tries,
        {
            block.node: expected_wait_seconds(taken.get(block.kind), now - block.free_since)
            for block in staying
            if block.free_since is not None
        },
    )


class _Seen:
    """Blocks of the targets that stand, and what jobs took since the last look."""

    def __init__(self, memory: BlockMemory) -> None:
        self.blocks: list[tuple[Target, OpenBlock]] = []
        self.taken = {(row.group, row.cores): row for row in memory.taken}
        self.takes: Counter[Kind] = Counter()
        self.takers: set[tuple[str, int, str]] = set()
        self._before = {(block.node, block.kind): block for block in memory.open}

    def add(self, stood: Standing, here: _NodeUnderTarget, now: int) -> None:
        """Look at the block of one target."""
        target = stood.target
        node, kind = target.node, (target.helped, target.request_cores)
        was = self._before.get((node, kind)) or OpenBlock(node, *kind, started_at=stood.since)
        block, starts = _seen(was, here, now)
        self.blocks.append((target, block))
        for start in starts:
            waited = start - was.free_since if was.free_since is not None else 0
            row = self.taken.get(kind) or TakenBlocks(*kind, 0, 0.0, 0.0)
            self.taken[kind] = row.after(float(max(0, waited)))
        if starts:
            self.takes[kind] += len(starts)
            self.takers.add((*kind, node))


@dataclass
class _NodeUnderTarget:
    """A node with a target, at a look."""

    idle_cores: int
    acts: bool
    """Whether it may act on the target: else it keeps no cores free."""
    starts: dict[Kind, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Kind -> start of each of its jobs there, Unix seconds."""


def _nodes_under(snapshot: Snapshot, standing: Collection[Standing]) -> dict[str, _NodeUnderTarget]:
    names = {stood.target.node for stood in standing}
    under = {
        node.name: _NodeUnderTarget(node.cores, node.obeyed_sequence != 0)
        for node in snapshot.nodes
        if node.name in names
    }
    for held in snapshot.running:
        here = under.get(held.node)
        if here is not None:
            here.idle_cores -= held.cores * held.jobs
            here.starts[held.group, held.cores] += [snapshot.taken_at - held.seconds] * held.jobs
    return under


def _seen(was: OpenBlock, here: _NodeUnderTarget, now: int) -> tuple[OpenBlock, list[int]]:
    """The block now, and the starts of jobs that have taken it since the last look.

    A slot may have more cores than its job requests (quanta, MODIFY_REQUEST_EXPR_REQUESTCPUS).
    """
    starts = [
        start
        for (group, cores), jobs_starts in here.starts.items()
        if group == was.group and cores >= was.cores
        for start in jobs_starts
        if start > was.started_at + START_TOLERANCE_SECONDS
    ]
    free_since: Optional[int] = None
    if here.acts and here.idle_cores >= was.cores:
        # After a start the cores that are idle are another block.
        free_since = now if starts or was.free_since is None else min(was.free_since, now)
    return replace(was, started_at=max([was.started_at, *starts]), free_since=free_since), starts


def _stood_too_long(block: OpenBlock, now: int, patience_seconds: float) -> bool:
    if block.free_since is None or block.free_since == now:
        return False
    return now - block.free_since >= patience_seconds


def _of_kinds(rows: Iterable[BackOff]) -> dict[Kind, BackOff]:
    return {(row.group, row.cores): row for row in rows if row.node == ALL_NODES}


def _forgotten(rows: Iterable[BackOff], now: int) -> tuple[BackOff, ...]:
    """Rows that still count, each bounded from now on, whatever the clock was."""
    bounded = (replace(row, until=min(row.until, now + MOST_SECONDS)) for row in rows)
    return tuple(row for row in bounded if now < row.until + FORGOTTEN_SECONDS)


def _after_takes(
    rows: tuple[BackOff, ...], kinds: Collection[Kind], takers: Collection[tuple[str, int, str]]
) -> tuple[BackOff, ...]:
    """Rows without those that a success ends: of kind and node, or of all if the kind failed."""
    at_fault = {kind for kind, row in _of_kinds(rows).items() if row.failures >= IN_A_ROW}

    def ends(row: BackOff) -> bool:
        kind = (row.group, row.cores)
        whole = row.node == ALL_NODES or kind in at_fault
        return kind in kinds and (whole or (*kind, row.node) in takers)

    return tuple(row for row in rows if not ends(row))


def _after_failures(
    rows: tuple[BackOff, ...], failed: Iterable[OpenBlock], takes: Mapping[Kind, int], now: int
) -> tuple[BackOff, ...]:
    table = {(row.group, row.cores, row.node): row for row in rows}
    by_kind: defaultdict[Kind, list[int]] = defaultdict(list)
    for block in failed:
        stood = now - (block.free_since or now)
        key = (*block.kind, block.node)
        table[key] = _failed_again(table.get(key), key, stood, now)
        by_kind[block.kind].append(stood)
    for kind, stood_seconds in by_kind.items():
        if takes.get(kind, 0):
            # Jobs of the kind start elsewhere: the node is at fault.
            continue
        key = (*kind, ALL_NODES)
        row = table.get(key)
        before = row.failures if row else 0
        failures = before + (1 if before >= IN_A_ROW else len(stood_seconds))
        if failures < IN_A_ROW:
            table[key] = BackOff(*key, failures=failures, seconds=0.0, until=now)
        else:
            table[key] = _failed_again(row, key, max(stood_seconds), now)
            table[key] = replace(table[key], failures=max(IN_A_ROW, before + 1))
    return tuple(table[key] for key in sorted(table))


def _failed_again(
    row: Optional[BackOff], key: tuple[str, int, str], stood: int, now: int
) -> BackOff:
    seconds = 2 * row.seconds if row and row.seconds else float(RETRY_TIMES * stood)
    seconds = min(float(MOST_SECONDS), seconds)
    return BackOff(
        *key, failures=(row.failures if row else 0) + 1, seconds=seconds, until=now + int(seconds)
    )


def _most_new(
    staying: Iterable[OpenBlock],
    free: Mapping[Kind, int],
    takes: Mapping[Kind, int],
    rows: Iterable[BackOff],
    tries: Callable[[int], int],
) -> dict[Kind, int]:
    """Kind -> most new targets: blocks taken, and some to try, less those that stand free.

    Of a kind that failed as a whole, one alone until a job takes it.
    """
    standing = Counter(block.kind for block in staying)
    failing = {kind for kind, row in _of_kinds(rows).items() if row.failures >= IN_A_ROW}
    return {
        kind: max(0, 1 - standing[kind])
        if kind in failing
        else max(0, tries(kind[1]) + takes.get(kind, 0) - free.get(kind, 0))
        for kind in {*standing, *takes, *failing}
    }
