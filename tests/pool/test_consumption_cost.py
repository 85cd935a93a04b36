"""Predictions of `sharectl consumption cost`, against a pool's matches and jobs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Callable

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool.consumption_pools import cycles, log_length, rows_of
from tests.pool.deployed import jobs, on
from tests.pool.sharectl_command import Sharectl

ACCESS = "ap-1.example.org"
BY_CORES, BY_MEMORY, PLAIN = "wn-001.example.org", "wn-002.example.org", "wn-003.example.org"
POLICY = """
SLOT_TYPE_1_CONSUMPTION_POLICY = True
SLOT_TYPE_1_CONSUMPTION_CPUS = quantize(target.RequestCpus, {{1}})
SLOT_TYPE_1_CONSUMPTION_MEMORY = quantize(target.RequestMemory, {{{mib}}})
SLOT_TYPE_1_CONSUMPTION_DISK = quantize(target.RequestDisk, {{1024}})
SLOT_TYPE_1_SLOT_WEIGHT = {weight}
"""
CORES_POLICY = POLICY.format(mib=128, weight="Cpus")
MEMORY_POLICY = POLICY.format(mib=512, weight="floor(Memory / 512)")
SPEC = BoxSpec(
    execute_points=(
        ExecutePoint(BY_CORES, cores=10, memory_mib=4096, config=CORES_POLICY),
        ExecutePoint(BY_MEMORY, cores=8, memory_mib=2048, config=MEMORY_POLICY),
        ExecutePoint(PLAIN, cores=4, memory_mib=2048),
    ),
    access_points=(ACCESS,),
    groups={"ample": 100},
    central_config="GROUP_ACCEPT_SURPLUS = False\n",
    access_config="CLAIM_PARTITIONABLE_LEFTOVERS = False\n",
)


@pytest.fixture(scope="module")
def pool(open_box: Callable[[BoxSpec], AbstractContextManager[Box]]) -> Iterator[Box]:
    known = ("IsAccountingGroup && EffectiveQuota > 0", "Name")
    with open_box(SPEC) as box:
        box.wait_until(
            lambda: ["ample"] in rows_of(box, *known, of_any=True), "quotas are worked out"
        )
        yield box


@pytest.fixture
def sharectl(pool: Box, tmp_path: Path) -> Iterator[Sharectl]:
    """The command, on a pool where nothing runs before and after."""
    yield Sharectl(pool, tmp_path)
    pool.remove_jobs()
    pool.wait_until(
        lambda: weights(pool) == {BY_CORES: 10, BY_MEMORY: 4, PLAIN: 4}, "slots are whole again"
    )
    pool.wait_until(lambda: not any(used(pool).values()), "the accountant knows")


def described(group: str, cores: int, mib: int, machine: str, count: int, *lines: str) -> str:
    assets = (f"request_memory = {mib}", "request_disk = 100", "accounting_group_user = alice")
    return jobs(group, cores, count, 600, *assets, on(machine), *lines)


def weights(box: Box) -> dict[str, float]:
    """SlotWeight of each partitionable slot, as its ad says."""
    rows = rows_of(box, "PartitionableSlot", "Machine", "SlotWeight")
    return {machine: float(weight) for machine, weight in rows}


def used(box: Box) -> dict[str, float]:
    """WeightedResourcesUsed of each submitter and group that the accountant has it for."""
    query = ["condor_userprio", "-negotiator", "-allusers", "-af", "Name", "WeightedResourcesUsed"]
    rows = map(str.split, box.run(query, check=False).stdout.splitlines())
    return {name: float(weight) for name, weight in rows if weight != "undefined"}


def settled(box: Box, jobs: int, predicted: int) -> int:
    """Jobs that run once all ``jobs`` are queued and two negotiation cycles have started none.

    Where fewer run than were ``predicted``, those cycles count only after a minute: a match may be
    refused at first.
    """
    queued = "JobStatus == 1 || JobStatus == 2"
    box.wait_until(lambda: len(box.jobs(queued)) == jobs, "all are queued")
    running, since, began = 0, log_length(box), time.monotonic()
    while len(cycles(box, since)) < 2 or (running < predicted and time.monotonic() < began + 60):
        assert time.monotonic() < began + 120, f"{running} run, and still others start"
        now = len(box.jobs("JobStatus == 2"))
        if now != running:
            running, since = now, log_length(box)
        time.sleep(0.3)
    return running


def test_claims_and_costs_are_what_then_happens(sharectl: Sharectl) -> None:
    box = sharectl.box
    kinds = [("ample", 3, 100, BY_CORES), ("ample", 1, 600, BY_MEMORY)]
    taken = []
    for _, cores, mib, machine in kinds:
        request = f"cpus={cores},memory={mib},disk=100"
        content = sharectl.json("consumption", "cost", "--request", request)
        slots = [machine in row["names"][0] for row in content["slots"]]
        taken += [match for match in content["matches"] if slots[match["slots"]]]
    assert [(match["cost"], match["fits"], match["consumed"]["Memory"]) for match in taken] == [
        (3, 3, 128),
        (2, 2, 1024),
    ]

    before, claims = weights(box), [match["fits"] for match in taken]
    for kind in kinds:
        box.submit(described(*kind, 5))
    assert settled(box, 10, sum(claims)) == sum(claims)
    fall = {machine: before[machine] - weight for machine, weight in weights(box).items()}
    assert fall == {BY_CORES: 3 * taken[0]["cost"], BY_MEMORY: 2 * taken[1]["cost"], PLAIN: 0}
    names, total = ("ample", "ample.alice@example.org"), sum(fall.values())
    box.wait_until(
        lambda: [used(box).get(name) for name in names] == [total] * 2, f"used is {total}"
    )
    # The rest waits, and a live look says why.
    live = sharectl.json("consumption", "cost")
    assert [job["count"] for job in live["jobs"]] == [3, 2]
    assert not [match for match in live["matches"] if not match["refused"]]
