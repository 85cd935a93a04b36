"""Nodes for special jobs: whole nodes, licences, bound cores, and preferred jobs."""

from __future__ import annotations

import os

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool import deployed
from tests.pool.deployed import shown
from tests.pool.slot_practice import (
    ACCESS,
    at,
    configure,
    example,
    places,
    rejected,
    restart,
    slots,
    started,
    submit,
)

pytestmark = pytest.mark.semantics

SECOND = "ap-2.example.org"
WHOLE, PLAIN = "wn-001.example.org", "wn-002.example.org"
LICENCES = 2
WHOLE_NODE = example("70-whole-node.conf", "WHOLE_NODE_CORES = 8", "WHOLE_NODE_MIB = 8192")
SPEC = BoxSpec(
    (
        ExecutePoint(WHOLE, 8, config=WHOLE_NODE),
        ExecutePoint(PLAIN, 8, config=example("70-licences-of-a-node.conf")),
    ),
    access_points=(ACCESS, SECOND),
)
"""A node that is given out twice, and one with licences."""


def test_of_whole_node_jobs_and_others_only_one_kind_runs(box: Box) -> None:
    assert slots(box, WHOLE)["slot1"]["TotalCpus"] == 16, "the node is given out twice"

    def busy() -> frozenset[str]:
        return frozenset(name for name, ad in slots(box, WHOLE).items() if ad["Activity"] == "Busy")

    others = submit(box, 3, at(WHOLE), "hold = True")
    whole = submit(box, 1, at(WHOLE), "hold = True", "+WholeNode = True", cores=8)
    box.run(["condor_release", "-all"], host=ACCESS)
    seen: set[frozenset[str]] = set()

    def settled() -> bool:
        seen.add(busy())
        return bool(places(box, whole) or len(places(box, others)) == 3)

    box.wait_until(settled, "one kind runs")
    first, second = (whole, others) if places(box, whole) else (others, whole)

    def runs_alone(cluster: int) -> bool:
        seen.add(busy())
        # The collector hears of it later than the access point.
        return bool(places(box, cluster)) and (cluster == others or frozenset({"slot2"}) in seen)

    box.wait_until(lambda: runs_alone(first), "it runs alone")
    box.run(["condor_rm", str(first)], host=ACCESS)
    box.wait_until(lambda: runs_alone(second), "then the other")
    assert not [names for names in seen if "slot2" in names and len(names) > 1]
    box.remove_jobs()


def test_licences_of_a_node_are_counted_beside_cores(box: Box) -> None:
    licensed = submit(box, 2 * LICENCES, at(PLAIN), "request_licence = 1")
    others = submit(box, 3, at(PLAIN))
    started(box, licensed, LICENCES)
    started(box, others, 3)
    assert len(places(box, licensed)) == LICENCES
    held = {name: ad["licence"] for name, ad in slots(box, PLAIN).items() if ad["licence"]}
    assert held == {place.partition("@")[0]: 1 for place in places(box, licensed)}


def test_a_job_can_ask_for_all_cores_of_whatever_node_and_a_node_for_such_jobs(box: Box) -> None:
    configure(box, PLAIN, example("70-whole-node-only.conf"), "Start", "TotalSlotCpus")
    small = submit(box, 1, at(PLAIN), cores=7)
    whole = submit(box, 1, f"{at(PLAIN)} && TARGET.PartitionableSlot", cores="TARGET.TotalSlotCpus")
    started(box, whole)
    assert slots(box, PLAIN)["slot1_1"]["Cpus"] == 8
    box.run(["condor_rm", str(whole)], host=ACCESS)
    box.wait_until(lambda: "slot1_1" not in slots(box, PLAIN), "the node is free")
    rejected(box, small)


def test_a_node_for_multicore_jobs_takes_no_others(box: Box) -> None:
    configure(box, PLAIN, example("70-multicore-only.conf"), "t1_MulticoreOnly", "True")
    single = submit(box, 1, at(PLAIN))
    small, large = submit(box, 1, at(PLAIN), cores=2), submit(box, 1, at(PLAIN), cores=4)
    started(box, small)
    started(box, large)
    rejected(box, single)


def test_cores_are_bound_to_jobs(box: Box) -> None:
    configure(box, PLAIN, example("70-cpu-affinity.conf"), "t1_MulticoreOnly", "None")
    bound = [box.shared_directory / f"bound.{number}" for number in (0, 1)]
    looks = "arguments = \"-c 'grep Cpus_allowed_list /proc/self/status; sleep 600'\""
    submit(box, 2, at(PLAIN), looks, f"output = {box.shared_directory}/bound.$(Process)")
    box.wait_until(lambda: all(x.exists() and x.read_text() for x in bound), "both have looked")
    lists = {path.read_text().split()[-1] for path in bound}
    if len(os.sched_getaffinity(0)) == 1:
        pytest.skip("this machine has one core")
    assert lists == {"0", "1"}, "each has a core of its own"


def test_a_node_prefers_jobs_and_makes_room_for_them(box: Box) -> None:
    """Rank alone takes one dynamic slot; several only by partitionable slot preemption."""
    central = box.spec.central_point
    preferring = example("70-preempt-by-rank.conf", "MachineMaxVacateTime = 5")
    configure(box, PLAIN, preferring, "Rank", "urgent")
    usual = submit(box, 8, at(PLAIN))
    started(box, usual, 8)
    wide = submit(box, 1, at(PLAIN), "+WantPslotPreemption = True", cores=4, group="urgent")
    small = submit(box, 1, at(PLAIN), group="urgent")
    started(box, small)
    assert not places(box, wide)
    # The negotiator takes ranks from the collector, and evicts a job whose rank is not there yet.
    ranks = (f"slot1@{PLAIN}", "-af", "ChildCurrentRank")
    box.wait_until(lambda: "1.0" in str(shown(box, *ranks)), "the collector has its rank")
    deployed.configure(box, central, example("70-preempt-by-rank.conf"))
    started(box, wide)
    assert places(box, small), "a job of the same rank stays"
    assert len(places(box, usual)) == 3


def test_a_claimed_partitionable_slot_is_one_access_points_alone(box: Box) -> None:
    claimable = example("70-claimable-slots.conf", "MAX_PARTITIONABLE_SLOT_CLAIM_TIME = 12")
    box.write_config(PLAIN, claimable)
    deployed.configure(box, ACCESS, claimable)
    restart(box, PLAIN)
    first = submit(box, 2, at(PLAIN))
    started(box, first, 2)
    box.wait_until(lambda: slots(box, PLAIN)["slot1"]["State"] == "Claimed", "a claimed slot")
    assert slots(box, PLAIN)["slot1"]["Cpus"] == 6
    other = submit(box, 1, at(PLAIN), access=SECOND)
    both: list[bool] = []

    def got_in() -> bool:
        is_claimed = slots(box, PLAIN)["slot1"]["State"] == "Claimed"
        both.append(is_claimed and bool(places(box, other)))
        return bool(places(box, other))

    box.wait_until(got_in, "the other access point gets in once the claim is over")
    assert True not in both[:-1]
    assert slots(box, PLAIN)["slot1"]["State"] == "Unclaimed"
    assert len(places(box, first)) == 2, "no job was stopped"
