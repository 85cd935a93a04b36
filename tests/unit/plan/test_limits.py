from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from sharectl.model import LimitNote, PlanLimits, Standing, Target
from sharectl.plan.limits import LIMITS, Steerable, limited
from sharectl.plan.plan import REASONS, PlanConfig, State, decide
from tests.fakes import NOW, running, snapshot

NODES = tuple(f"wn-{number}" for number in range(1, 9))
WHERE = Steerable(frozenset(NODES), ("alice", "cms", "lhcb"), len(NODES))
OLD, YOUNG = NOW - 5000, NOW - 5


def targets(*nodes: int, cap: int = 56, held_back: str = "alice") -> list[Target]:
    return [Target(f"wn-{node}", held_back, cap, "cms", 8) for node in nodes]


def standing(since: int, *nodes: int, **others: Any) -> list[Standing]:
    return [Standing(target, since) for target in targets(*nodes, **others)]


def named(found: Sequence[Target]) -> list[str]:
    """Numbers of the nodes, with a ! where the cap is not that of `targets`."""
    return [
        target.node.removeprefix("wn-") + ("!" if target.cap_cores != 56 else "")
        for target in found
    ]


@pytest.mark.parametrize(
    ("name", "before", "wanted", "bounds", "expected", "notes"),
    [
        ("nothing bounds", standing(OLD, 1), targets(2, 3), {}, ["2", "3"], {}),
        (
            "young ones stay",
            standing(YOUNG, 1),
            targets(2, 3),
            {"dwell_seconds": 60},
            ["2", "3", "1"],
            {"dwell": 1},
        ),
        ("old ones go", standing(OLD, 1), targets(2), {"dwell_seconds": 60}, ["2"], {}),
        (
            "a young one's cap stays as it is while the group drains",
            standing(YOUNG, 1),
            targets(1, cap=40),
            {"dwell_seconds": 60},
            ["1"],
            {"dwell": 1},
        ),
        (
            "from the future is young",
            standing(NOW + 9, 1),
            [],
            {"dwell_seconds": 9},
            ["1"],
            {"dwell": 1},
        ),
        (
            "removals first",
            standing(OLD, 1, 2),
            targets(3, 4),
            {"max_changed_nodes": 3},
            ["3"],
            {"max-changed-nodes": 1},
        ),
        (
            "then alterations",
            [*standing(OLD, 1), *standing(OLD, 2, cap=40)],
            targets(3, 2),
            {"max_changed_nodes": 2},
            ["2"],
            {"max-changed-nodes": 1},
        ),
        (
            "a removal that has to wait keeps its target",
            standing(OLD, 1, 2),
            targets(3),
            {"max_changed_nodes": 1},
            ["2"],
            {"max-changed-nodes": 2},
        ),
        (
            "a node that is gone counts, and goes in any case",
            [Standing(Target("gone", "alice", 56, "cms", 8), YOUNG), *standing(OLD, 1)],
            targets(1, 2),
            {"max_changed_nodes": 1, "dwell_seconds": 60},
            ["1"],
            {"max-changed-nodes": 1},
        ),
        (
            (
                "a group that is no longer configured goes, and its node takes another target as "
                "the same change"
            ),
            standing(YOUNG, 1, held_back="dune"),
            targets(1, 2),
            {"max_changed_nodes": 1, "dwell_seconds": 60},
            ["1"],
            {"max-changed-nodes": 1},
        ),
        (
            "such a node takes no other one where there is no room",
            [*standing(OLD, 1, held_back="dune"), *standing(OLD, 2)],
            targets(1),
            {"max_changed_nodes": 1, "max_nodes": 1},
            ["2"],
            {"max-changed-nodes": 2},
        ),
        (
            "a share is rounded down",
            [],
            targets(1, 2, 3, 4),
            {"max_target_ratio": 0.37},
            ["1", "2"],
            {"max-target-share": 2},
        ),
        (
            "a share that was lowered goes before dwell, the oldest first",
            [*standing(YOUNG - 1, 1), *standing(YOUNG, 2, 3)],
            [],
            {"max_target_ratio": 0.25, "dwell_seconds": 60},
            ["2", "3"],
            {"dwell": 3, "max-target-share": 1},
        ),
        (
            "room that was lowered goes before the number of changes",
            standing(OLD, 1, 2, 3),
            targets(1, 2, 3),
            {"max_nodes": 1, "max_changed_nodes": 1},
            ["1"],
            {"max-nodes": 2},
        ),
    ],
)
def test_limits(
    name: str,
    before: list[Standing],
    wanted: list[Target],
    bounds: dict[str, Any],
    expected: list[str],
    notes: dict[str, int],
) -> None:
    found, said = limited(before, wanted, PlanLimits(**bounds), NOW, WHERE)
    assert (named(found), said) == (
        expected,
        tuple(LimitNote(code, nodes) for code, nodes in notes.items()),
    ), name
    assert {note.code for note in said} <= set(LIMITS)


PLEDGES = {"alice": 100.0, "cms": 100.0, "lhcb": 100.0}
EVERYWHERE = [running(f"wn-{number}", "alice", 1, 64) for number in range(1, 5)]


def config(**limits: Any) -> PlanConfig:
    return PlanConfig(PLEDGES, PlanLimits(**limits), validity_seconds=3060, strategy="pair")


def test_a_kept_target_uses_up_a_pending_job_and_its_part_of_the_error() -> None:
    kept = [Standing(Target("wn-4", "alice", 56, "cms", 8), YOUNG)]
    state = State(standing=tuple(kept), standing_until=NOW + 60)
    decided = decide(
        config(dwell_seconds=60), state, snapshot(EVERYWHERE, {("cms", 8): 2}), NOW
    ).plan
    assert [target.node for target in decided.targets] == ["wn-1", "wn-4"]
    assert decided.limits == (), "it is what the errors call for"
    # Once the group has drained to its cap there, nothing is due any more, and the job that waits
    # gets another node.
    drained = [*EVERYWHERE[:3], running("wn-4", "alice", 1, 56)]
    decided = decide(config(dwell_seconds=60), state, snapshot(drained, {("cms", 8): 2}), NOW).plan
    assert [target.node for target in decided.targets] == ["wn-1", "wn-2", "wn-4"]
    assert decided.limits == (LimitNote("dwell", 1),), "the errors call for a lower cap"


def test_a_small_error_that_a_kept_target_already_removes_gets_no_more() -> None:
    # alice is 427 HS06 over, cms and lhcb 213 under: two blocks of 80 fit into 213.
    held = [running(f"wn-{number}", "alice", 1, 8) for number in range(1, 9)]
    kept = [Standing(Target("wn-7", "alice", 0, "cms", 8), YOUNG)]
    state = State(standing=tuple(kept), standing_until=NOW + 60)
    decided = decide(config(dwell_seconds=60), state, snapshot(held, {("cms", 8): 9}), NOW).plan
    assert [target.node for target in decided.targets] == ["wn-1", "wn-7"]


def test_what_ran_out_does_not_stand() -> None:
    stood = (Standing(Target("wn-4", "alice", 56, "cms", 8), YOUNG),)
    state = State(standing=stood, standing_until=NOW)
    made = decide(config(dwell_seconds=60), state, snapshot(EVERYWHERE, {("cms", 8): 4}), NOW)
    decided, after = made.plan, made.state
    assert len(decided.targets) == 4
    assert {each.since for each in after.standing} == {NOW}


def test_dwell_outlives_the_error() -> None:
    stood = (Standing(Target("wn-4", "alice", 56, "cms", 8), YOUNG),)
    state = State(standing=stood, standing_until=NOW + 60)
    decided = decide(config(dwell_seconds=60), state, snapshot(EVERYWHERE), NOW).plan
    assert (decided.targets, decided.reason) == ((stood[0].target,), "no-group-under")
    assert decided.limits == (LimitNote("dwell", 1),)


def test_a_plan_without_room_says_so() -> None:
    decided = decide(
        config(max_target_ratio=0.1), State(), snapshot(EVERYWHERE, {("cms", 8): 4}), NOW
    ).plan
    assert (decided.targets, decided.reason) == ((), "no-room")
    assert decided.reason in REASONS
    assert decided.limits == (LimitNote("max-target-share", 4),)
