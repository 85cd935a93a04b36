"""Two groups over their share, two under it: `many` leaves less error than `pair`.

Two pools alike, side by side, with the same jobs. alice and atlas hold all cores with jobs of one
core; cms waits with jobs of eight cores, lhcb with jobs of seven, fewer than `pair` frees. Nodes
differ in power. One pool is steered by ``strategy: many``, the other by ``strategy: pair``; only
that differs. What is left of the errors is compared after the same time.
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import ExitStack
from math import sqrt
from pathlib import Path
from typing import Any

from poolbox import Box, BoxSpec, ExecutePoint
from poolbox.demo import pictures
from tests.pool.conftest import OpenBox
from tests.pool.deployed import SHORT_SECONDS, jobs, snippet
from tests.pool.sharectl_command import Sharectl

STRATEGIES = ("many", "pair")
RATIO = 0.7
CYCLE_SECONDS = 4.0
LONGEST_SECONDS = 240.0
"""Most seconds until the pool of many pairs has nothing more to move."""
LAST_CYCLES = 3
"""Last cycles whose errors are averaged: at any moment some jobs are between two others."""

CENTRAL, FIRST, SECOND = "cm-1.example.org", "ap-1.example.org", "ap-2.example.org"
NODE_CORES = 16
POWERS_HS06 = (160.0, 192.0, 160.0, 192.0)
POOL_CORES = NODE_CORES * len(POWERS_HS06)
GROUPS = ("alice", "atlas", "cms", "lhcb")
OVER = {"alice": FIRST, "atlas": SECOND}
UNDER = {"cms": (8, 2), "lhcb": (7, 2)}
"""Group -> cores of a job, jobs: as many as make up for the errors, on whichever nodes they run."""


def spec() -> BoxSpec:
    return BoxSpec(
        execute_points=tuple(
            ExecutePoint(
                f"wn-{number:03}.example.org", cores=NODE_CORES, power_hs06=power, config=snippet()
            )
            for number, power in enumerate(POWERS_HS06, 1)
        ),
        access_points=(FIRST, SECOND),
        groups=dict.fromkeys(GROUPS, 1 / len(GROUPS)),
        # Cores that one group cannot use go to the others.
        central_config="GROUP_AUTOREGROUP = True\nGROUP_ACCEPT_SURPLUS = False\n",
        config="MASTER_BACKOFF_CONSTANT = 2\n",
    )


def fill(box: Box) -> None:
    """Alice and atlas hold every core, about half each."""
    for group, access_point in OVER.items():
        box.submit(jobs(group, 1, POOL_CORES // 2, SHORT_SECONDS), access_point)
    box.wait_until(
        lambda: all(held(box)[group] >= POOL_CORES // 4 for group in OVER), 90, "both groups run"
    )
    for group, access_point in OVER.items():
        box.submit(jobs(group, 1, 1000, SHORT_SECONDS), access_point)
    box.wait_until(
        lambda: sum(held(box).values()) >= POOL_CORES - 4, 90, "jobs of one core hold the pool"
    )


def held(box: Box) -> dict[str, int]:
    return pictures.cores_by_group(pictures.look(box))


class Steered:
    """A pool that is steered by one strategy, cycle after cycle."""

    def __init__(self, box: Box, folder: Path, strategy: str, start: threading.Barrier) -> None:
        self.box = box
        self.start = start
        self.steered, self.stop = threading.Event(), threading.Event()
        self.sharectl = Sharectl(box, folder)
        self.configuration: dict[str, Any] = {
            "groups": {group: {"pledge_hs06": 100} for group in GROUPS},
            "control": {"strategy": strategy},
            "publish": [{"file": str(box.shared_directory / "sharectl.txt")}],
            "validity_seconds": 60,
            "pool": {"collector_deadline_seconds": 10.0, "schedd_deadline_seconds": 10.0},
        }
        self.records: list[dict[str, Any]] = []
        self.failure: list[BaseException] = []
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            fill(self.box)
            self.start.wait(300)
            for group, (cores, count) in UNDER.items():
                self.box.submit(jobs(group, cores, count, 600), FIRST)
            start = time.monotonic()
            while not self.stop.is_set():
                began = time.monotonic()
                done = self.sharectl.run("cycle", "--json", expect=None, **self.configuration)
                record = json.loads(done.stdout) if done.stdout.startswith("{") else None
                if record and record["errors"]:
                    self.records.append(record)
                if self.has_moved_all() or began - start > LONGEST_SECONDS:
                    self.steered.set()
                self.stop.wait(max(0.0, CYCLE_SECONDS - (time.monotonic() - began)))
        except BaseException as failure:  # noqa: BLE001  # for the test to raise
            self.failure.append(failure)
            self.start.abort()
        finally:
            self.steered.set()

    def has_moved_all(self) -> bool:
        """Whether there were targets, and none in the last cycles."""
        with_targets = [bool(pairs(record)) for record in self.records]
        return any(with_targets) and not any(with_targets[-LAST_CYCLES:])

    def errors_left(self) -> float:
        """Power, RMS over the groups, on average over the last cycles."""
        last = self.records[-LAST_CYCLES:]
        return sum(map(rms_hs06, last)) / len(last)


def rms_hs06(record: dict[str, Any]) -> float:
    errors = [row["error_hs06"] for row in record["errors"]]
    return sqrt(sum(error**2 for error in errors) / len(errors))


def pairs(record: dict[str, Any]) -> set[tuple[str, str]]:
    targets = record["plan"]["targets"] if record["plan"] else []
    return {(target["held_back"], target["helped"]) for target in targets}


def test_many_pairs_leave_less_error_than_one(open_box: OpenBox, tmp_path: Path) -> None:
    with ExitStack() as opened:
        pools, start = {}, threading.Barrier(len(STRATEGIES))
        for strategy in STRATEGIES:
            (tmp_path / strategy).mkdir()
            box = opened.enter_context(open_box(spec()))
            pools[strategy] = Steered(box, tmp_path / strategy, strategy, start)
        for pool in pools.values():
            pool.thread.start()
        pools["many"].steered.wait()
        for pool in pools.values():
            pool.stop.set()
        for pool in pools.values():
            pool.thread.join()
        failures = [failure for pool in pools.values() for failure in pool.failure]
        # That the other never came is no reason of its own.
        for failure in sorted(
            failures, key=lambda found: isinstance(found, threading.BrokenBarrierError)
        ):
            raise failure
    story = {
        name: [(round(rms_hs06(record)), sorted(pairs(record))) for record in pool.records]
        for name, pool in pools.items()
    }
    print(*story.items(), sep="\n")
    many, pair = pools["many"], pools["pair"]
    print(f"errors left: {many.errors_left():.0f} HS06 by many, {pair.errors_left():.0f} by pair")
    assert any(len({helped for _, helped in pairs(record)}) > 1 for record in many.records), story
    assert all(len(pairs(record)) <= 1 for record in pair.records), story
    assert many.errors_left() <= RATIO * pair.errors_left(), story
