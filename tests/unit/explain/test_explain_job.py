"""What slots make of a job, by hand-written ads; jobs that would hang or eat the machine."""

from __future__ import annotations

from functools import partial
from typing import Any

import classad2
import htcondor2  # noqa: F401 - classad2 resolves names as the daemons do only once it is there
import pytest

from sharectl.condor.deadline import Question, ask_all, limit_memory
from sharectl.explain.asks import MOST_MEMORY_BYTES, JobId, facts_of, findings, job_id
from sharectl.explain.job import Obstacle, SlotFinding, verdict
from tests.fakes import NOW

LIMITS = "(MY.Cpus > 0 && TARGET.RequestCpus <= MY.Cpus && TARGET.RequestMemory <= MY.Memory)"
OURS = "MY.t1_GraceAdmits =!= False && MY.t1_TargetAdmits =!= False && MY.t1_CoolAdmits =!= False"


def slot(machine: str = "wn-1", **expressions: str) -> classad2.ClassAd:
    """Partitionable slot of 8 cores and 16 GiB of which half is free."""
    texts = {
        "Name": f'"slot1@{machine}"',
        "Machine": f'"{machine}"',
        "PartitionableSlot": "True",
        "State": '"Unclaimed"',
        "MachineResources": '"Cpus Memory Disk Swap"',
        "Cpus": "4",
        "Memory": "8192",
        "TotalSlotCpus": "8",
        "TotalSlotMemory": "16384",
        "ChildCpus": "{4}",
        "Requirements": "START && (WithinResourceLimits)",
        "Start": f"(True) && ({OURS})",
        "WithinResourceLimits": LIMITS,
        **expressions,
    }
    ad = classad2.ClassAd()
    for name, text in texts.items():
        ad[name] = classad2.ExprTree(text)
    return ad


def job(requirements: str = "True", **expressions: str) -> classad2.ClassAd:
    ad = classad2.ClassAd()
    texts = {
        "RequestCpus": "1",
        "RequestMemory": "100",
        "AccountingGroup": '"lhcb"',
        "Requirements": requirements,
    }
    for name, text in {**texts, **expressions}.items():
        ad[name] = classad2.ExprTree(text)
    return ad


def one(job_ad: Any, slot_ad: Any) -> SlotFinding:
    (found,) = findings(job_ad, [slot_ad], NOW)
    return found


def codes(found: SlotFinding) -> tuple[list[str], list[str]]:
    """What stands in the way, and what would on an empty node."""
    return [o.code for o in found.obstacles], [o.code for o in found.empty_obstacles]


TARGET = {
    "t1_TargetGroups": '{"alice", "cms"}',
    "t1_Targetcores": "{2, 8}",
    "t1_TargetUntil": str(NOW + 600),
    "t1_TargetActive": "t1_TargetUntil > 0",
    "t1_TargetAdmits": "MY.t1_TargetActive =!= True || TARGET.AccountingGroup =?= MY.t1_TargetGroups[1]",
}


@pytest.mark.parametrize(
    ("job_ad", "slot_ad", "now", "empty"),
    [
        (job(), slot(), [], []),
        (job(RequestCpus="6"), slot(), ["cpus"], []),
        (job(RequestCpus="9"), slot(), ["cpus"], ["cpus"]),
        (job("TARGET.Cpus >= RequestCpus", RequestCpus="6"), slot(), ["cpus"], []),
        (job(RequestMemory="20000", RequestCpus="6"), slot(), ["cpus", "memory"], ["memory"]),
        (job("TARGET.Arch == 1 && True"), slot(), ["job-requirements"], ["job-requirements"]),
        (job("TARGET.GPUs >= RequestGPUs", RequestGPUs="1"), slot(), ["gpus"], ["gpus"]),
        (
            job("TARGET.Licence >= RequestLicence", RequestLicence="1"),
            slot(),
            ["resource"],
            ["resource"],
        ),
        (job(RequestCpus="1 / 0"), slot(), ["bad-request"], ["bad-request"]),
        (job(), slot(Start="MY.Warm && False", Warm="True"), ["site-start"], ["site-start"]),
        (job(), slot(Start="Undefined && True"), ["site-start"], ["site-start"]),
        (job(), slot(Start="ChildCpus[0] =!= 4"), ["site-start"], []),
        (job(), slot(**TARGET), ["target"], []),
        (job(AccountingGroup='"cms"'), slot(**TARGET), [], []),
        (job(), slot(t1_GraceAdmits="MY.MC_GRACE =!= True", MC_GRACE="1 > 0"), ["grace"], []),
        (
            job(),
            slot(t1_CoolAdmits="MY.t1_overheat =!= True", t1_overheat="True"),
            ["overheat"],
            [],
        ),
        (job(), slot(State='"Drained"', Draining="True", Requirements="False"), ["draining"], []),
        (
            job(RequestCpus="9"),
            slot(State='"Drained"', Draining="True", Requirements="False"),
            ["cpus", "draining"],
            ["cpus"],
        ),
        (job(), slot(Requirements="START && False"), ["slot-requirements"], ["slot-requirements"]),
        (job(), slot(PartitionableSlot="undefined", State='"Claimed"'), ["claimed"], []),
        (
            job(),
            slot(
                ConsumptionCpus="5 + TARGET.RequestCpus",
                WithinResourceLimits="Cpus >= MY.ConsumptionCpus",
            ),
            ["cpus"],
            [],
        ),
        (job("undefined"), slot(), ["job-requirements"], ["job-requirements"]),
        (job("error"), slot(), ["job-requirements"], ["job-requirements"]),
        (job("1 / 0 == 1"), slot(), ["job-requirements"], ["job-requirements"]),
        (job('"yes"'), slot(), ["job-requirements"], ["job-requirements"]),
    ],
)
def test_each_obstacle_is_named_and_no_other(
    job_ad: Any, slot_ad: Any, now: list[str], empty: list[str]
) -> None:
    found = one(job_ad, slot_ad)
    assert codes(found) == (now, empty)


@pytest.mark.parametrize(
    ("group", "kind"), [("alice.x", "cap"), ("CMS", "size"), ("lhcb", "others")]
)
def test_a_target_keeps_a_job_out_for_a_reason(group: str, kind: str) -> None:
    target = one(
        job(AccountingGroup=f'"{group}"'), slot(**{**TARGET, "t1_TargetAdmits": "False"})
    ).target
    assert target is not None
    assert (
        target.kind,
        target.held_back,
        target.cap_cores,
        target.helped,
        target.request_cores,
    ) == (*(kind, "alice", 2, "cms", 8),)


def test_grace_says_when_it_ends() -> None:
    grace = "(time() - MY.t1_McRoomTime < 480 && True)"
    ad = slot(t1_GraceAdmits="False", MC_GRACE=grace, t1_McRoomTime=str(NOW - 80))
    assert one(job(), ad).grace_until == NOW + 400


def finding(node: str, name: str, accept: str, obstacles: tuple[Obstacle, ...] = ()) -> SlotFinding:
    return SlotFinding(node, name, "job" in accept, "slot" in accept, obstacles)


def test_a_node_counts_by_its_nearest_slot() -> None:
    near = finding("a", "1@a", "job", (Obstacle("cpus", "x"),))
    far = finding("a", "2@a", "", (Obstacle("cpus", "x"), Obstacle("memory", "y")))
    free = finding("b", "1@b", "job and slot")
    found = verdict([far, near, free])
    assert (found.code, found.nodes, found.fitting_nodes, found.fitting_if_empty) == (
        "could-now",
        2,
        1,
        2,
    )
    ((count),) = found.obstacles
    assert (count.code, count.nodes, count.alone) == ("cpus", 1, 1)
    assert (
        found.slots,
        found.slots_refused_by_job,
        found.slots_refusing_job,
        found.slots_matching,
    ) == (
        3,
        1,
        1,
        1,
    )


@pytest.mark.parametrize(
    ("written", "schedd", "wanted"),
    [
        ("12.3", None, JobId(12, 3)),
        ("12.3", "ap-1", JobId(12, 3, "ap-1")),
        ("ap-1.example.org#12.3", None, JobId(12, 3, "ap-1.example.org")),
        ("bob@ap-1#12.3#1627101243", "BOB@AP-1", JobId(12, 3, "bob@ap-1")),
    ],
)
def test_jobs_are_named_as_condor_names_them(written: str, schedd: Any, wanted: JobId) -> None:
    assert job_id(written, schedd) == wanted


@pytest.mark.parametrize(
    "written", ["12", "", "a.b", "1.2 || true", "#1.2", "1.2.3", "12345678901.0", "x#"]
)
def test_what_names_no_job_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match=r"write CLUSTER\.PROC"):
        job_id(written, None)


BOMB = {f"A{n}": f"strcat(MY.A{n - 1}, MY.A{n - 1})" for n in range(1, 48)}
"""An attribute of 2^53 characters."""
FORK = {f"B{n}": f"MY.B{n - 1} + MY.B{n - 1}" for n in range(1, 48)}
"""An expression that takes 2^47 steps."""


def look(job_ad: Any) -> Any:
    limit_memory(MOST_MEMORY_BYTES)
    return findings(job_ad, [slot()], NOW)


@pytest.mark.parametrize(
    "job_ad",
    [
        job("size(MY.A47) > 0", A0='"aaaaaaaaaaaaaaaa"', **BOMB),
        job("MY.B47 > 0", B0="1", **FORK),
        job("MY.Requirements"),
        job(f"{'(' * 50}True{')' * 50}"),
        job(f'size("{"x" * 2**20}") < 5'),
    ],
)
def test_no_job_hangs_the_command(job_ad: Any) -> None:
    answer = ask_all({"job": Question(partial(look, job_ad), 1)})["job"]
    assert answer.source.seconds < 30
    assert answer.source.problem or answer.value


def test_requests_have_values_where_they_are_numbers_on_their_own() -> None:
    ad = classad2.ClassAd(
        "[RequestDisk = DiskUsage; DiskUsage = 75; RequestCpus = 8; RequestGPUs = TARGET.Gpus; "
        "RequestMemory = error]"
    )
    facts = facts_of(ad, "ap-1")
    assert facts.requests["RequestDisk"] == "DiskUsage"
    assert facts.request_values == {"RequestDisk": 75.0, "RequestCpus": 8.0}
    lying = classad2.ClassAd('[RequestDisk = real("INF"); RequestMemory = "1"; RequestCpus = true]')
    assert facts_of(lying, "ap-1").request_values == {}
