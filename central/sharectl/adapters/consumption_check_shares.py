"""What slots of each type have on a node, and types that want more than there is."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence

from sharectl.adapters.condor_files import Definition
from sharectl.adapters.consumption_check_settings import GPUS, Setting
from sharectl.adapters.consumption_check_subject import Node, SlotType, Subject, typed
from sharectl.adapters.snippet_subject import Finding
from sharectl.core.slot_shares import amount_of, by_name, is_htcondors, part_of

DEVICES = 4
"""Of a custom resource whose amount only a script on the node knows."""


def of_slot(node: Node, slot: SlotType, asset: str, total: float) -> float:
    """What each slot of a type has of an asset of which its machine has ``total``; what is left is divided evenly."""
    told = amount_of(slot.shares, asset, total)
    if told is not None:
        return told
    asked = [(other, amount_of(other.shares, asset, total)) for other in node.slot_types]
    left = total - sum(other.count * part for other, part in asked if part is not None)
    among = sum(other.count for other, part in asked if part is None)
    # What goes wrong where nothing is left is said by `allotted`.
    return max(0.0, left) / max(1, among)


def is_fixed(node: Node, asset: str) -> bool:
    """Whether a slot type says an amount of an asset: what is said of a slot (``--slot``) then is the machine's."""
    return any(amount_of(slot.shares, asset, 0.0) for slot in node.slot_types)


def declared(chosen: Setting) -> float:
    """Amount of a custom resource of a machine: a number, or as many as there are names in a list."""
    if "INVENTORY_" in chosen.macro.upper():
        return DEVICES
    words = [word for word in re.split(r"[\s,]+", chosen.text) if word]
    return float(words[0]) if len(words) == 1 and re.fullmatch(r"\d+(\.\d+)?", words[0]) else len(words)


def allotted(subject: Subject) -> Iterator[Finding]:
    """Slot types that want more than the machine has, or something that it has not.

    23.9.6 ends then ("Ran out of system resources", "Unknown attribute"), again and again, and the node has no slot at all;
    25.14.1 makes a broken slot of what is left (seen), and by its source none of a type that wants what the machine has not.
    """
    for node in subject.nodes:
        for slot in node.slot_types:
            yield from _unknown(node, slot)
        for asset, total, is_known in _totals(node, subject.size):
            yield from _too_much(node, asset, total, is_known=is_known)


def of_type_0(subject: Subject) -> Iterator[Finding]:
    """Knobs of slot type 0, HTCondor's name for every slot of a node without slot types (SlotType::init_types).

    What a slot of it has, and how many there are, may not be said (_checkInvalidParam in src/condor_startd.V6/slot_builder.cpp).
    """
    for node in subject.nodes:
        knobs: dict[str, Definition] = {}
        for definition in node.configuration.definitions:
            number, knob = typed(definition.name) or (-1, "")
            if number == 0 and not knob and node.configuration.text(definition.name):
                yield _not_said(definition)
            elif number == 0 and knob.upper().startswith(("CONSUMPTION_", "NUM_CLAIMS")):
                knobs[definition.name] = definition
        if knobs:
            yield from _read_by_none(node, tuple(knobs.values()))


def _not_said(definition: Definition) -> Finding:
    return Finding(
        "slot types",
        definition.place,
        f"{definition.name}: slot types begin at 1: the startd of 23.9.6 ends as it starts (Can't define {definition.name} in the "
        "config file), again and again, and that of 25.14.1 takes no notice",
        "use the number of a slot type, or take the line out",
    )


def _read_by_none(node: Node, knobs: Sequence[Definition]) -> Iterator[Finding]:
    names = ", ".join(definition.name for definition in knobs)
    types = [str(slot.number) for slot in node.slot_types if slot.number]
    if types:
        is_sure = node.input.is_whole or any(
            node.configuration.assignments(f"NUM_SLOTS_TYPE_{number}") for number in types
        )
        problem = f"slot types begin at 1, and this configuration has slots of type {', '.join(types)}: nothing reads that"
        yield Finding(
            "slot types",
            knobs[0].place,
            f"{names}: {problem}",
            "use the number of a type that it has, or leave SLOT_TYPE_0_ out of the names, for slots of every type",
            advice=not is_sure,
        )
    elif not node.input.is_whole:
        yield Finding(
            "slot types",
            knobs[0].place,
            f"{names}: slot types begin at 1: only a node without slot types reads that",
            "leave SLOT_TYPE_0_ out of the names, for every slot of the node, or use the number of a type",
            advice=True,
        )


def _too_much(node: Node, asset: str, total: float, *, is_known: bool) -> Iterator[Finding]:
    asked = [
        (slot, part)
        for slot in node.slot_types
        if not node.is_on(f"SLOT_TYPE_{slot.number}_BACKFILL")
        and (part := amount_of(slot.shares, asset, total))
        # Of an unknown total, only parts can be added up: a part of nothing is nothing.
        and (is_known or part_of(slot.shares, asset) is not None)
    ]
    if sum(slot.count * part for slot, part in asked) <= total * (1 + 1e-9):
        return
    shown = [f"{part:g}" if is_known else f"{100 * part / total:g}%" for _, part in asked]
    said = " + ".join(
        f"{slot.count} x {part}" if slot.count > 1 else part for (slot, _), part in zip(asked, shown)
    )
    yield _finding(node, asked[-1][0], f"{asset} = {said}" + (f" of {total:g}" if is_known else ""))


def _finding(node: Node, slot: SlotType, asked: str) -> Finding:
    return Finding(
        "slot types",
        node.configuration.place(f"SLOT_TYPE_{slot.number}"),
        f"the slot types want more than the machine has, {asked}: the startd of 23.9.6 ends (Ran out of system resources), "
        "again and again, and that of 25.14.1 makes a broken slot of what is left",
        "let the amounts of all slots be no more than the machine's, or write auto for one of them",
    )


def _unknown(node: Node, slot: SlotType) -> Iterator[Finding]:
    known = {name.lower() for name in (*node.resources, GPUS)}
    for name, text in by_name(slot.shares).items():
        # Parts of what is not there are nothing, and do no harm.
        if is_htcondors(name) or name.lower() in known or not amount_of(slot.shares, name, 0.0):
            continue
        close = difflib.get_close_matches(name.lower(), [*known, "cpus", "ram", "memory", "disk"], 1, 0.6)
        has = ", ".join(["cpus", "memory", "disk", *node.resources])
        yield Finding(
            "slot types",
            node.configuration.place(f"SLOT_TYPE_{slot.number}"),
            f"SLOT_TYPE_{slot.number}: {name} = {text}, and the machine has no {name} (it has {has}): the startd of 23.9.6 ends "
            "(Unknown attribute), again and again, and that of 25.14.1 makes no slot of the type",
            (f"write {close[0]}" if close else f"declare it, MACHINE_RESOURCE_{name} = AMOUNT")
            + ", or take it out",
        )


def _totals(node: Node, size: Mapping[str, float]) -> Iterator[tuple[str, float, bool]]:
    """Assets, what the machine has of each, and whether that is known; else it may be any."""
    for name, chosen in node.resources.items():
        is_scripted = "INVENTORY_" in chosen.macro.upper()
        if is_scripted and name.lower() in size and is_fixed(node, name):
            yield name, size[name.lower()], True
        else:
            yield name, declared(chosen), not is_scripted
    for asset, knob in (("Cpus", "NUM_CPUS"), ("Memory", "MEMORY")):
        text = node.configuration.text(knob)
        # Memory that is not written is what the startd detects, less what is reserved.
        is_said = bool(node.configuration.assignments(knob)) or (node.input.is_whole and asset == "Cpus")
        is_known = is_said and re.fullmatch(r"\d+(\.\d+)?", text) is not None and float(text) > 0
        if not is_known and asset.lower() in size and is_fixed(node, asset):
            yield asset, size[asset.lower()], True
        else:
            yield asset, float(text) if is_known else 100.0, is_known
