"""The negotiator's quotas as pledges: as configured, and as its accountant has them."""

from __future__ import annotations

from typing import Any

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool.deployed import shown
from tests.pool.sharectl_command import Sharectl

# 16 cores with 400 HS06: 25 a core. alice has half of what the 4 cores of cms leave, and prod most
# of that.
SPEC = BoxSpec(
    execute_points=(
        ExecutePoint("wn-001.example.org", cores=8, memory_mib=4096, power_hs06=240.0),
        ExecutePoint("wn-002.example.org", cores=8, memory_mib=4096, power_hs06=160.0),
    ),
    access_points=("ap-1.example.org",),
    central_config="""
GROUP_NAMES = cms, alice, alice.prod, alice.user, surprise
GROUP_QUOTA_cms = 4
GROUP_QUOTA_DYNAMIC_alice = $(SHARE_OF_ALICE)
SHARE_OF_ALICE = 0.5
GROUP_QUOTA_DYNAMIC_alice.prod = 0.75
GROUP_QUOTA_DYNAMIC_alice.user = 0.25
GROUP_QUOTA_DYNAMIC_surprise = 0.1
GROUP_ACCEPT_SURPLUS_alice = True
""",
)
FROM_NEGOTIATOR: dict[str, Any] = {
    "groups": {"cms": {}, "alice": {"groups": {"prod": {}, "user": {"share": 0.25}}}},
    "pledges": {"from": "negotiator"},
}
HS06 = {"cms": 100.0, "alice": 150.0, "alice.prod": 112.5, "alice.user": 37.5}


def test_pledges_are_the_quotas_that_the_negotiator_has(pool: Box, sharectl: Sharectl) -> None:
    report = sharectl.json("pledges", **FROM_NEGOTIATOR)
    assert {row["group"]: row["hs06"] for row in report["pledges"]} == pytest.approx(HS06)
    surplus = {row["group"]: row["surplus"] for row in report["pledges"]}
    assert (surplus["alice"], surplus["cms"]) == ("byquota", "no")
    (note,) = report["notes"]
    assert note.endswith("are not listed under groups, and so are not steered: surprise")
    assert report["warnings"] == []
    done = sharectl.json("cycle", **FROM_NEGOTIATOR)
    assert done["complete"]
    pledges = {row["group"]: row["pledge_hs06"] for row in done["errors"]}
    assert [pledges["cms"], pledges["alice"]] == pytest.approx([HS06["cms"], HS06["alice"]])
    assert "surprise" not in pledges

    # EffectiveQuota of a group leaves out the groups within it: 4.5 of alice.prod, 0 of alice.
    ads = ("-any", "-constraint", "IsAccountingGroup && EffectiveQuota > 0")

    def quotas() -> dict[str, float]:
        rows = shown(pool, *ads, "-af", "Name", "EffectiveQuota")
        return {name: float(quota) for name, quota in rows if name != "<none>"}

    pool.wait_until(lambda: "alice.prod" in quotas(), "the negotiator has its quotas")
    effective = quotas()
    for group in ("cms", "alice.prod", "alice.user"):
        assert effective[group] == pytest.approx(HS06[group] / 25)
