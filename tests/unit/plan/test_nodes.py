"""Choice of the nodes under control, and nodes that are kept free of targets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Optional

import pytest

from sharectl.cycle.record import record_of, snapshot_of
from sharectl.model import Node, PlanLimits, PoolConfig, Standing, Target
from sharectl.plan.nodes import (
    DEAF,
    HOST_NAME,
    MOST_CORES,
    Controlled,
    ControlledConstraint,
    ControlledHosts,
    ControlledShare,
    NodesConfig,
    controlled_machines,
)
from sharectl.plan.plan import PlanConfig, State, decide
from sharectl.plan.settings import STRATEGIES
from sharectl.snapshot.pool import CondorPool, machines_of, nodes_of
from tests.fakes import NOW, running, snapshot


@pytest.mark.parametrize(
    ("pattern", "machine", "selected"),
    [
        ("*", "wn-1.example.org", True),
        ("wn-1", "WN-1.Example.org", True),
        ("WN-1.example.org", "wn-1.example.org", True),
        ("wn-1", "wn-11.example.org", False),
        ("wn-[0-3]?", "wn-41.example.org", False),
        ("*.example.org", "wn-1", False),
    ],
)
def test_hosts_match_without_case_by_short_or_full_name(
    pattern: str, machine: str, *, selected: bool
) -> None:
    assert bool(controlled_machines(ControlledHosts((pattern,)), [machine])) is selected


@pytest.mark.parametrize(
    ("controlled", "chosen"),
    [
        # First hex digits of sha256sum: c 2e7d…, b 3e23…, a ca97….
        (ControlledShare(0.34), {"C"}),
        (ControlledShare(0.67), {"C", "b"}),
        (ControlledHosts(("A", "b*")), {"a", "b"}),
        (ControlledHosts(()), set()),
        (ControlledConstraint("x"), {"b"}),
    ],
)
def test_each_way_to_choose(controlled: Controlled, chosen: set[str]) -> None:
    assert controlled_machines(controlled, iter(["a", "b", "C"]), ["b", "gone"]) == chosen


@pytest.mark.parametrize("name", ["wn-1", "wn_1.example.org", "", "-a", "a b", "a\n"])
def test_host_names(name: str) -> None:
    assert (HOST_NAME.fullmatch(name) is not None) is name.startswith("wn")


def slot(machine: str, **attributes: Any) -> dict[str, Any]:
    amounts = {"TotalSlotCpus": 8, "TotalCpus": 8, "TotalSlotMemory": 1000, "t1_wn_hs06": 80.0}
    return {"Machine": machine, **amounts, **attributes}


def nodes(*slots: dict[str, Any], reserved: Optional[Controlled] = None) -> tuple[Node, ...]:
    access = CondorPool(("cms",), NodesConfig(reserved=reserved), PoolConfig())
    machines = (ad["Machine"].lower() for ad in slots)
    named = machines_of(machines, access, {"GPU": frozenset({"wn-2.x"})})
    return nodes_of(slots, access, *named, NOW)


@pytest.mark.parametrize(
    ("reserved", "names"),
    [
        (None, set()),
        (ControlledHosts(("wn-1*",)), {"wn-1"}),
        (ControlledConstraint("GPU"), {"wn-2"}),
    ],
)
def test_a_live_pool_knows_its_reserved_nodes(
    reserved: Optional[Controlled], names: set[str]
) -> None:
    both = nodes(slot("wn-1.x"), slot("WN-2.x"), reserved=reserved)
    assert [(node.name, node.controlled) for node in both] == [("wn-1", True), ("wn-2", True)]
    assert {node.name for node in both if node.reserved} == names


def test_slots_of_one_node_are_one_node() -> None:
    ran = {"MyCurrentTime": NOW, "t1_JobCtlTime": NOW, "t1_JobCtlReason": "ok"}
    acts = {**ran, "t1_TargetActive": True, "t1_TargetSequence": 7, "Draining": True}
    refuses = {**ran, "t1_JobCtlReason": "unsigned"}
    (node,) = nodes(slot("wn-1.x", **refuses), slot("wn-1.x", **acts))
    assert (node.memory_mib, node.cores, node.draining) == (2000, 16, True)
    assert (node.obeyed_sequence, node.refusal) == (7, "unsigned")
    assert (node.hs06_per_core, node.power_assumed) == (10, False)


@pytest.mark.parametrize("reason", ["several-slots", "out-of-range", *DEAF])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_node_on_which_no_target_would_act_is_left_out(strategy: str, reason: str) -> None:
    """It is so again by the record; what is not known there keeps no node out."""
    taken = snapshot([running(name, "alice", 1, 16) for name in ("wn-1", "wn-2")], {("cms", 8): 9})
    config = PlanConfig({"alice": 100.0, "cms": 100.0}, PlanLimits(), 3060, strategy=strategy)
    assert len(decide(config, State(), taken, NOW).plan.targets) == 2
    other: dict[str, Any] = {
        "several-slots": {"several_slots": True},
        "out-of-range": {"cores": MOST_CORES + 1},
    }
    why = other.get(reason, {"deaf": reason})
    deaf = replace(taken, nodes=(replace(taken.nodes[0], **why), taken.nodes[1]))
    decision = decide(config, State(), deaf, NOW)
    assert [target.node for target in decision.plan.targets] == ["wn-2"]
    assert decision.nodes[0].reason == reason
    record = record_of(config, deaf, decision, None, ())
    again = decide(config, State(), snapshot_of(record), NOW)
    assert again.plan.targets == decision.plan.targets
    assert again.nodes[0].reason == reason
    # What stands there goes at once: START ignores it.
    target = Target("wn-1", "alice", 8, "cms", 8)
    state = State(standing=(Standing(target, NOW - 1),), standing_until=NOW + 999)
    assert {t.node for t in decide(config, state, deaf, NOW).plan.targets} == {"wn-2"}
