"""Ads of the collector are a startd's target, and the collector hears of news at once.

Targets by file and web server are those of test_faults_of_delivery.py.
"""

from __future__ import annotations

import time
from pathlib import Path

from poolbox import Box, BoxSpec, ExecutePoint
from tests.node_fakes import document

NODE = "wn-001.example.org"
JOB_CTL = Path(__file__).parents[2] / "startd_cron" / "job_ctl.py"
UPDATE_SECONDS = 600
SOON_SECONDS = 10
WAIT_SECONDS = 60
PERIOD_SECONDS = 3
"""HTCondor kills a run that is not through by then, and on a busy machine it is not within 1 s."""
# The startd speaks up by itself so rarely that what the collector hears soon, it was told.
CONFIG = f"""\
UPDATE_INTERVAL = {UPDATE_SECONDS}
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
PLAN = """\
MyType = "SharectlPlan"
Name = "sharectl"
t1_TargetKnownGroups = "alice,cms"
t1_TargetSequence = {sequence}
t1_TargetGenerated = {now}
t1_TargetValidUntil = {until}
t1_MulticorePending = False
"""
MALLORY = {
    "_CONDOR_SEC_CLIENT_AUTHENTICATION_METHODS": "CLAIMTOBE",
    "_CONDOR_SEC_CLAIMTOBE_USER": "mallory",
}
NOBODY = {"_CONDOR_SEC_CLIENT_AUTHENTICATION": "NEVER"}


SPEC = BoxSpec((ExecutePoint(NODE, cores=4),))


def configure(box: Box, options: str) -> str:
    """Have job_ctl run with these options; where the startd listens."""
    (box.local_directory(NODE) / "log" / "job_ctl.state").unlink(missing_ok=True)
    begin = int(time.time()) + 1
    box.write_config(NODE, CONFIG.format(options=options))
    box.reconfig(NODE)
    address = box.run(["condor_status", "-limit", "1", "-af", "MyAddress"]).stdout.strip()
    box.wait_until(
        lambda: int(told(box, "t1_JobCtlTime ?: 0", address)) > begin, 60, "job_ctl runs so"
    )
    return address


def told(box: Box, attribute: str, address: str = "") -> str:
    """An attribute of the node: what the startd at ``address`` has, or what the collector has."""
    where = ["-direct", address] if address else []
    return box.run(
        ["condor_status", *where, "-limit", "1", "-af:V", attribute], host=NODE
    ).stdout.strip()


def shows(box: Box, value: str, attribute: str, address: str = "") -> None:
    """Wait until it has that value."""
    what = f"{attribute} = {value}, {address and 'there'}"
    box.wait_until(lambda: told(box, attribute, address) == value, WAIT_SECONDS, what)


def advertise(box: Box, now: int, name: str = "a", cap: int = 3, **person: str) -> None:
    """Send the ad of a target for the node, as the pool's user or as somebody else."""
    claimed = sender(box) if person else "x"
    text = AD.format(name=name, node=NODE, cap=cap, now=now, until=now + 600, claimed=claimed)
    path = box.shared_directory / "ad"
    path.write_text(text)
    box.run(["condor_advertise", "UPDATE_AD_GENERIC", str(path)], host=NODE, environment=person)


def sender(box: Box) -> str:
    """The collector's name for the pool's user."""
    path = box.shared_directory / "probe"
    path.write_text('MyType = "Probe"\nName = "probe"\n')
    box.run(["condor_advertise", "UPDATE_AD_GENERIC", str(path)], host=NODE)
    query = ["condor_status", "-any", "-constraint", 'MyType == "Probe"', "-af"]

    def identity() -> str:
        return box.run([*query, "AuthenticatedIdentity"]).stdout.strip()

    return box.wait_until(identity, WAIT_SECONDS, "the probe is there")


def text_for(cap: int, sequence: int) -> str:
    return document(f"{NODE} alice {cap} cms 8", now=int(time.time()), sequence=sequence)


def test_a_target_by_collector_from_its_identity_only(box: Box) -> None:
    now = int(time.time())
    address = configure(box, f"--source collector: --identity {sender(box)}")
    shows(box, '"no-ad"', "t1_JobCtlReason", address)
    advertise(box, now + 5, "b", 1, **MALLORY)
    shows(box, '"forged"', "t1_JobCtlReason", address)
    advertise(box, now + 6, "c", 1, **NOBODY)
    advertise(box, now)
    shows(box, "{ 3,8 }", "t1_Targetcores", address)
    assert told(box, "t1_TargetSequence", address) == str(now)
    assert told(box, "t1_MulticorePending", address) == "undefined"
    plan = box.shared_directory / "plan"
    plan.write_text(PLAN.format(sequence=now + 9, now=now, until=now + 600))
    box.run(["condor_advertise", "UPDATE_AD_GENERIC", str(plan)], host=NODE)
    shows(box, "false", "t1_MulticorePending", address)
    assert told(box, "t1_MulticorePendingUntil", address) == str(now + 600)
    assert told(box, "t1_JobCtlReason", address) == '"no-line"', "the plan is newer than the target"


def test_the_collector_hears_of_news_at_once(box: Box, pool_suite: str) -> None:
    file, now = box.shared_directory / "news.txt", int(time.time())
    file.write_text(text_for(3, now))
    address = configure(box, f"--source file:{file}")
    shows(box, "{ 3,8 }", "t1_Targetcores", address)
    time.sleep(3)  # the startd's own news of its new configuration are through
    file.write_text(text_for(2, now + 1))
    shows(box, "{ 2,8 }", "t1_Targetcores", address)
    if pool_suite == "trixie":  # 23.9.6 sends the daemon's ad only (HTCONDOR-3526)
        time.sleep(SOON_SECONDS)
        assert told(box, "t1_Targetcores") != "{ 2,8 }"
        return
    shows(box, "{ 2,8 }", "t1_Targetcores")
    updated = told(box, "LastHeardFrom")
    again = int(told(box, "t1_JobCtlTime", address)) + 2 * PERIOD_SECONDS
    box.wait_until(
        lambda: int(told(box, "t1_JobCtlTime", address)) >= again, WAIT_SECONDS, "another look"
    )
    assert told(box, "LastHeardFrom") == updated, "nothing is new, but the collector was told"
