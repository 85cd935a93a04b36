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


@given(TARGETS, TARGETS, PICTURE)
def test_each_node_is_in_one_change_and_the_way_back_is_the_opposite(
    before: list[Target], after: list[Target], nodes: dict[str, NodeRecord]
) -> None:
    """Turned round as many are added as were dropped, and each group loses what it gained.

    All of a plan is kept beside itself, and that moves no power.
    """
    there, back = (
        plan_diff(one, other, nodes, "many") for one, other in ((before, after), (after, before))
    )
    counted = Counter(node for change in there.changes for node in change.nodes)
    assert counted == Counter({target.node for target in (*before, *after)})
    kinds = ("added", "dropped", "moved", "altered", "kept")
    assert set(kinds) == set(KINDS)
    opposite = ("dropped", "added", *kinds[2:])
    assert [there.count(kind) for kind in kinds] == [back.count(kind) for kind in opposite]
    lost = {group: -gain for group, gain in back.power_hs06.items()}
    assert lost == there.power_hs06
    same = plan_diff(before, before, nodes, "many")
    assert (same.count("kept"), set(same.power_hs06.values())) == (len(before), set())
