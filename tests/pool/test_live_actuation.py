"""Live actuation beside the cron way: caps, grace, and refusals at claim time."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool import consumption_pools, event_log
from tests.pool.conftest import OpenBox
from tests.pool.deployed import jobs, on, publish, snippet
from tests.pool.event_log import EXECUTE, TERMINATED

pytestmark = pytest.mark.semantics

ACCESS, WHOLE = "ap-1.example.org", "ap-2.example.org"
"""Access points: one that starts jobs on leftovers, and one that must not.

With a consumption policy the startd's own CLAIM_PARTITIONABLE_LEFTOVERS does not count.
"""
CORES, CAP, MULTICORE, GRACE_SECONDS = 16, 4, 8, 20
JOBS = 200
LOOKS = 24
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
    "wn-007": ("live", CONSUMPTION_POLICY),
    "wn-008": ("cron", CONSUMPTION_POLICY),
}
LIVE, CRON = ("wn-001", "wn-002", "wn-003", "wn-007"), ("wn-004", "wn-005", "wn-008")
WITH_POLICY, WITHOUT_MATCHED, NO_LEFTOVERS = "wn-003", "wn-006", ("wn-007", "wn-008")


@pytest.fixture(scope="module")
def pool(open_box: OpenBox) -> Iterator[Box]:
    spec = BoxSpec(
        execute_points=tuple(
            ExecutePoint(full(node), CORES, config=configured(actuation) + more)
            for node, (actuation, more) in NODES.items()
        ),
        access_points=(ACCESS, WHOLE),
        access_config=event_log.EVENT_TIMES,
    )
    with open_box(spec) as box:
        consumption_pools.forbid_leftovers(box)
        yield box


@pytest.fixture
def box(pool: Box) -> Iterator[Box]:
    """The pool, without jobs and targets before and after."""
    yield pool
    publish(pool)
    pool.remove_jobs()


@contextmanager
def changed(box: Box, node: str, text: str) -> Iterator[None]:
    """A node with more configuration; afterwards there are no jobs."""
    box.write_config(full(node), text)
    box.reconfig(full(node))
    try:
        yield
    finally:
        # Of slots that go during a condor_reconfig the collector may keep the ads, as claimed.
        box.remove_jobs()
        box.write_config(full(node), "")
        box.reconfig(full(node))


def full(node: str) -> str:
    return f"{node}.example.org"


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
    query = ["condor_status", "-direct", full(node), "-af:,", *attributes]
    return [line.split(", ") for line in box.run(query).stdout.splitlines()]


def held_cores(box: Box, node: str, group: str) -> int:
    """Cores of the group's dynamic slots."""
    rows = asked(box, node, "SlotType", "AccountingGroup", "Cpus")
    dynamic = [row for row in rows if row[0] == "Dynamic" and row[1].startswith(group)]
    return sum(int(cores) for _, _, cores in dynamic)


# ---- the cap


def test_live_never_passes_the_cap_by_a_core_and_cron_does(box: Box) -> None:
    """With leftovers, without, and with a consumption policy."""
    log = box.shared_directory / "cap.log"
    publish(box, *(f"{node} alice {CAP} cms {MULTICORE}" for node in NODES))
    for node in NODES:
        box.wait_until(partial(ready, box, node), 90, f"{node}: a target, no grace")

    def refused(node: str) -> int:
        """Matched jobs that the node has refused at claim time so far."""
        return box.log_text(full(node), "STARTD").count("can't be split to allocate a dynamic slot")

    def cycles() -> int:
        negotiator = box.log_text(box.spec.central_point, "NEGOTIATOR")
        return negotiator.count("Started Negotiation Cycle")

    before, began = {node: refused(node) for node in NODES}, cycles()
    there = " || ".join(f'TARGET.Machine == "{full(node)}"' for node in NO_LEFTOVERS)
    seconds, whole = "$RANDOM_INTEGER(8,14)", box.shared_directory / "whole.log"
    submit(box, "alice", 1, seconds, JOBS, log, f"requirements = !({there})")
    lines = (f"requirements = {there}", f"log = {whole}")
    box.submit(jobs("alice", 1, JOBS, seconds, *lines), WHOLE)
    most: Counter[str] = Counter()
    with ThreadPoolExecutor(len(NODES)) as looks:
        for _ in range(LOOKS):
            next_look = time.monotonic() + 1
            seen = looks.map(lambda node: held_cores(box, node, "alice"), NODES)
            most |= Counter(dict(zip(NODES, seen)))
            time.sleep(max(0, next_look - time.monotonic()))
    logged = event_log.most_at_once(log) | event_log.most_at_once(whole)
    lost = {node: (refused(node) - before[node]) / (cycles() - began) for node in NODES}
    print(f"most cores at once: {dict(most)}; by the event log: {dict(logged)}; cap {CAP}")
    print(f"matches refused at claim time, per cycle: {lost}")

    for node in LIVE:
        assert most[node] <= CAP, f"{node}: the cap is never passed"
        assert logged[full(node)] == CAP, f"{node}: but it is reached"
    for node in CRON:
        assert most[node] >= CAP, f"{node}: the cap is reached"
    assert lost[WITH_POLICY] <= 0.2, "the negotiator's own copy tells it when to stop"
    assert lost[WITHOUT_MATCHED] > 1, "without what the cycle took, it would go on matching"


def ready(box: Box, node: str) -> bool:
    rows = asked(box, node, "t1_Targetcores[0]", "MC_GRACE", "t1_Disabled")
    return rows == [[str(CAP), "false", "false"]]


# ---- claims


def test_only_the_held_back_group_gives_up_its_claims(box: Box) -> None:
    """Jobs far shorter than CLAIM_WORKLIFE (1200 s): others go on in one claim."""
    node = "wn-001"
    with changed(box, node, "SHARECTL_GRACE_SECONDS = 0\n"):
        publish(box, f"{node} alice {CAP} cms {MULTICORE}")
        in_the_collector = ["condor_status", f"slot1@{full(node)}", "-af", "t1_Targetcores[0]"]
        box.wait_until(
            lambda: box.run(in_the_collector).stdout.split() == [str(CAP)],
            60,
            "the target is there",
        )
        began, ends = len(claims(box, node)), {"helped": 4, "held": 8}
        logs = {name: box.shared_directory / f"{name}.log" for name in ends}
        submit(box, "cms", MULTICORE, "4", ends["helped"], logs["helped"], on(full(node)))
        submit(box, "alice", 1, "2", ends["held"], logs["held"], on(full(node)))

        def ended() -> dict[str, int]:
            return {name: len(event_log.times(log, TERMINATED)) for name, log in logs.items()}

        box.wait_until(lambda: ended() == ends, 120, "all of them are through")
        made = Counter(claims(box, node)[began:])
        print(f"claims made for {ends} jobs, by owner's cores: {dict(made)}")
        assert made["1"] == ends["held"], "one claim a job"
        assert made[str(MULTICORE)] <= 2, "the helped group keeps the site's claim reuse"


def claims(box: Box, node: str) -> list[str]:
    """Cores of every dynamic slot that the node has made, in order."""
    return re.findall(r"slot\d+_\d+: \tCpus: (\d+)", box.log_text(full(node), "STARTD"))


# ---- grace


def test_grace_begins_with_the_end_of_the_multicore_job_and_keeps_the_others_out(box: Box) -> None:
    """Beside other jobs, on a node that it had to itself, by cron, and without sharectl."""
    beside, alone, cron, off = "wn-001", "wn-002", CRON[0], "wn-006"
    sizes = {beside: MULTICORE, alone: CORES, cron: MULTICORE, off: MULTICORE}
    with changed(box, off, "SHARECTL_ENABLED = False\n"):
        first, looks, ended = after_a_multicore_job(box, sizes)
    print(f"seconds from the end of the multicore job to the first single-core job: {first}")
    assert first[off] <= GRACE_SECONDS / 2, "without sharectl they get in at once"
    # The node counts from the whole second in which the cores became free.
    assert first[cron] >= GRACE_SECONDS - 1
    for node in (beside, alone):
        assert GRACE_SECONDS - 1 <= first[node] <= GRACE_SECONDS + 20, f"{node}: not before its end"
        since = [(at - ended[node], cpus, grace) for at, cpus, grace in looks[node]]
        graces = [at for at, _, grace in since if grace and at > -1]
        assert graces, f"{node}: there is grace"
        # A busy machine looks late: the last look without grace counts.
        missing = [at for at, _, grace in since if not grace and at < min(graces)]
        assert max(missing, default=0.0) <= 2, f"{node}: grace is there with the free cores"
        free = [grace for at, cpus, grace in since if cpus >= MULTICORE and at <= GRACE_SECONDS - 1]
        assert set(free) == {True}, f"{node}: it stays for all of its time"


def after_a_multicore_job(
    box: Box, sizes: Mapping[str, int]
) -> tuple[dict[str, float], dict[str, list[tuple[float, int, bool]]], dict[str, float]]:
    """Seconds to the first single-core job; looks at free cores and MC_GRACE; ends; by node."""
    shared = box.shared_directory
    for node, cores in sizes.items():
        if cores < CORES:
            fillers = CORES - cores
            submit(box, "alice", 1, "600", fillers, shared / "fillers", on(full(node)))
    for node, cores in sizes.items():
        box.wait_until(
            lambda node=node, cores=cores: held_cores(box, node, "alice") == CORES - cores,  # type: ignore[misc]
            90,
            f"{node}: fillers",
        )
    leave, logs = shared / "leave", {node: shared / f"{node}.multicore" for node in sizes}
    until_told = f"\"-c 'until test -e {leave}; do sleep 0.2; done'\""
    for node, cores in sizes.items():
        shell = ("executable = /bin/sh", on(full(node)))
        submit(box, "cms", cores, until_told, 1, logs[node], *shell)

    def those(paths: Mapping[str, Path], event: str) -> dict[str, float]:
        """First such event of each node's log that has one."""
        times = {node: event_log.times(path, event) for node, path in paths.items()}
        return {node: min(seen) for node, seen in times.items() if seen}

    box.wait_until(lambda: len(those(logs, EXECUTE)) == len(sizes), 90, "full nodes")
    full_at = int(time.time())
    box.wait_until(
        lambda: int(asked(box, CRON[0], "t1_McGraceTime")[0][0]) > full_at, 60, "mc_grace has run"
    )
    singles = {node: shared / f"{node}.single" for node in sizes}
    for node, path in singles.items():
        for group in ("alice", "cms"):  # the second is the multicore job's own submitter
            submit(box, group, 1, "600", 3, path, on(full(node)))
    leave.touch()

    looks: dict[str, list[tuple[float, int, bool]]] = {node: [] for node in sizes}
    until = time.monotonic() + 120
    while time.monotonic() < until and len(those(singles, EXECUTE)) < len(sizes):
        for node, seen in looks.items():
            rows = asked(box, node, "SlotType", "Cpus", "MC_GRACE")
            free = [(int(cpus), grace) for kind, cpus, grace in rows if kind == "Partitionable"]
            seen += [(time.time(), cpus, grace == "true") for cpus, grace in free]
        time.sleep(0.2)
    ended, began = those(logs, TERMINATED), those(singles, EXECUTE)
    return {node: began[node] - ended[node] for node in sizes}, looks, ended
