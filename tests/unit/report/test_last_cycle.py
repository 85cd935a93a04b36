"""The last complete cycle on the page."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from sharectl.model import LimitNote
from sharectl.plan.limits import LIMITS
from sharectl.report.page import last_cycle as as_content
from tests.made_cycles import made

RECORD, _ = made()


def test_nodes_of_equal_cores_and_power_are_a_class() -> None:
    first, second, third, *rest = RECORD.nodes
    nodes = (
        replace(first, cores=128, draining=True, held=()),
        replace(second, hs06_per_core=10.001, controlled=False),
        replace(third, cores=0),
        *rest,
    )
    small, large = as_content(replace(RECORD, nodes=nodes))["node_classes"]
    assert (large["cores"], large["nodes"], large["draining"]) == (128, 1, 1)
    assert (large["all_cores"], large["idle_cores"], large["hs06"]) == (128, 128, 1280)
    assert (small["cores"], small["hs06_per_core"], small["nodes"]) == (64, 10.0, 1 + len(rest))
    assert small["controlled"] == len(rest)


def test_idle_cores_have_one_cause_each() -> None:
    # Two free nodes: one drains, one has a target and drains too.
    target = next(node.target for node in RECORD.nodes if node.target is not None)
    free = [
        replace(node, held=(), cores=64, draining=True, target=None) for node in RECORD.nodes[:2]
    ]
    nodes = (free[0], replace(free[1], target=target))
    record = replace(RECORD, nodes=nodes, idle_cores=140, idle_target_cores=64, idle_grace_cores=4)
    causes = {row["cause"]: row["cores"] for row in as_content(record)["idle_cores"]}
    assert causes == {"target": 64, "grace": 4, "draining": 64, "other": 8}
    unknown = as_content(replace(record, idle_grace_cores=None))["idle_cores"]
    assert unknown == [{"cause": "unknown", "cores": 140}]


def test_decisions_have_limits_and_may_lack_reasons() -> None:
    record = replace(RECORD, limits=(LimitNote("dwell", 3),), group_reasons={})
    content = as_content(record)
    assert content["limits"] == [{"code": "dwell", "says": LIMITS["dwell"], "nodes": 3}]
    assert [(row["reason"], row["says"]) for row in content["groups"]] == [(None, "")] * 2
    kinds = Counter(node.target.kind for node in record.nodes if node.target is not None)
    targets = {(row["helped"], row["request_cores"]): row["nodes"] for row in content["targets"]}
    assert targets == kinds != {}
