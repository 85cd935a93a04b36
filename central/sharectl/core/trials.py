"""Typical jobs and typical nodes, to try a START expression on before a daemon gets it.

Ads are attribute → ClassAd expression as text. Times are expressions over ``time()``: no clock is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Optional

Ad = Mapping[str, str]

HELD_BACK, HELPED = "alice", "cms"
"""Groups of the target that nodes are tried with."""

_NO_TARGET = {
    "t1_CurrentJobs": '"none:0"',
    "t1_TargetGroups": '{"none","none"}',
    "t1_Targetcores": "{0,0}",
    "t1_TargetUntil": "0",
    "t1_JobCtlReason": '"no-line"',
    "t1_JobCtlTime": "time() - 60",
    "MC_GRACE": "False",
    "t1_McGraceReason": '"ok"',
    "t1_McGraceTime": "time() - 10",
}

PUBLISHED = {
    "job_ctl.py": tuple(name for name in _NO_TARGET if "Mc" not in name and name != "MC_GRACE"),
    "mc_grace.py": ("MC_GRACE", "t1_McGraceReason", "t1_McGraceTime"),
}
"""Attributes that each of sharectl's own STARTD_CRON jobs publishes."""

_NEEDED = ("t1_CurrentJobs", "t1_TargetGroups", "t1_Targetcores", "t1_TargetUntil", "t1_JobCtlTime")
"""Those without which there is no target."""

_LONG_AGO = "time() - 864000"

FORGED = {
    "t1_JobCtlReason": "undefined",
    "t1_McGraceReason": "undefined",
    "t1_CurrentJobs": f'"{HELD_BACK}:0"',
    "t1_TargetGroups": '{"none","none"}',
    "t1_Targetcores": "{0,0}",
    "t1_TargetUntil": "0",
    "t1_JobCtlTime": "0",
    "MC_GRACE": "False",
    "t1_McGraceTime": "0",
    "t1_overheat": "False",
    "t1_HeldBackCores": "0",
    "Childt1_HeldBackCores": "{}",
    "PartitionableSlot": "False",
    "SlotType": '"Static"',
    "Cpus": "0",
}
"""What a user might write into his job so that it gets in where it should not."""


@dataclass(frozen=True)
class Trial:
    """One job at one slot, and whether START has to let it in."""

    situation: str
    job: str
    slot_ad: Ad
    job_ad: Ad
    expected: Optional[bool] = None
    """None: as the site's own START decides."""


def partitionable_slot(published: Ad, cores: int) -> dict[str, str]:
    """Ad of an idle partitionable slot of ``cores`` cores that publishes ``published`` besides HTCondor's own."""
    return {
        **_machine(cores),
        "Name": '"slot1@wn-001.example.org"',
        "PartitionableSlot": "True",
        "SlotType": '"Partitionable"',
        "NumDynamicSlots": "0",
        "ChildCpus": "{}",
        "Childt1_HeldBackCores": "{}",
        **published,
    }


def dynamic_slot(published: Ad, cores: int, group: str = "") -> dict[str, str]:
    """Ad of a dynamic slot of ``cores`` cores, claimed by a user of ``group`` if that is given."""
    return {
        **_machine(cores),
        "Name": '"slot1_1@wn-001.example.org"',
        "DynamicSlot": "True",
        "SlotType": '"Dynamic"',
        **({"AccountingGroup": f'"{group}.bob@example.org"'} if group else {}),
        **published,
    }


def job(cores: Optional[str], group: Optional[str]) -> dict[str, str]:
    """Ad of a job with these expressions as RequestCpus and AcctGroup; None leaves one out."""
    return {
        "MyType": '"Job"',
        "JobUniverse": "5",
        "JobStatus": "1",
        "Owner": '"bob"',
        "User": '"bob@example.org"',
        "RequestMemory": "128",
        "RequestDisk": "1024",
        **({"RequestCpus": cores} if cores is not None else {}),
        **({"AcctGroup": group} if group is not None else {}),
    }


def typical_jobs(multicore_cores: int) -> dict[str, dict[str, str]]:
    """What it is → ad of the job."""
    many = str(multicore_cores)
    return {
        "one core, no group": job("1", None),
        f"{many} cores, no group": job(many, None),
        "no RequestCpus": job(None, f'"{HELPED}"'),
        f"one core of {HELD_BACK}": job("1", f'"{HELD_BACK}"'),
        f"{many} cores of {HELD_BACK}": job(many, f'"{HELD_BACK}.production"'),
        f"one core of {HELPED}": job("1", f'"{HELPED}"'),
        f"{many} cores of {HELPED}": job(many, f'"{HELPED}.pilot"'),
        f"{many} cores of {HELPED.upper()}, in capitals": job(many, f'"{HELPED.upper()}"'),
        "one core of another group": job("1", '"lhcb"'),
        "two cores of another group": job("2", '"lhcb"'),
        "one core, AcctGroup is a number": job("1", "7"),
        "RequestCpus is an expression": job(f"ifThenElse(JobUniverse == 5, {many}, 1)", None),
    }


def quiet_situations(multicore_cores: int) -> dict[str, dict[str, str]]:
    """Situation → attributes of sharectl in it: all those in which a node takes jobs as if sharectl were not there."""
    target = target_attributes(multicore_cores)
    return {
        "before the first run of the cron jobs": {},
        "without a target": dict(_NO_TARGET),
        "when the target has run out": {**target, "t1_TargetUntil": "time() - 1"},
        "when job_ctl has stopped": {**target, "t1_JobCtlTime": _LONG_AGO},
        "when mc_grace has stopped": {**_NO_TARGET, "MC_GRACE": "True", "t1_McGraceTime": _LONG_AGO},
        "when MC_GRACE is an error": {**_NO_TARGET, "MC_GRACE": "error"},
        **{
            f"when {name} is missing": {key: text for key, text in target.items() if key != name}
            for name in _NEEDED
        },
        **{f"when {name} is an error": {**target, name: "error"} for name in _NEEDED},
        "when every attribute is an error": dict.fromkeys(_NO_TARGET, "error"),
    }


def target_attributes(multicore_cores: int, cap_cores: int = 8) -> dict[str, str]:
    """Attributes of a node under a target whose held-back group has 64 cores; ``cap_cores`` is its cap."""
    return {
        **_NO_TARGET,
        "t1_CurrentJobs": f'"lhcb:3:{HELD_BACK}:64:atlas:5"',
        "t1_TargetGroups": f'{{"{HELD_BACK}","{HELPED}"}}',
        "t1_Targetcores": f"{{{cap_cores},{multicore_cores}}}",
        "t1_TargetUntil": "time() + 3600",
        "t1_JobCtlReason": '"ok"',
    }


def quiet_trials(published: Ad, multicore_cores: int) -> list[Trial]:
    """Every typical job at a partitionable slot, and at the dynamic slot made for it, in every quiet situation."""
    return [
        Trial(situation, kind, slot, ad)
        for situation, ours in quiet_situations(multicore_cores).items()
        for kind, ad in typical_jobs(multicore_cores).items()
        for slot in (
            partitionable_slot({**published, **ours}, 8 * multicore_cores),
            dynamic_slot({**published, **ours}, _size(ad, multicore_cores)),
        )
    ]


def acting_trials(published: Ad, multicore_cores: int) -> list[Trial]:
    """Jobs that sharectl has to let in or keep out, by what they are, under a target and in grace."""
    many = str(multicore_cores)
    over = {**published, **target_attributes(multicore_cores)}
    under = {**published, **target_attributes(multicore_cores, 64 + multicore_cores)}
    grace = {**published, **_NO_TARGET, "MC_GRACE": "True"}
    slots = {
        "under a target, the held-back group over its cap": partitionable_slot(over, 8 * multicore_cores),
        "under a target, the held-back group below its cap": partitionable_slot(under, 8 * multicore_cores),
        "in grace": partitionable_slot(grace, 8 * multicore_cores),
        "in the slot of a multicore job": dynamic_slot({**published, **_NO_TARGET}, multicore_cores),
    }
    over_cap, below_cap, in_grace, reused = slots
    table = (
        (over_cap, f"{many} cores of {HELPED}", True),
        (over_cap, f"{many} cores of {HELPED.upper()}, in capitals", True),
        (over_cap, f"one core of {HELPED}", False),
        (over_cap, f"one core of {HELD_BACK}", False),
        (over_cap, "one core of another group", False),
        (over_cap, "one core, no group", False),
        (below_cap, f"one core of {HELD_BACK}", True),
        (below_cap, f"{many} cores of {HELD_BACK}", True),
        (in_grace, "one core, no group", False),
        (in_grace, "no RequestCpus", False),
        (in_grace, f"{many} cores, no group", True),
        (reused, "one core, no group", False),
        (reused, f"{many} cores, no group", True),
    )
    jobs = typical_jobs(multicore_cores)
    return [
        Trial(situation, kind, slots[situation], jobs[kind], expected) for situation, kind, expected in table
    ]


def forged(trial: Trial) -> Trial:
    """The same with a job that has been written so as to get in."""
    return Trial(trial.situation, trial.job, trial.slot_ad, {**FORGED, **trial.job_ad}, trial.expected)


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


def _size(ad: Ad, multicore_cores: int) -> int:
    cores = ad.get("RequestCpus", "1")
    return int(cores) if cores.isdigit() else multicore_cores
