"""Slot types with GPUs: one type has them all, and takes only jobs that request one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool.conftest import OpenBox
from tests.pool.consumption_pools import (
    NEGOTIATOR_LOGS_MATCHES,
    rows_of,
    running,
)
from tests.pool.deployed import jobs, on
from tests.pool.own_files import host
from tests.pool.slot_practice import example, places

pytestmark = [pytest.mark.pool, pytest.mark.semantics]
ACCESS, TYPES = "ap-1.example.org", "70-slot-types.conf"
GPU_NODES = {
    # node: its configuration, and GPUs of its slots by kind
    "listed": ("MACHINE_RESOURCE_GPUs = CUDA0, CUDA1", {"gpu": 2, "general": 0, "short": 0}),
    "detected": (
        "use FEATURE : GPUs\nGPU_DISCOVERY_EXTRA = -extra -simulate:1,2",
        {"gpu": 2, "general": 0, "short": 0},
    ),
    "without": ("", {"gpu": 0, "general": 0, "short": 0}),
}


@pytest.fixture(scope="module")
def box(open_box: OpenBox) -> Iterator[Box]:
    types = {
        node: example(TYPES, "NUM_SLOTS_TYPE_4 = 1", text) for node, (text, _) in GPU_NODES.items()
    }
    spec = BoxSpec(
        (*(ExecutePoint(host(node), 16, power_hs06=None, config=t) for node, t in types.items()),),
        access_points=(ACCESS,),
        access_config="CLAIM_PARTITIONABLE_LEFTOVERS = False\n",
        central_config=NEGOTIATOR_LOGS_MATCHES,
    )
    with open_box(spec) as running_box:
        yield running_box


@pytest.mark.parametrize("node", GPU_NODES)
def test_a_slot_type_has_all_gpus_and_only_jobs_that_request_one(node: str, box: Box) -> None:
    of_node = f'Machine == "{host(node)}" && PartitionableSlot'
    rows = rows_of(box, of_node, "SlotKind", "GPUs ?: 0")
    gpus = {kind: int(count) for kind, count in rows}
    assert gpus == GPU_NODES[node][1]
    wanting = box.submit(jobs("", 1, 3, 600, on(host(node)), "request_gpus = 1"), ACCESS)
    others = box.submit(jobs("", 1, 4, 600, on(host(node))), ACCESS)
    box.wait_until(lambda: running(box, f"ClusterId == {others}") == 4, "others run")
    box.wait_until(lambda: running(box, f"ClusterId == {wanting}") == gpus["gpu"], "GPUs are used")
    slots = [place.partition("_")[0] for place in places(box, wanting)]
    assert slots == ["gpu4"] * gpus["gpu"]
    assert not [place for place in places(box, others) if place.startswith("gpu")]
