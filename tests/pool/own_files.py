"""Nodes that each read their own target file, and jobs that are pinned to one of them."""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool import event_log
from tests.pool.event_log import EXECUTE
from tests.pool.sharectl_command import CHECKOUT

CORES = 8
HELD_BACK, HELPED = "alice", "cms"
SNIPPET = """\
include : {checkout}/config.d/60-sharectl-execute-point.conf
SHARECTL_ACTUATION = {actuation}
SHARECTL_SOURCE = file:$(LOCAL_DIR)/../../shared/{node}.txt
STARTD_CRON_JOB_CTL_EXECUTABLE = {checkout}/startd_cron/job_ctl.py
STARTD_CRON_MC_GRACE_EXECUTABLE = {checkout}/startd_cron/mc_grace.py
SHARECTL_DISABLED_FILE = $(LOCAL_DIR)/../../shared/{node}.disabled
SHARECTL_DISABLED_PERIOD_SECONDS = 3
SHARECTL_GRACE_SECONDS = {grace_seconds}
SHARECTL_JOB_CTL_PERIOD_SECONDS = 3
SHARECTL_MC_GRACE_PERIOD_SECONDS = 3
# The nodes share this machine: a run may be late.
SHARECTL_JOB_CTL_STALE_SECONDS = 120
SHARECTL_MC_GRACE_STALE_SECONDS = 120
"""


def host(node: str) -> str:
    return f"{node}.example.org"


def execute_point(node: str, actuation: str, more: str, grace_seconds: int) -> ExecutePoint:
    text = SNIPPET.format(
        checkout=CHECKOUT, actuation=actuation, node=node, grace_seconds=grace_seconds
    )
    return ExecutePoint(host(node), CORES, config=text + more)


def pool_of(points: tuple[ExecutePoint, ...]) -> BoxSpec:
    return BoxSpec(points, access_points=("ap-1.example.org",), access_config=event_log.EVENT_TIMES)


def publish(box: Box, node: str, until: int, *orders: str, pending: str = "") -> None:
    """Write the node's own document, valid ``until`` that Unix second."""
    now = int(time.time())
    lines = [
        "# sharectl: 1",
        f"# sequence: {now}",
        f"# generated: {now}",
        f"# valid_until: {until}",
        f"# groups: {HELD_BACK},{HELPED}",
        *([f"# multicore_pending: {pending}"] if pending else []),
        f"# targets: {len(orders)}",
        *(f"{node} {order}" for order in orders),
    ]
    fresh = box.shared_directory / f"{node}.fresh"
    fresh.write_text("".join(f"{line}\n" for line in lines))
    fresh.replace(box.shared_directory / f"{node}.txt")


def log_of(box: Box, node: str, name: str) -> Path:
    return box.shared_directory / f"{node}.{name}"


def submit(
    box: Box, node: str, name: str, cores: int, seconds: str = "600", *, count: int = 1
) -> None:
    """Jobs of the held-back group that may run on that node alone."""
    leave = box.shared_directory / "leave"
    runs = (
        f"executable = /bin/sh\narguments = \"-c 'until test -e {leave}; do sleep 0.2; done'\"\n"
        if seconds == "until told"
        else f"executable = /bin/sleep\narguments = {seconds}\n"
    )
    box.submit(
        f"{runs}transfer_executable = False\nrequest_cpus = {cores}\nrequest_memory = "
        "8\nrequest_disk = 8\n"
        f"log = {log_of(box, node, name)}\naccounting_group = "
        f"{HELD_BACK}\naccounting_group_user = bob\n"
        f'requirements = TARGET.Machine == "{host(node)}"\nqueue {count}\n'
    )


def started(box: Box, node: str, name: str) -> float:
    """Unix second at which the first job of that log began; infinite if none did."""
    return min(event_log.times(log_of(box, node, name), EXECUTE), default=float("inf"))


def known(box: Box, nodes: Collection[str], constraint: str) -> bool:
    """Whether the collector has all these nodes' partitionable slots as ``constraint`` says."""
    query = [
        "condor_status",
        "-constraint",
        f"PartitionableSlot && ({constraint})",
        "-af",
        "Machine",
    ]
    return {host(node) for node in nodes} <= set(box.run(query).stdout.split())


def asked(box: Box, node: str, attribute: str) -> str:
    """The attribute of the node's first slot, straight from its startd."""
    return box.run(["condor_status", "-direct", host(node), "-af", attribute]).stdout.split("\n")[0]
