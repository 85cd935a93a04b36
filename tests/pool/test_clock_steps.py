"""Clocks of nodes that step under a running startd, back and forward, with a target and in grace.

HTCondor's timers go by the wall clock: after a step back no STARTD_CRON job runs until the old time
is reached again.
"""

from __future__ import annotations

import time
from functools import partial

from poolbox import Box, event_log
from poolbox.event_log import TERMINATED
from tests.pool import clocks
from tests.pool.deployed import refusals, run
from tests.pool.own_files import (
    CORES,
    asked,
    become,
    execute_point,
    host,
    log_of,
    pool_of,
    publish,
    started,
    submit,
)

GRACE_SECONDS, VALID_SECONDS, SLACK_SECONDS = 60, 40, 45
PERIOD_SECONDS = 8
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
}
WITH_TARGET, AHEAD, WITHOUT_GUARD = ("wn-001", "wn-002", "wn-003"), "wn-003", "wn-004"
IN_GRACE = ("wn-005", "wn-006")
TARGETS = (*WITH_TARGET, WITHOUT_GUARD)
SPEC = pool_of(
    tuple(
        execute_point(node, actuation, PERIODS + more, GRACE_SECONDS)
        for node, (actuation, more, _step) in NODES.items()
    )
)


def prepare(box: Box) -> None:
    clocks.restart_shifted(box, {host(node): 0 for node in NODES})


def between_two_runs(box: Box, node: str) -> bool:
    return 2 < time.time() - int(asked(box, node, "t1_JobCtlTime")) < PERIOD_SECONDS - 3


def targets_until(box: Box, until: int) -> None:
    for node in TARGETS:
        publish(box, node, until, f"alice 0 cms {CORES}")
    become(box, TARGETS, f"t1_TargetUntil == {until} && t1_TargetActive")


def test_no_target_and_no_grace_outlives_a_step_of_the_clock(pool: Box) -> None:
    box = pool  # not cleaned: its clocks differ
    for node in IN_GRACE:
        submit(box, node, "multicore", CORES, "until told")
    run(box, len(IN_GRACE))
    targets_until(box, int(time.time()) + 600)
    for node in NODES:
        submit(box, node, "single", 1)
    (box.shared_directory / "leave").touch()
    become(box, IN_GRACE, "MC_GRACE && Cpus == 8")
    ended = max(event_log.times(log_of(box, node, "multicore"), TERMINATED)[0] for node in IN_GRACE)
    until = int(time.time()) + VALID_SECONDS
    targets_until(box, until)
    # A timer that is set anew while the clock steps goes on.
    box.wait_until(partial(between_two_runs, box, WITHOUT_GUARD), "it is between two runs")
    ran = asked(box, WITHOUT_GUARD, "t1_JobCtlTime")
    for node, (_actuation, _more, seconds) in NODES.items():
        clocks.shift(box, host(node), seconds)
    last = {**dict.fromkeys(TARGETS, until), **dict.fromkeys(IN_GRACE, ended + GRACE_SECONDS)}
    assert time.time() < min(last.values()), "too slow a machine to step in time"

    guarded = (*WITH_TARGET, *IN_GRACE)
    refused = partial(refusals, box, host(WITHOUT_GUARD))
    before = refused()

    def flows() -> bool:
        everywhere = all(started(box, node, "single") < float("inf") for node in guarded)
        return everywhere and time.time() > until and refused() > before

    seconds = 2 * GRACE_SECONDS + SLACK_SECONDS
    box.wait_until(flows, "jobs flow where the future is stale, and are refused elsewhere", seconds)
    late = {node: round(started(box, node, "single") - last[node], 1) for node in NODES}
    print(f"starts, seconds after the end that was published: {late}")
    for node in guarded:
        assert late[node] <= SLACK_SECONDS, node
    assert late[WITHOUT_GUARD] == float("inf"), "without the guard the target stands"

    # What helps where timers stand still.
    node = WITHOUT_GUARD
    (box.shared_directory / f"{node}.disabled").touch()
    box.reconfig(host(node))
    runs = {asked(box, AHEAD, "t1_JobCtlTime")}

    def ahead_has_run() -> bool:
        runs.add(asked(box, AHEAD, "t1_JobCtlTime"))
        return len(runs) > 2

    box.wait_until(ahead_has_run, "a node whose timers go on has looked twice")
    assert asked(box, node, "t1_JobCtlTime") == ran, "condor_reconfig does not wake the timers"
    assert asked(box, node, "t1_Disabled") == "false"
    box.write_config(host(node), "SHARECTL_ENABLED = False\n", "95-off.config")
    box.reconfig(host(node))
    # A job need not start: where a claim was refused, HTCondor's own update with a new one stands
    # still too.
    switch = partial(asked, box, node, "t1_Enabled")
    box.wait_until(lambda: switch() == "false", "the switch of the configuration acts")
    assert asked(box, node, "unparse(t1_TargetAdmits)").lower().startswith("false == false ||")

    # It mends itself.
    for node in WITH_TARGET:
        clocks.shift(box, host(node), 0)
        publish(box, node, int(time.time()) + 300, f"alice 0 cms {CORES}")
    become(box, WITH_TARGET[:2], "t1_TargetActive")
