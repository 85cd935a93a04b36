"""A node under a target: off means off."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from sharectl import __version__
from sharectl.publish import text
from tests.logs import changes_in
from tests.pool.deployed import jobs, partitionable, snippet, still
from tests.pool.sharectl_command import Sharectl

NODE, LEFT_ALONE = "wn-001.example.org", "wn-002.example.org"
CORES, MULTICORE, WAITING = 16, 8, 3
HELD_BACK, HELPED = "alice", "cms"
TARGET = [8, MULTICORE]
"""Cap of the held-back group, request of the helped one: t1_Targetcores of the node."""
NO_TARGET = [0, 0]
PERIOD_SECONDS = 3
"""Period of job_ctl."""
SPEC = BoxSpec(
    (
        ExecutePoint(NODE, CORES, power_hs06=160.0, config=snippet()),
        ExecutePoint(LEFT_ALONE, CORES, power_hs06=160.0),
    )
)


def prepare(box: Box) -> None:
    """Fill both nodes with one group's jobs, while large ones of the other wait."""
    box.submit(jobs(HELD_BACK, 1, 2 * CORES, 3600))
    still(box, 2 * CORES)
    box.submit(jobs(HELPED, MULTICORE, WAITING, 3600))


@pytest.fixture
def sharectl(pool: Box, tmp_path: Path) -> Iterator[Sharectl]:
    command = Sharectl(pool, tmp_path)
    yield command
    published(pool).unlink(missing_ok=True)


def published(pool: Box) -> Path:
    return pool.shared_directory / "sharectl.txt"


def configured(pool: Box) -> dict[str, Any]:
    return {
        # So that the error is worth a block on both nodes.
        "groups": {HELPED: {"pledge_hs06": 950.0}, HELD_BACK: {"pledge_hs06": 50.0}},
        "nodes": {"controlled": "wn-001"},
        "publish": [{"file": str(published(pool))}],
        "validity_seconds": 600,
    }


def cores_of_target(pool: Box) -> list[int]:
    ad = partitionable(pool, NODE)
    return list(ad["t1_Targetcores"]) if time.time() < ad["t1_TargetUntil"] else NO_TARGET


def becomes(pool: Box, cores: list[int]) -> None:
    pool.wait_until(lambda: cores_of_target(pool) == cores, f"the node publishes {cores}")


def stays_without_target(pool: Box, cycle: Callable[[], object]) -> None:
    """Run cycles for three runs of job_ctl: the node has no target at any time."""
    end = time.monotonic() + 3 * PERIOD_SECONDS
    while time.monotonic() < end:
        cycle()
        assert cores_of_target(pool) == NO_TARGET
        time.sleep(1)  # several cycles while job_ctl runs once


def changed(sharectl: Sharectl) -> list[tuple[str, str, str]]:
    """Change, node and verb of each target in the audit."""
    rows = [row for row in changes_in(sharectl.folder) if row["event"] == "target"]
    return [(row["change"], row["node"], row["who"]["verb"]) for row in rows]


def test_disabled_or_observing_no_target_is_left_until_it_steers_again(
    pool: Box, sharectl: Sharectl
) -> None:
    parts = configured(pool)
    file = published(pool)
    sharectl.run("cycle", **parts)
    becomes(pool, TARGET)

    def acting() -> list[dict[str, Any]]:
        return [row for row in sharectl.json("nodes", **parts)["nodes"] if row["target"]]

    (row,) = pool.wait_until(acting, "the collector knows it")
    assert (row["node"], row["target"]["cap_cores"], row["reason"]) == ("wn-001", 8, None)
    assert (row["version"], row["job_ctl"]) == (__version__, "ok")
    first = text.FilePublisher(file).look()[0].sequence or 0

    said = sharectl.run("disable", "--reason", "cooling of room 3", "--for", "2h", **parts).stdout
    assert "cooling of room 3" in said
    assert f"no targets at {file}" in said
    assert (text.FilePublisher(file).look()[0].sequence or 0) > first
    withdrawn = file.read_bytes()
    becomes(pool, NO_TARGET)
    cycles: list[str] = []
    stays_without_target(pool, lambda: cycles.append(sharectl.run("cycle", **parts).stdout))
    assert all("disabled=true" in line and "cooling of room 3" in line for line in cycles)
    assert file.read_bytes() == withdrawn, "cycles published something"
    rows = sharectl.errors_log.read_text().count(HELPED)
    assert rows == 1 + len(cycles), "cycles still measure"

    sharectl.run("enable", **parts)
    sharectl.run("cycle", **parts)
    becomes(pool, TARGET)
    assert sharectl.json("status", **parts)["disabled"] is None
    assert changed(sharectl) == [
        ("added", "wn-001", "cycle"),
        ("removed", "wn-001", "disable"),
        ("added", "wn-001", "cycle"),
    ]
    targets = [row for row in changes_in(sharectl.folder) if row["event"] == "target"]
    assert targets[1]["why"]["text"] == "cooling of room 3"

    observed = {**parts, "mode": "observe"}
    line = sharectl.run("cycle", **observed).stdout
    assert "would have published 1 target; nothing is steered" in line
    becomes(pool, NO_TARGET)
    node = sharectl.json("explain", "node", NODE, **observed)
    assert (node["target"]["cap_cores"], node["observed"], node["agrees"]) == (8, True, True)
