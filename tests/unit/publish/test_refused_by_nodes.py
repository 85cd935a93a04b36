"""Nothing leaves for the nodes that they would refuse, by any transport."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import target
from sharectl.errors import PublishError
from sharectl.model import CollectorWay, HttpsWay, Plan, PlanLimits, Target
from sharectl.plan.nodes import MOST_CORES
from sharectl.plan.plan import PlanConfig, State, decide
from sharectl.publish.collector import CollectorPublisher
from sharectl.publish.https import HttpsPublisher
from sharectl.publish.text import FilePublisher, Seal, render
from tests.fakes import NOW, running, snapshot

TARGET = Target("wn-1", "alice", 8, "cms", 8)
PLAN = Plan(NOW, NOW, NOW + 3060, ("alice", "cms"), (TARGET,), "targets")


def of(**changes: Any) -> dict[str, Any]:
    return {"targets": (TARGET, replace(TARGET, node="wn-2", **changes))}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        (of(cap_cores=10**9), "malformed"),
        (of(helped="lhcb"), "unknown-group"),
        ({"targets": (replace(TARGET, node="wn-1\n# targets: 9"),)}, "malformed"),
        ({"groups": ("alice", "cms", "x" * 65)}, "malformed"),
        ({"sequence": NOW + 7200}, "future"),
        ({"valid_until": NOW}, "expired"),
    ],
)
def test_a_plan_that_nodes_refuse_leaves_by_no_transport(
    tmp_path: Path, changes: dict[str, Any], code: str
) -> None:
    """`unit/node/test_target.py` has all that nodes refuse."""
    plan, file = replace(PLAN, **changes), tmp_path / "sharectl.txt"
    for way in (
        FilePublisher(file, Seal("p")),
        HttpsPublisher(HttpsWay(file, "https://127.0.0.1:1/sharectl.txt"), Seal("p")),
        CollectorPublisher(CollectorWay(), "127.0.0.1:1", "p"),
    ):
        with pytest.raises(PublishError) as raised:
            way.publish(plan)
        assert f"nodes would refuse it ({code})" in str(raised.value)
    assert not file.exists()


def test_a_node_has_one_target(tmp_path: Path) -> None:
    publisher = FilePublisher(tmp_path / "sharectl.txt", Seal("p"))
    publisher.publish(PLAN)
    twice = replace(PLAN, targets=(TARGET, replace(TARGET, node="WN-1")))
    with pytest.raises(PublishError, match="two targets"):
        publisher.publish(twice)


def test_more_targets_than_nodes_read_are_not_published(tmp_path: Path) -> None:
    many = replace(PLAN, targets=tuple(replace(TARGET, node=f"wn-{n}") for n in range(100_000)))
    with pytest.raises(PublishError, match="100000 targets make"):
        FilePublisher(tmp_path / "sharectl.txt").publish(many)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("strategy", ["many", "pair"])
def test_a_node_that_lies_about_its_cores_keeps_no_other_from_its_target(strategy: str) -> None:
    """Not by the cores of its slots, nor by those of its jobs, even of a target that stands."""
    for lie in (MOST_CORES + 9, 2**53):
        held = [running(name, "alice", 1, 16) for name in ("wn-1", "wn-2")]
        taken = snapshot([*held, running("wn-3", "alice", lie)], {("cms", 8): 9})
        nodes = [replace(node, cores=lie) if node.name == "wn-2" else node for node in taken.nodes]
        config = PlanConfig({"alice": 100.0, "cms": 100.0}, PlanLimits(), 3060, strategy=strategy)
        decision = decide(config, State(), replace(taken, nodes=tuple(nodes)), NOW)
        reasons = {node.node: node.reason for node in decision.nodes}
        assert (reasons["wn-2"], reasons["wn-3"]) == ("out-of-range", "out-of-range")
        content = render(decision.plan).encode()
        *_, orders = target.parse(content, 0, {"--pool": ""}, set(), NOW)
        assert [node for node, _ in orders] == ["wn-1"]
