"""Nodes that can act on targets, by the ads of a collector, and shares of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

import classad2
import htcondor2
import pytest

from sharectl.condor.node_ads import Awaited, look_at_nodes
from sharectl.model import Node, PoolConfig
from sharectl.plan.nodes import ControlledHosts, ControlledShare, NodesConfig
from sharectl.snapshot.pool import CondorPool, read_collector
from tests.fakes import NOW

CLAUSES = "(true) && (MY.t1_GraceAdmits isnt false && MY.t1_TargetAdmits isnt false)"
SNIPPET: Mapping[str, Any] = {
    "Start": classad2.ExprTree(CLAUSES),
    "t1_Enabled": True,
    "t1_JobCtlStaleSeconds": 120,
    "t1_JobCtlReason": "no-line",
    "t1_JobCtlTime": NOW - 10,
}
STATIC = {"PartitionableSlot": False, "SlotType": "Static"}
LATE: Mapping[str, Any] = {**SNIPPET, "t1_JobCtlTime": NOW - 500}
NEVER_RAN = {name: value for name, value in SNIPPET.items() if "JobCtlR" not in name}
OFF, OFF_BY_FILE = {**SNIPPET, "t1_Enabled": False}, {**SNIPPET, "t1_Disabled": True}
BYPASSED = {**SNIPPET, "Start": classad2.ExprTree("true")}
DRAINING = {**SNIPPET, "Start": classad2.ExprTree("false"), "Draining": True}
BACKFILL = {**SNIPPET, "BackfillSlot": True}


ALL, HALF = NodesConfig(), NodesConfig(ControlledShare(0.5))


def slot(name: str, attributes: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    own = {
        "Machine": f"{name}.x",
        "Name": f"slot1@{name}.x",
        "PartitionableSlot": True,
        "SlotType": "Partitionable",
        "MyCurrentTime": NOW,
        "Cpus": 8,
        "TotalCpus": 8,
        "TotalSlotCpus": 8,
        "Start": True,
    }
    return {**own, **attributes, **more}


@dataclass
class FakeCollector:
    """A collector that has these ads of slots."""

    ads: Sequence[Mapping[str, Any]]

    def query(self, ad_type: Any, constraint: Optional[str], projection: list[str]) -> list[Any]:
        del projection
        ads = self.ads if ad_type == htcondor2.AdType.Slot else ()
        made = [classad2.ClassAd(dict(ad)) for ad in ads]
        return [
            ad for ad in made if not constraint or classad2.ExprTree(constraint).eval(ad) is True
        ]


def nodes(
    *ads: Mapping[str, Any], config: NodesConfig = ALL, observes: bool = False
) -> dict[str, Node]:
    access = CondorPool(("cms",), config, PoolConfig(), observes=observes)
    seen = read_collector(FakeCollector(ads), access, NOW).nodes
    return {node.name: node for node in seen}


def status(*ads: Mapping[str, Any], config: NodesConfig = ALL, **how: bool) -> dict[str, Any]:
    return look_at_nodes(FakeCollector(ads), NOW, Awaited(), config, **{"observes": False, **how})


@pytest.mark.parametrize(
    ("attributes", "deaf"),
    [
        (SNIPPET, None),
        ({}, "no-snippet"),
        (BYPASSED, "no-snippet"),
        (OFF, "switched-off"),
        (OFF_BY_FILE, "switched-off"),
        (LATE, "stale"),
        (NEVER_RAN, "stale"),
        ({**SNIPPET, **STATIC}, "no-partitionable-slot"),
        (DRAINING, None),
    ],
)
def test_a_node_on_which_no_target_would_act(
    attributes: Mapping[str, Any], deaf: Optional[str]
) -> None:
    assert nodes(slot("wn-1", attributes), slot("wn-2", SNIPPET))["wn-1"].deaf == deaf


ABLE = [slot(f"wn-{number}", SNIPPET) for number in range(10)]
BARE = [slot(f"bare-{number}", {}) for number in range(30)]


def controlled(*ads: Mapping[str, Any], config: NodesConfig = HALF, **how: Any) -> set[str]:
    seen = nodes(*ads, config=config, **how)
    return {name for name, node in seen.items() if node.controlled}


def test_a_share_is_of_the_nodes_that_can_act() -> None:
    chosen = controlled(*ABLE)
    assert len(chosen) == 5
    others = (slot("static", {**SNIPPET, **STATIC}), slot("off", OFF), *BARE)
    assert controlled(*ABLE, *others) == chosen
    five_percent = NodesConfig(ControlledShare(0.05))
    assert len(controlled(*ABLE, *others, config=five_percent)) == 1


@pytest.mark.parametrize("attributes", [LATE, NEVER_RAN, OFF_BY_FILE, BYPASSED, DRAINING])
def test_a_node_that_cannot_act_for_a_while_does_not_shift_the_choice(
    attributes: Mapping[str, Any],
) -> None:
    chosen = controlled(*ABLE)
    for number in range(len(ABLE)):
        ads = [*ABLE]
        ads[number] = slot(f"wn-{number}", attributes)
        assert controlled(*ads) == chosen


def test_nodes_without_the_snippet_are_under_control_where_they_are_named_or_all_are() -> None:
    assert len(controlled(*ABLE, *BARE, config=ALL)) == 40
    named = NodesConfig(ControlledHosts(("wn-1", "bare-1")))
    assert controlled(*ABLE, *BARE, config=named) == {"wn-1", "bare-1"}


def test_observing_a_pool_without_the_snippet_rehearses_what_all_nodes_would_do() -> None:
    seen = nodes(*BARE, slot("static", STATIC), config=HALF, observes=True)
    assert sum(node.controlled for node in seen.values()) == 15
    assert {name: node.deaf for name, node in seen.items() if node.deaf} == {
        "static": "no-partitionable-slot"
    }
    seen = nodes(*BARE, ABLE[0], config=HALF, observes=True)
    assert [name for name, node in seen.items() if node.controlled] == ["wn-0"]
    assert {node.deaf for node in nodes(*BARE, config=HALF).values()} == {"no-snippet"}


def test_status_is_of_nodes_under_control() -> None:
    bad = {**SNIPPET, "t1_JobCtlReason": "no-key", "t1_SharectlVersion": "9.0"}
    seen = status(*ABLE, *BARE, slot("off", {**bad, "t1_Enabled": False}))
    assert (seen["slots"], seen["controlled"], seen["refusing"]) == (41, 10, {})
    assert set(seen["versions"]) == {"unknown"}
    assert seen["reasons"] == {"not-published": 30, "no-line": 10, "no-key": 1}
    named = NodesConfig(ControlledHosts(("wn-*", "bare-1", "bad")))
    seen = status(*ABLE, *BARE, slot("bad", bad), config=named)
    assert seen["refusing"] == {"not-published": 1, "no-key": 1}
    seen = status(*ABLE, *BARE, slot("bad", bad), config=named, observes=True)
    assert seen["refusing"] == {"no-key": 1}, "that node has the snippet, and it fails"
    seen = status(*BARE, observes=True)
    assert (seen["controlled"], seen["refusing"]) == (0, {})


def test_what_is_offline_or_there_twice_is_no_node_and_no_power() -> None:
    offline = slot("off", {"Offline": True}, TotalSlotCpus=64)
    twice = slot("wn-1", BACKFILL, Name="slot2@wn-1.x", ChildCpus=[8], ChildAccountingGroup=["a"])
    collector = FakeCollector([ABLE[1], twice, offline])
    seen = read_collector(collector, CondorPool((), HALF, PoolConfig()), NOW)
    (node,) = seen.nodes
    assert (node.name, node.cores, node.several_slots) == ("wn-1", 8, False)
    assert (seen.running, seen.most_cores) == ((), 8)
    assert status(ABLE[1], twice, offline)["slots"] == 1
