"""What `sharectl consumption cost` and `capacity` say of a pool is what then happens there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Callable

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool.consumption_pools import paused
from tests.pool.looking import at
from tests.pool.sharectl_command import Sharectl
from tests.pool.trouble import hung

ACCESS = "ap-1.example.org"
BY_CORES, BY_MEMORY, PLAIN = "wn-001.example.org", "wn-002.example.org", "wn-003.example.org"
POLICY = """
SLOT_TYPE_1_CONSUMPTION_POLICY = True
SLOT_TYPE_1_CONSUMPTION_CPUS = quantize(target.RequestCpus, {{1}})
SLOT_TYPE_1_CONSUMPTION_MEMORY = quantize(target.RequestMemory, {{{mib}}})
SLOT_TYPE_1_CONSUMPTION_DISK = quantize(target.RequestDisk, {{1024}})
SLOT_TYPE_1_SLOT_WEIGHT = {weight}
"""
SPEC = BoxSpec(
    execute_points=(
        ExecutePoint(
            BY_CORES, cores=10, memory_mib=4096, config=POLICY.format(mib=128, weight="Cpus")
        ),
        ExecutePoint(
            BY_MEMORY,
            cores=8,
            memory_mib=2048,
            config=POLICY.format(mib=512, weight="floor(Memory / 512)"),
        ),
        ExecutePoint(PLAIN, cores=4, memory_mib=2048),
    ),
    access_points=(ACCESS,),
    groups={"ample": 100, "few": 3, "bit": 0, "lone": 1},
    central_config="GROUP_ACCEPT_SURPLUS = False\nGROUP_QUOTA_bit = 0.9\n",
    access_config="CLAIM_PARTITIONABLE_LEFTOVERS = False\n",
)
QUIET_CYCLES = 2
"""Negotiation cycles without a start after which no more are expected."""


@pytest.fixture(scope="module")
def pool(open_box: Callable[[BoxSpec], AbstractContextManager[Box]]) -> Iterator[Box]:
    with open_box(SPEC) as box:
        box.wait_until(
            lambda: quotas_known(box), 60, "a negotiation cycle has worked out the quotas"
        )
        yield box


@pytest.fixture
def sharectl(pool: Box, tmp_path: Path) -> Iterator[Sharectl]:
    """The command, on a pool where nothing runs before and after."""
    yield Sharectl(pool, tmp_path, imported=True)
    pool.remove_jobs()
    pool.wait_until(
        lambda: weights(pool) == {BY_CORES: 10, BY_MEMORY: 4, PLAIN: 4}, 60, "slots are whole again"
    )
    pool.wait_until(lambda: not any(used(pool).values()), 60, "the accountant knows")


def described(group: str, cores: int, mib: int, machine: str, count: int) -> str:
    return "\n".join(
        (
            "executable = /bin/sleep",
            "arguments = 600",
            f"request_cpus = {cores}\nrequest_memory = {mib}\nrequest_disk = 100",
            f"accounting_group = {group}\naccounting_group_user = alice",
            at(machine),
            f"queue {count}\n",
        )
    )


def ads_of(sharectl: Sharectl, *descriptions: str) -> Path:
    """File with the ads of jobs that are not submitted."""
    path = sharectl.folder / "jobs.ads"
    with path.open("w") as file:
        for description in descriptions:
            sharectl.box.run(
                ["condor_submit", "-dry-run", "one.ads", "-"], host=ACCESS, input=description
            )
            file.write(sharectl.box.run(["cat", "one.ads"], host=ACCESS).stdout + "\n")
    return path


def weights(box: Box) -> dict[str, float]:
    """SlotWeight of each partitionable slot, as its ad says."""
    printed = box.run(
        ["condor_status", "-constraint", "PartitionableSlot", "-af", "Machine", "SlotWeight"]
    ).stdout
    return {machine: float(weight) for machine, weight in map(str.split, printed.splitlines())}


def quotas_known(box: Box) -> bool:
    told = box.run(
        [
            "condor_status",
            "-any",
            "-constraint",
            "IsAccountingGroup && EffectiveQuota > 0",
            "-af",
            "Name",
        ]
    )
    return "ample" in told.stdout.split()


def used(box: Box) -> dict[str, float]:
    """WeightedResourcesUsed of each submitter and group that the accountant has it for."""
    printed = box.run(
        ["condor_userprio", "-negotiator", "-allusers", "-af", "Name", "WeightedResourcesUsed"],
        check=False,
    ).stdout
    told = map(str.split, printed.splitlines())
    return {name: float(weight) for name, weight in told if weight != "undefined"}


def settled(box: Box, jobs: int, predicted: int) -> int:
    """Jobs that run once all ``jobs`` are queued and some negotiation cycles have started none.

    Where fewer run than were ``predicted``, those cycles count only after a minute: a match may be
    refused at first.
    """

    def cycles() -> int:
        return box.log_text(SPEC.central_point, "NEGOTIATOR").count("Finished Negotiation Cycle")

    box.wait_until(
        lambda: len(box.jobs("JobStatus == 1 || JobStatus == 2")) == jobs, 30, "all are queued"
    )
    running, since = 0, cycles()
    began = time.monotonic()
    while cycles() < since + QUIET_CYCLES or (
        running < predicted and time.monotonic() < began + 60
    ):
        assert time.monotonic() < began + 120, (
            f"{running} run, {cycles() - since} cycles since the last start"
        )
        now = len(box.jobs("JobStatus == 2"))
        if now != running:
            running, since = now, cycles()
        time.sleep(0.3)
    return running


def shapes(seen: dict[str, Any]) -> list[dict[str, Any]]:
    jobs: list[dict[str, Any]] = seen["jobs"]
    return jobs


def test_jobs_are_told_apart_before_their_access_point_has_negotiated(sharectl: Sharectl) -> None:
    """Its jobs have no AutoClusterId yet, and differ by nothing but their Requirements."""
    with paused(sharectl.box):
        for machine, count in ((BY_CORES, 3), (BY_MEMORY, 2)):
            sharectl.box.submit(described("ample", 1, 100, machine, count))
        live = sharectl.json("consumption", "cost")
        some = sharectl.json(
            "consumption",
            "cost",
            "--job-constraint",
            f'regexp("{BY_MEMORY}", unparse(Requirements))',
        )
    assert sorted(job["count"] for job in live["jobs"]) == [2, 3]
    assert [job["count"] for job in some["jobs"]] == [2]


def test_claims_and_costs_are_what_then_happens(sharectl: Sharectl) -> None:
    box = sharectl.box
    kinds = [
        described("ample", 3, 100, BY_CORES, 1),
        described("ample", 1, 600, BY_MEMORY, 1),
    ]
    path = ads_of(sharectl, *kinds)
    capacity = sharectl.json("consumption", "capacity", "--jobs", str(path))
    assert capacity["claims"] == 10 + 4 + 4
    claims = [job["claims"] for job in shapes(capacity)]
    assert claims == [job["claims_within_quota"] for job in shapes(capacity)] == [3, 2]
    cost = sharectl.json("consumption", "cost", "--jobs", str(path))
    taken = [match for match in cost["matches"] if not match["refused"]]
    assert [(match["cost"], match["fits"], match["consumed"]["Memory"]) for match in taken] == [
        (3, 3, 128),
        (2, 2, 1024),
    ]

    before = weights(box)
    for kind in kinds:
        box.submit(kind.replace("queue 1", "queue 5"))
    assert settled(box, 10, sum(claims)) == sum(claims)
    predicted = {BY_CORES: 3 * taken[0]["cost"], BY_MEMORY: 2 * taken[1]["cost"], PLAIN: 0}
    assert {
        machine: before[machine] - weight for machine, weight in weights(box).items()
    } == predicted
    box.wait_until(
        lambda: (
            {name: used(box).get(name) for name in ("ample", "ample.alice@example.org")}
            == dict.fromkeys(("ample", "ample.alice@example.org"), sum(predicted.values()))
        ),
        30,
        f"the accountant says {sum(predicted.values())}",
    )
    # The rest waits, and a live look says why.
    live = sharectl.json("consumption", "cost")
    assert [job["count"] for job in live["jobs"]] == [3, 2]
    assert not [match for match in live["matches"] if not match["refused"]]
    (ample,) = [
        group
        for group in sharectl.json("consumption", "cost", "--group")["groups"]
        if group["name"] == "ample"
    ]
    assert (ample["jobs"], ample["jobs_without_slot"], ample["used"]) == (5, 5, 13)


def test_quotas_hold_as_many_claims_as_told(sharectl: Sharectl) -> None:
    box = sharectl.box
    kinds = [
        described("few", 2, 100, BY_CORES, 1),  # the last match goes over the quota
        described("lone", 1, 600, BY_MEMORY, 1),
        described("bit", 1, 100, BY_CORES, 1),  # quotas are cut to whole numbers
    ]
    path = ads_of(sharectl, *kinds)
    told = shapes(sharectl.json("consumption", "capacity", "--jobs", str(path)))
    claims = {job["quota_group"]: job["claims_within_quota"] for job in told}
    assert claims == {"few": 2, "lone": 1, "bit": 0}
    for kind in kinds:
        box.submit(kind.replace("queue 1", "queue 4"))
    assert settled(box, 12, sum(claims.values())) == sum(claims.values())
    groups = [job["AcctGroup"] for job in box.jobs("JobStatus == 2", ("AcctGroup",))]
    assert {group: groups.count(group) for group in claims} == claims


def test_leftovers_run_past_the_quota_as_far_as_told(sharectl: Sharectl) -> None:
    box = sharectl.box
    path = ads_of(sharectl, described("lone", 1, 100, PLAIN, 6))
    off = sharectl.json("consumption", "cost", "--group", "--jobs", str(path))
    assert {group["leftover_claims"] for group in off["groups"]} == {0}
    box.write_config(ACCESS, "CLAIM_PARTITIONABLE_LEFTOVERS = True\n")
    box.reconfig(ACCESS)
    try:
        box.submit(
            described("lone", 1, 100, PLAIN, 6).replace(
                "arguments = 600", "arguments = 600\nhold = True"
            )
        )
        capacity = sharectl.json("consumption", "capacity", "--constraint", f'Machine == "{PLAIN}"')
        (lone,) = [group for group in capacity["groups"] if group["name"] == "lone"]
        assert (lone["claims"], lone["leftover_claims"], lone["past_quota"]) == (1, 4, 3)
        box.run(["condor_release", "-all"], host=ACCESS)
        assert settled(box, 6, lone["leftover_claims"]) == lone["leftover_claims"]
        box.wait_until(
            lambda: used(box).get("lone") == 1 + lone["past_quota"], 30, "the accountant says so"
        )
    finally:
        box.write_config(ACCESS, "CLAIM_PARTITIONABLE_LEFTOVERS = False\n")
        box.reconfig(ACCESS)


def test_a_schedd_that_hangs_is_missed_by_its_deadline(sharectl: Sharectl) -> None:
    with hung(sharectl.box, ACCESS, "SCHEDD"):
        began = time.monotonic()
        done = sharectl.run("consumption", "cost", expect=75, pool={"schedd_deadline_seconds": 2})
        print(f"gave up after {time.monotonic() - began:.1f} s")
    assert f"schedd {ACCESS}: no answer within 2 s; its jobs are missing here" in done.stderr
