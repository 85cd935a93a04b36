from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Optional

import pytest

from sharectl.config import load
from sharectl.errors import StateError
from sharectl.ledger.ledger import PLACE, Ledger
from sharectl.model import OTHER, PendingJobs
from sharectl.plan.records import HeldJobs, NodeRecord
from sharectl.plan.waits import EDGES_SECONDS, RemainingTimes
from sharectl_lab.scenarios import file, from_pool
from sharectl_lab.scenarios.scenario import NodeGroup
from tests import ledgers

CONFIG = """\
groups:
  alice: {pledge_hs06: 100, groups: {prod: {share: 0.5}, user: {share: 0.25}}}
  cms: {pledge_hs06: 300}
  atlas: {pledge_hs06: 200}
control: {law: pid}
validity_seconds: 600
"""
PLEDGES = {"alice": 100.0, "alice.prod": 50.0, "alice.user": 25.0, "cms": 300.0, "atlas": 200.0}
PENDING = (
    PendingJobs("cms", 8, 20, 16_000),
    PendingJobs("cms", 8, 5, 17_000),
    PendingJobs("cms", 64, 9, placeable=False),
    PendingJobs("alice.prod", 1, 10**6),
)


def _table(rate: float) -> RemainingTimes:
    """Jobs that end at that rate at any age, seen for long."""
    return RemainingTimes(((1e9, 1e9 * rate),) * len(EDGES_SECONDS))


def test_nodes_that_are_alike_are_a_group() -> None:
    node = NodeRecord("a", 32, 10.0, controlled=True, memory_mib=65_536)
    others = replace(node, node="b", hs06_per_core=10.0001), replace(node, node="d", cores=0)
    reserved = replace(node, cores=64, hs06_per_core=12.5, memory_mib=0, reserved=True)
    assert from_pool.node_groups([node, *others, reserved]) == (
        NodeGroup("nodes1", 32, 2, 10.0, 65_536),
        NodeGroup("nodes2", 64, 1, 12.5, controlled=False),
    )


def test_streams_give_the_demand_of_a_cycle() -> None:
    held = {("cms", 8): 24, ("cms", 1): 4, (OTHER, 1): 2, ("alice.prod", 1): 2}
    streams = from_pool.streams_of(PENDING, held, (), {"cms": _table(1 / 7200)})
    rows = [
        (job.group, job.cores, job.keep_pending, job.memory_mib, job.requirements)
        for job in streams
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
    assert streams[4].per_hour == pytest.approx(2, rel=0.01)


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
        [HeldJobs("lhcb", 1, 8, 60, held_mib)],
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


def test_a_ledger_is_a_scenario(tmp_path: Path) -> None:
    ledgers.write(tmp_path, ledgers.law(), [ledgers.busy(number) for number in range(3)])
    config = load.parse(CONFIG, "c")
    scenario = from_pool.from_ledger(config, PLEDGES, Ledger(tmp_path / PLACE))
    pledges = dict(scenario.plan_config().pledge_hs06)
    assert pledges == {"alice.prod": 50.0, "alice.user": 25.0, "cms": 300.0, "atlas": 200.0}
    law = scenario.plan_config().steering.control.law
    assert (law, scenario.validity_seconds) == ("pid", 600)
    assert file.parse(file.render(scenario), "from-config") == scenario
    assert sum(node.count for node in scenario.nodes) == 20
    kept = {(job.group, job.cores): job.keep_pending for job in scenario.jobs if job.keep_pending}
    assert kept == {("alice", 1): 12, ("atlas", 1): 7, ("cms", 8): 40}
    assert [(job.group, job.cores) for job in scenario.jobs if job.per_hour] == [("atlas", 8)]


def test_a_ledger_without_a_cycle_is_refused(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    with pytest.raises(StateError, match="ledger"):
        from_pool.from_ledger(load.parse(CONFIG, "c"), PLEDGES, ledger)
