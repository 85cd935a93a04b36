"""Laws of blocks of cores that stand free: on a made-up pool whose jobs come or do not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sharectl.model import Node, PendingJobs, PlanLimits, RunningJobs, Snapshot, Standing, Target
from sharectl.plan import free_blocks
from sharectl.plan.blocks import ALL_NODES, NO_BLOCKS, BackOff, BlockMemory, Loss, OpenBlock
from sharectl.plan.plan import Decision, PlanConfig, State, decide
from sharectl.plan.settings import IN_A_ROW, GiveUp
from sharectl.plan.waits import nodes_of
from sharectl.times import DAY_SECONDS
from tests.fakes import NOW

CORES, NODES, SIZE = 32, 12, 8
NAMES = tuple(f"wn-{number:02}" for number in range(NODES))
PLEDGES = {"alice": 100.0, "cms": 100.0}
Comes = Callable[[int], bool]
"""Unix seconds -> whether jobs of cms take blocks that stand free."""


@dataclass
class Pool:
    """Nodes that alice fills; what a target keeps from alice goes to cms or stands idle."""

    comes: Comes
    dice: Random
    alice: dict[str, int] = field(default_factory=lambda: dict.fromkeys(NAMES, CORES))
    cms: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in NAMES})
    """Node -> start of each job."""
    waiting: Callable[[int], Mapping[int, int]] = lambda _now: {SIZE: 500}
    """Unix seconds -> size -> waiting jobs of cms."""

    def snapshot(self, now: int) -> Snapshot:
        nodes = tuple(Node(name, name, CORES, 10.0, controlled=True) for name in NAMES)
        held = self.alice.items()
        running = [RunningJobs(name, "alice", 1, 10.0, 600, cores) for name, cores in held if cores]
        for name, starts in self.cms.items():
            running += [RunningJobs(name, "cms", SIZE, 10.0, now - start) for start in starts]
        pending = tuple(PendingJobs("cms", *jobs) for jobs in self.waiting(now).items())
        return Snapshot(now, nodes, tuple(running), pending)

    def pass_on(self, targets: tuple[Target, ...], now: int) -> None:
        """Let time pass: alice falls towards its caps, cms takes free blocks, alice the rest."""
        under = {target.node: target for target in targets}
        for name, held in self.alice.items():
            target = under.get(name)
            used = SIZE * len(self.cms[name])
            if target is None:
                self.alice[name] = CORES - used
                continue
            self.alice[name] = max(min(held, target.cap_cores), held - self.dice.choice((0, 4, 8)))
            if CORES - used - self.alice[name] >= SIZE and self.comes(now):
                self.cms[name].append(now - 1)

    def idle(self, name: str) -> int:
        return CORES - self.alice[name] - SIZE * len(self.cms[name])


def config(strategy: str, give_up_seconds: float) -> PlanConfig:
    give_up = GiveUp(give_up_seconds)
    return PlanConfig(PLEDGES, PlanLimits(), 86_400, strategy=strategy, give_up=give_up)


def cycles(
    how: PlanConfig, pool: Pool, period: int, count: int
) -> Iterator[tuple[int, State, Snapshot, Decision]]:
    """Time of each cycle, what it was handed, what it saw and what it decided."""
    state = State()
    for number in range(count):
        now = NOW + number * period
        seen = pool.snapshot(now)
        decision = decide(how, state, seen, now)
        yield now, state, seen, decision
        state = decision.state
        pool.pass_on(decision.plan.targets, now + period)


strategies = st.sampled_from(("many", "pair"))
periods = st.sampled_from((4, 60, 1020))
patience = st.sampled_from((1.0, 90.0, 1800.0))
seeds = st.integers(0, 2**20)


def never(_now: int) -> bool:
    return False


@given(strategies, periods, patience, seeds)
def test_no_block_stands_free_longer_than_its_time_and_one_cycle(
    strategy: str, period: int, seconds: float, seed: int
) -> None:
    """A block that nobody takes is gone `give_up_seconds` and a cycle after the first look."""
    pool, free_since = Pool(never, Random(seed)), dict[str, int]()
    for now, state, _, _ in cycles(config(strategy, seconds), pool, period, 30):
        under = {stood.target.node for stood in state.standing}
        free = {name for name in under if pool.idle(name) >= SIZE}
        free_since = {name: free_since.get(name, now) for name in free}
        late = [name for name, since in free_since.items() if now - since > seconds + 2 * period]
        assert not late


@given(seeds, st.lists(st.integers(0, 30), min_size=1, max_size=8), periods)
@settings(max_examples=15)
def test_phantoms_cost_no_more_than_the_first_blocks_and_the_allowance(
    seed: int, waiting: list[int], period: int
) -> None:
    """Whatever number of jobs waits when, and of which sizes: nobody takes a block."""
    dice, end = Random(seed), DAY_SECONDS
    period = max(period, 1020)
    pool = Pool(never, dice)
    pool.waiting = lambda now: {
        size: jobs
        for size in (SIZE, 16, CORES)
        if (jobs := waiting[(now // period + size) % len(waiting)]) > 10
    }
    cores, lost, dearest = NODES * CORES, 0.0, 0.0
    for _, state, _, decision in cycles(config("many", 90.0), pool, period, end // period):
        under = {stood.target.node for stood in state.standing}
        now_lost = period * sum(pool.idle(name) for name in under)
        lost, dearest = lost + now_lost, max(dearest, now_lost)
        assert not any(row.earned for row in decision.state.blocks.taken)
    # Of a small pool first blocks may cost more than by its cores.
    by_cores = free_blocks.FIRST_CORE_SECONDS * cores
    first_core_seconds = max(by_cores, free_blocks.LEAST_FIRST_CORE_SECONDS)
    assert lost <= 2 * first_core_seconds + 4 * dearest + 2 * end * free_blocks.allowed_cores(cores)


@given(st.sampled_from((60, 1020)), seeds)
@settings(max_examples=10)
def test_a_kind_that_failed_is_tried_with_one_block_and_its_first_job_ends_that(
    period: int, seed: int
) -> None:
    comes_at = NOW + 40 * period
    pool = Pool(lambda now: now > comes_at, Random(seed))
    failing = False
    for now, state, _, decision in cycles(config("many", 1.0), pool, period, 300):
        rows = [row for row in decision.state.blocks.back_offs if row.node == ALL_NODES]
        stood = {stood.target.node for stood in state.standing}
        if any(row.failures >= IN_A_ROW for row in rows):
            failing = True
            assert len({target.node for target in decision.plan.targets} - stood) <= 1
            assert all(row.until <= now + DAY_SECONDS for row in rows)
        if now > comes_at and any(pool.cms.values()):
            assert not [row for row in decision.state.blocks.back_offs if row.node == ALL_NODES]
            break
    assert failing
    assert any(pool.cms.values()), "no block was tried again"


@given(strategies, periods, seeds)
@settings(max_examples=20)
def test_jobs_that_always_come_are_helped_as_without_limits(
    strategy: str, period: int, seed: int
) -> None:
    """No back-off, and in the end as many jobs as without `give_up`."""
    jobs = []
    for give_up in (GiveUp(90.0), None):
        pool = Pool(lambda _now: True, Random(seed))
        how = replace(config(strategy, 90.0), give_up=give_up)
        rows = [decision.state.blocks.back_offs for *_, decision in cycles(how, pool, period, 60)]
        assert not any(rows)
        jobs.append(sum(map(len, pool.cms.values())))
    assert jobs[0] == jobs[1] > 0


@pytest.mark.parametrize("step", [-100_000, 100_000])
def test_a_clock_that_steps_leaves_nothing_alone_for_longer_than_the_longest_time(
    step: int,
) -> None:
    """Whatever the clock was when a row was made."""
    row = BackOff("cms", SIZE, "wn-1", 1, NOW + 3600)
    memory = BlockMemory(back_offs=(row,), losses=(Loss("cms", NOW, (SIZE,), NOW),), looked_at=NOW)
    seen = Snapshot(NOW + step, (), (), ())
    look = free_blocks.look_at_blocks(memory, (), seen, {}, NOW + step, GiveUp())
    assert all(row.until <= NOW + step + free_blocks.NODE_SECONDS for row in look.memory.back_offs)
    assert bool(look.left_alone) == (step < 0)
    assert [row.tried_at for row in look.memory.losses] == ([NOW + step] if step < 0 else [])


def test_a_node_that_acts_on_no_target_keeps_no_cores_free() -> None:
    """Its cores are idle because nobody wants them."""
    stood = Standing(Target("wn-1", "alice", 0, "cms", SIZE), NOW - 9000)
    for sequence, since in ((0, None), (None, NOW), (NOW, NOW)):
        node = Node("wn-1", "wn-1", CORES, 10.0, controlled=True, obeyed_sequence=sequence)
        seen = Snapshot(NOW, (node,), (), ())
        look = free_blocks.look_at_blocks(
            NO_BLOCKS, [stood], seen, nodes_of(seen), NOW, GiveUp(60.0)
        )
        assert [block.free_since for block in look.memory.open] == [since]


def test_a_kind_of_which_a_job_started_is_left_alone_on_the_node_that_failed_only() -> None:
    """Blocks of two nodes stood free: one for too long, the other was taken."""
    stood = [Standing(Target(name, "alice", 0, "cms", SIZE), NOW - 9000) for name in NAMES[:2]]
    seen = tuple(Node(name, name, CORES, 10.0, controlled=True) for name in NAMES[:2])
    memory = BlockMemory(
        tuple(OpenBlock(name, "cms", SIZE, NOW - 9000, NOW - 900) for name in NAMES[:2])
    )
    for started in (False, True):
        running = (RunningJobs(NAMES[1], "cms", SIZE, 10.0, 60),) if started else ()
        taken = Snapshot(NOW, seen, running, (PendingJobs("cms", SIZE, 9),))
        look = free_blocks.look_at_blocks(memory, stood, taken, nodes_of(taken), NOW, GiveUp(60.0))
        failed = {row.node for row in look.memory.back_offs}
        assert failed == ({NAMES[0]} if started else {*NAMES[:2], ALL_NODES})
