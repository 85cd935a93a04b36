"""Cases of START: targets, graces, slots and jobs, and the jobs that the method lets in."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Optional

from sharectl.check.snippet_rules import CLAUSES, CRON, LIVE, PUBLISHED

Attributes = Mapping[str, str]

CORES = 24
MULTICORE, GRACE_SECONDS = 8, 480
LATCH_ATTRIBUTES = ("t1_McRoomValue", "t1_McRoomTime", "t1_WatchedValue", "t1_WatchedTime")
LONG_AGO, SOON = "time() - 100000", "time() + 600"
FUTURE = SOON
"""Moment at which something was published by a clock that was set back since."""
OF_THE_SLOT = (*CLAUSES, "t1_TargetActive", "t1_HeldBackSlot", "t1_HeldBackCores", "MC_GRACE")
"""Expressions that a slot has by STARTD_ATTRS."""
FORGED = {
    **dict.fromkeys(PUBLISHED["job_ctl.py"], "0"),
    **dict.fromkeys(("t1_McGraceTime", "t1_McRoomTime", "MyCurrentTime"), "0"),
    **dict.fromkeys(("t1_HeldBackCores", "TotalSlotCpus", "Cpus"), "0"),
    **dict.fromkeys(("t1_TargetActive", "MC_GRACE", "t1_overheat", "t1_HeldBackSlot"), "False"),
    **dict.fromkeys((*CLAUSES, "t1_Disabled", "t1_McRoom"), "True"),
    **dict.fromkeys(("Childt1_HeldBackCores", "ChildCpus"), "{}"),
    "t1_MulticorePending": "False",
    "t1_MulticorePendingUntil": SOON,
    "t1_CurrentJobs": '"alice:0"',
    "t1_TargetGroups": '{"none","none"}',
    "t1_Targetcores": "{0,0}",
    "t1_McRoomValue": "1",
    "t1_WatchedTime": "time()",
    "PartitionableSlot": "False",
    "SlotType": '"Static"',
}
"""Attributes that a user might write into a job so that it gets in where it should not."""


class Target(NamedTuple):
    """A node's target, and what it means."""

    attributes: Attributes
    cap: Optional[int] = None
    """Most cores of the held-back group; None if it is no target."""
    live: Optional[int] = None
    """Cores of the held-back group as live actuation counts them; None if unknown: no target."""
    cron: Optional[int] = None
    """Cores of the held-back group as cron actuation counts them; None if unknown: no target."""
    held_back: str = "alice"
    off: bool = False
    """True where START is the site's own."""
    size: int = 8
    """Cores of a job of the helped group."""


class Grace(NamedTuple):
    attributes: Attributes
    active: bool = False
    guards: bool = True
    """True where slots of multicore jobs are kept for such."""
    dated: bool = True
    """False where the ad's time is none by which job_ctl could be fresh."""


class Slot(NamedTuple):
    attributes: Attributes
    cores: int
    dynamic: bool = False


class Job(NamedTuple):
    accounting_group: Optional[str]
    """As an expression."""
    group: str
    """Name of the group that it counts for."""
    request: Optional[str]
    cores: float
    """What RequestCpus, an expression, means."""


def target(
    cap: str, jobs: str, size: str = "8", held_back: str = "alice", **others: str
) -> Attributes:
    """Attributes of a node with these jobs, and a dynamic slot for each group of them."""
    words = [] if jobs == "none:0" else jobs.split(":")
    children = [(group, int(cores)) for group, cores in zip(words[::2], words[1::2])]
    held = [cores if group.lower() == held_back else 0 for group, cores in children]
    return {
        **slots_of([cores for _, cores in children], held),
        "t1_CurrentJobs": f'"{jobs}"',
        "t1_TargetGroups": f'{{"{held_back}","cms"}}',
        "t1_Targetcores": f"{{{cap},{size}}}",
        "t1_TargetUntil": SOON,
        "t1_JobCtlReason": '"ok"',
        "t1_JobCtlTime": "time() - 5",
        "t1_Disabled": "False",
        **others,
    }


def slots_of(cores: Sequence[int], held: Sequence[object], matched_since: int = 0) -> Attributes:
    """What a partitionable slot says of its dynamic slots."""
    return {
        "ChildCpus": f"{{{','.join(map(str, cores))}}}",
        "Childt1_HeldBackCores": f"{{{','.join(map(str, held))}}}",
        "TotalSlotCpus": str(CORES + sum(cores) + matched_since),
    }


def copy(age_seconds: int, job_ctl_age_seconds: int) -> Attributes:
    """Times of an ad that was made so long ago, after job_ctl had run so long before."""
    made = f"time() - {age_seconds}"
    return {"MyCurrentTime": made, "t1_JobCtlTime": f"{made} - {job_ctl_age_seconds}"}


def without(attributes: Attributes, name: str) -> Attributes:
    return {**attributes, name: "undefined"}


OVER = target("56", "alice:64:lhcb:3:atlas:5")
# Without any of these there is no target, whichever way the node acts.
NEEDED = (
    "t1_TargetGroups",
    "t1_Targetcores",
    "t1_TargetUntil",
    "t1_JobCtlTime",
    "MyCurrentTime",
    "t1_TargetActive",
    "t1_TargetAdmits",
)
TARGETS: Mapping[str, Target] = {
    "nothing published": Target({}),
    "no target": Target(
        target("0", "none:0", "0", t1_TargetGroups='{"none","none"}', t1_TargetUntil="0")
    ),
    "over the cap": Target(OVER, 56, 64, 64),
    "single-core jobs helped": Target(target("56", "alice:64:lhcb:3", "1"), 56, 64, 64, size=1),
    "at the cap": Target(target("64", "lhcb:3:alice:64"), 64, 64, 64),
    "one below": Target(target("65", "lhcb:3:alice:64:atlas:5"), 65, 64, 64),
    "eight below": Target(target("72", "atlas:5:alice:64"), 72, 64, 64),
    "a cap of nothing": Target(target("0", "lhcb:3"), 0, 0, 0),
    "an empty node": Target(target("8", "none:0"), 8, 0, 0),
    "a name within names": Target(target("8", "malice:64:alice-2:64:alice:8:alice_b:9"), 8, 8, 8),
    "capitals": Target(target("8", "ALICE:8", t1_TargetGroups='{"Alice","Cms"}'), 8, 8, 8),
    "a name that is a number": Target(target("8", "lhcb:3:5:6:3:8", held_back="3"), 8, 8, 8, "3"),
    "known by its slots only": Target(
        {**target("9", "none:0"), **slots_of((1, 7), (1, 7))}, 9, 8, 8
    ),
    "fewer by its slots": Target({**target("8", "alice:8"), **slots_of((1, 8), (1, 0))}, 8, 1, 8),
    "slots without a count": Target(
        {**target("9", "alice:8"), **slots_of((8, 8, 4), (8, "undefined", "undefined"))}, 9, 8, 20
    ),
    "cores matched since": Target(
        {**target("9", "alice:3"), **slots_of((3, 1), (3, 0), matched_since=5)}, 9, 8, 9
    ),
    "more cores than the slot has": Target(
        {**target("9", "alice:8"), **slots_of((8,), (8,), matched_since=-30)}, 9, 8, 8
    ),
    "no TotalSlotCpus": Target(without(target("9", "alice:8"), "TotalSlotCpus"), 9, 8, 8),
    "no ChildCpus": Target(without(target("9", "alice:8"), "ChildCpus"), 9, 8, 8),
    "ChildCpus an error": Target({**OVER, "ChildCpus": "error"}, 56, None, 64),
    **{
        f"Childt1_HeldBackCores is {word}": Target(
            {**OVER, "Childt1_HeldBackCores": word}, 56, None, 64
        )
        for word in ("undefined", "error", "{8,error}", '{8,"8"}')
    },
    "no t1_CurrentJobs": Target(without(OVER, "t1_CurrentJobs"), 56, 64, None),
    "t1_CurrentJobs an error": Target({**OVER, "t1_CurrentJobs": "error"}, 56, 64, None),
    "run out": Target({**OVER, "t1_TargetUntil": "time() - 1"}),
    "job_ctl has stopped": Target({**OVER, "t1_JobCtlTime": LONG_AGO}),
    "job_ctl of the future": Target({**OVER, "t1_JobCtlTime": FUTURE}),
    "an old copy of the ad": Target({**OVER, **copy(3000, 60)}, 56, 64, 64),
    "an old copy of the ad, and job_ctl had stopped": Target({**OVER, **copy(3000, 2400)}),
    "a copy that job_ctl has outrun": Target({**OVER, **copy(300, -295)}, 56, 64, 64),
    "an old copy of a target that has run out": Target(
        {**OVER, **copy(3000, 60), "t1_TargetUntil": "time() - 1"}
    ),
    "text instead of lists": Target(
        {**OVER, "t1_Targetcores": '"56,8"', "t1_TargetGroups": '"alice,cms"'}
    ),
    "lists too short": Target({**OVER, "t1_Targetcores": "{56}"}),
    "negative": Target({**OVER, "t1_Targetcores": "{-1,8}"}),
    "all errors": Target(dict.fromkeys(OVER, "error")),
    **{f"no {name}": Target(without(OVER, name)) for name in NEEDED},
    **{f"{name} an error": Target({**OVER, name: "error"}) for name in NEEDED},
    "disabled": Target({**OVER, "t1_Disabled": "True"}, off=True),
    **{
        f"disabled is {word}": Target({**OVER, "t1_Disabled": word}, 56, 64, 64)
        for word in ("undefined", "error", '"True"')
    },
    "no attributes of the slot": Target(
        {**OVER, **dict.fromkeys(OF_THE_SLOT, "undefined")}, off=True
    ),
    "errors for attributes of the slot": Target(
        {**OVER, **dict.fromkeys(OF_THE_SLOT, "error")}, off=True
    ),
}


def latched(value: str, changed: str, **others: str) -> Attributes:
    """Attributes by latch: whether there was room, since when, and since when the startd looks."""
    return {"t1_McRoomValue": value, "t1_McRoomTime": changed, "t1_WatchedTime": LONG_AGO, **others}


_OVER = f"time() - {GRACE_SECONDS + 1}"
GRACES: Mapping[str, Mapping[str, Grace]] = {
    LIVE: {
        "none": Grace(latched("1", "time() - 50000")),
        "grace": Grace(latched("1", "time() - 5"), active=True),
        "almost over": Grace(latched("1", f"time() - {GRACE_SECONDS - 60}"), active=True),
        "over": Grace(latched("1", _OVER)),
        "not yet latched": Grace(latched("0", LONG_AGO), active=True),
        "not yet latched, nor the time": Grace(
            latched("0", "undefined", MyCurrentTime="undefined"), active=True, dated=False
        ),
        "of the future": Grace(latched("1", FUTURE)),
        "a copy of the ad of the future": Grace(
            latched("0", LONG_AGO, MyCurrentTime=FUTURE), dated=False
        ),
        "an old copy of the ad": Grace(latched("0", LONG_AGO, MyCurrentTime=_OVER)),
        "startd has just started": Grace(
            latched("1", "time() - 5", t1_WatchedTime="MY.t1_McRoomTime")
        ),
        "latches are not set": Grace({}),
        "latch has no value": Grace(latched("undefined", "time() - 5")),
        "latch has no time": Grace(latched("1", "undefined")),
        "looks since nobody knows when": Grace(
            latched("1", "time() - 5", t1_WatchedTime="undefined")
        ),
        "latches are errors": Grace(dict.fromkeys(LATCH_ATTRIBUTES, "error")),
        "latch is text": Grace(latched('"1"', '"now"')),
        "no MC_GRACE": Grace(latched("1", "time() - 5", MC_GRACE="undefined")),
        "MC_GRACE an error": Grace(latched("1", "time() - 5", MC_GRACE="error")),
        "no clause": Grace(latched("1", "time() - 5", t1_GraceAdmits="undefined"), guards=False),
        "clause an error": Grace(latched("1", "time() - 5", t1_GraceAdmits="error"), guards=False),
    },
    CRON: {
        "none": Grace({"MC_GRACE": "False", "t1_McGraceTime": "time() - 5"}),
        "grace": Grace({"MC_GRACE": "True", "t1_McGraceTime": "time() - 5"}, active=True),
        "an expression": Grace(
            {"MC_GRACE": f"MY.Cpus >= 8 && time() < {SOON}", "t1_McGraceTime": "time()"},
            active=True,
        ),
        "an expression that ended": Grace(
            {"MC_GRACE": "time() < time() - 1", "t1_McGraceTime": "time()"}
        ),
        "of the future": Grace({"MC_GRACE": "True", "t1_McGraceTime": FUTURE}),
        "mc_grace has stopped": Grace({"MC_GRACE": "True", "t1_McGraceTime": LONG_AGO}),
        "never published": Grace({}),
        "an error": Grace({"MC_GRACE": "error", "t1_McGraceTime": "error"}),
        "no clause": Grace({"MC_GRACE": "True", "t1_GraceAdmits": "undefined"}, guards=False),
        "clause an error": Grace({"MC_GRACE": "True", "t1_GraceAdmits": "error"}, guards=False),
    },
}
PARTITIONABLE = Slot({}, CORES)
DYNAMIC: Attributes = {
    "PartitionableSlot": "undefined",
    "DynamicSlot": "True",
    "SlotType": '"Dynamic"',
}
SLOTS: Mapping[str, Slot] = {
    "partitionable": PARTITIONABLE,
    "static": Slot({"PartitionableSlot": "undefined", "SlotType": '"Static"'}, CORES),
    **{
        f"dynamic of {cores}": Slot({**DYNAMIC, "Cpus": str(cores)}, cores, dynamic=True)
        for cores in (1, 7, 8, 16)
    },
}
GROUPS: Mapping[str, str] = {
    # AccountingGroup as an expression: the group. tests/contract/test_hostile_jobs.py has the law.
    '"alice"': "alice",
    '"ALICE.x.y"': "alice",
    '"3"': "3",
    '"cms"': "cms",
    '"Cms.pilot.bob"': "cms",
    '"lhcb"': "lhcb",
    '"alice2"': "",
    '"cms-2.cms"': "",
    '".cms"': "",
    f'"{"cms" * 5000}"': "",
    "7": "",
    "error": "",
    'strcat("cms", ".bob")': "",
}
REQUESTS: Mapping[str, float] = {
    "1": 1,
    "2": 2,
    "7": 7,
    "8": 8,
    "16": 16,
    "7.5": 8,
    "8.0": 8,
    "0": 1,
    "-64": 1,
    "9223372036854775807": 2**63,
    '"8"': 1,
    "error": 1,
    "True": 1,
    "ifThenElse(JobUniverse == 5, 8, 1)": 8,
}
JOBS: Mapping[str, Job] = {
    **{
        f"{group[:30]} asking for {request}": Job(group, GROUPS[group], request, REQUESTS[request])
        for group, request in itertools.product(GROUPS, ("1", "8"))
    },
    **{
        f"{group} asking for {request}": Job(group, GROUPS[group], request, cores)
        for group, (request, cores) in itertools.product(
            ('"alice"', '"cms"', '"lhcb"'), REQUESTS.items()
        )
    },
    "cms asking for nothing": Job('"cms"', "cms", None, 1),
    "no group asking for 1": Job(None, "", "1", 1),
    "no group asking for 8": Job(None, "", "8", 8),
}


def let_in(job: Job, target: Target, grace: Grace, slot: Slot, way: str) -> bool:
    """Whether the method lets the job in: what START is held against."""
    if target.off:
        return True
    partitionable = slot is PARTITIONABLE
    held = target.live if way == LIVE else target.cron
    active = partitionable and grace.dated and target.cap is not None and held is not None
    meant = active and target.size == 1 and job.group == "cms"
    guarded = (partitionable and grace.active and not meant) or (
        slot.dynamic and slot.cores >= MULTICORE
    )
    if job.cores <= 1 and grace.guards and guarded:
        return False
    if not active or target.cap is None or held is None:
        return True
    if job.group == "cms":
        return job.cores == target.size
    return job.group == target.held_back and held + job.cores <= target.cap


CASES = {
    way: [
        (f"{aim}; grace: {guard}; {kind}", TARGETS[aim], GRACES[way][guard], SLOTS[kind])
        for aim, guard, kind in itertools.product(TARGETS, GRACES[way], SLOTS)
        # Every target in every slot, every grace in every slot, and where both act both together.
        if guard == "none"
        or aim
        in ("no target", "over the cap", "eight below", "single-core jobs helped", "disabled")
    ]
    for way in (LIVE, CRON)
}


def slots_in(way: str) -> list[Attributes]:
    """What each of the cases changes in a slot."""
    return [
        {**target.attributes, **grace.attributes, **slot.attributes}
        for _, target, grace, slot in CASES[way]
    ]
