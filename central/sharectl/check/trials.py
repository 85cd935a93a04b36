"""Typical jobs at typical nodes, to try a START expression on before a daemon gets it.

Ads are attribute → ClassAd expression as text. Times are expressions over ``time()``: no clock is
needed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Optional

Ad = Mapping[str, str]
Child = tuple[str, int]
"""Group and cores of a dynamic slot."""

SAVED_AD = Path(__file__).with_name("slot_ad.txt")
"""Ad of a partitionable slot of 25.14.1, with attributes of 23.9.6, as ``condor_status -l`` prints
it; below it what a claimed dynamic slot has besides."""

_OF_MACHINES = re.compile(
    r"has|total|recent|last|assigned|available|offline|detected|gpus|docker|singularity|slot\d+_",
    re.IGNORECASE,
)
"""Attributes that depend on devices and programs of the machine, or on its past."""

_SPLIT = re.compile(r"PartitionableSlot|Child|NumDynamicSlots")
"""Attributes of partitionable slots only."""

LIVE, CRON = "live", "cron"
ACTUATIONS = (LIVE, CRON)
"""Ways to count the held-back group's cores and to see grace: values of SHARECTL_ACTUATION."""
CLAUSES = ("t1_GraceAdmits", "t1_TargetAdmits", "t1_CoolAdmits")
"""Attributes of the slot that say whether a job may start; each lets jobs in unless it is False."""
TARGET_ACTIVE, HELD_BACK_SLOT = "t1_TargetActive", "t1_HeldBackSlot"
HELD_BACK_CORES = "t1_HeldBackCores"
SUMMED = f"Child{HELD_BACK_CORES}"
"""List of the dynamic slots' `HELD_BACK_CORES` in the partitionable slot."""
ROOM, WATCHED = "t1_McRoom", "t1_Watched"
"""Latches of the live way."""
OF_THE_SLOT = (*CLAUSES, TARGET_ACTIVE, HELD_BACK_SLOT, HELD_BACK_CORES)
SLOT_ATTRIBUTES = {LIVE: (*OF_THE_SLOT, "MC_GRACE"), CRON: OF_THE_SLOT}
"""Way → expressions that the slot has by STARTD_ATTRS."""

HELD_BACK, HELPED = "alice", "cms"
"""Groups of the target that nodes are tried with."""
INNER_HELD_BACK, INNER_HELPED = f"{HELD_BACK}.user", f"{HELPED}.prod"
"""Groups of a target within groups."""
ALIKE = f"{HELD_BACK}_user"
HELD_CORES, OTHERS_CORES = 64, 3
CHILDREN = (("lhcb", OTHERS_CORES), (HELD_BACK, HELD_CORES), ("atlas", 5))
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
NO_GRACE = {
    LIVE: {"t1_McRoomValue": "1", "t1_McRoomTime": LONG_AGO, "t1_WatchedTime": f"{LONG_AGO} - 60"},
    CRON: {"MC_GRACE": "False", "t1_McGraceReason": '"ok"', "t1_McGraceTime": "time() - 1"},
}
GRACE = {
    LIVE: {**NO_GRACE[LIVE], "t1_McRoomTime": "time()"},
    CRON: {**NO_GRACE[CRON], "MC_GRACE": "True"},
}
NOBODY_WAITS = {"t1_MulticorePending": "False", "t1_MulticorePendingUntil": LATER}
SOMEBODY_MAY_WAIT = {
    "in grace, a multicore job waits": {"t1_MulticorePending": "True"},
    "in grace, nobody knows whether multicore jobs wait": {"t1_MulticorePending": "error"},
    "in grace, the plan that no multicore job waits has ended": {
        "t1_MulticorePendingUntil": "time() - 1"
    },
    "in grace, the plan's end is unknown": {"t1_MulticorePendingUntil": "undefined"},
    "in grace, job_ctl has stopped since no multicore job waited": {"t1_JobCtlTime": LONG_AGO},
    "in grace, the clock was set back since no multicore job waited": {"t1_JobCtlTime": LATER},
}
"""Situation in grace → attributes beside `NOBODY_WAITS` by which grace is to hold."""
PUBLISHED = {
    "job_ctl.py": tuple(NO_TARGET),
    "mc_grace.py": tuple(NO_GRACE[CRON]),
    "SHARECTL_OFF": tuple(SWITCH),
}
"""Program, or name of a job that is only a line of shell → attributes that it publishes."""
NEEDED = ("t1_TargetGroups", "t1_Targetcores", "t1_TargetUntil", "t1_JobCtlTime")
"""Attributes without which there is no target."""
COUNTED = {LIVE: SUMMED, CRON: "t1_CurrentJobs"}
"""Way → attribute by which it counts the held-back group's cores."""

FORGED = {
    **dict.fromkeys(("t1_JobCtlReason", "t1_McGraceReason"), "undefined"),
    **dict.fromkeys(("t1_TargetUntil", "t1_TargetSequence", "t1_JobCtlTime"), "0"),
    **dict.fromkeys(("t1_McGraceTime", "t1_McRoomTime", "MyCurrentTime"), "0"),
    **dict.fromkeys((HELD_BACK_CORES, "TotalSlotCpus", "Cpus"), "0"),
    **dict.fromkeys((TARGET_ACTIVE, "MC_GRACE", "t1_overheat", HELD_BACK_SLOT), "False"),
    **dict.fromkeys((*CLAUSES, "t1_Disabled", ROOM), "True"),
    **dict.fromkeys((SUMMED, "ChildCpus"), "{}"),
    **NOBODY_WAITS,
    "t1_CurrentJobs": f'"{HELD_BACK}:0"',
    "t1_TargetGroups": '{"none","none"}',
    "t1_Targetcores": "{0,0}",
    "t1_McRoomValue": "1",
    "t1_WatchedTime": "time()",
    "PartitionableSlot": "False",
    "SlotType": '"Static"',
}
"""Attributes that a user might write into his job so that it gets in where it should not."""


@dataclass(frozen=True)
class TriedNode:
    """A node as a configuration makes it."""

    published: Ad
    """Attributes of its slots that STARTD_ATTRS gives, or STARTD_CRON jobs of the site."""
    multicore_cores: int
    actuation: str
    """One of `ACTUATIONS`."""
    has_grace: bool = True
    """True if grace lasts any time at all."""

    @property
    def free_cores(self) -> int:
        """Free cores of the partitionable slots that are tried."""
        return 8 * self.multicore_cores

    def slot(self, ours: Ad) -> dict[str, str]:
        """Its partitionable slot, busy in part, with these attributes of sharectl's."""
        return partitionable_slot({**self.published, **ours}, self.free_cores, CHILDREN)

    def dynamic(self, ours: Ad, cores: int, group: str = "") -> dict[str, str]:
        """Its dynamic slot, with these attributes of sharectl's."""
        return dynamic_slot({**self.published, **ours}, cores, group)


@dataclass(frozen=True)
class JobTrial:
    """One job at one slot, and whether START has to let it in."""

    situation: str
    job: str
    slot_ad: Ad
    job_ad: Ad
    expected: Optional[bool] = None
    """None: as the site's own START decides."""


# ---- Ads


@cache
def saved_ads() -> tuple[Ad, Ad]:
    """Attributes that a startd publishes of a partitionable slot, and of a dynamic one besides."""
    first, second = (
        dict(line.split(" = ", 1) for line in part.splitlines())
        for part in SAVED_AD.read_text(encoding="utf-8").split("\n\n")
    )
    return first, second


@cache
def published_names() -> frozenset[str]:
    """Names in `saved_ads`, lower case."""
    return frozenset(name.lower() for ad in saved_ads() for name in ad)


def startd_publishes(name: str) -> bool:
    """True if a startd publishes an attribute of that name, or may on another machine."""
    return name.lower() in published_names() or _OF_MACHINES.match(name) is not None


def partitionable_slot(
    published: Ad, free_cores: int, children: Sequence[Child] = ()
) -> dict[str, str]:
    """Ad of a partitionable slot with these dynamic slots, and ``published`` beside HTCondor's."""
    held = [str(cores if group == HELD_BACK else 0) for group, cores in children]
    return {
        **_slot_ad(free_cores),
        "PartitionableSlot": "True",
        "SlotType": '"Partitionable"',
        "TotalSlotCpus": str(free_cores + sum(cores for _, cores in children)),
        "NumDynamicSlots": str(len(children)),
        "ChildCpus": f"{{{','.join(str(cores) for _, cores in children)}}}",
        SUMMED: f"{{{','.join(held)}}}",
        **published,
    }


def dynamic_slot(published: Ad, cores: int, group: str = "") -> dict[str, str]:
    """Ad of a dynamic slot, claimed by a user of ``group``; new and unclaimed if that is empty."""
    claimed = {"AccountingGroup": f'"{group}.bob@example.org"', "State": '"Claimed"'}
    common = {name: text for name, text in _slot_ad(cores).items() if not _SPLIT.match(name)}
    return {
        **common,
        "DynamicSlot": "True",
        "SlotType": '"Dynamic"',
        **(claimed if group else {}),
        **published,
    }


def _slot_ad(cores: int) -> dict[str, str]:
    momentary = {"MyCurrentTime": "time() - 2", "TotalSlotCpus": str(cores), "Cpus": str(cores)}
    ample = {"Memory": "1048576", "Disk": "1073741824", "TotalCpus": str(8 * cores)}
    return {**saved_ads()[0], **momentary, **ample}


def job(cores: Optional[str], account: Optional[str]) -> dict[str, str]:
    """Ad of a job with these as RequestCpus and AccountingGroup; None leaves one out."""
    own = {"RequestCpus": cores, "AccountingGroup": account}
    return {
        "MyType": '"Job"',
        "JobUniverse": "5",
        "JobStatus": "1",
        "Owner": '"bob"',
        "User": '"bob@example.org"',
        "RequestMemory": "128",
        "RequestDisk": "1024",
        **{name: text for name, text in own.items() if text is not None},
    }


def typical_jobs(multicore_cores: int) -> dict[str, dict[str, str]]:
    """Name for people → ad of the job."""
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


# ---- Situations


def no_target(node: TriedNode) -> dict[str, str]:
    """Attributes of a node without a target and without grace."""
    return {**NO_TARGET, **SWITCH, **NO_GRACE[node.actuation]}


def target_attributes(
    node: TriedNode, cap_cores: int = 8, request_cores: Optional[int] = None
) -> dict[str, str]:
    """Attributes of a node under a target, without grace.

    ``cap_cores`` is the held-back group's cap; ``request_cores`` the size of helped jobs, by
    default that of a multicore job.
    """
    size = node.multicore_cores if request_cores is None else request_cores
    return {
        **no_target(node),
        "t1_CurrentJobs": f'"{":".join(f"{group}:{cores}" for group, cores in CHILDREN)}"',
        "t1_TargetGroups": f'{{"{HELD_BACK}","{HELPED}"}}',
        "t1_Targetcores": f"{{{cap_cores},{size}}}",
        "t1_TargetUntil": LATER,
        "t1_JobCtlReason": '"ok"',
    }


def targetless_situations(node: TriedNode) -> dict[str, dict[str, str]]:
    """Situation → attributes of sharectl's in which claims live, and jobs start, as without it."""
    quiet, target, grace = no_target(node), target_attributes(node), GRACE[node.actuation]
    needed = (*NEEDED, "t1_CurrentJobs") if node.actuation == CRON else NEEDED
    situations = {
        "before the first run of the cron jobs": {},
        "without a target": quiet,
        "when the target has run out": {**target, "t1_TargetUntil": "time() - 1"},
        "when job_ctl has stopped": {**target, "t1_JobCtlTime": LONG_AGO},
        "when the clock was set back": {**target, "t1_JobCtlTime": LATER},
        "when sharectl is disabled here": {**target, **grace, "t1_Disabled": "True"},
        "when every attribute is an error": dict.fromkeys(target, "error"),
        "when MC_GRACE is an error": {**quiet, "MC_GRACE": "error"},
        "when no multicore job waits": {**quiet, **grace, **NOBODY_WAITS},
    }
    for name in needed:
        rest = {key: text for key, text in target.items() if key != name}
        situations[f"when {name} is missing"] = rest
        situations[f"when {name} is an error"] = {**rest, name: "error"}
    return {**situations, **_graceless(node)}


def quiet_situations(node: TriedNode) -> dict[str, dict[str, str]]:
    """Situation → attributes of sharectl's in which a node takes jobs as if it were not there."""
    target = target_attributes(node)
    situations = targetless_situations(node)
    for name in (TARGET_ACTIVE, CLAUSES[1], COUNTED[node.actuation]):
        for word in ("undefined", "error"):
            situations[f"when {name} is {word}"] = {**target, name: word}
    own = dict.fromkeys(SLOT_ATTRIBUTES[node.actuation], "undefined")
    without = "when the slot has no attributes of its own"
    return {**situations, without: {**target, **GRACE[node.actuation], **own}}


def _graceless(node: TriedNode) -> dict[str, dict[str, str]]:
    """Situations in which cores are free, and no grace is to be seen."""
    quiet = no_target(node)
    if node.actuation == CRON:
        ended = {**quiet, "MC_GRACE": "True"}
        return {
            "when mc_grace has stopped": {**ended, "t1_McGraceTime": LONG_AGO},
            "when the clock was set back after mc_grace ran": {**ended, "t1_McGraceTime": LATER},
        }
    value, time, watched = f"{ROOM}Value", f"{ROOM}Time", f"{WATCHED}Time"
    started = {time: "time() - 1", watched: f"MY.{time}"}
    latches = tuple(NO_GRACE[LIVE])
    unset = {name: text for name, text in quiet.items() if name not in latches}
    back_before = {value: "0", "MyCurrentTime": LATER}
    return {
        "when the startd has just started": {**quiet, **started},
        "before the latches are set": unset,
        "when a latch cannot be evaluated": {**quiet, value: "undefined", time: "time()"},
        "when the latches are errors": {**quiet, **dict.fromkeys(latches, "error")},
        "when the ad is an old copy": {**quiet, value: "0", "MyCurrentTime": LONG_AGO},
        "when the clock was set back in grace": {**quiet, time: LATER},
        "when the clock was set back before the latch": {**quiet, **back_before},
    }


# ---- Trials


def quiet_trials(node: TriedNode) -> list[JobTrial]:
    """Typical jobs at a partitionable and at a dynamic slot, where all is quiet."""
    many = node.multicore_cores
    sizes = {"1": 1, "2": 2}
    return [
        JobTrial(situation, kind, slot, ad)
        for situation, ours in quiet_situations(node).items()
        for kind, ad in typical_jobs(many).items()
        for slot in (
            node.slot(ours),
            node.dynamic(ours, sizes.get(ad.get("RequestCpus", "1"), many)),
        )
    ]


def acting_trials(node: TriedNode) -> list[JobTrial]:
    """Jobs that sharectl has to let in or keep out, under a target and in grace."""
    trials = [*_target_trials(node), *_nested_trials(node)]
    if node.has_grace:
        trials += _grace_trials(node)
    return trials


def _trials(
    node: TriedNode, situation: str, slot: Ad, lets_in: Sequence[str], keeps_out: Sequence[str]
) -> list[JobTrial]:
    jobs = typical_jobs(node.multicore_cores)
    expected = {**dict.fromkeys(lets_in, True), **dict.fromkeys(keeps_out, False)}
    return [JobTrial(situation, kind, slot, jobs[kind], good) for kind, good in expected.items()]


def _target_trials(node: TriedNode) -> list[JobTrial]:
    many, held = node.multicore_cores, HELD_CORES
    mine, helped = f"one core of {HELD_BACK}", f"one core of {HELPED}"
    mine_large, helped_large = f"{many} cores of {HELD_BACK}", f"{many} cores of {HELPED}"
    capitals = f"{many} cores of {HELPED.upper()}, in capitals"
    strangers = ("one core of another group", "one core, no group")
    over, below = target_attributes(node), target_attributes(node, held + many)
    just_below = target_attributes(node, held + many - 1)
    unknown = {**over, "t1_Disabled": "undefined"}
    matched = {**node.slot(just_below), "Cpus": str(node.free_cores - many)}
    being_made = {**just_below, SUMMED: f"{{0,undefined,{held}}}"}
    large = node.dynamic(no_target(node), many)
    rows = [
        (
            "the held-back group over its cap",
            over,
            (helped_large, capitals),
            (helped, mine, *strangers),
        ),
        ("the held-back group below its cap", below, (mine, mine_large), ()),
        ("the held-back group at its cap", target_attributes(node, held), (), (mine,)),
        ("nobody knows whether sharectl is disabled", unknown, (), (helped,)),
    ]
    if node.actuation == LIVE:
        rows.append(("a dynamic slot is being made", being_made, (), (mine_large,)))
    trials = _trials(
        node, "in the slot of a multicore job", large, (f"{many} cores, no group",), strangers[1:]
    )
    for where, ours, lets_in, keeps_out in rows:
        trials += _trials(node, f"under a target, {where}", node.slot(ours), lets_in, keeps_out)
    if node.actuation == LIVE:
        since = "under a target, cores have been matched since"
        trials += _trials(node, since, matched, (), (mine,))
    return trials


def _grace_trials(node: TriedNode) -> list[JobTrial]:
    many = node.multicore_cores
    small, large = ("one core, no group", "no RequestCpus"), (f"{many} cores, no group",)
    grace = {**no_target(node), **GRACE[node.actuation]}
    situations = {
        "in grace": grace,
        **{name: {**grace, **NOBODY_WAITS, **ours} for name, ours in SOMEBODY_MAY_WAIT.items()},
    }
    if node.actuation == LIVE:
        late = {**no_target(node), f"{ROOM}Value": "0"}
        situations["before the latch has seen the free cores"] = late
    trials = [
        trial
        for situation, ours in situations.items()
        for trial in _trials(node, situation, node.slot(ours), large, small)
    ]
    single = {**target_attributes(node, HELD_CORES + many, 1), **GRACE[node.actuation]}
    others = (f"one core of {HELD_BACK}", "one core of another group", f"{many} cores of {HELPED}")
    where = "in grace, under a target for single-core jobs"
    return [*trials, *_trials(node, where, node.slot(single), (f"one core of {HELPED}",), others)]


def _nested_target(node: TriedNode, cap_cores: int) -> dict[str, str]:
    """Attributes under a target of groups within groups; one of a like name holds cores too."""
    return {
        **target_attributes(node, cap_cores),
        "t1_CurrentJobs": f'"{INNER_HELD_BACK}:{HELD_CORES}:lhcb:3:{ALIKE}:1000"',
        "t1_TargetGroups": f'{{"{INNER_HELD_BACK}","{INNER_HELPED}"}}',
    }


def _nested_trials(node: TriedNode) -> list[JobTrial]:
    """Jobs that a target of groups within groups has to let in or keep out."""
    many = node.multicore_cores
    helped = (INNER_HELPED, INNER_HELPED.upper(), f"{INNER_HELPED}.mc.eve")
    mine = (INNER_HELD_BACK, INNER_HELD_BACK.title(), f"{INNER_HELD_BACK}.bob")
    strangers = (
        *(HELPED, f"{INNER_HELPED}uction", f"{INNER_HELPED}_x", f"{HELPED}_prod"),
        *(f"x.{INNER_HELPED}", f"{HELPED}..prod", HELD_BACK, f"{INNER_HELD_BACK}s"),
        *(ALIKE, f"{INNER_HELD_BACK}@x", "user", "", "."),
    )
    return [
        JobTrial(
            f"under a target of subgroups, {INNER_HELD_BACK} {where} its cap",
            f"{many} cores of {group or 'no group'}",
            node.slot(_nested_target(node, cap)),
            job(str(many), f'"{group}.bob"'),
            group in lets_in,
        )
        for where, cap, lets_in in (
            ("below", HELD_CORES + many, (*helped, *mine)),
            ("at", HELD_CORES, helped),
        )
        for group in (*helped, *mine, *strangers)
    ]


def clause_trials(node: TriedNode, clause: str) -> list[JobTrial]:
    """Typical jobs at a slot one of whose `CLAUSES` is False, which keeps all of them out."""
    slot = node.slot({**no_target(node), clause: "False"})
    return [
        JobTrial(f"where {clause} is False", kind, slot, ad, expected=False)
        for kind, ad in typical_jobs(node.multicore_cores).items()
    ]


def held_cases(node: TriedNode) -> list[tuple[str, Ad, object]]:
    """Situation, slot, and the cores that it is to count as the held-back group's."""
    cores, target = node.multicore_cores, target_attributes(node)
    mine = node.dynamic(target, cores, HELD_BACK)
    nested = _nested_target(node, 0)
    inner = {
        **dict.fromkeys((INNER_HELD_BACK, INNER_HELD_BACK.upper(), f"{INNER_HELD_BACK}.mc"), cores),
        **dict.fromkeys((f"{INNER_HELD_BACK}s", ALIKE, HELD_BACK), 0),
    }
    user = {**node.dynamic(nested, cores, HELD_BACK), "AccountingGroup": f'"{INNER_HELD_BACK}@x"'}
    unclaimed = node.dynamic(target, cores)
    return [
        (f"in a slot of {cores} cores of {HELD_BACK}", mine, cores),
        (
            f"in a slot of {HELD_BACK.upper()}",
            node.dynamic(target, cores, HELD_BACK.upper()),
            cores,
        ),
        ("in a slot of another group", node.dynamic(target, cores, f"{HELD_BACK}2"), 0),
        ("in a slot that is new and nobody's yet", unclaimed, cores),
        ("in a slot that no group has claimed", {**unclaimed, "State": '"Claimed"'}, 0),
        ("in a slot without Cpus", {**mine, "Cpus": "undefined"}, 0),
        ("without a target", node.dynamic({}, cores, HELD_BACK), 0),
        ("under a broken target", {**mine, "t1_TargetGroups": "error"}, 0),
        ("in the partitionable slot", partitionable_slot({**node.published, **target}, cores), 0),
        *(
            (f"in a slot of {name}", node.dynamic(nested, cores, name), held)
            for name, held in inner.items()
        ),
        # HTCondor, too, takes the last part for the user.
        (f"in a slot of a user of {HELD_BACK}", user, 0),
    ]


def room_cases(node: TriedNode) -> list[tuple[str, Ad, object]]:
    """Situation, slot, and whether it has room for a multicore job."""
    cores = node.multicore_cores
    return [
        (f"with {cores} free cores", partitionable_slot(node.published, cores), True),
        (f"with {cores - 1} free cores", partitionable_slot(node.published, cores - 1), False),
        ("in a dynamic slot", node.dynamic({}, cores), False),
    ]


def is_true(value: object) -> bool:
    """True if HTCondor takes a value, as the library tells it, for true."""
    return value not in ("undefined", "error") and bool(value)
