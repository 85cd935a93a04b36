"""Checks of consumption policies that need no trial: what is set, for which slots, and what it asks for.

What the startd makes of each knob was read in src/condor_startd.V6/Resource.cpp (publish_static, SlotType::param) and seen
on HTCondor 23.9.6 and 25.14.1.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence

from sharectl.adapters.condor_files import Definition
from sharectl.adapters.consumption_check_settings import Setting
from sharectl.adapters.consumption_check_shares import of_type_0
from sharectl.adapters.consumption_check_subject import (
    LEFTOVERS,
    MAX_SLOT_TYPES,
    Node,
    SlotType,
    Subject,
    typed,
)
from sharectl.adapters.snippet_subject import Finding
from sharectl.core.machine_attributes import JOB_ATTRIBUTES, is_htcondors
from sharectl.core.references import MY, TARGET, UNSCOPED, Reference, references

_ALIKE = 0.6
_BY_HAND = re.compile(r"Consumption(?!_)(\w+)", re.IGNORECASE)
"""Attribute of a slot that is its policy for an asset."""


def none(subject: Subject) -> Iterator[Finding]:
    """Configurations that have no consumption policy at all."""
    nodes = [node for node in subject.nodes if not _is_for_access_points(node)]
    told_elsewhere = any(
        slot.wants_policy
        or slot.is_misread
        or not all(policy.is_default for policy in slot.policies.values())
        for node in subject.nodes
        for slot in node.slot_types
    ) or any(_in_vain(node) for node in nodes)
    told_elsewhere = told_elsewhere or any(of_type_0(subject)) or any(by_hand(subject))
    if told_elsewhere or not nodes:
        return
    yield Finding(
        "policy",
        ", ".join(node.input.name for node in nodes),
        "no slot has a consumption policy: nothing to check, and the negotiator matches one job a cycle on each "
        "partitionable slot",
        "write CONSUMPTION_POLICY = True, or SLOT_TYPE_<N>_CONSUMPTION_POLICY = True for slots of one type",
    )


def _is_for_access_points(node: Node) -> bool:
    """Whether it has no slots: a schedd alone, or a snippet that sets what access points need of a pool with policies."""
    return node.is_access_point or (
        not node.input.is_whole and bool(node.configuration.assignments(LEFTOVERS))
    )


def by_hand(subject: Subject) -> Iterator[Finding]:
    """Consumption… as attributes of slots in STARTD_ATTRS, as before HTCondor 8.1.2.

    Seen on both versions: with CONSUMPTION_POLICY the startd puts its own in their place; without it the negotiator goes
    by them, and the slot has one claim id ("has no claim id").
    """
    for node in subject.nodes:
        attributes = {name: policy_of for name in node.attributes if (policy_of := _BY_HAND.fullmatch(name))}
        if not attributes:
            continue
        is_on = any(slot.wants_policy for slot in node.slot_types)
        yield Finding(
            "policy",
            node.configuration.place(next(iter(attributes))),
            f"{_together(list(attributes))}: the form of 2012, attributes of the slot: "
            + (
                "CONSUMPTION_POLICY = True puts HTCondor's own policies in their place"
                if is_on
                else "the slot has one claim id, so it is matched once a cycle"
            ),
            "write "
            + ("" if is_on else "CONSUMPTION_POLICY = True, ")
            + ", ".join(
                f"CONSUMPTION_{asset[1].upper()} = {_one_line(node.attributes[name])}"
                for name, asset in attributes.items()
            )
            + ", and take the attributes out",
        )


def unreadable(subject: Subject) -> Iterator[Finding]:
    """Expressions on which the startd ends as it starts ("Bad consumption policy expression")."""
    seen: set[tuple[str, str]] = set()
    for _, slot in subject.slots:
        for chosen in (*slot.policies.values(), slot.weight):
            if chosen.text in subject.readable or (chosen.macro, chosen.place) in seen:
                continue
            seen.add((chosen.macro, chosen.place))
            shown = _one_line(chosen.text)
            problem = (
                f"HTCondor cannot read {chosen.macro} = {shown}" if shown else f"{chosen.macro} is empty"
            )
            yield Finding(
                "expressions",
                chosen.place,
                f"{problem}: the startd ends as soon as it starts, again and again",
                (
                    "look for a missing bracket, quote or operator"
                    if shown
                    else "take the line out, and HTCondor uses its default"
                )
                + "; nothing else of these slots' policies and weight is tried before",
            )


def scoped(subject: Subject) -> Iterator[Finding]:
    """Names that a policy or a weight asks for on the wrong side, or on no side."""
    seen: set[tuple[str, str]] = set()
    for node, slot in subject.slots:
        asked = [
            (chosen, reference, _out_of_scope(node, slot, chosen, reference))
            for chosen in (*slot.policies.values(), slot.weight)
            for reference in references(subject.readable.get(chosen.text, ""))
        ]
        for chosen, reference, said in asked:
            key = (chosen.place, f"{reference.scope}.{reference.name}".lower())
            if said is not None and key not in seen:
                seen.add(key)
                # HTCondor finds the job's attribute all the same, and a slot's weight costs no job its start.
                advice = reference.scope == UNSCOPED or chosen is slot.weight
                yield Finding("scope", chosen.place, f"{chosen.macro}: {said[0]}", said[1], advice=advice)


def slot_types(subject: Subject) -> Iterator[Finding]:
    """Policies for slots that cannot have one, or that are not there; one finding for all knobs of a type."""
    for node in subject.nodes:
        most = _most_types(node)
        for number, definitions in _in_vain(node).items():
            names = _together([definition.name for definition in definitions])
            if number >= most:
                yield Finding(
                    "slot types",
                    definitions[0].place,
                    f"{names}: HTCondor takes no notice of slot types from {most} on (MAX_SLOT_TYPES)",
                    f"use a number below {most}, or write MAX_SLOT_TYPES = {number + 1}",
                )
                continue
            yield Finding(
                "slot types",
                definitions[0].place,
                f"{names}: the node has no slot of type {number}",
                f"write NUM_SLOTS_TYPE_{number} = 1, or use the number of a type that it has",
            )
        yield from _counted_on(node)
        for slot in node.slot_types:
            if slot.is_misread:
                continue
            if slot.wants_policy and not slot.partitionable:
                yield _not_partitionable(slot)
            elif not slot.wants_policy:
                yield from _switched_off(node, slot)


def _in_vain(node: Node) -> dict[int, list[Definition]]:
    """Slot type that the node does not have → knobs of policies for it."""
    found: dict[int, list[Definition]] = {}
    most = _most_types(node)
    for definition in node.configuration.definitions:
        number, knob = typed(definition.name) or (-1, "")
        is_policy = knob.upper().startswith(("CONSUMPTION_", "NUM_CLAIMS"))
        if number >= most or (number in node.unused_types and is_policy):
            found.setdefault(number, []).append(definition)
    return found


def _counted_on(node: Node) -> Iterator[Finding]:
    """Types that a snippet counts on another file to have, though it has slots of others itself."""
    written = {
        slot.number: bool(node.configuration.assignments(f"NUM_SLOTS_TYPE_{slot.number}"))
        for slot in node.slot_types
    }
    for slot in node.slot_types:
        policies = [policy for policy in (slot.policy, *slot.policies.values()) if typed(policy.macro)]
        if any(written.values()) and not written[slot.number] and policies:
            own = ", ".join(str(number) for number, is_own in written.items() if is_own)
            yield Finding(
                "slot types",
                policies[0].place,
                f"{_together([policy.macro for policy in policies])}: this configuration has slots of type {own}, and none of "
                f"type {slot.number}: unless another file has them, nothing reads that",
                f"use the number of a type that it has, or write NUM_SLOTS_TYPE_{slot.number} = 1",
                advice=True,
            )


def _most_types(node: Node) -> int:
    written = node.configuration.text("MAX_SLOT_TYPES").strip()
    return int(written) if written.isdecimal() else MAX_SLOT_TYPES


def _together(names: Sequence[str], most: int = 6) -> str:
    """Knobs, each once."""
    once = tuple(dict.fromkeys(names))
    return ", ".join(once[:most]) + (f" and {len(once) - most} more" if len(once) > most else "")


def _not_partitionable(slot: SlotType) -> Finding:
    return Finding(
        "slot types",
        slot.policy.place,
        f"{slot.name}: not partitionable, so HTCondor leaves the consumption policy aside",
        f"write SLOT_TYPE_{slot.number}_PARTITIONABLE = True, or {slot.policy.macro} = False for it",
        advice=not typed(slot.policy.macro),
    )


def _switched_off(node: Node, slot: SlotType) -> Iterator[Finding]:
    others = any(other.wants_policy for other in node.slot_types)
    idle = [
        policy
        for policy in slot.policies.values()
        if not policy.is_default and (typed(policy.macro) or not others)
    ]
    if idle:
        (first, *more) = idle
        yield Finding(
            "slot types",
            first.place,
            f"{_together([policy.macro for policy in idle])} {'have' if more else 'has'} no effect: {slot.policy.macro} is not True"
            + (f" for {slot.name}" if slot.number else ""),
            f"write {_scope(slot, first)}CONSUMPTION_POLICY = True, or take the {'lines' if more else 'line'} out",
        )


def _out_of_scope(
    node: Node, slot: SlotType, chosen: Setting, reference: Reference
) -> tuple[str, str] | None:
    """Problem and remedy of a name; None if it is where it is asked for."""
    name = reference.name
    is_weight = chosen is slot.weight
    requests = [f"Request{asset}" for asset in slot.policies]
    of_job = name.lower() in {request.lower() for request in requests} or name.lower().startswith("request")
    if is_weight and (reference.scope == TARGET or (reference.scope == UNSCOPED and of_job)):
        return (
            (
                f"{name} is the job's, and the weight of a slot is asked for without a job: the negotiator takes its own "
                "SLOT_WEIGHT instead"
            ),
            "make the weight of the slot's Cpus, Memory, Disk and custom resources only",
        )
    if reference.scope == MY and of_job:
        return f"MY.{name} asks the slot for what the job requests: undefined", f"write TARGET.{name}"
    if reference.scope == TARGET and name.lower() in {asset.lower() for asset in slot.policies}:
        return (
            f"TARGET.{name} asks the job for what the slot has",
            f"write MY.{name}, or TARGET.Request{name}",
        )
    if of_job and name.lower() not in {request.lower() for request in requests} and reference.scope != MY:
        lower = {request.lower(): request for request in requests}
        close = [lower[found] for found in difflib.get_close_matches(name.lower(), lower, 1, _ALIKE)]
        return (
            f"no asset of this slot is requested by {name}: undefined for most jobs, and they match nothing",
            f"write TARGET.{close[0]}" if close else f"ask for one of {', '.join(requests)}",
        )
    # No slot has an attribute Request….
    if reference.scope != UNSCOPED or of_job or is_htcondors(name) or name.lower() in _known(node, slot):
        return None
    side = "TARGET" if name.lower() in JOB_ATTRIBUTES else ""
    return (
        f"{name} is not scoped: HTCondor takes it from the job wherever the slot has no such attribute",
        f"write {side}.{name}" if side else f"write MY.{name} for the slot's, TARGET.{name} for the job's",
    )


def _known(node: Node, slot: SlotType) -> set[str]:
    names = [*slot.policies, *node.attributes]
    names += [f"{prefix}{asset}" for prefix in ("Total", "TotalSlot") for asset in slot.policies]
    return {name.lower() for name in names}


def _scope(slot: SlotType, near: Setting | None = None) -> str:
    is_typed = typed((near or slot.policy).macro) is not None
    return f"SLOT_TYPE_{slot.number}_" if is_typed else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())
