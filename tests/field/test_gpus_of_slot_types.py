"""Slot types with GPUs: one type has them all, and takes only jobs that request one."""

from __future__ import annotations

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool.consumption_pools import rows_of
from tests.pool.deployed import jobs, on, run
from tests.pool.own_files import host
from tests.pool.slot_practice import example, places

pytestmark = [pytest.mark.pool, pytest.mark.semantics]
ACCESS, TYPES = "ap-1.example.org", "70-slot-types.conf"
GPU_NODES = {
    # node: its configuration, and GPUs of its slot of kind gpu
    "listed": ("MACHINE_RESOURCE_GPUs = CUDA0, CUDA1", 2),
    "detected": ("use FEATURE : GPUs\nGPU_DISCOVERY_EXTRA = -extra -simulate:1,2", 2),
    "without": ("", 0),
}
SPEC = BoxSpec(
    tuple(
        ExecutePoint(host(node), 16, config=example(TYPES, "NUM_SLOTS_TYPE_4 = 1", text))
        for node, (text, _) in GPU_NODES.items()
    ),
    access_points=(ACCESS,),
    access_config="CLAIM_PARTITIONABLE_LEFTOVERS = False\n",
)


@pytest.mark.parametrize("node", GPU_NODES)
def test_a_slot_type_has_all_gpus_and_only_jobs_that_request_one(node: str, box: Box) -> None:
    of_node = f'Machine == "{host(node)}" && PartitionableSlot'
    rows = rows_of(box, of_node, "SlotKind", "GPUs ?: 0")
    gpus = {kind: int(count) for kind, count in rows}
    assert gpus == {"gpu": GPU_NODES[node][1], "general": 0, "short": 0}
    wanting = box.submit(jobs("", 1, 3, 600, on(host(node)), "request_gpus = 1"), ACCESS)
    others = box.submit(jobs("", 1, 4, 600, on(host(node))), ACCESS)
    run(box, 4, f"ClusterId == {others}")
    run(box, gpus["gpu"], f"ClusterId == {wanting}")
    slots = [place.partition("_")[0] for place in places(box, wanting)]
    assert slots == ["gpu4"] * gpus["gpu"]
    assert not [place for place in places(box, others) if place.startswith("gpu")]
