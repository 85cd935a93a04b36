"""Consumption policies as the prototype of 2012 wrote them, and slot types with GPUs.

The slot of such a node has Consumption… attributes, and the startd makes one claim a cycle.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool.conftest import OpenBox
from tests.pool.consumption_pools import (
    NEGOTIATOR_LOGS_MATCHES,
    first_cycle,
    log_length,
    rows_of,
    running,
)
from tests.pool.deployed import jobs, on
from tests.pool.own_files import host
from tests.pool.sharectl_command import offline
from tests.pool.slot_practice import example, places

pytestmark = [pytest.mark.pool, pytest.mark.semantics]
ACCESS, FORM, TYPES = "ap-1.example.org", "form.example.org", "70-slot-types.conf"
OF_2012 = """\
SLOT_TYPE_1 = 100%
SLOT_TYPE_1_PARTITIONABLE = True
SLOT_TYPE_1_NUM_CLAIMS = 20
NUM_SLOTS_TYPE_1 = 1
CLAIM_PARTITIONABLE_LEFTOVERS = False
MUST_MODIFY_REQUEST_EXPRS = False
STARTD_EXPRS = ConsumptionCpus, ConsumptionMemory, ConsumptionDisk
ConsumptionCpus = quantize(target.RequestCpus, {1})
ConsumptionMemory = quantize(target.RequestMemory, {128})
ConsumptionDisk = quantize(target.RequestDisk, {1024})
SlotWeight = Cpus
"""
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
        (
            ExecutePoint(FORM, 10, 4096, None, OF_2012),
            *(ExecutePoint(host(node), 16, power_hs06=None, config=t) for node, t in types.items()),
        ),
        access_points=(ACCESS,),
        access_config="CLAIM_PARTITIONABLE_LEFTOVERS = False\n",
        central_config=NEGOTIATOR_LOGS_MATCHES,
    )
    with open_box(spec) as running_box:
        yield running_box


def matched_at_once(box: Box) -> int:
    """Matches of the first cycle that matches any of 10 jobs on the node."""
    box.remove_jobs()
    since = log_length(box)
    box.submit(jobs("", 1, 10, 600, on(FORM)), ACCESS)
    return first_cycle(box, since).matches.total()


def test_the_check_names_the_form_of_2012_and_its_remedy_fills_a_slot_in_a_cycle(
    box: Box, tmp_path: Path
) -> None:
    published = rows_of(box, f'Machine == "{FORM}"', "isUndefined(NumClaims)", "SlotWeight")
    assert published == [["true", "10"]]
    path = tmp_path / "form.conf"
    path.write_text(OF_2012)
    findings = offline("consumption", "check", str(path), expect=(1,))["findings"]
    (former,) = (finding for finding in findings if finding["id"] == "policy")
    assert former["place"] == f"{path}:8"
    for name in ("ConsumptionCpus, ConsumptionMemory, ConsumptionDisk", "STARTD_EXPRS"):
        assert name in former["fault"]
    assert matched_at_once(box) == 1

    knobs = re.findall(r"CONSUMPTION_[A-Z]+ = [^;]+", former["remedy"])
    kept = [
        line for line in OF_2012.splitlines() if not re.match("STARTD_EXPRS|Consum|SlotW", line)
    ]
    today = "\n".join([*kept, *knobs, "STARTD_EXPRS =", ""])
    path.write_text(today)
    assert offline("consumption", "check", str(path))["findings"] == []
    box.write_config(FORM, today)
    box.stop_host(FORM)
    box.start_host(FORM)
    box.wait_until(
        lambda: rows_of(box, f'Machine == "{FORM}"', "NumClaims") == [["20"]], "it has claims"
    )
    # On a busy machine one of ten was matched in the next cycle.
    assert matched_at_once(box) > 5


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("STARTD_ATTRS = ConsumptionMemory\nConsumptionMemory = 1\n", "STARTD_ATTRS"),
        ("SLOT1_STARTD_EXPRS = ConsumptionCpus\nSLOT1_ConsumptionCpus = 1\n", "SLOT1_STARTD_EXPRS"),
        ("consumptioncpus = 1\n", "no STARTD_ATTRS"),
    ],
)  # fmt: skip
def test_other_ways_to_write_it(text: str, names: str, tmp_path: Path) -> None:
    path = tmp_path / "form.conf"
    path.write_text(text)
    findings = offline("consumption", "check", str(path), expect=(1,))["findings"]
    (former,) = (finding for finding in findings if finding["id"] == "policy")
    assert f"(in {names})" in former["fault"]
    assert "CONSUMPTION_POLICY = True" in former["remedy"]


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
