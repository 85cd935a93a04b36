"""Laws of cycles that observe: each is a steering cycle whose last step is not taken."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from sharectl.cycle.cycle import run_cycle
from sharectl.model import Snapshot
from sharectl.plan.blocks import NO_BLOCKS
from sharectl.plan.plan import PlanConfig
from sharectl.plan.records import CycleRecord
from sharectl.plan.settings import GiveUp
from tests.fakes import FakePool, World
from tests.property.explain.test_codes_of_decisions import LAWS, LOOK, Look, looks


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
