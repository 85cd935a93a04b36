"""When a job of eight cores will run: the block that a target frees for it, by the last cycle."""

from __future__ import annotations

import pytest

from poolbox import BoxSpec
from tests.pool.deployed import jobs, snippet
from tests.pool.sharectl_command import Sharectl

pytestmark = [pytest.mark.pool, pytest.mark.semantics]
ACCESS = "ap-1.example.org"
SPEC = BoxSpec.of_equal_nodes(2, access_points=(ACCESS,), execute_config=snippet())


def screen(sharectl: Sharectl, cluster: int) -> str:
    """Screen of a job, as one line."""
    return " ".join(sharectl.run("explain", "job", f"{cluster}.0").stdout.split())


def test_the_block_under_way_is_named_and_who_is_over_their_share(sharectl: Sharectl) -> None:
    box = sharectl.box
    box.submit(jobs("atlas", 1, 16, 900), ACCESS)
    box.wait_until(lambda: len(box.jobs("JobStatus == 2")) == 16, "atlas holds all cores")
    multicore = box.submit(jobs("cms", 8, 1, 60), ACCESS)
    single = box.submit(jobs("atlas", 1, 1, 60), ACCESS)

    def full() -> bool:
        return bool(sharectl.json("explain", "job", f"{multicore}.0")["code"] == "not-now")

    box.wait_until(full, "the collector knows it")
    assert "when not known: " in screen(sharectl, multicore)

    def planned() -> bool:
        sharectl.run("cycle")
        return " cms 8" in sharectl.targets.read_text()

    box.wait_until(planned, "a plan has targets")
    why = sharectl.json("explain", "job", f"{multicore}.0")
    assert why["code"] == "not-now"
    assert set(why["ledger"]["block_nodes"]) <= {"wn-001", "wn-002"}
    assert why["ledger"]["block_seconds"] > 0
    freed = "when a block of its size is being freed for cms on"
    assert freed in screen(sharectl, multicore)

    over = sharectl.json("explain", "job", f"{single}.0")
    assert over["ledger"]["over_hs06"] > 0
    (cpus,) = (row for row in over["nodes"]["obstacles"] if row["code"] == "cpus")
    assert "but its group is" in cpus["remedy"]
    assert "a smaller request" not in cpus["remedy"]
    assert over["ledger"]["block_nodes"] == []
