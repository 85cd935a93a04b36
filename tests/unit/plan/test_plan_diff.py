from __future__ import annotations

from sharectl.model import Target
from sharectl.plan.diff import Change, plan_diff, power_moved_hs06
from sharectl.plan.records import HeldJobs, NodeRecord


def node(name: str, *held: tuple[str, int, int], idle_core_seconds: float = 0.0) -> NodeRecord:
    rows = tuple(HeldJobs(group, cores, jobs, 60) for group, cores, jobs in held)
    more = {"held": rows, "idle_core_seconds": idle_core_seconds}
    return NodeRecord(name, 64, 10.0, controlled=True, **more)  # type: ignore[arg-type]


OLD = [Target(node, "alice", 56, "cms", 8) for node in "abc"]
NEW = [
    OLD[0],
    *(Target("b", "alice", 48, "cms", 8), Target("d", "alice", 56, "cms", 8)),
    Target("e", "atlas", 0, "cms", 8),
]


def test_changes_are_moves_and_the_rest_node_by_node() -> None:
    diff = plan_diff(OLD, NEW, {}, "many")
    assert [change.kind for change in diff.changes] == ["moved", "altered", "added", "kept"]
    pairs = (OLD[2], NEW[2]), (OLD[1], NEW[1]), (None, NEW[3]), (OLD[0], OLD[0])
    assert diff.changes == tuple(Change(*pair) for pair in pairs)
    assert diff.effect.unknown_nodes == 4


def test_the_effect_is_what_is_still_to_move_and_what_it_costs() -> None:
    nodes = {
        "a": node("a", ("alice", 1, 64), idle_core_seconds=900.0),
        "b": node("b", ("alice", 1, 64), idle_core_seconds=500.0),
        "c": node("c", ("alice", 1, 60)),
        "d": node("d", ("alice", 1, 64), idle_core_seconds=100.0),
        "e": node("e", ("atlas", 8, 1), ("alice", 1, 52), idle_core_seconds=10.0),
    }
    effect = plan_diff(OLD, NEW, nodes, "many").effect
    # alice: 80 more on b, 40 less on c, 80 more on d; atlas: 80 on e; cms: 80 on b, -80 on c (4
    # idle + 4), 80 on d, 80 on e.
    assert effect.power_hs06 == {"alice": -120.0, "atlas": -80.0, "cms": 160.0}
    assert effect.idle_core_seconds == 500 + 100 + 10
    assert plan_diff(OLD, NEW, nodes, "pair").effect.idle_core_seconds is None


def test_only_whole_jobs_gain() -> None:
    target = Target("a", "alice", 54, "cms", 8)
    assert power_moved_hs06(target, node("a", ("alice", 1, 64))) == (100.0, 80.0)
    assert power_moved_hs06(target, node("a", ("alice", 1, 54), ("cms", 1, 8))) == (0.0, 0.0)
