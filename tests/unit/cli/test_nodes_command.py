"""``sharectl nodes``: rows by the ads of a collector, and the verb where none answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Optional

import pytest

from sharectl.cli.pool import named, nodes_content
from sharectl.errors import AbsentError
from sharectl.model import PoolConfig, Standing, Target
from sharectl.plan.nodes import ControlledHosts, NodesConfig
from sharectl.report import as_json
from sharectl.snapshot.pool import CondorPool, NodeRow, list_nodes
from tests.fakes import NOW
from tests.schemas import problems
from tests.unit.cli.conftest import Run
from tests.unit.snapshot.test_nodes_in_control import (
    DRAINING,
    NEVER_RAN,
    OFF,
    SNIPPET,
    FakeCollector,
    slot,
)

TARGET: Mapping[str, Any] = {
    **SNIPPET,
    "t1_JobCtlReason": "ok",
    "t1_SharectlVersion": "0.1.0",
    "t1_TargetActive": True,
    "t1_TargetGroups": ["alice", "cms"],
    "t1_Targetcores": [56, 8],
    "t1_TargetUntil": NOW + 600,
}
STANDS = Target("wn-1", "alice", 56, "cms", 8)
CONFIG = NodesConfig(ControlledHosts(("wn-*", "kept")), ControlledHosts(("kept",)))


def rows(*ads: Mapping[str, Any], config: NodesConfig = CONFIG) -> dict[str, NodeRow]:
    access = CondorPool(("cms",), config, PoolConfig())
    listed = list_nodes(FakeCollector(ads), access, NOW)
    assert [row.node for row in listed] == sorted(row.node for row in listed)
    return {row.node: row for row in listed}


def test_a_node_that_acts_has_its_target_and_no_reason() -> None:
    row = rows(slot("wn-1", TARGET))["wn-1"]
    assert (row.machine, row.controlled, row.reserved, row.snippet) == ("wn-1.x", True, False, True)
    assert (row.version, row.job_ctl, row.target, row.reason) == ("0.1.0", "ok", STANDS, None)


@pytest.mark.parametrize(
    ("name", "attributes", "reason"),
    [
        ("wn-1", SNIPPET, None),
        ("wn-1", OFF, "switched-off"),
        ("wn-1", NEVER_RAN, "never-ran"),
        ("wn-1", DRAINING, "draining"),
        ("wn-1", {**SNIPPET, "t1_JobCtlReason": "no-key"}, "no-key"),
        ("wn-1", {**SNIPPET, "t1_JobCtlReason": "\x1b[31m"}, "unknown-code"),
        ("kept", SNIPPET, "reserved"),
        ("other", SNIPPET, "uncontrolled"),
        ("other", {}, "uncontrolled"),
    ],
)
def test_a_node_says_why_it_gets_no_target(
    name: str, attributes: Mapping[str, Any], reason: Optional[str]
) -> None:
    row = rows(slot(name, attributes), slot("wn-2", SNIPPET))[name]
    assert row.reason == reason
    assert (row.target, row.controlled) == (None, name != "other")
    (data,) = nodes_content([row], (), NOW)["nodes"]
    assert bool(data["says"]) is (reason is not None)


@pytest.mark.parametrize(
    "odd",
    [
        {"t1_TargetGroups": "alice"},
        {"t1_TargetGroups": [1], "t1_Targetcores": ["x", None]},
        {"t1_Targetcores": [], "t1_SharectlVersion": "\x1b[31m"},
    ],
)
def test_any_ad_has_a_row_of_the_schema(odd: Mapping[str, Any]) -> None:
    listed = rows(slot("wn-1", {**TARGET, **odd})).values()
    printed = json.loads(as_json.dumps("nodes", nodes_content(listed, (), NOW)))
    assert problems(printed) == []
    assert printed["nodes"][0]["target"]["node"] == "wn-1"


def test_since_is_of_the_published_target_and_unknown_for_another() -> None:
    listed = [*rows(slot("wn-1", TARGET), slot("wn-2", TARGET), slot("bare", {})).values()]
    stood = Standing(STANDS, NOW - 60), Standing(Target("wn-2", "alice", 0, "cms", 8), NOW - 60)
    content = nodes_content(listed, stood, NOW)
    assert [node["since"] for node in content["nodes"]] == [None, NOW - 60, None]


def test_one_node_is_found_by_its_short_or_full_name_and_another_is_told_neighbours() -> None:
    listed = [*rows(slot("wn-1", SNIPPET), slot("wn-2", SNIPPET)).values()]
    for name in ("wn-1", "WN-1.x"):
        assert [row.node for row in named(listed, name)] == ["wn-1"]
    with pytest.raises(AbsentError, match="did you mean wn-1"):
        named(listed, "vn-1")


def test_a_collector_that_does_not_answer_is_75(run: Run) -> None:
    for words in (("nodes",), ("nodes", "wn-1"), ("nodes", "--json")):
        code, out, err = run(*words)
        assert (code, out, "127.0.0.1:1" in err) == (75, "", True)
