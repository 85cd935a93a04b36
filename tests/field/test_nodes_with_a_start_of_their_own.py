"""Nodes that are hot, for multicore jobs alone, or for whole-node jobs alone: each is named so.

wn-001 publishes t1_overheat as `overheat.py` does; wn-002 and wn-003 have the snippets of
config.d/examples. START, `explain node`, `snapshot`, `status` and `check pool` agree on each.
"""

from __future__ import annotations

import json

import pytest

from poolbox import BoxSpec, ExecutePoint
from tests.pool.deployed import CHECKOUT, jobs, snippet, still
from tests.pool.sharectl_command import Sharectl

pytestmark = pytest.mark.pool
ACCESS = "ap-1.example.org"
EXAMPLES = CHECKOUT / "config.d" / "examples"
ONE_SLOT = "SLOT_TYPE_1 = 100%\nSLOT_TYPE_1_PARTITIONABLE = True\nNUM_SLOTS_TYPE_1 = 1\n"
HOT = """\
t1_overheat = time() < 4000000000 && time() > 1000
STARTD_ATTRS = $(STARTD_ATTRS) t1_overheat
"""


def including(name: str) -> str:
    return f"{snippet()}{ONE_SLOT}include : {EXAMPLES}/{name}\n"


SPEC = BoxSpec(
    (
        ExecutePoint("wn-001.example.org", 8, config=snippet() + HOT),
        ExecutePoint("wn-002.example.org", 8, config=including("70-multicore-only.conf")),
        ExecutePoint("wn-003.example.org", 8, config=including("70-whole-node-only.conf")),
    ),
    access_points=(ACCESS,),
)


def test_each_is_named_by_every_command_that_lists_nodes(sharectl: Sharectl) -> None:
    box = sharectl.box
    box.submit(jobs("atlas", 1, 1, 600), ACCESS)
    box.submit(jobs("cms", 2, 4, 600), ACCESS)
    whole = 'requirements = TARGET.PartitionableSlot && TARGET.Machine == "wn-003.example.org"'
    box.submit(jobs("alice", "TARGET.TotalSlotCpus", 1, 600, whole), ACCESS)
    # Four jobs of 2 cores on wn-002 and one of 8 on wn-003; the others find no node.
    still(box, 5)
    ran = box.jobs("JobStatus == 2", ("RemoteHost", "AcctGroup", "CpusProvisioned"))
    assert sorted(
        (str(job["RemoteHost"]).partition("@")[2][:6], job["AcctGroup"], job["CpusProvisioned"])
        for job in ran
    ) == [*[("wn-002", "cms", 2)] * 4, ("wn-003", "alice", 8)]

    nodes = {node["name"]: node for node in sharectl.json("snapshot")["nodes"]}
    assert {name for name, node in nodes.items() if node["hot"]} == {"wn-001"}
    assert {name for name, node in nodes.items() if node["multicore_only"]} == {"wn-002"}
    assert "too hot: no job starts" in sharectl.run("snapshot").stdout
    sharectl.run("cycle")
    explained = {
        name: " ".join(sharectl.run("explain", "node", name).stdout.split()) for name in nodes
    }
    assert [n for n, words in explained.items() if "too hot: no job starts" in words] == ["wn-001"]
    only = "takes only multicore jobs (t1_MulticoreOnly)"
    assert [name for name, words in explained.items() if only in words] == ["wn-002"]
    status = sharectl.run("status", expect=None)
    words = " ".join(status.stdout.split())
    assert "too hot: wn-001" in words
    assert "1 for multicore jobs alone" in words
    found = json.loads(sharectl.run("check", "pool", "--json", expect=None).stdout)["findings"]
    hot = [finding for finding in found if "too hot" in finding["fault"]]
    assert [(finding["place"], finding["level"]) for finding in hot] == [("wn-001", "advice")]
