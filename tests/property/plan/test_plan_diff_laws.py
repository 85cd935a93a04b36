from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from sharectl.model import Target
from sharectl.plan.diff import KINDS, plan_diff
from sharectl.plan.records import HeldJobs, NodeRecord

GROUPS = ("alice", "atlas", "cms")
NODES = tuple(f"cn-{number}" for number in range(6))
TARGETS = st.dictionaries(
    st.sampled_from(NODES),
    st.tuples(
        st.permutations(GROUPS).map(lambda groups: groups[:2]),
        st.integers(0, 2),
        st.sampled_from((2, 8)),
    ),
).map(lambda by_node: [Target(n, g[0], cap, g[1], size) for n, (g, cap, size) in by_node.items()])
PICTURE = st.lists(st.integers(0, 4), min_size=len(NODES), max_size=len(NODES)).map(
    lambda held: {
        node: NodeRecord(node, 8, 10.0, controlled=True, held=(HeldJobs("alice", 1, jobs, 60),))
        for node, jobs in zip(NODES, held)
    }
)


@given(TARGETS, PICTURE)
def test_a_plan_does_not_differ_from_itself(
    targets: list[Target], nodes: dict[str, NodeRecord]
) -> None:
    """All of a plan is kept beside itself, and that moves no power."""
    diff = plan_diff(targets, targets, nodes, dict.fromkeys(nodes, 0.0), "many")
    assert {change.kind for change in diff.changes} <= {"kept"}
    assert not any(diff.effect.power_hs06.values())


@given(TARGETS, TARGETS, PICTURE)
def test_each_node_is_in_one_change(
    before: list[Target], after: list[Target], nodes: dict[str, NodeRecord]
) -> None:
    """Each node that has a target before or after is in exactly one change, of one kind."""
    diff = plan_diff(before, after, nodes, {}, "many")
    counted = Counter(node for change in diff.changes for node in change.nodes)
    assert counted == Counter({target.node for target in (*before, *after)})
    assert {change.kind for change in diff.changes} <= set(KINDS)


@given(TARGETS, TARGETS, PICTURE)
def test_the_way_back_is_the_opposite(
    before: list[Target], after: list[Target], nodes: dict[str, NodeRecord]
) -> None:
    """Turned round as many are added as were dropped, and each group loses what it gained."""
    there, back = (
        plan_diff(before, after, nodes, {}, "many"),
        plan_diff(after, before, nodes, {}, "many"),
    )
    assert there.count("added") == back.count("dropped")
    assert [there.count(kind) for kind in ("moved", "altered", "kept")] == [
        back.count(kind) for kind in ("moved", "altered", "kept")
    ]
    assert {
        group: -gain for group, gain in back.effect.power_hs06.items()
    } == there.effect.power_hs06
