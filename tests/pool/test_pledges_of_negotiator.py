"""The negotiator's quotas as pledges: as configured, and as its accountant has them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Callable

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool.sharectl_command import Sharectl
from tests.pool.trouble import hung

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
DUMP = ("-dump", "-expand", "GROUP_")
HS06 = {"cms": 100.0, "alice": 150.0, "alice.prod": 112.5, "alice.user": 37.5}


@pytest.fixture(scope="module")
def pool(open_box: Callable[[BoxSpec], AbstractContextManager[Box]]) -> Iterator[Box]:
    with open_box(SPEC) as box:
        yield box


@pytest.fixture
def sharectl(pool: Box, tmp_path: Path) -> Sharectl:
    return Sharectl(pool, tmp_path, imported=True)


def test_pledges_are_the_quotas_that_the_negotiator_has(sharectl: Sharectl) -> None:
    told = sharectl.json("pledges", **FROM_NEGOTIATOR)
    assert {row["group"]: pytest.approx(row["hs06"]) for row in told["pledges"]} == HS06
    assert {row["group"]: row["surplus"] for row in told["pledges"]}["alice"] == "byquota"
    assert {row["group"]: row["surplus"] for row in told["pledges"]}["cms"] == "no"
    assert told["warnings"] == []
    assert told["notes"] == [
        (
            "the negotiator has groups that are not listed under groups, and so are not steered: "
            "surprise"
        )
    ]


def test_a_cycle_goes_by_them_and_says_how_they_were_had(sharectl: Sharectl) -> None:
    done = sharectl.json("cycle", **FROM_NEGOTIATOR)
    assert done["complete"]
    pledges = {row["group"]: row["pledge_hs06"] for row in done["errors"]}
    assert pledges["cms"] == pytest.approx(HS06["cms"])
    assert pledges["alice"] == pytest.approx(HS06["alice"])
    assert "surprise" not in pledges


def test_they_are_what_its_accountant_says(pool: Box, sharectl: Sharectl) -> None:
    """EffectiveQuota leaves out subgroups: 4.5 of alice.prod, 1.5 of alice.user, 0 of alice."""
    ads = ["condor_status", "-any", "-constraint", "IsAccountingGroup && EffectiveQuota > 0"]

    def quotas() -> dict[str, float]:
        rows = pool.run([*ads, "-af", "Name", "EffectiveQuota"]).stdout.splitlines()
        return {
            name: float(quota) for name, quota in (row.split() for row in rows) if name != "<none>"
        }

    pool.wait_until(
        lambda: "alice.prod" in quotas(), 60, "a negotiation cycle has worked out the quotas"
    )
    told = {
        row["group"]: row["hs06"] / 25
        for row in sharectl.json("pledges", **FROM_NEGOTIATOR)["pledges"]
    }
    found = quotas()
    assert found["cms"] == pytest.approx(told["cms"])
    assert found["alice.prod"] == pytest.approx(told["alice.prod"])
    assert found["alice.user"] == pytest.approx(told["alice.user"])


def test_a_group_that_it_does_not_know_stops_the_cycle_before_anything_changes(
    sharectl: Sharectl,
) -> None:
    more: dict[str, Any] = {**FROM_NEGOTIATOR, "groups": {**FROM_NEGOTIATOR["groups"], "lhcb": {}}}
    done = sharectl.run("cycle", expect=75, **more)
    assert "pledges: groups.lhcb: GROUP_NAMES of the negotiator has no lhcb" in done.stderr
    assert not sharectl.targets.exists()
    written: dict[str, Any] = {
        **FROM_NEGOTIATOR,
        "groups": {**FROM_NEGOTIATOR["groups"], "lhcb": {"pledge_hs06": 10}},
    }
    assert sharectl.json("cycle", **written)["complete"]


def test_a_dump_of_its_knobs_says_the_same(pool: Box, sharectl: Sharectl) -> None:
    dump = sharectl.folder / "knobs"
    dump.write_text(pool.run(["condor_config_val", *DUMP], host=SPEC.central_point).stdout)
    offline = {
        "from": "negotiator",
        "negotiator": {"file": str(dump), "pool_cores": 16, "weight_hs06": 25},
    }
    told = sharectl.json("pledges", **{**FROM_NEGOTIATOR, "pledges": offline})
    assert {row["group"]: pytest.approx(row["hs06"]) for row in told["pledges"]} == HS06


def test_while_it_negotiates_what_it_said_before_is_used(
    pool: Box, sharectl: Sharectl, tmp_path_factory: pytest.TempPathFactory
) -> None:
    impatient: dict[str, Any] = {
        **FROM_NEGOTIATOR,
        "pledges": {"from": "negotiator", "negotiator": {"deadline_seconds": 3}},
    }
    sharectl.run("cycle", **FROM_NEGOTIATOR)
    with hung(pool, SPEC.central_point, "NEGOTIATOR"):
        done = sharectl.json("cycle", **impatient)
        fresh = Sharectl(pool, tmp_path_factory.mktemp("fresh"))
        lost = fresh.run("cycle", expect=75, **impatient)
    assert done["complete"]
    assert {row["group"]: row["pledge_hs06"] for row in done["errors"]}["alice"] == pytest.approx(
        HS06["alice"]
    )
    assert (
        "negotiator: no answer within 3 s; what it said 0.0 hours ago is in use" in done["warnings"]
    )
    assert (
        "negotiator: no answer within 3 s; there is no copy of what it said before" in lost.stderr
    )
    assert not fresh.targets.exists()


def test_another_quota_is_another_pledge(pool: Box, sharectl: Sharectl) -> None:
    def told() -> dict[str, float]:
        rows = sharectl.json("pledges", **FROM_NEGOTIATOR)["pledges"]
        return {row["group"]: row["hs06"] for row in rows}

    pool.write_config(SPEC.central_point, "GROUP_QUOTA_cms = 8\n")
    pool.reconfig(SPEC.central_point)
    pool.wait_until(
        lambda: told()["cms"] == pytest.approx(200), 30, "the negotiator has read its new quota"
    )
    assert told()["alice"] == pytest.approx(100)


def test_without_its_negotiator_there_are_no_pledges(sharectl: Sharectl) -> None:
    section = {"from": "negotiator", "negotiator": {"name": "nobody", "deadline_seconds": 10}}
    done = sharectl.run("cycle", expect=75, **{**FROM_NEGOTIATOR, "pledges": section})
    assert (
        "pledges: negotiator: PoolUnavailableError: the collector knows no negotiator nobody"
        in done.stderr
    )
    assert not sharectl.targets.exists()
