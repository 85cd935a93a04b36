"""Laws of blocks of cores that stand free: on a made-up pool whose jobs come or do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sharectl.model import Node, PendingJobs, PlanLimits, RunningJobs, Snapshot, Standing, Target
from sharectl.plan.free_blocks import (
    ALL_NODES,
    MOST_SECONDS,
    NO_BLOCKS,
    RETRY_TIMES,
    BackOff,
    BlockMemory,
    OpenBlock,
    look_at_blocks,
)
from sharectl.plan.plan import Decision, PlanConfig, State, decide
from sharectl.plan.settings import FEW_CORES, IN_A_ROW, GiveUp
from sharectl.plan.waits import nodes_of
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

    def snapshot(self, now: int) -> Snapshot:
        nodes = tuple(Node(name, name, CORES, 10.0, controlled=True) for name in NAMES)
        running = [
            RunningJobs(name, "alice", 1, 10.0, 600, held)
            for name, held in self.alice.items()
            if held
        ]
        for name, starts in self.cms.items():
            running += [RunningJobs(name, "cms", SIZE, 10.0, now - start) for start in starts]
        return Snapshot(now, nodes, tuple(running), (PendingJobs("cms", SIZE, 500),))

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
    return PlanConfig(
        PLEDGES, PlanLimits(), 86_400, strategy=strategy, give_up=GiveUp(give_up_seconds)
    )


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


def finished(pool: Pool, stood: Standing) -> bool:
    started = any(start >= stood.since for start in pool.cms[stood.target.node])
    return started and pool.alice[stood.target.node] <= stood.target.cap_cores


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


@given(strategies, periods, seeds)
def test_new_blocks_are_at_most_those_that_were_taken_and_a_few(
    strategy: str, period: int, seed: int
) -> None:
    """New targets and free blocks: at most as many as were taken lately, and a few to try."""
    dice = Random(seed)
    pool = Pool(lambda _now: dice.random() < 0.5, Random(seed))
    before: Counter[str] = Counter()
    for _, state, _, decision in cycles(config(strategy, 3 * period), pool, period, 20):
        jobs = Counter({name: len(starts) for name, starts in pool.cms.items()})
        taken = sum((jobs - before).values())
        before = jobs
        stood = {stood.target.node: stood for stood in state.standing}
        targets = {target.node for target in decision.plan.targets}
        free = sum(pool.idle(name) // SIZE for name in targets & set(stood))
        moved = {name for name in set(stood) - targets if not finished(pool, stood[name])}
        assert len(targets - set(stood)) - len(moved) <= max(
            0, GiveUp().probes(NODES * CORES, SIZE) + taken - free
        )


@given(periods, seeds)
@settings(max_examples=20)
def test_the_kind_is_left_alone_twice_as_long_at_each_failure(period: int, seed: int) -> None:
    """Up to `MOST_SECONDS`; between, one block at a time is tried."""
    pool, waits = Pool(never, Random(seed)), dict[int, float]()
    for now, _, _, decision in cycles(config("many", 1.0), pool, period, 150):
        row = next((row for row in decision.state.blocks.back_offs if row.node == ALL_NODES), None)
        if row is None or row.failures < IN_A_ROW:
            continue
        assert now < row.until <= now + MOST_SECONDS or len(decision.plan.targets) <= 1
        assert not decision.plan.targets or now >= row.until
        assert now >= row.until or decision.plan.reason == "given-up"
        waits[row.failures] = row.seconds
    assert len(waits) >= 3
    assert list(waits) == list(range(IN_A_ROW, IN_A_ROW + len(waits)))
    longest = list(waits.values())
    assert longest[0] >= min(MOST_SECONDS, RETRY_TIMES * period)
    assert longest[1:] == [min(MOST_SECONDS, 2 * shorter) for shorter in longest[:-1]]


@given(periods, seeds)
@settings(max_examples=20)
def test_jobs_that_come_again_end_every_back_off_of_their_kind(period: int, seed: int) -> None:
    """Once one block is taken as many may be kept free as before."""
    quota_until = NOW + 40 * period
    pool = Pool(lambda now: now > quota_until, Random(seed))
    seen_failing = False
    for now, _, _, decision in cycles(config("many", 1.0), pool, period, 400):
        rows = [row for row in decision.state.blocks.back_offs if row.node == ALL_NODES]
        seen_failing = seen_failing or any(row.failures >= IN_A_ROW for row in rows)
        if now > quota_until and any(pool.cms.values()):
            assert not rows
            assert not decision.state.blocks.back_offs
            break
    assert seen_failing
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
    row = BackOff("cms", SIZE, "wn-1", 1, 3600.0, NOW + 3600)
    seen = Snapshot(NOW + step, (), (), ())
    look = look_at_blocks(BlockMemory(back_offs=(row,)), (), seen, {}, NOW + step, GiveUp())
    assert all(row.until <= NOW + step + MOST_SECONDS for row in look.memory.back_offs)
    assert bool(look.left_alone) == (step < 0)


def test_few_blocks_are_tried_in_a_small_pool_and_a_hundredth_of_a_large_one() -> None:
    assert GiveUp().probes(48, 8) == FEW_CORES // 8
    assert GiveUp().probes(48, 64) == 1
    assert GiveUp().probes(80_000, 8) == 100
    assert GiveUp(blocks=1).probes(80_000, 8) == 1


def test_a_node_that_acts_on_no_target_keeps_no_cores_free() -> None:
    """Its cores are idle because nobody wants them."""
    stood = Standing(Target("wn-1", "alice", 0, "cms", SIZE), NOW - 9000)
    for sequence, since in ((0, None), (None, NOW), (NOW, NOW)):
        node = Node("wn-1", "wn-1", CORES, 10.0, controlled=True, obeyed_sequence=sequence)
        seen = Snapshot(NOW, (node,), (), ())
        look = look_at_blocks(NO_BLOCKS, [stood], seen, nodes_of(seen), NOW, GiveUp(60.0))
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
        look = look_at_blocks(memory, stood, taken, nodes_of(taken), NOW, GiveUp(60.0))
        failed = {row.node for row in look.memory.back_offs}
        assert failed == ({NAMES[0]} if started else {*NAMES[:2], ALL_NODES})
