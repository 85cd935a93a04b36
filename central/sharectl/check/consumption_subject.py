"""Slots that a configuration makes: types, consumption policies, weights, resources, amounts."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Optional

from sharectl.condor.configuration import Configuration, booleans
from sharectl.condor.library import CondorProcess
from sharectl.consumption.policy import amount_of

POLICY, WEIGHT = "CONSUMPTION_POLICY", "SLOT_WEIGHT"
LEFTOVERS = "CLAIM_PARTITIONABLE_LEFTOVERS"
SCHEDD_WEIGHT, SCHEDD_USES_WEIGHT = "SCHEDD_SLOT_WEIGHT", "SCHEDD_USE_SLOT_WEIGHT"
THREADS, CACHING = "NEGOTIATOR_NUM_THREADS", "NEGOTIATOR_MATCHLIST_CACHING"
ATTRIBUTE_LISTS = ("STARTD_ATTRS", "STARTD_EXPRS")
STANDARD_ASSETS = ("Cpus", "Memory", "Disk")
GPUS = "GPUs"
WHOLE_SLOT = {"Cpus": 32.0, "Memory": 262144.0, "Disk": 335544320.0}
"""Machine that policies are tried on where the configuration does not say its size."""
DEVICES = 4.0
"""Units of a custom resource whose amount only a script on the node knows."""

READERS: Mapping[str, tuple[str, ...]] = {
    POLICY: ("STARTD",),
    LEFTOVERS: ("SCHEDD", "STARTD"),
    "ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS": ("SCHEDD", "STARTD"),
    "CLAIM_RECYCLING_CONSIDER_LIMITS": ("SCHEDD",),
    SCHEDD_USES_WEIGHT: ("SCHEDD",),
    # HTCondor's own CLAIM_PARTITIONABLE_LEFTOVERS is $(NEGOTIATOR_USE_SLOT_WEIGHTS).
    "NEGOTIATOR_USE_SLOT_WEIGHTS": ("NEGOTIATOR", "SCHEDD", "STARTD"),
    "NEGOTIATOR_DEPTH_FIRST": ("NEGOTIATOR",),
    CACHING: ("NEGOTIATOR",),
}
"""Boolean knob → daemons that read it."""
MACROS = (
    *(*READERS, *ATTRIBUTE_LISTS, WEIGHT, SCHEDD_WEIGHT, THREADS, "START"),
    *(f"CONSUMPTION_{asset.upper()}" for asset in STANDARD_ASSETS),
    *("MACHINE_RESOURCE_NAMES", "DAEMON_LIST", "GROUP_NAMES"),
    *("NUM_CPUS", "MEMORY", "DETECTED_MEMORY"),
)
"""Macros that the checks want expanded, whether or not a file sets them."""

_RESOURCE = re.compile(
    r"MACHINE_RESOURCE_(?P<scripted>INVENTORY_)?(?P<name>(?!NAMES$)\w+)", re.IGNORECASE
)
_TYPED = re.compile(
    r"(?:STARTD\.)?(?:NUM_)?(?:SLOT_TYPE|SLOTS_TYPE)_(?P<number>\d+)(?:_(?P<knob>\w+))?",
    re.IGNORECASE,
)
_BOOLEAN = re.compile(
    rf"(\w+\.)?({'|'.join(READERS)}|SLOT_TYPE_\d+_(PARTITIONABLE|{POLICY}|BACKFILL|HIDDEN))",
    re.IGNORECASE | re.ASCII,
)

Amounts = Mapping[str, float]
"""Asset → amount, in HTCondor's units: cores, MiB of Memory, KiB of Disk."""
Ad = Mapping[str, str]
Taken = Mapping[str, Optional[float]]
"""Asset → amount that the policy takes; None if that is no number."""

_SHAPES = (*itertools.product((1, 3, 8), (1, 1000, 4097), (1, 1_048_576)), (1, 0, 1), (1, 1, 0))
"""Cores, Memory and Disk of the jobs that are tried; condor_submit refuses 0 cores."""
MOST_CLAIMS = 512
"""Claims on one slot that are tried: more than the cores of any node."""


@dataclass(frozen=True)
class SlotKnob:
    """A knob for slots of one type."""

    macro: str
    """Name under which it is set, or would be."""
    text: str
    """Expanded; HTCondor's default if no file sets it."""
    place: str
    """``file:line``; the macro if no file sets it."""
    is_default: bool = False


@dataclass(frozen=True)
class SlotType:
    """Slots of one type of a node; number 0 is every slot of a node without types."""

    number: int
    partitionable: bool
    policies: Mapping[str, SlotKnob]
    """Asset, as it is called in the slot → its CONSUMPTION knob."""
    policy: SlotKnob
    """CONSUMPTION_POLICY."""
    wants_policy: bool
    is_misread: bool
    """True if CONSUMPTION_POLICY or PARTITIONABLE is an invalid boolean."""
    weight: SlotKnob
    shares: str
    """SLOT_TYPE_<N>, such as ``cpus=50%, memory=50%``."""
    count: int
    """Slots of the node; 0 for a type that is described in vain."""

    @property
    def name(self) -> str:
        """Name for people."""
        return f"slot type {self.number}" if self.number else "every slot"

    @property
    def has_policy(self) -> bool:
        """True if a consumption policy is on, and there are slots that can have it."""
        return self.count > 0 and self.partitionable and self.wants_policy

    @property
    def expressions(self) -> tuple[SlotKnob, ...]:
        """Policies and weight."""
        return (*self.policies.values(), self.weight)


@dataclass(frozen=True)
class CheckedNode:
    """A configuration, and the slots that it makes."""

    configuration: Configuration
    slot_types: tuple[SlotType, ...]
    resources: Mapping[str, Optional[float]]
    """Custom resource → amount of the machine; None if only a script knows it."""
    booleans: Mapping[str, Optional[bool]]
    """Text of a boolean knob → the boolean that HTCondor takes it for; None for an invalid one."""

    def boolean(self, knob: str) -> Optional[bool]:
        """Value of a boolean knob; None if it is not set, or invalid."""
        return self.booleans.get(self.configuration.text(knob))

    def runs(self, daemon: str) -> bool:
        """True if DAEMON_LIST has it."""
        return daemon in {word.upper() for word in self.configuration.words("DAEMON_LIST")}

    @property
    def is_access_point(self) -> bool:
        """True if it has a schedd and no startd, so no slots."""
        return self.runs("SCHEDD") and not self.runs("STARTD")

    @property
    def wants_policy(self) -> bool:
        """True if any of its slots is to have a consumption policy."""
        return any(slot.wants_policy for slot in self.slot_types if slot.count)

    @property
    def assets(self) -> tuple[str, ...]:
        """Assets of its slots."""
        return (*STANDARD_ASSETS, *self.resources)

    @cached_property
    def attributes(self) -> Mapping[str, str]:
        """Attributes of slots that the configuration gives, name → expression."""
        names = [word for macro in ATTRIBUTE_LISTS for word in self.configuration.words(macro)]
        return {name: text for name in names if (text := self.configuration.text(name))}

    def total(self, asset: str) -> Optional[float]:
        """Amount of the machine; None if the configuration does not say it."""
        if asset not in STANDARD_ASSETS:
            return self.resources[asset]
        knob = {"Cpus": "NUM_CPUS", "Memory": "MEMORY"}.get(asset, "")
        if not (self.configuration.is_whole or self.configuration.assignments(knob)):
            return None
        amount = _number(self.configuration.text(knob))
        if amount is None and asset == "Memory":
            return _number(self.configuration.text("DETECTED_MEMORY"))
        return amount

    def whole(self, slot: SlotType, size: Mapping[str, float]) -> dict[str, float]:
        """Amounts of an empty slot of a type.

        ``size`` is the operator's word of a slot: asset, lower case → amount.
        """
        amounts: dict[str, float] = {}
        for asset in self.assets:
            total = self.total(asset)
            if total is None and asset != "Cpus" and asset in WHOLE_SLOT:
                total = WHOLE_SLOT[asset] / WHOLE_SLOT["Cpus"] * amounts["Cpus"]
            total = WHOLE_SLOT.get(asset, DEVICES) if total is None else total
            is_own = amount_of(slot.shares, asset, 0.0)
            stated = None if is_own else size.get(asset.lower())
            amounts[asset] = self._part(slot, asset, total) if stated is None else stated
        return amounts

    def _part(self, slot: SlotType, asset: str, total: float) -> float:
        """Amount of a slot; types that do not say theirs divide evenly what the others leave."""
        parts = {other.number: amount_of(other.shares, asset, total) for other in self.slot_types}
        own = parts[slot.number]
        if own is not None:
            return own
        taken = sum(other.count * (parts[other.number] or 0) for other in self.slot_types)
        among = sum(other.count for other in self.slot_types if parts[other.number] is None)
        return max(0.0, total - taken) / among


@dataclass(frozen=True)
class PolicyTrial:
    """A slot with a policy that HTCondor can read, empty."""

    htcondor: CondorProcess
    node: CheckedNode
    slot: SlotType
    whole: Amounts
    """Amounts of the empty slot."""

    @cached_property
    def jobs(self) -> tuple[Ad, ...]:
        """Jobs as condor_submit makes them, the smallest first."""
        custom = [asset for asset in self.whole if asset not in STANDARD_ASSETS]
        others = [dict.fromkeys(custom, "1"), dict.fromkeys(custom, "0"), {}] if custom else [{}]
        return tuple(
            requests({**dict(zip(STANDARD_ASSETS, map(str, shape))), **other})
            for shape in _SHAPES
            for other in others
        )

    @cached_property
    def taken(self) -> tuple[tuple[Ad, Taken], ...]:
        """Each of `jobs`, and what the policy takes of the empty slot for it."""
        return tuple(zip(self.jobs, self.charges(self.whole, self.jobs)))

    @cached_property
    def accepted(self) -> tuple[tuple[Ad, Amounts], ...]:
        """Rows of `taken` for which the empty slot has room."""
        return tuple((job, taken) for job, taken in self.taken if fits(taken, self.whole))  # type: ignore[misc]

    @cached_property
    def fillings(self) -> tuple[tuple[Ad, tuple[Amounts, ...]], ...]:
        """Smallest job, with custom resources and without → `states` of the slot."""
        smallest = [job for job, _ in self.accepted if set(job.values()) == {"1"}]
        return tuple((job, self.states(self.whole, job)) for job in smallest)

    def states(self, free: Amounts, job: Ad, most: int = MOST_CLAIMS) -> tuple[Amounts, ...]:
        """Amounts of the slot while it is filled with one job, until that finds no room."""
        states = [free]
        while len(states) <= min(most, self.whole["Cpus"] + 1):
            (taken,) = self.charges(states[-1], [job])
            if not fits(taken, states[-1]):
                break
            states.append({name: most - (taken[name] or 0) for name, most in states[-1].items()})
        return tuple(states)

    def charges(self, free: Amounts, jobs: Sequence[Ad]) -> list[Taken]:
        """Amounts that the policy takes; the negotiator takes a missing request for 0."""
        zero = requests(dict.fromkeys(self.whole, "0"))
        columns = self.evaluated(self.slot_ad(free), [{**zero, **job} for job in jobs])
        return [dict(zip(self.whole, row)) for row in zip(*columns)]

    def evaluated(self, slot: Ad, jobs: Sequence[Ad]) -> list[list[Optional[float]]]:
        """Charges of each asset, for each job."""
        expressions = [f"MY.Consumption{asset}" for asset in self.whole]
        columns = self.htcondor.evaluate(expressions, [slot], jobs)
        return [[number_of(value) for value in column[0]] for column in columns if column]

    def weights(self, ads: Sequence[Ad]) -> list[Any]:
        """SlotWeight in each ad."""
        (rows,) = self.htcondor.evaluate(["MY.SlotWeight"], ads)
        return [row[0] for row in rows or ()]

    def costs(self, states: Sequence[Amounts]) -> list[Optional[float]]:
        """Cost of each match in `states`; None where a weight is no number."""
        weights = [number_of(weight) for weight in self.weights(list(map(self.slot_ad, states)))]
        return [
            None if before is None or after is None else before - after
            for before, after in zip(weights, weights[1:])
        ]

    @property
    def cost_on_large_slot(self) -> Optional[float]:
        """Cost of a job of 8 cores and 16 GiB on a slot of 64 cores and 256 GiB."""
        free = {**dict.fromkeys(self.whole, 8.0), "Cpus": 64.0, "Memory": 2.0**18, "Disk": 2.0**30}
        job = {"RequestCpus": "8", "RequestMemory": "16384", "RequestDisk": "102400"}
        costs = self.costs(self.states(free, job, most=1))
        return costs[0] if costs else None

    def slot_ad(self, free: Amounts) -> dict[str, str]:
        """Ad of the partitionable slot, as far as policies and weights can see it."""
        own = {"PartitionableSlot": "true", "SlotTypeID": "1"}
        return {**self._ad(free, self.whole), **own}

    def dynamic_slot_ad(self, taken: Amounts) -> dict[str, str]:
        """Ad of the dynamic slot for a claim: whole numbers, at least a core and a MiB.

        create_dslot in src/condor_startd.V6/Resource.cpp. Disk gets some more.
        """
        amounts = {asset: float(int(amount + 0.1)) for asset, amount in taken.items()}
        amounts.update({asset: max(1.0, amounts[asset]) for asset in ("Cpus", "Memory")})
        amounts["Disk"] = math.ceil(taken["Disk"]) + 1024.0
        machine = {f"Total{asset}": plain(amount) for asset, amount in self.whole.items()}
        own = {"DynamicSlot": "true", "SlotTypeID": "-1"}
        return {**self._ad(amounts, amounts), **machine, **own}

    def _ad(self, free: Amounts, whole: Amounts) -> dict[str, str]:
        ad = {"Name": '"slot1@node"', **self.node.attributes, "SlotWeight": self.slot.weight.text}
        for asset, policy in self.slot.policies.items():
            ad[asset] = plain(free[asset])
            ad[f"TotalSlot{asset}"] = ad[f"Total{asset}"] = plain(whole[asset])
            ad[f"Consumption{asset}"] = policy.text
        return ad


@dataclass(frozen=True)
class ConsumptionSubject:
    """Configurations to check, and the amounts of a slot that the operator says."""

    nodes: tuple[CheckedNode, ...]
    htcondor: CondorProcess
    size: Mapping[str, float] = field(default_factory=dict)
    """Asset, lower case → amount in one slot."""

    @cached_property
    def slots(self) -> tuple[tuple[CheckedNode, SlotType], ...]:
        """Slot types with a policy, and their nodes."""
        return tuple(
            (node, slot) for node in self.nodes for slot in node.slot_types if slot.has_policy
        )

    @cached_property
    def readable(self) -> Mapping[str, str]:
        """Text of a policy or weight → as HTCondor prints it; without the unreadable ones."""
        texts = list({knob.text: None for _, slot in self.slots for knob in slot.expressions})
        printed = self.htcondor.canonical(texts)
        return {
            text: again for text, again in zip(texts, printed) if again is not None and text.strip()
        }

    @cached_property
    def trials(self) -> tuple[PolicyTrial, ...]:
        """Rows of `slots` whose policies and weight HTCondor can read, empty."""
        return tuple(
            PolicyTrial(self.htcondor, node, slot, node.whole(slot, self.size))
            for node, slot in self.slots
            if self.readable.keys() >= {knob.text for knob in slot.expressions}
        )


def knob_of(configuration: Configuration, number: int, knob: str, default: str) -> SlotKnob:
    """Knob for slots of a type, as the startd looks for it (SlotType::param in Resource.cpp).

    SLOT_TYPE_<N>_ goes first. A name with the daemon's goes before the one without, because
    HTCondor reads the configuration as a startd.
    """
    own = f"SLOT_TYPE_{number}_{knob}"
    for name in (f"STARTD.{own}", own, f"STARTD.{knob}", knob):
        text, written = configuration.text(name), configuration.assignments(name)
        if written and (text or name.endswith(own)):
            return SlotKnob(written[-1].name, text, configuration.place(name))
    text = configuration.text(knob) or default
    return SlotKnob(knob, text, configuration.place(knob), is_default=True)


def typed(knob: str) -> Optional[tuple[int, str]]:
    """N and REST of ``SLOT_TYPE_<N>_<REST>``; REST is empty for ``SLOT_TYPE_<N>``; else None."""
    match = _TYPED.fullmatch(knob)
    return (int(match["number"]), match["knob"] or "") if match else None


def boolean_texts(configuration: Configuration) -> dict[str, str]:
    """Boolean knob that a file sets → its text; without empty ones."""
    names = {definition.name.upper(): definition.name for definition in configuration.definitions}
    texts = {name: configuration.text(name) for name in names.values() if _BOOLEAN.fullmatch(name)}
    return {name: text for name, text in texts.items() if text.strip()}


def node_of(configuration: Configuration, htcondor: CondorProcess) -> CheckedNode:
    """Slots that a configuration makes."""
    texts = [configuration.text(knob) for knob in READERS]
    taken_for = booleans([*texts, *boolean_texts(configuration).values()], htcondor)
    resources = _resources(configuration)
    assets = (*STANDARD_ASSETS, *resources)
    slot_types = tuple(
        _slot_type(configuration, number, count, assets, taken_for)
        for number, count in _counts(configuration).items()
    )
    return CheckedNode(configuration, slot_types, resources, taken_for)


def _resources(configuration: Configuration) -> dict[str, Optional[float]]:
    """Custom resources that a knob declares, and GPUs where a policy takes some of them."""
    allowed = [word.lower() for word in configuration.words("MACHINE_RESOURCE_NAMES")]
    resources: dict[str, Optional[float]] = {}
    for definition in configuration.definitions:
        match, text = _RESOURCE.fullmatch(definition.name), configuration.text(definition.name)
        if match and text and (not allowed or match["name"].lower() in allowed):
            # A number, or a list of names.
            amount = _number(text) or float(len(re.findall(r"[^\s,]+", text)))
            resources[match["name"]] = None if match["scripted"] else amount
        elif definition.name.upper().endswith("CONSUMPTION_GPUS"):
            resources.setdefault(GPUS, None)
    return resources


def _slot_type(
    configuration: Configuration,
    number: int,
    count: int,
    assets: Sequence[str],
    taken_for: Mapping[str, Optional[bool]],
) -> SlotType:
    def knob(name: str, default: str = "") -> SlotKnob:
        return knob_of(configuration, number, name, default)

    partitionable, policy = knob("PARTITIONABLE"), knob(POLICY, "False")
    # The startd goes by the knob of all types where that of one type is invalid
    # (SlotType::type_param_boolean).
    texts = (policy.text, configuration.text(POLICY))
    wanted = [value for text in texts if (value := taken_for.get(text)) is not None]
    own = bool(configuration.assignments(f"SLOT_TYPE_{number}_PARTITIONABLE"))
    # A snippet may leave it to the site's own file.
    is_open = number == 0 or not configuration.assignments(f"SLOT_TYPE_{number}")
    return SlotType(
        number=number,
        partitionable=taken_for.get(partitionable.text) is True if own else is_open,
        policies={a: knob(f"CONSUMPTION_{a}", f"TARGET.Request{a} ?: 0") for a in assets},
        policy=policy,
        wants_policy=bool(wanted and wanted[0]),
        is_misread=any(
            part.text and taken_for.get(part.text, False) is None
            for part in (partitionable, policy)
        ),
        weight=knob(WEIGHT, "Cpus"),
        shares=configuration.text(f"SLOT_TYPE_{number}"),
        count=count,
    )


def _counts(configuration: Configuration) -> dict[int, int]:
    """Slot type → slots of the node; 0 is the type of a node without types."""
    names = [definition.name for definition in configuration.definitions]
    numbers = sorted({parts[0] for name in names if (parts := typed(name)) and parts[0]})
    texts = {n: configuration.text(f"NUM_SLOTS_TYPE_{n}").strip() or "0" for n in numbers}
    counts = {n: int(text) if text.isdecimal() else 1 for n, text in texts.items()}
    if not configuration.is_whole and not any(counts.values()):
        # Another file may have the slots.
        for n in numbers:
            own = (f"SLOT_TYPE_{n}", f"NUM_SLOTS_TYPE_{n}")
            counts[n] = 0 if any(map(configuration.assignments, own)) else 1
    return counts if any(counts.values()) else {0: 1, **counts}


def _number(text: str) -> Optional[float]:
    return float(text) if re.fullmatch(r"\s*\d+(\.\d+)?\s*", text) else None


def fits(taken: Taken, free: Amounts) -> bool:
    """True if the negotiator matches a job that takes this of what is free."""
    amounts = [(amount, free[asset]) for asset, amount in taken.items()]
    return any(amount for amount, _ in amounts) and all(
        amount is not None and 0 <= amount <= most for amount, most in amounts
    )


def requests_of(job: Ad) -> str:
    """Requests of a job, for people."""
    return ", ".join(f"{name} = {text}" for name, text in job.items())


def listed(amounts: Taken) -> str:
    """Amounts of assets, for people."""
    return ", ".join(f"{asset} = {plain(amount)}" for asset, amount in amounts.items())


def plain(amount: Optional[float]) -> str:
    """Amount in as few digits as it has."""
    if amount is None:
        return "no number"
    return str(int(amount)) if float(amount).is_integer() else repr(float(amount))


def requests(amounts: Mapping[str, str]) -> dict[str, str]:
    """Requests of a job for these amounts."""
    return {f"Request{asset}": amount for asset, amount in amounts.items()}


def number_of(value: Any) -> Optional[float]:
    """Number that a value is for HTCondor, None for any other or an infinite one."""
    number = float(value) if isinstance(value, (int, float)) else math.nan
    return number if math.isfinite(number) else None
