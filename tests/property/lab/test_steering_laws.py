"""Laws of the sharectl loop in the twin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import inf
from random import Random
from typing import Optional

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sharectl.model import PlanLimits, RunningJobs, Snapshot
from sharectl.plan.plan import Decision, PlanConfig, State, decide
from sharectl.plan.records import as_kept
from sharectl.plan.settings import GiveUp
from sharectl.plan.waits import RemainingTimes, observed
from sharectl_lab.twin.look import Looks, unix
from sharectl_lab.twin.pool import SimSlot
from sharectl_lab.twin.run_times import LearntRunTimes
from sharectl_lab.twin.settings import Loop
from sharectl_lab.twin.start import SlotTarget
from sharectl_lab.twin.steering import Steering
from tests.steered import FakeTwin, fill, kind, node, wait

KINDS = (kind("alice"), kind("cms", 8), kind("lhcb"), kind("cms"), kind("nobody", 2))
HELD = (0, 2, 4)
CONFIG = PlanConfig(
    {"alice": 100.0, "cms": 300.0, "lhcb": 100.0}, PlanLimits(), 3060, give_up=GiveUp()
)
SEEDS = st.integers(0, 10_000)


def pool(nodes: int, seed: int, most_seconds: float = 20_000) -> FakeTwin:
    """Full nodes of several powers, and jobs of cms that wait: some of 8 cores, some of one."""
    draw = Random(seed)
    specs = [node(n, (8, 16, 24)[n % 3], (8.0, 10.0, 12.5)[n % 3]) for n in range(nodes)]
    twin = FakeTwin(specs, KINDS)
    fill(twin, draw, HELD, most_seconds)
    wait(twin, 1, 0 if seed % 3 == 1 else 30)
    wait(twin, 3, 0 if seed % 3 == 2 else 40)
    return twin


def single_rows(twin: FakeTwin, snapshot: Snapshot) -> Snapshot:
    """``snapshot`` with a row for each job."""
    now = unix(twin.now)
    rows = [
        RunningJobs(
            each.spec.name,
            claim.group,
            claim.cores,
            each.spec.hs06_per_core,
            max(0, now - unix(claim.started_at)),
            1,
            claim.memory_mib,
        )
        for each in twin.nodes
        for claim in each.claims()
    ]
    return replace(snapshot, running=tuple(rows))


def essence(decision: Decision) -> object:
    """All that a decision is made of, but for mean ages of jobs, which are for people."""
    nodes = [
        replace(record, held=tuple(held._replace(seconds=0) for held in record.held))
        for record in decision.nodes
    ]
    return decision.plan, decision.state, decision.groups, nodes, decision.idle


def start_helped(twin: FakeTwin, decision: Decision, draw: Random, seconds: float) -> None:
    """Let jobs of the helped groups take what is free under targets, one after the other."""

    def start(slot: SimSlot, number: int, _now: float) -> None:
        if KINDS[number].cores <= slot.free_cores:
            twin.start(slot, number, 2000 + draw.random() * 9000)

    twin.closed = {target.node for target in decision.plan.targets}
    for target in decision.plan.targets:
        (slot,) = twin.nodes[int(target.node[3:])].slots
        number = KINDS.index(kind(target.helped, target.request_cores))
        for _ in range(int(draw.random() * 5)):
            twin.at(twin.now + draw.random() * seconds, partial(start, slot, number))


@settings(max_examples=12, deadline=None)
@given(SEEDS, st.sampled_from(["many", "pair"]), st.sampled_from([300, 1020]))
def test_a_look_joins_single_jobs_as_records_do(seed: int, strategy: str, period: int) -> None:
    """Rows of a look, and decisions on them, are those of a row for each job, cycle after cycle."""
    twin, draw = pool(12, seed), Random(seed + 1)
    config, state = replace(CONFIG, strategy=strategy), State()
    looks, learnt = Looks(twin, lambda *_: True), LearntRunTimes(("alice",))
    twin.on_end.append(lambda claim, _: learnt.note_end(claim, unix(claim.started_at)))
    joined_rows = targets = 0
    for cycle in range(1, 8):
        twin.run(cycle * period - draw.random() * 60)
        helped = {stood.target.node: stood.target.helped for stood in state.standing}
        sequences = [state.sequence if one.spec.name in helped else 0 for one in twin.nodes]
        look = looks.take(sequences, helped, learnt.last_at)
        jobs = single_rows(twin, look.snapshot)
        rows = as_kept(jobs, state.standing)
        assert sorted(look.snapshot.running) == sorted(rows.running)
        joined_rows += len(jobs.running) - len(rows.running)
        now, run_times = unix(twin.now), learnt.run_times()
        joined = decide(config, state, look.snapshot, now, run_times)
        assert essence(joined) == essence(decide(config, state, rows, now, run_times))
        learnt.look(now, look.ages, look.new_ages)
        start_helped(twin, joined, draw, period / 2)
        state, targets = joined.state, targets + len(joined.plan.targets)
    assert joined_rows
    assert targets


@pytest.mark.parametrize("seed", range(8))
def test_run_times_are_those_that_the_ledger_observes(seed: int) -> None:
    """What is learnt from sums of ages is what `observed` learns from two looks at every job."""
    twin, draw = pool(6, seed, most_seconds=9000), Random(seed)
    looks, learnt = Looks(twin, lambda *_: True), LearntRunTimes(("alice", "lhcb"))
    twin.on_end.append(lambda claim, _: learnt.note_end(claim, unix(claim.started_at)))
    previous: Optional[Snapshot] = None
    expected = {group: RemainingTimes() for group in ("alice", "lhcb")}
    # On one day, so that all weigh the same.
    twin.run(10_000.0)
    for _ in range(6):
        twin.run(twin.now + 100 + draw.random() * 5000)
        look = looks.take([0] * 6, {}, learnt.last_at)
        learnt.look(look.snapshot.taken_at, look.ages, look.new_ages)
        current = single_rows(twin, look.snapshot)
        if previous is not None:
            for group, table in observed(previous, current).items():
                if group in expected:
                    rows = (*expected[group].as_rows(), *table.as_rows())
                    expected[group] = RemainingTimes.from_rows(rows)
        previous = current
    run_times = learnt.run_times()
    for group, table in expected.items():
        watched, ends = zip(*table.bins)
        got_watched, got_ends = zip(*run_times[group].bins)
        # `observed` may mistake jobs of one node that began within 2 s of each other.
        assert sum(got_ends) == sum(ends) > 30
        assert got_ends == pytest.approx(ends, abs=1)
        assert got_watched == pytest.approx(watched, abs=20)


LOOPS = st.builds(
    Loop,
    period_seconds=st.sampled_from([600.0, 1020.0, 4000.0]),
    job_ctl_seconds=st.sampled_from([30.0, 45.0, 780.0, 1500.0]),
    transport_seconds=st.sampled_from([0.0, 70.0, 2500.0]),
    failing_ratio=st.sampled_from([0.0, 0.4, 0.8]),
    deaf_ratio=st.sampled_from([0.0, 0.5]),
)


def in_force(twin: FakeTwin, name: str) -> Sequence[tuple[float, float, SlotTarget]]:
    """Begin, end and target of each time in which a node has one."""
    acts = [*twin.acts_of("target", name)]
    ends = [act.at for act in acts[1:]] + [twin.now]
    return [
        (act.at, end, act.argument)
        for act, end in zip(acts, ends)
        if isinstance(act.argument, SlotTarget)
    ]


@settings(max_examples=20, deadline=None)
@given(SEEDS, LOOPS, st.sampled_from(["live", "cron"]))
def test_a_target_is_never_in_force_after_its_plan_has_run_out(
    seed: int, loop: Loop, actuation: str
) -> None:
    """Nodes act on targets from a run of job_ctl after the publication, up to their end at most."""
    twin = pool(9, seed)
    steering = Steering(twin, CONFIG, loop, actuation, seed, starts_at=100.0)
    twin.run(20_000.0)
    period = loop.job_ctl_seconds
    for name, job in steering.nodes.items():
        for begin, end, target in in_force(twin, name):
            assert begin < end <= target.until < inf
            assert begin >= target.until - CONFIG.validity_seconds + loop.transport_seconds
            assert (begin - job.phase) / period == pytest.approx(
                round((begin - job.phase) / period)
            )


@settings(max_examples=12, deadline=None)
@given(SEEDS, LOOPS, st.sampled_from(["live", "cron"]))
def test_deaf_nodes_never_get_a_target(seed: int, loop: Loop, actuation: str) -> None:
    """A part of the nodes acts on nothing, and says so."""
    twin = pool(8, seed)
    steering = Steering(twin, CONFIG, replace(loop, deaf_ratio=0.5), actuation, seed)
    twin.run(15_000.0)
    deaf = [name for name, job in steering.nodes.items() if not job.acts]
    assert len(deaf) == 4
    assert not any(twin.acts_of("target", name) for name in deaf)
    assert not any(steering.nodes[name].obeyed_at(twin.now) for name in deaf)
