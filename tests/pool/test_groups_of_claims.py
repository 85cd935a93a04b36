"""Caps where users choose groups, claims are handed on, and a cycle takes many cores.

And, on a node each, a site's own expressions that end in a comment, and a claim that is refused.
"""

from __future__ import annotations

import time
from collections import Counter

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool.deployed import CONSUMPTION_POLICY, held, hold_back, jobs, on, run, slots, snippet

pytestmark = pytest.mark.semantics

ACCESS = "ap-1.example.org"
CORES, CAP, MULTICORE = 16, 4, 8
LOOKS = 12
"""Looks, one a second, after the end of the first parallel job: its claims go on within some."""
STALE = {"job_ctl_stale_seconds": 300, "mc_grace_stale_seconds": 300}
LIVE = snippet(grace_seconds=1, job_ctl_period_seconds=5, **STALE)
CRON = f"{LIVE}SHARECTL_ACTUATION = cron\nSHARECTL_JOB_CTL_PERIOD_SECONDS = 20\n"
DEDICATED = f"""\
DedicatedScheduler = "DedicatedScheduler@{ACCESS}"
STARTD_ATTRS = $(STARTD_ATTRS) DedicatedScheduler
"""
COMMENTED = """\
START = TARGET.JobUniverse == 5 // no others (
CLAIM_WORKLIFE = 600 // ten minutes
DEFAULT_DRAINING_START_EXPR = False // never
"""
# The negotiator puts this attribute into a job's ad while it matches: the node never sees it.
ADMITS_IN_THE_NEGOTIATOR_ONLY = "START = TARGET.SubmitterUserPrio isnt undefined\n"
CHOSEN, HANDED_ON, TAKEN, COMMENTS, REFUSING = (f"wn-{n:03}.example.org" for n in range(1, 6))
CAPPED = (CHOSEN, HANDED_ON, TAKEN)
NODES = {
    CHOSEN: LIVE,
    HANDED_ON: LIVE + DEDICATED,
    TAKEN: CRON + CONSUMPTION_POLICY,
    COMMENTS: COMMENTED + LIVE,
    REFUSING: ADMITS_IN_THE_NEGOTIATOR_ONLY,
}
SPEC = BoxSpec(
    tuple(ExecutePoint(node, CORES, config=text) for node, text in NODES.items()),
    access_points=(ACCESS,),
    access_config="CLAIM_PARTITIONABLE_LEFTOVERS = False\n",
    groups={"alice": 0.4, "cms": 0.3, "lhcb": 0.3},
)


# The pool is not cleaned: the dedicated scheduler keeps claims.


def submit(
    box: Box, node: str, count: int, cores: int, *lines: str, group: str = "", seconds: object = 600
) -> int:
    return box.submit(jobs(group, cores, count, seconds, on(node), *lines), ACCESS)


def chosen(acct_group: str, accounting_group: str) -> tuple[str, ...]:
    return f'+AcctGroup = "{acct_group}"', f'+AccountingGroup = "{accounting_group}"'


def test_no_cap_is_passed_by_groups_that_users_choose(pool: Box) -> None:
    """Each of the three once passed the cap: by AcctGroup, by claims, by a cycle's own copy."""
    parallel = (f"machine_count = {MULTICORE}", "universe = parallel")
    leave = pool.shared_directory / "leave"
    until_told = f"1; until test -e {leave}; do sleep 0.5; done"
    first = submit(pool, HANDED_ON, 1, 1, *parallel, group="lhcb", seconds=until_told)
    pool.wait_until(lambda: held(pool, HANDED_ON)["lhcb"] == MULTICORE, "it holds claims")
    hold_back(pool, CAP, *CAPPED)
    submit(pool, HANDED_ON, 1, 1, *parallel, group="alice")
    leave.touch()
    submit(pool, CHOSEN, CORES, 1, *chosen("lhcb2", "alice.bob"))
    submit(pool, CHOSEN, 1, MULTICORE, *chosen("cms", "alice.eve"))
    helped = submit(pool, CHOSEN, 1, MULTICORE, *chosen("alice", "cms.bob"))
    submit(pool, TAKEN, CORES, 1, group="alice")
    most: Counter[str] = Counter()
    looks_since = 0

    def watched() -> bool:
        """True once caps are reached, the helped job runs, and claims could be handed on."""
        nonlocal looks_since
        for node in CAPPED:
            most[node] = max(most[node], held(pool, node)["alice"])
        runs = pool.jobs(f"ClusterId == {helped} && JobStatus == 2")
        looks_since += not pool.jobs(f"ClusterId == {first}")
        time.sleep(1)
        return bool(runs) and looks_since >= LOOKS and min(most[CHOSEN], most[TAKEN]) >= CAP

    pool.wait_until(watched, "caps are reached, and claims could be handed on")
    assert (most[CHOSEN], most[TAKEN]) == (CAP, CAP)
    assert most[HANDED_ON] <= CAP


def test_comments_of_the_site_break_neither_start_nor_claims(pool: Box) -> None:
    """HTCondor 23.9.6 ended the startd, where the snippet followed in the same line."""
    job = submit(pool, COMMENTS, 1, 1, group="lhcb")
    run(pool, 1, f"ClusterId == {job}")
    (running,) = [slot for slot in slots(pool, COMMENTS) if slot.get("DynamicSlot")]
    assert "t1_GraceAdmits" in running["Start"]
    pool.reconfig(COMMENTS)
    pool.wait_until(lambda: slots(pool, COMMENTS), "the startd answers after condor_reconfig")


def test_a_job_whose_claim_was_refused_is_offered_again_in_the_next_cycles(pool: Box) -> None:
    """docs/method.md counts on it."""
    submit(pool, REFUSING, 1, 1)

    def refused() -> int:
        return pool.log_text(ACCESS, "SCHEDD").count("Request was NOT accepted for claim")

    before = refused()
    pool.wait_until(lambda: refused() >= before + 3, "the node refuses the job again and again")
