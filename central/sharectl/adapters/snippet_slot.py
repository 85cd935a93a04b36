"""Checks of what the clauses need of the slot: attributes, latches, and the count of the held-back group's cores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sharectl.adapters.snippet_subject import ROLL_UP, Finding, Subject
from sharectl.core.trial_ads import HELD_BACK, Ad, dynamic_slot, partitionable_slot
from sharectl.core.trials import (
    BEFORE_OURS,
    HELD_BACK_CORES,
    LATCHES,
    LIVE,
    ROOM,
    SLOT_ATTRIBUTES,
    SUMMED,
    target_attributes,
)
from sharectl.core.trials_nested import nested_slots

ATTRIBUTES, LATCH_LIST, SUMMED_LIST = (
    "STARTD_ATTRS",
    "STARTD_LATCH_EXPRS",
    "STARTD_PARTITIONABLE_SLOT_ATTRS",
)


def unlisted(subject: Subject) -> Iterator[Finding]:
    """Attributes of the clauses that the slot does not have."""
    missing = _missing(subject, ATTRIBUTES, SLOT_ATTRIBUTES[subject.actuation])
    if subject.has_clauses and missing:
        yield _lacks(subject, ATTRIBUTES, missing, "clauses of START find nothing, and let every job in")


def latches(subject: Subject) -> Iterator[Finding]:
    """Latches that the slot does not have, or that condor_reconfig would mix up."""
    needed = LATCHES[subject.actuation]
    if not (subject.has_clauses and needed):
        return
    missing = _missing(subject, LATCH_LIST, needed)
    if missing:
        yield _lacks(
            subject, LATCH_LIST, missing, "nobody sees when cores become free, and there is no grace"
        )
    words = [word.lower() for word in subject.words(LATCH_LIST)]
    first = next((word for word in words if word in (BEFORE_OURS.lower(), *map(str.lower, needed))), "")
    if not missing and first != BEFORE_OURS.lower():
        yield Finding(
            "slot",
            subject.configuration.place(LATCH_LIST),
            f"{LATCH_LIST} has not {BEFORE_OURS} before {needed[0]}: condor_reconfig on a running node mixes up the "
            "latches, and there is no grace until the startd is restarted",
            f"write {LATCH_LIST} = $({LATCH_LIST}) {BEFORE_OURS} {' '.join(needed)}",
        )


def rolled_up(subject: Subject) -> Iterator[Finding]:
    """A partitionable slot that is not told what its dynamic slots hold."""
    if not subject.has_clauses or subject.actuation != LIVE:
        return
    missing = _missing(subject, SUMMED_LIST, (HELD_BACK_CORES,))
    if missing:
        yield _lacks(subject, SUMMED_LIST, missing, f"there is no {SUMMED}, so nodes heed no target")
    if subject.configuration.text(ROLL_UP).strip().lower().startswith("f"):
        yield Finding(
            "slot",
            subject.configuration.place(ROLL_UP),
            f"with {ROLL_UP} = False there is no {SUMMED}, so nodes heed no target",
            f"write {ROLL_UP} = True, or SHARECTL_ACTUATION = cron",
        )


def miscounted(subject: Subject) -> Iterator[Finding]:
    """Slots that count other cores as the held-back group's than it holds, or free cores wrongly."""
    if not subject.has_clauses or subject.actuation != LIVE or subject.is_off:
        return
    for attribute, cases in ((HELD_BACK_CORES, _held_cases(subject)), (ROOM, _room_cases(subject))):
        seen = subject.htcondor.evaluate([f"MY.{attribute}"], [slot for _, slot, _ in cases], [{}])[0] or []
        wrong = [
            f"{value} {situation}"
            for (situation, _, expected), (value,) in zip(cases, seen)
            if value != expected
        ]
        if wrong and attribute in subject.constants:
            yield Finding(
                "slot",
                subject.configuration.place(attribute),
                f"{attribute} is {'; '.join(wrong)}",
                f"leave {attribute} and what it is made of as they are",
            )


def _held_cases(subject: Subject) -> list[tuple[str, Ad, Any]]:
    cores = subject.multicore_cores
    target = {**subject.constants, **target_attributes(subject.node)}
    mine = dynamic_slot(target, cores, HELD_BACK)
    return [
        (f"in a slot of {cores} cores of {HELD_BACK}", mine, cores),
        (f"in a slot of {HELD_BACK.upper()}", dynamic_slot(target, cores, HELD_BACK.upper()), cores),
        ("in a slot of another group", dynamic_slot(target, cores, f"{HELD_BACK}2"), 0),
        ("in a slot that is new and nobody's yet", dynamic_slot(target, cores), cores),
        (
            "in a slot that nobody's group has claimed",
            {**dynamic_slot(target, cores), "State": '"Claimed"'},
            0,
        ),
        ("in a slot without Cpus", {**mine, "Cpus": "undefined"}, 0),
        ("without a target", dynamic_slot(subject.constants, cores, HELD_BACK), 0),
        ("under a broken target", {**mine, "t1_TargetGroups": "error"}, 0),
        ("in the partitionable slot", partitionable_slot(target, cores), 0),
        *nested_slots(subject.constants, subject.node),
    ]


def _room_cases(subject: Subject) -> list[tuple[str, Ad, Any]]:
    cores, ours = subject.multicore_cores, subject.constants
    return [
        (f"with {cores} free cores", partitionable_slot(ours, cores), True),
        (f"with {cores - 1} free cores", partitionable_slot(ours, cores - 1), False),
        ("in a dynamic slot", dynamic_slot(ours, cores), False),
    ]


def _missing(subject: Subject, knob: str, needed: tuple[str, ...]) -> list[str]:
    listed = {word.lower() for word in subject.words(knob)}
    return [name for name in needed if name.lower() not in listed]


def _lacks(subject: Subject, knob: str, missing: list[str], effect: str) -> Finding:
    names = " ".join(missing)
    return Finding(
        "slot",
        subject.configuration.place(knob),
        f"{knob} lacks {', '.join(missing)}: {effect}",
        f"write {knob} = $({knob}) {names}, or let it keep what the snippet put there",
    )
