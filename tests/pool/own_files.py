"""Nodes that each read their own target file, and jobs that are pinned to one of them."""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path

from poolbox import Box, BoxSpec, ExecutePoint, event_log
from poolbox.event_log import EXECUTE
from poolbox.waiting import HANG_SECONDS
from tests.node_fakes import document
from tests.pool import deployed
from tests.pool.deployed import on, snippet

CORES = 8
HELD_BACK, HELPED = "alice", "cms"


def host(node: str) -> str:
    return f"{node}.example.org"


def execute_point(node: str, actuation: str, more: str, grace_seconds: int) -> ExecutePoint:
    text = snippet(
        source=f"file:$(LOCAL_DIR)/../../shared/{node}.txt",
        actuation=actuation,
        disabled_file=f"$(LOCAL_DIR)/../../shared/{node}.disabled",
        disabled_period_seconds=3,
        grace_seconds=grace_seconds,
        # The nodes share this machine: a run may be late.
        job_ctl_stale_seconds=120,
        mc_grace_stale_seconds=120,
    )
    return ExecutePoint(host(node), CORES, config=text + more)


def pool_of(points: tuple[ExecutePoint, ...]) -> BoxSpec:
    return BoxSpec(points, access_points=("ap-1.example.org",), access_config=event_log.EVENT_TIMES)


def publish(box: Box, node: str, until: int, *orders: str, pending: str = "") -> None:
    """Write the node's own document, valid ``until`` that Unix second."""
    now = int(time.time())
    text = document(
        *(f"{node} {order}" for order in orders),
        now=now,
        sequence=now,
        groups=f"{HELD_BACK},{HELPED}",
        validity_seconds=until - now,
        pending=pending,
    )
    deployed.replace(box.shared_directory / f"{node}.txt", text.splitlines())


def log_of(box: Box, node: str, name: str) -> Path:
    return box.shared_directory / f"{node}.{name}"


def submit(
    box: Box, node: str, name: str, cores: int, seconds: str = "600", *, count: int = 1
) -> None:
    """Jobs of the held-back group that may run on that node alone."""
    leave = box.shared_directory / "leave"
    until_told = f"arguments = \"-c 'until test -e {leave}; do sleep 0.2; done'\""
    lines = [until_told] if seconds == "until told" else []
    lines += [on(host(node)), f"log = {log_of(box, node, name)}"]
    box.submit(deployed.jobs(HELD_BACK, cores, count, seconds, *lines))


def started(box: Box, node: str, name: str) -> float:
    """Unix second at which the first job of that log began; infinite if none did."""
    return min(event_log.times(log_of(box, node, name), EXECUTE), default=float("inf"))


def become(
    box: Box, nodes: Collection[str], constraint: str, seconds: float = HANG_SECONDS
) -> None:
    """Wait until the collector has all these nodes' partitionable slots as ``constraint`` says."""
    query = ("-constraint", f"PartitionableSlot && ({constraint})", "-af", "Machine")
    hosts = {host(node) for node in nodes}

    def so() -> bool:
        return hosts <= {name for (name,) in deployed.shown(box, *query)}

    box.wait_until(so, f"{nodes}: {constraint}", seconds)


def asked(box: Box, node: str, attribute: str) -> str:
    """The attribute of the node's first slot, straight from its startd."""
    return box.run(["condor_status", "-direct", host(node), "-af", attribute]).stdout.split("\n")[0]
