"""Two negotiators with constraints share a pool: quotas are shares of a negotiator's slots."""

from __future__ import annotations

from typing import Any

import pytest

from poolbox import BoxSpec, ExecutePoint
from tests.pool.deployed import jobs, run, shown
from tests.pool.sharectl_command import Sharectl, bare

pytestmark = [pytest.mark.pool, pytest.mark.semantics]
SPEC = BoxSpec(
    (
        ExecutePoint("wn-001.example.org", 8, power_hs06=80.0),
        ExecutePoint("wn-002.example.org", 8, power_hs06=160.0),
    ),
    access_points=("ap-1.example.org",),
    central_config="""
GROUP_NAMES = cms, atlas
GROUP_QUOTA_DYNAMIC_cms = 0.5
GROUP_QUOTA_DYNAMIC_atlas = 0.5
NEGOTIATOR_SLOT_CONSTRAINT = regexp("wn-001", Machine)
NEGOTIATOR_B = $(NEGOTIATOR)
NEGOTIATOR_B_ARGS = -local-name NEGOTIATOR_B
NEGOTIATOR_B.NEGOTIATOR_LOG = $(LOG)/NegotiatorLog.b
NEGOTIATOR_B.NEGOTIATOR_ADDRESS_FILE = $(LOG)/.negotiator_address.b
NEGOTIATOR_B.SPOOL = $(LOG)
NEGOTIATOR_B.GROUP_QUOTA_DYNAMIC_cms = 0.25
NEGOTIATOR_B.NEGOTIATOR_SLOT_CONSTRAINT = regexp("wn-002", Machine)
DAEMON_LIST = $(DAEMON_LIST) NEGOTIATOR_B
""",
)


def test_shares_are_of_the_slots_that_it_sees(sharectl: Sharectl) -> None:
    box = sharectl.box
    first, second = "pool@cm-1.example.org", "NEGOTIATOR_B@cm-1.example.org"
    ads = ("-any", "-constraint", 'IsAccountingGroup && Name == "cms"')

    def quotas() -> dict[str, float]:
        rows = shown(box, *ads, "-af", "NegotiatorName", "EffectiveQuota")
        return {name: float(quota) for name, quota in rows}

    box.submit(jobs("cms", 1, 1, 600), "ap-1.example.org")
    box.wait_until(lambda: quotas() == {first: 4, second: 2}, "both negotiators have quotas")
    run(box, 1)

    def pledges(**access: Any) -> dict[str, Any]:
        section = {"from": "negotiator", "negotiator": access}
        report = sharectl.json("pledges", groups={"cms": {}, "atlas": {}}, pledges=section)
        row = report["pledges"][0]
        seen: dict[str, Any] = {name: row[name] for name in ("group", "hs06", "place")}
        return {**seen, "warned": "of the pool" in " ".join(report["warnings"])}

    expected = {"group": "cms", "place": "quota 4 of cms in the negotiator", "warned": True}
    assert pledges(name=first) == {**expected, "hs06": 40.0}
    share = {"place": "quota 2 of cms in the negotiator", "hs06": 40.0}
    assert pledges(name=second) == {**expected, **share}

    assert "2 negotiators" in bare("init", **box.client_environment).stdout
