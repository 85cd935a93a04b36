"""Jobs that flow while something fails: who lost one, and which nodes act on a target."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, NamedTuple

from poolbox import Box, PoolboxError, event_log
from poolbox.event_log import EVICTED, EXECUTE, TERMINATED, Event
from tests.pool import deployed

SUBMITTED, ABORTED, HELD = "000", "009", "012"
DISCONNECTED, RECONNECTED, RECONNECT_FAILED = "022", "023", "024"
LIFE = (EXECUTE, EVICTED, TERMINATED, DISCONNECTED, RECONNECTED, RECONNECT_FAILED)
"""What tells of a job from its first start to its end."""
LOOK_SECONDS = 1.0
SLACK_SECONDS = 30
"""From a target's end to a job's start: job_ctl, an update, a negotiation cycle."""
Job = tuple[Path, str]
"""Event log, and number of the job there."""


@contextlib.contextmanager
def repeating(work: Callable[[], None], seconds: float) -> Iterator[None]:
    """Do something every so many seconds beside the body; raises what ended it."""
    over = threading.Event()
    failures: list[BaseException] = []

    def go() -> None:
        try:
            while not over.is_set():
                began = time.monotonic()
                work()
                over.wait(max(0.0, seconds - (time.monotonic() - began)))
        except BaseException as failure:  # noqa: BLE001  # for the test to raise
            failures.append(failure)

    thread = threading.Thread(target=go)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(60)
    if failures:
        raise failures[0]


@dataclass(frozen=True)
class Look:
    """A node at one moment."""

    at: int
    """Unix seconds; so is the end."""
    node: str
    active: bool
    """True if START acts on a target."""
    until: int
    sequence: int
    reason: str


@dataclass
class Watch:
    """Looks at nodes: by the collector, or by the startds of those that are named."""

    box: Box
    startds: tuple[str, ...] = ()
    looks: list[Look] = field(default_factory=list)

    def look(self) -> None:
        shown = ("t1_TargetActive", "t1_TargetUntil", "t1_TargetSequence", "t1_JobCtlReason")
        query = ["-constraint", "PartitionableSlot =?= True", "-af", "time()", "Machine", *shown]
        for source in self._sources():
            with contextlib.suppress(PoolboxError):  # a daemon is down
                rows = self.box.run(["condor_status", *source, *query], 20).stdout.splitlines()
                self.looks += [
                    Look(int(at), node, active == "true", _whole(until), _whole(sequence), reason)
                    for at, node, active, until, sequence, reason in map(str.split, rows)
                ]

    def _sources(self) -> Iterator[list[str]]:
        if not self.startds:
            yield []
        for node in self.startds:
            file = self.box.local_directory(node) / "log" / ".startd_address"
            if file.exists():
                yield ["-pool", file.read_text().splitlines()[0]]

    def last(self) -> dict[str, Look]:
        """Node -> the latest look, not older than a few looks."""
        return {look.node: look for look in self.looks[-40:] if look.at > time.time() - 4}

    def acting(self) -> list[str]:
        """Nodes on which START acts on a target now."""
        return [node for node, look in sorted(self.last().items()) if look.active]

    def reason(self, node: str) -> str:
        """Reason code that the node publishes now; empty if it was not seen lately."""
        look = self.last().get(node)
        return look.reason if look else ""

    def outlived(self) -> list[Look]:
        """Looks at which a target was acted on that had ended."""
        return [look for look in self.looks if look.active and look.at >= look.until]


def _whole(text: str) -> int:
    return int(text) if text.isdigit() else 0


class Cluster(NamedTuple):
    """Jobs that came together."""

    group: str
    access_point: str
    number: int
    jobs: int
    log: Path


@dataclass
class Jobs:
    """Jobs of a pool, each cluster with its event log."""

    box: Box
    clusters: list[Cluster] = field(default_factory=list)

    def submit(
        self,
        group: str,
        cores: int,
        count: int,
        seconds: object,
        *lines: str,
        access_point: str = "ap-1.example.org",
    ) -> Path:
        """Event log of the jobs."""
        log = self.box.shared_directory / f"jobs-{time.time_ns()}.log"
        text = deployed.jobs(group, cores, count, seconds, f"log = {log}", *lines)
        number = self.box.submit(text, access_point)
        self.clusters.append(Cluster(group, access_point, number, count, log))
        return log

    def starts(
        self, since: float, group: str, access_point: str = "", host: str = ""
    ) -> list[float]:
        """Unix seconds after ``since`` at which jobs began, the first one first."""
        return sorted(
            event.at
            for cluster in self.clusters
            if cluster.group == group and access_point in ("", cluster.access_point)
            for event in event_log.events(cluster.log, EXECUTE)
            if event.at > since and host in ("", event.host)
        )

    def fates(
        self, at: float, host: str = "", access_point: str = ""
    ) -> dict[Job, tuple[str, ...]]:
        """Events of each job that ran there then, up to its next start or its end."""
        fates: dict[Job, tuple[str, ...]] = {}
        for cluster in self.clusters:
            by_job: dict[str, list[Event]] = {}
            for event in event_log.events(cluster.log, *LIFE):
                if access_point in ("", cluster.access_point):
                    by_job.setdefault(event.job, []).append(event)
            for job, events in by_job.items():
                past = [event for event in events if event.at <= at]
                if past and past[-1].number == EXECUTE and host in ("", past[-1].host):
                    numbers = [event.number for event in events[len(past) :]]
                    ends = [n for n, it in enumerate(numbers, 1) if it in (EXECUTE, TERMINATED)]
                    fates[cluster.log, job] = tuple(numbers[: min(ends, default=None)])
        return fates

    def lost(self, interrupted: Collection[Job] = ()) -> list[str]:
        """Jobs neither in the queue nor ended once, or held; interrupted ones may end again."""
        queued = {
            (place, f"{job['ClusterId']:03}.{job['ProcId']:03}")
            for place in {cluster.access_point for cluster in self.clusters}
            for job in self.box.jobs("JobStatus != 3", ("ClusterId", "ProcId"), place)
        }
        lost = []
        for group, place, number, count, log in self.clusters:
            stopped = [event.job for event in event_log.events(log, ABORTED, HELD)]
            ends = Counter(event.job for event in event_log.events(log, TERMINATED))
            for job in (f"{number:03}.{process:03}" for process in range(count)):
                is_queued, again = (place, job) in queued, (log, job) in interrupted
                is_through = ends[job] == 1 or (ends[job] == 0 and is_queued)
                if job in stopped or not (is_through or (again and (is_queued or ends[job]))):
                    story = [event for event in event_log.events(log, *LIFE) if event.job == job]
                    lost.append(f"{group} {place} {job}: {is_queued=}, {ends[job]=}: {story}")
        return lost
