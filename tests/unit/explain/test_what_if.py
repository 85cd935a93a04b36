"""Changes that would change a decision: each has the effect that it names."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from sharectl.explain import what_if
from sharectl.explain.codes import CHANGES
from sharectl.explain.what_if import Case, Outcome
from sharectl.model import PlanLimits, Snapshot
from sharectl.plan.plan import PlanConfig, State
from tests.fakes import NOW, running, snapshot

PLEDGES = {"alice": 100.0, "cms": 100.0}
TWO_NODES = [
    running("wn-1", "alice", 1, 64),
    running("wn-2", "alice", 1, 32),
    running("wn-2", "cms", 1, 16),
]
THREE_NODES = [*(running(f"wn-{n}", "alice", 1, 32) for n in (1, 2, 3))]
THREE_NODES.append(TWO_NODES[-1]._replace(node="wn-3"))
WAIT = {("cms", 8): 9}
THREE = snapshot(THREE_NODES, WAIT)


def case(taken: Snapshot, strategy: str = "pair", **limits: Any) -> Case:
    config = PlanConfig(PLEDGES, PlanLimits(**limits), 3060, strategy=strategy)
    return Case(config, State(), taken, NOW)


def changes(of: Case, subject: str) -> list[tuple[Any, ...]]:
    """Changes for a group, the node wn-1, or the ``pool``."""
    nodes: tuple[str, ...] = ()
    if subject == "pool":
        outcome: Outcome = what_if.targets_in_all
        nodes = tuple(node.name for node in of.snapshot.nodes)
    elif subject == "wn-1":
        outcome, nodes = what_if.under_target(subject), (subject,)
    else:
        outcome = what_if.role(subject)
    return list(what_if.flips(of, of.decided(), outcome, nodes))


@pytest.mark.parametrize("strategy", ["pair", "many"])
@pytest.mark.parametrize(
    ("limits", "change"),
    [
        ({"max_nodes": 1}, ("max-nodes", 1)),
        ({"max_changed_nodes": 2}, ("max-changed-nodes", 2)),
        ({"max_target_ratio": 0.4}, ("max-target-share", 0.4)),
        ({"deadband_hs06": 2000.0}, ("deadband", 2000.0)),
    ],
)
def test_a_limit_is_lifted(strategy: str, limits: Any, change: tuple[str, float]) -> None:
    of = case(THREE, strategy, **limits)
    assert changes(of, "pool") == [(*change, "3 targets")]
    assert changes(of, "alice") == [(*change, "gives on 3 nodes")]


def test_a_node_gets_a_target_by_a_narrower_deadband() -> None:
    wide = case(snapshot(TWO_NODES, WAIT), deadband_hs06=2000.0)
    assert changes(wide, "wn-1") == [("deadband", 2000.0, "a target")]


def test_what_bounds_nothing_would_change_nothing() -> None:
    assert changes(case(THREE, max_nodes=3, deadband_hs06=0.0), "pool") == []


def test_nodes_come_under_control() -> None:
    out = [replace(node, controlled=False) for node in THREE.nodes]
    of = case(replace(THREE, nodes=tuple(out)))
    assert changes(of, "pool") == [("controlled", None, "3 targets")]
    assert changes(of, "wn-1") == [("controlled", None, "a target")]


def test_every_limit_has_its_code() -> None:
    bounds = {field.name for field in fields(PlanLimits)} - {"multicore_cores"}
    assert {name for name, _ in what_if.LIFTED.values()} == bounds
    assert {*what_if.LIFTED, "controlled"} == set(CHANGES)
