"""Targets that stand until their work is done, and errors that are worth a block."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sharectl.model import Node, PendingJobs, PlanLimits, RunningJobs, Snapshot, Standing, Target
from sharectl.plan.limits import deadband_hs06
from sharectl.plan.plan import Decision, PlanConfig, State, decide, foreseen_hs06
from tests.fakes import NOW

PLEDGES = {"alice": 100.0, "cms": 100.0}
TARGET = Target("wn-1", "alice", 16, "cms", 8)
STANDS = State(5, standing=(Standing(TARGET, NOW - 900, jobs=1),), standing_until=NOW + 86_400)
OLD, NEW = (RunningJobs("wn-1", "cms", 8, 10.0, seconds) for seconds in (9000, 60))
AWAITED = (PendingJobs("cms", 8, 9),)


def law(**limits: float) -> PlanConfig:
    bounds = PlanLimits(**{"deadband_hs06": 0.0, **limits})  # type: ignore[arg-type]
    return PlanConfig(PLEDGES, bounds, 86_400)


def pool(
    *held: RunningJobs, alice: int = 24, far: int = 500, pending: tuple[PendingJobs, ...] = AWAITED
) -> Snapshot:
    """A node of 40 cores under control, and much of alice's elsewhere."""
    nodes = tuple(Node(name, name, n, 10.0, n == 40) for name, n in (("wn-1", 40), ("far", 640)))
    hers = [
        RunningJobs(name, "alice", 1, 10.0, 900, n) for name, n in (("wn-1", alice), ("far", far))
    ]
    return Snapshot(NOW, nodes, tuple(row for row in (*hers, *held) if row.jobs), pending)


def decided(taken: Snapshot, state: State = STANDS, **limits: float) -> Decision:
    return decide(law(**limits), state, taken, NOW)


def test_a_renewed_block_of_the_group_does_not_end_the_target_of_another() -> None:
    """An older job of its kind ended and the next one began, while 6 of 8 cores were free."""
    renewed = decided(pool(NEW, alice=26))
    assert renewed.state.standing == STANDS.standing
    # Here another target for one block more begins.
    one_more = decided(pool(OLD, NEW))
    assert one_more.state.standing == (Standing(TARGET, NOW, jobs=2),)


def test_a_block_that_single_core_jobs_got_back_counts_again() -> None:
    """Of two jobs there one ended before the target began: the count is that of its begin."""
    state = replace(STANDS, standing=(replace(STANDS.standing[0], jobs=2),))
    assert decided(pool(OLD, NEW), state).plan.targets == (TARGET,)


def test_a_target_stays_while_its_group_lacks_power_though_nobody_is_over() -> None:
    """Cores that are idle for it lower the power in use, and with it the giver's error."""
    lhcb = RunningJobs("far", "lhcb", 1, 10.0, 900, 80)
    taken = pool(OLD, lhcb, alice=18, far=0)
    how = replace(law(), pledge_hs06={**PLEDGES, "lhcb": 300.0})
    decision = decide(how, STANDS, taken, NOW)
    outputs = {control.group: control.output_hs06 for control in decision.groups}
    assert outputs["cms"] < 0
    assert decision.plan.targets == (TARGET,)
    full = replace(taken, running=(*taken.running, RunningJobs("far", "cms", 8, 10.0, 900, 9)))
    assert decide(how, STANDS, full, NOW).plan.targets == ()


@pytest.mark.parametrize(("cms", "targets"), [(14, 1), (18, 0)])
def test_half_a_block_decides(cms: int, targets: int) -> None:
    """Cms lacks (24 - cms) / 2 cores: of 8 that it can get, 5 are enough, and 3 are not."""
    taken = pool(RunningJobs("wn-1", "cms", 1, 10.0, 900, cms), far=0, pending=AWAITED)
    both = replace(taken, pending=(*taken.pending, PendingJobs("cms", 1, 9)))
    targets_of_blocks = [t for t in decided(both, State()).plan.targets if t.request_cores == 8]
    assert len(targets_of_blocks) == targets


def test_power_that_a_group_will_soon_give_up_counts_as_lacking() -> None:
    """Cms is at its share, with single-core jobs of which no more wait; alice's do."""
    own = RunningJobs("wn-1", "cms", 1, 10.0, 3600, 16)
    waiting = (*AWAITED, PendingJobs("alice", 1, 99))
    here = pool(own, alice=24, far=0, pending=waiting)
    share = replace(here, running=(*here.running, RunningJobs("far", "cms", 8, 10.0, 900, 1)))
    (target,) = decided(share, State()).plan.targets
    assert (target.held_back, target.helped, target.request_cores) == ("alice", "cms", 8)
    renewing = replace(share, pending=(*waiting, PendingJobs("cms", 1, 99)))
    assert decided(renewing, State()).plan.targets == ()
    # The only taker has no pledge: it takes nothing.
    assert foreseen_hs06({"alice": 0.0, "cms": 100.0}, share, {}).keys() == {"cms"}


@pytest.mark.parametrize(
    ("limits", "nodes", "hs06"),
    [
        (PlanLimits(), 1, 40.0),
        (PlanLimits(), 8, 40.0),
        (PlanLimits(), 128, 160.0),
        (PlanLimits(multicore_cores=16), 1, 80.0),
        (PlanLimits(deadband_hs06=7.0), 128, 7.0),
        (PlanLimits(), 0, 0.0),
    ],
)
def test_the_deadband_is_half_a_block_and_grows_with_the_root_of_their_number(
    limits: PlanLimits, nodes: int, hs06: float
) -> None:
    pool_nodes = [Node(f"wn-{n}", f"wn-{n}", 64, 10.0, controlled=True) for n in range(nodes)]
    typing_error = Node("wn-x", "wn-x", 10**6, 10.0, controlled=True)
    assert deadband_hs06(limits, [*pool_nodes, typing_error]) == pytest.approx(hs06)
