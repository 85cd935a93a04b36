"""Node jobs under real startds: slots of two kinds, ads of the collector, and news of a node."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import job_ctl
import mc_grace
from poolbox import Box, BoxSpec, ExecutePoint
from sharectl.condor.pool_look import Version
from tests.htcondor_releases import SENDS_SLOTS, holds
from tests.node_fakes import document
from tests.pool import deployed

pytestmark = pytest.mark.semantics

NODE, SOURCED, KNOWN = "wn-001.example.org", "wn-002.example.org", "pool@example.org"
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
    (
        ExecutePoint(NODE, cores=24, config="STARTD_CRON_JOBLIST =\n"),
        ExecutePoint(SOURCED, cores=4),
    ),
    access_points=("ap-1.example.org",),
)


def prepare(box: Box) -> None:
    box.stop_host(NODE)
    box.write_config(NODE, CONFIG.format(shared=box.shared_directory) + SCHEDULE)
    box.start_host(NODE)
    ran = "t1_McGraceTime isnt undefined"
    box.wait_until(lambda: len(values(box, constraint=ran, known=True)) == 4, "they have run")


@pytest.fixture(autouse=True)
def _idle(box: Box) -> Iterator[None]:
    yield
    box.remove_jobs()


def values(box: Box, *attributes: str, constraint: str = "True", known: bool = False) -> list[str]:
    """A line for every slot, by name; of the startd, or as the collector knows them."""
    where = f'Machine == "{NODE}" && ({constraint})'
    query = ["condor_status", *(() if known else ("-direct", NODE)), "-constraint", where]
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
        place = f'requirements = TARGET.SlotID == {slot} && TARGET.Machine == "{NODE}"'
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


SOON_SECONDS, WAIT_SECONDS = 10, 60
PERIOD_SECONDS = 3
"""HTCondor kills a run that is not through by then, and on a busy machine it is not within 1 s."""
# The startd speaks up by itself so rarely that what the collector hears soon, it was told.
BY_SOURCE = f"""\
UPDATE_INTERVAL = 600
STARTD_CRON_JOBLIST = JOB_CTL
STARTD_CRON_JOB_CTL_EXECUTABLE = {SOURCES}/job_ctl.py
STARTD_CRON_JOB_CTL_ARGS = --host $(FULL_HOSTNAME) --state $(LOG)/job_ctl.state {{options}}
STARTD_CRON_JOB_CTL_PERIOD = {PERIOD_SECONDS}s
STARTD_CRON_JOB_CTL_KILL = True
STARTD_CRON_JOB_CTL_RECONFIG_RERUN = True
STARTD_CRON_LOG_NON_ZERO_EXIT = True
"""
AD = """\
MyType = "SharectlTarget"
Name = "sharectl-{name}"
t1_TargetNode = "{node}"
t1_TargetGroups = {{"alice","cms"}}
t1_Targetcores = {{{cap},8}}
t1_TargetKnownGroups = "alice,cms"
t1_TargetSequence = {now}
t1_TargetGenerated = {now}
t1_TargetValidUntil = {until}
AuthenticatedIdentity = "{claimed}"
"""
MALLORY = {
    "_CONDOR_SEC_CLIENT_AUTHENTICATION_METHODS": "CLAIMTOBE",
    "_CONDOR_SEC_CLAIMTOBE_USER": "mallory",
}
NOBODY = {"_CONDOR_SEC_CLIENT_AUTHENTICATION": "NEVER"}
BY_COLLECTOR = ("-constraint", f'PartitionableSlot && Machine == "{SOURCED}"')


def configure(box: Box, options: str) -> None:
    (box.local_directory(SOURCED) / "log" / "job_ctl.state").unlink(missing_ok=True)
    begin = int(time.time()) + 1
    deployed.configure(box, SOURCED, BY_SOURCE.format(options=options))
    box.wait_until(lambda: int(told(box, "t1_JobCtlTime ?: 0")) > begin, "job_ctl runs so")


def told(box: Box, attribute: str, *where: str) -> str:
    """An attribute of the node as its startd has it, or as the collector has it."""
    query = ["condor_status", *(where or ("-direct", SOURCED)), "-limit", "1", "-af:V", attribute]
    return box.run(query, host=SOURCED).stdout.strip()


def shows(box: Box, value: str, attribute: str, *where: str) -> None:
    what = f"{attribute} = {value} {where}"
    box.wait_until(lambda: told(box, attribute, *where) == value, what, WAIT_SECONDS)


def advertise(box: Box, now: int, name: str = "a", cap: int = 3, **person: str) -> None:
    """Send the ad of a target for the node, as the pool's user or as somebody else."""
    claimed = KNOWN if person else "x"
    text = AD.format(name=name, node=SOURCED, cap=cap, now=now, until=now + 600, claimed=claimed)
    path = box.shared_directory / "ad"
    path.write_text(text)
    box.run(["condor_advertise", "UPDATE_AD_GENERIC", str(path)], host=SOURCED, environment=person)


def test_a_target_by_collector_from_its_identity_only(box: Box) -> None:
    now = int(time.time())
    configure(box, f"--source collector: --identity {KNOWN}")
    shows(box, '"no-ad"', "t1_JobCtlReason")
    advertise(box, now + 5, "b", 1, **MALLORY)
    shows(box, '"forged"', "t1_JobCtlReason")
    advertise(box, now + 6, "c", 1, **NOBODY)
    advertise(box, now)
    shows(box, "{ 3,8 }", "t1_Targetcores")
    assert told(box, "t1_TargetSequence") == str(now)


def test_the_collector_hears_of_news_at_once(box: Box, pool_version: Version) -> None:
    file, now = box.shared_directory / "news.txt", int(time.time())

    def write(cap: int, sequence: int) -> None:
        file.write_text(document(f"{SOURCED} alice {cap} cms 8", now=now, sequence=sequence))

    write(3, now)
    configure(box, f"--source file:{file}")
    shows(box, "{ 3,8 }", "t1_Targetcores")
    time.sleep(3)  # the startd's own news of its new configuration are through
    write(2, now + 1)
    shows(box, "{ 2,8 }", "t1_Targetcores")
    if not holds(SENDS_SLOTS, pool_version):
        time.sleep(SOON_SECONDS)
        assert told(box, "t1_Targetcores", *BY_COLLECTOR) != "{ 2,8 }"
        return
    shows(box, "{ 2,8 }", "t1_Targetcores", *BY_COLLECTOR)
    updated = told(box, "LastHeardFrom", *BY_COLLECTOR)
    again = int(told(box, "t1_JobCtlTime")) + 2 * PERIOD_SECONDS
    box.wait_until(lambda: int(told(box, "t1_JobCtlTime")) >= again, "another look", WAIT_SECONDS)
    assert told(box, "LastHeardFrom", *BY_COLLECTOR) == updated, "nothing is new, but it was told"
