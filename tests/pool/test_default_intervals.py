"""Nodes with HTCondor's UPDATE_INTERVAL: what the negotiator sees is what the startd does."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from poolbox import Box, BoxSpec, ExecutePoint, event_log
from tests.pool.conftest import OpenBox
from tests.pool.deployed import jobs, on, refusals, snippet
from tests.pool.own_files import CORES, host, known, log_of, publish, started, submit

pytestmark = pytest.mark.semantics

DEFAULTS = "UPDATE_INTERVAL = 300\n"
"""Of HTCondor, where a box has 3 s."""
PERIOD_SECONDS, SLACK_SECONDS = 30, 30
OLD_SECONDS = 200
"""Age of a copy: more than SHARECTL_JOB_CTL_STALE_SECONDS, less than UPDATE_INTERVAL."""
ACTUATION = {"wn-001": "live", "wn-002": "cron", "wn-003": "live"}
STEERED, RELAXED = ("wn-001", "wn-002"), "wn-003"
"""Nodes with a target, and one that knows that no multicore job waits for its grace."""


@pytest.fixture(scope="module")
def box(open_box: OpenBox) -> Iterator[Box]:
    points = tuple(
        ExecutePoint(
            host(node),
            CORES,
            config=snippet(
                DEFAULTS,
                source=f"file:$(LOCAL_DIR)/../../shared/{node}.txt",
                actuation=actuation,
                grace_seconds=480,
                job_ctl_period_seconds=PERIOD_SECONDS,
                mc_grace_period_seconds=60,
                mc_grace_stale_seconds=180,
            ),
        )
        for node, actuation in ACTUATION.items()
    )
    spec = BoxSpec(points, access_points=("ap-1.example.org",), access_config=event_log.EVENT_TIMES)
    with open_box(spec) as running:
        yield running


def test_a_copy_that_was_sent_minutes_ago_says_what_the_startd_does(box: Box) -> None:
    submit(box, RELAXED, "multicore", CORES, "until told")
    box.wait_until(lambda: started(box, RELAXED, "multicore") < float("inf"), "it is full")
    until = int(time.time()) + 3600
    publish(box, RELAXED, until, pending="0")
    for node in STEERED:
        publish(box, node, until, f"alice 0 cms {CORES}")
    began = time.monotonic()
    box.wait_until(
        lambda: (
            known(box, STEERED, "t1_TargetActive && MyCurrentTime - t1_JobCtlTime < 30")
            and known(box, [RELAXED], "t1_MulticorePending =?= False")
        ),
        "the collector has what job_ctl has read, long before the next UPDATE_INTERVAL",
        PERIOD_SECONDS + SLACK_SECONDS,
    )
    print(f"in the collector after {time.monotonic() - began:.0f} s")
    (box.shared_directory / "leave").touch()
    box.wait_until(lambda: known(box, [RELAXED], f"Cpus == {CORES}"), "its cores are free")

    before = {node: refusals(box, host(node)) for node in STEERED}
    sent = f"time() - LastHeardFrom > {OLD_SECONDS}"
    box.wait_until(lambda: known(box, ACTUATION, sent), "all copies are old")
    assert known(box, STEERED, f"{sent} && t1_TargetActive")
    assert known(box, [RELAXED], f"{sent} && MC_GRACE =?= False")

    for node in STEERED:
        box.submit(
            jobs("lhcb", 1, 1, "600", on(host(node)), f"log = {log_of(box, node, 'others')}")
        )
    submit(box, RELAXED, "single", 1)
    box.wait_until(
        lambda: started(box, RELAXED, "single") < float("inf"), "a job starts without grace"
    )
    time.sleep(10)  # some negotiation cycles
    assert {node: refusals(box, host(node)) for node in STEERED} == before, "none was matched"
    assert [started(box, node, "others") for node in STEERED] == [float("inf")] * 2
