"""Blocks of cores that stand free, as plans, records and explanations see them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sharectl.model import (
    ClosedTo,
    LimitNote,
    Node,
    PendingJobs,
    PlanLimits,
    RunningJobs,
    Snapshot,
    Standing,
    Target,
)
from sharectl.plan.blocks import (
    ALL_NODES,
    BackOff,
    BlockMemory,
    IdleCores,
    Loss,
    TakenBlocks,
    expected_wait_seconds,
    idle_cores,
)
from sharectl.plan.plan import Decision, PlanConfig, State, decide, withdrawal
from sharectl.plan.settings import GiveUp
from sharectl.plan.waits import nodes_of
from sharectl.times import DAY_SECONDS
from tests.fakes import NOW

TARGET = Target("wn-1", "alice", 24, "cms", 8)
CMS_20_SECONDS = RunningJobs("wn-1", "cms", 8, 10.0, seconds=20)
CORES = {"wn-1": 32, "far": 640}
PLEDGES = {"alice": 100.0, "cms": 100.0, "lhcb": 100.0}


def law(strategy: str = "many", **limits: Any) -> PlanConfig:
    give_up = GiveUp(600.0)
    return PlanConfig(PLEDGES, PlanLimits(**limits), 86_400, strategy=strategy, give_up=give_up)


def pool(at: int, *more: RunningJobs, waiting: tuple[str, ...] = ("cms",)) -> Snapshot:
    """One node of 32 cores under control, of which alice holds 24; and much of hers elsewhere."""
    nodes = tuple(Node(name, name, n, 10.0, name != "far") for name, n in CORES.items())
    held = (
        RunningJobs(name, "alice", 1, 10.0, 900, n) for name, n in {**CORES, "wn-1": 24}.items()
    )
    pending = tuple(PendingJobs(group, 8, 9) for group in waiting)
    return Snapshot(at, nodes, (*held, *more), pending)


def begun() -> State:
    return State(5, standing=(Standing(TARGET, NOW - 900),), standing_until=NOW + 86_400)


def reason(decision: Decision) -> str:
    return {node.node: node.reason for node in decision.nodes}["wn-1"] or ""


@pytest.mark.parametrize("strategy", ["many", "pair"])
@pytest.mark.parametrize("dwell", [0, 100_000])
def test_a_block_that_no_job_takes_is_given_back_at_its_time_whatever_dwells(
    strategy: str, dwell: int
) -> None:
    how = law(strategy, dwell_seconds=dwell)
    seen = decide(how, begun(), pool(NOW), NOW)
    waits = decide(how, seen.state, pool(NOW + 599), NOW + 599)
    assert [target.node for target in waits.plan.targets] == ["wn-1"]
    gone = decide(how, waits.state, pool(NOW + 600), NOW + 600)
    assert (gone.plan.targets, reason(gone)) == ((), "given-up")
    assert LimitNote("given-up", 1) in gone.plan.limits
    # The node may serve another group meanwhile.
    two = pool(NOW + 600, waiting=("cms", "lhcb"))
    served = decide(replace(how, limits=PlanLimits()), waits.state, two, NOW + 600).plan.targets
    assert [target.helped for target in served] == ["lhcb"] * (strategy == "many")
    # A core may idle for lost blocks here: eight for ten minutes are made up for in 80 minutes, and
    # nothing is known of how long jobs run.
    state, again = gone.state, NOW
    for again in range(NOW + 660, NOW + 9000, 60):
        decision = decide(how, state, pool(again), again)
        if decision.plan.targets:
            break
        state = decision.state
    assert 0 <= again - (NOW + 600 + 8 * 600) <= 300


@pytest.mark.parametrize("cores", [8, 12])
@pytest.mark.parametrize("strategy", ["many", "pair"])
def test_a_job_that_takes_the_block_begins_its_time_again(strategy: str, cores: int) -> None:
    """Also one in a slot with more cores than it requests."""
    seen = decide(law(strategy), begun(), pool(NOW), NOW)
    # It started and eight more cores have come free since.
    job = RunningJobs("wn-1", "cms", cores, 10.0, seconds=100)
    node = Node("wn-1", "wn-1", 32 + cores, 10.0, controlled=True)
    taken = replace(pool(NOW + 700, job), nodes=(node, *pool(NOW).nodes[1:]))
    after = decide(law(strategy), seen.state, taken, NOW + 700)
    assert after.state.blocks.back_offs == ()
    assert [row.free_since for row in after.state.blocks.open] == [NOW + 700]
    (row,) = after.state.blocks.taken
    assert row.wait_seconds == 600.0


@pytest.mark.parametrize(
    ("later", "earned"), [((CMS_20_SECONDS._replace(seconds=80),), [3.0]), ((), [])]
)
def test_a_job_earns_blocks_once_it_has_run_for_a_part_of_what_its_block_cost(
    later: tuple[RunningJobs, ...], earned: list[float]
) -> None:
    state = decide(law(), begun(), pool(NOW), NOW).state
    state = decide(law(), state, pool(NOW + 560), NOW + 560).state
    # Eight cores stood idle for ten minutes: half a minute proves that the job was worth them.
    young = decide(law(), state, pool(NOW + 600, CMS_20_SECONDS), NOW + 600)
    assert [row.earned for row in young.state.blocks.taken] == [0.0]
    after = decide(law(), young.state, pool(NOW + 660, *later), NOW + 660)
    assert [row.earned for row in after.state.blocks.taken if row.earned > 0] == pytest.approx(
        earned
    )
    assert after.state.blocks.new_jobs == ()


@pytest.mark.parametrize(
    ("failures", "seconds"), [(2, 180), (3, 360), (4, 720), (5, 1440), (99, 1440)]
)
def test_a_kind_that_failed_is_tried_for_longer_as_negotiation_cycles_may_be_long(
    failures: int, seconds: int
) -> None:
    how = replace(law(), give_up=GiveUp())
    row = BackOff("cms", 8, ALL_NODES, failures, NOW)
    state = replace(begun(), blocks=BlockMemory(back_offs=(row,)))
    seen = decide(how, state, pool(NOW), NOW)
    waits = decide(how, seen.state, pool(NOW + seconds - 1), NOW + seconds - 1)
    assert [target.node for target in waits.plan.targets] == ["wn-1"]
    gone = decide(how, waits.state, pool(NOW + seconds), NOW + seconds)
    assert (gone.plan.targets, reason(gone)) == ((), "given-up")


def test_patience_follows_the_longest_wait_of_blocks_that_were_taken() -> None:
    for taken, seconds in ((None, 60), (300.0, 300), (1e9, 3600)):
        row = None if taken is None else TakenBlocks("cms", 8, taken)
        assert GiveUp().patience_seconds(expected_wait_seconds(row)) == 120 + seconds
        assert GiveUp(5.0).patience_seconds(expected_wait_seconds(row)) == 5.0


def test_an_idle_core_has_one_cause() -> None:
    stands = begun().standing
    for standing, sequence, grace, expected in (
        (stands, None, 0, IdleCores(8, 0)),
        (stands, 0, 8, IdleCores(0, 8)),
        ((), None, 8, IdleCores(0, 8)),
    ):
        seen = pool(NOW)
        node = replace(seen.nodes[0], obeyed_sequence=sequence, grace_cores=grace)
        seen = replace(seen, nodes=(node, *seen.nodes[1:]))
        assert idle_cores(nodes_of(seen).values(), standing) == expected


def test_a_target_that_ends_with_its_node_or_with_all_targets_is_no_loss() -> None:
    """One that the plan drops is a loss: its cores stood idle for nobody."""
    seen = decide(law(), begun(), pool(NOW), NOW)
    seen = decide(law(), seen.state, pool(NOW + 60), NOW + 60)
    assert seen.state.blocks.open[0].idle_core_seconds == 8 * 60
    later = pool(NOW + 120)
    gone = replace(later, nodes=later.nodes[1:], running=later.running[1:])
    dropped = replace(seen.state, standing=())
    off = withdrawal(law(), seen.state, NOW + 90)[1]
    ran_out = replace(seen.state, standing_until=NOW + 100)
    observed = replace(seen.state, observed=True)
    states = (seen.state, gone), (dropped, later), (off, later), (ran_out, later), (observed, later)
    losses = [decide(law(), state, taken, NOW + 120).state.blocks.losses for state, taken in states]
    assert losses == [(), (Loss("cms", NOW + 120, core_seconds=8 * 60),), (), (), ()]


def test_jobs_that_failed_are_demand_again_once_their_loss_is_forgotten() -> None:
    row = TakenBlocks("cms", 8, 60.0, failed_jobs=9)
    for losses, targets in (((Loss("cms", NOW - 60, (8,), NOW),), 0), ((), 1)):
        state = State(blocks=BlockMemory(taken=(row,), losses=losses, looked_at=NOW - 60))
        assert len(decide(law(), state, pool(NOW), NOW).plan.targets) == targets


def test_single_core_jobs_that_start_elsewhere_show_that_others_can_too() -> None:
    """A queue that is filled up again at once is as long as before; larger jobs need a proof."""
    for cores, seconds, failing in ((1, 30, 9 - 3 * 2), (1, 90, 9), (8, 30, 9)):
        row = TakenBlocks("cms", cores, 60.0, failed_jobs=9)
        loss = Loss("cms", NOW - 60, (cores,), NOW)
        state = State(blocks=BlockMemory(taken=(row,), losses=(loss,), looked_at=NOW - 60))
        seen = pool(NOW, RunningJobs("far", "cms", cores, 10.0, seconds, 2))
        seen = replace(seen, pending=(PendingJobs("cms", cores, 9),))
        (after,) = decide(law(), state, seen, NOW).state.blocks.taken
        assert after.failed_jobs == failing


@pytest.mark.parametrize(
    ("tried", "running", "expected"),
    [((), 8, 8), ((8,), 8, 2), ((8, 2), 8, 8), ((), 1, 2), ((8,), 1, 2), ((8, 2), 1, 3)],
)
def test_a_size_of_which_jobs_run_waits_for_one_other_only(
    tried: tuple[int, ...], running: int, expected: int
) -> None:
    """However many sizes nobody ever ran, and though its own jobs failed."""
    row = TakenBlocks("cms", 8, 60.0, failed_jobs=9)
    loss = Loss("cms", NOW - 60, tried, NOW - DAY_SECONDS, 1e6)
    failed = BackOff("cms", 8, ALL_NODES, 2, NOW - 3600)
    memory = BlockMemory(back_offs=(failed,), taken=(row,), losses=(loss,), looked_at=NOW - 60)
    seen = pool(NOW, RunningJobs("far", "cms", running, 10.0, DAY_SECONDS))
    seen = replace(seen, pending=tuple(PendingJobs("cms", cores, 12) for cores in range(2, 33)))
    (after,) = decide(law(), State(blocks=memory), seen, NOW).state.blocks.losses
    assert after.tried == (*tried, expected)


@pytest.mark.parametrize(
    ("holder", "controlled", "jobs", "earned", "expected"),
    [
        ("cms", True, 1, 0, {16}),  # the small node is theirs already
        ("cms", True, 9, 2, {16}),
        ("alice", False, 9, 0, {16}),
        ("alice", False, 9, 2, {16}),
        ("alice", True, 9, 0, {8}),
        ("alice", True, 1, 2, {8, 16}),  # the small one is earned
    ],
)
def test_a_size_that_gets_no_first_try_leaves_it_to_another(
    holder: str,
    controlled: bool,  # noqa: FBT001 - a parameter
    jobs: int,
    earned: int,
    expected: set[int],
) -> None:
    """Whole-node jobs on nodes of 8 and 16 cores."""
    closed = [(ClosedTo("cms", (cores,), "RequestCpus"),) for cores in (16, 8)]
    nodes = (
        Node("small", "small", 8, 10.0, controlled, closed=closed[0]),
        Node("large", "large", 16, 10.0, controlled=True, closed=closed[1]),
    )
    running = (
        RunningJobs("small", holder, 1, 10.0, 600, 8),
        RunningJobs("large", "alice", 1, 10.0, 600, 16),
    )
    waiting = (PendingJobs("cms", 8, jobs), PendingJobs("cms", 16, 2))
    taken = (TakenBlocks("cms", 8, 60.0, earned=earned),) if earned else ()
    how = PlanConfig({"alice": 1.0, "cms": 999.0}, PlanLimits(), 1200, give_up=GiveUp())
    state = State(blocks=BlockMemory(taken=taken))
    decision = decide(how, state, Snapshot(NOW, nodes, running, waiting), NOW)
    assert {target.request_cores for target in decision.plan.targets} == expected


def test_a_job_that_starts_after_a_step_back_of_the_clock_takes_its_block() -> None:
    seen = decide(law(), begun(), pool(NOW), NOW)
    back = NOW - 5000
    state = decide(law(), seen.state, pool(back), back).state
    job = RunningJobs("wn-1", "cms", 8, 10.0, seconds=100)
    assert decide(law(), state, pool(back + 600, job), back + 600).state.blocks.taken


def test_a_group_that_runs_long_jobs_gets_more_first_blocks() -> None:
    names = tuple(f"wn-{number}" for number in range(40))
    nodes = tuple(Node(name, name, 32, 10.0, controlled=True) for name in names)
    targets = {}
    for seconds in (60, DAY_SECONDS):
        running = [RunningJobs(name, "alice", 1, 10.0, DAY_SECONDS, 24) for name in names]
        running += [RunningJobs(name, "cms", 8, 10.0, seconds) for name in names]
        seen = Snapshot(NOW, nodes, tuple(running), (PendingJobs("cms", 8, 60),))
        how = PlanConfig({"alice": 1.0, "cms": 9.0}, PlanLimits(), 1200, give_up=GiveUp())
        targets[seconds] = len(decide(how, State(), seen, NOW).plan.targets)
    assert 0 < targets[60] < targets[DAY_SECONDS]
