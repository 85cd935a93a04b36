"""Cores kept free for jobs that cannot take them, on a pool of which alice's short jobs hold all.

cms is far under its pledge and waits with jobs of eight cores: some that no node can run, or more
than the negotiator's quota lets start. Nothing in the ads or in the queue tells of the quota.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import pytest

from poolbox import Box, BoxSpec
from poolbox.demo import pictures
from poolbox.spec import equal_nodes
from tests.pool.conftest import OpenBox
from tests.pool.deployed import SHORT_SECONDS, jobs, snippet
from tests.pool.sharectl_command import Sharectl

CENTRAL, ACCESS = "cm-1.example.org", "ap-1.example.org"
NODES, NODE_CORES, JOB_CORES = 2, 16, 8
POOL_CORES = NODES * NODE_CORES
GIVE_UP_SECONDS = 10.0
NOWHERE = "requirements = TARGET.HasFoo"
QUOTAS = f"""
GROUP_NAMES = alice, cms
GROUP_QUOTA_alice = {POOL_CORES}
GROUP_QUOTA_cms = {{cms}}
GROUP_ACCEPT_SURPLUS = False
"""
Record = dict[str, Any]


@pytest.fixture(scope="module")
def full(open_box: OpenBox) -> Iterator[Box]:
    spec = BoxSpec(
        execute_points=equal_nodes(NODES, NODE_CORES, power_hs06=160.0, config=snippet()),
        access_points=(ACCESS,),
        central_config=QUOTAS.format(cms=POOL_CORES),
    )
    with open_box(spec) as box:
        box.submit(jobs("alice", 1, 3000, SHORT_SECONDS))
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
    """Cycles, one after the other, until something is seen."""

    def __init__(self, box: Box, folder: Path) -> None:
        self.sharectl = Sharectl(box, folder)
        self.configuration: dict[str, Any] = {
            "groups": {"alice": {"pledge_hs06": 100}, "cms": {"pledge_hs06": 300}},
            "control": {"give_up_seconds": GIVE_UP_SECONDS},
            "publish": [{"file": str(box.shared_directory / "sharectl.txt")}],
            "validity_seconds": 60,
            "pool": {"collector_deadline_seconds": 10.0, "schedd_deadline_seconds": 10.0},
        }
        self.helped: set[str] = set()
        """Groups for whose jobs any cycle kept cores."""

    def until(self, seen: Callable[[Record], object]) -> Record:
        """Record of the first cycle of which it is seen."""

        def cycle() -> Record:
            done = self.sharectl.run("cycle", "--json", expect=None, **self.configuration)
            record: Record = json.loads(done.stdout) if done.returncode == 0 else {}
            self.helped |= helped(record) if record else set()
            return record if record and seen(record) else {}

        return self.sharectl.box.wait_until(cycle, "a cycle of which it is seen")


def helped(record: Record) -> set[str]:
    """Groups for whose jobs cores are kept."""
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
    pool.wait_until(
        lambda: cores_of(pool, "alice") >= POOL_CORES - 2 * JOB_CORES - 1, "alice has the rest"
    )
    # The control: by what is pending alone, cores would be kept for them.
    cycles.configuration["pool"]["demand"] = "pending"
    cycles.until(lambda record: "cms" in helped(record))


def test_cores_for_a_group_at_its_quota_are_given_back(pool: Box, tmp_path: Path) -> None:
    """One job starts: a group below its quota may pass it by a job."""
    pool.write_config(CENTRAL, QUOTAS.format(cms=4))
    pool.reconfig(CENTRAL)
    pool.submit(jobs("cms", JOB_CORES, 20, 900))
    cycles = Cycles(pool, tmp_path)
    cycles.until(lambda record: record["plan"]["reason"] == "given-up")
    assert "cms" in cycles.helped
    status = cycles.sharectl.run("status", "--json", expect=None, **cycles.configuration)
    left_alone = json.loads(status.stdout)["blocks"]["left_alone"]
    assert {(row["group"], row["cores"]) for row in left_alone} == {("cms", JOB_CORES)}
    pool.wait_until(
        lambda: cores_of(pool, "alice") >= POOL_CORES - JOB_CORES - 1, "alice has the rest"
    )
    assert cores_of(pool, "cms") <= JOB_CORES
