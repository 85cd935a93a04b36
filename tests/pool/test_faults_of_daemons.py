"""Daemons that die, hang and come back while jobs flow: rows of docs/faults.md."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Iterator

import pytest

from poolbox import Box
from sharectl.publish import text
from tests.pool.conftest import OpenBox
from tests.pool.event_log import EVICTED, EXECUTE, TERMINATED
from tests.pool.flowing import (
    CENTRAL,
    DISCONNECTED,
    FIRST,
    FREE,
    RECONNECT_FAILED,
    RECONNECTED,
    SECOND,
    VALIDITY_SECONDS,
    Cycle,
    Flow,
    spec,
)
from tests.pool.trouble import dead, stopped

SLACK_SECONDS = 30
"""A negotiation cycle, a run of job_ctl and a busy machine."""

DECIDED = (EXECUTE, EVICTED, TERMINATED, RECONNECTED, RECONNECT_FAILED)


@pytest.fixture(scope="module")
def pool(open_box: OpenBox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    with open_box(spec()) as box:
        flow = Flow(box, tmp_path_factory.mktemp("sharectl"))
        flow.start()
        try:
            yield flow
        finally:
            flow.stop()


@pytest.fixture
def flow(pool: Flow) -> Flow:
    """Jobs of all kinds flow, nodes are under targets, and the last cycle was complete."""
    since = time.time()
    pool.wait(
        lambda: pool.under_target() and pool.flows(since - 10), 120, "jobs flow under targets"
    )
    pool.wait(lambda: pool.cycles[-1].exit_code == 0, 30, "a cycle is complete")
    return pool


# ---- what holds after every fault


def recovered(flow: Flow, since: float, node: str = "") -> None:
    """Wait until all is as before; no job was lost, no target outlived its validity.

    ``since``: Unix seconds at which the fault ended. ``node`` must be under a target again; any, if
    it is empty.
    """
    (cycle,) = flow.wait(lambda: complete(flow, since)[:1], 60, "a cycle is complete")
    renewed = sequence(cycle.after)
    assert renewed > sequence(cycle.before)
    flow.wait(lambda: taken_up(flow, renewed, node), 90, "nodes act on what was published since")
    flow.wait(lambda: flow.flows(since), 120, "jobs of all groups start, from all access points")
    assert flow.lost() == []
    assert [look for look in flow.looks if look.outlived] == []
    print(f"recovered {time.time() - since:.0f} s after the fault")


def complete(flow: Flow, since: float) -> list[Cycle]:
    return [cycle for cycle in flow.cycles if cycle.began > since and cycle.exit_code == 0]


def taken_up(flow: Flow, renewed: int, node: str) -> bool:
    nodes = flow.under_target()
    looks = [flow.last_look(name) for name in nodes]
    return (
        bool(nodes)
        and node in ("", *nodes)
        and all(look and look.sequence >= renewed for look in looks)
    )


def sequence(published: bytes) -> int:
    return text.parse_text(published, "published").sequence or 0


def missing(cycle: Cycle) -> list[str]:
    """Which daemons a cycle says did not answer."""
    return re.findall(r"^sharectl: ([^:\n]+): ", cycle.said, re.MULTILINE)


def assert_changed_nothing(cycles: list[Cycle], named: str) -> None:
    """Those cycles named that daemon and no other, and left what nodes read as it was."""
    assert [missing(cycle) for cycle in cycles] == [[named]] * len(cycles)
    assert len({content for cycle in cycles for content in (cycle.before, cycle.after)}) == 1


def killed(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


# ---- execute points


def test_startd_restarted_with_a_target(flow: Flow) -> None:
    node = flow.under_target()[0]
    at = time.time()
    killed([flow.box.daemon_pid(host, "STARTD") for host in (node, FREE)])
    # Jobs may have begun meanwhile.
    flow.interrupted += [
        (moment, host, "") for moment in (at, time.time()) for host in (node, FREE)
    ]
    flow.wait(lambda: restarted_with_target(flow, node, at), 60, "the new startd has the target")
    recovered(flow, at, node)
    assert flow.incomplete(at) == []
    # HTCondor's own way, on a node without sharectl, is the measure of what becomes of the jobs.
    flow.wait(
        lambda: all(first_events(flow, host, at) for host in (node, FREE)), 60, "their logs tell"
    )
    assert first_events(flow, node, at) == first_events(flow, FREE, at) == {DISCONNECTED}


def test_execute_point_down_with_a_target(flow: Flow) -> None:
    # With the job of cms on it: what is left of that in the collector must not keep the next one
    # waiting for long.
    node = flow.wait(lambda: helped_on(flow), 60, "a job of cms runs under a target")
    at = time.time()
    killed(family_of(flow.box, node))
    flow.interrupted += [(moment, node, "") for moment in (at, time.time())]
    flow.wait(
        lambda: len([cycle for cycle in flow.cycles if cycle.began > at]) >= 2,
        30,
        "two cycles meanwhile",
    )
    assert flow.last_look(node) is None
    assert flow.incomplete(at) == [], "its ad is still there"
    flow.box.start_host(node)
    recovered(flow, time.time(), node)


def helped_on(flow: Flow) -> str:
    """Steered node on which the job of cms runs now; empty if there is none."""
    logs = [log for group, *_, log in flow.clusters if group == "cms"]
    now = time.time()
    return next(
        (
            node
            for node in flow.under_target()
            if any(log in logs for log, _job in flow.fates(now, node))
        ),
        "",
    )


def first_events(flow: Flow, host: str, at: float) -> set[str]:
    """What came first for the jobs that ran on that node then, but for those that ended just so."""
    fates = flow.fates(at, host).values()
    return {fate[0] for fate in fates if fate[0] != TERMINATED} if all(fates) else set()


def restarted_with_target(flow: Flow, node: str, at: float) -> bool:
    look = flow.last_look(node)
    return bool(look and look.at > at + 1 and look.active and look.reason == "ok")


def family_of(box: Box, host: str) -> list[int]:
    """Pids of the host's master and of all below it, jobs included, the master first."""
    everything = box.processes()
    family = [box.daemon_pid(host, "MASTER")]
    for pid in family:
        family += [process.pid for process in everything if process.parent_pid == pid]
    return family


# ---- central manager


def test_collector_killed_and_restarted(flow: Flow) -> None:
    began = time.time()
    with dead(flow.box, CENTRAL, "COLLECTOR"):
        flow.wait(lambda: flow.incomplete(began), 30, "a cycle misses the collector")
        flow.wait(
            flow.under_target, 10, "what was published stands"
        )  # the last look may be too old to tell
    ended = time.time()
    recovered(flow, ended)
    assert_changed_nothing(flow.incomplete(began), "collector")


def test_negotiator_down(flow: Flow) -> None:
    began = time.time()
    with dead(flow.box, CENTRAL, "NEGOTIATOR"):
        flow.wait(
            lambda: len([c for c in flow.cycles if c.began > began]) >= 2,
            30,
            "two cycles meanwhile",
        )
        assert flow.incomplete(began) == [], "a cycle asks no negotiator"
        renewed = sequence(flow.cycles[-1].after)
        flow.wait(lambda: taken_up(flow, renewed, ""), 30, "targets are renewed all the same")
    recovered(flow, time.time())


# ---- access points


def test_schedd_down_until_targets_run_out(flow: Flow) -> None:
    steered = flow.under_target()
    began = time.time()
    # A job that ends while its schedd is down runs again when that is back, on a pool without
    # sharectl as well.
    flow.interrupted.append((began, "", SECOND))
    with dead(flow.box, SECOND, "SCHEDD"):
        # What its shadows still begin.
        flow.interrupted.append((time.time() + 10, "", SECOND))
        flow.wait(lambda: flow.incomplete(began), 30, "a cycle misses the schedd")
        until = text.parse_text(flow.incomplete(began)[0].after, "published").valid_until or 0
        assert began < until <= began + VALIDITY_SECONDS
        where = " || ".join(f'TARGET.Machine == "{node}"' for node in steered)
        # A user of his own: what his group's others wait for does not keep him waiting.
        user = "accounting_group_user = probe"
        flow.submit("atlas", 1, 4, FIRST, user, f"requirements = {where}")
        flow.wait(
            lambda: any(flow.starts(began, "atlas", host=node) for node in steered),
            VALIDITY_SECONDS + 2 * SLACK_SECONDS,
            "jobs of any group start where the target has run out",
        )
        start = min(
            flow.starts(began, "atlas", host=node)[0]
            for node in steered
            if flow.starts(began, "atlas", host=node)
        )
        print(f"a job that the targets kept out began {start - until:+.1f} s after their end")
        assert until - 1 <= start <= until + SLACK_SECONDS
        flow.wait(lambda: not flow.under_target(), 10, "the nodes say so")
        assert_changed_nothing(flow.incomplete(began), f"schedd {SECOND}")
    recovered(flow, time.time())


def test_schedd_hanging(flow: Flow) -> None:
    began = time.time()
    with stopped(flow.box.daemon_pid(SECOND, "SCHEDD")):
        flow.wait(lambda: flow.incomplete(began), 30, "a cycle misses the schedd")
        flow.wait(
            flow.under_target, 10, "what was published stands"
        )  # the last look may be too old to tell
    ended = time.time()
    recovered(flow, ended)
    assert_changed_nothing(
        [c for c in flow.incomplete(began) if c.began < ended], f"schedd {SECOND}"
    )


# ---- in the end


def test_jobs_that_lost_their_node_have_begun_again(flow: Flow) -> None:
    """Last of the file: when a job's lease is over, HTCondor starts it anew."""

    def undecided() -> list[tuple[str, ...]]:
        fates = [fate for each in flow.interrupted for fate in flow.fates(*each).values()]
        return [fate for fate in fates if not fate or fate[-1] not in DECIDED]

    flow.wait(lambda: not undecided(), 60, "it is decided what becomes of them")
    assert flow.lost() == []
