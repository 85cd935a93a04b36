from __future__ import annotations

from typing import Any

import pytest

from sharectl_lab.twin.defrag import Defragmenter, drains_at
from sharectl_lab.twin.look import EPOCH
from sharectl_lab.twin.records import NodeSpec, SlotSpec
from sharectl_lab.twin.settings import Defrag
from tests.steered import FakeTwin, kind, node

KINDS = (kind("alice"), kind("cms", 8))
HOUR = EPOCH - EPOCH % 3600


def pool(*jobs: int, cores: int = 16) -> FakeTwin:
    """Nodes with so many single-core jobs each, the first of which are the oldest."""
    twin = FakeTwin([node(number, cores) for number in range(len(jobs))], KINDS)
    for every, count in zip(twin.nodes, jobs):
        for _ in range(count):
            twin.start(every.slots[0], 0)
    return twin


def defragmenter(twin: FakeTwin, **settings: Any) -> Defragmenter:
    knobs = {"machines_per_hour": 6.0, "retirement_seconds": 1e6, **settings}
    return Defragmenter(twin, Defrag(**knobs), seed=1, starts_at=twin.now)


def drained(twin: FakeTwin) -> list[str]:
    return [act.node for act in twin.acts_of("drain")]


@pytest.mark.parametrize(
    ("now", "last", "interval", "per_hour", "drains"),
    [
        # HEP-Puppet's and Quattor's recipes.
        (HOUR + 1200, HOUR + 600, 600, 60.0, 10),
        (HOUR + 1200, HOUR + 600, 600, 30.0, 5),
        # One an hour: at the first poll of each hour, not at the first of all.
        (HOUR + 1200, HOUR + 600, 600, 1.0, 0),
        (HOUR + 3900, HOUR + 3300, 600, 1.0, 1),
        (HOUR, None, 600, 1.0, 0),
        # Seven an hour: one at each poll, and another at the first of an hour.
        (HOUR + 3610, HOUR + 3010, 600, 7.0, 2),
        # A quarter of one an hour: six a day, as many as the rest of the day is long.
        (EPOCH - EPOCH % 86400 + 43200 + 600, EPOCH - EPOCH % 86400 - 600, 600, 0.25, 3),
        # The daemon drains nothing with a longer interval, or without a rate.
        (HOUR, None, 3601, 60.0, 0),
        (HOUR, None, 600, 0.0, 0),
    ],
)
def test_machines_an_hour_are_spread_over_polls(
    now: int, last: int, interval: int, per_hour: float, drains: int
) -> None:
    assert drains_at(now, last, interval, per_hour) == drains


def test_a_drain_ends_at_the_poll_that_finds_the_node_whole_or_when_it_is_empty() -> None:
    twin = pool(16)
    defragmenter(twin, whole_cores=8)
    twin.run(10.0)
    assert (drained(twin), twin.counts["drained_nodes"]) == (["wn-0"], 1)
    for claim in twin.nodes[0].claims()[:8]:
        twin.end(claim)
    twin.run(599.0)
    assert not twin.acts_of("resume")
    twin.run(600.0)
    assert [act.at for act in twin.acts_of("resume")] == [600.0]
    assert drained(twin) == ["wn-0"]

    twin = pool(16)
    defragmenter(twin)
    twin.run(10.0)
    for claim in twin.nodes[0].claims():
        twin.end(claim)
    twin.run(11.0)
    assert [act.at for act in twin.acts_of("resume")] == [10.0]
    assert not twin.acts_of("evict")


def test_limits_of_drains_at_once_and_of_whole_machines() -> None:
    twin = pool(16, 16, 16, 16)
    defragmenter(twin, machines_per_hour=6.0, max_concurrent=2)
    twin.run(4000.0)
    assert len(drained(twin)) == 2
    twin = pool(16, 16, 4, 4)
    defragmenter(twin, whole_cores=8, max_whole=2)
    twin.run(4000.0)
    assert not drained(twin)
    twin = pool(16, 16, 4, 4)
    defragmenter(twin, whole_cores=8, max_whole=3)
    twin.run(4000.0)
    assert sorted(drained(twin)) == ["wn-0", "wn-1"]


def test_the_rank_chooses_the_node() -> None:
    # Least work lost: age and the retirement that is left, of all cores.
    twin = pool(16, 3, 9)
    defragmenter(twin, retirement_seconds=0.0)
    twin.run(1.0)
    assert drained(twin) == ["wn-1"]
    # By the recipe 15 with seven free cores, 2 with none and 3 with four.
    twin = pool(9, 16, 12)
    defragmenter(twin, rank="cores-to-free", whole_cores=8)
    twin.run(1.0)
    assert drained(twin) == ["wn-0"]


def test_published_badput_is_bounded_so_that_a_long_retirement_makes_all_nodes_alike() -> None:
    first = set()
    for seed in range(20):
        twin = pool(16, 3, 9)
        Defragmenter(twin, Defrag(machines_per_hour=6.0, retirement_seconds=1e9), seed)
        twin.run(1.0)
        first.update(drained(twin))
    assert first == {"wn-0", "wn-1", "wn-2"}


@pytest.mark.parametrize(
    ("settings", "evictions"),
    [
        ({"retirement_seconds": 0.0}, [1000.0, 1000.0]),
        ({"retirement_seconds": 1000.0}, [1000.0, 1300.0]),
        ({"retirement_seconds": 5000.0}, [4400.0, 5300.0]),
    ],
)
def test_jobs_are_evicted_when_their_retirement_is_over(
    settings: dict[str, Any], evictions: list[float]
) -> None:
    """Each by its own age, and MachineMaxVacateTime before the end."""
    twin = pool(1)
    twin.run(900.0)
    twin.start(twin.nodes[0].slots[0], 1)
    twin.run(1000.0)
    defragmenter(twin, interval_seconds=3600.0, **settings)
    twin.run(9000.0)
    assert [act.at for act in twin.acts_of("evict")] == evictions
    assert twin.acts_of("resume")[0].at == evictions[-1]


def test_jobs_of_a_drain_that_was_cancelled_are_not_evicted() -> None:
    twin = pool(16)
    defragmenter(twin, whole_cores=8, retirement_seconds=2000.0)
    twin.run(10.0)
    for claim in twin.nodes[0].claims()[:8]:
        twin.end(claim)
    twin.run(5000.0)
    assert not twin.acts_of("evict")


def test_multicore_nodes_and_whole_nodes_are_no_candidates() -> None:
    specs = [node(0, multicore_only=True), node(1), NodeSpec("wn-2", (SlotSpec(8, 1),) * 2, 10.0)]
    twin = FakeTwin(specs, KINDS)
    twin.start(twin.nodes[0].slots[0], 1)
    defragmenter(twin)
    twin.run(9000.0)
    assert not drained(twin)
