"""Daemons that die, hang and come back while jobs flow: rows of docs/faults.md.

Two nodes are steered, by cycles as the timer starts them; a third has no sharectl at all. Jobs of
alice want every core, jobs of cms eight together, one at a time: so on one of the steered nodes a
target alone keeps eight cores free. atlas has a few jobs, and no target is for it: one of them on a
steered node tells that no target is in force there.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from poolbox import Box, BoxSpec, ExecutePoint, event_log
from poolbox.event_log import EVICTED, EXECUTE, TERMINATED
from sharectl.publish import text
from tests.pool.conftest import OpenBox
from tests.pool.deployed import shown, snippet
from tests.pool.flowing import (
    DISCONNECTED,
    LOOK_SECONDS,
    RECONNECT_FAILED,
    RECONNECTED,
    SLACK_SECONDS,
    Jobs,
    Watch,
    repeating,
)
from tests.pool.sharectl_command import Sharectl
from tests.pool.trouble import dead, stopped

CENTRAL, FIRST, SECOND = "cm-1.example.org", "ap-1.example.org", "ap-2.example.org"
STEERED, FREE = ("wn-001.example.org", "wn-002.example.org"), "wn-003.example.org"
CYCLE_SECONDS = 4.0
VALIDITY_SECONDS = 60
"""The least that sharectl takes."""
JUST_BEFORE_SECONDS = 5
# cms is always under its share and alice over: what stands is not taken back while jobs flow.
PLEDGES = {"alice": 10, "atlas": 10, "cms": 980}
CONFIGURATION: dict[str, Any] = {
    "groups": {name: {"pledge_hs06": pledge} for name, pledge in PLEDGES.items()},
    "nodes": {"controlled": ["wn-001", "wn-002"]},
    "control": {"strategy": "pair", "dwell_seconds": 3600},
    "validity_seconds": VALIDITY_SECONDS,
    "pool": {"collector_deadline_seconds": 4.0, "schedd_deadline_seconds": 4.0},
}
SUPPLY = {"alice": (1, 800), "atlas": (1, 150), "cms": (8, 60)}
"""Group -> cores of a job, jobs at each access point."""
SPEC = BoxSpec(
    execute_points=(
        *(ExecutePoint(name, cores=12, power_hs06=120.0, config=snippet()) for name in STEERED),
        ExecutePoint(FREE, cores=6, power_hs06=60.0),
    ),
    access_points=(FIRST, SECOND),
    # A schedd that hangs stays known for as long as HTCondor has it, 15 minutes. A claim without a
    # job whose schedd has died, which counts for CMS_LIMIT too, ends after six times
    # ALIVE_INTERVAL; HTCondor's own is half an hour.
    access_config=event_log.EVENT_TIMES
    + "SCHEDD_ATTRS = ClassAdLifetime\nClassAdLifetime = 900\nALIVE_INTERVAL = 15\n",
    # Of a node that died, the slot of a job of cms counts for CMS_LIMIT until its ad is that old.
    central_config="CMS_LIMIT = 1\nATLAS_LIMIT = 4\nCLASSAD_LIFETIME = 30\n",
    # The master waits so long before it starts a daemon again that has died; HTCondor's own are 9 s
    # and more.
    config="MASTER_BACKOFF_CONSTANT = 2\nCLAIM_WORKLIFE = 20\n",
)


@dataclass(frozen=True)
class Cycle:
    """One run of ``sharectl cycle``, and the published file before and after it."""

    began: float
    """Unix seconds."""
    exit_code: int
    stderr: str
    before: bytes
    after: bytes


@dataclass
class Flow:
    box: Box
    sharectl: Sharectl
    jobs: Jobs
    watch: Watch
    cycles: list[Cycle] = field(default_factory=list)
    interrupted: list[tuple[float, str, str]] = field(default_factory=list)
    """Unix seconds at which jobs lost a node or an access point; the other name is empty."""

    def supply(self, group: str) -> None:
        cores, count = SUPPLY[group]
        limit = "" if group == "alice" else f"concurrency_limits = {group}"
        for place in (FIRST, SECOND):
            # A user for each access point, so that each gets its share. A job whose node is gone
            # waits for it for its lease; HTCondor's own is 40 minutes.
            more = (f"accounting_group_user = {place[:4]}", "job_lease_duration = 20", limit)
            seconds = "$RANDOM_INTEGER(5,10)"
            self.jobs.submit(group, cores, count, seconds, *more, access_point=place)

    def filled(self) -> bool:
        rows = shown(self.box, "-constraint", "PartitionableSlot", "-af", "Machine", "Cpus")
        free = dict(rows)
        return max(int(free[node]) for node in STEERED) <= 2

    def cycle(self) -> None:
        began, before, file = time.time(), self.published(), self.box.shared_directory
        publish = [{"file": str(file / "sharectl.txt")}]
        done = self.sharectl.run("cycle", expect=None, publish=publish, **CONFIGURATION)
        self.cycles.append(Cycle(began, done.returncode, done.stderr, before, self.published()))

    def published(self) -> bytes:
        file = self.box.shared_directory / "sharectl.txt"
        return file.read_bytes() if file.exists() else b""

    def since(self, moment: float, *exit_codes: int) -> list[Cycle]:
        """Cycles that began since then, with those exit codes; with any, if none is named."""
        codes = exit_codes or range(256)
        return [c for c in self.cycles if c.began > moment and c.exit_code in codes]

    def flows(self, since: float) -> bool:
        """True if jobs of every group and of every access point have begun since then."""
        begun = [self.jobs.starts(since, group) for group in SUPPLY]
        begun += [self.jobs.starts(since, "alice", place) for place in (FIRST, SECOND)]
        return [] not in begun

    def lost(self) -> list[str]:
        """Jobs that are lost, but for those that lost a node or an access point."""
        # Of a job that ended just before, a schedd that was killed may not have written it down: it
        # is ended again.
        moments = [
            (at - earlier, host, place)
            for at, host, place in self.interrupted
            for earlier in (0, JUST_BEFORE_SECONDS)
        ]
        return self.jobs.lost({job for moment in moments for job in self.jobs.fates(*moment)})


@pytest.fixture(scope="module")
def pool(open_box: OpenBox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    with open_box(SPEC) as box:
        sharectl = Sharectl(box, tmp_path_factory.mktemp("sharectl"))
        flow = Flow(box, sharectl, Jobs(box), Watch(box, STEERED))
        flow.supply("alice")
        box.wait_until(flow.filled, "alice fills the steered nodes")
        for group in ("atlas", "cms"):
            flow.supply(group)
        with repeating(flow.cycle, CYCLE_SECONDS), repeating(flow.watch.look, LOOK_SECONDS):
            yield flow


@pytest.fixture
def flow(pool: Flow) -> Flow:
    """Jobs of all kinds flow, nodes are under targets, and the last cycle was complete."""
    since, wait = time.time(), pool.box.wait_until
    wait(lambda: pool.watch.acting() and pool.flows(since - 10), "jobs flow under targets")
    wait(lambda: pool.cycles[-1].exit_code == 0, "a cycle is complete")
    return pool


def recovered(flow: Flow, since: float, node: str = "") -> None:
    """Wait until all is as before; no job was lost, no target outlived its validity.

    ``since``: Unix seconds at which the fault ended. ``node`` must be under a target again; any, if
    it is empty.
    """
    wait = flow.box.wait_until
    (cycle,) = wait(lambda: flow.since(since, 0)[:1], "a cycle is complete")
    renewed = sequence(cycle.after)
    assert renewed > sequence(cycle.before)
    wait(lambda: taken_up(flow, renewed, node), "nodes act on what was published since")
    wait(lambda: flow.flows(since), "jobs of all groups start, from all access points")
    assert flow.lost() == []
    assert flow.watch.outlived() == []
    print(f"recovered {time.time() - since:.0f} s after the fault")


def taken_up(flow: Flow, renewed: int, node: str) -> bool:
    active = {name: look for name, look in flow.watch.last().items() if look.active}
    newest = min((look.sequence for look in active.values()), default=0)
    return newest >= renewed and node in ("", *active)


def sequence(published: bytes) -> int:
    return text.parse_text(published, "published").sequence or 0


def assert_changed_nothing(cycles: list[Cycle], named: str) -> None:
    """Those cycles named that daemon and no other, and left what nodes read as it was."""
    missing = [re.findall(r"^sharectl: ([^:\n]+): ", c.stderr, re.MULTILINE) for c in cycles]
    assert missing == [[named]] * len(cycles)
    assert len({content for cycle in cycles for content in (cycle.before, cycle.after)}) == 1


def killed(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_startd_restarted_with_a_target(flow: Flow) -> None:
    node, at = flow.watch.acting()[0], time.time()
    hosts = {node, FREE}
    killed([flow.box.daemon_pid(host, "STARTD") for host in hosts])
    # Jobs may have begun meanwhile.
    flow.interrupted += [(moment, host, "") for moment in (at, time.time()) for host in hosts]

    def has_target() -> bool:
        look = flow.watch.last().get(node)
        return bool(look and look.at > at + 1 and look.active and look.reason == "ok")

    flow.box.wait_until(has_target, "the new startd has the target")
    recovered(flow, at, node)
    assert flow.since(at, 75) == []

    def first_events(host: str) -> set[str]:
        """What came first for the jobs that ran there then, but for those that ended just so."""
        fates = [*flow.jobs.fates(at, host).values()]
        return set() if () in fates else {fate[0] for fate in fates} - {TERMINATED}

    # HTCondor's own way, on a node without sharectl, is the measure of what becomes of the jobs.
    flow.box.wait_until(lambda: first_events(node) and first_events(FREE), "their logs tell")
    assert first_events(node) == first_events(FREE) == {DISCONNECTED}


def test_execute_point_down_with_a_target(flow: Flow) -> None:
    # With the job of cms on it: what is left of that in the collector must not keep the next one
    # waiting for long.
    node = flow.box.wait_until(lambda: helped_on(flow), "a job of cms runs under a target")
    at = time.time()
    killed(family_of(flow.box, node))
    flow.interrupted += [(moment, node, "") for moment in (at, time.time())]
    flow.box.wait_until(lambda: len(flow.since(at)) >= 2, "two cycles meanwhile")
    assert node not in flow.watch.last()
    assert flow.since(at, 75) == [], "its ad is still there"
    flow.box.start_host(node)
    recovered(flow, time.time(), node)


def helped_on(flow: Flow) -> str:
    """Steered node on which the job of cms runs now; empty if there is none."""
    logs, now = {row.log for row in flow.jobs.clusters if row.group == "cms"}, time.time()
    running = {node: flow.jobs.fates(now, node) for node in flow.watch.acting()}
    return next((node for node, jobs in running.items() if logs & {log for log, _ in jobs}), "")


def family_of(box: Box, host: str) -> list[int]:
    """Pids of the host's master and of all below it, jobs included, the master first."""
    everything = box.processes()
    family = [box.daemon_pid(host, "MASTER")]
    for pid in family:
        family += [process.pid for process in everything if process.parent_pid == pid]
    return family


def test_collector_killed_and_restarted(flow: Flow) -> None:
    began = time.time()
    with dead(flow.box, CENTRAL, "COLLECTOR"):
        targets_stand(flow, began)
    recovered(flow, time.time())
    assert_changed_nothing(flow.since(began, 75), "collector")


def targets_stand(flow: Flow, began: float) -> None:
    """Wait until a cycle misses a daemon; what was published before stands."""
    flow.box.wait_until(lambda: flow.since(began, 75), "a cycle misses the daemon")
    flow.box.wait_until(flow.watch.acting, "what was published stands")


def test_negotiator_down(flow: Flow) -> None:
    began = time.time()
    with dead(flow.box, CENTRAL, "NEGOTIATOR"):
        flow.box.wait_until(lambda: len(flow.since(began)) >= 2, "two cycles meanwhile")
        assert flow.since(began, 75) == [], "a cycle asks no negotiator"
        renewed = sequence(flow.cycles[-1].after)
        flow.box.wait_until(lambda: taken_up(flow, renewed, ""), "targets are renewed")
    recovered(flow, time.time())


def test_schedd_down_until_targets_run_out(flow: Flow) -> None:
    steered = flow.watch.acting()
    began = time.time()
    # A job that ends while its schedd is down runs again when that is back, on a pool without
    # sharectl as well.
    flow.interrupted.append((began, "", SECOND))
    with dead(flow.box, SECOND, "SCHEDD"):
        # What its shadows still begin.
        flow.interrupted.append((time.time() + 10, "", SECOND))
        flow.box.wait_until(lambda: flow.since(began, 75), "a cycle misses the schedd")
        until = text.parse_text(flow.since(began, 75)[0].after, "published").valid_until or 0
        assert began < until <= began + VALIDITY_SECONDS
        where = " || ".join(f'TARGET.Machine == "{node}"' for node in steered)
        # A user of his own: what his group's others wait for does not keep him waiting.
        user = "accounting_group_user = probe"
        flow.jobs.submit("atlas", 1, 4, 5, user, f"requirements = {where}")

        def starts() -> list[float]:
            return sorted(
                at for node in steered for at in flow.jobs.starts(began, "atlas", "", node)
            )

        flow.box.wait_until(
            starts, "jobs start where the target has run out", VALIDITY_SECONDS + 2 * SLACK_SECONDS
        )
        print(f"a job that the targets kept out began {starts()[0] - until:+.1f} s after their end")
        assert until - 1 <= starts()[0] <= until + SLACK_SECONDS
        flow.box.wait_until(lambda: not flow.watch.acting(), "the nodes say so")
        assert_changed_nothing(flow.since(began, 75), f"schedd {SECOND}")
    recovered(flow, time.time())


def test_schedd_hanging(flow: Flow) -> None:
    began = time.time()
    with stopped(flow.box.daemon_pid(SECOND, "SCHEDD")):
        targets_stand(flow, began)
    ended = time.time()
    recovered(flow, ended)
    missing = [cycle for cycle in flow.since(began, 75) if cycle.began < ended]
    assert_changed_nothing(missing, f"schedd {SECOND}")


def test_jobs_that_lost_their_node_have_begun_again(flow: Flow) -> None:
    """Last of the file: when a job's lease is over, HTCondor starts it again."""
    decided = {EXECUTE, EVICTED, TERMINATED, RECONNECTED, RECONNECT_FAILED}

    def undecided() -> list[tuple[str, ...]]:
        fates = [fate for row in flow.interrupted for fate in flow.jobs.fates(*row).values()]
        return [fate for fate in fates if not decided & {*fate[-1:]}]

    flow.box.wait_until(lambda: not undecided(), "it is decided what becomes of them")
    assert flow.lost() == []
