"""The whole loop on real daemons: a pool gets to its shares with sharectl alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from poolbox import Box
from poolbox.demo import pictures, scenario, workload
from poolbox.demo.steering import MEASURE, STEER, Cycle, Sharectl
from poolbox.demo.story import Moment, watch
from tests.pool.conftest import OpenBox

OFF_SECONDS = 40.0
ON_SECONDS = 180.0
RATIO = 1 / 3
"""Both errors must come down to this part of what they were without sharectl."""


@pytest.fixture
def pool(open_box: OpenBox, pool_suite: str) -> Iterator[Box]:
    with open_box(scenario.pool_spec(pool_suite)) as box:
        yield box


def test_with_sharectl_both_errors_shrink_and_without_it_they_do_not(
    pool: Box, tmp_path: Path
) -> None:
    sharectl = Sharectl(pool, tmp_path)
    workload.saturate(pool)

    without = list(watch(sharectl, MEASURE, OFF_SECONDS))
    for name in pool.spec.access_points:
        assert pool.jobs("JobStatus == 2", ("ClusterId",), name), f"no job of {name} runs"
    idle = sum(node.idle_cores for moment in without for node in moment.nodes)
    assert idle < 0.1 * scenario.POOL_CORES * len(without), "a pool that is not full shows nothing"
    cycles = [moment.cycle for moment in without if moment.fresh]
    measured = [cycle for cycle in cycles if cycle.measured]
    assert len(measured) > len(cycles) * 2 / 3, [cycle.errors for cycle in cycles]
    start = measured[-1]
    assert start.error_hs06(scenario.HELD_BACK) > scenario.DEADBAND_HS06
    assert start.error_hs06(scenario.HELPED) < -scenario.DEADBAND_HS06
    assert max(map(helped_cores, without)) == 0, "classic fair share got somewhere"

    sharectl.switch(enabled=True)
    seen: list[Moment] = []
    for moment in watch(sharectl, STEER, ON_SECONDS):
        seen.append(moment)
        if got_there(moment, start):
            break
    story = [(round(moment.seen_at), moment.cycle.errors) for moment in seen if moment.fresh]
    assert got_there(seen[-1], start), story
    print(f"from {start.errors}", *story, sep="\n")
    plans = [moment.cycle.record["plan"] for moment in seen if moment.cycle.record]
    targeted = {target["node"] for plan in plans if plan for target in plan["targets"]}
    nodes = [node for moment in seen for node in moment.nodes]
    large_ran_on = {node.name for node in nodes if node.held_cores.get(scenario.HELPED)}
    assert large_ran_on <= targeted, "multicore jobs run where sharectl made room"
    assert len(large_ran_on) > 1
    overshoots = [pictures.overshoots(a.nodes, b.nodes) for a, b in zip(seen, seen[1:])]
    assert [pair for pair in overshoots if pair] == [], "the cap holds at once"


def helped_cores(moment: Moment) -> int:
    return pictures.cores_by_group(moment.nodes)[scenario.HELPED]


def got_there(moment: Moment, start: Cycle) -> bool:
    """True once both errors are markedly smaller, and jobs of the helped group run."""
    if not moment.cycle.measured or helped_cores(moment) < 2 * scenario.MULTICORE_CORES:
        return False
    ratios = [
        moment.cycle.error_hs06(name) / start.error_hs06(name) for name in scenario.PLEDGE_HS06
    ]
    return max(map(abs, ratios)) <= RATIO
