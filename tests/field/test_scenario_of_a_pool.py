"""`simulate --from-config` on a pool: its quotas, intervals and START, and notes on the rest.

A negotiator with quotas of 0.5 and 0.25 without surplus, START that reads an attribute of the
nodes, and beside them a node with static slots.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from poolbox import BoxSpec, ExecutePoint
from tests.pool.deployed import jobs, on, snippet, still
from tests.pool.sharectl_command import Sharectl
from tests.pool.test_init import sharectl as command

pytestmark = [pytest.mark.pool, pytest.mark.semantics]
ACCESS = "ap-1.example.org"
SITE = """\
NODE_IS_HEALTHY = True
STARTD_ATTRS = $(STARTD_ATTRS) NODE_IS_HEALTHY
START = (NODE_IS_HEALTHY =?= True)
"""
STATIC = "SLOT_TYPE_1 = cpus=4\nSLOT_TYPE_1_PARTITIONABLE = False\nNUM_SLOTS_TYPE_1 = 2\n"
SPEC = BoxSpec(
    (
        ExecutePoint("wn-001.example.org", 8, power_hs06=80.0, config=SITE + snippet()),
        ExecutePoint("wn-002.example.org", 8, power_hs06=80.0, config=SITE + snippet()),
        ExecutePoint("wn-003.example.org", 8, power_hs06=80.0, config=STATIC),
    ),
    access_points=(ACCESS,),
    groups={"cms": 0.5, "atlas": 0.25},
)


def test_the_pool_tells_what_it_can_and_notes_the_rest(sharectl: Sharectl, tmp_path: Path) -> None:
    box = sharectl.box
    box.submit(jobs("cms", 1, 4, 600, on("wn-001.example.org")), ACCESS)
    still(box, 4)
    box.submit(jobs("atlas", 8, 4, 600), ACCESS)
    sharectl.run("cycle")
    short = ("--strategies", "nothing", "--days", "0.05", "--set", "warmup_hours=0.1")
    for more in ((), ("--ledger",)):
        (config,) = tmp_path.glob("sharectl-*.yaml")
        shown = command(box, "simulate", "--from-config", str(config), *more, "--show").stdout
        scenario = yaml.safe_load(shown)
        negotiator = scenario["negotiator"]
        assert (negotiator["quotas"], set(negotiator["group_quotas"])) == (
            "static",
            {"cms", "atlas"},
        )
        assert negotiator["group_quotas"]["cms"] == pytest.approx(
            2 * negotiator["group_quotas"]["atlas"]
        )
        assert "NODE_IS_HEALTHY" in scenario["start"]["site"]
        assert [group["attributes"] for group in scenario["nodes"]] == [
            {"NODE_IS_HEALTHY": True}
        ] * len(scenario["nodes"])
        done = command(box, "simulate", "--from-config", str(config), *more, *short, "--json")
        ran = json.loads(done.stdout)
        notes = " ".join(ran["notes"])
        assert "from the pool's negotiator: quotas of 2 groups" in notes
        assert "NODE_IS_HEALTHY" in notes
        assert "run times of atlas, cms are assumed" in notes
        assert "wn-003" in notes
        assert ran["strategies"][0]["groups"]["cms"]
