"""Off means off: `disable` takes targets away and keeps them away, `enable` lets them back."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from poolbox.demo import scenario
from tests.logs import changes_in
from tests.pool import looking
from tests.pool.conftest import OpenBox
from tests.pool.sharectl_command import Sharectl

NODE = "wn-001.example.org"
CORES = 16
TARGET = [8, 8]
"""Cap of the held-back group, request of the helped one: what the node publishes."""
NO_TARGET = [0, 0]
PERIOD_SECONDS = 5
"""Period of job_ctl in the scenario."""
DEADLINE_SECONDS = 90
PAUSE_SECONDS = 1.0
"""Between two cycles: several while job_ctl runs once."""
SOURCE = f"SHARECTL_SOURCE = file:{scenario.TARGETS_FILE_ON_NODE}\n"


@pytest.fixture(scope="module")
def pool(open_box: OpenBox, pool_suite: str) -> Iterator[Box]:
    spec = BoxSpec(
        execute_points=(ExecutePoint(NODE, cores=CORES, power_hs06=160.0),),
        suite=pool_suite,
        execute_config=f"{scenario.SNIPPET.read_text()}{scenario.node_config(enabled=True)}{SOURCE}",
    )
    with open_box(spec) as box:
        box.submit(scenario.jobs(scenario.HELD_BACK, 1, CORES, "3600"))
        looking.still(box, CORES)
        box.submit(scenario.jobs(scenario.HELPED, 8, 1, "3600"))
        yield box


@pytest.fixture
def sharectl(pool: Box, tmp_path: Path) -> Iterator[Sharectl]:
    command = Sharectl(pool, tmp_path)
    yield command
    (pool.shared_directory / scenario.TARGETS_FILE).unlink(missing_ok=True)


def configured(pool: Box) -> dict[str, Any]:
    return {
        "groups": {
            group: {"pledge_hs06": pledge} for group, pledge in scenario.PLEDGE_HS06.items()
        },
        "publish": [{"file": str(pool.shared_directory / scenario.TARGETS_FILE)}],
        "validity_seconds": 600,
    }


def cores_of_target(pool: Box) -> list[int]:
    """t1_Targetcores of the node, from its own startd."""
    query = ["condor_status", "-direct", NODE, "-constraint", "PartitionableSlot", "-af"]
    asked = ("t1_Targetcores[0]", "t1_Targetcores[1]", "int(time() < t1_TargetUntil)")
    cap, request, valid = pool.run([*query, *asked]).stdout.split()
    return [int(cap), int(request)] if valid == "1" else NO_TARGET


def becomes(pool: Box, cores: list[int]) -> None:
    pool.wait_until(
        lambda: cores_of_target(pool) == cores, DEADLINE_SECONDS, f"the node publishes {cores}"
    )


def stays_without_target(pool: Box, cycle: Callable[[], object]) -> None:
    """Run cycles for three runs of job_ctl: the node has no target at any time."""
    end = time.monotonic() + 3 * PERIOD_SECONDS
    while time.monotonic() < end:
        cycle()
        assert cores_of_target(pool) == NO_TARGET
        time.sleep(PAUSE_SECONDS)


def test_disable_withdraws_at_once_and_cycles_publish_nothing_until_enable(
    pool: Box, sharectl: Sharectl
) -> None:
    parts = configured(pool)
    published = pool.shared_directory / scenario.TARGETS_FILE

    sharectl.run("cycle", **parts)
    becomes(pool, TARGET)
    first = sequence_of(published)

    said = sharectl.run("disable", "--reason", "cooling of room 3", "--for", "2h", **parts).stdout
    assert "cooling of room 3" in said
    assert f"no targets at {published}" in said
    assert sequence_of(published) > first
    withdrawn = published.read_bytes()
    becomes(pool, NO_TARGET)
    cycles = []

    def cycle() -> None:
        cycles.append(sharectl.run("cycle", **parts).stdout)

    stays_without_target(pool, cycle)
    assert cycles
    assert all("disabled=true" in line and "cooling of room 3" in line for line in cycles)
    assert published.read_bytes() == withdrawn, "cycles published something"
    assert sharectl.errors_log.read_text().count(scenario.HELPED) == 1 + len(cycles), (
        "cycles still measure"
    )

    would = sharectl.run("cycle", "--dry-run", **parts)
    assert "wn-001" in would.stdout, "what it would do is still shown"
    assert "not published now: disabled" in would.stderr

    sharectl.run("enable", **parts)
    sharectl.run("cycle", **parts)
    becomes(pool, TARGET)
    assert sharectl.json("status", **parts)["disabled"] is None
    changes = [row for row in changes_in(sharectl.folder) if row["event"] == "target"]
    assert [(row["change"], row["node"], row["who"]["verb"]) for row in changes] == [
        ("added", "wn-001", "cycle"),
        ("removed", "wn-001", "disable"),
        ("added", "wn-001", "cycle"),
    ]
    assert changes[1]["why"]["text"] == "cooling of room 3"


def test_the_time_runs_out_and_a_file_made_by_hand_counts(pool: Box, sharectl: Sharectl) -> None:
    parts = configured(pool)
    sharectl.run("cycle", **parts)
    becomes(pool, TARGET)
    (sharectl.folder / "disabled").touch()
    sharectl.run("cycle", **parts)
    becomes(pool, NO_TARGET)
    (sharectl.folder / "disabled").unlink()
    sharectl.run("cycle", **parts)
    becomes(pool, TARGET)

    sharectl.run("disable", "--reason", "a moment", "--for", "30s", **parts)
    assert "disabled=true" in sharectl.run("cycle", **parts).stdout
    becomes(pool, NO_TARGET)
    pool.wait_until(lambda: over(sharectl), 60, "the time is over")
    again = sharectl.run("cycle", **parts)
    assert "enabled again" in again.stderr
    assert "disabled=false" in again.stdout
    becomes(pool, TARGET)
    assert not (sharectl.folder / "disabled").exists()


def test_targets_go_without_the_pool_and_beside_a_cycle_that_hangs(
    pool: Box, sharectl: Sharectl
) -> None:
    parts = configured(pool)
    sharectl.run("cycle", **parts)
    becomes(pool, TARGET)
    # No collector listens there.
    nowhere = {**parts, "pool": {"collector": "127.0.0.1:1"}, "lock_wait_seconds": 1}
    holder = subprocess.Popen(["flock", "-F", str(sharectl.folder / "lock"), "sleep", "60"])
    try:
        pool.wait_until(lambda: is_locked(sharectl.folder / "lock"), 10, "somebody has the lock")
        refused = sharectl.run("disable", "--reason", "it hangs", expect=75, **nowhere)
        assert "another cycle holds the lock" in refused.stderr
        becomes(pool, NO_TARGET)
    finally:
        holder.terminate()
        holder.wait(10)
    stays_without_target(pool, lambda: sharectl.run("cycle", **parts))
    assert [
        line["change"] for line in changes_in(sharectl.folder) if line["event"] == "target"
    ] == [
        "added",
        "removed",
    ]


def over(sharectl: Sharectl) -> bool:
    until = json.loads((sharectl.folder / "disabled").read_text())["until"]
    return bool(time.time() >= until)


def is_locked(path: Path) -> bool:
    return subprocess.run(["flock", "-n", str(path), "true"], check=False).returncode != 0


def sequence_of(path: Path) -> int:
    line = next(line for line in path.read_text().splitlines() if line.startswith("# sequence: "))
    return int(line.rpartition(" ")[2])
