"""The original plan, by one pair of groups, and the limits of all plans."""

from __future__ import annotations

from typing import Any

import pytest

from sharectl.model import LimitNote, PlanLimits, RunningJobs, Standing, Target
from sharectl.plan.plan import REASONS, PlanConfig, State, decide
from tests.fakes import NOW, running, snapshot

PLEDGES = {"alice": 100.0, "cms": 100.0, "lhcb": 100.0}
FULL = [
    running("wn-1", "alice", 1, 64),
    running("wn-2", "alice", 8, 7),
    running("wn-3", "alice", 1, 64),
]
# alice is 427 HS06 over, cms and lhcb 213 under: two blocks of 80 fit into 213, three do not.
EIGHTS = [running(f"wn-{n}", "alice", 1, 8) for n in range(8)]
SEVENS = [running(f"wn-{n}", "alice", 1, 7) for n in range(9)]
Pending = dict[tuple[str, int], int]


def config(**limits: Any) -> PlanConfig:
    return PlanConfig(PLEDGES, PlanLimits(**limits), validity_seconds=3060, strategy="pair")


def test_the_group_over_its_share_gives_to_the_one_under_it_where_it_holds_most() -> None:
    decided = decide(config(max_nodes=3), State(), snapshot(FULL, {("cms", 8): 100}), NOW).plan
    assert decided.targets == (
        Target("wn-1", "alice", 56, "cms", 8),
        Target("wn-3", "alice", 56, "cms", 8),
        Target("wn-2", "alice", 48, "cms", 8),
    )
    assert (decided.held_back, decided.helped, decided.reason) == ("alice", "cms", "targets")


@pytest.mark.parametrize(
    ("held", "pending", "limits", "nodes", "reason"),
    [
        (FULL, {("cms", 8): 2}, {}, ["wn-1", "wn-3"], "targets"),
        (FULL, {("cms", 8): 9}, {"max_nodes": 1}, ["wn-1"], "targets"),
        (FULL, {}, {}, [], "no-group-under"),
        (FULL, {("cms", 1): 9}, {}, ["wn-1", "wn-3"], "targets"),
        (FULL, {("cms", 4): 3}, {}, ["wn-1", "wn-3"], "targets"),
        (FULL, {("cms", 16): 9}, {}, [], "no-group-under"),
        (FULL, {("cms", 8): 9}, {"deadband_hs06": 2e9}, [], "no-group-over"),
        ([], {("cms", 8): 9}, {}, [], "no-group-over"),
        (SEVENS, {("cms", 8): 9}, {}, [], "no-node"),
        # The error, 53, is less than the 80 HS06 that a node gives.
        (EIGHTS[:1], {("cms", 8): 9}, {"deadband_hs06": 0.0}, [], "error-below-node"),
        (EIGHTS, {("cms", 8): 99}, {}, ["wn-0", "wn-1"], "targets"),
    ],
)
def test_targets_or_a_reason_for_none(
    held: list[RunningJobs], pending: Pending, limits: Any, nodes: list[str], reason: str
) -> None:
    decided = decide(config(**limits), State(), snapshot(held, pending), NOW).plan
    assert ([target.node for target in decided.targets], decided.reason) == (nodes, reason)
    assert reason in REASONS


EVERYWHERE = [running(f"wn-{number}", "alice", 1, 64) for number in range(1, 5)]


def test_a_kept_target_uses_up_a_pending_job_and_its_part_of_the_error() -> None:
    pending, how = {("cms", 8): 2}, config(dwell_seconds=60)
    stood = Standing(Target("wn-4", "alice", 56, "cms", 8), NOW - 5)
    state = State(standing=(stood,), standing_until=NOW + 60)
    decided = decide(how, state, snapshot(EVERYWHERE, pending), NOW).plan
    assert [target.node for target in decided.targets] == ["wn-1", "wn-4"]
    assert decided.limits == (), "it is what the errors call for"
    # Once the group has drained to its cap there, nothing is due any more, and the job that waits
    # gets another node.
    drained = snapshot([*EVERYWHERE[:3], running("wn-4", "alice", 1, 56)], pending)
    decided = decide(how, state, drained, NOW).plan
    assert [target.node for target in decided.targets] == ["wn-1", "wn-2", "wn-4"]
    assert decided.limits == (LimitNote("dwell", 1),), "the errors call for a lower cap"
