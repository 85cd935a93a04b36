"""Groups within groups: what targets of subgroups let in, and a cycle that makes them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from sharectl.config.load import parse
from sharectl.publish import text
from sharectl.shares.quotas import central_manager_configuration
from tests.logs import errors_in
from tests.pool import event_log
from tests.pool.conftest import OpenBox
from tests.pool.deployed import publish, snippet
from tests.pool.event_log import EXECUTE, TERMINATED
from tests.pool.sharectl_command import Sharectl

CORES, CAP, MULTICORE = 12, 4, 8
SHORT, LONG = 12, 3
"""Jobs of the held-back group, and of the helped one, on each node."""
SIBLINGS, STRANGER, BY_CRON, FIRST_PARTS = (f"wn-00{number}.example.org" for number in range(1, 5))
TARGETS = {
    # Which subgroup is held back, and who is helped.
    SIBLINGS: ("alice.user", "alice.prod"),
    STRANGER: ("alice.prod", "cms"),
    BY_CRON: ("alice.user", "alice.prod"),
    FIRST_PARTS: ("alice.user", "alice.prod"),
}
OTHERS = {
    # Whom a target of subgroups must not take for one of them: jobs of one core, and of the size to
    # be let in.
    node: [
        (group, cores)
        for group in ("alice", "alice.production", "alice.users", "lhcb")
        for cores in (1, MULTICORE)
    ]
    for node in (SIBLINGS, STRANGER, BY_CRON)
}

NODE = snippet(grace_seconds=1)
MORE = {
    BY_CRON: "SHARECTL_ACTUATION = cron\n",
    # START as it was when a group was the first part of AcctGroup.
    FIRST_PARTS: 't1_group_pattern = "^[^.@]*"\n'
    r't1_job_group = regexps("^\x22([^.@\x22]*).*\x22$", $(t1_job_account), "\1.")' + "\n",
}
GROUPS: dict[str, Any] = {
    "alice": {"pledge_hs06": 440.0, "groups": {"prod": {"share": 0.75}, "user": {"share": 0.15}}},
    "cms": {"pledge_hs06": 40.0},
}


@pytest.fixture(scope="module")
def pool(open_box: OpenBox) -> Iterator[Box]:
    tree = parse(json.dumps({"groups": GROUPS}), "groups").tree
    spec = BoxSpec(
        execute_points=tuple(
            ExecutePoint(node, CORES, power_hs06=10.0 * CORES, config=NODE + MORE.get(node, ""))
            for node in TARGETS
        ),
        access_points=("ap-1.example.org",),
        access_config=event_log.EVENT_TIMES,
        central_config=central_manager_configuration(tree),
    )
    with open_box(spec) as box:
        yield box


@pytest.fixture
def box(pool: Box) -> Iterator[Box]:
    """The pool, without jobs and targets before and after."""
    yield pool
    publish(pool)
    pool.remove_jobs()


def submit(box: Box, group: str, cores: int, count: int, node: str, command: str) -> Path:
    """Event log of jobs that may only run on nodes whose names match."""
    log = box.shared_directory / f"{len(list(box.shared_directory.iterdir()))}-{group}.log"
    where = f'requirements = regexp("{node}", TARGET.Machine)\n'
    box.submit(
        f"executable = /bin/sh\narguments = \"-c '{command}'\"\ntransfer_executable = "
        f"False\nrequest_cpus = {cores}\n"
        f"request_memory = 8\nrequest_disk = 8\nlog = {log}\naccounting_group = {group}\n"
        f"accounting_group_user = bob\n{where}queue {count}\n"
    )
    return log


def asked(box: Box, node: str, *attributes: str) -> list[list[str]]:
    """Those attributes of the node's slots, straight from its startd."""
    query = ["condor_status", "-direct", node, "-af:,", *attributes]
    return [line.split(", ") for line in box.run(query).stdout.splitlines()]


def under(box: Box, node: str, held_back: str, helped: str) -> bool:
    """True if the node's slot acts on a target of these groups, and is in no grace."""
    rows = asked(
        box,
        node,
        "PartitionableSlot",
        "t1_TargetGroups[0]",
        "t1_TargetGroups[1]",
        "t1_TargetActive",
        "MC_GRACE",
    )
    return ["true", held_back, helped, "true", "false"] in rows


def ended(log: Path) -> int:
    return len(event_log.times(log, TERMINATED))


def test_a_target_holds_back_and_helps_just_the_subgroups_that_it_names(box: Box) -> None:
    """Each job for its node; on the last, with an older START, those of the target wait."""
    publish(
        box,
        *(
            f"{node.split('.')[0]} {held} {CAP} {helped} {MULTICORE}"
            for node, (held, helped) in TARGETS.items()
        ),
    )
    box.wait_until(
        lambda: all(under(box, node, *groups) for node, groups in TARGETS.items()),
        90,
        "every node has its target",
    )
    others = {
        (node, group, cores): submit(box, group, cores, 1, node, "sleep 1")
        for node, jobs in OTHERS.items()
        for group, cores in jobs
    }
    short = {
        node: submit(box, held, 1, SHORT, node, "sleep 3") for node, (held, _) in TARGETS.items()
    }
    long = {
        node: submit(box, helped, MULTICORE, LONG, node, "sleep 3")
        for node, (_, helped) in TARGETS.items()
    }
    named: set[str] = set()

    def through() -> bool:
        named.update(jobs for row in asked(box, BY_CRON, "t1_CurrentJobs") for jobs in row)
        return all(ended(short[node]) == SHORT and ended(long[node]) == LONG for node in OTHERS)

    box.wait_until(through, 240, "jobs of the groups that are named are through")
    most = {node: event_log.most_at_once(log)[node] for node, log in short.items()}
    made = Counter(re.findall(r"slot\d+_\d+: \tCpus: (\d+)", box.log_text(SIBLINGS, "STARTD")))
    print(
        f"most cores at once of the held-back groups: {most}; slots made on {SIBLINGS}: "
        f"{dict(made)}; {sorted(named)}"
    )

    let_in = [key for key, log in others.items() if event_log.events(log, EXECUTE)]
    assert not let_in, "no other group is taken for one of the two"
    assert (most[SIBLINGS], most[STRANGER]) == (CAP, CAP), "the cap is reached, and never passed"
    assert made["1"] == SHORT, "of the held-back subgroup each job is the last of its claim"
    assert made[str(MULTICORE)] < LONG, "its sibling's claims go from job to job"
    assert any(jobs.startswith("alice.user:") for jobs in named), (
        "cores are counted by the longest name"
    )
    assert not event_log.events(short[FIRST_PARTS], EXECUTE), (
        "first parts alone tell neither of the two"
    )
    assert not event_log.events(long[FIRST_PARTS], EXECUTE)


def test_a_cycle_gives_a_subgroup_what_its_sibling_holds_too_much(box: Box, tmp_path: Path) -> None:
    """All jobs are of alice, so cores move within alice only."""
    sharectl, leave = Sharectl(box, tmp_path), box.shared_directory / "leave"
    configuration: dict[str, Any] = {
        "groups": GROUPS,
        "nodes": {"controlled": ["wn-001", "wn-002"]},
        "control": {"strategy": "pair"},
        "publish": [{"file": str(box.shared_directory / "sharectl.txt")}],
    }
    until_told = f"until test -e {leave}; do sleep 0.2; done"
    filled = [
        submit(box, "alice.user", 1, CORES - 1, node, until_told) for node in (SIBLINGS, STRANGER)
    ]
    filled += [submit(box, "alice", 1, 1, node, until_told) for node in (SIBLINGS, STRANGER)]
    box.wait_until(
        lambda: sum(len(event_log.events(log, EXECUTE)) for log in filled) == 2 * CORES,
        120,
        "full nodes",
    )
    waiting = submit(box, "alice.prod", MULTICORE, 2, "wn-00[12]", "sleep 600")

    def seen() -> dict[str, Any]:
        rows = sharectl.json("errors", **configuration)["groups"]
        return {row["group"]: row for row in rows}

    box.wait_until(
        lambda: (
            (seen()["alice.user"]["cores"], seen()["alice"]["cores"]) == (2 * CORES - 2, 2 * CORES)
        ),
        60,
        "cores",
    )
    both = [
        sharectl.json("snapshot", pool={"mode": mode}, **configuration)["groups"]
        for mode in ("counted", "jobs")
    ]
    assert both[0] == both[1], "slots and jobs tell of the same groups"
    sharectl.run("cycle", **configuration)
    targets = text.read(box.shared_directory / "sharectl.txt").targets
    assert {
        (target.node, target.held_back, target.cap_cores, target.helped) for target in targets
    } == {
        (node, "alice.user", CORES - 1 - MULTICORE, "alice.prod") for node in ("wn-001", "wn-002")
    }
    rows = {row.group: row for _, row in errors_in(sharectl.errors_log)}
    assert list(rows) == ["alice", "alice.prod", "alice.user", "cms"]
    assert rows["alice"].usage.cores == 2 * CORES
    assert (
        rows["alice"].usage.pending_multi_jobs == rows["alice.prod"].usage.pending_multi_jobs == 2
    )
    assert rows["alice"].error_hs06 + rows["cms"].error_hs06 == 0, (
        "what sums to nothing is one level"
    )

    box.wait_until(
        lambda: all(under(box, node, "alice.user", "alice.prod") for node in (SIBLINGS, STRANGER)),
        60,
        "targets arrive",
    )
    more = [submit(box, "alice.user", 1, CORES, node, "sleep 600") for node in (SIBLINGS, STRANGER)]
    leave.touch()
    box.wait_until(lambda: len(event_log.events(waiting, EXECUTE)) == 2, 90, "the sibling runs")
    assert {event.host for event in event_log.events(waiting, EXECUTE)} <= {SIBLINGS, STRANGER}
    held = [event_log.most_at_once(log).most_common(1) for log in more]
    assert all(most <= CORES - 1 - MULTICORE for found in held for _, most in found), (
        "it does not come back"
    )


def test_the_negotiator_shares_a_groups_quota_among_those_within_it(box: Box) -> None:
    """Dynamic quotas of subgroups, as rendered, are parts of the group's."""
    pool_cores = len(TARGETS) * CORES
    alice = pool_cores * 440 / 480
    wanted = {
        "alice": 0.1 * alice,
        "alice.prod": 0.75 * alice,
        "alice.user": 0.15 * alice,
        "cms": pool_cores - alice,
    }
    submit(box, "alice.prod", 1, 1, ".", "sleep 1")
    query = [
        "condor_status",
        "-any",
        "-constraint",
        "IsAccountingGroup",
        "-af",
        "Name",
        "EffectiveQuota",
    ]

    def told() -> bool:
        rows = [line.split() for line in box.run(query).stdout.splitlines()]
        return {name: float(quota) for name, quota in rows if name in wanted} == pytest.approx(
            wanted, abs=0.01
        )

    box.wait_until(told, 60, f"quotas of {wanted}")
