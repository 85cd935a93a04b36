"""Policies of the claim capacity model where amounts do not divide, or cores are shared.

W, the weight of an empty slot, is the number of claims that the pool gives, and the number that
`render`, `check` and `cost` name. The accountant charges what `cost` says.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from sharectl.consumption.file import example
from tests.pool.consumption_pools import later_cycles, rendered, rows_of, running
from tests.pool.deployed import jobs, on
from tests.pool.own_files import host
from tests.pool.sharectl_command import CHECKOUT, Sharectl, consumption_report

pytestmark = [pytest.mark.pool, pytest.mark.semantics]
ACCESS = "ap-1.example.org"


def quanta(cpus: int, memory: int, disk: int, model: str = "quanta_all") -> str:
    levels = {"cpus": cpus, "memory": memory, "disk": disk}.items()
    assets = ", ".join(f"{name}: {{levels: {number}}}" for name, number in levels)
    return f"startd: {{model: {model}, assets: {{{assets}}}}}"


SHARED = """
startd:
  model: fixed_claims
  claims: 12
  assets: {cpus: {even: true}, memory: {even: true}, disk: {even: true}}
num_cpus: 12
"""
PARTS = """
startd: {model: minimum_charge, assets: {cpus: {charge: 1}, memory: {charge: 8}, disk: {charge: 8}}}
num_cpus: 3 * $(DETECTED_CPUS)
"""
TYPES = """
slot_types:
  1:
    resources: cpus=11, memory=50%, disk=50%
    model: quanta_all
    assets: {cpus: {levels: 4}, memory: {levels: 4}, disk: {levels: 4}}
  2:
    resources: cpus=8, memory=50%, disk=50%
    model: quanta_all
    assets: {cpus: {levels: 3}, memory: {levels: 6}, disk: {levels: 6}}
"""
NODES = {
    # node: its cores, the policy, and claims of each slot
    "of-16": (16, quanta(10, 20, 20), [10]),
    "of-19": (19, quanta(10, 20, 20), [10]),
    "of-disk": (16, quanta(16, 16, 10), [10]),
    "of-any": (16, quanta(10, 10, 10, "quanta_any"), [10]),
    "of-types": (19, TYPES, [4, 3]),
    "shared": (2, SHARED, [12]),
}
SIZES, PARTED, BY_CORES = "sizes", "parted", "by-cores"
OTHERS = {
    SIZES: (16, quanta(10, 20, 20)),
    PARTED: (2, PARTS),
    BY_CORES: (10, example("cpu-centric")),
}
HS06 = 60.0
ACCESS_SNIPPET = (CHECKOUT / "config.d/60-sharectl-access-point.conf").read_text()
POLICIES = {**{node: (cores, policy) for node, (cores, policy, _) in NODES.items()}, **OTHERS}
SPEC = BoxSpec(
    execute_points=tuple(
        ExecutePoint(host(node), cores, 16384, HS06, rendered(policy))
        for node, (cores, policy) in POLICIES.items()
    ),
    access_points=(ACCESS,),
    access_config=f"{ACCESS_SNIPPET}CLAIM_PARTITIONABLE_LEFTOVERS = False\n",
    execute_config="CLAIM_WORKLIFE = 0\n",
)


def of_slots(sharectl: Sharectl, node: str, cores: int = 1) -> list[dict[str, Any]]:
    """Matches of jobs of so many cores with the slots of a node."""
    content = sharectl.json("consumption", "cost", "--request", f"cpus={cores}")
    return [
        match
        for match in content["matches"]
        for name in match["slots"]
        if name.endswith(f"@{host(node)}")
    ]


def weights(box: Box, node: str) -> list[float]:
    rows = rows_of(box, f'Machine == "{host(node)}" && PartitionableSlot', "SlotWeight")
    return [float(weight) for (weight,) in rows]


def submitted(box: Box, node: str, cores: int, count: int) -> int:
    return box.submit(jobs("atlas", cores, count, 600, on(host(node))), ACCESS)


@pytest.mark.parametrize("node", NODES)
def test_a_pool_gives_the_claims_that_all_verbs_name(node: str, sharectl: Sharectl) -> None:
    box, (_, policy, claims) = sharectl.box, NODES[node]
    named = re.findall(r"(\d+) claims at first", rendered(policy))
    assert list(map(int, named)) == claims
    checked = consumption_report(box, sharectl.folder, host(node))
    assert (len(checked["slots"]), checked["findings"]) == (len(claims), [])
    assert weights(box, node) == claims
    matches = of_slots(sharectl, node)
    assert sorted(match["fits"] for match in matches) == sorted(claims)
    assert [match["cost"] for match in matches] == [1] * len(claims)
    of_node = f"ClusterId == {submitted(box, node, 1, sum(claims) + 3)}"
    box.wait_until(lambda: running(box, of_node) == sum(claims), "all claims run")
    box.wait_until(lambda: set(weights(box, node)) == {0}, "no claim is left")
    later_cycles(box, 1)
    assert running(box, of_node) == sum(claims)


def test_quanta_are_counted_whatever_jobs_took_and_gave_back(sharectl: Sharectl) -> None:
    """8 of 16 cores are 5 of 10 quanta, as 5 claims of a core."""
    box = sharectl.box
    large = submitted(box, SIZES, 8, 1)
    box.wait_until(lambda: weights(box, SIZES) == [5], "5 of 10 quanta are left")
    small = submitted(box, SIZES, 1, 20)
    box.wait_until(lambda: weights(box, SIZES) == [0], "no claim is left")
    assert running(box, f"ClusterId == {small}") == 5
    box.run(["condor_rm", str(large)], host=ACCESS)
    box.wait_until(lambda: running(box, f"ClusterId == {small}") == 10, "5 more run")
    box.wait_until(lambda: weights(box, SIZES) == [0], "no claim is left")


def used(box: Box) -> float:
    """WeightedResourcesUsed of the jobs' submitter."""
    query = ["condor_userprio", "-negotiator", "-allusers", "-af", "Name", "WeightedResourcesUsed"]
    rows = map(str.split, box.run(query, check=False).stdout.splitlines())
    used = {name: float(weight) for name, weight in rows if weight != "undefined"}
    return used.get("atlas.bob@example.org", 0.0)


def test_a_claim_costs_what_the_slot_loses_and_the_accountant_charges(sharectl: Sharectl) -> None:
    """With a weight that a dynamic slot has too."""
    box = sharectl.box
    (match,) = of_slots(sharectl, BY_CORES, 3)
    assert (match["cost"], match["fits"]) == (3, 3)
    submitted(box, BY_CORES, 3, 5)
    box.wait_until(lambda: weights(box, BY_CORES) == [10 - 3 * 3], "three jobs run")
    box.wait_until(lambda: used(box) == 3 * 3, "the accountant has charged the costs")
    assert of_slots(sharectl, BY_CORES, 3)[0]["refused"], "the rest waits"


def test_jobs_that_share_cores_use_parts_of_the_power(sharectl: Sharectl) -> None:
    """The power of a core is that of the node by the cores that it advertises."""
    box = sharectl.box
    box.remove_jobs()
    of_node = f'Machine == "{host(PARTED)}" && PartitionableSlot'
    ((text, detected),) = rows_of(box, of_node, "TotalCpus", "DetectedCpus")
    cores = {"shared": 12, PARTED: int(float(text))}
    assert cores[PARTED] == 3 * int(detected)
    (match,) = of_slots(sharectl, PARTED)
    assert match["fits"] == cores[PARTED]
    for node, count in cores.items():
        submitted(box, node, 1, count)

    def full() -> bool:
        return set(weights(box, "shared") + weights(box, PARTED)) == {0}

    box.wait_until(full, "all claims run")
    seen = sharectl.json("snapshot")
    nodes = {node["name"]: node for node in seen["nodes"]}
    for node, count in cores.items():
        assert (nodes[node]["cores"], nodes[node]["hs06_per_core"]) == (count, HS06 / count)
    atlas = seen["groups"]["atlas"]
    assert atlas["single_cores"] == sum(cores.values())
    assert atlas["power_hs06"] == pytest.approx(2 * HS06)
