"""The original plan, by one pair of groups, and the limits of all plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from sharectl.model import LimitNote, PlanLimits, RunningJobs, Standing, Target
from sharectl.plan.limits import LIMITS, limited
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


NODES = tuple(f"wn-{number}" for number in range(1, 9))
OLD, YOUNG = NOW - 5000, NOW - 5
CHANGED, RATIO = "max_changed_nodes", "max_target_ratio"


def targets(*nodes: int, cap: int = 56, held_back: str = "alice") -> list[Target]:
    return [Target(f"wn-{node}", held_back, cap, "cms", 8) for node in nodes]


def standing(since: int, *nodes: int, **others: Any) -> list[Standing]:
    return [Standing(target, since) for target in targets(*nodes, **others)]


def named(found: Sequence[Target]) -> list[str]:
    """Numbers of the nodes, with a ! where the cap is not that of `targets`."""
    marks = {56: ""}
    return [target.node.removeprefix("wn-") + marks.get(target.cap_cores, "!") for target in found]


DWELL, GONE = {"dwell_seconds": 60}, Standing(Target("gone", "alice", 56, "cms", 8), YOUNG)
LEFT = (("gone", "alice"), ("wn-1", "dune"))
DUNE = standing(YOUNG, 1, held_back="dune")


@pytest.mark.parametrize(
    ("before", "wanted", "bounds", "expected", "notes"),
    [
        # Young ones stay, and their caps while the group drains; old ones go.
        (standing(YOUNG, 1), targets(2, 3), DWELL, ["2", "3", "1"], {"dwell": 1}),
        (standing(YOUNG, 1), targets(1, cap=40), DWELL, ["1"], {"dwell": 1}),
        # A node that is gone counts, and goes in any case; so does a group no longer configured,
        # whose node takes another target as the same change, if there is room.
        (
            [GONE, *standing(OLD, 1)],
            targets(1, 2),
            {CHANGED: 1, **DWELL},
            ["1"],
            {"max-changed-nodes": 1},
        ),
        (DUNE, targets(1, 2), {CHANGED: 1, **DWELL}, ["1"], {"max-changed-nodes": 1}),
        # A share that was lowered goes before dwell, the oldest first.
        (
            [*standing(YOUNG - 1, 1), *standing(YOUNG, 2, 3)],
            [],
            {RATIO: 0.25, **DWELL},
            ["2", "3"],
            {"dwell": 3, "max-target-share": 1},
        ),
    ],
)
def test_limits(
    before: list[Standing],
    wanted: list[Target],
    bounds: dict[str, Any],
    expected: list[str],
    notes: dict[str, int],
) -> None:
    staying = [old for old in before if (old.target.node, old.target.held_back) not in LEFT]
    published, acted = limited(before, staying, wanted, PlanLimits(**bounds), NOW, len(NODES))
    assert named(published) == expected
    assert {note.code: note.nodes for note in acted} == notes
    assert set(notes) <= set(LIMITS)


EVERYWHERE = [running(f"wn-{number}", "alice", 1, 64) for number in range(1, 5)]


def stood(node: str, cap: int = 56, since: int = YOUNG) -> State:
    target = Target(node, "alice", cap, "cms", 8)
    return State(standing=(Standing(target, since),), standing_until=NOW + 60)


def test_a_kept_target_uses_up_a_pending_job_and_its_part_of_the_error() -> None:
    pending = {("cms", 8): 2}
    decided = decide(config(**DWELL), stood("wn-4"), snapshot(EVERYWHERE, pending), NOW).plan
    assert [target.node for target in decided.targets] == ["wn-1", "wn-4"]
    assert decided.limits == (), "it is what the errors call for"
    # Once the group has drained to its cap there, nothing is due any more, and the job that waits
    # gets another node.
    drained = snapshot([*EVERYWHERE[:3], running("wn-4", "alice", 1, 56)], pending)
    decided = decide(config(**DWELL), stood("wn-4"), drained, NOW).plan
    assert [target.node for target in decided.targets] == ["wn-1", "wn-2", "wn-4"]
    assert decided.limits == (LimitNote("dwell", 1),), "the errors call for a lower cap"
