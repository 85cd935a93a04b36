"""Checks of snippets by trial: HTCondor evaluates START and CLAIM_WORKLIFE for typical jobs.

Ads are attribute → ClassAd expression as text. Times are expressions over ``time()``: no clock is
needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Optional

from sharectl.check.findings import Finding, some
from sharectl.check.subject import (
    CLAUSES,
    CRON,
    EXPRESSIONS,
    LIVE,
    QUANTIZED,
    QUIET,
    ROOM,
    START,
    SUMMED,
    WATCHED,
    WORKLIFE,
    SnippetSubject,
)
from sharectl.condor.expressions import MY, references

Ad = Mapping[str, str]

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

TARGET_ACTIVE, HELD_BACK_SLOT = "t1_TargetActive", "t1_HeldBackSlot"
HELD_BACK_CORES = "t1_HeldBackCores"
OF_THE_SLOT = (*CLAUSES, TARGET_ACTIVE, HELD_BACK_SLOT, HELD_BACK_CORES)
SLOT_ATTRIBUTES = {LIVE: (*OF_THE_SLOT, "MC_GRACE"), CRON: OF_THE_SLOT}
"""Way → expressions that the slot has by STARTD_ATTRS."""
SITES_OWN = {**dict.fromkeys(CLAUSES, "True"), TARGET_ACTIVE: "False", HELD_BACK_SLOT: "False"}
"""Attributes of a slot that is not sharectl's."""

HELD_BACK, HELPED = "alice", "cms"
"""Groups of the target that nodes are tried with."""
INNER_HELD_BACK, INNER_HELPED = f"{HELD_BACK}.user", f"{HELPED}.prod"
"""Groups of a target within groups."""
ALIKE = f"{HELD_BACK}_user"
HELD_CORES = 64
CHILDREN = (("lhcb", 3), (HELD_BACK, HELD_CORES), ("atlas", 5))
"""Group and cores of each dynamic slot of the node."""
LONG_AGO, LATER = "time() - 864000", "time() + 3600"

NO_GRACE = {
    LIVE: {"t1_McRoomValue": "1", "t1_McRoomTime": LONG_AGO, "t1_WatchedTime": f"{LONG_AGO} - 60"},
    CRON: QUIET["mc_grace.py"],
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

_CLAUSES = " && ".join(f"MY.{clause} =!= False" for clause in CLAUSES)
_LAST_OF_CLAIM = f"MY.{TARGET_ACTIVE} =?= True && MY.{HELD_BACK_SLOT} =?= True"


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
def _saved_names() -> frozenset[str]:
    return frozenset(name.lower() for ad in saved_ads() for name in ad)


def startd_publishes(name: str) -> bool:
    """True if a startd publishes an attribute of that name, or may on another machine."""
    return name.lower() in _saved_names() or _OF_MACHINES.match(name) is not None


def _partitionable(
    published: Ad, free_cores: int, children: Sequence[tuple[str, int]] = ()
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


def _slot_ad(cores: int) -> dict[str, str]:
    momentary = {"MyCurrentTime": "time() - 2", "TotalSlotCpus": str(cores), "Cpus": str(cores)}
    ample = {"Memory": "1048576", "Disk": "1073741824", "TotalCpus": str(8 * cores)}
    return {**saved_ads()[0], **momentary, **ample}


def _slot(subject: SnippetSubject, ours: Ad) -> dict[str, str]:
    """Partitionable slot, busy in part, with these attributes of sharectl's."""
    published = {**subject.constants, **ours}
    return _partitionable(published, 8 * subject.multicore_cores, CHILDREN)


def _dynamic(subject: SnippetSubject, ours: Ad, cores: int, group: str = "") -> dict[str, str]:
    """Dynamic slot, claimed by a user of ``group``; new and unclaimed if that is empty."""
    claimed = {"AccountingGroup": f'"{group}.bob@example.org"', "State": '"Claimed"'}
    common = {name: text for name, text in _slot_ad(cores).items() if not _SPLIT.match(name)}
    kind = {"DynamicSlot": "True", "SlotType": '"Dynamic"', **(claimed if group else {})}
    return {**common, **kind, **subject.constants, **ours}


def _job(cores: Optional[str], account: Optional[str]) -> dict[str, str]:
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
        "one core, no group": _job("1", None),
        f"{many} cores, no group": _job(many, None),
        "no RequestCpus": _job(None, f'"{HELPED}.bob"'),
        f"one core of {HELD_BACK}": _job("1", f'"{HELD_BACK}.bob"'),
        f"{many} cores of {HELD_BACK}": _job(many, f'"{HELD_BACK}.production.bob"'),
        f"one core of {HELPED}": _job("1", f'"{HELPED}.bob"'),
        f"{many} cores of {HELPED}": _job(many, f'"{HELPED}.pilot.bob"'),
        f"{many} cores of {HELPED.upper()}, in capitals": _job(many, f'"{HELPED.upper()}.bob"'),
        "one core of another group": _job("1", '"lhcb.bob"'),
        "two cores of another group": _job("2", '"lhcb.bob"'),
        "one core, AccountingGroup is a number": _job("1", "7"),
        "RequestCpus is an expression": _job(f"ifThenElse(JobUniverse == 5, {many}, 1)", None),
    }


# ---- Situations: attributes of sharectl's


def _no_target(subject: SnippetSubject) -> dict[str, str]:
    """No target and no grace."""
    return {**QUIET["job_ctl.py"], **QUIET["SHARECTL_OFF"], **NO_GRACE[subject.actuation]}


def _target(
    subject: SnippetSubject, cap_cores: int = 8, request_cores: Optional[int] = None
) -> dict[str, str]:
    """A target without grace: cap of the held-back group, size of helped jobs (multicore)."""
    size = subject.multicore_cores if request_cores is None else request_cores
    return {
        **_no_target(subject),
        "t1_CurrentJobs": f'"{":".join(f"{group}:{cores}" for group, cores in CHILDREN)}"',
        "t1_TargetGroups": f'{{"{HELD_BACK}","{HELPED}"}}',
        "t1_Targetcores": f"{{{cap_cores},{size}}}",
        "t1_TargetUntil": LATER,
        "t1_JobCtlReason": '"ok"',
    }


def _nested_target(subject: SnippetSubject, cap_cores: int) -> dict[str, str]:
    """A target of groups within groups; one of a like name holds cores too."""
    return {
        **_target(subject, cap_cores),
        "t1_CurrentJobs": f'"{INNER_HELD_BACK}:{HELD_CORES}:lhcb:3:{ALIKE}:1000"',
        "t1_TargetGroups": f'{{"{INNER_HELD_BACK}","{INNER_HELPED}"}}',
    }


def _targetless(subject: SnippetSubject) -> dict[str, dict[str, str]]:
    """Situations in which claims live, and jobs start, as without sharectl."""
    quiet, target, grace = _no_target(subject), _target(subject), GRACE[subject.actuation]
    needed = (*NEEDED, "t1_CurrentJobs") if subject.actuation == CRON else NEEDED
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
    if subject.actuation == CRON:
        ended, time = {**quiet, "MC_GRACE": "True"}, "t1_McGraceTime"
        situations["when mc_grace has stopped"] = {**ended, time: LONG_AGO}
        situations["when the clock was set back after mc_grace ran"] = {**ended, time: LATER}
        return situations
    value, time, watched = f"{ROOM}Value", f"{ROOM}Time", f"{WATCHED}Time"
    latches = tuple(NO_GRACE[LIVE])
    back_before = {value: "0", "MyCurrentTime": LATER}
    return {
        **situations,
        "when the startd has just started": {**quiet, time: "time() - 1", watched: f"MY.{time}"},
        "before the latches are set": {n: text for n, text in quiet.items() if n not in latches},
        "when a latch cannot be evaluated": {**quiet, value: "undefined", time: "time()"},
        "when the latches are errors": {**quiet, **dict.fromkeys(latches, "error")},
        "when the ad is an old copy": {**quiet, value: "0", "MyCurrentTime": LONG_AGO},
        "when the clock was set back in grace": {**quiet, time: LATER},
        "when the clock was set back before the latch": {**quiet, **back_before},
    }


def _quiet(subject: SnippetSubject) -> dict[str, dict[str, str]]:
    """Situations in which a node takes jobs as if sharectl were not there."""
    target, situations = _target(subject), _targetless(subject)
    for name in (TARGET_ACTIVE, CLAUSES[1], COUNTED[subject.actuation]):
        for word in ("undefined", "error"):
            situations[f"when {name} is {word}"] = {**target, name: word}
    own = dict.fromkeys(SLOT_ATTRIBUTES[subject.actuation], "undefined")
    without = "when the slot has no attributes of its own"
    return {**situations, without: {**target, **GRACE[subject.actuation], **own}}


# ---- Trials


@dataclass(frozen=True)
class JobTrial:
    """One job at one slot, and whether START has to let it in."""

    situation: str
    job: str
    slot_ad: Ad
    job_ad: Ad
    expected: Optional[bool] = None
    """None: as the site's own START decides."""


def _quiet_trials(subject: SnippetSubject) -> list[JobTrial]:
    """Typical jobs at a partitionable and at a dynamic slot, where all is quiet."""
    many, sizes = subject.multicore_cores, {"1": 1, "2": 2}
    return [
        JobTrial(situation, kind, slot, ad)
        for situation, ours in _quiet(subject).items()
        for kind, ad in typical_jobs(many).items()
        for slot in (
            _slot(subject, ours),
            _dynamic(subject, ours, sizes.get(ad.get("RequestCpus", "1"), many)),
        )
    ]


def _acting_trials(subject: SnippetSubject) -> list[JobTrial]:
    """Jobs that sharectl has to let in or keep out, under a target and in grace."""
    jobs = typical_jobs(subject.multicore_cores)
    rows = {name: JobTrial("", name, {}, ad) for name, ad in jobs.items()}
    return [
        *_of_rows(rows, _target_rows(subject)),
        *_nested_trials(subject),
        *_of_rows(rows, _grace_rows(subject)),
    ]


Row = tuple[str, Ad, Sequence[str], Sequence[str]]
"""Situation, slot, jobs that START has to let in and to keep out there."""


def _of_rows(jobs: Mapping[str, JobTrial], rows: Iterable[Row]) -> Iterator[JobTrial]:
    for situation, slot, lets_in, keeps_out in rows:
        for names, expected in ((lets_in, True), (keeps_out, False)):
            for name in names:
                yield replace(jobs[name], situation=situation, slot_ad=slot, expected=expected)


def _target_rows(subject: SnippetSubject) -> Iterator[Row]:
    many, held = subject.multicore_cores, HELD_CORES
    mine, helped = f"one core of {HELD_BACK}", f"one core of {HELPED}"
    mine_large, helped_large = f"{many} cores of {HELD_BACK}", f"{many} cores of {HELPED}"
    capitals = f"{many} cores of {HELPED.upper()}, in capitals"
    strangers = ("one core of another group", "one core, no group")
    large = _dynamic(subject, _no_target(subject), many)
    yield "in the slot of a multicore job", large, (f"{many} cores, no group",), strangers[1:]
    over, just_below = _target(subject), _target(subject, held + many - 1)
    below, at = _target(subject, held + many), _target(subject, held)
    unknown = {**over, "t1_Disabled": "undefined"}
    rows: list[Row] = [
        (
            "the held-back group over its cap",
            over,
            (helped_large, capitals),
            (helped, mine, *strangers),
        ),
        ("the held-back group below its cap", below, (mine, mine_large), ()),
        ("the held-back group at its cap", at, (), (mine,)),
        ("nobody knows whether sharectl is disabled", unknown, (), (helped,)),
    ]
    if subject.actuation == LIVE:
        being_made = {**just_below, SUMMED: f"{{0,undefined,{held}}}"}
        rows.append(("a dynamic slot is being made", being_made, (), (mine_large,)))
        matched = {**just_below, "Cpus": str(7 * many)}
        rows.append(("cores have been matched since", matched, (), (mine,)))
    for where, ours, lets_in, keeps_out in rows:
        yield f"under a target, {where}", _slot(subject, ours), lets_in, keeps_out


def _grace_rows(subject: SnippetSubject) -> Iterator[Row]:
    if subject.text("SHARECTL_GRACE_SECONDS") in ("0", "1"):
        return
    many = subject.multicore_cores
    small, large = ("one core, no group", "no RequestCpus"), (f"{many} cores, no group",)
    grace = {**_no_target(subject), **GRACE[subject.actuation]}
    situations = {
        "in grace": grace,
        **{name: {**grace, **NOBODY_WAITS, **ours} for name, ours in SOMEBODY_MAY_WAIT.items()},
    }
    if subject.actuation == LIVE:
        late = {**_no_target(subject), f"{ROOM}Value": "0"}
        situations["before the latch has seen the free cores"] = late
    for situation, ours in situations.items():
        yield situation, _slot(subject, ours), large, small
    single = {**_target(subject, HELD_CORES + many, 1), **GRACE[subject.actuation]}
    others = (f"one core of {HELD_BACK}", "one core of another group", f"{many} cores of {HELPED}")
    where = "in grace, under a target for single-core jobs"
    yield where, _slot(subject, single), (f"one core of {HELPED}",), others


def _nested_trials(subject: SnippetSubject) -> list[JobTrial]:
    """Jobs that a target of groups within groups has to let in or keep out."""
    many = subject.multicore_cores
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
            _slot(subject, _nested_target(subject, cap)),
            _job(str(many), f'"{group}.bob"'),
            group in lets_in,
        )
        for where, cap, lets_in in (
            ("below", HELD_CORES + many, (*helped, *mine)),
            ("at", HELD_CORES, helped),
        )
        for group in (*helped, *mine, *strangers)
    ]


# ---- Checks


def is_true(value: object) -> bool:
    """True if HTCondor takes a value, as the library tells it, for true."""
    return value not in ("undefined", "error") and bool(value)


def refused(subject: SnippetSubject) -> Iterator[Finding]:
    """Typical jobs that sharectl's clauses keep out where there is no target."""
    quiet = _quiet_trials(subject)
    outcomes, sites_own = _started(subject, quiet)
    kept_out: dict[str, list[str]] = {}
    for trial, outcome, without in zip(quiet, outcomes, sites_own):
        if not is_true(outcome) and (is_true(without) or outcome in ("undefined", "error")):
            jobs = kept_out.setdefault(trial.situation, [])
            jobs += [job for job in [f"{trial.job} ({_word(outcome)})"] if job not in jobs]
    situations: dict[tuple[str, ...], list[str]] = {}
    for situation, jobs in kept_out.items():
        situations.setdefault(tuple(jobs), []).append(situation)
    place = subject.configuration.place(START)
    for names, where in situations.items():
        yield Finding(
            place,
            f"START keeps jobs out {_some(where)}: {_some(names)}",
            "test for what may be missing or broken with =?= and =!=, so that it lets jobs in; if "
            "it waits for what a STARTD_CRON job of the site publishes, say --published NAME=VALUE",
        )
    if not situations and not any(map(is_true, outcomes)):
        yield Finding(
            place,
            "START keeps out every typical job, with sharectl and without",
            "mend it, or say with --published NAME=VALUE what STARTD_CRON jobs of the site "
            "publish on a healthy node",
        )


def without_effect(subject: SnippetSubject) -> Iterator[Finding]:
    """Jobs that sharectl's clauses have to let in or keep out, and do not."""
    if not subject.acts:
        return
    acting = _acting_trials(subject)
    wrong: dict[str, list[str]] = {}
    for trial, outcome, without in zip(acting, *_started(subject, acting)):
        if is_true(outcome) != (trial.expected and is_true(without)):
            wrong.setdefault(trial.situation, []).append(f"{trial.job} ({_word(outcome)})")
    if wrong:
        faults = [f"{situation}: {_some(jobs)}" for situation, jobs in wrong.items()]
        yield Finding(
            subject.configuration.place(START),
            f"START does not obey targets or grace {_some(faults)}",
            "let START end in && ($(t1_clauses)), in the last file that sets it, and leave the "
            "clauses as they are",
        )


def forgeable(subject: SnippetSubject) -> Iterator[Finding]:
    """Jobs that gain something by attributes that their users wrote into them."""
    tried = [*_quiet_trials(subject), *_acting_trials(subject)]
    start = subject.configuration.text(START)
    honest = _values(subject, start, tried)
    kept_out = [trial for trial, value in zip(tried, honest) if not is_true(value)]
    forged = [replace(trial, job_ad={**FORGED, **trial.job_ad}) for trial in kept_out]
    gained = _let_in(subject, start, forged)
    if gained:
        yield Finding(
            subject.configuration.place(START),
            f"a job gets in by attributes that its user has written into it: {_some(gained)}",
            "ask for every attribute of the node with MY.",
        )


def replaced_start(subject: SnippetSubject) -> Iterator[Finding]:
    """Expressions in the place of START that let in jobs that a clause keeps out."""
    tried = [
        JobTrial(f"where {clause} is False", kind, slot, ad)
        for clause in CLAUSES
        for slot in [_slot(subject, {**_no_target(subject), clause: "False"})]
        for kind, ad in typical_jobs(subject.multicore_cores).items()
    ]
    for macro, text in subject.readable.items() if subject.our_files else ():
        name = macro.upper()
        if name == START or START not in name or not EXPRESSIONS.fullmatch(name):
            continue
        let_in = _let_in(subject, text, tried)
        # Jobs that are not typical may get in, unless the clauses are in its text.
        asks = {reference.name for reference in references(text) if reference.scope == MY}
        if let_in or (text.lower() != "false" and not asks.issuperset(CLAUSES)):
            effect = f"lets in {_some(let_in)}" if let_in else "has none of sharectl's clauses"
            yield Finding(
                subject.configuration.place(macro),
                f"HTCondor uses {macro} in the place of START, and it {effect}",
                f"let it end in && ({_CLAUSES}), in the last file that sets it",
            )


def claims(subject: SnippetSubject) -> Iterator[Finding]:
    """Claims that outlive a target, or end early without one."""
    place, target = subject.configuration.place(WORKLIFE), _target(subject)
    slots = {
        situation: _dynamic(subject, ours, 1, HELD_BACK)
        for situation, ours in _targetless(subject).items()
    }
    slots["of another group under a target"] = _dynamic(subject, target, 1, "lhcb")
    slots["before it has a claim"] = _dynamic(subject, target, 1)
    held_back = _dynamic(subject, target, 1, HELD_BACK)
    own = [{**ad, **SITES_OWN} for ad in slots.values()]
    text = subject.configuration.text(WORKLIFE)
    lives = _in_slots(subject, text, [*slots.values(), held_back])
    sites_own = _in_slots(subject, subject.without_sharectl.get(WORKLIFE, "1200"), own)
    changed = [
        f"{situation} ({_word(life)} instead of {_word(usual)})"
        for situation, life, usual in zip(slots, lives, sites_own)
        if life != usual
    ]
    if changed:
        fault = f"CLAIM_WORKLIFE is not the site's own {_some(changed)}"
        yield Finding(place, fault, f"let it be 0 only where {_LAST_OF_CLAIM}")
    if subject.acts and lives[-1] != 0:
        yield Finding(
            place,
            f"under a target, a claim of the held-back group lives on ({_word(lives[-1])}): its "
            "jobs follow each other in it, and START is not asked",
            f"write CLAIM_WORKLIFE = ifThenElse({_LAST_OF_CLAIM}, 0, $(CLAIM_WORKLIFE:1200)), in "
            "the last file that sets it",
        )


def quantized(subject: SnippetSubject) -> Iterator[Finding]:
    """Single-core jobs that get the slot of a multicore job, and are kept out of it."""
    text, cores = subject.configuration.text(QUANTIZED), subject.multicore_cores
    if not (text and subject.has_clauses):
        return
    (granted,) = _values(
        subject, text, [JobTrial("", "", _partitionable({}, 8 * cores), _job("1", None))]
    )
    if isinstance(granted, (int, float)) and granted >= cores:
        yield Finding(
            subject.configuration.place(QUANTIZED),
            f"a job of one core gets a slot of {granted:g}, and START keeps single-core jobs "
            f"out of slots of {cores} cores",
            f"make it smaller than {cores} for such jobs, or SHARECTL_MULTICORE_CORES larger",
        )


def _started(subject: SnippetSubject, tried: Sequence[JobTrial]) -> tuple[list[Any], list[Any]]:
    """START in each trial, and the site's own START."""
    switched_off = [replace(trial, slot_ad={**trial.slot_ad, **SITES_OWN}) for trial in tried]
    return (
        _values(subject, subject.configuration.text(START), tried),
        _values(subject, subject.without_sharectl.get(START, "True"), switched_off),
    )


def _let_in(subject: SnippetSubject, start: str, tried: Sequence[JobTrial]) -> list[str]:
    values = zip(tried, _values(subject, start, tried))
    return [f"{trial.job} {trial.situation}" for trial, value in values if is_true(value)]


def _values(subject: SnippetSubject, expression: str, tried: Sequence[JobTrial]) -> list[Any]:
    """Value of an expression in each trial; ``error`` in all if it cannot be read."""
    slots = {tuple(trial.slot_ad.items()): trial.slot_ad for trial in tried}
    jobs = {tuple(trial.job_ad.items()): trial.job_ad for trial in tried}
    rows, columns = ({key: n for n, key in enumerate(ads)} for ads in (slots, jobs))
    (values,) = subject.htcondor.evaluate([expression], list(slots.values()), list(jobs.values()))
    if values is None:
        return ["error"] * len(tried)
    return [
        values[rows[tuple(trial.slot_ad.items())]][columns[tuple(trial.job_ad.items())]]
        for trial in tried
    ]


def _in_slots(subject: SnippetSubject, expression: str, slots: Sequence[Ad]) -> list[Any]:
    return _values(subject, expression, [JobTrial("", "", slot, {}) for slot in slots])


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _some(words: Sequence[str]) -> str:
    return some(words, 3, "; ")
