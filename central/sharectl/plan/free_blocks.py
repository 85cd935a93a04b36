"""Blocks of cores that targets collect: taken by jobs, or lost.

A block costs the cores of its node that stand idle from the first one on. It is lost if its target
ends before a job took it: it stood free for too long, or nobody waits any more, or the plan has
dropped it. A target that ends because its node closed or left the pool is no loss.

- First blocks: as long as its losses of a day leave some of `FIRST_CORE_SECONDS`, a group may have
  blocks open of such an expected cost (`first_cores` at once), its sizes in turn; more, in
  proportion, if it runs such jobs (`WORK_RATIO`). A thousandth of the pool's cores
  (`allowed_cores`) makes up for losses.
- Each job that takes a block, and runs for a part of what it cost (`PROOF_RATIO`), lets
  `EARNED_BLOCKS` more of its kind be open; half of them are forgotten in a day, and a target that
  ends uses one up. Lost ones come out of a third of what the taken ones cost, or fewer are earned.
  A group that takes all it gets is soon bounded by its waiting jobs alone.
- Where losses leave nothing, the sizes of a group without an open block have one try between them,
  in turn: every other one is for sizes that run or took blocks. The next waits until the allowance
  has made up for its expected cost, at most a day; if a kind failed and other jobs of it wait, an
  hour or a quarter of that.
- Jobs that waited while a block stood free for too long are no demand until other jobs wait. Of
  single-core jobs, each that starts on any node makes room for `EARNED_BLOCKS` others.

A day is the longest time between two tries, and the time for which losses and failures count.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from math import inf
from statistics import median_high
from typing import Optional

from sharectl.model import Kind, Snapshot, Standing, Target
from sharectl.plan.blocks import (
    ALL_NODES,
    BackOff,
    BlockKey,
    BlockLook,
    BlockMemory,
    Loss,
    NewJob,
    OpenBlock,
    TakenBlocks,
    expected_wait_seconds,
)
from sharectl.plan.settings import IN_A_ROW, NEGOTIATION_SECONDS, GiveUp
from sharectl.plan.waits import (
    NOTHING_KNOWN,
    START_TOLERANCE_SECONDS,
    Leaving,
    NodeCores,
    RunTimes,
    leaving_for,
    wait_for_cores,
)
from sharectl.times import DAY_SECONDS

FADING_RATIO = 15 / 16
"""Part of the longest wait that is left after a block that was taken sooner."""

RETRY_TIMES, NODE_SECONDS = 4, 3600
"""A node is left alone for times as long as its block stood free, up to an hour."""

OTHER_JOBS_SECONDS = 3600
"""Time between two tries of a kind that failed, once other jobs of it wait; or a quarter of
the usual time if that is more."""

GAP_SECONDS = 3600
"""Longest time between two looks that counts."""

EARNED_BLOCKS, EARNED_SLOWLY = 3, 2
"""Blocks of a kind that may be open for each that a job took; fewer while it has lost much."""

PROOF_RATIO = 0.05
"""A job earns blocks once its core-seconds are such a part of those that its block stood idle: a
job that ends at once proves nothing."""

CREDIT_RATIO, MOST_CREDITS = 1 / 3, 2
"""Part of the cost of taken blocks that earned ones may lose; at most so many times what first
blocks may cost."""

EARNED_HALF_SECONDS = DAY_SECONDS
"""Time in which half of the earned blocks, and of the credit, are forgotten: groups come back each
day."""

FIRST_RATIO, FIRST_CORES, FIRST_PART = 0.03, 64, 1 / 2
"""Part of the pool that a group without losses may have open; in small pools so many cores, or so
large a part."""

FIRST_CORE_SECONDS, LEAST_FIRST_CORE_SECONDS = 72.0, 36_000.0
"""Expected cost of these, core-seconds for each core of the pool; that of a small pool."""

WORK_RATIO, RUNNING_RATIO = 1 / 64, 1 / 8
"""Parts of the core-seconds, and of the cores, of a group's running multicore jobs that its first
blocks of their sizes may have beside: who runs jobs of a day has such jobs."""

ALLOWED_RATIO, ALLOWED_CORES = 0.001, 1.0
"""Part of the pool, or cores of a small one, that may stand idle on average for lost blocks of a
group."""

TRIED_CORES = 8
"""Cores of the blocks of a try, or one block."""


def tried_blocks(cores: int) -> int:
    """Blocks of a try, for jobs of so many cores."""
    return max(1, TRIED_CORES // cores)


SAMPLED_NODES = 64
"""Nodes from which the cost of a block is estimated."""


def first_cores(pool_cores: int) -> float:
    """Cores that a group without losses may have in open blocks that it has not earned."""
    return max(FIRST_RATIO * pool_cores, min(FIRST_CORES, FIRST_PART * pool_cores))


def allowed_cores(pool_cores: int) -> float:
    """Cores that may stand idle on average for lost blocks of a group."""
    return max(ALLOWED_RATIO * pool_cores, ALLOWED_CORES)


class _Look:
    """Pool at a look, and the memory of blocks, which changes as the look goes on."""

    def __init__(
        self,
        memory: BlockMemory,
        snapshot: Snapshot,
        nodes: Mapping[str, NodeCores],
        now: int,
        give_up: GiveUp,
        run_times: RunTimes,
    ) -> None:
        """Keep what still counts; times are bounded from now on, whatever the clock was."""
        self.snapshot, self.nodes, self.now = snapshot, nodes, now
        self.give_up, self.run_times = give_up, run_times
        self.pool_cores = sum(here.node.cores for here in nodes.values())
        least = LEAST_FIRST_CORE_SECONDS
        self.first_core_seconds = max(FIRST_CORE_SECONDS * self.pool_cores, least)
        """Cost of first blocks; a kind that lost more than half of it has lost much."""
        between = max(0, min(now - memory.looked_at, GAP_SECONDS)) if memory.looked_at else 0
        self.between_seconds = between
        """Time since the last look; 0 if unknown."""
        self.jobs = Counter[Kind]()
        """Jobs that wait and that some node could run."""
        for pending in snapshot.pending:
            if pending.placeable:
                self.jobs[pending.kind] += pending.jobs
        self.new_jobs: list[NewJob] = []
        """Jobs that took blocks and have earned none yet."""
        self.takes: list[BlockKey] = []
        """Places of blocks that jobs took since the last look."""
        self._leaving: dict[str, Sequence[Leaving]] = {}
        """Node -> its jobs, with the time that they still run."""
        self.pauses: dict[BlockKey, BackOff] = {}
        for pause in memory.back_offs:
            longest = DAY_SECONDS if pause.node == ALL_NODES else NODE_SECONDS
            until = min(pause.until, now + longest)
            if now < until + DAY_SECONDS:
                self.pauses[pause.group, pause.cores, pause.node] = replace(pause, until=until)
        made_up = between * allowed_cores(self.pool_cores)
        self.losses: dict[str, Loss] = {}
        for loss in memory.losses:
            if now < loss.at + DAY_SECONDS:
                at, tried_at = min(loss.at, now), min(loss.tried_at, now)
                lost = max(0.0, loss.core_seconds - made_up)
                kept = replace(loss, at=at, tried_at=tried_at, core_seconds=lost)
                self.losses[loss.group] = kept
        remembered_ratio = 0.5 ** (between / EARNED_HALF_SECONDS)
        self.taken: dict[Kind, TakenBlocks] = {}
        for row in memory.taken:
            lost = row.lost_core_seconds
            # Jobs that failed are tried again as others once their loss is forgotten. Each of them
            # that has gone makes room for several others.
            gone = max(0, row.failed_jobs - self.jobs[row.kind])
            if row.failed_jobs and row.cores == 1:
                # A queue that is filled up again at once shows none that has gone.
                gone = max(gone, self.single_core_starts[row.group])
            failed = max(0, row.failed_jobs - EARNED_BLOCKS * gone)
            self.taken[row.kind] = replace(
                row,
                earned=row.earned * remembered_ratio,
                failed_jobs=failed if row.group in self.losses else 0,
                lost_core_seconds=max(0.0, lost - made_up) if lost > 0 else lost * remembered_ratio,
            )

    @cached_property
    def single_core_starts(self) -> Counter[str]:
        """Single-core jobs of each group that started since the last look, on any node."""
        starts = Counter[str]()
        for running in self.snapshot.running:
            if running.cores == 1 and running.seconds < self.between_seconds:
                starts[running.group] += running.jobs
        return starts

    def row(self, kind: Kind, wait_seconds: float = 0.0) -> TakenBlocks:
        """Memory of a kind; with that wait if nothing is remembered."""
        return self.taken.get(kind) or TakenBlocks(*kind, wait_seconds)

    @cached_property
    def work(self) -> Mapping[Kind, tuple[int, int]]:
        """Cores of the running multicore jobs of each kind, and core-seconds that they have run."""
        work: dict[Kind, tuple[int, int]] = {}
        for running in self.snapshot.running:
            if running.cores > 1:
                kind = (running.group, running.cores)
                cores, core_seconds = work.get(kind, (0, 0))
                more = running.cores * running.jobs
                work[kind] = (cores + more, core_seconds + more * running.seconds)
        return work

    def failures(self, kind: Kind) -> int:
        """Number of times in a row that blocks of a kind failed."""
        row = self.pauses.get((*kind, ALL_NODES))
        return row.failures if row else 0

    def earned_blocks(self, kind: Kind) -> int:
        """Blocks that may be open for those taken; fading by some minutes takes none away."""
        return round(self.row(kind).earned)

    def demand(self, kind: Kind) -> int:
        """Jobs of a kind that wait, without those that left cores free."""
        return self.jobs[kind] - self.row(kind).failed_jobs

    def proven(self, kind: Kind) -> bool:
        """True if jobs took blocks of a kind, none failed after that, and other jobs wait."""
        return self.row(kind).earned > 0 and not self.failures(kind) and self.demand(kind) > 0

    def is_open(self, kind: Kind) -> bool:
        """True if a target on some node could bring a block of a kind."""
        return any(here.could_bring(kind) for here in self.nodes.values())

    def patience_seconds(self, kind: Kind) -> float:
        """Time for which a block of a kind may stand free."""
        usual = expected_wait_seconds(self.taken.get(kind))
        return self.give_up.patience_seconds(usual, self.failures(kind))

    def cost(self, kind: Kind) -> float:
        """Expected idle core-seconds of a block of a kind if no job takes it.

        At least those of a block of the group that failed, in proportion to a smaller size.
        """
        group, cores = kind
        able = [here for here in self.nodes.values() if here.node.cores >= cores]
        costs = []
        for here in islice(able, 0, None, max(1, len(able) // SAMPLED_NODES)):
            idle = min(here.idle_cores, cores)
            # A core for a job of one core does not wait for another.
            needed = cores - idle if cores > 1 else 0
            name, run_times = here.node.name, self.run_times
            if needed and name not in self._leaving:
                self._leaving[name] = leaving_for(here.leaving_by_group(run_times), cores, group)
            wait = wait_for_cores(self._leaving.get(name, ()), needed, idle)
            costs.append(wait.idle_core_seconds)
        free_seconds = max(self.patience_seconds(kind), self.between_seconds)
        # Jobs of which no end was seen yet may run for long.
        expected = median_high(costs or [inf]) * (1 if self.run_times else 2)
        expected += cores * free_seconds
        failed = (
            row.idle_core_seconds * min(1.0, cores / row.cores)
            for row in self.pauses.values()
            if (row.group, row.node) == (group, ALL_NODES)
        )
        return max(expected, *failed, 0.0)

    def earn(self, job: NewJob) -> None:
        """Count a block that a job took, and credit a part of its cost."""
        row = self.row(job.kind)
        lost = row.lost_core_seconds - CREDIT_RATIO * max(0.0, job.idle_core_seconds)
        lost = max(lost, -MOST_CREDITS * self.first_core_seconds)
        more = EARNED_SLOWLY if lost > self.first_core_seconds / 2 else EARNED_BLOCKS
        self.taken[job.kind] = replace(row, earned=row.earned + more, lost_core_seconds=lost)

    def lose(self, block: OpenBlock, *, given_back: bool = False) -> None:
        """Remember a block whose target ended; no loss without idle cores since its last job."""
        has_earned = self.earned_blocks(block.kind) > 0
        if has_earned:
            row = self.taken[block.kind]
            lost = row.lost_core_seconds + block.idle_core_seconds
            self.taken[block.kind] = replace(
                row, earned=max(0.0, row.earned - 1), lost_core_seconds=lost
            )
        # Where jobs earned blocks, the plan has dropped this one for a reason that is not theirs.
        is_new = any(new.kind == block.kind for new in self.new_jobs)
        is_theirs = given_back or not (has_earned or is_new or self.proven(block.kind))
        if block.idle_core_seconds > 0 and is_theirs:
            before = self.losses.get(block.group, Loss(block.group, self.now))
            lost = before.core_seconds + block.idle_core_seconds
            if given_back:
                # Nobody came though it was free: no more first blocks until that is made up for.
                lost = max(lost, self.first_core_seconds)
            self.losses[block.group] = replace(before, at=self.now, core_seconds=lost)


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
    look = _Look(memory, snapshot, nodes, now, give_up, run_times)
    _earn(look, memory.new_jobs)
    blocks = _followed(look, memory.open, standing)
    _end_pauses(look)
    standing_places = {block.place for block in blocks.values()}
    for block in memory.open:
        if block.place not in standing_places and block.node in nodes:
            look.lose(block)
    # No job comes to a closed node: that tells nothing of the jobs.
    blocks = {
        target: block
        for target, block in blocks.items()
        if nodes[target.node].node.admits(target.kind)
    }
    waiting = {kind for kind, jobs in look.jobs.items() if jobs > 0}
    late = [
        target
        for target, block in blocks.items()
        if block.free_seconds(now) >= look.patience_seconds(block.kind)
    ]
    failed_kinds = _give_up(look, [blocks[target] for target in late if target.kind in waiting])
    staying, given_back = dict[Target, OpenBlock](), set[Target]()
    for target, block in blocks.items():
        if target in late or block.kind in failed_kinds:
            given_back.add(target)
            look.lose(block, given_back=True)
        else:
            staying[target] = block
    # A kind that fails now rests for a cycle, or its next try would be on the cores that it leaves.
    most_new = _most_new(look, staying, waiting - failed_kinds)
    most_new.update(dict.fromkeys(failed_kinds, 0))
    paused = {kind for kind in waiting if look.failures(kind) and most_new[kind] == 0}
    return BlockLook(
        BlockMemory(
            tuple(staying.values()),
            tuple(look.new_jobs),
            tuple(look.pauses[place] for place in sorted(look.pauses)),
            tuple(look.taken[kind] for kind in sorted(look.taken)),
            tuple(look.losses[group] for group in sorted(look.losses)),
            now,
        ),
        between_seconds=look.between_seconds,
        given_back=frozenset(given_back),
        left_alone=frozenset(
            place for place, row in look.pauses.items() if row.node != ALL_NODES and now < row.until
        ),
        left_alone_kinds=frozenset(paused - {block.kind for block in staying.values()}),
        failing_kinds=frozenset(kind for kind in waiting if look.demand(kind) <= 0),
        most_new=most_new,
        wait_seconds={
            block.node: expected_wait_seconds(look.taken.get(block.kind), block.free_seconds(now))
            for block in staying.values()
            if block.free_since is not None
        },
    )


def _earn(look: _Look, new_jobs: Iterable[NewJob]) -> None:
    """Count blocks of jobs that have run for long enough; forget jobs that ended sooner."""
    taken_at = look.snapshot.taken_at
    for new in new_jobs:
        here = look.nodes.get(new.node)
        runs = here is not None and any(
            jobs.cores >= new.cores
            and abs(taken_at - jobs.seconds - new.started_at) <= START_TOLERANCE_SECONDS
            for jobs in here.by_group.get(new.group, ())
        )
        if not runs:
            continue
        if (taken_at - new.started_at) * new.cores >= PROOF_RATIO * new.idle_core_seconds:
            look.earn(new)
        else:
            look.new_jobs.append(new)


def _followed(
    look: _Look, open_before: Iterable[OpenBlock], standing: Iterable[Standing]
) -> dict[Target, OpenBlock]:
    """Blocks of the targets that stand; notes those that jobs took since the last look."""
    before = {block.place: block for block in open_before}
    blocks: dict[Target, OpenBlock] = {}
    new_jobs: list[NewJob] = []
    for stood in standing:
        target, kind = stood.target, stood.target.kind
        if target.node in look.nodes:
            block = OpenBlock(target.node, *kind, started_at=stood.since)
            block = before.get(block.place, block)
            seen, starts = _seen(block, look)
            blocks[target] = seen
            idle = look.nodes[target.node].idle_cores * look.between_seconds
            cost = block.idle_core_seconds + idle - seen.idle_core_seconds
            for start in starts:
                row = look.row(kind)
                longest = max(row.wait_seconds * FADING_RATIO, float(block.free_seconds(start)))
                look.taken[kind] = replace(row, wait_seconds=longest)
                look.takes.append(block.place)
                new_jobs.append(NewJob(target.node, *kind, start, cost / len(starts)))
    _earn(look, new_jobs)
    return blocks


def _seen(block: OpenBlock, look: _Look) -> tuple[OpenBlock, list[int]]:
    """The block now, and the starts of jobs that have taken it since the last look.

    A slot may have more cores than its job requests (quanta, MODIFY_REQUEST_EXPR_REQUESTCPUS).
    """
    taken_at, here = look.snapshot.taken_at, look.nodes[block.node]
    # After a step back of the clock jobs start before the last look.
    started_at = min(block.started_at, look.now)
    starts = sorted(
        taken_at - jobs.seconds
        for jobs in here.by_group.get(block.group, ())
        if jobs.cores >= block.cores
        for _ in range(jobs.jobs)
        if taken_at - jobs.seconds > started_at + START_TOLERANCE_SECONDS
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
        others = here.idle_cores // block.cores
        idle *= others / (others + len(starts))
    started_at = max([started_at, *starts])
    seen = replace(block, started_at=started_at, free_since=free_since, idle_core_seconds=idle)
    return seen, starts


def _end_pauses(look: _Look) -> None:
    """End pauses of kinds of which a job started: on its node, or on all if the kind failed."""
    kinds = {place[:2] for place in look.takes}
    failed = {kind for kind in kinds if look.failures(kind) >= IN_A_ROW}
    for place in list(look.pauses):
        kind = place[:2]
        if kind in kinds and (place[2] == ALL_NODES or place in look.takes or kind in failed):
            del look.pauses[place]


def _give_up(look: _Look, late: Iterable[OpenBlock]) -> set[Kind]:
    """Pause the nodes of blocks that stood free for too long, and count failures of their kinds.

    A kind of which a job started meanwhile has not failed. Returns kinds whose open blocks all go.
    """
    failed_kinds: set[Kind] = set()
    started = {place[:2] for place in look.takes}
    by_kind: defaultdict[Kind, list[OpenBlock]] = defaultdict(list)
    for block in late:
        by_kind[block.kind].append(block)
        last = look.pauses.get(block.place)
        until = look.now + min(NODE_SECONDS, RETRY_TIMES * block.free_seconds(look.now))
        look.pauses[block.place] = BackOff(*block.place, last.failures + 1 if last else 1, until)
    for kind, alike in by_kind.items():
        row = look.row(kind, float(NEGOTIATION_SECONDS))
        earned = row.earned
        if kind not in started:
            before = look.failures(kind)
            failures = min(max(IN_A_ROW, before + 1), before + len(alike))
            cost = max(block.idle_core_seconds for block in alike)
            pause = BackOff(*kind, ALL_NODES, failures, look.now, cost)
            look.pauses[kind[0], kind[1], ALL_NODES] = pause
            if failures >= IN_A_ROW:
                failed_kinds.add(kind)
                earned /= 2
        look.taken[kind] = replace(row, earned=earned, failed_jobs=look.jobs[kind])
    return failed_kinds


def _most_new(
    look: _Look, staying: Mapping[Target, OpenBlock], waiting: Collection[Kind]
) -> dict[Kind, int]:
    """Blocks of each kind of jobs that wait which may be new."""
    open_blocks: Counter[Kind] = Counter()
    for target, block in staying.items():
        here = look.nodes[target.node]
        due = here.cores_above(target.held_back, target.cap_cores)
        # A target for single cores is for as many as it brings.
        open_blocks[block.kind] += 1 if block.cores > 1 else max(1, due + here.idle_cores)
    started = Counter(place[:2] for place in look.takes)
    for kind, row in look.taken.items():
        if row.lost_core_seconds > look.first_core_seconds / 2:
            most_open = max(1, open_blocks[kind] + EARNED_SLOWLY * started[kind])
            look.taken[kind] = replace(row, earned=min(row.earned, most_open))
    most_new = {
        kind: max(0, min(look.demand(kind), look.earned_blocks(kind)) - open_blocks[kind])
        for kind in waiting
    }
    by_group: defaultdict[str, list[Kind]] = defaultdict(list)
    for kind in sorted(filter(look.is_open, waiting)):
        by_group[kind[0]].append(kind)
    for group, kinds in by_group.items():
        unearned = {
            kind: blocks - look.earned_blocks(kind)
            for kind, blocks in open_blocks.items()
            if kind[0] == group and blocks > look.earned_blocks(kind)
        }
        unserved = {kind: look.demand(kind) - open_blocks[kind] for kind in kinds}
        tries = _first_tries(look, group, unserved, most_new, unearned)
        if group in look.losses and not any(tries[kind] > most_new[kind] for kind in kinds):
            tried = _kind_in_turn(look, (kind for kind in kinds if not open_blocks[kind]))
            if tried is not None:
                tries[tried] += tried_blocks(tried[1])
        most_new.update(tries)
    return most_new


def _first_tries(
    look: _Look,
    group: str,
    unserved: Mapping[Kind, int],
    earned: Mapping[Kind, int],
    unearned: Mapping[Kind, int],
) -> dict[Kind, int]:
    """Blocks of a group that may be new, of its sizes in turn, the cheapest first.

    ``unserved`` jobs wait and have no open block; blocks that it has ``earned`` are not yet open,
    ``unearned`` ones are. One may be new, whatever it costs, if the group has neither a loss nor an
    unearned block.
    """
    blocks = dict(earned)
    loss = look.losses.get(group)
    rest_cores = first_cores(look.pool_cores)
    rest_core_seconds = look.first_core_seconds - (loss.core_seconds if loss else 0.0)
    for kind in unserved:
        cores, core_seconds = look.work.get(kind, (0, 0))
        rest_cores += RUNNING_RATIO * cores
        rest_core_seconds += WORK_RATIO * core_seconds
    for kind, number in unearned.items():
        rest_cores -= number * kind[1]
        rest_core_seconds -= number * look.cost(kind)
    costs = {kind: look.cost(kind) for kind, jobs in unserved.items() if jobs > 0}
    turns: Sequence[Kind] = sorted(costs, key=costs.__getitem__)
    any_cost = not (unearned or loss)
    while turns:
        fitting = []
        for kind in turns:
            fits = kind[1] <= rest_cores and costs[kind] <= rest_core_seconds
            if blocks[kind] < unserved[kind] and (any_cost or fits):
                blocks[kind] += 1
                rest_cores -= kind[1]
                rest_core_seconds -= costs[kind]
                fitting.append(kind)
                any_cost = False
        turns = fitting
    return {kind: blocks[kind] for kind in unserved}


def _kind_in_turn(look: _Look, kinds: Iterable[Kind]) -> Optional[Kind]:
    """Kind of a group with losses that is tried now; None if the time for it has not come.

    Proven kinds come first. Kinds of which jobs took blocks or run, and of which others wait than
    those that failed, take turns with the rest. Among each come first those that had no turn, those
    that failed less often, and the smaller ones.
    """
    kinds = tuple(kinds)
    if not kinds:
        return None
    group = kinds[0][0]
    loss = look.losses[group]
    running = {jobs.cores for jobs in look.snapshot.running if jobs.group == group}
    tried = loss.tried if any(cores not in loss.tried for _, cores in kinds) else ()

    def works(cores: int) -> bool:
        return cores in running or look.row((group, cores)).earned > 0

    after_working = any(map(works, loss.tried[-1:]))

    def rank(kind: Kind) -> tuple[bool, bool, bool, int, int]:
        in_turn = (works(kind[1]) and look.demand(kind) > 0) != after_working
        had_turn = kind[1] in tried
        return not look.proven(kind), not in_turn, had_turn, look.failures(kind), kind[1]

    kind = min(kinds, key=rank)
    pause_seconds = look.cost(kind) * tried_blocks(kind[1]) / allowed_cores(look.pool_cores)
    if look.failures(kind) and look.demand(kind) > 0:
        # Other jobs wait than those that failed.
        pause_seconds = min(pause_seconds, max(OTHER_JOBS_SECONDS, pause_seconds / 4))
    # The first one after a loss does not wait, unless a day does not make up for it.
    since = loss.tried_at or (loss.at if pause_seconds > DAY_SECONDS else 0)
    until = since + int(min(DAY_SECONDS, pause_seconds))
    place = (*kind, ALL_NODES)
    if place in look.pauses:
        look.pauses[place] = replace(look.pauses[place], until=until)
    if look.now < until:
        return None
    look.losses[group] = replace(loss, tried=(*tried, kind[1]), tried_at=look.now)
    return kind
