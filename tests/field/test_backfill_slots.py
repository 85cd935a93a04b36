"""A node whose cores are there twice, the second time as a backfill slot: 8 cores, 80 HS06.

Jobs in the backfill slot use what the other slot leaves, and make way for its jobs.
"""

from __future__ import annotations

import pytest

from poolbox import BoxSpec, ExecutePoint
from tests.pool.deployed import jobs, snippet
from tests.pool.sharectl_command import Sharectl
from tests.pool.test_init import sharectl as command

pytestmark = [pytest.mark.pool, pytest.mark.semantics]
ACCESS = "ap-1.example.org"
TWICE = """\
SLOT_TYPE_1 = 100%
SLOT_TYPE_1_PARTITIONABLE = True
NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_2 = 100%
SLOT_TYPE_2_PARTITIONABLE = True
SLOT_TYPE_2_BACKFILL = True
NUM_SLOTS_TYPE_2 = 1
"""
SPEC = BoxSpec(
    (ExecutePoint("wn-001.example.org", 8, power_hs06=80.0, config=snippet() + TWICE),),
    access_points=(ACCESS,),
)


def test_cores_and_power_count_once_and_backfill_is_nobodys_use(sharectl: Sharectl) -> None:
    box = sharectl.box
    backfill = "requirements = TARGET.BackfillSlot =?= True"
    box.submit(jobs("atlas", 1, 4, 600, backfill), ACCESS)
    box.submit(jobs("atlas", 1, 3, 600, "requirements = TARGET.BackfillSlot =!= True"), ACCESS)
    box.wait_until(lambda: len(box.jobs("JobStatus == 2")) == 7, "both slots have jobs")

    def held(constraint: str) -> list[str]:
        out = box.run(["condor_status", "-constraint", constraint, "-af", "size(ChildCpus)"])
        return out.stdout.split()

    twice = "PartitionableSlot && BackfillSlot"
    box.wait_until(lambda: held(twice) == ["4"], "the collector knows jobs in backfill")
    once = "PartitionableSlot && BackfillSlot =!= True"
    box.wait_until(lambda: held(once) == ["3"], "the collector knows the other jobs")
    box.submit(jobs("cms", 8, 2, 600, backfill), ACCESS)

    seen = sharectl.json("snapshot")
    (node,) = seen["nodes"]
    assert (node["cores"], node["hs06_per_core"], node["several_slots"]) == (8, 10.0, False)
    assert (node["deaf"], node["cores_by_group"]) == (None, {"atlas": 3})
    atlas = seen["groups"]["atlas"]
    assert (atlas["single_cores"], atlas["power_hs06"]) == (3, 30.0)
    assert sharectl.json("cycle")["idle_cores"]["all"] == 5
    assert sharectl.json("status")["nodes"]["slots"] == 1
    assert "1 node with 8 cores, 80 HS06" in command(box, "init").stdout
