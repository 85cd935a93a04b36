"""Order in which nodes are filled, with and without consumption policies; a licence."""

from __future__ import annotations

import pytest

from poolbox import Box, BoxSpec
from tests.pool import deployed
from tests.pool.deployed import CONSUMPTION_POLICY, cycles
from tests.pool.slot_practice import (
    ACCESS,
    advertised_free_cores,
    example,
    nodes,
    places,
    restart,
    started,
    submit,
)

pytestmark = pytest.mark.semantics

CORES, NODES = 4, 3
LICENCES = 2
DEPTH, BREADTH = "70-fill-depth-first.conf", "70-fill-breadth-first.conf"
SPEC = BoxSpec.of_equal_nodes(NODES, cores=CORES, access_points=(ACCESS,))


def configure(box: Box, text: str) -> None:
    for host in (box.spec.central_point, ACCESS):
        deployed.configure(box, host, text)


def free(box: Box) -> None:
    box.remove_jobs()
    box.wait_until(lambda: advertised_free_cores(box) == NODES * CORES, "all cores are free")


def burst(box: Box, count: int) -> list[int]:
    """Jobs on each node that has any, largest first, of so many that came together."""
    free(box)
    cluster = submit(box, count)
    started(box, cluster, count)
    return sorted(nodes(box, cluster).values(), reverse=True)


def one_by_one(box: Box, count: int) -> list[int]:
    """The same of jobs that came when the one before ran, and the collector knew it."""
    free(box)
    clusters = []
    for number in range(1, count + 1):
        clusters.append(submit(box, 1))
        box.wait_until(lambda: advertised_free_cores(box) == NODES * CORES - number, "it runs")  # noqa: B023
    box.wait_until(lambda: all(places(box, cluster) for cluster in clusters), "the queue knows")
    on = [next(iter(nodes(box, cluster))) for cluster in clusters]
    return sorted((on.count(node) for node in set(on)), reverse=True)


def test_one_node_is_filled_before_the_next(box: Box) -> None:
    configure(box, example(DEPTH))
    assert burst(box, CORES) == [CORES]
    assert one_by_one(box, 2) == [2]
    # HTCondor's defaults do so only for jobs that come one by one.
    configure(box, "# defaults\n")
    assert len(burst(box, CORES)) > 1


def test_jobs_are_spread_over_the_nodes(box: Box) -> None:
    configure(box, example(BREADTH))
    assert burst(box, 2 * NODES) == [2] * NODES
    assert one_by_one(box, NODES) == [1] * NODES
    # The manual's recipe, without a rank, does so only for jobs that come together.
    configure(box, "CLAIM_PARTITIONABLE_LEFTOVERS = False\n")
    assert one_by_one(box, 2) == [2]


def test_a_licence_of_the_pool_is_counted_in_leftovers_too(box: Box) -> None:
    free(box)
    configure(box, example("70-licences-of-the-pool.conf"))
    licensed = submit(box, 2 * LICENCES, "concurrency_limits = licence")
    started(box, licensed, LICENCES)
    before = cycles(box)
    box.wait_until(lambda: cycles(box) > before + 2, "the others were looked at again")
    assert len(places(box, licensed)) == LICENCES


def test_with_consumption_policies_the_order_needs_another_switch(box: Box) -> None:
    """Within a cycle cached ranks are those of the untouched slots, and turn the order round."""
    for node in box.spec.execute_points:
        box.write_config(node.name, CONSUMPTION_POLICY)
        restart(box, node.name)
    knobs = "CLAIM_PARTITIONABLE_LEFTOVERS NEGOTIATOR_DEPTH_FIRST NEGOTIATOR_MATCHLIST_CACHING"
    uncached = "".join(f"{knob} = False\n" for knob in knobs.split())
    free(box)
    configure(box, example(BREADTH))
    assert burst(box, 2 * NODES) == [CORES, 2]
    configure(box, example(BREADTH) + uncached)
    assert burst(box, 2 * NODES) == [2] * NODES
    configure(box, example(DEPTH) + uncached)
    assert burst(box, 2 * NODES) == [CORES, 2]
