"""Node jobs under a real startd with two partitionable slots and two static ones."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import job_ctl
import mc_grace
from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool import deployed

pytestmark = pytest.mark.semantics

NODE = "wn-001.example.org"
SOURCES = Path(__file__).parents[2] / "startd_cron"
GRACE_SECONDS = 8
PUBLISHED = (
    # Undefined where no document tells it.
    *(line.split(" ")[0] for line in job_ctl.AD.splitlines() if "MulticorePending =" not in line),
    *mc_grace.FAIL_SAFE,
    mc_grace.REASON,
    mc_grace.TIME,
)

FIRST = f'Name == "slot1@{NODE}"'
# The jobs run when the startd starts and at condor_reconfig: publications stay in between.
CONFIG = f"""\
NUM_CPUS = 24
SLOT_TYPE_1 = cpus=8, mem=25%
NUM_SLOTS_TYPE_1 = 2
SLOT_TYPE_2 = cpus=4, mem=25%
SLOT_TYPE_2_PARTITIONABLE = False
NUM_SLOTS_TYPE_2 = 2
STARTD_CRON_LOG_NON_ZERO_EXIT = True
STARTD_CRON_JOBLIST = JOB_CTL MC_GRACE
STARTD_CRON_JOB_CTL_EXECUTABLE = {SOURCES}/job_ctl.py
STARTD_CRON_JOB_CTL_ARGS = --source file:{{shared}}/sharectl.txt --host $(FULL_HOSTNAME) \\
    --state $(LOG)/job_ctl.state
STARTD_CRON_MC_GRACE_EXECUTABLE = {SOURCES}/mc_grace.py
STARTD_CRON_MC_GRACE_ARGS = --grace-seconds {GRACE_SECONDS} --state $(LOG)/mc_grace.state
"""
SCHEDULE = "".join(
    f"STARTD_CRON_{name}_{knob}\n"
    for name in ("JOB_CTL", "MC_GRACE")
    for knob in ("PERIOD = 1h", "KILL = True", "RECONFIG_RERUN = True")
)


SPEC = BoxSpec(
    (ExecutePoint(NODE, cores=24, config="STARTD_CRON_JOBLIST =\n"),),
    access_points=("ap-1.example.org",),
)


def prepare(box: Box) -> None:
    box.stop_host(NODE)
    box.write_config(NODE, CONFIG.format(shared=box.shared_directory) + SCHEDULE)
    box.start_host(NODE)
    ran = "t1_McGraceTime isnt undefined"
    box.wait_until(lambda: len(values(box, constraint=ran, known=True)) == 4, "they have run")


def values(box: Box, *attributes: str, constraint: str = "True", known: bool = False) -> list[str]:
    """A line for every slot, by name; of the startd, or as the collector knows them."""
    query = ["condor_status", *(() if known else ("-direct", NODE)), "-constraint", constraint]
    return box.run([*query, "-af:V", "Name", *attributes], host=NODE).stdout.splitlines()


def look_again(box: Box) -> None:
    """Have both jobs look at the node as it is now."""
    time.sleep(max(0.0, int(time.time()) + 1 - time.time()))  # their clock counts whole seconds
    begin = int(time.time())
    box.reconfig(NODE)
    fresh = f"t1_McGraceTime >= {begin} && t1_JobCtlTime >= {begin} && SlotID == 1"
    box.wait_until(lambda: values(box, constraint=fresh), "both node jobs have run again")


def run_jobs(box: Box, *jobs: tuple[str, int, int]) -> None:
    """Have jobs run: accounting group as a ClassAd literal, cores, slot."""
    for group, cores, slot in jobs:
        names = (f"My.AccountingGroup = {group}", f"My.AcctGroup = {group}")
        place = f"requirements = TARGET.SlotID == {slot}"
        box.submit(deployed.jobs("", cores, 1, 3600, place, *names))
    deployed.run(box, len(jobs))


def test_every_slot_in_the_collector_has_every_attribute(box: Box) -> None:
    run_jobs(box, ('"cms.x"', 4, 1))
    look_again(box)
    box.wait_until(lambda: len(values(box, known=True)) == 5, "the dynamic slot is known")
    for line in values(box, *(f"{name} isnt undefined" for name in PUBLISHED), known=True):
        assert line.split(" ")[1:] == ["true"] * len(PUBLISHED)


def test_cores_count_by_group_in_slots_of_every_kind(box: Box) -> None:
    run_jobs(
        box,
        ('"Cms.Prod.x"', 4, 1), ('"cms.y"', 1, 1), ('"atlas.z"', 3, 1), ("undefined", 2, 2),
        ('"lhcb.a"', 1, 3),
        (r'"a\"b}:7"', 1, 2),
    )  # fmt: skip
    look_again(box)
    (line,) = values(box, "t1_CurrentJobs", constraint=FIRST)
    # A static slot is held as a whole.
    assert line.split(" ", 1)[1] == '"cms:5:lhcb:4:atlas:3:other:3"'


def test_grace_begins_and_ends_between_two_runs_in_the_slot_concerned(box: Box) -> None:
    run_jobs(box, ('"cms.x"', 8, 1), ('"cms.y"', 1, 2))
    look_again(box)
    ran = values(box, "t1_McGraceTime", constraint=FIRST)

    def grace() -> list[str]:
        lines = values(box, "MC_GRACE", constraint="DynamicSlot isnt true")
        return [line.split(" ")[1] for line in sorted(lines)]

    assert grace() == ["false", "false", "false", "false"]
    box.run(["condor_rm", "-constraint", "RequestCpus == 8"], host="ap-1.example.org")
    box.wait_until(lambda: grace()[0] == "true", "the cores that the job leaves are in grace")
    assert grace() == ["true", "false", "false", "false"]
    box.wait_until(lambda: grace()[0] == "false", "grace is over", GRACE_SECONDS + 20)
    assert values(box, "t1_McGraceTime", constraint=FIRST) == ran
