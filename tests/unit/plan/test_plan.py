from __future__ import annotations

import pytest

from sharectl.model import PlanLimits, RunningJobs, Target
from sharectl.plan.plan import REASONS, PlanConfig, State, decide, withdrawal
from tests.fakes import NOW, running, snapshot

PLEDGES = {"alice": 100.0, "cms": 100.0, "lhcb": 100.0}
ALICE_EVERYWHERE = [
    running("wn-1", "alice", 1, 64),
    running("wn-2", "alice", 8, 7),
    running("wn-3", "alice", 1, 64),
]


def config(**limits: object) -> PlanConfig:
    return PlanConfig(PLEDGES, PlanLimits(**limits), validity_seconds=3060, strategy="pair")  # type: ignore[arg-type]


def test_the_group_over_its_share_gives_to_the_one_under_it_where_it_holds_most() -> None:
    taken = snapshot(ALICE_EVERYWHERE, {("cms", 8): 100})
    decided = decide(config(max_nodes=3), State(), taken, NOW).plan
    assert decided.targets == (
        Target("wn-1", "alice", 56, "cms", 8),
        Target("wn-3", "alice", 56, "cms", 8),
        Target("wn-2", "alice", 48, "cms", 8),
    )
    assert (decided.held_back, decided.helped, decided.reason) == ("alice", "cms", "targets")


@pytest.mark.parametrize(
    ("name", "held", "pending", "limits", "nodes", "reason"),
    [
        (
            "pending jobs bound it",
            ALICE_EVERYWHERE,
            {("cms", 8): 2},
            {},
            ["wn-1", "wn-3"],
            "targets",
        ),
        (
            "max_nodes bounds it",
            ALICE_EVERYWHERE,
            {("cms", 8): 9},
            {"max_nodes": 1},
            ["wn-1"],
            "targets",
        ),
        ("nobody waits", ALICE_EVERYWHERE, {}, {}, [], "no-group-under"),
        (
            "only single-core jobs wait",
            ALICE_EVERYWHERE,
            {("cms", 1): 9},
            {},
            ["wn-1", "wn-3"],
            "targets",
        ),
        (
            "a smaller size waits",
            ALICE_EVERYWHERE,
            {("cms", 4): 3},
            {},
            ["wn-1", "wn-3"],
            "targets",
        ),
        ("only larger ones wait", ALICE_EVERYWHERE, {("cms", 16): 9}, {}, [], "no-group-under"),
        (
            "that size is configured",
            ALICE_EVERYWHERE,
            {("cms", 4): 1},
            {"multicore_cores": 4},
            ["wn-1"],
            "targets",
        ),
        ("others wait", ALICE_EVERYWHERE, {("other", 8): 9}, {}, [], "no-group-under"),
        (
            "the one over its share waits too",
            ALICE_EVERYWHERE,
            {("alice", 8): 9},
            {},
            [],
            "no-group-under",
        ),
        (
            "errors within the deadband",
            ALICE_EVERYWHERE,
            {("cms", 8): 9},
            {"deadband_hs06": 2e9},
            [],
            "no-group-over",
        ),
        ("an empty pool", [], {("cms", 8): 9}, {}, [], "no-group-over"),
        (
            "blocks of 8 nowhere",
            [running(f"wn-{n}", "alice", 1, 7) for n in range(9)],
            {("cms", 8): 9},
            {},
            [],
            "no-node",
        ),
        (
            # alice holds 8 cores of 10 HS06 each; its error, 53, is less than the 80 that a node
            # gives.
            "an error smaller than a node",
            [running("wn-1", "alice", 1, 8)],
            {("cms", 8): 9},
            {},
            [],
            "error-below-node",
        ),
    ],
)
def test_limits(
    name: str,
    held: list[RunningJobs],
    pending: dict[tuple[str, int], int],
    limits: dict[str, object],
    nodes: list[str],
    reason: str,
) -> None:
    decided = decide(config(**limits), State(), snapshot(held, pending), NOW).plan
    assert ([target.node for target in decided.targets], decided.reason) == (nodes, reason), name
    assert reason in REASONS


@pytest.mark.parametrize(
    ("pending", "size"),
    [
        ({("cms", 1): 400}, 1),
        ({("cms", 1): 400, ("cms", 8): 1}, 8),
        ({("cms", 1): 400, ("cms", 2): 1, ("cms", 4): 1}, 4),
        ({("cms", 1): 400, ("cms", 16): 1}, 1),
    ],
)
def test_the_size_let_in_is_the_largest_that_a_block_holds(
    pending: dict[tuple[str, int], int], size: int
) -> None:
    decided = decide(config(), State(), snapshot(ALICE_EVERYWHERE, pending), NOW).plan
    assert decided.targets[0] == Target("wn-1", "alice", 56, "cms", size)


def test_the_group_furthest_under_is_helped_though_its_jobs_are_single_core() -> None:
    """Figure 1 of the seed: lhcb, with single-core jobs alone, is the furthest under."""
    held = [*ALICE_EVERYWHERE, running("wn-4", "cms", 8, 4)]
    decided = decide(
        config(), State(), snapshot(held, {("cms", 8): 99, ("lhcb", 1): 400}), NOW
    ).plan
    assert (decided.helped, {target.request_cores for target in decided.targets}) == ("lhcb", {1})


def test_no_more_nodes_than_remove_the_smaller_of_the_two_errors() -> None:
    # alice is 427 HS06 over, cms and lhcb 213 under: two blocks of 80 fit into 213, three do not.
    held = [running(f"wn-{n}", "alice", 1, 8) for n in range(8)]
    decided = decide(config(), State(), snapshot(held, {("cms", 8): 99}), NOW).plan
    assert [target.node for target in decided.targets] == ["wn-0", "wn-1"]


def test_a_strong_node_counts_by_its_power() -> None:
    held = [running(f"wn-{n}", "alice", 1, 8, hs06_per_core=20.0) for n in range(8)]
    decided = decide(config(), State(), snapshot(held, {("cms", 8): 99}), NOW).plan
    # Errors double with the power, and so does what each node removes.
    assert len(decided.targets) == 2


def test_nodes_outside_control_get_no_target() -> None:
    taken = snapshot(ALICE_EVERYWHERE, {("cms", 8): 9}, uncontrolled=["wn-1", "wn-2"])
    decided = decide(config(), State(), taken, NOW).plan
    assert [target.node for target in decided.targets] == ["wn-3"]


def test_a_group_that_holds_exactly_one_block_is_capped_at_none() -> None:
    held = [running("wn-1", "alice", 8), *(running(f"wn-{n}", "alice", 1, 4) for n in range(2, 22))]
    decided = decide(config(), State(), snapshot(held, {("cms", 8): 1}), NOW).plan
    assert decided.targets == (Target("wn-1", "alice", 0, "cms", 8),)


def test_the_sequence_rises_even_if_the_state_was_lost() -> None:
    taken = snapshot()
    made = decide(config(), State(), taken, NOW)
    first, state = made.plan, made.state
    made = decide(config(), state, taken, NOW)
    second, state = made.plan, made.state
    after_loss = decide(config(), State(), taken, NOW + 10).plan
    assert first.sequence < second.sequence < after_loss.sequence


def test_a_withdrawal_has_no_target_and_stays_valid() -> None:
    decided, _ = withdrawal(config(), State(), NOW)
    assert decided.targets == ()
    assert decided.valid_until == NOW + 3060
