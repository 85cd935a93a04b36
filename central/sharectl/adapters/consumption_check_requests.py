"""Slots and jobs that policies are tried on: sizes of slots, and requests that condor_submit makes.

Nothing here is left to chance: the same configuration is always tried on the same slots and jobs. A generator such as
hypothesis's would find other faults on another day, and would be needed on every machine where policies are checked;
the tests use it to look for what these requests miss.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Optional

from sharectl.adapters.consumption_check_shares import declared, is_fixed, of_slot
from sharectl.adapters.consumption_check_subject import STANDARD_ASSETS, Node, SlotType
from sharectl.core.references import MY, references
from sharectl.core.slot_shares import amount_of

Ad = Mapping[str, str]
Amounts = Mapping[str, float]
"""Asset → amount, HTCondor's units: cores, MiB of Memory, KiB of Disk."""

NODES = ((8, 512), (8, 4096), (32, 1024), (32, 8192), (256, 8192))
"""Cores, and MiB for each, of nodes that a policy may be meant for, where the node itself is not known."""
DISK_KIB_PER_CORE = 10 * 1024 * 1024

_CPUS = (1, 3, 8)
_MEMORY_MIB = (1, 100, 1000, 1024, 4097)
_DISK_KIB = (1, 1000, 1048576)
_CUSTOM = (None, 0, 1)
_MOST_ON_THE_GRID = 200
_DRAWN = 50
_SEED = 20130819


def sizes(node: Node, slot: SlotType, said: Mapping[str, float]) -> tuple[tuple[Amounts, ...], bool]:
    """Amounts of slots of that type, and whether they are this node's; else they are those of all kinds of nodes."""
    text = node.configuration.text
    known = {
        asset: of_slot(node, slot, asset, amount) if is_fixed(node, asset) else amount
        for asset, amount in said.items()
    }
    if node.input.is_whole:
        memory = _number(text("MEMORY"))
        detected, reserved = _number(text("DETECTED_MEMORY")), _number(text("RESERVED_MEMORY")) or 0
        memory = detected - reserved if memory is None and detected is not None else memory
        for asset, total in (("Cpus", _number(text("NUM_CPUS"))), ("Memory", memory)):
            if total is not None:
                known.setdefault(asset.lower(), of_slot(node, slot, asset, total))
    for asset in ("Cpus", "Memory", "Disk"):
        # A part of what is not known is nothing.
        if told := amount_of(slot.shares, asset, 0.0):
            known.setdefault(asset.lower(), told)
    found = []
    for cores, mib_per_core in NODES:
        cpus = known.get("cpus", cores)
        memory = known.get("memory", cpus * mib_per_core)
        amounts = {
            "Cpus": cpus,
            "Memory": memory,
            "Disk": known.get("disk", cpus * DISK_KIB_PER_CORE),
            **{
                name: known.get(name.lower(), of_slot(node, slot, name, declared(chosen)))
                for name, chosen in node.resources.items()
            },
        }
        if amounts not in found:
            found.append(amounts)
    return tuple(found), {"cpus", "memory"} <= known.keys()


def slot_ad(node: Node, slot: SlotType, whole: Amounts, left: Optional[Amounts] = None) -> dict[str, str]:
    """A partitionable slot's ad, as far as policies and weights can see it; ``left`` of what it had."""
    return {**_common(node, slot, left or whole, whole), "PartitionableSlot": "true", "SlotTypeID": "1"}


def dynamic_slot_ad(node: Node, slot: SlotType, taken: Amounts, whole: Amounts) -> dict[str, str]:
    """The dynamic slot that a startd makes for what a job takes: whole numbers, at least a core and a MiB.

    create_dslot in src/condor_startd.V6/Resource.cpp, publish in ResAttributes.cpp. Disk gets some more.
    """
    amounts = {
        asset: {"Cpus": max(1, int(amount + 0.1)), "Memory": max(1, int(amount))}.get(
            asset, math.ceil(amount) + 1024 if asset == "Disk" else int(amount)
        )
        for asset, amount in taken.items()
        if math.isfinite(amount)
    }
    machine = {f"Total{asset}": _text(amount) for asset, amount in whole.items()}
    return {**_common(node, slot, amounts, amounts), **machine, "DynamicSlot": "true", "SlotTypeID": "-1"}


def smallest(assets: Iterable[str], *, with_custom: bool) -> dict[str, str]:
    """The smallest ordinary job: one of everything, or of all but custom resources."""
    return {f"Request{asset}": "1" for asset in assets if with_custom or asset in STANDARD_ASSETS}


def bare_minimum(assets: Sequence[str]) -> list[dict[str, str]]:
    """Jobs that take next to nothing: one of a single asset and none of the others, or none of a single one."""
    none = {f"Request{asset}": "0" for asset in assets}
    one = dict.fromkeys(none, "1")
    return [
        *({**none, f"Request{asset}": "1"} for asset in assets),
        *({**one, f"Request{asset}": "0"} for asset in assets),
        one,
        none,
    ]


def ordinary(assets: Sequence[str], others: Sequence[str]) -> list[dict[str, str]]:
    """Requests that jobs make: a grid, some drawn at will, and of a single asset none.

    condor_submit writes RequestCpus, RequestMemory and RequestDisk into every job, and refuses 0 cores.

    Parameters
    ----------
    others
        Further attributes of jobs that the policies ask for.
    """
    levels: list[Sequence[Optional[float]]] = [
        {"Cpus": _CPUS, "Memory": _MEMORY_MIB, "Disk": _DISK_KIB}.get(asset, _CUSTOM) for asset in assets
    ]
    grid = list(itertools.islice(itertools.product(*levels), 50_000))
    draw = random.Random(_SEED)
    chosen = grid if len(grid) <= _MOST_ON_THE_GRID else draw.sample(grid, _MOST_ON_THE_GRID)
    chosen += [tuple(_drawn(draw, asset) for asset in assets) for _ in range(_DRAWN)]
    jobs = [_requests(assets, amounts) for amounts in chosen]
    one = smallest(assets, with_custom=True)
    custom = [name for name in one if name not in smallest(STANDARD_ASSETS, with_custom=True)]
    jobs += [{name: text for name, text in one.items() if name != left} for left in custom]
    jobs += [{**one, name: "0"} for name in one if name != "RequestCpus"]
    jobs += [{**one, other: value} for other in others for value in ("0", "1")]
    return [one, *jobs]


def other_attributes(slot: SlotType, readable: Mapping[str, str]) -> tuple[str, ...]:
    """Attributes of jobs, beyond requests of the slot's assets, that the policies ask for."""
    requests = {f"request{asset}".lower() for asset in slot.policies}
    names = {
        reference.name.lower(): reference.name
        for policy in slot.policies.values()
        for reference in references(readable.get(policy.text, ""))
        if reference.scope != MY
    }
    return tuple(name for lower, name in sorted(names.items()) if lower not in requests)


def _common(node: Node, slot: SlotType, amounts: Amounts, whole: Amounts) -> dict[str, str]:
    ad = {"Name": '"slot1@node"', "MachineResources": f'"{" ".join((*amounts, "Swap"))}"'}
    ad.update({name: text for name, text in node.attributes.items() if text})
    for asset, amount in amounts.items():
        ad[asset] = _text(amount)
        ad[f"TotalSlot{asset}"] = ad[f"Total{asset}"] = _text(whole[asset])
    ad.update({f"Consumption{asset}": policy.text for asset, policy in slot.policies.items()})
    ad["SlotWeight"] = slot.weight.text
    return ad


def _requests(assets: Sequence[str], amounts: Sequence[Optional[float]]) -> dict[str, str]:
    return {f"Request{asset}": _text(amount) for asset, amount in zip(assets, amounts) if amount is not None}


def _drawn(draw: random.Random, asset: str) -> Optional[float]:
    if asset not in STANDARD_ASSETS:
        return draw.choice([None, 0, 1, 2, 3])
    return int(2 ** draw.uniform(0, {"Cpus": 5, "Memory": 15}.get(asset, 25)))


def _number(text: str) -> Optional[float]:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _text(amount: float) -> str:
    return str(int(amount)) if amount == int(amount) else repr(amount)
