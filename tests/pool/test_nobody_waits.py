"""There is no grace while the plan says that no multicore job waits."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator

import pytest

from poolbox import Box
from tests.pool import event_log
from tests.pool.conftest import OpenBox
from tests.pool.event_log import TERMINATED
from tests.pool.own_files import (
    CORES,
    execute_point,
    known,
    log_of,
    pool_of,
    publish,
    started,
    submit,
)
from tests.pool.sharectl_command import CHECKOUT

JOB_CTL = CHECKOUT / "startd_cron" / "job_ctl.py"
GRACE_SECONDS = 40
VALID_SECONDS, SOON_SECONDS = 600, 25
OWN_PROGRAM = "STARTD_CRON_JOB_CTL_EXECUTABLE = $(LOCAL_DIR)/../../shared/job_ctl.py\n"
SILENT = "#!/bin/sh\nexit 0\n"
"""What has been published stands, though its end has come."""
OFF = "t1_nobody_waits = False\n"
NODES = {
    # node: actuation, more configuration, what its plan says, and for how long that is valid
    "wn-001": ("live", "", "0", VALID_SECONDS),
    "wn-002": ("cron", "", "0", VALID_SECONDS),
    "wn-003": ("live", "", "1", VALID_SECONDS),
    "wn-004": ("live", "", "", VALID_SECONDS),
    "wn-005": ("live", OWN_PROGRAM, "0", SOON_SECONDS),
    "wn-006": ("live", OFF, "0", VALID_SECONDS),
}
AT_ONCE = ("wn-001", "wn-002")
AFTER_GRACE = ("wn-003", "wn-004", "wn-005", "wn-006")


@pytest.fixture(scope="module")
def box(open_box: OpenBox) -> Iterator[Box]:
    points = tuple(
        execute_point(node, actuation, more, GRACE_SECONDS)
        for node, (actuation, more, _pending, _seconds) in NODES.items()
    )
    with open_box(pool_of(points)) as running:
        yield running


def test_single_core_jobs_wait_after_a_multicore_job_unless_it_is_known_that_none_waits(
    box: Box,
) -> None:
    for program in (JOB_CTL, JOB_CTL.with_name("target.py")):
        shutil.copy(program, box.shared_directory)
    for node in NODES:
        submit(box, node, "multicore", CORES, "until told")
    box.wait_until(lambda: len(box.jobs("JobStatus == 2")) == len(NODES), 120, "every node is full")
    soon = time.time() + SOON_SECONDS
    for node, (_actuation, _more, pending, seconds) in NODES.items():
        publish(box, node, int(time.time()) + seconds, pending=pending)
    free = [node for node in NODES if NODES[node][2] == "0"]
    box.wait_until(
        lambda: known(box, free, "t1_MulticorePending =?= False && t1_MulticorePendingUntil > 0"),
        60,
        "the nodes know that no multicore job waits",
    )
    (box.shared_directory / "silent").write_text(SILENT)
    (box.shared_directory / "silent").chmod(0o755)
    (box.shared_directory / "silent").replace(box.shared_directory / "job_ctl.py")
    for node in NODES:
        submit(box, node, "single", 1)
    time.sleep(max(0.0, soon - time.time()))
    (box.shared_directory / "leave").touch()
    box.wait_until(
        lambda: all(event_log.times(log_of(box, node, "multicore"), TERMINATED) for node in NODES),
        60,
        "the multicore jobs end",
    )
    ended = {node: event_log.times(log_of(box, node, "multicore"), TERMINATED)[0] for node in NODES}
    box.wait_until(
        lambda: all(started(box, node, "single") < float("inf") for node in NODES),
        3 * GRACE_SECONDS + 30,
        "single-core jobs start everywhere",
    )
    waited = {node: round(started(box, node, "single") - ended[node], 1) for node in NODES}
    print(f"seconds from the end of the multicore job to the first single-core job: {waited}")
    for node in AT_ONCE:
        assert 0 <= waited[node] <= GRACE_SECONDS / 2, f"{node}: nobody waits"
    for node in AFTER_GRACE:
        assert waited[node] >= GRACE_SECONDS - 1, f"{node}: grace holds"
