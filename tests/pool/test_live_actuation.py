"""Live actuation beside the cron way: caps, grace, and refusals at claim time."""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool import event_log
from tests.pool.conftest import OpenBox
from tests.pool.deployed import publish, snippet
from tests.pool.event_log import EXECUTE, TERMINATED

pytestmark = pytest.mark.semantics

ACCESS = "ap-1.example.org"
CORES, CAP, MULTICORE, GRACE_SECONDS = 16, 4, 8, 20
JOBS = 200
LOOKS = 28
"""One a second."""

CONSUMPTION_POLICY = """\
SLOT_TYPE_1_CONSUMPTION_POLICY = True
SLOT_TYPE_1_CONSUMPTION_CPUS = quantize(target.RequestCpus, {1})
SLOT_TYPE_1_CONSUMPTION_MEMORY = quantize(target.RequestMemory, {8})
SLOT_TYPE_1_CONSUMPTION_DISK = quantize(target.RequestDisk, {1024})
CLAIM_PARTITIONABLE_LEFTOVERS = False
SLOT_WEIGHT = Cpus
"""
WITHOUT_WHAT_THE_CYCLE_TOOK = "t1_matched_since = 0\n"
NODES: Mapping[str, tuple[str, str]] = {
    # node: actuation, how cores are given out
    "wn-001": ("live", ""),
    "wn-002": ("live", "CLAIM_PARTITIONABLE_LEFTOVERS = False\n"),
    "wn-003": ("live", CONSUMPTION_POLICY),
    "wn-004": ("cron", ""),
    "wn-005": ("cron", CONSUMPTION_POLICY),
    "wn-006": ("live", CONSUMPTION_POLICY + WITHOUT_WHAT_THE_CYCLE_TOOK),
}
LIVE, CRON = ("wn-001", "wn-002", "wn-003"), ("wn-004", "wn-005")
WITH_POLICY, WITHOUT_MATCHED = "wn-003", "wn-006"


@pytest.fixture(scope="module")
def pool(open_box: OpenBox) -> Iterator[Box]:
    spec = BoxSpec(
        execute_points=tuple(
            ExecutePoint(f"{node}.example.org", CORES, config=configured(actuation) + more)
            for node, (actuation, more) in NODES.items()
        ),
        access_points=(ACCESS,),
        access_config=event_log.EVENT_TIMES,
    )
    with open_box(spec) as box:
        yield box


@pytest.fixture
def box(pool: Box) -> Iterator[Box]:
    """The pool, without jobs and targets before and after."""
    yield pool
    publish(pool)
    pool.remove_jobs()


def configured(actuation: str) -> str:
    return snippet(
        actuation=actuation,
        grace_seconds=GRACE_SECONDS,
        job_ctl_period_seconds=5,
        mc_grace_period_seconds=5,
    )


def submit(
    box: Box, group: str, cores: int, seconds: str, count: int, log: Path, *lines: str
) -> int:
    return box.submit(
        f"executable = /bin/sleep\narguments = {seconds}\ntransfer_executable = False\n"
        f"request_cpus = {cores}\nrequest_memory = 8\nrequest_disk = 8\nlog = {log}\n"
        f"accounting_group = {group}\naccounting_group_user = bob\n"
        + "\n".join((*lines, f"queue {count}\n"))
    )


def asked(box: Box, node: str, *attributes: str) -> list[list[str]]:
    """Those attributes of the node's slots, straight from its startd."""
    query = ["condor_status", "-direct", f"{node}.example.org", "-af:,", *attributes]
    return [line.split(", ") for line in box.run(query).stdout.splitlines()]


def held_cores(box: Box, node: str, group: str) -> int:
    """Cores of the group's dynamic slots."""
    rows = asked(box, node, "SlotType", "AccountingGroup", "Cpus")
    return sum(
        int(cores)
        for kind, account, cores in rows
        if kind == "Dynamic" and account.startswith(group)
    )


def refused(box: Box, node: str) -> int:
    """How many matched jobs the node has refused at claim time so far."""
    return box.log_text(f"{node}.example.org", "STARTD").count(
        "can't be split to allocate a dynamic slot"
    )


def cycles(box: Box) -> int:
    return box.log_text(box.spec.central_point, "NEGOTIATOR").count("Started Negotiation Cycle")


# ---- the cap


def test_live_never_passes_the_cap_by_a_core_and_cron_does(box: Box) -> None:
    """With leftovers, without, and with a consumption policy."""
    log = box.shared_directory / "cap.log"
    publish(box, *(f"{node} alice {CAP} cms {MULTICORE}" for node in NODES))
    box.wait_until(
        lambda: all(ready(box, node) for node in NODES), 90, "every node has its target, no grace"
    )
    before, began = {node: refused(box, node) for node in NODES}, cycles(box)
    submit(box, "alice", 1, "$RANDOM_INTEGER(6,12)", JOBS, log)

    most: dict[str, int] = defaultdict(int)
    with ThreadPoolExecutor(len(NODES)) as looks:
        for _ in range(LOOKS):
            next_look = time.monotonic() + 1
            seen = looks.map(lambda node: held_cores(box, node, "alice"), NODES)
            most.update({node: max(most[node], cores) for node, cores in zip(NODES, seen)})
            time.sleep(max(0, next_look - time.monotonic()))
    logged = event_log.most_at_once(log)
    lost = {node: (refused(box, node) - before[node]) / (cycles(box) - began) for node in NODES}
    print(
        f"most cores at once, sampled: {dict(most)}; from the event log: {dict(logged)}; cap {CAP}"
    )
    print(
        "matches refused at claim time, per cycle: "
        f"{ {n: round(rate, 1) for n, rate in lost.items()} }"
    )

    for node in LIVE:
        assert most[node] <= CAP, f"{node}: the cap is never passed"
        assert logged[f"{node}.example.org"] == CAP, f"{node}: but it is reached"
    for node in CRON:
        assert most[node] >= CAP, f"{node}: the cap is reached"
    assert lost[WITH_POLICY] <= 0.2, "the negotiator's own copy tells it when to stop"
    assert lost[WITHOUT_MATCHED] > 1, "without what the cycle took, it would go on matching"


def ready(box: Box, node: str) -> bool:
    rows = asked(box, node, "t1_Targetcores[0]", "MC_GRACE", "t1_Disabled")
    return rows == [[str(CAP), "false", "false"]]


# ---- grace


@dataclass(frozen=True)
class Look:
    """A partitionable slot at one moment."""

    at: float
    cpus: int
    grace: bool


def test_grace_begins_with_the_end_of_the_multicore_job_and_keeps_the_others_out(box: Box) -> None:
    """Beside other jobs, and on a node that the multicore job had to itself."""
    beside, alone, cron = "wn-001", "wn-002", "wn-004"
    sizes = {beside: MULTICORE, alone: CORES, cron: MULTICORE}
    here = {node: f'requirements = TARGET.Machine == "{node}.example.org"' for node in sizes}
    for node, cores in sizes.items():
        if cores < CORES:
            submit(
                box, "alice", 1, "600", CORES - cores, box.shared_directory / "fillers", here[node]
            )
    box.wait_until(
        lambda: all(
            held_cores(box, node, "alice") == CORES - cores for node, cores in sizes.items()
        ),
        90,
        "fillers",
    )
    logs = {node: box.shared_directory / f"{node}.multicore" for node in sizes}
    leave = box.shared_directory / "leave"
    until_told = f"\"-c 'until test -e {leave}; do sleep 0.2; done'\""
    for node, cores in sizes.items():
        submit(box, "cms", cores, until_told, 1, logs[node], "executable = /bin/sh", here[node])
    box.wait_until(
        lambda: all(event_log.times(log, EXECUTE) for log in logs.values()), 90, "full nodes"
    )
    for node in (beside, alone, cron):
        for group in ("alice", "cms"):  # the second is the multicore job's own submitter
            submit(box, group, 1, "600", 3, box.shared_directory / f"{node}.single", here[node])
    leave.touch()

    looks: dict[str, list[Look]] = {node: [] for node in (beside, alone, cron)}
    until = time.monotonic() + 120
    while time.monotonic() < until and not all(started(box, node) for node in looks):
        for node, seen in looks.items():
            rows = asked(box, node, "SlotType", "Cpus", "MC_GRACE")
            now = time.time()
            seen += [
                Look(now, int(cpus), grace == "true")
                for kind, cpus, grace in rows
                if kind == "Partitionable"
            ]
        time.sleep(0.2)
    for node, seen in looks.items():
        ended = event_log.times(logs[node], TERMINATED)[0]
        first = min(started(box, node), default=float("inf"))
        graces = [look.at - ended for look in seen if look.grace and look.at > ended - 1]
        print(
            f"{node} ({NODES[node][0]}): grace seen from {min(graces, default=0):.1f} s to "
            f"{max(graces, default=0):.1f} s "
            f"after the multicore job, first single-core job after {first - ended:.1f} s"
        )
        if NODES[node][0] == "live":
            assert graces, f"{node}: there is grace"
            # A busy machine looks late: what counts is when it was last seen to be missing.
            missing = [
                look.at - ended for look in seen if not look.grace and look.at < ended + min(graces)
            ]
            assert max(missing, default=0.0) <= 2, f"{node}: grace is there with the free cores"
            assert GRACE_SECONDS - 1 <= first - ended <= GRACE_SECONDS + 20, (
                f"{node}: no start before its end"
            )
            free = [
                look
                for look in seen
                if look.cpus >= MULTICORE and look.at - ended <= GRACE_SECONDS - 1
            ]
            assert all(look.grace for look in free), f"{node}: it stays for all of its time"


def started(box: Box, node: str) -> list[float]:
    return event_log.times(box.shared_directory / f"{node}.single", EXECUTE)


# ---- claims


def test_only_the_held_back_group_gives_up_its_claims(box: Box) -> None:
    """Jobs far shorter than CLAIM_WORKLIFE (1200 s): others go on in one claim."""
    node = "wn-001"
    publish(box, f"{node} alice {CAP} cms {MULTICORE}")
    in_the_collector = ["condor_status", f"slot1@{node}.example.org", "-af", "t1_Targetcores[0]"]
    box.wait_until(
        lambda: box.run(in_the_collector).stdout.split() == [str(CAP)], 60, "the target is there"
    )
    began, at = len(claims(box, node)), f'requirements = TARGET.Machine == "{node}.example.org"'
    submit(box, "cms", MULTICORE, "3", 6, box.shared_directory / "helped.log", at)
    submit(box, "alice", 1, "3", 12, box.shared_directory / "held.log", at)
    ends = {"helped": 6, "held": 12}
    box.wait_until(
        lambda: all(
            len(event_log.times(box.shared_directory / f"{name}.log", TERMINATED)) == count
            for name, count in ends.items()
        ),
        120,
        "all of them are through",
    )
    made = Counter(claims(box, node)[began:])
    print(f"claims made for {ends} jobs, by owner's cores: {dict(made)}")
    assert made["1"] == ends["held"], "one claim a job"
    assert made[str(MULTICORE)] <= 2, "the helped group keeps the site's claim reuse"


def claims(box: Box, node: str) -> list[str]:
    """Cores of every dynamic slot that the node has made, in order."""
    return re.findall(r"slot\d+_\d+: \tCpus: (\d+)", box.log_text(f"{node}.example.org", "STARTD"))
