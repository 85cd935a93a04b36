"""The formula on a real pool: three run times at two intervals, with claim reuse and without.

A node of one core for each kind of job; its slot gets the next one at a negotiation cycle. All is
read from the jobs' event log: a slot works from a job's execution to its termination, and is held
until the next job's execution there. The run times that go into the formula are those measured too,
as jobs take a little longer than they sleep.

Stated margin: 0.08. A job starts up to two seconds after its cycle began, and that scatter is in
the first and the last start of a time of 17 s at least: 2 / 17 of a loading factor of 0.7 at most.
Every run time ends 2.7 s or more before the next cycle, for the slot to be in the collector again
by then.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from sharectl.cadence.asks import COMMAND
from sharectl.cadence.run_times import constant, loading_factor
from tests.pool import event_log
from tests.pool.conftest import OpenBox
from tests.pool.event_log import EXECUTE, TERMINATED
from tests.pool.sharectl_command import CHECKOUT

CENTRAL, ACCESS = "cm-1.example.org", "ap-1.example.org"
SHORT, MIDDLE, LONG = "wn-001.example.org", "wn-002.example.org", "wn-003.example.org"
REUSED, AGED = "wn-004.example.org", "wn-005.example.org"
MARGIN = 0.08
WATCHED_SECONDS = 17
WORKLIFE_SECONDS = 7


@dataclass(frozen=True)
class Kind:
    """Jobs of one node."""

    sleep_seconds: float
    worklife_seconds: int = 0


KINDS = {
    SHORT: Kind(3.0),
    MIDDLE: Kind(7.0),
    LONG: Kind(13.0),
    REUSED: Kind(3.0, worklife_seconds=1200),
    AGED: Kind(4.0, worklife_seconds=WORKLIFE_SECONDS),
}
INTERVALS = (6, 10)
SPEC = BoxSpec(
    execute_points=tuple(
        ExecutePoint(node, cores=1, config=f"CLAIM_WORKLIFE = {kind.worklife_seconds}\n")
        for node, kind in KINDS.items()
    ),
    access_points=(ACCESS,),
    # The schedd of a box does not call the negotiator (SCHEDD_SEND_RESCHEDULE), so cycles are
    # regular.
    access_config=event_log.EVENT_TIMES,
)
JOBS = """\
executable = /bin/sleep
arguments = {seconds}
request_cpus = 1
request_memory = 1
accounting_group = cms
accounting_group_user = user{number}
requirements = TARGET.Machine == "{node}"
log = {log}
queue {count}
"""


@dataclass(frozen=True)
class Held:
    """A job, and for how long its slot was held for it."""

    run_time_seconds: float
    held_seconds: float


@dataclass(frozen=True)
class Measured:
    """What was seen at one interval."""

    cadence_seconds: float
    held: dict[str, list[Held]]
    """Node -> its jobs but the last."""

    def loading(self, node: str) -> float:
        """Fraction of time for which the node's slot worked."""
        return _loading(self.held[node])

    def run_time_seconds(self, node: str) -> float:
        """Median run time of the node's jobs."""
        return statistics.median(job.run_time_seconds for job in self.held[node])


@pytest.fixture(scope="module")
def pool(open_box: OpenBox) -> Iterator[Box]:
    with open_box(SPEC) as box:
        yield box


@pytest.fixture(scope="module")
def measured(pool: Box) -> dict[int, Measured]:
    return {interval: _measure(pool, interval) for interval in INTERVALS}


def _measure(box: Box, interval: int) -> Measured:
    """Run jobs on all nodes until each slot has had some."""
    knobs = f"NEGOTIATOR_INTERVAL = {interval}\nNEGOTIATOR_MIN_INTERVAL = {interval}\n"
    box.write_config(CENTRAL, knobs)
    box.reconfig(CENTRAL)
    before = len(_cycles(box))
    log = box.shared_directory / f"jobs-{interval}.log"
    for number, (node, kind) in enumerate(KINDS.items()):
        box.submit(
            JOBS.format(seconds=kind.sleep_seconds, number=number, node=node, log=log, count=60)
        )

    def seen() -> bool:
        return all(
            sum(job.held_seconds for job in jobs) >= WATCHED_SECONDS for jobs in _held(log).values()
        )

    box.wait_until(
        seen, 150, f"each node has had jobs for {WATCHED_SECONDS} s at an interval of {interval} s"
    )
    cycles = _cycles(box)[before:]
    box.remove_jobs()
    periods = [(after - at).total_seconds() for at, after in zip(cycles, cycles[1:])]
    return Measured(statistics.median(periods[1:]), _held(log))


def _held(log: Path) -> dict[str, list[Held]]:
    """Jobs of each node's slot that have been followed by another."""
    began: dict[str, event_log.Event] = {}
    jobs: dict[str, list[tuple[float, float]]] = {node: [] for node in KINDS}
    starts: dict[str, list[float]] = {node: [] for node in KINDS}
    for event in event_log.events(log, EXECUTE, TERMINATED):
        if event.number == EXECUTE:
            began[event.job] = event
            starts[event.host].append(event.at)
        elif event.job in began:
            start = began.pop(event.job)
            jobs[start.host].append((start.at, event.at))
    return {
        node: [
            Held(end - start, after - start) for (start, end), after in zip(times, starts[node][1:])
        ]
        for node, times in jobs.items()
    }


def _loading(jobs: list[Held]) -> float:
    return sum(job.run_time_seconds for job in jobs) / sum(job.held_seconds for job in jobs)


def _cycles(box: Box) -> list[datetime]:
    """When each negotiation cycle began."""
    stamp = re.compile(r"^(\S+ \S+) .*Started Negotiation Cycle", re.MULTILINE)
    log = box.log_text(CENTRAL, "NEGOTIATOR")
    return [datetime.strptime(found[1][:17], "%m/%d/%y %H:%M:%S") for found in stamp.finditer(log)]  # noqa: DTZ007 - differences only


@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize("node", [SHORT, MIDDLE, LONG])
def test_the_loading_factor_is_that_of_the_formula(
    measured: dict[int, Measured], node: str, interval: int
) -> None:
    seen = measured[interval]
    assert seen.cadence_seconds == pytest.approx(interval, abs=1), (
        "the negotiator keeps its interval"
    )
    expected = loading_factor(seen.run_time_seconds(node), seen.cadence_seconds)
    print(f"{node} at {interval} s: measured {seen.loading(node):.3f}, formula {expected:.3f}")
    assert seen.loading(node) == pytest.approx(expected, abs=MARGIN)


def test_a_longer_interval_can_be_better(measured: dict[int, Measured]) -> None:
    short, long = (measured[interval] for interval in INTERVALS)
    assert long.loading(MIDDLE) > short.loading(MIDDLE) + 0.05, "7 s fill 10 s better than 12 s"
    assert long.loading(SHORT) < short.loading(SHORT) - 0.1, "3 s fill 10 s worse than 6 s"


@pytest.mark.parametrize("interval", INTERVALS)
def test_claims_that_are_reused_do_not_wait_for_cycles(
    measured: dict[int, Measured], interval: int
) -> None:
    seen = measured[interval]
    alone = loading_factor(seen.run_time_seconds(REUSED), seen.cadence_seconds)
    print(
        f"reused at {interval} s: measured {seen.loading(REUSED):.3f}, one job a claim by the "
        f"formula {alone:.3f}"
    )
    assert seen.loading(REUSED) > alone + 2 * MARGIN


def test_a_claim_runs_jobs_until_it_is_older_than_its_worklife(
    measured: dict[int, Measured],
) -> None:
    interval = INTERVALS[0]
    seen = measured[interval]
    jobs = seen.held[AGED]
    # To go on at once and to wait for a cycle are seconds apart.
    last = max(
        number for number, job in enumerate(jobs, 1) if job.held_seconds - job.run_time_seconds > 2
    )
    loading = _loading(jobs[:last])
    aged = constant(seen.run_time_seconds(AGED))
    expected = aged.loading(seen.cadence_seconds, WORKLIFE_SECONDS)
    print(
        f"worklife {WORKLIFE_SECONDS} s at {interval} s: measured {loading:.3f}, expected "
        f"{expected:.3f}"
    )
    assert loading == pytest.approx(expected, abs=MARGIN)


def _sharectl(box: Box, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(CHECKOUT / "central"),
        **box.client_environment,
    }
    return subprocess.run(
        [sys.executable, "-m", "sharectl", "cadence", *arguments],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        env=environment,
    )


@contextlib.contextmanager
def _stopped(pid: int) -> Iterator[None]:
    """A daemon that hangs."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _deadlines(folder: Path) -> list[str]:
    path = folder / "sharectl.yaml"
    path.write_text("groups: {cms: {pledge_hs06: 1}}\npool: {schedd_deadline_seconds: 3}\n")
    return ["--config", str(path)]


def test_the_live_pool_tells_run_times_cores_and_cycles(
    pool: Box, measured: dict[int, Measured]
) -> None:
    done = _sharectl(
        pool, "--json", "--by", "group", "--interval", "6,10,60", "--claim-worklife", "0"
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    assert told["cores"] == len(KINDS)
    names = [load["name"] for load in told["run_times"]]
    assert names == ["all", "cms"]
    ran = sum(len(jobs) for seen in measured.values() for jobs in seen.held.values())
    assert told["run_times"][0]["jobs"] >= ran
    assert 3 <= told["run_times"][0]["mean_seconds"] <= 13
    assert 1 <= told["cycle_duration_seconds"] < 60
    notes = " ".join(told["notes"])
    assert "the negotiator's last cycles took" in notes
    # That is what the negotiator has; it is told as what it costs now.
    assert f"a cycle begins up to {INTERVALS[-1]} s after the last" in " ".join(
        told["recommendation"]["why"]
    )


def test_a_negotiator_that_is_silent_is_not_taken_for_a_fast_one(
    pool: Box, measured: dict[int, Measured], tmp_path: Path
) -> None:
    assert measured
    with _stopped(pool.daemon_pid(CENTRAL, "NEGOTIATOR")):
        done = _sharectl(pool, "--json", *_deadlines(tmp_path))
    assert done.returncode == 75, done.stderr
    assert "negotiator: no answer within 3 s" in done.stderr
    told = json.loads(done.stdout)
    assert told["recommendation"] is None
    assert told["cycle_duration_seconds"] is None
    assert "how long a negotiation cycle takes is not known" in " ".join(told["notes"])
    assert told["run_times"][0]["intervals"][0]["loading_factor"] > 0


def test_a_schedd_that_is_silent_has_no_empty_history(
    pool: Box, measured: dict[int, Measured], tmp_path: Path
) -> None:
    assert measured
    with _stopped(pool.daemon_pid(ACCESS, "SCHEDD")):
        done = _sharectl(pool, "--json", *_deadlines(tmp_path))
    assert (done.returncode, done.stdout) == (75, "")
    assert f"schedd {ACCESS}: no answer within 3 s" in done.stderr
    assert "no schedd told of a job that ran" in done.stderr


def test_what_condor_history_prints_is_read_as_the_live_history_is(
    pool: Box, measured: dict[int, Measured], tmp_path: Path
) -> None:
    assert measured
    path = tmp_path / "jobs.json"
    path.write_text(pool.run(COMMAND.split(), host=ACCESS).stdout)
    by_file, live = (
        json.loads(_sharectl(pool, "--json", *arguments).stdout)["run_times"]
        for arguments in (["--history", str(path)], [])
    )
    assert by_file[0]["jobs"] == live[0]["jobs"]
    assert by_file[0]["mean_seconds"] == pytest.approx(live[0]["mean_seconds"])
