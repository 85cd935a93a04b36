"""Ads of the collector are a startd's target, and the collector hears of news at once.

Targets by file and web server are those of test_faults_of_delivery.py.
"""

from __future__ import annotations

import time
from pathlib import Path

from poolbox import Box, BoxSpec, ExecutePoint
from sharectl.condor.pool_look import Version
from tests.htcondor_releases import SENDS_SLOTS, holds
from tests.node_fakes import document

NODE, KNOWN = "wn-001.example.org", "pool@example.org"
JOB_CTL = Path(__file__).parents[2] / "startd_cron" / "job_ctl.py"
SOON_SECONDS, WAIT_SECONDS = 10, 60
PERIOD_SECONDS = 3
"""HTCondor kills a run that is not through by then, and on a busy machine it is not within 1 s."""
# The startd speaks up by itself so rarely that what the collector hears soon, it was told.
CONFIG = f"""\
UPDATE_INTERVAL = 600
STARTD_CRON_JOBLIST = JOB_CTL
STARTD_CRON_JOB_CTL_EXECUTABLE = {JOB_CTL}
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
SPEC = BoxSpec((ExecutePoint(NODE, cores=4),))
BY_COLLECTOR = ("-constraint", "PartitionableSlot")


def configure(box: Box, options: str) -> None:
    (box.local_directory(NODE) / "log" / "job_ctl.state").unlink(missing_ok=True)
    begin = int(time.time()) + 1
    box.write_config(NODE, CONFIG.format(options=options))
    box.reconfig(NODE)
    box.wait_until(lambda: int(told(box, "t1_JobCtlTime ?: 0")) > begin, "job_ctl runs so")


def told(box: Box, attribute: str, *where: str) -> str:
    """An attribute of the node as its startd has it, or as the collector has it."""
    query = ["condor_status", *(where or ("-direct", NODE)), "-limit", "1", "-af:V", attribute]
    return box.run(query, host=NODE).stdout.strip()


def shows(box: Box, value: str, attribute: str, *where: str) -> None:
    what = f"{attribute} = {value} {where}"
    box.wait_until(lambda: told(box, attribute, *where) == value, what, WAIT_SECONDS)


def advertise(box: Box, now: int, name: str = "a", cap: int = 3, **person: str) -> None:
    """Send the ad of a target for the node, as the pool's user or as somebody else."""
    claimed = KNOWN if person else "x"
    text = AD.format(name=name, node=NODE, cap=cap, now=now, until=now + 600, claimed=claimed)
    path = box.shared_directory / "ad"
    path.write_text(text)
    box.run(["condor_advertise", "UPDATE_AD_GENERIC", str(path)], host=NODE, environment=person)


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
        file.write_text(document(f"{NODE} alice {cap} cms 8", now=now, sequence=sequence))

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
