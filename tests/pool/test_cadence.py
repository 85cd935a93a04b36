"""The formula on a real pool: three run times at one interval, with claim reuse and without.

A node of one core for each kind of job; its slot gets the next one at a negotiation cycle. By the
jobs' event log a slot works from a job's execution to its termination, and is held until the next
execution there. A job starts up to two seconds after its cycle began, which is the margin.
"""

from __future__ import annotations

import json
import re
import statistics
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from poolbox import Box, BoxSpec, ExecutePoint, event_log
from poolbox.event_log import EXECUTE, TERMINATED
from sharectl.cadence.laws import constant
from tests.pool.deployed import configure, jobs, on
from tests.pool.sharectl_command import Sharectl
from tests.pool.trouble import stopped

CENTRAL, ACCESS = "cm-1.example.org", "ap-1.example.org"
SHORT, MIDDLE, LONG = "wn-001.example.org", "wn-002.example.org", "wn-003.example.org"
REUSED = "wn-004.example.org"
MARGIN = 0.08
WATCHED_SECONDS = 35
KINDS = {
    SHORT: (3.0, 0),
    MIDDLE: (7.0, 0),
    LONG: (13.0, 0),
    REUSED: (3.0, 1200),
}
"""Node -> run time of its jobs and its CLAIM_WORKLIFE, seconds."""
INTERVAL_SECONDS = 6
SPEC = BoxSpec(
    execute_points=tuple(
        ExecutePoint(node, cores=1, config=f"CLAIM_WORKLIFE = {worklife}\n")
        for node, (_run_time, worklife) in KINDS.items()
    ),
    access_points=(ACCESS,),
    # The schedd of a box does not call the negotiator (SCHEDD_SEND_RESCHEDULE), so cycles are
    # regular.
    access_config=event_log.EVENT_TIMES,
)
Held = tuple[float, float]
"""Run time of a job, and for how long its slot was held for it, seconds."""


class Measured(NamedTuple):
    cadence_seconds: float
    held: dict[str, list[Held]]
    """Node -> its jobs but the last."""

    def run_time_seconds(self, node: str) -> float:
        return statistics.median(run_time for run_time, _held in self.held[node])


def loading(held: list[Held]) -> float:
    """Fraction of time for which a slot worked."""
    return sum(run_time for run_time, _held in held) / sum(seconds for _run_time, seconds in held)


@pytest.fixture(scope="module")
def measured(pool: Box) -> Measured:
    """Run jobs on all nodes until each slot has had some."""
    box, seconds = pool, INTERVAL_SECONDS
    knobs = f"NEGOTIATOR_INTERVAL = {seconds}\nNEGOTIATOR_MIN_INTERVAL = {seconds}\n"
    configure(box, CENTRAL, knobs)
    before = len(_cycles(box))
    log = box.shared_directory / "jobs.log"
    for node, (run_time, _worklife) in KINDS.items():
        user = f"accounting_group_user = {node.partition('.')[0]}"
        box.submit(jobs("cms", 1, 60, run_time, user, on(node), f"log = {log}"))

    def long_enough() -> bool:
        held = [sum(seconds for _, seconds in held) for held in _held(log).values()]
        return min(held) >= WATCHED_SECONDS

    box.wait_until(long_enough, f"each node has had jobs for {WATCHED_SECONDS} s")
    cycles = _cycles(box)[before:]
    box.remove_jobs()
    periods = [(after - at).total_seconds() for at, after in zip(cycles, cycles[1:])]
    return Measured(statistics.median(periods[1:]), _held(log))


def _held(log: Path) -> dict[str, list[Held]]:
    """Jobs of each node's slot that have been followed by another."""
    ends = {event.job: event.at for event in event_log.events(log, TERMINATED)}
    starts: dict[str, list[event_log.Event]] = {node: [] for node in KINDS}
    for event in event_log.events(log, EXECUTE):
        starts[event.host].append(event)
    return {
        node: [(ends[one.job] - one.at, after.at - one.at) for one, after in zip(begun, begun[1:])]
        for node, begun in starts.items()
    }


def _cycles(box: Box) -> list[datetime]:
    stamp = re.compile(r"^(\S+ \S+) .*Started Negotiation Cycle", re.MULTILINE)
    log = box.log_text(CENTRAL, "NEGOTIATOR")
    return [datetime.strptime(match[1][:17], "%m/%d/%y %H:%M:%S") for match in stamp.finditer(log)]  # noqa: DTZ007 - differences only


def test_the_loading_factor_is_that_of_the_formula(measured: Measured) -> None:
    cadence = measured.cadence_seconds
    assert cadence == pytest.approx(INTERVAL_SECONDS, abs=1), "the negotiator's interval"
    for node in (SHORT, MIDDLE, LONG):
        # On a busy machine a job or two run longer, or miss a cycle: most do not.
        ratios = [
            held / run_time * constant(run_time).loading(cadence)
            for run_time, held in measured.held[node]
        ]
        assert statistics.median_low(ratios) == pytest.approx(1, abs=2 * MARGIN), (node, ratios)
    reused = constant(measured.run_time_seconds(REUSED)).loading(cadence)
    assert loading(measured.held[REUSED]) > reused + 2 * MARGIN, "its claims wait for no cycle"


def test_the_live_pool_tells_run_times_cores_and_cycles(
    sharectl: Sharectl, measured: Measured
) -> None:
    content = sharectl.json("cadence", "--claim-worklife", "0")
    assert content["cores"] == len(KINDS)
    every = content["run_times"]
    jobs_read, words = every["name"].split(maxsplit=1)
    assert int(jobs_read) >= sum(map(len, measured.held.values()))
    assert words == "jobs of 1 schedd"
    assert (f"made of {jobs_read} jobs: so few" in str(content["notes"])) is (int(jobs_read) < 100)
    assert 3 <= every["mean_seconds"] <= 13
    assert 1 <= content["cycle_duration_seconds"] < 60
    intervals = [row["interval_seconds"] for row in content["intervals"]]
    left_out = f"left out is NEGOTIATOR_INTERVAL = {INTERVAL_SECONDS}"
    assert INTERVAL_SECONDS in intervals or left_out in " ".join(content["notes"]), (
        "the negotiator's"
    )
    assert content["recommendation"]["NEGOTIATOR_INTERVAL"] in intervals


@pytest.mark.usefixtures("measured")
def test_a_daemon_that_is_silent_is_neither_fast_nor_without_jobs(sharectl: Sharectl) -> None:
    impatient = {"pool": {"schedd_deadline_seconds": 3}}
    with stopped(sharectl.box.daemon_pid(CENTRAL, "NEGOTIATOR")):
        done = sharectl.run("cadence", "--json", expect=75, **impatient)
    assert "negotiator: no answer within 3 s" in done.stderr
    content = json.loads(done.stdout)
    assert (content["recommendation"], content["cycle_duration_seconds"]) == (None, None)
    assert content["intervals"][0]["loading_factor"] > 0
    with stopped(sharectl.box.daemon_pid(ACCESS, "SCHEDD")):
        done = sharectl.run("cadence", "--json", expect=75, **impatient)
    assert done.stdout == ""
    assert f"schedd {ACCESS}: no answer within 3 s" in done.stderr
    assert "no schedd told of a job that ran" in done.stderr
