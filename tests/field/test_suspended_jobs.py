"""Jobs by JobStatus: suspended ones (condor_suspend) hold their slots and do not run.

Two nodes of 8 cores, 80 HS06 each.
"""

from __future__ import annotations

import pytest

from poolbox import BoxSpec
from tests.pool.deployed import jobs, snippet
from tests.pool.sharectl_command import Sharectl

pytestmark = [pytest.mark.pool, pytest.mark.semantics]
ACCESS = "ap-1.example.org"
SPEC = BoxSpec.of_equal_nodes(2, access_points=(ACCESS,), execute_config=snippet())


def test_a_suspended_job_holds_its_cores_and_is_called_suspended(sharectl: Sharectl) -> None:
    box = sharectl.box
    suspended = box.submit(jobs("cms", 4, 1, 900), ACCESS)
    running = box.submit(jobs("atlas", 2, 1, 900), ACCESS)
    box.wait_until(lambda: len(box.jobs("JobStatus == 2")) == 2, "both run")
    waiting = box.submit(jobs("atlas", 16, 1, 900), ACCESS)
    held = box.submit(jobs("cms", 1, 1, 900, "hold = True"), ACCESS)
    ended = box.submit(jobs("cms", 1, 1, 0, "leave_in_queue = JobStatus == 4"), ACCESS)
    box.run(["condor_suspend", f"{suspended}.0"])
    box.wait_until(lambda: len(box.jobs("JobStatus == 7")) == 1, "one is suspended")
    box.wait_until(lambda: len(box.jobs("JobStatus == 4")) == 1, "one has ended")

    def slots(constraint: str) -> int:
        return len(
            box.run(["condor_status", "-constraint", constraint, "-af", "Name"]).stdout.split()
        )

    box.wait_until(lambda: slots('Activity == "Suspended"') == 1, "its slot is suspended")
    box.wait_until(lambda: slots('SlotType == "Dynamic"') == 2, "the others are gone")
    taken = sharectl.json("snapshot")
    groups = {name: taken["groups"][name] for name in ("cms", "atlas")}
    assert [group["cores"] for group in groups.values()] == [4, 2]
    assert [group["power_hs06"] for group in groups.values()] == [40.0, 20.0]
    assert groups["cms"]["pending_by_cores"] == {}
    assert sum(groups["atlas"]["pending_by_cores"].values()) == 1
    assert sharectl.json("cycle")["idle_cores"]["all"] == 10
    kept = [line.split()[:3] for line in sharectl.jobs_file.read_text().splitlines()]
    assert [row[0] for row in kept].count("2") == 2

    wanted = {suspended: "suspended", running: "running", held: "held", ended: "completed"}
    for cluster, code in {**wanted, waiting: "could-never"}.items():
        assert sharectl.json("explain", "job", f"{cluster}.0")["code"] == code
    screen = sharectl.run("explain", "job", f"{suspended}.0").stdout
    assert "condor_continue" in screen
    box.run(["condor_continue", f"{suspended}.0"])
    box.wait_until(lambda: len(box.jobs("JobStatus == 2")) == 2, "it runs again")
    assert sharectl.json("explain", "job", f"{suspended}.0")["code"] == "running"
