"""Nodes that each read their own file: faults let jobs in; no grace while nobody waits for it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import pytest

from poolbox import Box, event_log
from poolbox.event_log import TERMINATED
from poolbox.waiting import HANG_SECONDS
from tests.pool.deployed import configure, cycles, refusals, run
from tests.pool.own_files import (
    CORES,
    HELD_BACK,
    HELPED,
    become,
    execute_point,
    host,
    log_of,
    pool_of,
    publish,
    started,
    submit,
)
from tests.pool.sharectl_command import CHECKOUT

JOB_CTL = CHECKOUT / "startd_cron" / "job_ctl.py"
GRACE_SECONDS = 30
VALID_SECONDS, SOON_SECONDS = 600, 20
OWN_PROGRAM = "STARTD_CRON_JOB_CTL_EXECUTABLE = $(LOCAL_DIR)/../../shared/of-{node}/job_ctl.py\n"
SILENT = "#!/bin/sh\nexit 0\n"
"""The last publication stands, though its end has come."""
OFF = "t1_nobody_waits = False\n"
NODES = {
    # node: actuation, more configuration, multicore_pending of its plan, validity of that
    "wn-001": ("live", "", "0", VALID_SECONDS),
    "wn-002": ("cron", "", "0", VALID_SECONDS),
    "wn-003": ("live", "", "1", VALID_SECONDS),
    "wn-004": ("live", "", "", VALID_SECONDS),
    "wn-005": ("live", "", "0", SOON_SECONDS),
    "wn-006": ("live", OFF, "0", VALID_SECONDS),
    "wn-007": ("cron", "", "1", VALID_SECONDS),
    "wn-008": ("live", "SHARECTL_ENABLED = False\n", "1", VALID_SECONDS),
    "wn-009": ("live", f"NUM_CPUS = {2 * CORES}\n", "1", VALID_SECONDS),
}
BESIDE_OTHERS, UNKNOWING = "wn-009", "wn-004"
"""A node with other jobs, and one whose plan does not say if multicore jobs wait."""
AT_ONCE = ("wn-001", "wn-002", "wn-008")
AFTER_GRACE = ("wn-003", "wn-004", "wn-005", "wn-006", "wn-007", "wn-009")
SPEC = pool_of(
    tuple(
        execute_point(node, actuation, more + OWN_PROGRAM.format(node=node), GRACE_SECONDS)
        for node, (actuation, more, _pending, _seconds) in NODES.items()
    )
)


@pytest.fixture
def box(pool: Box) -> Iterator[Box]:
    """The pool, whose nodes have no file, and the job as it is shipped."""
    for node in NODES:
        program(pool, node).parent.mkdir(exist_ok=True)
        for source in (JOB_CTL, JOB_CTL.with_name("target.py")):
            shutil.copy(source, program(pool, node).parent)
    yield pool
    pool.remove_jobs()
    for node in NODES:
        target_file(pool, node).unlink(missing_ok=True)


def program(box: Box, node: str) -> Path:
    return box.shared_directory / f"of-{node}" / "job_ctl.py"


def target_file(box: Box, node: str) -> Path:
    return box.shared_directory / f"{node}.txt"


def becomes(script: str) -> Callable[[Box, str], None]:
    """Have a node's job turn into a script."""

    def broken(box: Box, node: str) -> None:
        fresh = program(box, node).with_suffix(".new")
        fresh.write_text(script)
        fresh.chmod(0o755)
        fresh.replace(program(box, node))

    return broken


def all_start(box: Box, nodes: Collection[str], name: str, seconds: float) -> None:
    box.wait_until(
        lambda: max(started(box, node, name) for node in nodes) < float("inf"), name, seconds
    )


@pytest.mark.semantics
def test_single_core_jobs_wait_after_a_multicore_job_unless_no_other_is_known_to_wait(
    box: Box,
) -> None:
    """The negotiator, which folds constants of a slot's ad, sees grace as the startd does."""
    submit(box, BESIDE_OTHERS, "others", 1, count=CORES)
    run(box, CORES)
    for node in NODES:
        submit(box, node, "multicore", CORES, "until told")
    run(box, CORES + len(NODES))
    soon = time.time() + SOON_SECONDS
    for node, (_actuation, _more, pending, seconds) in NODES.items():
        publish(box, node, int(time.time()) + seconds, pending=pending)
    free = [node for node in NODES if NODES[node][2] == "0"]
    become(box, free, "t1_MulticorePending =?= False && t1_MulticorePendingUntil > 0")
    becomes(SILENT)(box, "wn-005")
    for node in NODES:
        submit(box, node, "single", 1)
    time.sleep(max(0.0, soon - time.time()))  # the end of what wn-005 knows
    (box.shared_directory / "leave").touch()

    def ended(node: str) -> list[float]:
        return event_log.times(log_of(box, node, "multicore"), TERMINATED)

    box.wait_until(lambda: len([*filter(ended, NODES)]) == len(NODES), "multicore jobs end")
    # A cycle that began when cores came free may have the slot's ad of before.
    begun = cycles(box)
    box.wait_until(lambda: cycles(box) > begun, "that cycle is over")
    refused = refusals(box, host(UNKNOWING))
    all_start(box, NODES, "single", 3 * GRACE_SECONDS + 30)
    waited = {node: round(started(box, node, "single") - ended(node)[0], 1) for node in NODES}
    print(f"seconds from the end of the multicore job to the first single-core job: {waited}")
    assert refusals(box, host(UNKNOWING)) == refused, "no job is matched in grace"
    for node in AT_ONCE:
        assert 0 <= waited[node] <= GRACE_SECONDS / 2, f"{node}: nobody waits, or it is off"
    for node in AFTER_GRACE:
        # The node counts from the whole second in which the cores became free.
        assert GRACE_SECONDS - 1 <= waited[node] <= GRACE_SECONDS + SLACK_SECONDS, node


TARGET_SECONDS, SLACK_SECONDS = 40, 30
STALE = "wn-009"
"""Its target would be valid for long, and job_ctl is soon stale."""


def stays_as_it_is(_box: Box, _node: str) -> None:
    """The file goes stale by itself."""


def turns_into_garbage(box: Box, node: str) -> None:
    target_file(box, node).write_bytes(bytes(range(256)) * 8 + b"\n")


def cannot_be_executed(box: Box, node: str) -> None:
    program(box, node).chmod(0o644)


FAILURES = {
    # node: fault of its file or of its job, reason that it then publishes
    "wn-001": (stays_as_it_is, "expired"),
    "wn-002": (turns_into_garbage, "malformed"),
    # The last reason stands.
    "wn-003": (cannot_be_executed, "ok"),
    "wn-004": (becomes("#!/bin/sh\nexit 1\n"), "ok"),
    "wn-005": (becomes(SILENT), "ok"),
    "wn-006": (becomes("#!/bin/sh\nexec sleep 600\n"), "ok"),
    STALE: (becomes(SILENT), "ok"),
}


def test_a_fault_lets_jobs_in_and_no_target_outlives_its_validity(box: Box) -> None:
    for node in FAILURES:
        stale = "SHARECTL_JOB_CTL_STALE_SECONDS = 20\n" if node == STALE else ""
        configure(box, host(node), f"SHARECTL_GRACE_SECONDS = 0\n{stale}")
    # An access point may leave out a job whose claim was refused for 20 minutes: nothing may be
    # refused here (docs/method.md).
    become(box, FAILURES, 't1_JobCtlReason == "no-file" && MC_GRACE =?= False')
    for node in FAILURES:
        submit(box, node, "first", 1)
    all_start(box, FAILURES, "first", HANG_SECONDS)

    until = int(time.time()) + TARGET_SECONDS
    for node in FAILURES:
        end = until + VALID_SECONDS if node == STALE else until
        publish(box, node, end, f"{HELD_BACK} 0 {HELPED} {CORES}")
    become(box, FAILURES, f"t1_TargetUntil >= {until} && t1_TargetActive", TARGET_SECONDS)
    for node in FAILURES:
        submit(box, node, "held", 1)
    for node, (fault, _reason) in FAILURES.items():
        fault(box, node)
    broken_at = time.time()
    assert broken_at < until - 10, "too slow a machine to tell an early end from an end on time"

    all_start(box, FAILURES, "held", TARGET_SECONDS + 2 * SLACK_SECONDS)
    for node, (_fault, reason) in FAILURES.items():
        start = started(box, node, "held")
        assert start <= until + SLACK_SECONDS, f"{node}: its target outlived its validity"
        # A refused file ends a target at once; otherwise jobs are held back until its end.
        least = broken_at if reason == "malformed" or node == STALE else until
        assert start >= least - 1, f"{node}: had no target to outlive"
    for node, (_fault, reason) in FAILURES.items():
        become(box, [node], f't1_JobCtlReason == "{reason}"')
