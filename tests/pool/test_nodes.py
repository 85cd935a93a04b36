"""`sharectl nodes` of a live pool: control, snippet, version, target, since when, and why not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from sharectl import __version__
from tests.pool.conftest import OpenBox
from tests.pool.deployed import jobs, snippet
from tests.pool.sharectl_command import Sharectl

pytestmark = pytest.mark.semantics
STEERED, OFF, BARE, ELSEWHERE, STATIC = (f"wn-00{number}" for number in range(1, 6))
CORES = 8
STATIC_SLOTS = """\
NUM_SLOTS_TYPE_1 = 8
SLOT_TYPE_1 = cpus=1
SLOT_TYPE_1_PARTITIONABLE = False
"""
CONFIGS = {
    STEERED: snippet(),
    OFF: snippet(enabled="False"),
    BARE: "",
    ELSEWHERE: snippet(),
    STATIC: snippet(STATIC_SLOTS),
}
SPEC = BoxSpec(
    tuple(
        ExecutePoint(f"{name}.example.org", CORES, power_hs06=160.0, config=text)
        for name, text in CONFIGS.items()
    )
)
STEERS: dict[str, Any] = {
    "groups": {"cms": {"pledge_hs06": 950.0}, "alice": {"pledge_hs06": 50.0}},
    "nodes": {"controlled": [STEERED, OFF, BARE, STATIC]},
    "validity_seconds": 600,
}


@pytest.fixture(scope="module")
def pool(open_box: OpenBox) -> Iterator[Box]:
    """All cores are held by one group, while large jobs of another wait."""
    with open_box(SPEC) as box:
        box.submit(jobs("alice", 1, CORES * len(CONFIGS), 3600))
        cores = CORES * len(CONFIGS)
        box.wait_until(lambda: len(box.jobs("JobStatus == 2")) == cores, "all cores are held")
        box.submit(jobs("cms", 8, 3, 3600))
        yield box


@pytest.fixture
def sharectl(pool: Box, tmp_path: Any) -> Iterator[Sharectl]:
    file = pool.shared_directory / "sharectl.txt"
    yield Sharectl(pool, tmp_path)
    file.unlink(missing_ok=True)


def test_each_node_has_its_row(pool: Box, sharectl: Sharectl) -> None:
    how = {**STEERS, "publish": [{"file": str(pool.shared_directory / "sharectl.txt")}]}

    def rows(*name: str) -> dict[str, dict[str, Any]]:
        return {row["node"]: row for row in sharectl.json("nodes", *name, **how)["nodes"]}

    pool.wait_until(
        lambda: all(rows()[name]["job_ctl"] for name in (STEERED, OFF, ELSEWHERE)),
        "job_ctl ran everywhere",
    )
    began = int(time.time())
    (target,) = sharectl.json("cycle", **how)["plan"]["targets"]
    pool.wait_until(lambda: rows()[STEERED]["target"] is not None, "the node acts on its target")
    listed = rows()
    steered = listed[STEERED]
    assert steered["target"] == target
    assert began <= steered["since"] <= time.time()
    assert (steered["controlled"], steered["snippet"], steered["reason"]) == (True, True, None)
    assert (steered["version"], steered["job_ctl"]) == (__version__, "ok")
    assert {name: (row["controlled"], row["reason"]) for name, row in listed.items()} == {
        STEERED: (True, None),
        OFF: (True, "switched-off"),
        BARE: (True, "no-snippet"),
        ELSEWHERE: (False, "uncontrolled"),
        STATIC: (True, "no-partitionable-slot"),
    }
    assert [listed[name]["target"] for name in CONFIGS if name != STEERED] == [None] * 4
    assert (listed[BARE]["snippet"], listed[BARE]["version"]) == (False, None)
    assert {*rows(f"{BARE}.example.org")} == {BARE}
    assert "no node 'wn-009'" in sharectl.run("nodes", "wn-009", expect=1, **how).stderr
    text = sharectl.run("nodes", STEERED, **how).stdout
    assert f"alice>cms cap {target['cap_cores']} for 8" in text
