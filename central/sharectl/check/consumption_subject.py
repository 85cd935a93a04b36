"""Slots that a configuration makes: types, consumption policies, weights, and trials of them."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Optional, cast

from sharectl.check.findings import plain
from sharectl.condor.configuration import Configuration, booleans, daemons_of
from sharectl.condor.library import CondorProcess
from sharectl.consumption.cost import Look, Refusals, refusals

POLICY, WEIGHT = "CONSUMPTION_POLICY", "SLOT_WEIGHT"
LEFTOVERS = "CLAIM_PARTITIONABLE_LEFTOVERS"
SCHEDD_WEIGHT, SCHEDD_USES_WEIGHT = "SCHEDD_SLOT_WEIGHT", "SCHEDD_USE_SLOT_WEIGHT"
ATTRIBUTE_LISTS = ("STARTD_ATTRS", "STARTD_EXPRS")
STANDARD_ASSETS = ("Cpus", "Memory", "Disk")
GPUS = "GPUs"
MACHINE = {"Cpus": 32.0, "Memory": 262144.0, "Disk": 335544320.0}
"""Machine that policies are tried on where the configuration does not say its size."""
DEVICES = 4.0
"""Units of a custom resource that is a list of names, or known to a script on the node."""

BOOLEANS = (
    *(POLICY, LEFTOVERS, "ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS", SCHEDD_USES_WEIGHT),
    *("NEGOTIATOR_USE_SLOT_WEIGHTS", "NEGOTIATOR_DEPTH_FIRST"),
)
MACROS = (
    *(*BOOLEANS, *ATTRIBUTE_LISTS, WEIGHT, SCHEDD_WEIGHT),
    *(f"CONSUMPTION_{asset.upper()}" for asset in STANDARD_ASSETS),
    *("MACHINE_RESOURCE_NAMES", "DAEMON_LIST", "NUM_CPUS", "MEMORY", "DETECTED_MEMORY"),
)
"""Macros that the checks want expanded, whether or not a file sets them."""

_RESOURCE = re.compile(r"MACHINE_RESOURCE_(?:INVENTORY_)?(?P<name>(?!NAMES$)\w+)", re.IGNORECASE)
_TYPED = re.compile(
    r"(?:STARTD\.)?(?:NUM_)?(?:SLOT_TYPE|SLOTS_TYPE)_(?P<number>\d+)(?:_(?P<knob>\w+))?",
    re.IGNORECASE,
)
BOOLEAN = re.compile(
    rf"(\w+\.)?({'|'.join(BOOLEANS)}|SLOT_TYPE_\d+_(PARTITIONABLE|{POLICY}|BACKFILL|HIDDEN))",
    re.IGNORECASE | re.ASCII,
)

Amounts = Mapping[str, float]
"""Asset → amount, in HTCondor's units: cores, MiB of Memory, KiB of Disk."""
Ad = Mapping[str, str]
Taken = Mapping[str, Optional[float]]
"""Asset → amount that the policy takes; None if that is no number."""

_SHAPES = (*itertools.product((1, 3, 8), (1, 1000, 4097), (1, 1_048_576)), (1, 0, 1), (1, 1, 0))
"""Cores, Memory and Disk of the jobs that are tried; condor_submit refuses 0 cores."""


@dataclass(frozen=True)
class SlotKnob:
    """A knob for slots of one type."""

    macro: str
    """Name under which it is set, or would be."""
    text: str
    """Expanded; HTCondor's default if no file sets it."""
    place: str
    """``file:line``; the macro if no file sets it."""


@dataclass(frozen=True, eq=False)
class CheckedNode:
    """A configuration, and the slots that it makes."""

    configuration: Configuration
    htcondor: CondorProcess

    def truth(self, text: str) -> Optional[bool]:
        """Boolean that HTCondor takes a text for; None if it is invalid or empty."""
        return booleans([text], self.htcondor)[text]

    def boolean(self, knob: str, daemon: str = "STARTD") -> Optional[bool]:
        """Value of a boolean knob for a daemon; None if it is not set, or invalid."""
        own = f"{daemon}.{knob}"
        name = own if self.configuration.assignments(own) else knob
        return self.truth(self.configuration.text(name))

    def runs(self, daemon: str, *, unless_listed: bool = False) -> bool:
        """True if DAEMON_LIST has it; ``unless_listed`` if the configuration has no such list."""
        daemons = daemons_of(self.configuration)
        return unless_listed if daemons is None else daemon in daemons

    @property
    def is_access_point(self) -> bool:
        """True if it has a schedd and no startd, so no slots."""
        return self.runs("SCHEDD") and not self.runs("STARTD")

    @cached_property
    def resources(self) -> Mapping[str, float]:
        """Custom resource → amount of the machine; GPUs among them where a policy takes some."""
        allowed = [word.lower() for word in self.configuration.words("MACHINE_RESOURCE_NAMES")]
        resources: dict[str, float] = {}
        for part in self.configuration.definitions:
            match, text = _RESOURCE.fullmatch(part.name), self.configuration.text(part.name)
            if match and text and (not allowed or match["name"].lower() in allowed):
                resources[match["name"]] = self.number_of(text) or DEVICES
            elif part.name.upper().endswith("CONSUMPTION_GPUS"):
                resources.setdefault(GPUS, DEVICES)
        return resources

    def number_of(self, text: str) -> Optional[float]:
        """Number that a knob is, also one such as ``4 * 8``."""
        (rows,) = self.htcondor.evaluate([text.strip() or "undefined"])
        return number_of(rows[0][0]) if rows else None

    @cached_property
    def whole(self) -> Amounts:
        """Amounts of the machine, on which policies of all types are tried."""
        configuration, whole = self.configuration, dict(MACHINE)
        knobs = {"NUM_CPUS": "Cpus", "DETECTED_MEMORY": "Memory", "MEMORY": "Memory"}
        for knob, asset in knobs.items():
            if configuration.is_whole or configuration.assignments(knob):
                whole[asset] = self.number_of(configuration.text(knob)) or whole[asset]
        return {**whole, **self.resources}

    @cached_property
    def attributes(self) -> Ad:
        """Attributes of slots that the configuration gives, name → expression."""
        return self.configuration.texts(self.configuration.words(*ATTRIBUTE_LISTS))

    @cached_property
    def slot_types(self) -> tuple[SlotType, ...]:
        """Types of its slots, and those that are described in vain."""
        configuration = self.configuration
        names = [part.name for part in configuration.definitions]
        numbers = sorted({parts[0] for name in names if (parts := typed(name)) and parts[0]})
        texts = {n: configuration.text(f"NUM_SLOTS_TYPE_{n}").strip() or "0" for n in numbers}
        counts = {n: int(text) if text.isdecimal() else 1 for n, text in texts.items()}
        if not configuration.is_whole and not any(counts.values()):
            # Another file may have the slots.
            for n in numbers:
                own = (f"SLOT_TYPE_{n}", f"NUM_SLOTS_TYPE_{n}")
                counts[n] = 0 if any(map(configuration.assignments, own)) else 1
        if not any(counts.values()):
            counts = {0: 1, **counts}
        return tuple(SlotType(self, number, count) for number, count in counts.items())

    @cached_property
    def slots(self) -> tuple[SlotType, ...]:
        """Slot types with a policy."""
        return tuple(slot for slot in self.slot_types if slot.has_policy)

    @cached_property
    def readable(self) -> Mapping[str, str]:
        """Text of a policy or weight → as HTCondor prints it; without the unreadable ones."""
        texts = list({knob.text: None for slot in self.slots for knob in slot.expressions})
        printed = zip(texts, self.htcondor.canonical(texts))
        return {text: again for text, again in printed if again is not None and text.strip()}

    @cached_property
    def tried(self) -> tuple[SlotType, ...]:
        """Slot types whose policies and weight HTCondor can read."""
        readable = self.readable.keys()
        return tuple(s for s in self.slots if readable >= {knob.text for knob in s.expressions})


@dataclass(frozen=True, eq=False)
class SlotType:
    """Slots of one type of a node, and trials of their policy on an empty one."""

    node: CheckedNode
    number: int
    """0: every slot of a node without types."""
    count: int
    """Slots of the node; 0 for a type that is described in vain."""

    def knob(self, knob: str, default: str = "") -> SlotKnob:
        """Knob as the startd looks for it (SlotType::param in Resource.cpp).

        SLOT_TYPE_<N>_ goes first. A name with the daemon's goes before the one without, because
        HTCondor reads the configuration as a startd.
        """
        configuration, own = self.node.configuration, f"SLOT_TYPE_{self.number}_{knob}"
        for name in (f"STARTD.{own}", own, f"STARTD.{knob}", knob):
            text, written = configuration.text(name), configuration.assignments(name)
            if written and (text or name.endswith(own)):
                return SlotKnob(written[-1].name, text, configuration.place(name))
        return SlotKnob(knob, configuration.text(knob) or default, configuration.place(knob))

    @property
    def name(self) -> str:
        """Name for people."""
        return f"slot type {self.number}" if self.number else "every slot"

    @cached_property
    def policies(self) -> Mapping[str, SlotKnob]:
        """Asset, as it is called in the slot → its CONSUMPTION knob."""
        default = "TARGET.Request{0} ?: 0"
        return {a: self.knob(f"CONSUMPTION_{a}", default.format(a)) for a in self.node.whole}

    @cached_property
    def policy(self) -> SlotKnob:
        """CONSUMPTION_POLICY."""
        return self.knob(POLICY, "False")

    @cached_property
    def weight(self) -> SlotKnob:
        """SLOT_WEIGHT."""
        return self.knob(WEIGHT, "Cpus")

    @property
    def expressions(self) -> tuple[SlotKnob, ...]:
        """Policies and weight."""
        return (*self.policies.values(), self.weight)

    @property
    def partitionable(self) -> bool:
        """True if slots of the type are partitionable, or another file may make them so."""
        assignments = self.node.configuration.assignments
        if assignments(f"SLOT_TYPE_{self.number}_PARTITIONABLE"):
            return self.node.truth(self.knob("PARTITIONABLE").text) is True
        return self.number == 0 or not assignments(f"SLOT_TYPE_{self.number}")

    @property
    def wants_policy(self) -> bool:
        """True if it is to have a policy.

        The startd goes by the knob of all types where that of one type is invalid
        (SlotType::type_param_boolean).
        """
        own = self.node.truth(self.policy.text)
        return bool(self.node.truth(self.node.configuration.text(POLICY)) if own is None else own)

    @property
    def has_policy(self) -> bool:
        """True if a consumption policy is on, and there are slots that can have it."""
        return self.count > 0 and self.partitionable and self.wants_policy

    # ---- trials on an empty slot

    @cached_property
    def taken(self) -> tuple[tuple[Ad, Taken], ...]:
        """Jobs as condor_submit makes them, the smallest first, and what the policy takes."""
        custom = list(self.node.resources)
        others = [dict.fromkeys(custom, "1"), dict.fromkeys(custom, "0"), {}] if custom else [{}]
        shapes = [dict(zip(STANDARD_ASSETS, map(str, shape))) for shape in _SHAPES]
        jobs = [_requests({**shape, **other}) for shape in shapes for other in others]
        return tuple(zip(jobs, self.matched(jobs)))

    @cached_property
    def accepted(self) -> tuple[tuple[Ad, Amounts], ...]:
        """Rows of `taken` that the negotiator matches with the empty slot."""
        rows = cast("tuple[tuple[Ad, Amounts], ...]", self.taken)
        return tuple(row for row in rows if not self.refusals(row[1]))

    def refusals(self, taken: Taken) -> Refusals:
        """Reasons of the negotiator against a job that takes this of the empty slot."""
        return refusals(self.node.whole, Look(1.0, taken))

    @cached_property
    def smallest(self) -> tuple[tuple[Ad, Amounts], ...]:
        """Rows of `accepted` for the smallest job, with custom resources and without."""
        return tuple(row for row in self.accepted if set(row[0].values()) == {"1"})

    def cost(self, taken: Taken) -> Optional[float]:
        """Cost of a match; None if a weight is no number."""
        whole = self.node.whole
        rest = {asset: most - (taken[asset] or 0) for asset, most in whole.items()}
        before, after = map(number_of, self.weights([self.slot_ad(whole), self.slot_ad(rest)]))
        return None if before is None or after is None else before - after

    def matched(self, jobs: Sequence[Ad]) -> list[Taken]:
        """Amounts that the negotiator takes; a missing request is 0 for it."""
        zero = _requests(dict.fromkeys(self.node.whole, "0"))
        return self.charges(self.slot_ad(self.node.whole), [{**zero, **job} for job in jobs])

    def charges(self, slot: Ad, jobs: Sequence[Ad]) -> list[Taken]:
        """Amounts that the policy takes in a slot for each job."""
        expressions = [f"MY.Consumption{asset}" for asset in self.node.whole]
        columns = self.node.htcondor.evaluate(expressions, [slot], jobs)
        rows = zip(*(column[0] for column in columns if column))
        return [dict(zip(self.node.whole, map(number_of, row))) for row in rows]

    def weights(self, ads: Sequence[Ad]) -> list[Any]:
        """SlotWeight in each ad."""
        (rows,) = self.node.htcondor.evaluate(["MY.SlotWeight"], ads)
        return [row[0] for row in rows or ()]

    def slot_ad(self, free: Amounts) -> dict[str, str]:
        """Ad of the partitionable slot, as far as policies and weights can see it."""
        own = {"PartitionableSlot": "true", "SlotTypeID": "1"}
        return {**self._ad(free, self.node.whole), **own}

    def dynamic_slot_ad(self, taken: Amounts) -> dict[str, str]:
        """Ad of the dynamic slot for a claim: whole numbers, at least a core and a MiB.

        create_dslot in src/condor_startd.V6/Resource.cpp. Disk gets some more.
        """
        amounts = {asset: float(int(amount + 0.1)) for asset, amount in taken.items()}
        amounts.update({asset: max(1.0, amounts[asset]) for asset in ("Cpus", "Memory")})
        amounts["Disk"] = math.ceil(taken["Disk"]) + 1024.0
        machine = {f"Total{asset}": plain(amount) for asset, amount in self.node.whole.items()}
        own = {"DynamicSlot": "true", "SlotTypeID": "-1"}
        return {**self._ad(amounts, amounts), **machine, **own}

    def _ad(self, free: Amounts, whole: Amounts) -> dict[str, str]:
        ad = {"Name": '"slot1@node"', **self.node.attributes, "SlotWeight": self.weight.text}
        for asset, policy in self.policies.items():
            ad[asset] = plain(free[asset])
            ad[f"TotalSlot{asset}"] = ad[f"Total{asset}"] = plain(whole[asset])
            ad[f"Consumption{asset}"] = policy.text
        return ad


def typed(knob: str) -> Optional[tuple[int, str]]:
    """N and REST of ``SLOT_TYPE_<N>_<REST>``; REST is empty for ``SLOT_TYPE_<N>``; else None."""
    match = _TYPED.fullmatch(knob)
    return (int(match["number"]), match["knob"] or "") if match else None


def number_of(value: Any) -> Optional[float]:
    """Number that a value is for HTCondor, None for any other or an infinite one."""
    number = float(value) if isinstance(value, (int, float)) else math.nan
    return number if math.isfinite(number) else None


def _requests(amounts: Ad) -> dict[str, str]:
    return {f"Request{asset}": amount for asset, amount in amounts.items()}
