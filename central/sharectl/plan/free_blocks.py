"""Blocks of cores that targets collect: taken by jobs, or lost.

A block costs the cores that stand idle for it from the first one on. It is lost if its target ends
before a job took it: because it stood free for too long, or because nobody waits any more.

Trust comes first: a group may have some blocks open at once (`first_cores`), its sizes in turn. A
block that a job takes lets more of its group and size be open (`EARNED_BLOCKS`), so that a group
that takes all it gets is soon slowed by nothing. After a loss, which counts for a day, all sizes of
the group that earned nothing have one block between them, and the next waits until a thousandth of
the pool's cores (`allowed_cores`) have made up for what it costs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from math import inf
from statistics import median_high
from typing import NamedTuple, Optional

from sharectl.model import Kind, Snapshot, Standing, Target
from sharectl.plan.settings import IN_A_ROW, NEGOTIATION_SECONDS, GiveUp
from sharectl.plan.waits import (
    NOTHING_KNOWN,
    START_TOLERANCE_SECONDS,
    NodeCores,
    RunTimes,
    wait_for_cores,
)

MOST_KNOWN_SECONDS = 3600.0
"""Longest wait that is learnt from blocks that were taken."""

FADING_RATIO = 15 / 16
"""Part of the longest wait that is left after a block that was taken sooner."""

RETRY_TIMES = 4
"""A node is left alone for times as long as its block stood free, up to an hour."""

NODE_SECONDS = 3600
"""Longest time that a node is left alone."""

MOST_SECONDS = 24 * 3600
"""Longest time between two blocks that are tried."""

FORGOTTEN_SECONDS = 24 * 3600
"""Time for which losses and failures count."""

EARNED_BLOCKS = 3
"""Blocks of a kind that may be open for each that a job took."""

EARNED_HALF_SECONDS = 7200
"""Time in which half of them are forgotten."""

FIRST_RATIO, FIRST_CORES, FIRST_PART = 0.04, 32, 1 / 3
"""Part of the pool that a group without losses may have open; in small pools so many cores, or so
large a part."""

FIRST_CORE_SECONDS = 72.0
"""Expected cost of these, core-seconds for each core of the pool."""

ALLOWED_RATIO, ALLOWED_CORES = 0.001, 1.0
"""Part of the pool, or cores of a small one, that may stand idle on average for lost blocks of a
group."""

PROBE_CORES = 8
"""Cores that are tried at once after a loss, or one block."""

SAMPLED_NODES = 64
"""Nodes from which the cost of a block is estimated."""

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
    idle_core_seconds: float = 0.0
    """Cores of its node that stood idle since a job took some, times seconds."""

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
    idle_core_seconds: float
    """Cost of the last block."""
    until: int
    """Unix seconds."""


@dataclass(frozen=True)
class TakenBlocks:
    """Blocks of one kind that jobs took."""

    group: str
    cores: int
    wait_seconds: float
    """Longest time for which one stood free; it fades as others are taken sooner."""
    earned: float = 0.0
    """Blocks that may be open for them."""
    failed_jobs: int = 0
    """Jobs that waited while cores stood free for them: no demand but for a try now and then."""
    lost_core_seconds: float = 0.0
    """Cost of earned blocks that were lost, as far as the allowance has not made up for it. Until
    then no more are open than were."""


@dataclass(frozen=True)
class Loss:
    """Last loss of a group."""

    group: str
    at: int
    """Unix seconds."""
    tried: tuple[int, ...] = ()
    """Sizes that had their turn since, whether or not a target came of it."""
    tried_at: int = 0
    """Unix seconds of the last turn; 0 before the first."""


@dataclass(frozen=True)
class BlockMemory:
    """Memory of blocks from one cycle to the next."""

    open: tuple[OpenBlock, ...] = ()
    """By node."""
    back_offs: tuple[BackOff, ...] = ()
    taken: tuple[TakenBlocks, ...] = ()
    losses: tuple[Loss, ...] = ()
    """Of a day, by group."""
    looked_at: int = 0
    """Unix seconds of the look; 0 before the first."""


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
    failing_kinds: frozenset[Kind] = frozenset()
    """Kinds whose blocks no job took, several times in a row."""
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


def first_cores(pool_cores: int) -> float:
    """Cores that a group without losses may have in open blocks that it has not earned."""
    return max(FIRST_RATIO * pool_cores, min(FIRST_CORES, FIRST_PART * pool_cores))


def allowed_cores(pool_cores: int) -> float:
    """Cores that may stand idle on average for lost blocks of a group."""
    return max(ALLOWED_RATIO * pool_cores, ALLOWED_CORES)


@dataclass
class _Look:
    """What is looked at, and what is remembered; this is changed as the look goes on."""

    snapshot: Snapshot
    nodes: Mapping[str, NodeCores]
    now: int
    give_up: GiveUp
    run_times: RunTimes
    between_seconds: int
    """Time since the last look; 0 if unknown."""
    taken: dict[Kind, TakenBlocks]
    pauses: dict[Place, BackOff]
    losses: dict[str, Loss]
    jobs: Counter[Kind]
    """Jobs that wait and that some node could run."""

    def failures(self, kind: Kind) -> int:
        """Blocks of a kind that were given up in a row."""
        row = self.pauses.get((*kind, ALL_NODES))
        return row.failures if row else 0

    def earned(self, kind: Kind) -> float:
        """Blocks that may be open for those taken."""
        return self.taken[kind].earned if kind in self.taken else 0.0

    def patience_seconds(self, kind: Kind) -> float:
        """Time for which a block of a kind may stand free."""
        usual = expected_wait_seconds(self.taken.get(kind))
        return self.give_up.patience_seconds(usual, self.failures(kind))

    def cost(self, kind: Kind) -> float:
        """Idle core-seconds that a block of a kind is expected to cost if no job takes it."""
        row, cores = self.pauses.get((*kind, ALL_NODES)), kind[1]
        able = [here for here in self.nodes.values() if here.node.cores >= cores]
        some = islice(able, 0, None, max(1, len(able) // SAMPLED_NODES))
        costs = [inf]
        for here in some:
            leaving = here.leaving(None, self.run_times) if cores > 1 else []
            idle = min(here.idle_cores, cores)
            needed = cores - idle if cores > 1 else 0
            costs.append(wait_for_cores(leaving, needed, idle).idle_core_seconds)
        free_seconds = max(self.patience_seconds(kind), self.between_seconds)
        expected = median_high(sorted(costs)[:-1] or costs) + cores * free_seconds
        return max(expected, row.idle_core_seconds if row else 0.0)

    def lost_much(self, row: TakenBlocks) -> bool:
        """True if a kind lost more than half of what first blocks may cost."""
        cores = sum(here.node.cores for here in self.nodes.values())
        return row.lost_core_seconds > FIRST_CORE_SECONDS * cores / 2

    def proven(self, kind: Kind) -> bool:
        """True if jobs took blocks of a kind, other jobs of it wait, and none was given up since."""
        return kind in self.taken and not self.failures(kind) and self.demand(kind) > 0

    def demand(self, kind: Kind) -> int:
        """Jobs of a kind that wait, without those that left cores free."""
        return self.jobs[kind] - (self.taken[kind].failed_jobs if kind in self.taken else 0)

    def lose(self, block: OpenBlock) -> None:
        """Remember a block that no job took."""
        earned = self.earned(block.kind)
        if earned >= 1:
            row = self.taken[block.kind]
            lost = row.lost_core_seconds + block.idle_core_seconds
            self.taken[block.kind] = replace(row, earned=earned - 1, lost_core_seconds=lost)
        if block.idle_core_seconds > 0 and (earned < 1 or block.free_since is not None):
            before = self.losses.get(block.group, Loss(block.group, self.now))
            self.losses[block.group] = replace(before, at=self.now)


def look_at_blocks(
    memory: BlockMemory,
    standing: Iterable[Standing],
    snapshot: Snapshot,
    nodes: Mapping[str, NodeCores],
    now: int,
    give_up: GiveUp,
    run_times: RunTimes = NOTHING_KNOWN,
) -> BlockLook:
    """Blocks of the targets that stand, with the memory of the cycle before."""
    look = _remembered(memory, snapshot, nodes, now, give_up, run_times)
    blocks, takers = _followed(look, memory.open, standing)
    _end_pauses(look, takers)
    there = {block.place for block in blocks.values()}
    for block in memory.open:
        if block.place not in there and block.place not in takers:
            look.lose(block)
    # No job comes to a closed node: that tells nothing of the jobs.
    blocks = {
        target: block
        for target, block in blocks.items()
        if nodes[target.node].node.admits(target.kind)
    }
    waiting = {kind for kind, jobs in look.jobs.items() if jobs > 0}
    failed = {
        target: block
        for target, block in blocks.items()
        if block.free_seconds(now) >= look.patience_seconds(block.kind)
    }
    given_up = [block for block in failed.values() if block.kind in waiting]
    over = _give_up(look, given_up, takers)
    staying = {
        target: block
        for target, block in blocks.items()
        if target not in failed and block.kind not in over
    }
    for block in blocks.values():
        if block not in staying.values() and block.kind in waiting:
            look.lose(block)
    most_new = _most_new(look, staying, waiting, takers)
    stand = {block.kind for block in staying.values()}
    kinds = {k for k in waiting - stand if look.failures(k) and most_new[k] == 0}
    return BlockLook(
        BlockMemory(
            tuple(staying.values()),
            tuple(look.pauses[place] for place in sorted(look.pauses)),
            tuple(look.taken[kind] for kind in sorted(look.taken)),
            tuple(look.losses[group] for group in sorted(look.losses)),
            now,
        ),
        given_back=frozenset(blocks.keys() - staying.keys()),
        left_alone=frozenset(
            place for place, row in look.pauses.items() if place[2] != ALL_NODES and now < row.until
        ),
        left_alone_kinds=frozenset(kinds),
        failing_kinds=frozenset(k for k in waiting if look.failures(k) >= IN_A_ROW),
        most_new=most_new,
        wait_seconds={
            block.node: expected_wait_seconds(look.taken.get(block.kind), block.free_seconds(now))
            for block in staying.values()
            if block.free_since is not None
        },
    )


def _remembered(
    memory: BlockMemory,
    snapshot: Snapshot,
    nodes: Mapping[str, NodeCores],
    now: int,
    give_up: GiveUp,
    run_times: RunTimes,
) -> _Look:
    """Memory that still counts; times are bounded from now on, whatever the clock was."""
    between = max(0, min(now - memory.looked_at, NODE_SECONDS)) if memory.looked_at else 0
    made_up = between * allowed_cores(sum(here.node.cores for here in nodes.values()))
    fading = 0.5 ** (between / EARNED_HALF_SECONDS)
    rows = (replace(row, until=min(row.until, now + MOST_SECONDS)) for row in memory.back_offs)
    jobs: Counter[Kind] = Counter()
    for pending in snapshot.pending:
        if pending.placeable:
            jobs[pending.kind] += pending.jobs
    return _Look(
        snapshot,
        nodes,
        now,
        give_up,
        run_times,
        between,
        {
            (row.group, row.cores): replace(
                row,
                earned=row.earned * fading,
                failed_jobs=_failed_jobs(row.failed_jobs, jobs[row.group, row.cores]),
                lost_core_seconds=max(0.0, row.lost_core_seconds - made_up),
            )
            for row in memory.taken
        },
        {
            (row.group, row.cores, row.node): row
            for row in rows
            if now < row.until + FORGOTTEN_SECONDS
        },
        {
            row.group: replace(row, at=min(row.at, now), tried_at=min(row.tried_at, now))
            for row in memory.losses
            if now < row.at + FORGOTTEN_SECONDS
        },
        jobs,
    )


def _failed_jobs(before: int, waiting: int) -> int:
    """Jobs that failed and wait still: fewer by `EARNED_BLOCKS` for each of them that left."""
    left = max(0, before - waiting)
    return max(0, before - EARNED_BLOCKS * left)


def _followed(
    look: _Look, open_before: Iterable[OpenBlock], standing: Iterable[Standing]
) -> tuple[dict[Target, OpenBlock], list[Place]]:
    """Blocks of the targets that stand, and places of those that jobs took since the last look."""
    before = {block.place: block for block in open_before}
    blocks: dict[Target, OpenBlock] = {}
    takers: list[Place] = []
    for stood in standing:
        target, kind = stood.target, stood.target.kind
        if target.node in look.nodes:
            block = OpenBlock(target.node, *kind, started_at=stood.since)
            block = before.get(block.place, block)
            blocks[target], starts = _seen(block, look)
            for start in starts:
                row = look.taken.get(kind, TakenBlocks(*kind, 0.0))
                longest = max(row.wait_seconds * FADING_RATIO, float(block.free_seconds(start)))
                earned = row.earned + (2 if look.lost_much(row) else EARNED_BLOCKS)
                look.taken[kind] = replace(row, wait_seconds=longest, earned=earned)
                takers.append(block.place)
    return blocks, takers


def _seen(block: OpenBlock, look: _Look) -> tuple[OpenBlock, list[int]]:
    """The block now, and the starts of jobs that have taken it since the last look.

    A slot may have more cores than its job requests (quanta, MODIFY_REQUEST_EXPR_REQUESTCPUS).
    """
    taken_at, here = look.snapshot.taken_at, look.nodes[block.node]
    starts = sorted(
        taken_at - jobs.seconds
        for jobs in here.by_group.get(block.group, ())
        if jobs.cores >= block.cores
        for _ in range(jobs.jobs)
        if taken_at - jobs.seconds > block.started_at + START_TOLERANCE_SECONDS
    )
    free_since, idle = None, block.idle_core_seconds
    # A node that does not act on its target keeps no cores free.
    if here.node.obeyed_sequence != 0:
        idle += here.idle_cores * look.between_seconds
        if here.idle_cores >= block.cores:
            # After a start the cores that are idle are another block.
            again = starts or block.free_since is None
            free_since = look.now if again else min(block.free_since or look.now, look.now)
    if starts:
        rest = here.idle_cores // block.cores
        idle *= rest / (rest + len(starts))
    started_at = max([block.started_at, *starts])
    seen = replace(block, started_at=started_at, free_since=free_since, idle_core_seconds=idle)
    return seen, starts


def _end_pauses(look: _Look, takers: Collection[Place]) -> None:
    """End those of a kind of which a job started, and on its node, or on all if the kind failed."""
    kinds = {place[:2] for place in takers}
    failed = {kind for kind in kinds if look.failures(kind) >= IN_A_ROW}
    for place in list(look.pauses):
        kind = place[:2]
        if kind in kinds and (place[2] == ALL_NODES or place in takers or kind in failed):
            del look.pauses[place]


def _give_up(look: _Look, blocks: Iterable[OpenBlock], takers: Iterable[Place]) -> set[Kind]:
    """Pause the nodes of blocks that stood free for too long; count failures of their kinds.

    A kind of which a job started meanwhile has not failed. Returns kinds whose open blocks all go.
    """
    over: set[Kind] = set()
    taken = {place[:2] for place in takers}
    failed: defaultdict[Kind, list[OpenBlock]] = defaultdict(list)
    for block in blocks:
        failed[block.kind].append(block)
        stood_seconds = min(NODE_SECONDS, RETRY_TIMES * block.free_seconds(look.now))
        row = look.pauses.get(block.place)
        failures = row.failures + 1 if row else 1
        until = look.now + stood_seconds
        look.pauses[block.place] = BackOff(*block.place, failures, block.idle_core_seconds, until)
    for kind, alike in failed.items():
        if kind not in taken:
            before = look.failures(kind)
            failures = min(max(IN_A_ROW, before + 1), before + len(alike))
            cost = max(block.idle_core_seconds for block in alike)
            look.pauses[kind[0], kind[1], ALL_NODES] = BackOff(
                *kind, ALL_NODES, failures, cost, look.now
            )
            if failures >= IN_A_ROW:
                over.add(kind)
        known = look.taken.get(kind, TakenBlocks(*kind, 0.0))
        earned = known.earned / 2 if kind in over else known.earned
        look.taken[kind] = replace(known, earned=earned, failed_jobs=look.jobs[kind])
    return over


def _most_new(
    look: _Look,
    staying: Mapping[Target, OpenBlock],
    waiting: Collection[Kind],
    takers: Collection[Place],
) -> dict[Kind, int]:
    """Blocks of each kind of jobs that wait which may be new."""
    cores = sum(here.node.cores for here in look.nodes.values())
    open_blocks: Counter[Kind] = Counter()
    for target, block in staying.items():
        here = look.nodes[target.node]
        due = max(0, here.held_cores[target.held_back] - target.cap_cores)
        open_blocks[block.kind] += 1 if block.cores > 1 else max(1, due + here.idle_cores)
    for kind, row in look.taken.items():
        if look.lost_much(row):
            most_open = open_blocks[kind] + 2 * sum(place[:2] == kind for place in takers)
            look.taken[kind] = replace(row, earned=min(row.earned, max(1, most_open)))
    # More than were earned.
    trusted = {
        kind: max(0, number - int(look.earned(kind))) for kind, number in open_blocks.items()
    }
    most = {
        kind: max(0, min(look.demand(kind), int(look.earned(kind))) - open_blocks[kind])
        for kind in waiting
    }
    by_group: defaultdict[str, list[Kind]] = defaultdict(list)
    for kind in sorted(waiting):
        by_group[kind[0]].append(kind)
    for group, kinds in by_group.items():
        at_risk = sum(number * kind[1] for kind, number in trusted.items() if kind[0] == group)
        if group in look.losses:
            idle = [kind for kind in kinds if not open_blocks[kind]]
            if idle:
                most.update(_next_try(look, idle, most, allowed_cores(cores)))
            continue
        wanted = {kind: look.demand(kind) - open_blocks[kind] for kind in kinds}
        most.update(_first_tries(look, wanted, most, at_risk, cores))
    return most


def _first_tries(
    look: _Look, wanted: Mapping[Kind, int], most: Mapping[Kind, int], at_risk: int, pool_cores: int
) -> dict[Kind, int]:
    """Blocks of a group without losses that may be new, of its sizes in turn, the smallest first.

    One may be, whatever it costs, where none is at risk.
    """
    left, tries = first_cores(pool_cores) - at_risk, dict(most)
    left_core_seconds = FIRST_CORE_SECONDS * (left / first_cores(pool_cores)) * pool_cores
    costs = {kind: look.cost(kind) for kind, jobs in wanted.items() if jobs > 0}
    turns: Sequence[Kind] = sorted(costs, key=costs.__getitem__)
    free = not at_risk
    while turns:
        fitting = []
        for kind in turns:
            fits = kind[1] <= left and costs[kind] <= left_core_seconds
            if tries[kind] < wanted[kind] and (free or fits):
                tries[kind] += 1
                left -= kind[1]
                left_core_seconds -= costs[kind]
                fitting.append(kind)
            free = False
        turns = fitting
    return tries


def _next_try(
    look: _Look, kinds: Iterable[Kind], most: Mapping[Kind, int], cores: float
) -> dict[Kind, int]:
    """Kind of a group with losses that may be tried with one block now, if its time has come.

    Failing kinds come last, and those of which jobs run first.
    """
    group = min(kinds)[0]
    loss = look.losses[group]
    runs = {jobs.cores for jobs in look.snapshot.running if jobs.group == group}
    able = [
        kind
        for kind in kinds
        if any(h.node.cores >= kind[1] and h.node.admits(kind) for h in look.nodes.values())
    ]
    tried = loss.tried if any(kind[1] not in loss.tried for kind in able) else ()
    in_turn = sorted(
        able,
        key=lambda kind: (
            not look.proven(kind),
            kind[1] in tried,
            look.failures(kind),
            kind[1] not in runs,
            kind[1],
        ),
    )
    for kind in in_turn[:1]:
        until = loss.tried_at + int(min(MOST_SECONDS, look.cost(kind) / cores))
        row = look.pauses.get((*kind, ALL_NODES))
        if row:
            look.pauses[kind[0], kind[1], ALL_NODES] = replace(row, until=until)
        if look.now >= until:
            look.losses[group] = replace(loss, tried=(*tried, kind[1]), tried_at=look.now)
            return {kind: most[kind] + max(1, PROBE_CORES // kind[1])}
    return {}
