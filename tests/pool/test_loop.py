"""The whole loop on real daemons: a pool gets to its shares with sharectl alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from poolbox import Box
from poolbox.demo import pictures, scenario, workload
from poolbox.demo.pictures import NodePicture
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
    assert both_schedds_run_jobs(pool)
    idle = sum(node.idle_cores for moment in without for node in moment.nodes)
    assert idle < 0.1 * scenario.POOL_CORES * len(without), "a pool that is not full shows nothing"
    cycles = [moment.cycle for moment in without if moment.fresh]
    unseen = [cycle.errors for cycle in cycles if not cycle.measured]
    assert len(unseen) < len(cycles) / 3, unseen
    start = next(cycle for cycle in reversed(cycles) if cycle.measured)
    assert start.error_hs06(scenario.HELD_BACK) > scenario.DEADBAND_HS06
    assert start.error_hs06(scenario.HELPED) < -scenario.DEADBAND_HS06
    assert [moment for moment in without if got_there(moment, start)] == []
    assert max(held(moment.nodes, scenario.HELPED) for moment in without) == 0, (
        "classic fair share got somewhere"
    )

    sharectl.switch(enabled=True)
    seen: list[Moment] = []
    for moment in watch(sharectl, STEER, ON_SECONDS):
        seen.append(moment)
        if got_there(moment, start):
            break
    assert got_there(seen[-1], start), story_of(seen)
    print(
        f"errors {errors_of(start)} became {errors_of(seen[-1].cycle)} in "
        f"{seen[-1].seen_at - seen[0].seen_at:.0f} s"
    )
    assert large_jobs_ran_on(seen) <= targeted(seen), "multicore jobs run where sharectl made room"
    assert len(large_jobs_ran_on(seen)) > 1
    overshoots = [
        found
        for before, after in zip(seen, seen[1:])
        for found in pictures.overshoots(before.nodes, after.nodes)
    ]
    assert not overshoots, "the cap holds at once, whatever the age of the cron's figures"


def got_there(moment: Moment, start: Cycle) -> bool:
    """True once both errors are markedly smaller, and jobs of the helped group run."""
    if not moment.cycle.measured:
        return False
    ratios = [
        abs(moment.cycle.error_hs06(group) / start.error_hs06(group))
        for group in scenario.PLEDGE_HS06
    ]
    large = held(moment.nodes, scenario.HELPED) >= 2 * scenario.MULTICORE_CORES
    return large and max(ratios) <= RATIO


def errors_of(cycle: Cycle) -> dict[str, int]:
    return {group: round(cycle.error_hs06(group)) for group in scenario.PLEDGE_HS06}


def held(nodes: tuple[NodePicture, ...], group: str) -> int:
    return pictures.cores_by_group(nodes)[group]


def large_jobs_ran_on(seen: list[Moment]) -> set[str]:
    return {
        node.name
        for moment in seen
        for node in moment.nodes
        if node.held_cores.get(scenario.HELPED)
    }


def targeted(seen: list[Moment]) -> set[str]:
    plans = [moment.cycle.record["plan"] for moment in seen if moment.cycle.record]
    return {target["node"] for plan in plans if plan for target in plan["targets"]}


def both_schedds_run_jobs(box: Box) -> bool:
    running = [
        name for name in box.spec.access_points if box.jobs("JobStatus == 2", ("ClusterId",), name)
    ]
    return running == [*box.spec.access_points]


def story_of(seen: list[Moment]) -> str:
    return "\n".join(
        f"{moment.seen_at:.0f} {moment.cycle.exit_code} {moment.cycle.errors} {moment.nodes}"
        for moment in seen
        if moment.fresh
    )
