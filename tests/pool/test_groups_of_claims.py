"""Caps where users choose their groups, where a dedicated scheduler hands claims on, and where a cycle takes many cores.

And a site's own expressions that end in a comment, on a node each.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool.conftest import OpenBox
from tests.pool.test_live_actuation import CONSUMPTION_POLICY

pytestmark = pytest.mark.semantics

CHECKOUT = Path(__file__).parents[2]
ACCESS = "ap-1.example.org"
CORES, CAP, MULTICORE = 16, 4, 8
LOOKS = 20
"""Looks after the end of the first parallel job: its claims go on within some seconds."""
DEPLOYED = f"""\
include : {CHECKOUT}/config.d/60-sharectl-execute-point.conf
SHARECTL_SOURCE = file:$(LOCAL_DIR)/../../shared/sharectl.txt
STARTD_CRON_JOB_CTL_EXECUTABLE = {CHECKOUT}/startd_cron/job_ctl.py
STARTD_CRON_MC_GRACE_EXECUTABLE = {CHECKOUT}/startd_cron/mc_grace.py
SHARECTL_GRACE_SECONDS = 1
SHARECTL_JOB_CTL_STALE_SECONDS = 300
SHARECTL_MC_GRACE_STALE_SECONDS = 300
"""
LIVE = DEPLOYED + "SHARECTL_JOB_CTL_PERIOD_SECONDS = 5\n"
CRON = (
    DEPLOYED
    + "SHARECTL_ACTUATION = cron\nSHARECTL_JOB_CTL_PERIOD_SECONDS = 20\n"
    + CONSUMPTION_POLICY
)
DEDICATED = (
    f'DedicatedScheduler = "DedicatedScheduler@{ACCESS}"\nSTARTD_ATTRS = $(STARTD_ATTRS) '
    "DedicatedScheduler\n"
)
COMMENTED = """\
START = TARGET.JobUniverse == 5 // no others (
CLAIM_WORKLIFE = 600 // ten minutes
DEFAULT_DRAINING_START_EXPR = False // never
"""
CHOSEN, HANDED_ON, TAKEN, COMMENTS = "wn-001", "wn-002", "wn-003", "wn-004"
NODES = {
    CHOSEN: LIVE,
    HANDED_ON: LIVE + DEDICATED,
    TAKEN: CRON,
    COMMENTS: COMMENTED + LIVE,
}


@pytest.fixture(scope="module")
def box(open_box: OpenBox) -> Iterator[Box]:
    spec = BoxSpec(
        execute_points=tuple(
            ExecutePoint(f"{node}.example.org", CORES, config=config)
            for node, config in NODES.items()
        ),
        access_points=(ACCESS,),
        access_config="CLAIM_PARTITIONABLE_LEFTOVERS = False\n",
        groups={"alice": 0.4, "cms": 0.3, "lhcb": 0.3},
    )
    with open_box(spec) as running:
        yield running


def slots(box: Box, node: str) -> list[dict[str, Any]]:
    asked = ["condor_status", "-direct", f"{node}.example.org", "-json"]
    return [ad for ad in json.loads(box.run(asked).stdout or "[]") if "Cpus" in ad]


def held(box: Box, node: str) -> Counter[str]:
    """Cores by accounting group, as the startd has them."""
    cores: Counter[str] = Counter()
    for slot in slots(box, node):
        if slot.get("DynamicSlot"):
            cores[str(slot.get("AccountingGroup")).partition(".")[0]] += int(slot["Cpus"])
    return cores


def submit(box: Box, node: str, count: int, cores: int, *lines: str) -> int:
    described = (
        *("executable = /bin/sleep", "transfer_executable = False", f"request_cpus = {cores}"),
        *(
            "request_memory = 8",
            "request_disk = 8",
            f'requirements = TARGET.Machine == "{node}.example.org"',
        ),
        *lines,
        f"queue {count}",
    )
    return box.submit("".join(f"{line}\n" for line in described), ACCESS)


def in_group(name: str, seconds: int = 600) -> tuple[str, ...]:
    return (f"accounting_group = {name}", "accounting_group_user = bob", f"arguments = {seconds}")


def chosen(acct_group: str, accounting_group: str) -> tuple[str, ...]:
    return (
        f'+AcctGroup = "{acct_group}"',
        f'+AccountingGroup = "{accounting_group}"',
        "arguments = 600",
    )


def publish(box: Box) -> None:
    """Targets for all nodes but the one with comments, and wait until they are in force."""
    nodes = [node for node in NODES if node != COMMENTS]
    fresh = box.shared_directory / "fresh"
    fresh.write_text("".join(f"{node} alice {CAP} cms {MULTICORE}\n" for node in nodes))
    fresh.replace(box.shared_directory / "sharectl.txt")

    def in_force() -> bool:
        seen = [
            slot.get("t1_Targetcores")
            for node in nodes
            for slot in slots(box, node)
            if slot["SlotID"] == 1
        ]
        return bool(seen) and all(cores == [CAP, MULTICORE] for cores in seen)

    box.wait_until(in_force, 90, "the targets are in force")


def test_no_cap_is_passed_by_groups_that_users_choose(box: Box) -> None:
    """Each of the three passed the cap when START went by AcctGroup, did not look at claims, or at a cycle's own copy."""
    parallel = (f"machine_count = {MULTICORE}", "universe = parallel")
    first = submit(box, HANDED_ON, 1, 1, *in_group("lhcb", 60), *parallel)
    box.wait_until(
        lambda: held(box, HANDED_ON)["lhcb"] == MULTICORE, 120, "a dedicated scheduler holds claims"
    )
    publish(box)
    submit(box, HANDED_ON, 1, 1, *in_group("alice"), *parallel)
    submit(box, CHOSEN, CORES, 1, *chosen("lhcb2", "alice.bob"))
    submit(box, CHOSEN, 1, MULTICORE, *chosen("cms", "alice.eve"))
    helped = submit(box, CHOSEN, 1, MULTICORE, *chosen("alice", "cms.bob"))
    submit(box, TAKEN, CORES, 1, *in_group("alice"))
    most: Counter[str] = Counter()
    looks_since = 0

    def watched() -> bool:
        """Whether the caps are reached, the helped job runs, and the parallel job's claims could be handed on."""
        nonlocal looks_since
        for node in (CHOSEN, HANDED_ON, TAKEN):
            most[node] = max(most[node], held(box, node)["alice"])
        runs = box.jobs(f"ClusterId == {helped} && JobStatus == 2")
        looks_since += not box.jobs(f"ClusterId == {first}")
        time.sleep(1)
        return bool(runs) and looks_since >= LOOKS and min(most[CHOSEN], most[TAKEN]) >= CAP

    box.wait_until(
        watched, 240, "the caps are reached, and the claims of the parallel job could be handed on"
    )
    assert (most[CHOSEN], most[TAKEN]) == (CAP, CAP)
    assert most[HANDED_ON] <= CAP


def test_comments_of_the_site_break_neither_start_nor_claims(box: Box) -> None:
    """HTCondor 23.9.6 ended the startd, where the snippet followed in the same line."""
    job = submit(box, COMMENTS, 1, 1, *in_group("lhcb"))
    box.wait_until(lambda: box.jobs(f"ClusterId == {job} && JobStatus == 2"), 90, "a job runs")
    (running,) = [slot for slot in slots(box, COMMENTS) if slot.get("DynamicSlot")]
    assert "t1_GraceAdmits" in running["Start"]
    box.reconfig(f"{COMMENTS}.example.org")
    box.wait_until(lambda: slots(box, COMMENTS), 30, "the startd answers after condor_reconfig")
