"""Two access points and a node with a consumption policy: one starts jobs on leftovers.

Each has two jobs of a group with a quota of one core.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool.conftest import OpenBox
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


@pytest.fixture(scope="module")
def pool(open_box: OpenBox) -> Iterator[Box]:
    config = rendered_example("cpu-centric")
    spec = BoxSpec(
        (ExecutePoint(f"{NODE}.example.org", 10, power_hs06=None, config=config),),
        access_points=(SPLITTING, WHOLE),
        central_config="GROUP_ACCEPT_SURPLUS = False\n",
        groups={"split": 1, "kept": 1},
    )
    with open_box(spec) as box:
        forbid_leftovers(box)
        yield box


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
    box.write_config(SPLITTING, "CLAIM_PARTITIONABLE_LEFTOVERS = False\n")
    box.reconfig(SPLITTING)
    box.wait_until(lambda: not of_pool(sharectl), "no access point uses leftovers")
