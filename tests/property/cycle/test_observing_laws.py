"""Laws of cycles that observe: each is a steering cycle whose last step is not taken."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from sharectl.control.laws import Control
from sharectl.control.steering import SteeringConfig
from sharectl.cycle.cycle import run_cycle
from sharectl.model import Snapshot
from sharectl.plan.blocks import NO_BLOCKS
from sharectl.plan.plan import PlanConfig
from sharectl.plan.records import CycleRecord
from sharectl.plan.settings import GiveUp
from tests.fakes import NOW, FakePool, World, running, snapshot
from tests.ledgers import PERIOD_SECONDS, SOURCES, law

Look = tuple[list[dict[str, int]], int, int]
"""Jobs by group of each node, and waiting jobs of two groups."""
NODE = st.dictionaries(st.sampled_from(("alice", "atlas", "cms")), st.integers(1, 32), max_size=2)
LOOK = st.tuples(st.lists(NODE, min_size=1, max_size=6), st.integers(0, 20), st.integers(0, 20))
LAWS = st.builds(
    lambda name, strategy, most, dwell: replace(
        law(strategy, max_changed_nodes=most, dwell_seconds=dwell),
        steering=SteeringConfig(Control(law=name)),
        give_up=GiveUp(seconds=PERIOD_SECONDS),
    ),
    st.sampled_from(("latest", "ewma", "pid")),
    st.sampled_from(("pair", "many")),
    st.sampled_from((None, 1, 3)),
    st.sampled_from((0, 2000)),
)


def looks(drawn: list[Look]) -> list[Snapshot]:
    taken = []
    for number, (nodes, cms, atlas) in enumerate(drawn):
        held = [
            running(f"cn-{n}", group, 1, 1)._replace(seconds=age, memory_mib=age % 999)
            for n, of_node in enumerate(nodes)
            for group, jobs in of_node.items()
            # Of any age, and some have started since the last look.
            for age in [
                abs(hash((n, job, number))) % 40_000 % (900 * job + 60) for job in range(jobs)
            ]
        ]
        seen = snapshot(
            held, {("cms", 8): cms, ("cms", 1): atlas, ("atlas", 8): atlas}, sources=SOURCES
        )
        # Nodes for multicore jobs alone in one cycle are for all jobs in the next.
        of_node = tuple(
            replace(
                node,
                multicore_only=(index + number) % 2 == 0,
                # Nodes obey, or act on an older target.
                obeyed_sequence=NOW + (number - 1 - index % 2) * PERIOD_SECONDS,
            )
            for index, node in enumerate(seen.nodes)
        )
        taken.append(replace(seen, nodes=of_node, taken_at=NOW + number * PERIOD_SECONDS))
    return taken


def run(config: PlanConfig, seen: list[Snapshot]) -> tuple[World, list[CycleRecord]]:
    """World after a cycle on each look, and their records."""
    world = World(FakePool(seen[0]))
    for taken in seen:
        run_cycle(config, replace(world.ports(), pool=FakePool(taken)), taken.taken_at)
    return world, world.history.records


@settings(max_examples=60)
@given(LAWS, st.lists(LOOK, min_size=1, max_size=6))
def test_observing_comes_to_the_controls_and_targets_of_steering(
    config: PlanConfig, drawn: list[Look]
) -> None:
    """Over the same looks both record the same decisions; one publishes nothing.

    Nodes do not say on which targets they act, and free blocks are not looked at: nobody can be
    blamed for a target that was only planned.
    """
    config = replace(config, give_up=None)
    seen = [
        replace(taken, nodes=tuple(replace(node, obeyed_sequence=None) for node in taken.nodes))
        for taken in looks(drawn)
    ]
    steering, steered = run(config, seen)
    observing, observed = run(replace(config, observes=True), seen)
    for one, other in zip(steered, observed):
        assert one.groups == other.groups
        assert [node.target for node in one.nodes] == [node.target for node in other.nodes]
        assert (one.reason, one.limits) == (other.reason, other.limits)
        assert one.group_reasons == other.group_reasons
    assert len(steered) == len(observed) == len(seen)
    assert observing.publishers[0].plans == []
    assert len(steering.publishers[0].plans) == len(seen)
    assert not any(record.steered_nodes or record.published for record in observed)


@settings(max_examples=60)
@given(LAWS, st.lists(LOOK, min_size=2, max_size=6))
def test_a_target_that_was_only_planned_is_no_failure_of_node_or_jobs(
    config: PlanConfig, drawn: list[Look]
) -> None:
    """With nodes that act on no target no node disobeys, no block stands free or is given up."""
    config = replace(config, observes=True, give_up=GiveUp(60.0), obey_seconds=60)
    seen = [
        replace(taken, nodes=tuple(replace(node, obeyed_sequence=0) for node in taken.nodes))
        for taken in looks(drawn)
    ]
    world, records = run(config, seen)
    blocks = replace(world.state.state.blocks, looked_at=0)
    assert (world.state.state.unheeding, blocks) == ({}, NO_BLOCKS)
    reasons = {node.reason for record in records for node in record.nodes}
    assert not reasons & {"not-obeying", "given-up"}
