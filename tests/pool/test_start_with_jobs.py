"""The snippet with real jobs: targets, caps, claims, forged attributes, and drains."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool.deployed import (
    CHECKOUT,
    configure,
    held,
    hold_back,
    jobs,
    on,
    partitionable,
    publish,
    run,
    snippet,
)
from tests.pool.start_cases import FORGED

pytestmark = pytest.mark.semantics

NODE, NO_CRON, ACCESS = "wn-001.example.org", "wn-002.example.org", "ap-1.example.org"
KEEPING = "wn-003.example.org"
"""Its claims go on from job to job, whatever the target."""
DRAINED, PLAIN, DEFRAGGED = "wn-004.example.org", "wn-005.example.org", "wn-006.example.org"
CORES, CAP, DRAIN_CAP, MULTICORE = 16, 4, 2, 8
# On a busy machine a run can be late by more than three such short periods.
DEPLOYED = snippet(grace_seconds=0, job_ctl_period_seconds=2, mc_grace_period_seconds=2)
WATCHED_SECONDS = 12
FORGED_LINES = "".join(f"+{name} = {text}\n" for name, text in FORGED.items())
DRAINING = "DEFAULT_DRAINING_START_EXPR = TARGET.JobUniverse == 5\n" + snippet(
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
NODES = {
    NODE: DEPLOYED,
    NO_CRON: f"{DEPLOYED}STARTD_CRON_JOBLIST =\n",
    KEEPING: f"{DEPLOYED}CLAIM_WORKLIFE = 1200\n",
    DRAINED: DRAINING,
    PLAIN: "",
    DEFRAGGED: DRAINING,
}
SPEC = BoxSpec(
    tuple(ExecutePoint(node, CORES, config=text) for node, text in NODES.items()),
    access_points=(ACCESS,),
)


def submit(
    box: Box, group: str, cores: int, count: int, *lines: str, node: str = NODE, seconds: int = 600
) -> int:
    return box.submit(jobs(group, cores, count, seconds, on(node), *lines))


def of(box: Box, group: str, node: str) -> int:
    return held(box, node)[group]


def made(box: Box, node: str) -> int:
    """Dynamic slots that a node made so far."""
    return box.log_text(node, "STARTD").count("New dSlot of type")


def watched(box: Box) -> list[tuple[Counter[str], Counter[str]]]:
    """Cores by group on `NODE` and on `KEEPING`, over and over for `WATCHED_SECONDS`."""
    until = time.monotonic() + WATCHED_SECONDS
    seen = []
    while time.monotonic() < until:
        seen.append((held(box, NODE), held(box, KEEPING)))
        time.sleep(0.2)
    return seen


def saturated(box: Box, *nodes: str) -> None:
    """Fill nodes with short single-core jobs of the held-back group; the helped one waits too.

    Each node has a user of its own: while claims go from job to job, an access point of 25.14.1
    offers no later jobs of the submitter that another node could run.
    """
    for number, node in enumerate(nodes):
        for seconds in (4, 5, 7, 9):
            user = f"accounting_group_user = u{number}"
            submit(box, "alice.user", 1, 120, user, node=node, seconds=seconds)
    for node in nodes:
        box.wait_until(lambda: of(box, "alice", node) == CORES, f"alice has all of {node}")  # noqa: B023 - at once
        submit(box, "cms.pilot", 8, 1, node=node)


def test_a_target_moves_cores_to_the_helped_group_and_the_cap_holds(box: Box) -> None:
    """Not without a target, nor without the snippet's CLAIM_WORKLIFE; subgroups are the two."""
    saturated(box, NODE, KEEPING)
    seen = watched(box)
    assert max(cores["cms"] for cores, _ in seen) == 0, "HTCondor alone gives cms its cores"

    hold_back(box, CAP, NODE, KEEPING, held_back="alice.user", helped="cms.pilot")
    for other in ("lhcb", "alice", "alice.users", "cms", "cms.pilots"):
        submit(box, other, 1, 20, seconds=4)
    submit(box, "lhcb", 1, 20, FORGED_LINES, seconds=4)
    box.wait_until(lambda: held(box, NODE)["cms"] == 8, "cms runs")
    box.wait_until(lambda: held(box, NODE)["alice"] == CAP, "alice has its cap")
    before = made(box, NODE), made(box, KEEPING)
    seen = watched(box)
    assert max(cores["alice"] for cores, _ in seen) == CAP, "and no core more"
    assert max(cores["lhcb"] for cores, _ in seen) == 0, "no third group, whatever its jobs claim"
    assert {cores["cms"] for cores, _ in seen} == {8}, "nor what is no subgroup of the two"
    assert max(cores["cms"] for _, cores in seen) == 0, "alice's claims go on from job to job"
    assert made(box, NODE) > before[0], "each job held back is the last of its claim"
    assert made(box, KEEPING) == before[1]

    publish(box)
    box.wait_until(lambda: sum(held(box, NODE).values()) == CORES, "all cores work again")


def test_the_node_counts_the_held_back_group_as_it_is(box: Box) -> None:
    """The roll-up in the partitionable slot is whole numbers, those of dynamic slots."""
    most = CORES - 8
    hold_back(box, most, NODE)
    submit(box, "alice", 1, 100, seconds=5)
    lists = []

    def look() -> int:
        ad = partitionable(box, NODE)
        lists.append((ad["Childt1_HeldBackCores"], ad["ChildJobStart"], ad["ChildCpus"]))
        return sum(cores for cores in lists[-1][0] if isinstance(cores, int))

    box.wait_until(lambda: look() == most, "alice has all that she may have")
    submit(box, "cms", 8, 20, seconds=5)
    until = time.monotonic() + WATCHED_SECONDS
    while time.monotonic() < until:
        look()
        time.sleep(0.1)
    assert {type(cores) for held, _, _ in lists for cores in held} == {int}, lists
    assert max(sum(held) for held, _, _ in lists) == most
    assert int in {type(start) for _, starts, _ in lists for start in starts}, "JobStart rolls up"
    assert [row for row in lists if len({*map(len, row)}) > 1] == []


def test_before_the_first_cron_run_jobs_flow_and_forging_gains_nothing(box: Box) -> None:
    for text in ("", FORGED_LINES):
        submit(box, "lhcb", 1, 3, text, node=NO_CRON, seconds=60)
    run(box, 6)
    assert "t1_Targetcores" not in partitionable(box, NO_CRON)


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
    filled = submit(box, "alice", 1, CORES, node=DRAINED)
    plain = submit(box, "lhcb", 1, CORES, node=PLAIN)
    run(box, 2 * CORES, f"ClusterId == {filled} || ClusterId == {plain}")
    hold_back(box, DRAIN_CAP, DRAINED)

    box.run(["condor_drain", "-graceful", DRAINED])
    box.wait_until(lambda: drains_by_our_clauses(box, DRAINED), "the node drains")
    assert running(box, filled) == CORES, "a graceful drain waits for the jobs"
    submit(box, "lhcb", 1, 4, node=DRAINED)
    box.run(["condor_rm", str(filled), "-constraint", "ProcId < 10"], host=ACCESS)
    helped = submit(box, "cms", MULTICORE, 1, node=DRAINED)
    box.wait_until(
        lambda: of(box, "cms", DRAINED) == MULTICORE, "cms gets in while the node drains"
    )
    assert of(box, "lhcb", DRAINED) == 0, "a third group does not"

    box.run(["condor_drain", "-cancel", DRAINED])
    box.wait_until(lambda: not partitionable(box, DRAINED).get("Draining"), "it drains no more")
    submit(box, "alice", 1, 20, node=DRAINED)
    box.run(["condor_rm", "-constraint", f"ClusterId == {filled} && ProcId >= 11"], host=ACCESS)
    box.wait_until(
        lambda: of(box, "alice", DRAINED) == DRAIN_CAP, "alice fills her cap, and no more"
    )
    assert running(box, helped) == 1, "no job was stopped by any of this"
    assert of(box, "lhcb", DRAINED) == 0
    assert of(box, "lhcb", PLAIN) == CORES

    publish(box)
    rest = CORES - MULTICORE
    box.wait_until(
        lambda: of(box, "alice", DRAINED) + of(box, "lhcb", DRAINED) == rest, "jobs flow again"
    )


def test_targets_and_grace_hold_while_condor_defrag_is_at_work(box: Box) -> None:
    filled = submit(box, "alice", 1, CORES, node=DEFRAGGED)
    run(box, CORES, f"ClusterId == {filled}")
    hold_back(box, DRAIN_CAP, DEFRAGGED)
    configure(box, box.spec.central_point, DEFRAG)
    box.wait_until(lambda: drains_by_our_clauses(box, DEFRAGGED), "condor_defrag drains the node")

    for group in ("alice", "lhcb"):
        submit(box, group, 1, 20, node=DEFRAGGED)
    first = f"ClusterId == {filled} && ProcId < {MULTICORE + 1}"
    box.run(["condor_rm", "-constraint", first], host=ACCESS)

    def is_whole() -> bool:
        slot = partitionable(box, DEFRAGGED)
        return slot.get("Draining") is not True and slot["Cpus"] > MULTICORE

    box.wait_until(is_whole, "condor_defrag sees the free cores and cancels")
    looks = []

    def helped() -> bool:
        looks.append((of(box, "alice", DEFRAGGED), of(box, "lhcb", DEFRAGGED)))
        return of(box, "cms", DEFRAGGED) == MULTICORE

    submit(box, "cms", MULTICORE, 1, node=DEFRAGGED)
    box.wait_until(helped, "the multicore job gets the cores that were made for it")
    assert set(looks) == {(CORES - MULTICORE - 1, 0)}, "no single-core job took one in between"
