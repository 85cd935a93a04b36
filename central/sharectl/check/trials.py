"""Typical jobs at typical nodes, to try a START expression on before a daemon gets it.

Ads of typical jobs, and of slots, to try an expression on.

Ads are attribute → ClassAd expression as text. Times are expressions over ``time()``: no clock is
needed.

The same with groups within groups: a node has to tell ``alice.user`` from ``alice.users`` and from
``alice``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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


def partitionable_slot(
    published: Ad, free_cores: int, children: Sequence[Child] = ()
) -> dict[str, str]:
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
        **(
            {"AccountingGroup": f'"{group}.bob@example.org"', "State": '"Claimed"'} if group else {}
        ),
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


LIVE, CRON = "live", "cron"
ACTUATIONS = (LIVE, CRON)
"""Ways for a node to count the held-back group's cores and to see grace: values of SHARECTL_ACTUATION."""

CLAUSES = ("t1_GraceAdmits", "t1_TargetAdmits", "t1_CoolAdmits")
"""Attributes of the slot that say whether a job may start; each lets jobs in unless it is False."""

TARGET_ACTIVE, HELD_BACK_SLOT, HELD_BACK_CORES = (
    "t1_TargetActive",
    "t1_HeldBackSlot",
    "t1_HeldBackCores",
)
SUMMED = f"Child{HELD_BACK_CORES}"
"""What HTCondor makes of the dynamic slots' `HELD_BACK_CORES` in the partitionable one."""

ROOM, WATCHED, BEFORE_OURS = "t1_McRoom", "t1_Watched", "NumDynamicSlots"
LATCHES = {LIVE: (ROOM, WATCHED), CRON: ()}
"""Way → latches that it needs, after `BEFORE_OURS`."""

_OF_THE_SLOT = (*CLAUSES, TARGET_ACTIVE, HELD_BACK_SLOT, HELD_BACK_CORES)
SLOT_ATTRIBUTES = {LIVE: (*_OF_THE_SLOT, "MC_GRACE"), CRON: _OF_THE_SLOT}
"""Way → expressions that the slot has to have by STARTD_ATTRS."""

_NO_GRACE = {
    LIVE: {"t1_McRoomValue": "1", "t1_McRoomTime": LONG_AGO, "t1_WatchedTime": f"{LONG_AGO} - 60"},
    CRON: {"MC_GRACE": "False", "t1_McGraceReason": '"ok"', "t1_McGraceTime": "time() - 1"},
}
_GRACE = {
    LIVE: {**_NO_GRACE[LIVE], "t1_McRoomTime": "time()"},
    CRON: {**_NO_GRACE[CRON], "MC_GRACE": "True"},
}

PUBLISHED = {
    "job_ctl.py": tuple(NO_TARGET),
    "mc_grace.py": tuple(_NO_GRACE[CRON]),
    "SHARECTL_OFF": tuple(SWITCH),
}
"""Program, or name of a job that is only a line of shell → attributes that it publishes."""

BESIDE = {"job_ctl.py": ("target.py", "target_collector.py", "target_https.py")}
"""Program → files that it runs from its own folder."""

JOB_CTL_OPTIONS = (
    "--source", "--host", "--state", "--max-age-seconds", "--key-file", "--pool", "--identity", "--groups",
    "--condor-status", "--startd", "--timeout-seconds", "--ca-file", "--target-program",
)  # fmt: skip
"""Options of job_ctl.py; each takes a value."""
MAX_SOURCES = 8
"""So many sources it asks."""

_NEEDED = ("t1_TargetGroups", "t1_Targetcores", "t1_TargetUntil", "t1_JobCtlTime")
_COUNTED = {LIVE: SUMMED, CRON: "t1_CurrentJobs"}
"""Those without which there is no target; and the one by which a way counts the held-back group's cores."""

_HELD_CORES, _OTHERS_CORES = 64, 3
_CHILDREN = (("lhcb", _OTHERS_CORES), (HELD_BACK, _HELD_CORES), ("atlas", 5))


@dataclass(frozen=True)
class Node:
    """What a configuration makes of a node."""

    published: Ad
    """Attributes of its slots that STARTD_ATTRS gives, or STARTD_CRON jobs of the site."""
    multicore_cores: int
    actuation: str
    """One of `ACTUATIONS`."""
    has_grace: bool = True
    """Whether grace lasts any time at all."""

    @property
    def free_cores(self) -> int:
        """Free cores of the partitionable slots that are tried."""
        return 8 * self.multicore_cores

    def slot(self, ours: Ad) -> dict[str, str]:
        """Its partitionable slot, busy in part, with these attributes of sharectl's."""
        return partitionable_slot({**self.published, **ours}, self.free_cores, _CHILDREN)


@dataclass(frozen=True)
class Trial:
    """One job at one slot, and whether START has to let it in."""

    situation: str
    job: str
    slot_ad: Ad
    job_ad: Ad
    expected: Optional[bool] = None
    """None: as the site's own START decides."""


def targetless_situations(node: Node) -> dict[str, dict[str, str]]:
    """Situation → attributes of sharectl: those in which claims live, and jobs start, as if it were not there."""
    quiet, target = no_target(node), target_attributes(node)
    needed = (*_NEEDED, "t1_CurrentJobs") if node.actuation == CRON else _NEEDED
    return {
        "before the first run of the cron jobs": {},
        "without a target": quiet,
        "when the target has run out": {**target, "t1_TargetUntil": "time() - 1"},
        "when job_ctl has stopped": {**target, "t1_JobCtlTime": LONG_AGO},
        "when the clock was set back": {**target, "t1_JobCtlTime": LATER},
        "when sharectl is disabled here": {
            **target,
            **_GRACE[node.actuation],
            "t1_Disabled": "True",
        },
        **{
            f"when {name} is missing": {key: text for key, text in target.items() if key != name}
            for name in needed
        },
        **{f"when {name} is an error": {**target, name: "error"} for name in needed},
        "when every attribute is an error": dict.fromkeys(target, "error"),
        "when MC_GRACE is an error": {**quiet, "MC_GRACE": "error"},
        "when no multicore job waits": {**quiet, **_GRACE[node.actuation], **NOBODY_WAITS},
        **_graceless(node.actuation, quiet),
    }


def quiet_situations(node: Node) -> dict[str, dict[str, str]]:
    """Situation → attributes of sharectl: all those in which a node takes jobs as if sharectl were not there."""
    target = target_attributes(node)
    broken = [
        (name, word) for name in (TARGET_ACTIVE, CLAUSES[1]) for word in ("undefined", "error")
    ]
    broken += [(_COUNTED[node.actuation], word) for word in ("undefined", "error")]
    return {
        **targetless_situations(node),
        **{f"when {name} is {word}": {**target, name: word} for name, word in broken},
        "when the slot has no attributes of its own": {
            **target,
            **_GRACE[node.actuation],
            **dict.fromkeys(SLOT_ATTRIBUTES[node.actuation], "undefined"),
        },
    }


def no_target(node: Node) -> dict[str, str]:
    """Attributes of a node without a target and without grace."""
    return {**NO_TARGET, **SWITCH, **_NO_GRACE[node.actuation]}


def target_attributes(node: Node, cap_cores: int = 8, request_cores: int = 0) -> dict[str, str]:
    """Attributes of a node under a target, without grace; ``cap_cores`` is the held-back group's cap.

    ``request_cores`` are those that a helped job requests; 0: those of a multicore job.
    """
    return {
        **no_target(node),
        "t1_CurrentJobs": f'"{":".join(f"{group}:{cores}" for group, cores in _CHILDREN)}"',
        "t1_TargetGroups": f'{{"{HELD_BACK}","{HELPED}"}}',
        "t1_Targetcores": f"{{{cap_cores},{request_cores or node.multicore_cores}}}",
        "t1_TargetUntil": "time() + 3600",
        "t1_JobCtlReason": '"ok"',
    }


def quiet_trials(node: Node) -> list[Trial]:
    """Every typical job at a partitionable slot, and at the dynamic slot made for it, in every quiet situation."""
    return [
        Trial(situation, kind, slot, ad)
        for situation, ours in quiet_situations(node).items()
        for kind, ad in typical_jobs(node.multicore_cores).items()
        for slot in (
            node.slot(ours),
            dynamic_slot({**node.published, **ours}, _size(ad, node.multicore_cores)),
        )
    ]


def acting_trials(node: Node) -> list[Trial]:
    """Jobs that sharectl has to let in or keep out, by what they are, under a target and in grace."""
    many = node.multicore_cores
    slots = _acting_slots(node)
    small = ("one core, no group", "no RequestCpus")
    expected = {
        "under a target, the held-back group over its cap": {
            f"{many} cores of {HELPED}": True,
            f"{many} cores of {HELPED.upper()}, in capitals": True,
            f"one core of {HELPED}": False,
            f"one core of {HELD_BACK}": False,
            "one core of another group": False,
            "one core, no group": False,
        },
        "under a target, the held-back group below its cap": {
            f"one core of {HELD_BACK}": True,
            f"{many} cores of {HELD_BACK}": True,
        },
        "under a target, the held-back group at its cap": {f"one core of {HELD_BACK}": False},
        "under a target, cores have been matched since": {f"one core of {HELD_BACK}": False},
        "under a target, a dynamic slot is being made": {f"{many} cores of {HELD_BACK}": False},
        "under a target, nobody knows whether sharectl is disabled": {
            f"one core of {HELPED}": False
        },
        **{
            situation: {**dict.fromkeys(small, False), f"{many} cores, no group": True}
            for situation in (
                "in grace",
                "before the latch has seen the free cores",
                *SOMEBODY_MAY_WAIT,
            )
        },
        "in the slot of a multicore job": {
            "one core, no group": False,
            f"{many} cores, no group": True,
        },
        "in grace, under a target for single-core jobs": {
            f"one core of {HELPED}": True,
            f"one core of {HELD_BACK}": False,
            "one core of another group": False,
            f"{many} cores of {HELPED}": False,
        },
    }
    jobs = typical_jobs(many)
    return [
        Trial(situation, kind, slot, jobs[kind], lets_in)
        for situation, slot in slots.items()
        for kind, lets_in in expected[situation].items()
    ]


def clause_trials(node: Node, clause: str) -> list[Trial]:
    """Every typical job at a slot one of whose `CLAUSES` is False: whatever stands for START keeps all of them out."""
    slot = node.slot({**no_target(node), clause: "False"})
    return [
        Trial(f"where {clause} is False", kind, slot, ad, expected=False)
        for kind, ad in typical_jobs(node.multicore_cores).items()
    ]


def forged(trial: Trial, forgery: Ad) -> Trial:
    """The same with a job that has been written so as to get in."""
    return Trial(
        trial.situation, trial.job, trial.slot_ad, {**forgery, **trial.job_ad}, trial.expected
    )


def _graceless(actuation: str, quiet: Ad) -> Mapping[str, dict[str, str]]:
    """Situations in which cores are free, and no grace is to be seen."""
    if actuation == CRON:
        ended = {**quiet, "MC_GRACE": "True"}
        return {
            "when mc_grace has stopped": {**ended, "t1_McGraceTime": LONG_AGO},
            "when the clock was set back after mc_grace ran": {**ended, "t1_McGraceTime": LATER},
        }
    value, time = f"{ROOM}Value", f"{ROOM}Time"
    return {
        "when the startd has just started": {
            **quiet,
            time: "time() - 1",
            f"{WATCHED}Time": f"MY.{time}",
        },
        "before the latches are set": {
            key: text for key, text in quiet.items() if key not in _NO_GRACE[LIVE]
        },
        "when a latch cannot be evaluated": {**quiet, value: "undefined", time: "time()"},
        "when the latches are errors": {**quiet, **dict.fromkeys(_NO_GRACE[LIVE], "error")},
        "when the ad is an old copy": {**quiet, value: "0", "MyCurrentTime": LONG_AGO},
        "when the clock was set back in grace": {**quiet, time: LATER},
        "when the clock was set back before the latch": {
            **quiet,
            value: "0",
            "MyCurrentTime": LATER,
        },
    }


def _acting_slots(node: Node) -> dict[str, dict[str, str]]:
    """Situation → slot, of those that this way, with this configuration, can be in."""
    many, held = node.multicore_cores, _HELD_CORES
    slots = {
        "under a target, the held-back group over its cap": node.slot(target_attributes(node)),
        "under a target, the held-back group below its cap": node.slot(
            target_attributes(node, held + many)
        ),
        "under a target, the held-back group at its cap": node.slot(target_attributes(node, held)),
        "under a target, nobody knows whether sharectl is disabled": node.slot(
            {**target_attributes(node), "t1_Disabled": "undefined"}
        ),
        "in the slot of a multicore job": dynamic_slot({**node.published, **no_target(node)}, many),
    }
    if node.has_grace:
        grace = {**no_target(node), **_GRACE[node.actuation]}
        slots["in grace"] = node.slot(grace)
        slots.update(
            (name, node.slot({**grace, **ours})) for name, ours in SOMEBODY_MAY_WAIT.items()
        )
        slots["in grace, under a target for single-core jobs"] = node.slot(
            {**target_attributes(node, held + many, 1), **_GRACE[node.actuation]}
        )
    if node.actuation == LIVE:
        just_below = target_attributes(node, held + many - 1)
        slots["under a target, cores have been matched since"] = {
            **node.slot(just_below),
            "Cpus": str(node.free_cores - many),
        }
        slots["under a target, a dynamic slot is being made"] = node.slot(
            {**just_below, SUMMED: f"{{0,undefined,{held}}}"}
        )
    if node.actuation == LIVE and node.has_grace:
        late = {**no_target(node), f"{ROOM}Value": "0"}
        slots["before the latch has seen the free cores"] = node.slot(late)
    return slots


def _size(ad: Ad, multicore_cores: int) -> int:
    cores = ad.get("RequestCpus", "1")
    return int(cores) if cores.isdigit() else multicore_cores


INNER_HELD_BACK, INNER_HELPED = f"{HELD_BACK}.user", f"{HELPED}.prod"
"""Groups of the target that nodes are tried with."""

_NESTED_HELD_CORES = 64
"""Cores of the held-back group at the nodes of `sharectl.check.trials`."""
_ALIKE = f"{HELD_BACK}_user"


def nested_target(node: Node, cap_cores: int) -> dict[str, str]:
    """Attributes of a node under a target of groups within groups; one of a like name holds cores too."""
    return {
        **target_attributes(node, cap_cores),
        "t1_CurrentJobs": f'"{INNER_HELD_BACK}:{_NESTED_HELD_CORES}:lhcb:3:{_ALIKE}:1000"',
        "t1_TargetGroups": f'{{"{INNER_HELD_BACK}","{INNER_HELPED}"}}',
    }


def nested_trials(node: Node) -> list[Trial]:
    """Jobs that a target of groups within groups has to let in or keep out."""
    many = node.multicore_cores
    below, at = "below its cap", "at its cap"
    caps = {below: _NESTED_HELD_CORES + many, at: _NESTED_HELD_CORES}
    helped = dict.fromkeys((INNER_HELPED, INNER_HELPED.upper(), f"{INNER_HELPED}.mc.eve"), True)
    mine = (INNER_HELD_BACK, INNER_HELD_BACK.title(), f"{INNER_HELD_BACK}.bob")
    strangers = (
        HELPED, f"{INNER_HELPED}uction", f"{INNER_HELPED}_x", f"{HELPED}_prod", f"x.{INNER_HELPED}", f"{HELPED}..prod",
        HELD_BACK, f"{INNER_HELD_BACK}s", _ALIKE, f"{INNER_HELD_BACK}@x", "user", "", ".",
    )  # fmt: skip
    expected = {
        below: {**helped, **dict.fromkeys(mine, True), **dict.fromkeys(strangers, False)},
        at: {**helped, **dict.fromkeys(mine, False), **dict.fromkeys(strangers, False)},
    }
    return [
        Trial(
            f"under a target of subgroups, {INNER_HELD_BACK} {where}",
            f"{many} cores of {group or 'no group'}",
            node.slot(nested_target(node, caps[where])),
            job(str(many), f'"{group}.bob"'),
            lets_in,
        )
        for where, jobs in expected.items()
        for group, lets_in in jobs.items()
    ]


def nested_slots(constants: Ad, node: Node) -> list[tuple[str, dict[str, str], int]]:
    """Situation, dynamic slot of the multicore size under a target of subgroups, and how many cores it is to count."""
    cores = node.multicore_cores
    target = {**constants, **nested_target(node, 0)}
    slots = {
        INNER_HELD_BACK: cores,
        INNER_HELD_BACK.upper(): cores,
        f"{INNER_HELD_BACK}.mc": cores,
        f"{INNER_HELD_BACK}s": 0,
        _ALIKE: 0,
        HELD_BACK: 0,
    }
    own = dynamic_slot(target, cores, HELD_BACK)
    return [
        *(
            (f"in a slot of {name}", dynamic_slot(target, cores, name), held)
            for name, held in slots.items()
        ),
        # Whose name is that of a subgroup: HTCondor, too, takes the last part for the user.
        (
            f"in a slot of a user of {HELD_BACK}",
            {**own, "AccountingGroup": f'"{INNER_HELD_BACK}@x"'},
            0,
        ),
    ]
