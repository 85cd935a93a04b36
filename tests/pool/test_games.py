"""Games of one user, on a pool of 48 cores that alice's short single-core jobs hold.

cms, far under its pledge, has jobs that look placeable and that no slot ever takes: a trial of
pending jobs cannot know that `random(2) > 5` never holds. `TARGET.LoadAvg < -1` counts as placeable
too, but every node is closed to it.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from poolbox import Box, BoxSpec
from poolbox.demo import pictures
from poolbox.spec import equal_nodes
from tests.pool.deployed import SHORT_SECONDS, jobs, snippet
from tests.pool.sharectl_command import Sharectl

ACCESS = "ap-1.example.org"
NODES, NODE_CORES = 3, 16
POOL_CORES = NODES * NODE_CORES
SIZES = range(2, 13)
GRACE_SECONDS = 10
NEVER, CLOSED = "requirements = random(2) > 5", "requirements = TARGET.LoadAvg < -1"
FIRST_SECONDS, SECONDS = 30.0, 150.0
"""First blocks are tried until none is taken; then idle cores count."""
MOST_IDLE_CORES = 2.0


SPEC = BoxSpec(
    execute_points=equal_nodes(
        NODES, NODE_CORES, power_hs06=160.0, config=snippet(grace_seconds=GRACE_SECONDS)
    ),
    access_points=(ACCESS,),
)


@pytest.fixture
def full(box: Box) -> Box:
    """The pool when alice holds it."""
    box.submit(jobs("alice", 1, 6000, SHORT_SECONDS))
    box.wait_until(lambda: held(box, "alice") >= POOL_CORES - 4, "alice holds the pool")
    return box


def held(box: Box, group: str) -> int:
    return pictures.cores_by_group(pictures.look(box))[group]


class Game:
    """Cycles one after the other, and the cores that stand idle meanwhile."""

    def __init__(self, box: Box, folder: Path) -> None:
        self.box, self.sharectl = box, Sharectl(box, folder)
        self.configuration: dict[str, Any] = {
            "groups": {"alice": {"pledge_hs06": 100}, "cms": {"pledge_hs06": 300}},
            "control": {"give_up_seconds": 8.0},
            "publish": [{"file": str(box.shared_directory / "sharectl.txt")}],
            "validity_seconds": 60,
            "pool": {"collector_deadline_seconds": 20.0, "schedd_deadline_seconds": 20.0},
        }

    def plan(self) -> dict[str, Any]:
        """Plan of one cycle; empty if it was incomplete."""
        record = self.sharectl.json("cycle", **self.configuration)
        plan: dict[str, Any] = record["plan"] or {}
        return plan

    def kept_cores(self, seconds: float) -> float:
        """Mean idle cores on nodes with a target or in grace, with a cycle every few seconds."""
        kept, until = [0], time.monotonic() + seconds
        while time.monotonic() < until:
            self.plan()
            for _ in range(3):
                nodes = [node for node in pictures.look(self.box) if node.target or node.in_grace]
                kept.append(sum(node.idle_cores for node in nodes))
                time.sleep(1)
        return mean(kept)


def test_many_sizes_that_no_slot_takes_hold_few_cores_idle(full: Box, tmp_path: Path) -> None:
    game = Game(full, tmp_path)
    for size in SIZES:
        full.submit(jobs("cms", size, 4, 600, NEVER))
    tried = game.kept_cores(FIRST_SECONDS)
    full.wait_until(lambda: game.plan().get("reason") == "given-up", "first blocks were given back")
    kept = game.kept_cores(SECONDS)
    print(f"idle cores kept: {tried:.1f} at first, then {kept:.1f}")
    assert tried > 0
    assert kept <= MOST_IDLE_CORES


def test_jobs_to_which_every_node_is_closed_keep_no_grace_on(full: Box, tmp_path: Path) -> None:
    game = Game(full, tmp_path)
    full.submit(jobs("cms", 8, 4, 600, CLOSED))
    full.wait_until(
        lambda: len(full.jobs("AutoClusterId >= 0 && JobStatus == 1 && RequestCpus == 8")) == 4,
        "a negotiator has seen the jobs of cms",
    )
    full.wait_until(lambda: game.plan().get("multicore_pending") is False, "no grace for them")
    # Jobs that a slot takes have their grace.
    full.submit(jobs("cms", 4, 4, 600))
    full.wait_until(lambda: game.plan().get("multicore_pending"), "other jobs of cms wait")
