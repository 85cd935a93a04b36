"""START's clauses hold on nodes with targets while they are drained and defragmented."""

from __future__ import annotations

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool import deployed
from tests.pool.deployed import (
    CHECKOUT,
    configure,
    hold_back,
    jobs,
    on,
    partitionable,
    publish,
    run,
    snippet,
)

pytestmark = pytest.mark.semantics

NODE, PLAIN, DEFRAGGED = "wn-001.example.org", "wn-002.example.org", "wn-003.example.org"
ACCESS = "ap-1.example.org"
CORES, CAP, MULTICORE = 16, 2, 8
DEPLOYED = "DEFAULT_DRAINING_START_EXPR = TARGET.JobUniverse == 5\n" + snippet(
    "MAXJOBRETIREMENTTIME = 3600", grace_seconds=600
)
DEFRAG = f"""\
DAEMON_LIST = $(DAEMON_LIST) DEFRAG
DEFRAG_INTERVAL = 4
DEFRAG_DRAINING_MACHINES_PER_HOUR = 3600
DEFRAG_MAX_CONCURRENT_DRAINING = 1
DEFRAG_MAX_WHOLE_MACHINES = 1
DEFRAG_REQUIREMENTS = PartitionableSlot && Cpus < {MULTICORE} && Machine == "{DEFRAGGED}"
DEFRAG_WHOLE_MACHINE_EXPR = (Cpus >= {MULTICORE} && Machine == "{DEFRAGGED}")
DEFRAG_DRAINING_START_EXPR = TARGET.JobUniverse == 5
include : {CHECKOUT}/config.d/60-sharectl-defrag.conf
"""


SPEC = BoxSpec(
    (
        ExecutePoint(NODE, CORES, config=DEPLOYED),
        ExecutePoint(DEFRAGGED, CORES, config=DEPLOYED),
        ExecutePoint(PLAIN, CORES),
    ),
    access_points=(ACCESS,),
)
"""Two nodes with the snippet, one without, and nothing that defragments yet."""


def submit(box: Box, group: str, cores: int, count: int, node: str = NODE) -> int:
    return box.submit(jobs(group, cores, count, 600, on(node)))


def held(box: Box, group: str, node: str = NODE) -> int:
    """Cores of the group."""
    return deployed.held(box, node)[group]


def running(box: Box, cluster: int) -> int:
    """Running jobs by the access point, for moments also those that a node then refuses."""
    return len(box.jobs(f"JobStatus == 2 && ClusterId == {cluster}"))


def drains_by_our_clauses(box: Box, node: str) -> bool:
    """True if the site's draining expression and ours are START now."""
    slot = partitionable(box, node)
    clauses = ("TARGET.JobUniverse", "MY.t1_GraceAdmits")
    return slot.get("Draining") is True and all(text in slot["Start"] for text in clauses)


def test_targets_hold_while_a_node_is_drained_and_after(box: Box) -> None:
    """By hand, with the expression that the site lets nodes start jobs by while they drain."""
    filled = submit(box, "alice", 1, CORES)
    plain = submit(box, "lhcb", 1, CORES, PLAIN)
    run(box, 2 * CORES, f"ClusterId == {filled} || ClusterId == {plain}")
    hold_back(box, CAP, NODE)

    box.run(["condor_drain", "-graceful", NODE])
    box.wait_until(lambda: drains_by_our_clauses(box, NODE), "the node drains")
    assert running(box, filled) == CORES, "a graceful drain waits for the jobs"
    submit(box, "lhcb", 1, 4)
    box.run(["condor_rm", str(filled), "-constraint", "ProcId < 10"], host=ACCESS)
    helped = submit(box, "cms", MULTICORE, 1)
    box.wait_until(lambda: held(box, "cms") == MULTICORE, "cms gets in while the node drains")
    assert held(box, "lhcb") == 0, "a third group does not"

    box.run(["condor_drain", "-cancel", NODE])
    box.wait_until(lambda: not partitionable(box, NODE).get("Draining"), "it drains no more")
    submit(box, "alice", 1, 20)
    box.run(["condor_rm", "-constraint", f"ClusterId == {filled} && ProcId >= 11"], host=ACCESS)
    box.wait_until(lambda: held(box, "alice") == CAP, "alice fills her cap, and no more")
    assert running(box, helped) == 1, "no job was stopped by any of this"
    assert held(box, "lhcb") == 0
    assert held(box, "lhcb", PLAIN) == CORES

    publish(box)
    rest = CORES - MULTICORE
    box.wait_until(lambda: held(box, "alice") + held(box, "lhcb") == rest, "jobs flow again")


def test_targets_and_grace_hold_while_condor_defrag_is_at_work(box: Box) -> None:
    filled = submit(box, "alice", 1, CORES, DEFRAGGED)
    run(box, CORES, f"ClusterId == {filled}")
    hold_back(box, CAP, DEFRAGGED)
    configure(box, box.spec.central_point, DEFRAG)
    box.wait_until(lambda: drains_by_our_clauses(box, DEFRAGGED), "condor_defrag drains the node")

    for group in ("alice", "lhcb"):
        submit(box, group, 1, 20, DEFRAGGED)
    first = f"ClusterId == {filled} && ProcId < {MULTICORE + 1}"
    box.run(["condor_rm", "-constraint", first], host=ACCESS)

    def is_whole() -> bool:
        slot = partitionable(box, DEFRAGGED)
        return slot.get("Draining") is not True and slot["Cpus"] > MULTICORE

    box.wait_until(is_whole, "condor_defrag sees the free cores and cancels")
    looks = []

    def helped() -> bool:
        looks.append((held(box, "alice", DEFRAGGED), held(box, "lhcb", DEFRAGGED)))
        return held(box, "cms", DEFRAGGED) == MULTICORE

    submit(box, "cms", MULTICORE, 1, DEFRAGGED)
    box.wait_until(helped, "the multicore job gets the cores that were made for it")
    assert set(looks) == {(CORES - MULTICORE - 1, 0)}, "no single-core job took one in between"
