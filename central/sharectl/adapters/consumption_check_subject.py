"""What the checks of consumption policies look at: the slot types that a configuration makes, and what each has.

A knob of a slot is looked for as the startd does (SlotType::param in src/condor_startd.V6/Resource.cpp): with
SLOT_TYPE_<N>_ before it, then without, then what HTCondor has for its default.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Optional

from sharectl.adapters.condor_config import Configuration
from sharectl.adapters.condor_process import CondorProcess
from sharectl.adapters.consumption_check_input import Input
from sharectl.adapters.consumption_check_settings import (
    DETECT_GPUS,
    GPUS_FOUND,
    Setting,
    booleans_of,
    resources_of,
    setting,
)
from sharectl.adapters.consumption_policy import in_sequence, matches
from sharectl.core.match_cost import Match

Ad = Mapping[str, str]
POLICY, WEIGHT, NUM_CLAIMS = "CONSUMPTION_POLICY", "SLOT_WEIGHT", "NUM_CLAIMS"
SCHEDD_WEIGHT, SCHEDD_USES_WEIGHT = "SCHEDD_SLOT_WEIGHT", "SCHEDD_USE_SLOT_WEIGHT"
LEFTOVERS = "CLAIM_PARTITIONABLE_LEFTOVERS"
ATTRIBUTE_LISTS = ("STARTD_ATTRS", "STARTD_EXPRS")
STANDARD_ASSETS = ("Cpus", "Memory", "Disk")
NEGOTIATORS = (
    "NEGOTIATOR_USE_SLOT_WEIGHTS",
    "NEGOTIATOR_NUM_THREADS",
    "NEGOTIATOR_DEPTH_FIRST",
    "FORCE_NEGOTIATOR_SLOT_WEIGHT",
    "ALLOW_PSLOT_PREEMPTION",
    "NEGOTIATOR_CONSIDER_PREEMPTION",
    "NEGOTIATOR_MATCHLIST_CACHING",
)
REQUESTS = {asset: f"MODIFY_REQUEST_EXPR_REQUEST{asset.upper()}" for asset in ("Cpus", "Disk", "Memory")}
"""Asset → what the startd makes of a request of it, in its order."""
MAX_SLOT_TYPES = 10
"""HTCondor's own default of that knob."""

MACROS = (
    POLICY,
    WEIGHT,
    NUM_CLAIMS,
    LEFTOVERS,
    *(f"CONSUMPTION_{asset.upper()}" for asset in STANDARD_ASSETS),
    *ATTRIBUTE_LISTS,
    *NEGOTIATORS,
    *REQUESTS.values(),
    "ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS",
    "CLAIM_RECYCLING_CONSIDER_LIMITS",
    "MACHINE_RESOURCE_NAMES",
    GPUS_FOUND,
    DETECT_GPUS,
    "MAX_SLOT_TYPES",
    "DAEMON_LIST",
    "GROUP_NAMES",
    "START",
    "NUM_SLOTS",
    SCHEDD_WEIGHT,
    SCHEDD_USES_WEIGHT,
    "SLOT_TYPE_0_PARTITIONABLE",
    "NUM_CPUS",
    "MEMORY",
    "DETECTED_MEMORY",
    "RESERVED_MEMORY",
)
"""What the checks want expanded, whether or not a file sets it."""

_TYPED = re.compile(
    r"(?:STARTD\.)?(?:NUM_)?(?:SLOT_TYPE|SLOTS_TYPE)_(?P<number>\d+)(?:_(?P<knob>\w+))?", re.IGNORECASE
)


@dataclass(frozen=True)
class SlotType:
    """Slots of one type of one node."""

    number: int
    partitionable: bool
    policies: Mapping[str, Setting]
    """Asset, as it is called in the slot → its CONSUMPTION knob."""
    policy: Setting
    """CONSUMPTION_POLICY."""
    wants_policy: bool
    """What HTCondor takes that for."""
    is_misread: bool
    """Whether that or PARTITIONABLE is no boolean, so that what follows is not what is meant."""
    weight: Setting
    claims: Setting
    """NUM_CLAIMS; empty text for HTCondor's own."""
    shares: str
    """SLOT_TYPE_<N>, such as ``cpus=50%, memory=50%``."""
    count: int = 1
    """Slots of that type that the node has."""

    @property
    def name(self) -> str:
        """For people: knobs without a type are for every slot of the node."""
        return f"slot type {self.number}" if self.number else "every slot"

    @property
    def has_policy(self) -> bool:
        """Whether a consumption policy is on, and the slot one that can have it."""
        return self.partitionable and self.wants_policy


@dataclass(frozen=True)
class Node:
    """One configuration that is given, and the slots that it makes."""

    input: Input
    slot_types: tuple[SlotType, ...]
    unused_types: tuple[int, ...]
    """Types that are described but of which the node has no slot."""
    resources: Mapping[str, Setting]
    """Custom resource → the knob that declares it."""
    booleans: Mapping[str, Optional[bool]]
    """Text of a knob that is to be a boolean → what HTCondor takes it for, None for what is none."""

    @property
    def configuration(self) -> Configuration:
        """What HTCondor made of it."""
        return self.input.configuration

    def is_on(self, knob: str) -> bool:
        """Whether a boolean knob is true."""
        return self.boolean(knob) is True

    def boolean(self, knob: str) -> Optional[bool]:
        """What a boolean knob is; None if it is not set, or no boolean."""
        return self.booleans.get(self.configuration.text(knob))

    def runs(self, daemon: str) -> bool:
        """Whether DAEMON_LIST has it."""
        return daemon in {word.upper() for word in self.configuration.words("DAEMON_LIST")}

    @property
    def is_access_point(self) -> bool:
        """Whether it has a schedd and no startd, so no slots."""
        return self.runs("SCHEDD") and not self.runs("STARTD")

    @property
    def with_policy(self) -> tuple[SlotType, ...]:
        """Slot types that follow a consumption policy."""
        return tuple(slot for slot in self.slot_types if slot.has_policy)

    @cached_property
    def attributes(self) -> Mapping[str, str]:
        """Attributes of its slots that the configuration gives, name → expression."""
        names = [word for macro in ATTRIBUTE_LISTS for word in self.configuration.words(macro)]
        return {name: text for name in names if (text := self.configuration.text(name))}


@dataclass(frozen=True)
class Subject:
    """All configurations that are given, and what their operator says of a node."""

    nodes: tuple[Node, ...]
    htcondor: CondorProcess
    """Reads and evaluates expressions."""
    size: Mapping[str, float] = field(default_factory=dict)
    """Asset, lower case → amount in one slot, HTCondor's units, where the operator has said it."""
    _tried: dict[str, list[list[Match]]] = field(default_factory=dict)

    def matches(self, slots: Sequence[Ad], jobs: Sequence[Ad]) -> list[list[Match]]:
        """What each slot makes of each job; asked once, however many checks and equal nodes want to know it."""
        key = json.dumps([slots, jobs])
        if key not in self._tried:
            self._tried[key] = matches(self.htcondor, slots, jobs, most=1)
        return self._tried[key]

    def in_sequence(self, slots: Sequence[Ad], jobs: Sequence[Ad]) -> list[list[Match]]:
        """What each slot makes of the jobs one after another; asked once."""
        key = json.dumps(["in sequence", slots, jobs])
        if key not in self._tried:
            self._tried[key] = in_sequence(self.htcondor, slots, jobs)
        return self._tried[key]

    @cached_property
    def slots(self) -> tuple[tuple[Node, SlotType], ...]:
        """Every slot type that follows a policy, with its node."""
        return tuple((node, slot) for node in self.nodes for slot in node.with_policy)

    @cached_property
    def readable(self) -> Mapping[str, str]:
        """Text of every policy and weight → as HTCondor prints it again; without those that it cannot read."""
        texts = sorted(
            {setting.text for _, slot in self.slots for setting in (*slot.policies.values(), slot.weight)}
        )
        printed = self.htcondor.canonical(texts) if texts else []
        return {text: again for text, again in zip(texts, printed) if again is not None and text.strip()}

    @cached_property
    def sound(self) -> tuple[tuple[Node, SlotType], ...]:
        """Those of `slots` whose policies and weight HTCondor can read, so that they can be tried."""
        return tuple(
            (node, slot)
            for node, slot in self.slots
            if all(setting.text in self.readable for setting in (*slot.policies.values(), slot.weight))
        )


def node_of(given: Input, htcondor: CondorProcess, *, has_gpus: bool = False) -> Node:
    """The slots that a configuration makes; ``has_gpus`` where it is known that the startd will find some."""
    configuration = given.configuration
    read = booleans_of(configuration, htcondor)
    resources = resources_of(configuration, has_gpus=has_gpus)
    assets = (*STANDARD_ASSETS, *resources)
    numbers, unused = _types(given)
    slot_types = tuple(_slot_type(configuration, number, assets, read) for number in numbers)
    return Node(given, slot_types, unused, resources, read)


def typed(knob: str) -> Optional[tuple[int, str]]:
    """N and the rest of ``SLOT_TYPE_<N>_<REST>`` (or NUM_SLOTS_TYPE_<N>, whose rest is empty); None for others."""
    match = _TYPED.fullmatch(knob)
    return (int(match["number"]), match["knob"] or "") if match else None


def _slot_type(
    configuration: Configuration, number: int, assets: Iterable[str], read: Mapping[str, Optional[bool]]
) -> SlotType:
    partitionable = setting(configuration, number, "PARTITIONABLE", "")
    policy = setting(configuration, number, POLICY, "False")
    # The startd goes by the knob of all types where that of one type is no boolean (SlotType::type_param_boolean).
    texts = (policy.text, *(configuration.text(knob) for knob in (f"STARTD.{POLICY}", POLICY)))
    wanted = [read[text] for text in texts if read.get(text) is not None]
    own = bool(configuration.assignments(f"SLOT_TYPE_{number}_PARTITIONABLE"))
    # A snippet may leave it to the site's own file; type 0, HTCondor's one slot, is partitionable by itself.
    left_open = number == 0 or not configuration.assignments(f"SLOT_TYPE_{number}")
    return SlotType(
        number=number,
        partitionable=read.get(partitionable.text) is True if own else left_open,
        policies={
            asset: setting(
                configuration,
                number,
                f"CONSUMPTION_{asset}",
                f"ifThenElse(TARGET.Request{asset} =?= undefined, 0, TARGET.Request{asset})",
            )
            for asset in assets
        },
        policy=policy,
        wants_policy=bool(wanted and wanted[0]),
        is_misread=any(knob.text and read.get(knob.text, False) is None for knob in (partitionable, policy)),
        weight=setting(configuration, number, WEIGHT, "Cpus"),
        claims=setting(configuration, number, NUM_CLAIMS, ""),
        shares=configuration.text(f"SLOT_TYPE_{number}"),
        count=int(count)
        if (count := configuration.text(f"NUM_SLOTS_TYPE_{number}").strip()).isdecimal()
        else 1,
    )


def _types(given: Input) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Slot types of which the node has slots, and those that are described in vain."""
    configuration = given.configuration
    numbered: Sequence[int] = sorted(
        {found[0] for definition in configuration.definitions if (found := typed(definition.name))}
    )
    counts = {number: configuration.text(f"NUM_SLOTS_TYPE_{number}").strip() for number in numbered if number}
    present = tuple(number for number, count in counts.items() if count not in ("", "0"))
    described = tuple(number for number in numbered if number and number not in present)
    if given.is_whole:
        return present or _plain(configuration), described
    # Part of a configuration may count on another part that has the slots.
    assumed = tuple(
        number
        for number in described
        if counts[number] == "" and not configuration.assignments(f"SLOT_TYPE_{number}")
    )
    there = tuple(sorted((*present, *assumed)))
    unused = tuple(number for number in described if number not in assumed)
    return there or _plain(configuration), unused


def _plain(configuration: Configuration) -> tuple[int, ...]:
    return () if configuration.text("NUM_SLOTS").strip() == "0" else (0,)
