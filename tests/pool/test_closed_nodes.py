"""Nodes that START closes to the jobs to be helped, on a pool where their idle cores look best.

Three nodes are full of alice's single-core jobs. On the three others alice holds half of the cores,
the rest are idle, and the site's health check fails: no job starts there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from poolbox import Box, BoxSpec
from poolbox.spec import equal_nodes
from tests.pool.deployed import held, jobs, on, snippet, still
from tests.pool.sharectl_command import Sharectl

CENTRAL, ACCESS = "cm-1.example.org", "ap-1.example.org"
NODES, NODE_CORES, JOB_CORES = 6, 16, 8
NAMES = tuple(f"wn-{number:03}" for number in range(1, NODES + 1))
OPEN, CLOSED = NAMES[:3], NAMES[3:]
SITE = """
IS_HEALTHY = True
STARTD_ATTRS = $(STARTD_ATTRS) IS_HEALTHY
START = MY.IS_HEALTHY || TARGET.AcctGroup =?= "atlas"
"""
CLAUSE = 'MY.IS_HEALTHY || TARGET.AcctGroup =?= "atlas"'
SPEC = BoxSpec(
    execute_points=equal_nodes(NODES, NODE_CORES, power_hs06=160.0, config=SITE + snippet()),
    access_points=(ACCESS,),
)
GROUPS = {"alice": 100.0, "atlas": 200.0, "cms": 300.0}
"""Group -> pledge, HS06."""


def full(node: str) -> str:
    return f"{node}.example.org"


pytestmark = pytest.mark.semantics


@pytest.fixture
def half_closed(box: Box) -> Box:
    """The pool when alice holds it, and the health check has failed on half of it."""
    for node in CLOSED:
        box.submit(jobs("alice", 1, NODE_CORES - JOB_CORES, 1200, on(full(node))))
    for node in OPEN:
        box.submit(jobs("alice", 1, NODE_CORES, 1200, on(full(node))))
    still(box, 3 * NODE_CORES + 3 * (NODE_CORES - JOB_CORES))
    for node in CLOSED:
        box.write_config(full(node), f"{SITE}IS_HEALTHY = False\n{snippet()}")
        box.reconfig(full(node))
    box.wait_until(lambda: healthy(box) == set(OPEN), "the collector knows who is healthy")
    return box


def healthy(box: Box) -> set[str]:
    shown = ["condor_status", "-constraint", "PartitionableSlot && IS_HEALTHY", "-af", "Machine"]
    return {name.partition(".")[0] for name in box.run(shown).stdout.split()}


def configured(box: Box) -> dict[str, Any]:
    return {
        "groups": {name: {"pledge_hs06": pledge} for name, pledge in GROUPS.items()},
        "publish": [{"file": str(box.shared_directory / "sharectl.txt")}],
    }


def targets(record: dict[str, Any]) -> dict[str, str]:
    """Node -> group that is helped there."""
    return {target["node"]: target["helped"] for target in record["plan"]["targets"]}


def test_targets_go_where_the_helped_jobs_may_start(half_closed: Box, tmp_path: Path) -> None:
    sharectl, configuration = Sharectl(half_closed, tmp_path), configured(half_closed)
    half_closed.submit(jobs("cms", JOB_CORES, 3, 600))
    half_closed.wait_until(
        lambda: len(half_closed.jobs("AutoClusterId >= 0 && JobStatus == 1")) == 3,
        "a negotiator has seen the jobs of cms",
    )
    record = sharectl.json("cycle", **configuration)
    assert targets(record) == dict.fromkeys(OPEN, "cms")
    screen = " ".join(sharectl.run("explain", "node", CLOSED[0], **configuration).stdout.split())
    assert "because closed: its START" in screen
    assert f"closed to jobs of cms of {JOB_CORES} cores: {CLAUSE}" in screen
    assert "the node is open to the waiting jobs" in screen
    # To atlas these nodes are open, and its job starts at once.
    half_closed.submit(jobs("atlas", JOB_CORES, 3, 600))
    atlas = half_closed.wait_until(
        lambda: [node for node in CLOSED if held(half_closed, full(node))["atlas"]],
        "a job of atlas starts where cms may not",
    )
    assert atlas
    # The check recovers: what stood idle there is cms's chance.
    for node in CLOSED:
        half_closed.write_config(full(node), SITE + snippet())
        half_closed.reconfig(full(node))
    half_closed.wait_until(lambda: healthy(half_closed) == set(NAMES), "all are healthy")
    node = sharectl.json("snapshot", **configuration)["nodes"][-1]
    assert (node["name"], node["closed"]) == (CLOSED[-1], [])
