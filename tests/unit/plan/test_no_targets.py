"""Why a plan comes to no target."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sharectl.control.steering import SEED, SteeringConfig
from sharectl.model import Node, PendingJobs, PlanLimits, RunningJobs, Snapshot, Standing, Target
from sharectl.plan.plan import NODE_REASONS, REASONS, Decision, PlanConfig, State, decide
from tests.fakes import NOW

STOOD = Target("wn-1", "alice", 8, "cms", 8)


def seen(*pending: PendingJobs, nodes: int = 2, alice: int = 16) -> Snapshot:
    """Nodes of 16 cores and 32768 MiB, full of alice's jobs."""
    names = [f"wn-{n}" for n in range(1, nodes + 1)]
    return Snapshot(
        NOW,
        tuple(Node(name, name, 16, 10.0, controlled=True, memory_mib=32_768) for name in names),
        tuple(RunningJobs(name, "alice", 1, 10.0, 600, alice, 2_048) for name in names),
        pending,
    )


def config(strategy: str = "many", steering: SteeringConfig = SEED, **limits: object) -> PlanConfig:
    bounds = PlanLimits(**limits)  # type: ignore[arg-type]
    return PlanConfig(
        {"alice": 100.0, "cms": 200.0}, bounds, 3060, strategy=strategy, steering=steering
    )


def codes(decision: Decision) -> tuple[str, set[str]]:
    return decision.plan.reason, {node.reason or "" for node in decision.nodes}


@pytest.mark.parametrize(
    ("taken", "plan", "node"),
    [
        (seen(PendingJobs("cms", 8, 5, 40_000)), "no-fit", "no-fit"),
        (seen(PendingJobs("cms", 8, 5, 30_000)), "no-fit", "no-fit"),
        (seen(PendingJobs("cms", 32, 5, 1_000)), "no-fit", "no-fit"),
        (seen(PendingJobs("cms", 32, 5), PendingJobs("cms", 8, 5, 40_000)), "no-fit", "no-fit"),
        (seen(PendingJobs("cms", 8, 5, 2_000), nodes=1, alice=5), "error-below-node", "no-call"),
        (seen(), "no-group-under", "no-call"),
        (seen(PendingJobs("cms", 8, 5), alice=0), "no-group-over", "no-call"),
    ],
)
def test_what_is_too_large_is_told_from_an_error_that_is_too_small(
    taken: Snapshot, plan: str, node: str
) -> None:
    decision = decide(config(deadband_hs06=0.0), State(), taken, NOW)
    assert decision.plan.targets == ()
    assert codes(decision) == (plan, {node})
    assert plan in REASONS
    assert node in NODE_REASONS


def test_no_block_is_not_said_of_one_that_a_young_target_keeps() -> None:
    # atlas waits for other jobs than the standing target is for, and alice holds 16 cores there.
    for strategy in ("many", "pair"):
        how = replace(
            config(strategy, dwell_seconds=3600),
            pledge_hs06={"alice": 9.0, "cms": 9.0, "atlas": 99.0},
        )
        state = State(standing=(Standing(STOOD, NOW - 60),), standing_until=NOW + 60)
        decision = decide(how, state, seen(PendingJobs("atlas", 8, 5, 2_000), nodes=1), NOW)
        assert (decision.plan.targets, codes(decision)) == ((STOOD,), ("no-room", {"dwell"}))


@pytest.mark.parametrize("only", [True, False])
@pytest.mark.parametrize("stands", [True, False])
def test_a_node_for_multicore_jobs_alone_gets_no_target_for_single_core_jobs(
    *, only: bool, stands: bool
) -> None:
    taken = seen(PendingJobs("cms", 1, 50, 1_000))
    nodes = (replace(taken.nodes[0], multicore_only=only), taken.nodes[1])
    stood = (Standing(Target("wn-1", "alice", 8, "cms", 1), NOW - 9000),) if stands else ()
    state = State(sequence=NOW - 900, standing=stood, standing_until=NOW + 900)
    decision = decide(config(), state, replace(taken, nodes=nodes), NOW)
    targets = {target.node: target.request_cores for target in decision.plan.targets}
    assert targets == ({"wn-2": 1} if only else {"wn-1": 1, "wn-2": 1})
    if not stands:
        assert decision.nodes[0].reason == ("multicore-only" if only else "target")
