"""`sharectl snippets` on a pool: switched on by condor_reconfig, and off, and as it was before."""

from __future__ import annotations

import re

from poolbox import Box, BoxSpec, ExecutePoint
from sharectl.check.snippets import ROLES
from tests.pool.deployed import CHECKOUT, jobs, partitionable
from tests.pool.sharectl_command import bare

NODE, ACCESS = "wn-001.example.org", "ap-1.example.org"
SITES_START = "TARGET.JobUniverse == 5"
SPEC = BoxSpec(
    execute_points=(ExecutePoint(NODE),),
    access_points=(ACCESS,),
    execute_config=f"START = {SITES_START}\n",
)
LATER = (
    f"STARTD_CRON_JOB_CTL_EXECUTABLE = {CHECKOUT}/startd_cron/job_ctl.py\n"
    "SHARECTL_SOURCE = file:$(LOCAL_DIR)/../../shared/sharectl.txt\n"
    "SHARECTL_JOB_CTL_PERIOD_SECONDS = 3\n"
)


def snippets(box: Box, host: str, action: str, *words: str, expect: int = 0) -> str:
    """Output of the command on a host of the pool."""
    configured = str(box.local_directory(host) / "condor_config")
    done = bare("snippets", action, "--role", *words, CONDOR_CONFIG=configured)
    assert done.returncode == expect, done.stdout[-2000:] + done.stderr
    return done.stdout


def configuration(box: Box, host: str) -> list[str]:
    """Knobs of a host, but for those of the process that prints them."""
    lines = box.run(["condor_config_val", "-dump"], host=host).stdout.splitlines()
    return [line for line in lines if not re.match(r"#|P?PID = ", line)]


def attributes(box: Box) -> dict[str, object]:
    """Attributes of sharectl in the slot, and its START."""
    ad = partitionable(box, NODE)
    return {name: ad[name] for name in ad if name.startswith("t1_") or name in ("START", "Start")}


def test_a_node_is_switched_on_and_is_as_before_when_it_is_switched_off(box: Box) -> None:
    before = attributes(box), configuration(box, NODE)
    assert before[0].keys() == {"Start", "t1_wn_hs06"}
    assert "+START @=end" in snippets(box, NODE, "install", "execute", expect=1)
    assert configuration(box, NODE) == before[1]

    # The programs are not where a package puts them.
    box.write_config(NODE, LATER)
    printed = snippets(box, NODE, "install", "execute", "--yes")
    assert "condor_reconfig" in printed.splitlines()[-1]
    assert attributes(box) == before[0], "nothing is switched on by itself"
    box.reconfig(NODE)

    def acts() -> bool:
        ad = attributes(box)
        clauses = "t1_GraceAdmits" in str(ad.get("Start"))
        return clauses and {"t1_Enabled", "t1_JobCtlReason"} <= ad.keys()

    box.wait_until(acts, "the slot has the clauses, and job_ctl.py has run")
    box.submit(jobs("cms", 1, 1, 1), ACCESS)
    box.wait_until(lambda: not box.jobs(), "a job runs as before")

    snippets(box, NODE, "remove", "execute", "--yes")
    box.write_config(NODE, "")
    assert configuration(box, NODE) == before[1]
    box.reconfig(NODE)
    box.wait_until(lambda: attributes(box) == before[0], "START is as before")


def test_a_file_read_later_that_throws_the_clauses_away_is_named(box: Box) -> None:
    box.write_config(NODE, LATER + "START = True\n")
    try:
        printed = snippets(box, NODE, "install", "execute", "--yes", expect=1)
    finally:
        box.write_config(NODE, "")
    folder = box.local_directory(NODE) / "config.d"
    assert f"{folder}/90-written.config:4: START drops the value of {folder}/60-" in printed
    assert not (folder / ROLES["execute"].file).exists()


def test_an_access_point_is_switched_on_and_off(box: Box) -> None:
    asked = ["condor_config_val", "-schedd", "JOB_TRANSFORM_NAMES"]

    def transforms() -> str:
        return box.run(asked, host=ACCESS, check=False).stdout

    before = transforms()
    for action, wanted in (("install", True), ("remove", False)):
        snippets(box, ACCESS, action, "access", "--yes")
        box.reconfig(ACCESS)
        box.wait_until(lambda: ("SharectlPower" in transforms()) == wanted, action)  # noqa: B023 - at once
    assert transforms() == before
