from __future__ import annotations

from math import fsum

from hypothesis import given
from hypothesis import strategies as st

from sharectl_lab.scenarios.strategies import with_static
from sharectl_lab.twin.records import NodeSpec, SlotSpec

NODES = st.lists(
    st.builds(
        lambda cores, hs06: NodeSpec("wn", (SlotSpec(cores, 2000 * cores),), hs06),
        st.integers(1, 128),
        st.floats(1, 30),
    ),
    min_size=1,
    max_size=60,
)


@given(NODES, st.floats(0, 1))
def test_any_first_nodes_have_their_part_of_static_power(
    nodes: list[NodeSpec], ratio: float
) -> None:
    """Static power is the ratio of the power of the first n nodes, to within half a node."""
    chosen = with_static(nodes, ratio)
    powers = [node.cores * node.hs06_per_core for node in nodes]
    half = max(powers) / 2 * (1 + 1e-9)
    for count in range(1, len(nodes) + 1):
        static = fsum(power for node, power in zip(chosen[:count], powers) if node.multicore_only)
        assert abs(static - ratio * fsum(powers[:count])) <= half
    assert {node.multicore_only for node in with_static(nodes, 0)} == {False}
    assert {node.multicore_only for node in with_static(nodes, 1)} == {True}
