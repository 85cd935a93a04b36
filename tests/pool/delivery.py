"""A pool whose nodes each get their target in another way, and looks at it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from poolbox import Box, BoxSpec, ExecutePoint
from poolbox.errors import PoolboxError
from sharectl.model import Plan, Target
from sharectl.report import as_json
from tests.logs import changes_in
from tests.pool import event_log
from tests.pool.deployed import jobs, snippet
from tests.pool.event_log import EXECUTE, TERMINATED, Event
from tests.pool.sharectl_command import GROUPS, Sharectl

HELD_BACK, HELPED = "atlas", "cms"
CORES, MULTICORE = 9, 8
PERIOD_SECONDS = 4
SUBMITTED = "000"
LOOK_SECONDS = 1.0
SLACK_SECONDS = 30
"""From a target's end to a job's start: job_ctl, an update, a negotiation cycle."""


def shared(name: str) -> str:
    """A file in the shared folder, as a node's configuration names it."""
    return f"$(LOCAL_DIR)/../../shared/{name}"


def deployed(source: str, options: str = "", period_seconds: int = PERIOD_SECONDS) -> str:
    """Configuration of a node that asks that source."""
    return snippet(
        actuation="live",
        source=source,
        source_options=options,
        job_ctl_period_seconds=period_seconds,
        grace_seconds=1,
    )


def spec_of(nodes: Mapping[str, str]) -> BoxSpec:
    """Pool with those nodes, by name, each with its configuration."""
    return BoxSpec(
        execute_points=tuple(
            ExecutePoint(f"{node}.example.org", CORES, config=text) for node, text in nodes.items()
        ),
        access_points=("ap-1.example.org",),
        access_config=event_log.EVENT_TIMES,
    )


@dataclass(frozen=True)
class Look:
    """What the collector had of one node at one moment."""

    at: float
    node: str
    reason: str
    until: int
    """t1_TargetUntil."""
    acts: bool
    """t1_TargetActive, evaluated at that moment."""


@dataclass
class Watch:
    """Looks at all nodes, once a second."""

    box: Box
    looks: list[Look] = field(default_factory=list)

    def last(self) -> dict[str, Look]:
        """Node -> the latest look."""
        return {look.node: look for look in self.looks[-2 * len(self.box.spec.execute_points) :]}

    def look(self) -> None:
        """Look once."""
        names = ("Machine", "t1_JobCtlReason", "t1_TargetUntil", "t1_TargetActive")
        query = ["condor_status", "-constraint", "PartitionableSlot =?= True", "-af:,", *names]
        with contextlib.suppress(PoolboxError):
            lines = self.box.run(query, 20).stdout.splitlines()
            now = time.time()
            for machine, reason, until, acts in (line.split(", ") for line in lines):
                node = machine.partition(".")[0]
                seconds = int(until) if until.isdigit() else 0
                self.looks.append(Look(now, node, reason, seconds, acts == "true"))

    def reasons(self, node: str, since: float, until: float = float("inf")) -> set[str]:
        """What the node said in that time."""
        return {
            each.reason for each in self.looks if each.node == node and since <= each.at <= until
        }

    def outlived(self) -> list[Look]:
        """Looks at which a target was acted on that had ended."""
        return [each for each in self.looks if each.acts and each.at > each.until + 1]

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Look until the body is through."""
        over = threading.Event()

        def go() -> None:
            while not over.wait(LOOK_SECONDS):
                self.look()

        thread = threading.Thread(target=go)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


@dataclass(frozen=True)
class Jobs:
    """Jobs of a pool: short ones of one core, and ones of eight cores.

    The large ones come first, so that beside them a node has room for one small one at a time,
    whatever happens.
    """

    box: Box
    log: Path

    def supply(self, large: int, small: int, requirements: str, nodes: int = 0) -> None:
        """Put jobs into the queue; the small ones once a large one has started on so many nodes."""
        self.submit(HELPED, MULTICORE, 12, large, requirements)
        self.box.wait_until(
            lambda: len({event.host for event in self._events(HELPED, EXECUTE)}) >= nodes,
            60,
            "a large job runs on every node",
        )
        if small:
            self.submit(HELD_BACK, 1, 6, small, requirements)

    def submit(self, group: str, cores: int, seconds: int, count: int, requirements: str) -> None:
        """Put jobs of a group into the queue."""
        lines = (f"requirements = {requirements}", f"log = {self.log}-{group}")
        self.box.submit(jobs(group, cores, count, seconds, *lines))

    def _events(self, group: str, number: str) -> list[Event]:
        return event_log.events(self.log.with_name(f"{self.log.name}-{group}"), number)

    def starts(self, node: str, group: str, since: float) -> list[float]:
        """Unix seconds at which jobs of the group started on the node from ``since`` on."""
        return [
            event.at
            for event in self._events(group, EXECUTE)
            if event.at >= since and event.host.partition(".")[0] == node
        ]

    def lost(self) -> list[str]:
        """Jobs that are neither in the queue nor ended once; or that are held."""
        submitted = {group: self._events(group, SUBMITTED) for group in (HELPED, HELD_BACK)}
        queued = {
            f"{job['ClusterId']}.{job['ProcId']}": job["JobStatus"]
            for job in self.box.jobs(attributes=("ClusterId", "ProcId", "JobStatus"))
        }
        found = [f"{job}: held" for job, status in queued.items() if status not in (1, 2, 4)]
        for group in (HELPED, HELD_BACK):
            ends = Counter(_plain(event.job) for event in self._events(group, TERMINATED))
            for event in submitted[group]:
                job = _plain(event.job)
                if ends[job] > 1 or (ends[job] == 0 and job not in queued):
                    found.append(f"{job}: ended {ends[job]} times")
        return found


def _plain(job: str) -> str:
    """``12.3`` of ``012.003``."""
    cluster, process = job.split(".")
    return f"{int(cluster)}.{int(process)}"


def publish(
    command: Sharectl,
    nodes: Sequence[str],
    validity_seconds: int,
    /,
    expect: int = 0,
    **configuration: Any,
) -> tuple[int, str]:
    """Hold back all jobs of one group; returns the end, Unix seconds, and the output."""
    now = int(time.time())
    until = now + validity_seconds
    targets = tuple(Target(node, HELD_BACK, 0, HELPED, MULTICORE) for node in nodes)
    plan = Plan(now, now, until, tuple(GROUPS), targets, "targets", HELD_BACK, HELPED)
    path = command.folder / "plan.json"
    path.write_text(as_json.dumps("plan", as_json.plan(plan)))
    done = command.run("publish", "--plan", str(path), expect=expect, **configuration)
    return until, done.stdout + done.stderr


def audited(folder: Path) -> dict[str, Any]:
    """Node -> its target as the audit's last line about it says, but for nodes without one."""
    rows = [row for row in changes_in(folder) if row["event"] == "target"]
    targets = {row["node"]: row["after"] for row in rows}
    return {node: target for node, target in targets.items() if target is not None}
