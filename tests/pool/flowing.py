"""A pool on which jobs flow while cycles run as the timer starts them, and looks at both.

Two nodes are steered; a third has no sharectl at all. Jobs of alice want every core, jobs of cms
eight together, one at a time: so on one of the steered nodes a target alone keeps eight cores free.
atlas has a few jobs, and no target is for it: one of them on a steered node tells that no target is
in force there.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Optional, TypeVar

from poolbox import Box, BoxSpec, ExecutePoint, PoolboxError
from sharectl.publish import text as sharectl_file
from tests.pool import event_log
from tests.pool.deployed import snippet
from tests.pool.event_log import EVICTED, EXECUTE, TERMINATED
from tests.pool.sharectl_command import Sharectl

CENTRAL, FIRST, SECOND = "cm-1.example.org", "ap-1.example.org", "ap-2.example.org"
STEERED, FREE = ("wn-001.example.org", "wn-002.example.org"), "wn-003.example.org"
ABORTED, HELD, DISCONNECTED, RECONNECTED, RECONNECT_FAILED = "009", "012", "022", "023", "024"
LIFE = (EXECUTE, EVICTED, TERMINATED, DISCONNECTED, RECONNECTED, RECONNECT_FAILED)
"""What tells of a job from its first start to its end."""
CYCLE_SECONDS, LOOK_SECONDS = 4.0, 1.0
VALIDITY_SECONDS = 60
JUST_BEFORE_SECONDS = 5
"""The least that sharectl takes."""

CONFIGURATION: dict[str, Any] = {
    # cms is always under its share and alice over: what stands is not taken back while jobs flow.
    "groups": {
        name: {"pledge_hs06": pledge}
        for name, pledge in (("alice", 10), ("atlas", 10), ("cms", 980))
    },
    "nodes": {"controlled": ["wn-001", "wn-002"]},
    "control": {"strategy": "pair", "dwell_seconds": 3600},
    "validity_seconds": VALIDITY_SECONDS,
    "pool": {"collector_deadline_seconds": 4.0, "schedd_deadline_seconds": 4.0},
}
SUPPLY = {"alice": (1, 800), "atlas": (1, 150), "cms": (8, 60)}
"""Group -> cores of a job, jobs at each access point."""

JOBS = """\
executable = /bin/sh
transfer_executable = False
arguments = "-c 'sleep $RANDOM_INTEGER(5,10) && echo {log} $(Cluster).$(Process) >> {done}'"
request_cpus = {cores}
request_memory = 8
request_disk = 8
# A job whose node is gone waits so long for it; HTCondor's own are 40 minutes.
job_lease_duration = 20
accounting_group = {group}
accounting_group_user = {user}
log = {log}
{more}
queue {count}
"""
SHOWN = ("t1_TargetActive", "t1_TargetUntil", "t1_TargetSequence", "t1_JobCtlReason")
Seen = TypeVar("Seen")
Fates = dict[tuple[Path, str], tuple[str, ...]]
"""Event log and job -> numbers of events."""


def spec() -> BoxSpec:
    """What the pool is."""
    return BoxSpec(
        execute_points=(
            *(ExecutePoint(name, cores=12, power_hs06=120.0, config=snippet()) for name in STEERED),
            ExecutePoint(FREE, cores=6, power_hs06=60.0),
        ),
        access_points=(FIRST, SECOND),
        # A schedd that hangs stays known for as long as HTCondor has it, 15 minutes. A claim
        # without a job whose schedd
        # has died, which counts for CMS_LIMIT too, ends after six times ALIVE_INTERVAL; HTCondor's
        # own is half an hour.
        access_config=event_log.EVENT_TIMES
        + "SCHEDD_ATTRS = ClassAdLifetime\nClassAdLifetime = 900\nALIVE_INTERVAL = 15\n",
        # Of a node that died, the slot of a job of cms counts for CMS_LIMIT until its ad is that
        # old.
        central_config="CMS_LIMIT = 1\nATLAS_LIMIT = 4\nCLASSAD_LIFETIME = 30\n",
        # The master waits so long before it starts a daemon again that has died; HTCondor's own are
        # 9 s and more.
        config="MASTER_BACKOFF_CONSTANT = 2\nCLAIM_WORKLIFE = 20\n",
    )


@dataclass(frozen=True)
class Cycle:
    """One run of ``sharectl cycle``, and the published file before and after it."""

    began: float
    """Unix seconds."""
    exit_code: int
    said: str
    before: bytes
    after: bytes


@dataclass(frozen=True)
class Look:
    """A steered node at one moment, as its own startd says."""

    at: int
    """Unix seconds; so are the other times."""
    node: str
    active: bool
    """True if START acts on a target."""
    until: int
    sequence: int
    reason: str
    published_until: int
    """Until when the last published file is valid."""

    @property
    def outlived(self) -> bool:
        """True if START acts on a target that no plan renews any more."""
        return self.active and (
            self.at >= self.published_until or self.until > self.published_until
        )


class Flow:
    """Jobs, cycles and looks, from `start` to `stop`."""

    def __init__(self, box: Box, folder: Path) -> None:
        self.box = box
        self.sharectl = Sharectl(box, folder)
        self.targets = box.shared_directory / "sharectl.txt"
        self.done = box.shared_directory / "done"
        self.clusters: list[tuple[str, str, int, int, Path]] = []
        """Group, access point, cluster, jobs, event log."""
        self.interrupted: list[tuple[float, str, str]] = []
        """Unix seconds at which jobs lost a node or an access point; the other name is empty."""
        self.cycles: list[Cycle] = []
        self.looks: list[Look] = []
        self._ended = threading.Event()
        self._failure: Optional[BaseException] = None
        self._threads = [
            threading.Thread(target=self._repeat, args=job)
            for job in ((self._cycle, CYCLE_SECONDS), (self._look, LOOK_SECONDS))
        ]

    def start(self) -> None:
        """Submit the supply, and once alice fills the pool run cycles and looks."""
        self._supply("alice")
        self.wait(self._filled, 90, "alice fills the steered nodes")
        for group in SUPPLY:
            if group != "alice":
                self._supply(group)
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End both, and raise what ended one of them before."""
        self._ended.set()
        for thread in self._threads:
            thread.join(60)
        if self._failure is not None:
            raise self._failure

    def submit(self, group: str, cores: int, count: int, access_point: str, *more: str) -> Path:
        """Event log of jobs that each leave a line in `done` when they are through."""
        log = self.box.shared_directory / f"jobs-{len(self.clusters)}.log"
        text = JOBS.format(
            group=group,
            # One for each access point, so that each gets its share.
            user=access_point.partition(".")[0],
            cores=cores,
            count=count,
            log=log,
            done=self.done,
            more="\n".join(more),
        )
        self.clusters.append((group, access_point, self.box.submit(text, access_point), count, log))
        return log

    def wait(self, predicate: Callable[[], Seen], seconds: float, what: str) -> Seen:
        """First true value, as `Box.wait_until`; at once what ended cycles or looks."""

        def seen() -> Seen:
            if self._failure is not None:
                raise self._failure
            return predicate()

        return self.box.wait_until(seen, seconds, what)

    # ---- what is seen

    def last_look(self, node: str) -> Optional[Look]:
        """The last look at a node whose startd answers; None if it did not lately."""
        young = [
            look for look in self.looks[-20:] if look.node == node and look.at > time.time() - 4
        ]
        return young[-1] if young else None

    def under_target(self) -> list[str]:
        """Nodes on which START acts on a target now."""
        return [node for node in STEERED if (look := self.last_look(node)) and look.active]

    def starts(
        self, since: float, group: str, access_point: str = "", host: str = ""
    ) -> list[float]:
        """Unix seconds after ``since`` at which jobs began, as their event logs say."""
        return sorted(
            event.at
            for name, place, _cluster, _count, log in self.clusters
            if name == group and access_point in ("", place)
            for event in event_log.events(log, EXECUTE)
            if event.at > since and host in ("", event.host)
        )

    def flows(self, since: float) -> bool:
        """Whether jobs of every group and of every access point have begun since then."""
        return all(self.starts(since, group) for group in SUPPLY) and all(
            self.starts(since, "alice", place) for place in (FIRST, SECOND)
        )

    def lost(self) -> list[str]:
        """Jobs neither in the queue nor done once; interrupted ones may be done more often."""
        # Of a job that ended just before, a schedd that was killed may not have written it down: it
        # is ended again.
        again = {
            job
            for at, host, place in self.interrupted
            for moment in (at, at - JUST_BEFORE_SECONDS)
            for job in self.fates(moment, host, place)
        }
        queued = {
            (place, job["ClusterId"], job["ProcId"])
            for place in (FIRST, SECOND)
            for job in self.box.jobs("JobStatus != 3", ("ClusterId", "ProcId"), place)
        }
        events = {
            log: event_log.events(log, ABORTED, HELD, TERMINATED) for *_, log in self.clusters
        }
        # Last, since a job leaves its mark before its end is logged.
        marks = Counter(self.done.read_text().splitlines())
        found = []
        for group, place, cluster, count, log in self.clusters:
            found += [
                f"{group} {place} {event}" for event in events[log] if event.number != TERMINATED
            ]
            ends = Counter(event.job for event in events[log] if event.number == TERMINATED)
            for number in range(count):
                job = f"{cluster:03}.{number:03}"
                ended, through = ends[job], marks[f"{log} {cluster}.{number}"]
                here = (place, cluster, number) in queued
                once = (here and ended == 0 and through <= 1) or ended == through == 1
                if not (once or ((log, job) in again and (here or ended >= 1 <= through))):
                    story = [event for event in event_log.events(log, *LIFE) if event.job == job]
                    found.append(
                        f"{group} {place} {job}: queued {here}, {ended=}, {through=}: {story}"
                    )
        return found

    def fates(self, at: float, host: str = "", access_point: str = "") -> Fates:
        """Events of each job that ran there then, up to its next start or its end."""
        found: Fates = {}
        for _group, place, _cluster, _count, log in self.clusters:
            by_job: dict[str, list[event_log.Event]] = {}
            for event in event_log.events(log, *LIFE) if access_point in ("", place) else ():
                by_job.setdefault(event.job, []).append(event)
            for job, told in by_job.items():
                past = [event for event in told if event.at <= at]
                if past and past[-1].number == EXECUTE and host in ("", past[-1].host):
                    found[log, job] = _until_again(told[len(past) :])
        return found

    def incomplete(self, since: float) -> list[Cycle]:
        """Cycles that began since then and say that the pool did not answer."""
        return [cycle for cycle in self.cycles if cycle.began > since and cycle.exit_code == 75]

    # ---- what runs beside

    def _supply(self, group: str) -> None:
        cores, count = SUPPLY[group]
        limit = "" if group == "alice" else f"concurrency_limits = {group}"
        for access_point in (FIRST, SECOND):
            self.submit(group, cores, count, access_point, limit)

    def _filled(self) -> bool:
        query = ["condor_status", "-constraint", "PartitionableSlot", "-af", "Machine", "Cpus"]
        free = dict(line.split() for line in self.box.run(query).stdout.splitlines())
        return all(int(free[node]) <= 2 for node in STEERED)

    def _repeat(self, work: Callable[[], None], seconds: float) -> None:
        try:
            while not self._ended.is_set():
                began = time.monotonic()
                work()
                self._ended.wait(max(0.0, seconds - (time.monotonic() - began)))
        except BaseException as failure:  # noqa: BLE001  # for the test to raise
            self._failure = failure

    def _cycle(self) -> None:
        began, before = time.time(), self._published()
        publish = [{"file": str(self.targets)}]
        done = self.sharectl.run("cycle", expect=None, publish=publish, **CONFIGURATION)
        self.cycles.append(Cycle(began, done.returncode, done.stderr, before, self._published()))

    def _published(self) -> bytes:
        return self.targets.read_bytes() if self.targets.exists() else b""

    def _look(self) -> None:
        for node in STEERED:
            address = self.box.local_directory(node) / "log" / ".startd_address"
            if not address.exists():
                continue
            query = ["condor_status", "-pool", address.read_text().splitlines()[0]]
            query += ["-constraint", "PartitionableSlot =?= True", "-af", "time()", *SHOWN]
            try:
                rows = list(map(str.split, self.box.run(query, 10).stdout.splitlines()))
            except PoolboxError:
                continue  # it is down
            published = self._published() if rows else b""
            until = sharectl_file.parse_text(published, "published").valid_until or 0
            self.looks += [
                Look(int(at), node, active == "true", _whole(ends), _whole(sequence), reason, until)
                for at, active, ends, sequence, reason in rows
            ]


def _whole(text: str) -> int:
    return int(text) if text.isdigit() else 0


def _until_again(events: Collection[event_log.Event]) -> tuple[str, ...]:
    numbers: list[str] = []
    for event in events:
        numbers.append(event.number)
        if event.number in (EXECUTE, TERMINATED):
            break
    return tuple(numbers)
