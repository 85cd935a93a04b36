"""What slots of each type have on a node, and types that want more than there is.

Slots and jobs that policies are tried on: sizes of slots, and requests that condor_submit makes.

Nothing here is left to chance: the same configuration is always tried on the same slots and jobs. A
generator such as hypothesis's would find other faults on another day, and would be needed on every
machine where policies are checked; the tests use it to look for what these requests miss.

Slots that are filled with the smallest ordinary job again and again: what fits, what each match
costs, what is left.

Checks of policies by trial: what HTCondor's own evaluation of them makes of ordinary jobs, and of
others.
"""

from __future__ import annotations

import difflib
import itertools
import math
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Callable, Optional

from sharectl.check.consumption_subject import (
    GPUS,
    STANDARD_ASSETS,
    Node,
    Setting,
    SlotType,
    Subject,
    typed,
)
from sharectl.check.subject import Finding
from sharectl.condor.configuration import Definition
from sharectl.condor.expressions import MY, references
from sharectl.consumption.cost import Match, Refusal
from sharectl.consumption.policy import amount_of, by_name, is_htcondors, part_of

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
    return (
        float(words[0])
        if len(words) == 1 and re.fullmatch(r"\d+(\.\d+)?", words[0])
        else len(words)
    )


def allotted(subject: Subject) -> Iterator[Finding]:
    """Slot types that want more than the machine has, or something that it has not.

    23.9.6 ends then ("Ran out of system resources", "Unknown attribute"), again and again, and the
    node has no slot at all;
    25.14.1 makes a broken slot of what is left (seen), and by its source none of a type that wants
    what the machine has not.
    """
    for node in subject.nodes:
        for slot in node.slot_types:
            yield from _unknown(node, slot)
        for asset, total, is_known in _totals(node, subject.size):
            yield from _too_much(node, asset, total, is_known=is_known)


def of_type_0(subject: Subject) -> Iterator[Finding]:
    """Knobs of slot type 0, HTCondor's name for every slot of a node without slot types (SlotType::init_types).

    What a slot of it has, and how many there are, may not be said (_checkInvalidParam in
    src/condor_startd.V6/slot_builder.cpp).
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
        f"{definition.name}: slot types begin at 1: the startd of 23.9.6 ends as it starts "
        f"(Can't define {definition.name} in the "
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
        problem = (
            f"slot types begin at 1, and this configuration has slots of type {', '.join(types)}: "
            "nothing reads that"
        )
        yield Finding(
            "slot types",
            knobs[0].place,
            f"{names}: {problem}",
            "use the number of a type that it has, or leave SLOT_TYPE_0_ out of the names, for "
            "slots of every type",
            advice=not is_sure,
        )
    elif not node.input.is_whole:
        yield Finding(
            "slot types",
            knobs[0].place,
            f"{names}: slot types begin at 1: only a node without slot types reads that",
            "leave SLOT_TYPE_0_ out of the names, for every slot of the node, or use the number "
            "of a type",
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
        f"{slot.count} x {part}" if slot.count > 1 else part
        for (slot, _), part in zip(asked, shown)
    )
    yield _finding(node, asked[-1][0], f"{asset} = {said}" + (f" of {total:g}" if is_known else ""))


def _finding(node: Node, slot: SlotType, asked: str) -> Finding:
    return Finding(
        "slot types",
        node.configuration.place(f"SLOT_TYPE_{slot.number}"),
        f"the slot types want more than the machine has, {asked}: the startd of 23.9.6 ends "
        "(Ran out of system resources), "
        "again and again, and that of 25.14.1 makes a broken slot of what is left",
        "let the amounts of all slots be no more than the machine's, or write auto for one of them",
    )


def _unknown(node: Node, slot: SlotType) -> Iterator[Finding]:
    known = {name.lower() for name in (*node.resources, GPUS)}
    for name, text in by_name(slot.shares).items():
        # Parts of what is not there are nothing, and do no harm.
        if is_htcondors(name) or name.lower() in known or not amount_of(slot.shares, name, 0.0):
            continue
        close = difflib.get_close_matches(
            name.lower(), [*known, "cpus", "ram", "memory", "disk"], 1, 0.6
        )
        has = ", ".join(["cpus", "memory", "disk", *node.resources])
        yield Finding(
            "slot types",
            node.configuration.place(f"SLOT_TYPE_{slot.number}"),
            f"SLOT_TYPE_{slot.number}: {name} = {text}, and the machine has no {name} (it has "
            f"{has}): the startd of 23.9.6 ends "
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
        is_said = bool(node.configuration.assignments(knob)) or (
            node.input.is_whole and asset == "Cpus"
        )
        is_known = is_said and re.fullmatch(r"\d+(\.\d+)?", text) is not None and float(text) > 0
        if not is_known and asset.lower() in size and is_fixed(node, asset):
            yield asset, size[asset.lower()], True
        else:
            yield asset, float(text) if is_known else 100.0, is_known


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


def sizes(
    node: Node, slot: SlotType, said: Mapping[str, float]
) -> tuple[tuple[Amounts, ...], bool]:
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


def slot_ad(
    node: Node, slot: SlotType, whole: Amounts, left: Optional[Amounts] = None
) -> dict[str, str]:
    """A partitionable slot's ad, as far as policies and weights can see it; ``left`` of what it had."""
    return {
        **_common(node, slot, left or whole, whole),
        "PartitionableSlot": "true",
        "SlotTypeID": "1",
    }


def dynamic_slot_ad(node: Node, slot: SlotType, taken: Amounts, whole: Amounts) -> dict[str, str]:
    """The dynamic slot that a startd makes for what a job takes: whole numbers, at least a core and a MiB.

    create_dslot in src/condor_startd.V6/Resource.cpp, publish in ResAttributes.cpp. Disk gets some
    more.
    """
    amounts = {
        asset: {"Cpus": max(1, int(amount + 0.1)), "Memory": max(1, int(amount))}.get(
            asset, math.ceil(amount) + 1024 if asset == "Disk" else int(amount)
        )
        for asset, amount in taken.items()
        if math.isfinite(amount)
    }
    machine = {f"Total{asset}": _text(amount) for asset, amount in whole.items()}
    return {
        **_common(node, slot, amounts, amounts),
        **machine,
        "DynamicSlot": "true",
        "SlotTypeID": "-1",
    }


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

    condor_submit writes RequestCpus, RequestMemory and RequestDisk into every job, and refuses 0
    cores.

    Parameters
    ----------
    others
        Further attributes of jobs that the policies ask for.
    """
    levels: list[Sequence[Optional[float]]] = [
        {"Cpus": _CPUS, "Memory": _MEMORY_MIB, "Disk": _DISK_KIB}.get(asset, _CUSTOM)
        for asset in assets
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
    return {
        f"Request{asset}": _text(amount)
        for asset, amount in zip(assets, amounts)
        if amount is not None
    }


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


MOST_CLAIMS = 512
"""Claims that are followed on a slot of a check: more than the cores of any node."""
_AT_ONCE = 32
_SIZES = 4
"""Slots that are filled: the larger ones only for policies to which the smaller are too small."""


@dataclass(frozen=True)
class Filled:
    """A slot that is filled with one job again and again."""

    node: Node
    slot: SlotType
    whole: Amounts
    job: Ad
    claims: tuple[Match, ...]
    """Those that were made, in order."""
    left: Amounts
    is_full: bool
    """Whether there was room for no more."""

    @property
    def cost(self) -> Optional[float]:
        """Of the first match."""
        return self.claims[0].cost if self.claims else None


def filled_slots(subject: Subject) -> Iterator[list[Filled]]:
    """Each slot, of all sizes that it may have, filled with the smallest ordinary job that it takes."""
    for found in filled_with_each(subject):
        yield found[0]


def filled_with_each(subject: Subject) -> Iterator[list[list[Filled]]]:
    """For each slot that takes any, each kind of smallest job; and for each of these the sizes that the slot may have.

    First the job that requests one of everything, then the one that requests no custom resource.
    """
    for node, slot in subject.sound:
        amounts, _ = sizes(node, slot, subject.size)
        found = []
        jobs = [
            smallest(slot.policies, with_custom=True),
            smallest(slot.policies, with_custom=False),
        ]
        for job in jobs if jobs[0] != jobs[1] else jobs[:1]:
            runs = (_filled(subject, node, slot, whole, job) for whole in amounts)
            filled = list(islice((one for one in runs if one.claims), _SIZES))
            if filled and all(match.cost is not None for one in filled for match in one.claims):
                found.append(filled)
        if found:
            yield found


def after(left: Amounts, match: Match) -> dict[str, float]:
    """What is left of the assets after a match."""
    taken = match.claim.consumed if match.claim is not None else {}
    return {asset: amount - taken.get(asset, 0.0) for asset, amount in left.items()}


def _filled(subject: Subject, node: Node, slot: SlotType, whole: Amounts, job: Ad) -> Filled:
    made: list[Match] = []
    left = dict(whole)
    is_full = False
    while not is_full and len(made) < MOST_CLAIMS:
        (run,) = subject.in_sequence([slot_ad(node, slot, whole, left)], [job] * _AT_ONCE)
        accepted = [match for match in run if not match.refused]
        is_full = len(accepted) < len(run)
        for match in accepted:
            left = after(left, match)
        made += accepted
    return Filled(node, slot, whole, job, tuple(made), left, is_full)


_SHORT = frozenset({Refusal.SHORT})
Wrong = Callable[[Match, str], bool]


def numbers(subject: Subject) -> Iterator[Finding]:
    """Policies that are undefined, an error, or negative, for ordinary jobs.

    cp_compute_consumption makes -999 of what is no number, and cp_sufficient_assets refuses what is
    negative.
    """
    for node, slot in subject.sound:
        jobs = ordinary(tuple(slot.policies), other_attributes(slot, subject.readable))
        found = tried(subject, node, slot, jobs)
        for asset, policy in slot.policies.items():
            for wrong, said in ((_no_number, "is no number"), (_negative, "is negative")):
                failed = [job for job, match in zip(jobs, found) if wrong(match, asset)]
                if failed:
                    yield Finding(
                        "numbers",
                        policy.place,
                        f"{policy.macro} {said} for {_many(failed, jobs)}: the negotiator "
                        "refuses them, with a warning in "
                        "its log at each look",
                        _remedy(policy, asset, failed[0]),
                    )
                    break


def zero(subject: Subject) -> Iterator[Finding]:
    """Policies by which a job takes nothing at all: refused ("Consumption for all assets … was zero")."""
    for node, slot in subject.sound:
        jobs = ordinary(tuple(slot.policies), other_attributes(slot, subject.readable))
        found = tried(subject, node, slot, jobs)
        failed = [
            job
            for job, match in zip(jobs, found)
            if any(refused.why is Refusal.ALL_ZERO for refused in match.refused)
        ]
        if failed:
            policy = slot.policies["Cpus"]
            yield Finding(
                "zero",
                policy.place,
                f"{slot.name}: the policy takes nothing of any asset for {_many(failed, jobs)}: "
                "the negotiator refuses them, with "
                "a warning in its log at each look",
                f"let one policy be positive always, such as {policy.macro} = "
                f"quantize(TARGET.RequestCpus, {{1}})",
            )


def paid_for(subject: Subject) -> Iterator[Finding]:
    """Weights by which a match costs less than nothing."""
    for node, slot in subject.sound:
        assets = tuple(slot.policies)
        others = other_attributes(slot, subject.readable)
        jobs = ordinary(assets, others)
        found = tried(subject, node, slot, jobs)
        failed = [
            (job, match.cost)
            for job, match in zip(jobs, found)
            if not match.refused and match.cost is not None and match.cost < 0
        ]
        if failed:
            job, cost = failed[0]
            yield Finding(
                "cost",
                slot.weight.place,
                f"{slot.weight.macro} grows as assets are taken: a match of a job with "
                f"{said(job)} costs {plain(cost)}, and its "
                "group's usage falls",
                "make the weight one that falls as Cpus, Memory and the other assets do, such "
                "as SLOT_WEIGHT = Cpus",
                advice=True,
            )


def accepted(subject: Subject) -> Iterator[Finding]:
    """Slots on which the smallest job finds no place, even while they are empty."""
    for node, slot in subject.sound:
        assets = tuple(slot.policies)
        jobs = [smallest(assets, with_custom=some) for some in (True, False)]
        amounts, _ = sizes(node, slot, subject.size)
        found = subject.matches([slot_ad(node, slot, size) for size in amounts], jobs)
        refusals = [match.refused for of_slot in found for match in of_slot]
        told_elsewhere = all(
            any(refused.why not in _SHORT for refused in refused_for) for refused_for in refusals
        )
        if all(refusals) and not told_elsewhere:
            short = sorted({asset for refused in refusals[-1] for asset in refused.assets})
            policy = slot.policies[short[0]] if short else slot.policy
            took = found[-1][-1].consumed
            yield Finding(
                "room",
                policy.place,
                f"{slot.name}: no room for any job, one with {said(jobs[-1])} takes "
                f"{amounts_said(took)} of "
                f"{amounts_said(amounts[-1])}",
                f"let {policy.macro} take less",
            )


def said(job: Ad) -> str:
    """A job's requests, for people."""
    return ", ".join(f"{name} = {text}" for name, text in job.items()) or "no request at all"


def tried(subject: Subject, node: Node, slot: SlotType, jobs: Sequence[Ad]) -> list[Match]:
    """Each job on the largest of the slots that the policy may be meant for."""
    amounts, _ = sizes(node, slot, subject.size)
    (found,) = subject.matches([slot_ad(node, slot, amounts[-1])], jobs)
    return found


def _no_number(match: Match, asset: str) -> bool:
    return match.consumed.get(asset) is None


def _negative(match: Match, asset: str) -> bool:
    amount = match.consumed.get(asset)
    return amount is not None and amount < 0


def _remedy(policy: Setting, asset: str, job: Ad) -> str:
    request = f"TARGET.Request{asset}"
    if f"Request{asset}" not in job:
        return f"write ifThenElse({request} =?= undefined, 0, …) where the job may not request any"
    return (
        f"write {policy.macro} = max({{0, {request}}}), or another expression that is a number "
        "for every job"
    )


def _many(failed: Sequence[Ad], of: Sequence[Ad]) -> str:
    shown = f"a job with {said(failed[0])}"
    return f"every job, such as {shown}" if len(failed) == len(of) else shown


def amounts_said(amounts: Mapping[str, Any]) -> str:
    """Amounts of assets, for people."""
    return ", ".join(f"{asset} = {plain(amount)}" for asset, amount in amounts.items())


def plain(amount: Any) -> str:
    """An amount for people: a whole number as it is, of others six digits."""
    if not isinstance(amount, (int, float)):
        return "no number"
    return str(int(amount)) if math.isfinite(amount) and amount == int(amount) else f"{amount:g}"
