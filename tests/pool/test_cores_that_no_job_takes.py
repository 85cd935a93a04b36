"""A group at its negotiator quota: cores that stay free for its jobs are given back.

alice holds every core with jobs of one core. cms is far under its pledge and waits with jobs of
eight, and the negotiator's quota lets it have four cores: one job starts, because a group below its
quota may pass it by a job. Nothing in the ads or in the queue says so.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from poolbox.demo import pictures
from tests.pool.conftest import OpenBox
from tests.pool.deployed import SHORT_SECONDS, jobs, snippet
from tests.pool.sharectl_command import Sharectl

CENTRAL, ACCESS = "cm-1.example.org", "ap-1.example.org"
NODE_CORES, NODES = 16, 3
POOL_CORES = NODE_CORES * NODES
JOB_CORES = 8
CYCLE_SECONDS, GIVE_UP_SECONDS = 4.0, 10.0
MOST_IDLE_RATIO = 0.05
WATCHED_SECONDS = 40.0
QUOTAS = """
GROUP_NAMES = alice, cms
GROUP_QUOTA_alice = 48
GROUP_QUOTA_cms = {cms}
GROUP_ACCEPT_SURPLUS = False
"""


@pytest.fixture
def pool(open_box: OpenBox) -> Iterator[Box]:
    spec = BoxSpec(
        execute_points=tuple(
            ExecutePoint(
                f"wn-{number:03}.example.org", cores=NODE_CORES, power_hs06=160.0, config=snippet()
            )
            for number in range(1, NODES + 1)
        ),
        access_points=(ACCESS,),
        central_config=QUOTAS.format(cms=4),
        config="MASTER_BACKOFF_CONSTANT = 2\n",
    )
    with open_box(spec) as box:
        yield box


class Cycles:
    """Cycles, one after the other, until something is seen."""

    def __init__(self, box: Box, folder: Path) -> None:
        self.sharectl = Sharectl(box, folder, imported=True)
        self.configuration: dict[str, Any] = {
            "groups": {group: {"pledge_hs06": 100} for group in ("alice", "cms")},
            "control": {"give_up_seconds": GIVE_UP_SECONDS},
            "publish": [{"file": str(box.shared_directory / "sharectl.txt")}],
            "validity_seconds": 60,
            "pool": {"collector_deadline_seconds": 10.0, "schedd_deadline_seconds": 10.0},
        }
        self.records: list[dict[str, Any]] = []

    def until(self, seen: Callable[[], bool], seconds: float) -> bool:
        """Whether it was seen within so many seconds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            began = time.monotonic()
            done = self.sharectl.run("cycle", "--json", expect=None, **self.configuration)
            record = json.loads(done.stdout) if done.stdout.startswith("{") else {}
            if record.get("idle_cores"):
                self.records.append(record)
                if seen():
                    return True
            time.sleep(max(0.0, CYCLE_SECONDS - (time.monotonic() - began)))
        return False

    def limits(self) -> set[str]:
        """Codes of the limits that acted in the last cycle."""
        return {note["code"] for note in self.records[-1]["plan"]["limits"]}

    def status(self) -> tuple[int, list[str]]:
        """Exit code of ``status``, and its problems."""
        done = self.sharectl.run("status", "--json", expect=None, **self.configuration)
        return done.returncode, json.loads(done.stdout)["problems"]


def idle_under_targets(records: list[dict[str, Any]]) -> float:
    """Mean part of the pool's cores."""
    assert records
    cores: list[int] = [record["idle_cores"]["target"] for record in records]
    return sum(cores) / len(cores) / POOL_CORES


def test_cores_for_a_group_at_its_quota_are_given_back_until_the_quota_is_lifted(
    pool: Box, tmp_path: Path
) -> None:
    pool.submit(jobs("alice", 1, 3000, SHORT_SECONDS), ACCESS)
    pool.wait_until(
        lambda: pictures.cores_by_group(pictures.look(pool))["alice"] >= POOL_CORES - 4,
        120,
        "alice runs",
    )
    pool.submit(jobs("cms", JOB_CORES, 20, 900), ACCESS)
    cycles = Cycles(pool, tmp_path)

    def given_up() -> bool:
        return bool(cycles.records[-1]["plan"]["reason"] == "given-up")

    assert cycles.until(given_up, 180), [record["plan"]["reason"] for record in cycles.records]
    first = len(cycles.records)
    kept = max(record["idle_cores"]["target"] for record in cycles.records)
    assert kept >= JOB_CORES, "no block ever stood free"
    code, problems = cycles.status()
    assert code == 1
    assert any("cms: its 8-core jobs wait, and no job took" in problem for problem in problems), (
        problems
    )

    cycles.until(lambda: False, WATCHED_SECONDS)
    before, afterwards = (
        idle_under_targets(part) for part in (cycles.records[:first], cycles.records[first:])
    )
    print(
        f"idle under targets: {before:.1%} of the cores until cms was given up, "
        f"{afterwards:.1%} afterwards"
    )
    assert afterwards <= MOST_IDLE_RATIO < before
    assert pictures.cores_by_group(pictures.look(pool)).get("cms", 0) <= JOB_CORES

    pool.write_config(CENTRAL, QUOTAS.format(cms=48))
    pool.reconfig(CENTRAL)
    lifted = time.monotonic()
    two_more = 3 * JOB_CORES
    assert cycles.until(
        lambda: pictures.cores_by_group(pictures.look(pool)).get("cms", 0) >= two_more, 400
    ), cycles.records[-1]
    print(f"two more jobs of cms ran {time.monotonic() - lifted:.0f} s after the quota was lifted")
    assert "given-up" not in cycles.limits()
