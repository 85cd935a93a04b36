"""What slots of a type get of their machine: SLOT_TYPE_<N>, read as the startd does, and types that want more than there is.

buildSlotRequest and parse_share_value in src/condor_startd.V6/slot_builder.cpp: items end with lines if there are several,
else with commas if there are any, else with blanks; an amount, a part such as 25% or 1/4, or auto.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Optional

from sharectl.adapters.consumption_check_settings import GPUS, Setting
from sharectl.adapters.consumption_check_subject import Node, SlotType, Subject, is_true
from sharectl.adapters.snippet_subject import Finding

_STANDARD = {"cpus": "cpus", "ram": "memory", "memory": "memory", "disk": "disk"}
_OTHERS = ("swap", "virtualmemory")
"""What a slot type may have and no policy asks for."""
_SCALES = {"memory": "m", "disk": "k"}
"""Unit of an amount without suffix."""
_SUFFIXES = "kmgtp"
_NUMBER = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([kmgtp]?)b?", re.IGNORECASE)
DEVICES = 4
"""Of a custom resource whose amount only a script on the node knows."""


def amount_of(shares: str, asset: str, total: float) -> Optional[float]:
    """What a slot of that type has of an asset of which its machine has ``total``; None if the startd divides what is left."""
    if not shares.strip():
        return None
    said, rest = _items(shares)
    text = next((said[name] for name in said if _meant(name, asset)), rest)
    if match := re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", text):
        return total * float(match[1]) / 100
    if match := re.fullmatch(r"(\d+(?:\.\d+)?)\s*/\s*(\d+(?:\.\d+)?)", text):
        return total * float(match[1]) / float(match[2]) if float(match[2]) else None
    if match := _NUMBER.fullmatch(text):
        steps = 0
        if match[2] and (unit := _SCALES.get(asset.lower())):
            steps = max(0, _SUFFIXES.index(match[2].lower()) - _SUFFIXES.index(unit))
        return float(match[1]) * float(1024**steps)
    return None


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


def _too_much(node: Node, asset: str, total: float, *, is_known: bool) -> Iterator[Finding]:
    asked = [
        (slot, part)
        for slot in node.slot_types
        if not is_true(node.configuration.text(f"SLOT_TYPE_{slot.number}_BACKFILL"))
        and (part := amount_of(slot.shares, asset, total))
        # Of an unknown total, only parts can be added up: a part of nothing is nothing.
        and (is_known or not amount_of(slot.shares, asset, 0.0))
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
    for name, text in _items(slot.shares)[0].items():
        is_standard = any(full.startswith(name.lower()) for full in (*_STANDARD, *_OTHERS))
        match = _NUMBER.fullmatch(text)
        if is_standard or name.lower() in known or match is None or not float(match[1]):
            continue
        close = difflib.get_close_matches(name.lower(), [*known, *_STANDARD], 1, 0.6)
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


def _items(shares: str) -> tuple[Mapping[str, str], str]:
    """Name → what is said of it, and what is said of all others."""
    between = r"\n" if "\n" in shares.strip() else r"[,\n]" if "," in shares else r"\s"
    said, rest = {}, "auto"
    for item in re.split(between, shares):
        name, is_one, text = item.partition("=")
        if is_one:
            said[name.strip()] = text.partition(":")[0].strip()
        elif item.strip():
            rest = item.strip()
    return said, rest


def _meant(name: str, asset: str) -> bool:
    """Whether an item is about an asset: HTCondor's own may be cut short."""
    if name.lower() == asset.lower():
        return True
    # The first of them that begins so, as the startd asks one after the other.
    full = next((full for full in (*_STANDARD, *_OTHERS) if name and full.startswith(name.lower())), "")
    return _STANDARD.get(full) == asset.lower()
