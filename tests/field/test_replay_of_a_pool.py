"""A replay without a change on the ledger of a real pool: it agrees with every cycle.

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


def test_every_cycle_agrees_or_its_note_says_why(pool: Box, tmp_path: Path) -> None:
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
    again = sharectl.json("replay", **usual)
    rows = {row["cycle"]: row for row in again["cycles"]}
    notes = {number: row["note"] for number, row in rows.items() if row["note"]}
    named = {5: "incomplete", 9: "configuration", 10: "configuration", DISABLED: "overruled"}
    assert notes == named, again
    agree = {number: rows[number]["agreement_ratio"] for number in rows.keys() - named.keys()}
    assert agree == dict.fromkeys(agree, 1.0)
    # Not agreement about nothing: targets came, changed and were given up.
    seen = [rows[number]["was"] for number in agree]
    assert sum(row["targets"] for row in seen) > len(agree)
    assert sum(row["changed_nodes"] > 0 for row in seen) > 2, seen
    last = sharectl.json("explain", "cycle", **usual)
    assert last["agrees"], last
    # The same by a setting that says what is so; one that changes something changes it.
    same = sharectl.json("replay", "--set", "control.max_nodes=3", **usual)
    assert same["cycles"] == again["cycles"]
    less = sharectl.json("replay", "--set", "control.max_nodes=1", **usual)["cycles"]
    assert {row["cycle"]: row["note"] for row in less if row["note"]} == named
    assert {row["would"]["targets"] for row in less if row["would"]} <= {0, 1}
