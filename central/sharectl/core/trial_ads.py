"""Ads of typical jobs, and of slots, to try an expression on.

Ads are attribute → ClassAd expression as text. Times are expressions over ``time()``: no clock is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Optional

Ad = Mapping[str, str]
Child = tuple[str, int]
"""Group and cores of a dynamic slot."""

HELD_BACK, HELPED = "alice", "cms"
"""Groups of the target that nodes are tried with."""

LONG_AGO, LATER = "time() - 864000", "time() + 3600"

NO_TARGET = {
    "t1_CurrentJobs": '"none:0"',
    "t1_TargetGroups": '{"none","none"}',
    "t1_Targetcores": "{0,0}",
    "t1_TargetUntil": "0",
    "t1_TargetSequence": "0",
    "t1_MulticorePending": "undefined",
    "t1_MulticorePendingUntil": "0",
    "t1_JobCtlReason": '"no-line"',
    "t1_JobCtlTime": "time() - 1",
}
SWITCH = {"t1_Disabled": "False"}
NOBODY_WAITS = {"t1_MulticorePending": "False", "t1_MulticorePendingUntil": "time() + 3600"}
SOMEBODY_MAY_WAIT = {
    "a multicore job waits": {**NOBODY_WAITS, "t1_MulticorePending": "True"},
    "nobody knows whether multicore jobs wait": {**NOBODY_WAITS, "t1_MulticorePending": "error"},
    "the plan that no multicore job waits has ended": {
        **NOBODY_WAITS, "t1_MulticorePendingUntil": "time() - 1"
    },
    "the plan's end is unknown": {**NOBODY_WAITS, "t1_MulticorePendingUntil": "undefined"},
    "job_ctl has stopped since no multicore job waited": {**NOBODY_WAITS, "t1_JobCtlTime": LONG_AGO},
    "the clock was set back since no multicore job waited": {**NOBODY_WAITS, "t1_JobCtlTime": LATER},
}  # fmt: skip
"""Situation in grace → attributes by which grace is to hold."""

FORGED = {
    "t1_JobCtlReason": "undefined",
    "t1_McGraceReason": "undefined",
    "t1_CurrentJobs": f'"{HELD_BACK}:0"',
    "t1_TargetGroups": '{"none","none"}',
    "t1_Targetcores": "{0,0}",
    "t1_TargetUntil": "0",
    "t1_TargetSequence": "0",
    "t1_MulticorePending": "False",
    "t1_MulticorePendingUntil": "time() + 3600",
    "t1_JobCtlTime": "0",
    "t1_Disabled": "True",
    "t1_TargetActive": "False",
    "t1_GraceAdmits": "True",
    "t1_TargetAdmits": "True",
    "t1_CoolAdmits": "True",
    "MC_GRACE": "False",
    "t1_McGraceTime": "0",
    "t1_McRoom": "True",
    "t1_McRoomValue": "1",
    "t1_McRoomTime": "0",
    "t1_WatchedTime": "time()",
    "MyCurrentTime": "0",
    "t1_overheat": "False",
    "t1_HeldBackSlot": "False",
    "t1_HeldBackCores": "0",
    "Childt1_HeldBackCores": "{}",
    "ChildCpus": "{}",
    "TotalSlotCpus": "0",
    "PartitionableSlot": "False",
    "SlotType": '"Static"',
    "Cpus": "0",
}
"""What a user might write into his job so that it gets in where it should not."""


def partitionable_slot(published: Ad, free_cores: int, children: Sequence[Child] = ()) -> dict[str, str]:
    """Ad of a partitionable slot with these dynamic slots, that publishes ``published`` besides HTCondor's own."""
    held = [str(cores if group == HELD_BACK else 0) for group, cores in children]
    return {
        **_machine(free_cores),
        "Name": '"slot1@wn-001.example.org"',
        "PartitionableSlot": "True",
        "SlotType": '"Partitionable"',
        "TotalSlotCpus": str(free_cores + sum(cores for _, cores in children)),
        "NumDynamicSlots": str(len(children)),
        "ChildCpus": f"{{{','.join(str(cores) for _, cores in children)}}}",
        "Childt1_HeldBackCores": f"{{{','.join(held)}}}",
        **published,
    }


def dynamic_slot(published: Ad, cores: int, group: str = "") -> dict[str, str]:
    """Ad of a dynamic slot of ``cores`` cores, claimed by a user of ``group`` if that is given, else new and nobody's."""
    return {
        **_machine(cores),
        "Name": '"slot1_1@wn-001.example.org"',
        "DynamicSlot": "True",
        "SlotType": '"Dynamic"',
        **({"AccountingGroup": f'"{group}.bob@example.org"', "State": '"Claimed"'} if group else {}),
        **published,
    }


def job(cores: Optional[str], account: Optional[str]) -> dict[str, str]:
    """Ad of a job with these expressions as RequestCpus and AccountingGroup; None leaves one out."""
    return {
        "MyType": '"Job"',
        "JobUniverse": "5",
        "JobStatus": "1",
        "Owner": '"bob"',
        "User": '"bob@example.org"',
        "RequestMemory": "128",
        "RequestDisk": "1024",
        **({"RequestCpus": cores} if cores is not None else {}),
        **({"AccountingGroup": account} if account is not None else {}),
    }


def typical_jobs(multicore_cores: int) -> dict[str, dict[str, str]]:
    """What it is → ad of the job."""
    many = str(multicore_cores)
    return {
        "one core, no group": job("1", None),
        f"{many} cores, no group": job(many, None),
        "no RequestCpus": job(None, f'"{HELPED}.bob"'),
        f"one core of {HELD_BACK}": job("1", f'"{HELD_BACK}.bob"'),
        f"{many} cores of {HELD_BACK}": job(many, f'"{HELD_BACK}.production.bob"'),
        f"one core of {HELPED}": job("1", f'"{HELPED}.bob"'),
        f"{many} cores of {HELPED}": job(many, f'"{HELPED}.pilot.bob"'),
        f"{many} cores of {HELPED.upper()}, in capitals": job(many, f'"{HELPED.upper()}.bob"'),
        "one core of another group": job("1", '"lhcb.bob"'),
        "two cores of another group": job("2", '"lhcb.bob"'),
        "one core, AccountingGroup is a number": job("1", "7"),
        "RequestCpus is an expression": job(f"ifThenElse(JobUniverse == 5, {many}, 1)", None),
    }


def _machine(cores: int) -> dict[str, str]:
    return {
        "MyType": '"Machine"',
        "Machine": '"wn-001.example.org"',
        "State": '"Unclaimed"',
        "Activity": '"Idle"',
        "OpSys": '"LINUX"',
        "Arch": '"X86_64"',
        "SlotID": "1",
        "SlotTypeID": "1",
        "MyCurrentTime": "time() - 2",
        "Cpus": str(cores),
        "TotalCpus": str(8 * cores),
        "TotalSlotCpus": str(cores),
        "Memory": "1048576",
        "Disk": "1073741824",
        "VirtualMemory": "1048576",
        "LoadAvg": "0.0",
        "CondorLoadAvg": "0.0",
        "KeyboardIdle": "864000",
        "ConsoleIdle": "864000",
        "CpuBusy": "False",
        "UidDomain": '"example.org"',
        "FileSystemDomain": '"example.org"',
        "HasFileTransfer": "True",
    }
