"""A pool on its way from no snippet to steered nodes, as docs/getting-started.md has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
import yaml

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool.conftest import OpenBox
from tests.pool.deployed import jobs, snippet
from tests.pool.sharectl_command import Sharectl
from tests.pool.test_init import sharectl as command

pytestmark = pytest.mark.semantics
ACCESS = "ap-1.example.org"
NODES = tuple(f"wn-00{number}" for number in range(1, 7))
CORES = 8
STATIC = """\
NUM_SLOTS_TYPE_1 = 8
SLOT_TYPE_1 = cpus=1
SLOT_TYPE_1_PARTITIONABLE = False
"""
SPEC = BoxSpec(
    tuple(
        ExecutePoint(f"{name}.example.org", CORES, config=STATIC if name == "wn-006" else "")
        for name in NODES
    ),
    access_points=(ACCESS,),
)
OFF = "$(LOCAL_DIR)/../../shared/disabled"


@pytest.fixture
def pool(open_box: OpenBox) -> Iterator[Box]:
    """A pool without the snippet, full of single-core jobs while others wait."""
    with open_box(SPEC) as box:
        box.directory.chmod(0o755)
        box.submit(jobs("atlas", 1, CORES * len(NODES), 3600), ACCESS)
        box.wait_until(
            lambda: len(box.jobs("JobStatus == 2")) == CORES * len(NODES), "all cores are held"
        )
        box.submit(jobs("cms", 8, 20, 3600), ACCESS)
        yield box


def install(box: Box, names: Iterable[str], **knobs: object) -> None:
    """Give nodes the snippet, and wait until the collector knows it."""
    hosts = [f"{name}.example.org" for name in names]
    for host in hosts:
        box.write_config(host, snippet(**knobs))
        box.reconfig(host)

    def seen() -> bool:
        condition = "t1_JobCtlReason =!= undefined && t1_Disabled =!= undefined"
        wanted = f'{condition} && SlotType =!= "Dynamic"'
        out = box.run(["condor_status", "-constraint", wanted, "-af", "Machine"]).stdout
        return {*hosts} <= {*out.split()}

    box.wait_until(seen, f"job_ctl ran on {hosts}")


def stage(sharectl: Sharectl, **configuration: Any) -> dict[str, Any]:
    """Cycle of a stage, after which the pool is in order for both who watch it."""
    cycle = sharectl.json("cycle", **configuration)
    status = sharectl.json("status", **configuration)
    assert status["problems"] == []
    states = sharectl.json("check", "pool", **configuration)["states"]
    assert "fail" not in states.values(), states
    judged = ("start", "fresh", "nodes", "cron")
    assert [states[name] for name in judged] == ["ok"] * len(judged)
    return cycle


def targets(cycle: dict[str, Any]) -> set[str]:
    return {target["node"] for target in cycle["plan"]["targets"]}


def reason(sharectl: Sharectl, name: str, **configuration: Any) -> str:
    code: str = sharectl.json("explain", "node", name, "--live", **configuration)["reason"]["code"]
    return code


def test_each_stage_is_in_order_and_targets_go_where_they_act(pool: Box) -> None:
    sharectl = Sharectl(pool, pool.shared_directory)
    first = yaml.safe_load(command(pool, "init").stdout)
    assert first["nodes"] == {"controlled": "*"}, "a pool of few nodes"
    observe = {"mode": "observe", "nodes": first["nodes"]}

    rehearsed = stage(sharectl, **observe)
    assert rehearsed["planned_targets"] > 0, "it shows what all nodes would do"
    assert reason(sharectl, "wn-006", **observe) == "no-partitionable-slot"

    install(pool, NODES[:3])
    assert stage(sharectl, **observe)["planned_targets"] in (1, 2, 3)

    steer = {"nodes": first["nodes"]}
    steered = stage(sharectl, **steer)
    assert targets(steered)
    assert targets(steered) <= {*NODES[:3]}
    assert reason(sharectl, "wn-004", **steer) == "no-snippet"

    install(pool, ["wn-004"], enabled="False")
    (pool.shared_directory / "disabled").touch()
    install(pool, ["wn-005"], disabled_file=OFF, disabled_period_seconds=2)
    install(pool, ["wn-006"])
    assert targets(stage(sharectl, **steer)) <= {*NODES[:3]}
    codes = [reason(sharectl, name, **steer) for name in NODES[3:]]
    assert codes == ["switched-off", "switched-off", "no-partitionable-slot"]
    assert sharectl.json("status", **steer)["nodes"]["controlled"] == 4

    share = {"nodes": {"controlled": "5%"}}
    some = stage(sharectl, **share)
    assert some["nodes"]["controlled"] == 1
    chosen = controlled(sharectl, **share)
    (node,) = chosen
    if node in NODES[:3]:
        assert targets(some) == chosen
    half = {**share, "nodes": {"controlled": "50%"}}
    before = controlled(sharectl, **half)
    assert len(before) == 2, "of the four that have the snippet and are not off for good"
    assert chosen < before
    install(pool, [node], job_ctl_stale_seconds=4, job_ctl_period_seconds=600)
    pool.wait_until(
        lambda: reason(sharectl, node, **half) == "stale", "job_ctl is late on a chosen node"
    )
    assert controlled(sharectl, **half) == before, "the choice does not shift"
    (other,) = before - chosen
    host = f"{other}.example.org"
    pool.write_config(host, snippet("START = True"))
    pool.reconfig(host)
    pool.wait_until(
        lambda: reason(sharectl, other, **half) == "no-snippet", "START lost the clauses"
    )


def controlled(sharectl: Sharectl, **configuration: Any) -> set[str]:
    nodes = sharectl.json("snapshot", **configuration)["nodes"]
    return {node["name"] for node in nodes if node["controlled"]}
