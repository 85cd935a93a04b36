"""The snippet with real jobs: targets, caps, claims, grace, and forged attributes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Callable

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool.deployed import CHECKOUT, held, jobs, partitionable, publish, slots, snippet

pytestmark = pytest.mark.semantics

OpenBox = Callable[[BoxSpec], AbstractContextManager[Box]]

NODE, ACCESS = "wn-001.example.org", "ap-1.example.org"
CORES = 24
CAP = 8
GRACE_SECONDS = 20
OVERRIDES = "90-written.config"
# On a busy machine a run can be late by more than three such short periods.
DEPLOYED = snippet(grace_seconds=GRACE_SECONDS, job_ctl_period_seconds=2, mc_grace_period_seconds=2)
WATCHED_SECONDS = 12
FORGED = """\
+t1_Targetcores = {0,0}
+t1_TargetGroups = {"none","lhcb"}
+t1_TargetUntil = 0
+t1_JobCtlTime = 0
+t1_CurrentJobs = "lhcb:0"
+MC_GRACE = False
+t1_HeldBackCores = 0
+Childt1_HeldBackCores = {}
+PartitionableSlot = False
+SlotType = "Static"
"""


@pytest.fixture(scope="module")
def pool(open_box: OpenBox) -> Iterator[Box]:
    spec = BoxSpec(
        execute_points=(ExecutePoint(NODE, CORES),),
        access_points=(ACCESS,),
        execute_config=DEPLOYED,
        central_config=f"include : {CHECKOUT}/config.d/examples/60-sharectl-central-manager.conf\n",
    )
    with open_box(spec) as box:
        yield box


@pytest.fixture
def box(pool: Box) -> Iterator[Box]:
    """The pool, with no jobs, targets or overrides before and after."""
    yield pool
    publish(pool)
    # First the jobs: of slots that go during a condor_reconfig the collector may keep the ads, as
    # claimed.
    pool.remove_jobs()
    override(pool, "")


def submit(box: Box, group: str, cores: int, seconds: int, count: int = 1, more: str = "") -> int:
    return box.submit(jobs(group, cores, count, seconds, more))


def override(box: Box, text: str) -> None:
    box.write_config(NODE, text, OVERRIDES)
    box.reconfig(NODE)


def cores_by_group(box: Box) -> Counter[str]:
    """Cores of dynamic slots by group."""
    return held(box, NODE)


def watched(box: Box, seconds: float = WATCHED_SECONDS) -> list[Counter[str]]:
    """`cores_by_group` over and over, for so long."""
    until = time.monotonic() + seconds
    seen = []
    while time.monotonic() < until:
        seen.append(cores_by_group(box))
        time.sleep(0.2)
    return seen


NO_GRACE = "SHARECTL_GRACE_SECONDS = 0\n"


def saturated(box: Box) -> None:
    """Fill the node with short single-core jobs of the held-back group; more wait."""
    for seconds in (3, 4, 5, 7):
        submit(box, "alice", 1, seconds, 100)
    box.wait_until(lambda: cores_by_group(box)["alice"] == CORES, 60, "alice has the whole node")


def test_a_target_moves_cores_to_the_helped_group_and_the_cap_holds(box: Box) -> None:
    override(box, NO_GRACE)
    saturated(box)
    submit(box, "cms.pilot", 8, 600)
    without_target = watched(box)
    assert max(held["cms"] for held in without_target) == 0, (
        "by itself HTCondor gives cms its cores"
    )

    publish(box, f"wn-001 alice {CAP} cms 8")
    submit(box, "lhcb", 1, 4, 20)
    submit(box, "lhcb", 1, 4, 20, FORGED)
    box.wait_until(lambda: cores_by_group(box)["cms"] == 8, 60, "cms runs")
    box.wait_until(lambda: cores_by_group(box)["alice"] == CAP, 90, "alice has its cap")
    with_target = watched(box)
    assert max(held["alice"] for held in with_target) == CAP, "and no core more"
    assert max(held["lhcb"] for held in with_target) == 0, (
        "no third group, whatever its jobs have written in them"
    )
    assert min(held["cms"] for held in with_target) == 8

    publish(box)
    box.wait_until(
        lambda: sum(cores_by_group(box).values()) == CORES,
        60,
        "without a target all cores are used",
    )


def test_without_its_claim_worklife_a_target_moves_nothing(box: Box) -> None:
    override(box, NO_GRACE + "CLAIM_WORKLIFE = 1200\n")
    saturated(box)
    submit(box, "cms.pilot", 8, 600)
    publish(box, f"wn-001 alice {CAP} cms 8")
    box.wait_until(
        lambda: partitionable(box, NODE).get("t1_Targetcores") == [CAP, 8],
        30,
        "the node has its target",
    )
    assert max(held["cms"] for held in watched(box)) == 0, "alice's claims go on from job to job"


def test_the_node_counts_the_held_back_group_as_it_is(box: Box) -> None:
    """The roll-up in the partitionable slot is whole numbers, those of dynamic slots."""
    override(box, NO_GRACE)
    most = CORES - 8
    publish(box, f"wn-001 alice {most} cms 8")
    box.wait_until(
        lambda: partitionable(box, NODE).get("t1_Targetcores") == [most, 8],
        60,
        "the node has its target",
    )
    submit(box, "alice", 1, 5, 200)
    box.wait_until(lambda: cores_by_group(box)["alice"] > 0, 60, "alice runs")
    lists = []

    def look() -> int:
        """Cores of alice, by the roll-up."""
        ad = partitionable(box, NODE)
        lists.append((ad["Childt1_HeldBackCores"], ad["ChildJobStart"], ad["ChildCpus"]))
        return sum(cores for cores in lists[-1][0] if isinstance(cores, int))

    box.wait_until(lambda: look() == most, 90, "alice has all that she may have")
    submit(box, "cms", 8, 5, 20)
    until = time.monotonic() + WATCHED_SECONDS
    while time.monotonic() < until:
        look()
        time.sleep(0.1)
    assert all(isinstance(cores, int) for held, _, _ in lists for cores in held), lists
    assert max(sum(held) for held, _, _ in lists) == most
    assert any(isinstance(start, int) for _, starts, _ in lists for start in starts), (
        "JobStart rolls up"
    )
    assert all(len(held) == len(starts) == len(cpus) for held, starts, cpus in lists)


def first_start_after_multicore(box: Box) -> float:
    """Seconds from the end of a multicore job to the first start of a single-core job."""
    box.wait_until(
        lambda: "MC_GRACE" in partitionable(box, NODE), 30, "the node has looked at its cores"
    )
    multicore = submit(box, "cms", CORES, 8)
    box.wait_until(lambda: cores_by_group(box)["cms"] == CORES, 60, "the multicore job runs")
    for group, more in (("cms", ""), ("lhcb", ""), ("lhcb", FORGED)):
        submit(box, group, 1, 60, 4, more)
    history = [
        "condor_history",
        "-af",
        "CompletionDate",
        "-constraint",
        f"ClusterId == {multicore}",
    ]

    def ended() -> str:
        return box.run(history, host=ACCESS).stdout.strip()

    end = float(box.wait_until(ended, 60, "the multicore job is over"))

    def started() -> list[int]:
        """From the slots: JobStartDate of a job is set even if the node refuses it then."""
        busy = [
            slot for slot in slots(box, NODE) if slot["Activity"] == "Busy" and "JobStart" in slot
        ]
        return [slot["JobStart"] for slot in busy if slot["JobId"] != f"{multicore}.0"]

    starts = box.wait_until(started, GRACE_SECONDS + 60, "single-core jobs start")
    return min(starts) - end


def test_single_core_jobs_wait_out_grace_where_a_multicore_job_ended(box: Box) -> None:
    """Those of the same user too, who would take over its claim; and those that forge."""
    waited = first_start_after_multicore(box)
    assert waited >= GRACE_SECONDS - 1  # times in ads are whole seconds


def test_without_sharectl_a_single_core_job_is_next(box: Box) -> None:
    """One of the same user, in the multicore job's own claim and with all its cores."""
    override(box, "SHARECTL_ENABLED = False\n")
    assert first_start_after_multicore(box) < GRACE_SECONDS - 1
    assert cores_by_group(box)["cms"] == CORES
    assert max(slot["Cpus"] for slot in slots(box, NODE) if slot["SlotType"] == "Dynamic") == CORES


def test_before_the_first_cron_run_jobs_flow_and_forging_gains_nothing(open_box: OpenBox) -> None:
    spec = BoxSpec(
        execute_points=(ExecutePoint(NODE, CORES),),
        access_points=(ACCESS,),
        execute_config=DEPLOYED + "STARTD_CRON_JOBLIST =\n",
    )
    with open_box(spec) as box:
        clusters = submit(box, "lhcb", 1, 60, 3), submit(box, "lhcb", 1, 60, 3, FORGED)
        running = " || ".join(f"ClusterId == {cluster}" for cluster in clusters)
        box.wait_until(
            lambda: len(box.jobs(f"JobStatus == 2 && ({running})")) == 6, 60, "all of them run"
        )
        assert "t1_Targetcores" not in partitionable(box, NODE)


def test_the_negotiator_takes_the_quotas_of_the_pledges(box: Box) -> None:
    query = ["condor_status", "-any", "-constraint", 'MyType == "Accounting" && IsAccountingGroup']

    def advertised() -> list[str]:
        return box.run([*query, "-af", "Name", "ConfigQuota"]).stdout.splitlines()

    groups = box.wait_until(advertised, 30, "groups are advertised")
    quotas = {name: float(quota) for name, quota in map(str.split, groups)}
    pledges = {"alice": 71400, "atlas": 105300, "cms": 87100, "lhcb": 60000}
    total = sum(pledges.values())
    assert {name: pytest.approx(pledge / total, abs=1e-6) for name, pledge in pledges.items()} == {
        name: quota for name, quota in quotas.items() if name != "<none>"
    }
