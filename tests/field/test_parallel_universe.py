"""Universes: parallel jobs and their dedicated scheduler; jobs without a slot, docker, java, vm.

Only a node that names a dedicated scheduler (DedicatedScheduler) takes its access point's jobs.
"""

from __future__ import annotations

import pytest

from poolbox import BoxSpec, ExecutePoint
from tests.pool.deployed import jobs, on, run, snippet
from tests.pool.sharectl_command import Sharectl

pytestmark = [pytest.mark.pool, pytest.mark.semantics]
ACCESS = ("ap-1.example.org", "ap-2.example.org")
DEDICATED = f"""\
DedicatedScheduler = "DedicatedScheduler@{ACCESS[0]}"
STARTD_ATTRS = $(STARTD_ATTRS) DedicatedScheduler
"""
SPEC = BoxSpec(
    (
        ExecutePoint("wn-001.example.org", 8, power_hs06=80.0, config=snippet()),
        ExecutePoint("wn-002.example.org", 8, power_hs06=80.0, config=snippet() + DEDICATED),
    ),
    access_points=ACCESS,
)
LACKING = {
    "universe = docker\ndocker_image = debian": "HasDocker",
    "universe = container\ncontainer_image = x.sif": "HasContainer",
    "universe = java": "HasJava",
    "universe = vm\nvm_type = kvm\nvm_memory = 100\nvm_disk = a.img:vda:r": "HasVM",
}
WITHOUT_SLOT = ("local", "scheduler", "grid\ngrid_resource = condor a b")


def test_a_universe_that_no_node_serves_is_no_demand(sharectl: Sharectl) -> None:
    box = sharectl.box
    # A dedicated scheduler of 23.9.6 keeps claims for which it has no job.
    box.submit(jobs("", 8, 1, 900, on("wn-002.example.org")), ACCESS[0])
    run(box, 1)
    lines = "universe = parallel", "machine_count = 3"
    nowhere = box.submit(jobs("cms", 4, 1, 600, *lines), ACCESS[1])
    too_large = box.submit(jobs("cms", 16, 1, 600, *lines), ACCESS[0])
    somewhere = box.submit(jobs("cms", 4, 1, 600, *lines), ACCESS[0])
    lacking = {
        box.submit(jobs("atlas", 1, 1, 600, lines), ACCESS[0]): name
        for lines, name in LACKING.items()
    }
    for universe in WITHOUT_SLOT:
        box.submit(jobs("atlas", 2, 1, 600, f"universe = {universe}"), ACCESS[0])

    seen = "RequestCpus != 2 && JobStatus == 1 && AutoClusterId =!= undefined"
    wanted = len(lacking) + 2
    box.wait_until(lambda: len(box.jobs(seen, access_point=ACCESS[0])) == wanted, "all were seen")
    taken = sharectl.json("snapshot")
    assert taken["untried"] is None
    cms, atlas = (taken["groups"][group] for group in ("cms", "atlas"))
    # A parallel job counts once for each slot that it wants.
    assert cms["pending_by_cores"] == {"4": 6, "8": 3}
    assert cms["unplaceable_by_cores"] == {"4": 3, "8": 3}
    assert atlas["pending_by_cores"] == atlas["unplaceable_by_cores"] == {"1": len(lacking)}

    why = sharectl.json("explain", "job", f"{ACCESS[1]}#{nowhere}.0")
    (row,) = why["nodes"]["never"]
    assert (why["code"], row["code"], row["nodes"]) == ("could-never", "dedicated", 2)
    codes = {}
    for cluster in (too_large, somewhere, *lacking):
        why = sharectl.json("explain", "job", f"{ACCESS[0]}#{cluster}.0")
        codes[cluster] = why["code"]
        named = [row["clause"] for row in why["nodes"]["never"]]
        assert lacking.get(cluster, "RequestCpus") in str(named) or cluster == somewhere
    assert codes.pop(somewhere) == "not-now"
    assert set(codes.values()) == {"could-never"}
