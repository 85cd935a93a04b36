"""A node whose cores are there twice, the second time as a backfill slot: 8 cores, 80 HS06.

Jobs in the backfill slot use what the other slot leaves, and make way for its jobs.
"""

from __future__ import annotations

import pytest

from poolbox import BoxSpec, ExecutePoint
from tests.pool.deployed import jobs, run, shown, snippet
from tests.pool.sharectl_command import Sharectl, bare

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
    run(box, 7)
    query = ("-constraint", "PartitionableSlot", "-af", "BackfillSlot", "size(ChildCpus)")
    known = [["true", "4"], ["undefined", "3"]]
    box.wait_until(lambda: sorted(shown(box, *query)) == known, "the collector knows all jobs")
    box.submit(jobs("cms", 8, 2, 600, backfill), ACCESS)

    seen = sharectl.json("snapshot")
    (node,) = seen["nodes"]
    assert (node["cores"], node["hs06_per_core"], node["several_slots"]) == (8, 10.0, False)
    assert (node["deaf"], node["cores_by_group"]) == (None, {"atlas": 3})
    atlas = seen["groups"]["atlas"]
    assert (atlas["single_cores"], atlas["power_hs06"]) == (3, 30.0)
    assert sharectl.json("cycle")["idle_cores"]["all"] == 5
    assert sharectl.json("status")["nodes"]["slots"] == 1
    assert "1 node with 8 cores, 80 HS06" in bare("init", **box.client_environment).stdout
