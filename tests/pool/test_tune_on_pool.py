"""``sharectl tune --on-pool``: simulations as jobs of a real pool."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from poolbox.waiting import HANG_SECONDS
from tests.pool.deployed import configure
from tests.pool.sharectl_command import ENVIRONMENT

NODE = "wn-001.example.org"
SPEC = BoxSpec(
    execute_points=(ExecutePoint(NODE, 4, 8192),),
    access_points=("ap-1.example.org",),
    access_config="PERIODIC_EXPR_INTERVAL = 2",
    execute_config="Tunes = True\nSTARTD_ATTRS = $(STARTD_ATTRS) Tunes",
)
SCENARIO = """\
nodes: [{name: wn, count: 4, cores: 16}]
groups: {alice: {pledge_hs06: 300}, cms: {pledge_hs06: 300}}
jobs:
  - {group: alice, cores: 1, run_time: "exponential:900", keep_pending: 20}
  - {group: cms, cores: 8, run_time: "exponential:1800", keep_pending: 5}
warmup_hours: 1
days: 0.1
"""
SEARCH = (
    "--over", "control.law=latest|ewma", "--trials", "1", "--seeds", "2", "--json"
)  # fmt: skip


def start(box: Box, *arguments: str) -> subprocess.Popen[str]:
    scenario = box.shared_directory / "tiny.yaml"
    scenario.write_text(SCENARIO)
    return subprocess.Popen(
        [sys.executable, "-m", "sharectl", "tune", str(scenario), *SEARCH, *arguments],
        env={**ENVIRONMENT, **box.client_environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def on_pool(box: Box, folder: Path, submitted: str) -> subprocess.Popen[str]:
    """A search on the pool; ``submitted``: a command of its submit descriptions."""
    access = ("--on-pool", "--access-point", SPEC.access_points[0], "-o", str(folder))
    return start(box, *access, "--submit", "request_memory=256", "--submit", submitted)


def end(process: subprocess.Popen[str], expect: int) -> tuple[str, str]:
    """Output and errors of a search, which has to end with that exit code."""
    try:
        out, err = process.communicate(timeout=3 * HANG_SECONDS)
    finally:
        process.kill()
    assert process.returncode == expect, err
    return out, err


def outcome(process: subprocess.Popen[str]) -> dict[str, Any]:
    printed: dict[str, Any] = json.loads(end(process, 0)[0])
    return printed


@pytest.fixture
def folder(box: Box, request: pytest.FixtureRequest) -> Path:
    """Folder that access point and command both see."""
    return box.shared_directory / str(request.node.name)


def failing_at_first(folder: Path) -> Path:
    """An interpreter with which two jobs fail, one of them with an answer, and others run."""
    folder.mkdir()
    script = folder / "python3"
    script.write_text(
        f"""#!/bin/sh
        mkdir "{folder}/failed" 2>/dev/null && {{ echo '{{"problem": "no disk"}}'; exit 1; }}
        mkdir "{folder}/lost" 2>/dev/null && kill -9 $$
        exec /usr/bin/python3 "$@"
        """
    )
    script.chmod(0o755)
    return script


def history(box: Box, *attributes: str) -> list[str]:
    command = ["condor_history", "-af", *attributes]
    return sorted(box.run(command, host=SPEC.access_points[0]).stdout.splitlines())


def test_a_search_on_a_pool_has_the_outcome_of_one_here_whatever_failed_at_first(
    box: Box, folder: Path
) -> None:
    there = on_pool(box, folder, f"executable={failing_at_first(folder)}")
    with start(box) as here:
        assert outcome(there) == outcome(here)
    # The default, one batch of settings, and the confirmation of both; each is one cluster.
    jobs = [
        f"{cluster} {job}" for cluster, count in ((1, 2), (2, 2), (3, 4)) for job in range(count)
    ]
    # A job that has ended stays in the queue until its shadow is gone.
    box.wait_until(lambda: history(box, "ClusterId", "ProcId") == jobs, "all have left the queue")
    assert sum(map(int, history(box, "NumJobStarts"))) == len(jobs) + 2


def test_interrupted_jobs_are_removed_and_a_killed_search_goes_on(box: Box, folder: Path) -> None:
    waits = "requirements=TARGET.Tunes =?= False"
    process = on_pool(box, folder, waits)
    box.wait_until(lambda: len(box.jobs()) == 2, "the jobs are queued")
    process.send_signal(signal.SIGINT)
    end(process, 130)
    box.wait_until(lambda: not box.jobs(), "the jobs are removed")

    process = on_pool(box, folder, waits)
    box.wait_until(lambda: len(box.jobs()) == 2, "the jobs are queued")
    process.kill()
    process.communicate()
    configure(box, NODE, "Tunes = False\nSTARTD_ATTRS = $(STARTD_ATTRS) Tunes")
    assert outcome(on_pool(box, folder, waits))["complete"]
    box.wait_until(lambda: not box.jobs(), "the jobs of the killed search are removed")
