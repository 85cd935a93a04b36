"""Grace after a multicore job, and faults let jobs in: the snippet on real daemons."""

from __future__ import annotations

import dataclasses
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from poolbox import Box
from poolbox.demo import pictures, scenario
from poolbox.demo.pictures import NodePicture
from tests.pool import event_log
from tests.pool.conftest import OpenBox
from tests.pool.event_log import EXECUTE, TERMINATED

JOB_CTL = scenario.CHECKOUT / "startd_cron" / "job_ctl.py"


@pytest.fixture(scope="module")
def pool(open_box: OpenBox, pool_suite: str) -> Iterator[Box]:
    spec = dataclasses.replace(scenario.pool_spec(pool_suite), access_config=event_log.EVENT_TIMES)
    with open_box(spec) as box:
        yield box


@pytest.fixture
def idle_pool(pool: Box) -> Iterator[Box]:
    """The pool, whose queues and cores are empty again afterwards, and its nodes as at first."""
    yield pool
    pool.remove_jobs()
    for node in pool.spec.execute_points:
        pool.write_config(node.name, "")


# ---- grace

GUARDED, UNGUARDED = "wn-001.example.org", "wn-003.example.org"
WAITING_EACH = 4
THE_CRON_WAY = "SHARECTL_ACTUATION = cron\n"
"""Live grace is held against it in test_live_actuation."""


def test_after_a_multicore_job_single_core_jobs_wait_for_the_grace_and_only_with_sharectl(
    idle_pool: Box,
) -> None:
    box = idle_pool
    leave = box.shared_directory / "leave"
    leave.unlink(missing_ok=True)
    for machine in (GUARDED, UNGUARDED):
        large_job_beside_small_ones(box, machine, leave)
    box.wait_until(
        lambda: len(box.jobs("JobStatus == 2")) == 2 * (8 + 1), 60, "both nodes are full"
    )
    for machine in (GUARDED, UNGUARDED):
        for group in (
            scenario.HELD_BACK,
            scenario.HELPED,
        ):  # the second is the large job's own submitter
            box.submit(
                pinned(group, 1, WAITING_EACH, "600", machine, f"log = {log_of(box, machine)}")
            )
    box.write_config(GUARDED, scenario.node_config(enabled=True) + THE_CRON_WAY)
    box.write_config(UNGUARDED, scenario.node_config(enabled=False))
    for machine in (GUARDED, UNGUARDED):
        box.reconfig(machine)
    switched = time.time()
    box.wait_until(
        lambda: published_since(box, GUARDED, "t1_McGraceTime", switched), 60, "mc_grace has run"
    )
    assert not any(started(box, machine) for machine in (GUARDED, UNGUARDED)), "both nodes are full"

    leave.touch()
    box.wait_until(
        lambda: all(ended(box, large(m)) for m in (GUARDED, UNGUARDED)), 60, "the large jobs end"
    )
    box.wait_until(
        lambda: started(box, GUARDED), 3 * scenario.GRACE_SECONDS + 30, "a single-core job gets in"
    )
    first = {
        machine: round(min(started(box, machine), default=0) - ended(box, large(machine))[0], 1)
        for machine in (GUARDED, UNGUARDED)
    }
    print(f"seconds from the end of the multicore job to the first single-core job: {first}")
    assert 0 <= first[UNGUARDED] <= scenario.GRACE_SECONDS / 2, (
        "without sharectl they get in at once"
    )
    # The node counts from the whole second in which the cores became free.
    assert first[GUARDED] >= scenario.GRACE_SECONDS - 1, "none gets in during grace"
    box.wait_until(lambda: len(started(box, GUARDED)) == 2 * WAITING_EACH, 60, "after it all do")


def large_job_beside_small_ones(box: Box, machine: str, leave: Path) -> None:
    """Fill a node of 16 cores: 8 small jobs, and one that ends when ``leave`` is there."""
    box.submit(pinned(scenario.HELD_BACK, 1, 8, "600", machine))
    until = f"\"-c 'until test -e {leave}; do sleep 0.2; done'\""
    job = pinned(scenario.HELPED, 8, 1, until, machine, f"log = {log_of(box, large(machine))}")
    box.submit(job.replace("/bin/sleep", "/bin/sh"))


def pinned(group: str, cores: int, count: int, arguments: str, machine: str, *lines: str) -> str:
    return scenario.jobs(group, cores, count, arguments, "\n".join((at(machine), *lines)))


def at(machine: str) -> str:
    return f'requirements = TARGET.Machine == "{machine}"'


def large(machine: str) -> str:
    """Name of the log of the large job on that node."""
    return f"large-{machine}"


def log_of(box: Box, name: str) -> Path:
    return box.shared_directory / f"{name}.log"


def started(box: Box, name: str) -> list[float]:
    """Unix seconds at which jobs of that event log began to execute.

    Not JobStartDate: a start that the node then refused sets it too.
    """
    return event_log.times(log_of(box, name), EXECUTE)


def ended(box: Box, name: str) -> list[float]:
    """Unix seconds at which jobs of that event log ended."""
    return event_log.times(log_of(box, name), TERMINATED)


def published_since(box: Box, machine: str, attribute: str, since: float) -> bool:
    query = [
        "condor_status",
        "-constraint",
        f'Machine == "{machine}" && PartitionableSlot =?= True',
    ]
    value = box.run([*query, "-af", attribute]).stdout.strip()
    return value.isdigit() and int(value) >= since


# ---- what is missing, stale, broken

TARGET_SECONDS = 40
SLACK_SECONDS = 30
GARBAGE = bytes(range(256)) * 8 + b"\n"

SILENT = "#!/bin/sh\nexit 0\n"
FAILING = "#!/bin/sh\nexit 1\n"
HANGING = "#!/bin/sh\nexec sleep 600\n"


def stays_as_it_is(_file: Path, _program: Path) -> None:
    """The file goes stale by itself."""


def turns_into_garbage(file: Path, _program: Path) -> None:
    file.write_bytes(GARBAGE)


def cannot_be_executed(_file: Path, program: Path) -> None:
    program.chmod(0o644)


def becomes(script: str) -> Callable[[Path, Path], None]:
    def broken(_file: Path, program: Path) -> None:
        fresh = program.with_suffix(".new")
        fresh.write_text(script)
        fresh.chmod(0o755)
        fresh.replace(program)

    return broken


# Node, what happens to its target file or to its cron job, what it then says; None: what it said
# last stands.
FAILURES = (
    ("wn-001", stays_as_it_is, "expired"),
    ("wn-002", turns_into_garbage, "malformed"),
    ("wn-003", cannot_be_executed, None),
    ("wn-004", becomes(FAILING), None),
    ("wn-005", becomes(SILENT), None),
    ("wn-006", becomes(HANGING), None),
)


def test_what_fails_lets_jobs_in_and_no_target_outlives_its_validity(idle_pool: Box) -> None:
    box = idle_pool
    places = {node: place_of(box, node) for node, _failure, _reason in FAILURES}
    for node, (file, program) in places.items():
        config = scenario.node_config(enabled=True, file=str(file), grace_seconds=1)
        box.write_config(
            f"{node}.example.org", f"{config}STARTD_CRON_JOB_CTL_EXECUTABLE = {program}\n"
        )
        box.reconfig(f"{node}.example.org")

    # No file: the nodes say so, and jobs of any group get in.
    box.wait_until(
        lambda: {node.job_ctl_reason for node in looked(box)} == {"no-file"},
        60,
        "no file, they say",
    )
    # An access point may leave out a job whose claim was refused for 20 minutes: nothing may be
    # refused here (docs/method.md).
    box.wait_until(
        lambda: out_of_grace(box) == len(places), 60, "every node has latched its free cores"
    )
    for node in places:
        box.submit(pinned(scenario.HELD_BACK, 1, 1, "600", f"{node}.example.org"))
    box.wait_until(
        lambda: len(box.jobs("JobStatus == 2")) == len(places), 120, "a job gets in on every node"
    )

    until = int(time.time()) + TARGET_SECONDS
    for node, (file, _program) in places.items():
        hold_back(file, node, until)
    box.wait_until(
        lambda: all(node.target for node in looked(box)),
        TARGET_SECONDS,
        "every node has its target",
    )
    for node in places:
        log = f"log = {log_of(box, node)}"
        box.submit(pinned(scenario.HELD_BACK, 1, 1, "600", f"{node}.example.org", log))
    for node, failure, _reason in FAILURES:
        failure(*places[node])
    broken_at = time.time()
    assert broken_at < until - 10, "too slow a machine to tell an early end from an end on time"

    box.wait_until(
        lambda: all(started(box, node) for node in places),
        TARGET_SECONDS + 2 * SLACK_SECONDS,
        "jobs flow again",
    )
    for node, _failure, reason in FAILURES:
        (start,) = started(box, node)
        assert start <= until + SLACK_SECONDS, f"{node}: its target outlived its validity"
        # Held back until then: otherwise the jobs' getting in would say nothing. A refused file
        # ends a target at once.
        assert start >= (broken_at if reason == "malformed" else until) - 1, (
            f"{node}: had no target to outlive"
        )
    said = {node: reason or "ok" for node, _failure, reason in FAILURES}
    box.wait_until(
        lambda: {node.name: node.job_ctl_reason for node in looked(box)} == said,
        60,
        f"the nodes say why: {said}",
    )
    assert not any(node.target for node in looked(box))


def out_of_grace(box: Box) -> int:
    """Nodes of which the negotiator knows, too, that their free cores are in no grace."""
    query = [
        "condor_status",
        "-constraint",
        "t1_McRoomValue =?= 1 && MC_GRACE =?= false",
        "-af",
        "Machine",
    ]
    return len(box.run(query).stdout.split())


def looked(box: Box) -> tuple[NodePicture, ...]:
    return pictures.look(box)


def place_of(box: Box, node: str) -> tuple[Path, Path]:
    """Target file and copy of job_ctl of a node of its own."""
    folder = box.shared_directory / f"of-{node}"
    folder.mkdir()
    program = folder / "job_ctl.py"
    for source in (JOB_CTL, JOB_CTL.with_name("target.py")):
        shutil.copy(source, folder)
    return folder / "sharectl.txt", program


def hold_back(file: Path, node: str, until: int) -> None:
    """Publish a target that keeps out every job of the held-back group."""
    now = int(time.time())
    groups = ",".join(scenario.PLEDGE_HS06)
    fresh = file.with_suffix(".new")
    fresh.write_text(
        f"# sharectl: 1\n# sequence: {now}\n# generated: {now}\n# valid_until: {until}\n# "
        f"groups: {groups}\n"
        f"# targets: 1\n{node} {scenario.HELD_BACK} 0 {scenario.HELPED} "
        f"{scenario.MULTICORE_CORES}\n"
    )
    fresh.replace(file)
