"""Cycles of the ledger of a real pool, decided again: each agrees with its record.

Six nodes of 8 cores, jobs that end at any time, targets, blocks that are given up, a silent access
point, a plan that arrives nowhere, a switch that is off, and another configuration for two cycles.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool.deployed import jobs, list_idle_jobs_again, snippet, still
from tests.pool.sharectl_command import Sharectl

pytestmark = [pytest.mark.pool, pytest.mark.semantics]
ACCESS = "ap-1.example.org"
NODES, CORES, CYCLES, DISABLED = 6, 8, 18, 13
PERIOD_SECONDS = 4.0
SPEC = BoxSpec(
    tuple(
        ExecutePoint(f"wn-{n:03}.example.org", CORES, power_hs06=80.0 + 8 * (n % 3))
        for n in range(1, NODES + 1)
    ),
    access_points=(ACCESS,),
    execute_config=snippet(),
)


def prepare(box: Box) -> None:
    """Fill nodes with jobs of alice that end at any time, while larger ones wait."""
    lasting = "length = 20 + $(Process) * 37 % 90"
    box.submit(jobs("alice", 1, 400, "$INT(length)", lasting), ACCESS)
    still(box, NODES * CORES)
    box.submit(jobs("cms", 4, 12, "$INT(length)", lasting), ACCESS)
    box.submit(jobs("atlas", 6, 3, 600), ACCESS)


def configured(box: Box, **control: Any) -> dict[str, Any]:
    powers = {"cms": 300.0, "atlas": 150.0, "alice": 100.0}
    limits = {"max_nodes": 3, "max_changed_nodes": 2, "dwell_seconds": 8, "give_up_seconds": 12}
    return {
        "groups": {name: {"pledge_hs06": pledge} for name, pledge in powers.items()},
        "publish": [{"file": str(box.shared_directory / "sharectl.txt")}],
        "control": {**limits, "law": "ewma", **control},
        "validity_seconds": 600,
    }


def test_every_cycle_of_this_configuration_agrees(pool: Box, tmp_path: Path) -> None:
    sharectl = Sharectl(pool, tmp_path)
    usual, other = configured(pool), configured(pool, max_nodes=1)
    silent = {**usual, "pool": {"schedds": ["ap-9.example.org"]}}
    nowhere = {**usual, "publish": [{"file": str(tmp_path / "no" / "folder")}]}
    hows = {5: silent, 7: nowhere, 9: other, 10: other}
    for number in range(1, CYCLES + 1):
        if number == DISABLED:
            sharectl.run("disable", "--reason", "a test", **usual)
        if number == DISABLED + 1:
            sharectl.run("enable", **usual)
        sharectl.run("cycle", expect=None, **hows.get(number, usual))
        list_idle_jobs_again(pool, ACCESS)
        time.sleep(PERIOD_SECONDS)
    named = {5, 9, 10, DISABLED}
    again = {
        number: sharectl.json("explain", "cycle", str(number), **usual)
        for number in range(1, CYCLES + 1)
        if number not in named
    }
    assert [number for number, cycle in again.items() if not cycle["agrees"]] == []
    silent_cycle = sharectl.json("explain", "cycle", "5", **usual)
    assert (silent_cycle["complete"], silent_cycle["agrees"]) == (False, None)
    # Not agreement about nothing: targets came, changed and were given up.
    assert sum(len(cycle["targets"]) for cycle in again.values()) > len(again)
    counts = [cycle["changes"]["counts"] for cycle in again.values() if cycle["changes"]]
    changed = [sum(count for kind, count in row.items() if kind != "kept") for row in counts]
    assert sum(number > 0 for number in changed) > 2, changed
