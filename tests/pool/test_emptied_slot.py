"""Pending jobs are judged by the emptied node, here with simulated GPUs all in use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool.conftest import OpenBox
from tests.pool.deployed import jobs, on, publish, snippet
from tests.pool.sharectl_command import Sharectl

pytestmark = pytest.mark.semantics

PLAIN, POLICY = "wn-001", "wn-002"
DEPLOYED = snippet(
    "use FEATURE : GPUs",
    "GPU_DISCOVERY_EXTRA = -extra -simulate:1,2",
    "CONSUMPTION_GPUS = TARGET.RequestGPUs ?: 0",
    grace_seconds=3600,
)
WITH_POLICY = "SLOT_TYPE_1_CONSUMPTION_POLICY = True\n"
CAPABILITY = "require_gpus = Capability >= 2.0"
WAITING: dict[str, tuple[int, tuple[str, ...]]] = {
    "one core": (1, ()),
    "four cores": (4, ()),
    "one GPU": (1, ("request_gpus = 1", CAPABILITY)),
}
NEVER: dict[str, tuple[int, tuple[str, ...]]] = {
    "nine cores": (9, ()),
    "three GPUs": (1, ("request_gpus = 3",)),
    "other GPUs": (1, ("request_gpus = 1", "require_gpus = Capability >= 9.0")),
}


@pytest.fixture(scope="module")
def box(open_box: OpenBox) -> Iterator[Box]:
    """A held-back group's cap is 0, and a multicore job has every core and every GPU of a node."""
    nodes = {PLAIN: "", POLICY: WITH_POLICY}
    spec = BoxSpec(
        execute_points=tuple(
            ExecutePoint(f"{node}.example.org", 8, config=DEPLOYED + more)
            for node, more in nodes.items()
        ),
        access_points=("ap-1.example.org",),
        groups={"lhcb": 0.5, "cms": 0.5},
    )
    with open_box(spec) as box:
        for node in nodes:
            here = on(f"{node}.example.org")
            box.submit(jobs("lhcb", 8, 1, 900, "request_gpus = 2", CAPABILITY, here))
        full = ["0"] * len(nodes)
        box.wait_until(
            lambda: says(box, "t1_McRoomValue") == full, "startds have seen jobs take all cores"
        )
        publish(box, *(f"{node} lhcb 0 cms 8" for node in nodes))
        acting = ["true"] * len(nodes)
        box.wait_until(lambda: says(box, "t1_TargetActive") == acting, "targets are there")
        yield box


def says(box: Box, name: str) -> list[str]:
    query = ["condor_status", "-constraint", "PartitionableSlot", "-af", name]
    return box.run(query).stdout.split()


@pytest.mark.parametrize("node", [PLAIN, POLICY])
def test_jobs_that_wait_for_the_node_to_empty_are_not_told_never(
    box: Box, tmp_path: Path, node: str
) -> None:
    sharectl, here = Sharectl(box, tmp_path), on(f"{node}.example.org")
    clusters = {
        name: box.submit(jobs("lhcb", cores, 1, 900, *lines, here))
        for name, (cores, lines) in {**WAITING, **NEVER}.items()
    }
    capacity = sharectl.json("consumption", "capacity", "--pending", "--empty")
    fits = {shape["names"][0].split()[1]: shape["claims"] > 0 for shape in capacity["jobs"]}
    assert {name: fits[f"{cluster}.0"] for name, cluster in clusters.items()} == {
        **dict.fromkeys(WAITING, True),
        **dict.fromkeys(NEVER, False),
    }
    empty = {
        name: sharectl.json("explain", "job", f"{cluster}.0")["nodes"]["fitting_if_empty"]
        for name, cluster in clusters.items()
    }
    assert empty == {**dict.fromkeys(WAITING, 1), **dict.fromkeys(NEVER, 0)}
