"""Situations on two nodes of 8 cores, 80 HS06 each.

Suspended jobs, a block under way, and an ad of a machine that sleeps.
"""

from __future__ import annotations

from typing import Any

import pytest

from poolbox import BoxSpec
from sharectl.check.slot_ad import saved_ads
from tests.pool.deployed import jobs, run, shown, snippet
from tests.pool.sharectl_command import Sharectl, bare

pytestmark = pytest.mark.pool
ACCESS = "ap-1.example.org"
SPEC = BoxSpec.of_equal_nodes(2, access_points=(ACCESS,), execute_config=snippet())


def why(sharectl: Sharectl, cluster: int) -> dict[str, Any]:
    return sharectl.json("explain", "job", f"{cluster}.0")


def screen(sharectl: Sharectl, cluster: int) -> str:
    return " ".join(sharectl.run("explain", "job", f"{cluster}.0").stdout.split())


def test_a_suspended_job_holds_its_cores_and_is_called_suspended(sharectl: Sharectl) -> None:
    box = sharectl.box
    suspended = box.submit(jobs("cms", 4, 1, 900), ACCESS)
    runs = box.submit(jobs("atlas", 2, 1, 900), ACCESS)
    run(box, 2)
    waiting = box.submit(jobs("atlas", 16, 1, 900), ACCESS)
    held = box.submit(jobs("cms", 1, 1, 900, "hold = True"), ACCESS)
    ended = box.submit(jobs("cms", 1, 1, 0, "leave_in_queue = JobStatus == 4"), ACCESS)
    box.run(["condor_suspend", f"{suspended}.0"])
    box.wait_until(lambda: len(box.jobs("JobStatus == 7")) == 1, "one is suspended")
    box.wait_until(lambda: len(box.jobs("JobStatus == 4")) == 1, "one has ended")

    def slots(constraint: str) -> int:
        return len(shown(box, "-constraint", constraint, "-af", "Name"))

    def free_cores() -> int:
        rows = shown(box, "-constraint", 'SlotType == "Partitionable"', "-af", "Cpus")
        return sum(int(cores) for (cores,) in rows)

    box.wait_until(lambda: slots('Activity == "Suspended"') == 1, "its slot is suspended")
    # The roll-up of a partitionable slot may still name a job whose slot is gone.
    box.wait_until(lambda: slots('SlotType == "Dynamic"') == 2, "the others are gone")
    box.wait_until(lambda: free_cores() == 10, "no slot names them any more")
    taken = sharectl.json("snapshot")
    cms, atlas = taken["groups"]["cms"], taken["groups"]["atlas"]
    assert [(group["cores"], group["power_hs06"]) for group in (cms, atlas)] == [(4, 40), (2, 20)]
    assert cms["pending_by_cores"] == {}
    assert sum(atlas["pending_by_cores"].values()) == 1
    assert sharectl.json("cycle")["idle_cores"]["all"] == 10
    kept = [line.split()[:3] for line in sharectl.jobs_file.read_text().splitlines()]
    assert [row[0] for row in kept].count("2") == 2

    wanted = {suspended: "suspended", runs: "running", held: "held", ended: "completed"}
    for cluster, code in {**wanted, waiting: "could-never"}.items():
        assert why(sharectl, cluster)["code"] == code
    assert "condor_continue" in screen(sharectl, suspended)


def test_the_block_under_way_is_named_and_who_is_over_their_share(sharectl: Sharectl) -> None:
    box = sharectl.box
    box.submit(jobs("atlas", 1, 16, 900), ACCESS)
    run(box, 16)
    multicore = box.submit(jobs("cms", 8, 1, 60), ACCESS)
    single = box.submit(jobs("atlas", 1, 1, 60), ACCESS)
    box.wait_until(
        lambda: why(sharectl, multicore)["code"] == "not-now", "the collector knows its cores held"
    )

    def planned() -> bool:
        sharectl.run("cycle")
        return " cms 8" in sharectl.targets.read_text()

    box.wait_until(planned, "a plan has targets")
    waits = why(sharectl, multicore)
    assert waits["code"] == "not-now"
    assert set(waits["ledger"]["block_nodes"]) <= {"wn-001", "wn-002"}
    assert waits["ledger"]["block_seconds"] > 0
    over = why(sharectl, single)
    assert over["ledger"]["over_hs06"] > 0
    assert over["ledger"]["block_nodes"] == []


OFFLINE = {
    "Name": '"slot1@off.example.org"',
    "Machine": '"off.example.org"',
    "Offline": "true",
    "ClassAdLifetime": "86400",
    **dict.fromkeys(("MyAddress", "StartdIpAddr"), '"<127.0.0.1:9>"'),
    **dict.fromkeys(("Cpus", "TotalCpus", "TotalSlotCpus"), "64"),
    **dict.fromkeys(("Memory", "TotalSlotMemory"), "262144"),
}
"""A machine that sleeps or is gone, which the negotiator matches for condor_rooster."""


def test_a_machine_that_is_offline_is_no_node_and_no_power(sharectl: Sharectl) -> None:
    """Last of the file: its ad stays."""
    box = sharectl.box
    path = box.shared_directory / "off.ad"
    ad = {**saved_ads()[0], **OFFLINE}
    path.write_text("".join(f"{name} = {text}\n" for name, text in ad.items()))
    box.run(["condor_advertise", "-tcp", "UPDATE_STARTD_AD", str(path)])
    box.submit(jobs("atlas", 1, 16, 600), ACCESS)
    cluster = box.submit(jobs("cms", 32, 1, 600), ACCESS)
    run(box, 16)
    seen = sharectl.json("snapshot")
    assert [node["name"] for node in seen["nodes"]] == ["wn-001", "wn-002"]

    def is_no_demand() -> bool:
        return bool(sharectl.json("snapshot")["groups"]["cms"]["unplaceable_by_cores"])

    box.wait_until(is_no_demand, "the negotiator has seen the job, and it is no demand")
    cycle = sharectl.json("cycle", control={"setpoint": "present"})
    assert cycle["plan"]["targets"] == []
    assert sum(row["setpoint_hs06"] for row in cycle["controllers"]) == pytest.approx(160.0)
    assert sharectl.json("status")["nodes"]["slots"] == 2
    assert "2 nodes with 16 cores, 160 HS06" in bare("init", **box.client_environment).stdout
    for words in (("plan",), ("check", "pool")):
        out = sharectl.run(*words, "--json", expect=None).stdout
        assert out
        assert "off.example.org" not in out
    obstacles = why(sharectl, cluster)["nodes"]["obstacles"]
    (row,) = (row for row in obstacles if row["code"] == "offline")
    assert (row["nodes"], row["alone"]) == (1, 1), obstacles
