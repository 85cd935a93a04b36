"""Pending jobs are judged by the emptied node, here one with simulated GPUs all in use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool.conftest import OpenBox
from tests.pool.deployed import jobs, snippet
from tests.pool.sharectl_command import Sharectl

pytestmark = pytest.mark.semantics

NODE, ACCESS = "wn-001.example.org", "ap-1.example.org"
DEPLOYED = snippet(
    "use FEATURE : GPUs",
    "GPU_DISCOVERY_EXTRA = -extra -simulate:1,2",
    "CONSUMPTION_GPUS = TARGET.RequestGPUs ?: 0",
    grace_seconds=3600,
)
WITH_POLICY = "SLOT_TYPE_1_CONSUMPTION_POLICY = True\n"
CAPABILITY = "require_gpus = Capability >= 2.0"
WAITING = {
    "one core": (1, ""),
    "four cores": (4, ""),
    "one GPU": (1, f"request_gpus = 1\n{CAPABILITY}"),
}
NEVER = {
    "nine cores": (9, ""),
    "three GPUs": (1, "request_gpus = 3"),
    "other GPUs": (1, "request_gpus = 1\nrequire_gpus = Capability >= 9.0"),
}


@pytest.fixture(scope="module", params=["", WITH_POLICY], ids=["plain", "policy"])
def box(open_box: OpenBox, request: pytest.FixtureRequest) -> Iterator[Box]:
    """A held-back group's cap is 0, and a multicore job has every core and every GPU."""
    spec = BoxSpec(
        execute_points=(ExecutePoint(NODE, 8, config=DEPLOYED + request.param),),
        access_points=(ACCESS,),
        groups={"lhcb": 0.5, "cms": 0.5},
    )
    with open_box(spec) as box:
        box.submit(jobs("lhcb", 8, 1, 900, f"request_gpus = 2\n{CAPABILITY}"), ACCESS)
        box.wait_until(
            lambda: says(box, "t1_McRoomValue") == "0",
            60,
            "the startd has seen the job take all cores",
        )
        (box.shared_directory / "sharectl.txt").write_text("wn-001 lhcb 0 cms 8\n")
        box.wait_until(lambda: says(box, "t1_TargetActive") == "true", 60, "the target is there")
        yield box


def says(box: Box, name: str) -> str:
    return box.run(
        ["condor_status", "-constraint", "PartitionableSlot", "-af", name]
    ).stdout.strip()


def test_jobs_that_wait_for_the_node_to_empty_are_not_told_never(box: Box, tmp_path: Path) -> None:
    sharectl = Sharectl(box, tmp_path, imported=True)
    clusters = {
        name: box.submit(jobs("lhcb", cores, 1, 900, *lines), ACCESS)
        for name, (cores, *lines) in {**WAITING, **NEVER}.items()
    }
    capacity = sharectl.json("consumption", "capacity", "--pending")
    fits = {shape["names"][0].split()[1]: shape["fits_empty_slot"] for shape in capacity["jobs"]}
    assert {name: fits[f"{cluster}.0"] for name, cluster in clusters.items()} == {
        **dict.fromkeys(WAITING, True),
        **dict.fromkeys(NEVER, False),
    }
    empty = {
        name: sharectl.json("explain", "job", f"{cluster}.0")["nodes"]["fitting_if_empty"]
        for name, cluster in clusters.items()
    }
    assert empty == {**dict.fromkeys(WAITING, 1), **dict.fromkeys(NEVER, 0)}
    assert (
        "never"
        not in sharectl.run(
            "consumption", "cost", "--job-constraint", f"ClusterId == {clusters['one core']}"
        ).stdout
    )
