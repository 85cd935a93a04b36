"""Waiting times of a queue whose jobs are too many to look at all of them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from poolbox import BoxSpec, ExecutePoint
from sharectl.condor.schedds import SAMPLE_JOBS
from tests.pool.conftest import OpenBox
from tests.pool.sharectl_command import Sharectl

NODE_CORES = 12
MANY = 3 * SAMPLE_JOBS
JOBS = """\
executable = /bin/sleep
transfer_executable = False
arguments = 600
request_cpus = {cores}
request_memory = 8
request_disk = 8
accounting_group = {group}
accounting_group_user = {group}
queue {count}
"""


@pytest.mark.parametrize("mode", ["counted", "jobs"])
def test_waiting_times_of_pending_and_of_started_jobs(
    mode: str, open_box: OpenBox, tmp_path: Path
) -> None:
    """Each size has its times: a sample of many jobs of one core, all of the few of eight."""
    spec = BoxSpec(
        execute_points=(ExecutePoint("wn-001.example.org", cores=NODE_CORES),),
        access_points=("ap-1.example.org",),
        groups={"cms": 0.5, "atlas": 0.5},
    )
    with open_box(spec) as box:
        sharectl = Sharectl(box, tmp_path)
        began = time.monotonic()
        # Too many for a job of eight cores to run beside them.
        box.submit(JOBS.format(group="atlas", cores=1, count=NODE_CORES // 2), "ap-1.example.org")

        def seen() -> dict[str, Any]:
            content = sharectl.json("snapshot", pool={"mode": mode})
            return {f"{row['group']} {row['cores']}": row for row in content["waits"]}

        def started() -> int:
            times = seen().get("atlas 1", {}).get("started") or {"jobs": 0}
            return int(times["jobs"])

        box.wait_until(lambda: started() == NODE_CORES // 2, 120, "the jobs of atlas run")
        box.submit(JOBS.format(group="cms", cores=8, count=20), "ap-1.example.org")
        box.submit(JOBS.format(group="cms", cores=1, count=MANY), "ap-1.example.org")
        waits = seen()
        elapsed = time.monotonic() - began + 2
        assert set(waits) == {"atlas 1", "cms 1", "cms 8"}
        assert waits["atlas 1"]["pending"] is None
        many, few, begun = (
            waits["cms 1"]["pending"],
            waits["cms 8"]["pending"],
            waits["atlas 1"]["started"],
        )
        assert (few["jobs"], few["sampled"]) == (20, False)
        assert many["sampled"] == (mode == "counted")
        assert SAMPLE_JOBS / 4 <= many["jobs"] <= MANY
        assert (
            0
            <= many["longest_seconds"]
            <= few["median_seconds"]
            <= few["longest_seconds"]
            <= elapsed
        )
        assert 0 <= begun["median_seconds"] <= begun["longest_seconds"] <= elapsed
