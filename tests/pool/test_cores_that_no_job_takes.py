"""Cores kept free for jobs that cannot take them, on a pool of which alice's short jobs hold all.

cms is far under its pledge and waits with jobs that no node can run, or that look placeable and
that no slot takes: a trial of pending jobs cannot know that `random(2) > 5` never holds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any, Callable

import pytest

from poolbox import Box, BoxSpec
from poolbox.demo import pictures
from poolbox.spec import equal_nodes
from tests.pool.conftest import OpenBox
from tests.pool.deployed import SHORT_SECONDS, jobs, snippet
from tests.pool.sharectl_command import Sharectl

ACCESS = "ap-1.example.org"
NODES, NODE_CORES, JOB_CORES = 3, 16, 8
POOL_CORES = NODES * NODE_CORES
SIZES = range(2, 13)
NOWHERE, NEVER = "requirements = TARGET.HasFoo", "requirements = random(2) > 5"
FIRST_SECONDS, SECONDS = 30.0, 75.0
"""First blocks are tried until none is taken; then idle cores count."""
MOST_IDLE_CORES = 2.0
Record = dict[str, Any]


@pytest.fixture(scope="module")
def full(open_box: OpenBox) -> Iterator[Box]:
    nodes = equal_nodes(NODES, NODE_CORES, power_hs06=160.0, config=snippet(grace_seconds=10))
    with open_box(BoxSpec(nodes, access_points=(ACCESS,))) as box:
        for _ in range(2):
            box.submit(jobs("alice", 1, 2500, SHORT_SECONDS))
        yield box


@pytest.fixture
def pool(full: Box) -> Box:
    """The pool when alice holds it, and nobody else has jobs."""
    full.run(["condor_rm", "-constraint", 'AcctGroup == "cms"'], host=ACCESS, check=False)
    full.wait_until(lambda: cores_of(full, "alice") >= POOL_CORES - 4, "alice holds the pool")
    return full


def cores_of(box: Box, group: str) -> int:
    return pictures.cores_by_group(pictures.look(box))[group]


class Cycles:
    """Cycles, one after the other, and the cores that stand idle meanwhile."""

    def __init__(self, box: Box, folder: Path) -> None:
        self.box, self.sharectl = box, Sharectl(box, folder)
        self.configuration: dict[str, Any] = {
            "groups": {"alice": {"pledge_hs06": 100}, "cms": {"pledge_hs06": 300}},
            "control": {"give_up_seconds": 8.0},
            "publish": [{"file": str(box.shared_directory / "sharectl.txt")}],
            "validity_seconds": 60,
            "pool": {"collector_deadline_seconds": 20.0, "schedd_deadline_seconds": 20.0},
        }
        self.helped: set[str] = set()
        """Groups for whose jobs any cycle kept cores."""

    def cycle(self) -> Record:
        """Record of one cycle; empty if it was incomplete."""
        done = self.sharectl.run("cycle", "--json", expect=None, **self.configuration)
        record: Record = json.loads(done.stdout) if done.returncode == 0 else {}
        self.helped |= helped(record) if record else set()
        return record

    def until(self, seen: Callable[[Record], object]) -> Record:
        def cycle() -> Record:
            record = self.cycle()
            return record if record and seen(record) else {}

        return self.box.wait_until(cycle, "a cycle of which it is seen")

    def kept_cores(self, seconds: float) -> float:
        """Mean idle cores on nodes with a target or in grace, with a cycle every few seconds."""
        kept, until = [0], time.monotonic() + seconds
        while time.monotonic() < until:
            self.cycle()
            for _ in range(3):
                nodes = [node for node in pictures.look(self.box) if node.target or node.in_grace]
                kept.append(sum(node.idle_cores for node in nodes))
                time.sleep(1)
        return mean(kept)


def helped(record: Record) -> set[str]:
    return {target["helped"] for target in record["plan"]["targets"]}


def test_jobs_that_no_node_can_run_hold_no_cores_idle(pool: Box, tmp_path: Path) -> None:
    pool.submit(jobs("cms", JOB_CORES, 2, 600))
    pool.submit(jobs("cms", JOB_CORES, 2, 600, NOWHERE))
    cycles = Cycles(pool, tmp_path)
    last = cycles.until(lambda record: not record["plan"]["multicore_pending"])
    pool.wait_until(lambda: cores_of(pool, "cms") == 2 * JOB_CORES, "what a node can run runs")
    assert "cms" in cycles.helped
    assert any("no node could run them" in warning for warning in last["warnings"])
    assert "cms" not in helped(cycles.until(lambda _: True))
    rest = POOL_CORES - 2 * JOB_CORES - 1
    pool.wait_until(lambda: cores_of(pool, "alice") >= rest, "alice has the rest")
    # The control: by what is pending alone, cores would be kept for them.
    cycles.configuration["pool"]["demand"] = "pending"
    cycles.until(lambda record: "cms" in helped(record))


def test_many_sizes_that_no_slot_takes_hold_few_cores_idle(pool: Box, tmp_path: Path) -> None:
    cycles = Cycles(pool, tmp_path)
    for size in SIZES:
        pool.submit(jobs("cms", size, 4, 600, NEVER))
    tried = cycles.kept_cores(FIRST_SECONDS)
    cycles.until(lambda record: record["plan"]["reason"] == "given-up")
    kept = cycles.kept_cores(SECONDS)
    print(f"idle cores kept: {tried:.1f} at first, then {kept:.1f}")
    assert tried > 0
    assert kept <= MOST_IDLE_CORES
