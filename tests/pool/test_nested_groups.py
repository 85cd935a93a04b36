"""Groups within groups: what targets of subgroups let in."""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from pathlib import Path

from poolbox import Box, BoxSpec, ExecutePoint, event_log
from poolbox.event_log import EXECUTE, TERMINATED
from sharectl.condor.pool_look import Version
from tests.htcondor_releases import LOGS_CORES, holds
from tests.pool.deployed import jobs, publish, slots, snippet

CORES, CAP, MULTICORE = 12, 4, 8
SHORT, LONG = 12, 3
"""Jobs of the held-back group, and of the helped one, on each node."""
SIBLINGS, STRANGER, BY_CRON, FIRST_PARTS = (f"wn-00{number}.example.org" for number in range(1, 5))
TARGETS = {
    # Held back, helped.
    SIBLINGS: ("alice.user", "alice.prod"),
    STRANGER: ("alice.prod", "cms"),
    BY_CRON: ("alice.user", "alice.prod"),
    FIRST_PARTS: ("alice.user", "alice.prod"),
}
OTHERS = ("alice", "alice.production", "alice.users", "lhcb")
"""Groups that a target of subgroups must not take for one of them."""

NODE = snippet(grace_seconds=1)
MORE = {
    BY_CRON: "SHARECTL_ACTUATION = cron\n",
    # START as it was when a group was the first part of AcctGroup.
    FIRST_PARTS: 't1_group_pattern = "^[^.@]*"\n'
    r't1_job_group = regexps("^\x22([^.@\x22]*).*\x22$", $(t1_job_account), "\1.")' + "\n",
}


SPEC = BoxSpec(
    execute_points=tuple(
        ExecutePoint(node, CORES, power_hs06=10.0 * CORES, config=NODE + MORE.get(node, ""))
        for node in TARGETS
    ),
    access_points=("ap-1.example.org",),
    access_config=event_log.EVENT_TIMES,
    central_config="""\
GROUP_NAMES = alice, alice.prod, alice.user, cms
GROUP_QUOTA_DYNAMIC_alice = 0.916667
GROUP_QUOTA_DYNAMIC_cms = 0.083333
GROUP_QUOTA_DYNAMIC_alice.prod = 0.75
GROUP_QUOTA_DYNAMIC_alice.user = 0.15
GROUP_ACCEPT_SURPLUS = True
NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION = False
""",
)


def submit(box: Box, group: str, cores: int, count: int, node: str, seconds: object) -> Path:
    """Event log of jobs that may only run on nodes whose names match."""
    log = box.shared_directory / f"{len(list(box.shared_directory.iterdir()))}-{group}.log"
    where = f'requirements = regexp("{node}", TARGET.Machine)'
    box.submit(jobs(group, cores, count, seconds, where, f"log = {log}"))
    return log


def under(box: Box, node: str, held_back: str, helped: str) -> bool:
    """True if the node's slot acts on a target of these groups, and is in no grace."""
    names = ("PartitionableSlot", "t1_TargetGroups", "t1_TargetActive", "MC_GRACE")
    lines = box.run(["condor_status", "-direct", node, "-af:V,", *names]).stdout.splitlines()
    return f'true, {{ "{held_back}","{helped}" }}, true, false' in lines


def ended(log: Path) -> int:
    return len(event_log.times(log, TERMINATED))


def test_a_target_holds_back_and_helps_just_the_subgroups_that_it_names(
    box: Box, pool_version: Version
) -> None:
    """Each job for its node; on the last, with an older START, those of the target wait."""
    lines = (f"{node.split('.')[0]} {a} {CAP} {b} {MULTICORE}" for node, (a, b) in TARGETS.items())
    publish(box, *lines)
    for node, pair in TARGETS.items():
        box.wait_until(partial(under, box, node, *pair), f"{node} has its target")
    named = [node for node in TARGETS if node != FIRST_PARTS]
    others = {
        (node, group, cores): submit(box, group, cores, 1, node, 1)
        for node in named
        for group in OTHERS
        for cores in (1, MULTICORE)
    }
    short = {node: submit(box, held, 1, SHORT, node, 3) for node, (held, _) in TARGETS.items()}
    long = {
        node: submit(box, helped, MULTICORE, LONG, node, 3) for node, (_, helped) in TARGETS.items()
    }
    counted: set[str] = set()

    def through() -> bool:
        counted.update(str(slot.get("t1_CurrentJobs")) for slot in slots(box, BY_CRON))
        return {(ended(short[node]), ended(long[node])) for node in named} == {(SHORT, LONG)}

    box.wait_until(through, "jobs of the groups that are named are through")
    most = {node: event_log.most_at_once(log)[node] for node, log in short.items()}
    made = Counter(re.findall(r"slot\d+_\d+: \tCpus: (\d+)", box.log_text(SIBLINGS, "STARTD")))
    print(f"most cores at once of the held-back groups: {most}; slots made: {dict(made)}")

    let_in = [key for key, log in others.items() if event_log.events(log, EXECUTE)]
    assert not let_in, "no other group is taken for one of the two"
    assert (most[SIBLINGS], most[STRANGER]) == (CAP, CAP), "the cap is reached, and never passed"
    if holds(LOGS_CORES, pool_version):
        assert made["1"] == SHORT, "of the held-back subgroup each job is the last of its claim"
        assert made[str(MULTICORE)] < LONG, "its sibling's claims go from job to job"
    assert [row for row in counted if row.startswith("alice.user:")], "the longest name counts"
    assert not event_log.events(short[FIRST_PARTS], EXECUTE), "first parts alone are neither"
    assert not event_log.events(long[FIRST_PARTS], EXECUTE)
