"""An ad of a machine that sleeps or is gone (Offline = True): 64 cores that are not there.

HTCondor's negotiator matches it for condor_rooster to wake it, and no job starts.
"""

from __future__ import annotations

import pytest

from poolbox import BoxSpec
from tests.pool.deployed import jobs, snippet
from tests.pool.sharectl_command import Sharectl
from tests.pool.test_init import sharectl as command

pytestmark = [pytest.mark.pool, pytest.mark.semantics]
ACCESS = "ap-1.example.org"
AD = """\
MyType = "Machine"
Name = "slot1@off.example.org"
Machine = "off.example.org"
CondorVersion = "$CondorVersion: 25.14.1 2026-10-16 PackageID: 25.14.1 $"
MyAddress = "<127.0.0.1:9>"
StartdIpAddr = "<127.0.0.1:9>"
State = "Unclaimed"
Activity = "Idle"
Offline = true
PartitionableSlot = true
SlotType = "Partitionable"
Cpus = 64
TotalCpus = 64
TotalSlotCpus = 64
Memory = 262144
TotalSlotMemory = 262144
Disk = 100000000
TotalSlotDisk = 100000000
SlotWeight = Cpus
Start = true
Requirements = START
ClassAdLifetime = 86400
Arch = "X86_64"
OpSys = "LINUX"
FileSystemDomain = "example.org"
HasFileTransfer = true
"""
SPEC = BoxSpec.of_equal_nodes(2, access_points=(ACCESS,), execute_config=snippet())


def test_it_is_no_node_and_no_power_and_no_job_waits_for_it(sharectl: Sharectl) -> None:
    box = sharectl.box
    path = box.shared_directory / "off.ad"
    path.write_text(AD)
    box.run(["condor_advertise", "-tcp", "UPDATE_STARTD_AD", str(path)])
    box.submit(jobs("atlas", 1, 16, 600), ACCESS)
    cluster = box.submit(jobs("cms", 32, 1, 600), ACCESS)
    box.wait_until(lambda: len(box.jobs("JobStatus == 2")) == 16, "all cores are held")
    seen = sharectl.json("snapshot")
    assert [node["name"] for node in seen["nodes"]] == ["wn-001", "wn-002"]

    def is_no_demand() -> bool:
        return bool(sharectl.json("snapshot")["groups"]["cms"]["unplaceable_by_cores"])

    box.wait_until(is_no_demand, "the negotiator has seen the job, and it is no demand")
    cycle = sharectl.json("cycle", control={"setpoint": "present"})
    assert cycle["plan"]["targets"] == []
    assert sum(row["setpoint_hs06"] for row in cycle["controllers"]) == pytest.approx(160.0)
    assert sharectl.json("status")["nodes"]["slots"] == 2
    assert "2 nodes with 16 cores, 160 HS06" in command(box, "init").stdout
    verbs = (("plan",), ("check", "pool"), ("consumption", "capacity"))
    for words in verbs:
        out = sharectl.run(*words, "--json", expect=None).stdout
        assert out
        assert "off.example.org" not in out
    why = sharectl.json("explain", "job", f"{cluster}.0")
    assert why["nodes"]["fitting_nodes"] == 0
    obstacles = why["nodes"]["obstacles"]
    (row,) = (row for row in obstacles if row["code"] == "offline")
    assert (row["nodes"], row["alone"]) == (1, 1), obstacles
