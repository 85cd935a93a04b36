from __future__ import annotations

from pathlib import Path
from typing import Optional

import pytest

from sharectl.config import load
from sharectl.errors import StateError
from sharectl.ledger.ledger import PLACE, Ledger
from sharectl.model import OTHER, Node, PendingJobs, RunningJobs, Snapshot
from sharectl.plan.waits import EDGES_SECONDS, RemainingTimes, age_bin
from sharectl_lab.scenarios import file, from_pool
from sharectl_lab.scenarios.scenario import NodeGroup
from tests import ledgers

CONFIG = """\
groups:
  alice: {pledge_hs06: 100, groups: {prod: {share: 0.5}, user: {share: 0.25}}}
  cms: {pledge_hs06: 300}
control: {law: pid}
validity_seconds: 600
"""
PLEDGES = {"alice": 100.0, "alice.prod": 50.0, "alice.user": 25.0, "cms": 300.0}


def _node(name: str, cores: int, hs06_per_core: float = 10.0, *, reserved: bool = False) -> Node:
    return Node(
        name,
        name,
        cores,
        hs06_per_core,
        controlled=True,
        memory_mib=cores * 2048,
        reserved=reserved,
    )


SNAPSHOT = Snapshot(
    1000,
    nodes=(_node("a", 32), _node("b", 32), _node("c", 64, 12.5, reserved=True), _node("d", 0)),
    running=(
        RunningJobs("a", "cms", 8, 10, 60, jobs=3),
        RunningJobs("b", "cms", 1, 10, 60, jobs=4),
        RunningJobs("b", OTHER, 1, 10, 60, jobs=2),
        RunningJobs("b", "alice.prod", 1, 10, 60, jobs=2),
    ),
    pending=(
        PendingJobs("cms", 8, 20, 16_000),
        PendingJobs("cms", 8, 5, 17_000),
        PendingJobs("cms", 64, 9, placeable=False),
        PendingJobs("alice.prod", 1, 10**6),
    ),
)


def _table(rate: float) -> RemainingTimes:
    """Jobs that end at that rate at any age, seen for long."""
    return RemainingTimes(((1e9, 1e9 * rate),) * len(EDGES_SECONDS))


def test_a_look_at_the_pool_is_a_scenario() -> None:
    scenario = from_pool.from_snapshot(
        load.parse(CONFIG, "c"), PLEDGES, SNAPSHOT, {"cms": _table(1 / 7200)}
    )
    assert scenario.nodes == (
        NodeGroup("nodes1", 32, 2, 10.0, 65_536),
        NodeGroup("nodes2", 64, 1, 12.5, 131_072, controlled=False),
    )
    rows = [
        (job.group, job.cores, job.keep_pending, job.memory_mib, job.requirements)
        for job in scenario.jobs
    ]
    assert rows == [
        ("alice.prod", 1, 5000, 2000, None),
        ("cms", 8, 20, 16_000, None),
        ("cms", 8, 5, 17_000, None),
        ("cms", 64, 9, 128_000, "false"),
        ("cms", 1, None, 2000, None),
        ("", 1, None, 2000, None),
    ]
    # Four jobs of two hours: two end in an hour.
    assert scenario.jobs[4].per_hour == pytest.approx(2, rel=0.01)
    config = scenario.plan_config()
    assert dict(config.pledge_hs06) == {"alice.prod": 50.0, "alice.user": 25.0, "cms": 300.0}
    assert (config.steering.control.law, scenario.validity_seconds) == ("pid", 600)
    assert file.parse(file.render(scenario), "from-config") == scenario


@pytest.mark.parametrize(
    ("held_mib", "pending", "rows"),
    [
        (64, [(65_536, False)], [(1, None, 65_536), (None, 8, 64)]),
        (64, [(65_536, True)], [(1, None, 65_536), (None, 8, 64)]),
        (65_536, [(64, True)], [(1, None, 64), (None, 8, 65_536)]),
        (128, [(64, True)], [(1, None, 64)]),
        (128, [(64, True), (65_536, True)], [(1, None, 64), (1, None, 65_536)]),
        (128, [(0, True)], [(1, None, 128)]),
        (128, [], [(None, 8, 128)]),
        (0, [(65_536, False)], [(1, None, 65_536), (None, 8, 2000)]),
    ],
)
def test_each_stream_has_the_memory_of_its_jobs(
    held_mib: int,
    pending: list[tuple[int, bool]],
    rows: list[tuple[Optional[int], Optional[int], int]],
) -> None:
    streams = from_pool.streams_of(
        [PendingJobs("lhcb", 1, 1, mib, placeable=fits) for mib, fits in pending],
        {("lhcb", 1): 8},
        [RunningJobs("a", "lhcb", 1, 10, 60, jobs=8, memory_mib=held_mib)],
        {"lhcb": _table(1 / 3600)},
    )
    assert [
        (job.keep_pending, job.per_hour and round(job.per_hour), job.memory_mib) for job in streams
    ] == rows


@pytest.mark.parametrize("mean", [300.0, 7200.0, 86_400.0])
def test_run_times_of_a_life_table_have_its_mean(mean: float) -> None:
    law = from_pool.law_of(_table(1 / mean))
    assert law.mean_seconds == pytest.approx(mean, rel=0.01)
    below = sum(weight for seconds, weight in law.seen.items() if seconds < mean)
    assert below / sum(law.seen.values()) == pytest.approx(0.63, abs=0.1)


def test_jobs_that_end_at_one_age_have_about_that_run_time() -> None:
    bins = [(1e9, 0.0)] * age_bin(3600) + [(1e3, 1e6)] * (len(EDGES_SECONDS) - age_bin(3600))
    law = from_pool.law_of(RemainingTimes(tuple(bins)))
    assert law.mean_seconds == pytest.approx(EDGES_SECONDS[age_bin(3600)], rel=0.01)


def test_a_ledger_is_a_scenario(tmp_path: Path) -> None:
    ledgers.write(tmp_path, ledgers.law(), [ledgers.busy(number) for number in range(3)])
    text = "groups: {alice: {pledge_hs06: 1}, cms: {pledge_hs06: 2}, atlas: {pledge_hs06: 3}}"
    pledges = {"alice": 1.0, "cms": 2.0, "atlas": 3.0}
    scenario = from_pool.from_ledger(load.parse(text, "c"), pledges, Ledger(tmp_path / PLACE))
    assert sum(node.count for node in scenario.nodes) == 20
    kept = {(job.group, job.cores): job.keep_pending for job in scenario.jobs if job.keep_pending}
    assert kept == {("alice", 1): 12, ("atlas", 1): 7, ("cms", 8): 40}
    assert [(job.group, job.cores) for job in scenario.jobs if job.per_hour] == [("atlas", 8)]


def test_a_ledger_without_a_cycle_is_refused(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    with pytest.raises(StateError, match="ledger"):
        from_pool.from_ledger(load.parse(CONFIG, "c"), PLEDGES, ledger)
