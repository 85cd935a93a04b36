"""Two access points and a node with a consumption policy: one starts jobs on leftovers.

Each has two jobs of a group with a quota of one core.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from poolbox import BoxSpec, ExecutePoint
from tests.pool import deployed
from tests.pool.consumption_pools import (
    SPLITTING,
    WHOLE,
    Jobs,
    forbid_leftovers,
    later_cycles,
    rendered_example,
    running,
    submitted_together,
)
from tests.pool.sharectl_command import Sharectl, consumption_report

pytestmark = [pytest.mark.pool, pytest.mark.semantics]
NODE = "policy"
SPEC = BoxSpec(
    (ExecutePoint(f"{NODE}.example.org", 10, config=rendered_example("cpu-centric")),),
    access_points=(SPLITTING, WHOLE),
    central_config="GROUP_ACCEPT_SURPLUS = False\n",
    groups={"split": 1, "kept": 1},
)
prepare = forbid_leftovers


def of_pool(sharectl: Sharectl) -> list[dict[str, Any]]:
    out = sharectl.run("check", "pool", "--json", expect=None).stdout
    return [row for row in json.loads(out)["findings"] if row["id"] == "leftovers"]


def test_the_one_that_passes_quotas_is_named_where_an_admin_looks(sharectl: Sharectl) -> None:
    box = sharectl.box
    wanted = {SPLITTING: [Jobs(NODE, 2, group="split")], WHOLE: [Jobs(NODE, 2, group="kept")]}
    with submitted_together(box, wanted):
        pass
    box.wait_until(lambda: running(box, "True", SPLITTING) == 2, "one job more than the quota")
    later_cycles(box, 2)
    assert running(box, "True", WHOLE) == 1
    (finding,) = of_pool(sharectl)
    assert finding["place"] == f"schedd {SPLITTING}"
    assert "CLAIM_PARTITIONABLE_LEFTOVERS = False" in finding["remedy"]
    for access_point, ids in ((SPLITTING, {"leftovers"}), (WHOLE, set())):
        found = consumption_report(box, sharectl.folder, access_point)["findings"]
        assert {row["id"] for row in found} == ids
    deployed.configure(box, SPLITTING, "CLAIM_PARTITIONABLE_LEFTOVERS = False\n")
    box.wait_until(lambda: not of_pool(sharectl), "no access point uses leftovers")
