"""Clocks of nodes that step under a running startd, back and forward, with a target and in grace.

HTCondor's timers go by the wall clock: after a step back no STARTD_CRON job runs until the old time
is reached again.
"""

from __future__ import annotations

import struct
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from poolbox import Box
from tests.pool import event_log
from tests.pool.conftest import OpenBox
from tests.pool.event_log import TERMINATED
from tests.pool.own_files import (
    CORES,
    asked,
    execute_point,
    host,
    known,
    log_of,
    pool_of,
    publish,
    started,
    submit,
)

pytestmark = pytest.mark.semantics

CLOCK = Path(__file__).with_name("other_clock.c")
GRACE_SECONDS, VALID_SECONDS, SLACK_SECONDS = 60, 90, 45
PERIOD_SECONDS = 10
STEP_SECONDS = 600
"""Less than MAX_TIME_SKIP (1200 s), by which condor_master restarts all daemons."""
PERIODS = f"""\
SHARECTL_JOB_CTL_PERIOD_SECONDS = {PERIOD_SECONDS}
SHARECTL_DISABLED_PERIOD_SECONDS = {PERIOD_SECONDS}
"""
UNGUARDED = "t1_clocks_differ_seconds = 1000000\n"
NODES = {
    # node: actuation, more configuration, how far its clock steps
    "wn-001": ("live", "", -STEP_SECONDS),
    "wn-002": ("cron", "", -STEP_SECONDS),
    "wn-003": ("live", "", STEP_SECONDS),
    "wn-004": ("live", UNGUARDED, -STEP_SECONDS),
    "wn-005": ("live", "", -STEP_SECONDS),
    "wn-006": ("live", "", STEP_SECONDS),
    "wn-007": ("live", UNGUARDED, -STEP_SECONDS),
}
WITH_TARGET, WITHOUT_GUARD = ("wn-001", "wn-002", "wn-003"), "wn-004"
IN_GRACE, GRACE_WITHOUT_GUARD = ("wn-005", "wn-006"), "wn-007"
TARGETS, GRACES = (*WITH_TARGET, WITHOUT_GUARD), (*IN_GRACE, GRACE_WITHOUT_GUARD)


@pytest.fixture(scope="module")
def box(open_box: OpenBox) -> Iterator[Box]:
    points = tuple(
        execute_point(node, actuation, PERIODS + more, GRACE_SECONDS)
        for node, (actuation, more, _step) in NODES.items()
    )
    with open_box(pool_of(points)) as running:
        library = running.shared_directory / "other_clock.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(CLOCK)], check=True)
        for node in NODES:
            step(running, node, 0)
            preload = f"LD_PRELOAD={library} CLOCK_SHIFT_FILE={shift_file(running, node)}"
            running.write_config(host(node), f'STARTD_ENVIRONMENT = "{preload}"\n')
            running.stop_host(host(node))
            running.start_host(host(node))
        yield running


def shift_file(box: Box, node: str) -> Path:
    return box.shared_directory / f"{node}.shift"


def step(box: Box, node: str, seconds: int) -> None:
    """Have the node's clock differ by so many seconds from now on."""
    with shift_file(box, node).open("r+b" if shift_file(box, node).exists() else "wb") as file:
        file.write(struct.pack("l", seconds))


def between_two_runs(box: Box, node: str) -> bool:
    return 2 < time.time() - int(asked(box, node, "t1_JobCtlTime")) < PERIOD_SECONDS - 3


def test_no_target_and_no_grace_outlives_a_step_of_the_clock(box: Box) -> None:
    for node in GRACES:
        submit(box, node, "multicore", CORES, "until told")
    box.wait_until(lambda: len(box.jobs("JobStatus == 2")) == len(GRACES), 120, "nodes are full")
    box.wait_until(
        lambda: known(box, TARGETS, 't1_JobCtlReason == "no-file"'), 60, "nodes look for targets"
    )
    until = int(time.time()) + VALID_SECONDS
    for node in TARGETS:
        publish(box, node, until, f"alice 0 cms {CORES}")
    box.wait_until(lambda: known(box, TARGETS, "t1_TargetActive"), 40, "nodes have their targets")
    for node in NODES:
        submit(box, node, "single", 1)
    (box.shared_directory / "leave").touch()
    box.wait_until(lambda: known(box, GRACES, "MC_GRACE && Cpus == 8"), 60, "nodes are in grace")
    ended = max(event_log.times(log_of(box, node, "multicore"), TERMINATED)[0] for node in GRACES)
    assert max(time.time(), ended) < until - 10, "too slow a machine to tell an end on time"
    for node, (_actuation, more, seconds) in NODES.items():
        if more == UNGUARDED:  # a timer that is set anew while the clock steps goes on
            box.wait_until(partial(between_two_runs, box, node), 40, f"{node} is between two runs")
        step(box, node, seconds)
    stepped = time.time()
    ran = {node: asked(box, node, "t1_JobCtlTime") for node in NODES}

    last = {**dict.fromkeys(TARGETS, until), **dict.fromkeys(GRACES, ended + GRACE_SECONDS)}
    guarded = (*WITH_TARGET, *IN_GRACE)
    box.wait_until(
        lambda: (
            all(started(box, node, "single") < float("inf") for node in guarded)
            and time.time() > max(last.values()) + SLACK_SECONDS
        ),
        VALID_SECONDS + 4 * SLACK_SECONDS,
        "jobs flow where what was published in the future is stale",
    )
    late = {node: round(started(box, node, "single") - last[node], 1) for node in NODES}
    print(
        f"{time.time() - stepped:.0f} s after the step; starts, seconds after the end that was "
        f"published: {late}"
    )
    for node in guarded:
        assert late[node] <= SLACK_SECONDS, node
    assert late[WITHOUT_GUARD] == float("inf"), "without the guard the target stands"
    frozen = {node: asked(box, node, "t1_JobCtlTime") == ran[node] for node in NODES}
    print(
        f"job_ctl has not run since the step: {frozen}; grace without the guard: "
        f"{late[GRACE_WITHOUT_GUARD]}"
    )

    # What helps where timers stand still.
    node = WITHOUT_GUARD
    (box.shared_directory / f"{node}.disabled").touch()
    box.reconfig(host(node))
    time.sleep(2 * PERIOD_SECONDS + 2)
    print(
        f"after the file and condor_reconfig: {asked(box, node, 't1_Disabled')} "
        f"{asked(box, node, 't1_JobCtlTime')}"
    )
    assert asked(box, node, "t1_JobCtlTime") == ran[node], (
        "condor_reconfig does not wake the timers"
    )
    assert asked(box, node, "t1_Disabled") == "false"
    box.write_config(host(node), "SHARECTL_ENABLED = False\n", "95-off.config")
    box.reconfig(host(node))
    # A job need not start: where a claim was refused, HTCondor's own update with a new one stands
    # still too.
    assert asked(box, node, "t1_Enabled") == "false", "the switch of the configuration acts"
    assert asked(box, node, "unparse(t1_TargetAdmits)").lower().startswith("false == false ||")

    # It mends itself.
    for node in WITH_TARGET:
        step(box, node, 0)
        publish(box, node, int(time.time()) + 300, f"alice 0 cms {CORES}")
    box.wait_until(lambda: known(box, WITH_TARGET[:2], "t1_TargetActive"), 60, "targets act again")
