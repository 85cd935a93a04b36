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
from sharectl.condor.expressions import MY, references
from sharectl.condor.library import CondorProcess
from sharectl.consumption.policy import amount_of

POLICY, WEIGHT, NUM_CLAIMS = "CONSUMPTION_POLICY", "SLOT_WEIGHT", "NUM_CLAIMS"
LEFTOVERS = "CLAIM_PARTITIONABLE_LEFTOVERS"
SCHEDD_WEIGHT, SCHEDD_USES_WEIGHT = "SCHEDD_SLOT_WEIGHT", "SCHEDD_USE_SLOT_WEIGHT"
THREADS, CACHING = "NEGOTIATOR_NUM_THREADS", "NEGOTIATOR_MATCHLIST_CACHING"
RECYCLING = "CLAIM_RECYCLING_CONSIDER_LIMITS"
ATTRIBUTE_LISTS = ("STARTD_ATTRS", "STARTD_EXPRS")
STANDARD_ASSETS = ("Cpus", "Memory", "Disk")
GPUS = "GPUs"
DEVICES = 4.0
"""Units of a custom resource whose amount only a script on the node knows."""
DEFAULT_CORES, MIB_PER_CORE, DISK_KIB_PER_CORE = 32.0, 8192, 10 * 1024 * 1024
"""Machine that policies are tried on if the configuration does not say its size."""

READERS: Mapping[str, tuple[str, ...]] = {
    POLICY: ("STARTD",),
    LEFTOVERS: ("SCHEDD", "STARTD"),
    "ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS": ("SCHEDD", "STARTD"),
    RECYCLING: ("SCHEDD",),
    SCHEDD_USES_WEIGHT: ("SCHEDD",),
    # HTCondor's own CLAIM_PARTITIONABLE_LEFTOVERS is $(NEGOTIATOR_USE_SLOT_WEIGHTS).
    "NEGOTIATOR_USE_SLOT_WEIGHTS": ("NEGOTIATOR", "SCHEDD", "STARTD"),
    "NEGOTIATOR_DEPTH_FIRST": ("NEGOTIATOR",),
    CACHING: ("NEGOTIATOR",),
}
"""Boolean knob → daemons that read it."""
MACROS = (
    *READERS,
    *ATTRIBUTE_LISTS,
    *(f"CONSUMPTION_{asset.upper()}" for asset in STANDARD_ASSETS),
    WEIGHT,
    NUM_CLAIMS,
    SCHEDD_WEIGHT,
    THREADS,
    "MACHINE_RESOURCE_NAMES",
    "DAEMON_LIST",
    "GROUP_NAMES",
    "START",
    "NUM_SLOTS",
    "NUM_CPUS",
    "MEMORY",
    "DETECTED_MEMORY",
    "RESERVED_MEMORY",
)
"""Macros that the checks want expanded, whether or not a file sets them."""

_RESOURCE = re.compile(r"MACHINE_RESOURCE_(?P<scripted>INVENTORY_)?(?P<name>\w+)", re.IGNORECASE)
_NAMES_GPUS = re.compile(rf"(?<![a-z]){GPUS}\b", re.IGNORECASE)
_TYPED = re.compile(
    r"(?:STARTD\.)?(?:NUM_)?(?:SLOT_TYPE|SLOTS_TYPE)_(?P<number>\d+)(?:_(?P<knob>\w+))?",
    re.IGNORECASE,
)
_BOOLEAN = re.compile(
    rf"(\w+\.)?({'|'.join(READERS)}|"
    rf"SLOT_TYPE_\d+_(PARTITIONABLE|{POLICY}|BACKFILL|HIDDEN))",
    re.IGNORECASE | re.ASCII,
)

Amounts = Mapping[str, float]
"""Asset → amount, in HTCondor's units: cores, MiB of Memory, KiB of Disk."""
Ad = Mapping[str, str]
Taken = Mapping[str, Optional[float]]
"""Asset → amount that the policy takes; None if that is no number."""

_CPUS, _MEMORY_MIB, _DISK_KIB = (1, 3, 8), (1, 1000, 4097), (1, 1_048_576)
MOST_CLAIMS = 512
"""Claims on one slot that are tried: more than the cores of any node."""


@dataclass(frozen=True)
class Setting:
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
    policies: Mapping[str, Setting]
    """Asset, as it is called in the slot → its CONSUMPTION knob."""
    policy: Setting
    """CONSUMPTION_POLICY."""
    wants_policy: bool
    is_misread: bool
    """True if CONSUMPTION_POLICY or PARTITIONABLE is an invalid boolean."""
    weight: Setting
    claims: Setting
    """NUM_CLAIMS; empty text for HTCondor's own."""
    shares: str
    """SLOT_TYPE_<N>, such as ``cpus=50%, memory=50%``."""
    count: int

    @property
    def name(self) -> str:
        """Name for people."""
        return f"slot type {self.number}" if self.number else "every slot"

    @property
    def has_policy(self) -> bool:
        """True if a consumption policy is on, and the slot one that can have it."""
        return self.partitionable and self.wants_policy


@dataclass(frozen=True)
class CheckedNode:
    """A configuration, and the slots that it makes."""

    configuration: Configuration
    slot_types: tuple[SlotType, ...]
    unused_types: tuple[int, ...]
    """Types that are described, and of which the node has no slot."""
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
        text, is_whole = self.configuration.text, self.configuration.is_whole
        knob = {"Cpus": "NUM_CPUS", "Memory": "MEMORY"}.get(asset, "")
        if not (is_whole or self.configuration.assignments(knob)):
            return None
        amount = _number(text(knob))
        detected = _number(text("DETECTED_MEMORY")) if asset == "Memory" else None
        if amount is None and detected is not None:
            amount = detected - (_number(text("RESERVED_MEMORY")) or 0.0)
        return amount

    def whole(self, slot: SlotType, size: Mapping[str, float]) -> tuple[Amounts, bool]:
        """Amounts of an empty slot of a type, and whether its cores and memory are known.

        ``size`` is what the operator says of a slot: asset, lower case → amount.
        """
        amounts: dict[str, float] = {}
        is_known = True
        defaults = {"Memory": MIB_PER_CORE, "Disk": DISK_KIB_PER_CORE}
        for asset in self.assets:
            total = self.total(asset)
            own = amount_of(slot.shares, asset, 0.0)
            if not own and asset.lower() in size:
                amounts[asset] = size[asset.lower()]
                continue
            is_known &= bool(own) or total is not None or asset not in ("Cpus", "Memory")
            if total is None:
                total = defaults.get(asset, 0) * amounts.get("Cpus", 0) or DEVICES
                total = DEFAULT_CORES if asset == "Cpus" else total
            amounts[asset] = self._part(slot, asset, total)
        return amounts, is_known

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
class Step:
    """A match on a slot that is being filled."""

    before: Amounts
    taken: Amounts
    cost: Optional[float]
    """Weight before it less weight after it."""


@dataclass(frozen=True)
class Filling:
    """A slot that is filled with one job again and again."""

    job: Ad
    steps: tuple[Step, ...]
    free: Amounts
    weight: Optional[float]
    """Weight of the rest."""
    is_full: bool


@dataclass(frozen=True)
class PolicyTrial:
    """A slot with a policy that HTCondor can read, empty."""

    htcondor: CondorProcess
    readable: Mapping[str, str]
    """Text of a policy → as HTCondor prints it."""
    node: CheckedNode
    slot: SlotType
    whole: Amounts
    """Amounts of the empty slot."""
    is_size_known: bool

    @cached_property
    def jobs(self) -> tuple[Ad, ...]:
        """Jobs as condor_submit makes them, the smallest first; it refuses 0 cores."""
        custom = [asset for asset in self.whole if asset not in STANDARD_ASSETS]
        others = [dict.fromkeys(custom, amount) for amount in ("1", "0")] + [{}]
        shapes = [*itertools.product(_CPUS, _MEMORY_MIB, _DISK_KIB), (1, 0, 1), (1, 1, 0)]
        jobs = [
            requests({**dict(zip(STANDARD_ASSETS, map(str, shape))), **other})
            for shape in shapes
            for other in (others if custom else others[-1:])
        ]
        jobs += [{**jobs[0], name: value} for name in self._other_attributes for value in "01"]
        return tuple(jobs)

    @cached_property
    def _other_attributes(self) -> tuple[str, ...]:
        """Attributes of jobs, beside requests of the slot's assets, that the policies ask for."""
        requests = {f"request{asset}".lower() for asset in self.whole}
        names = {
            reference.name
            for policy in self.slot.policies.values()
            for reference in references(self.readable[policy.text])
            if reference.scope != MY and reference.name.lower() not in requests
        }
        return tuple(sorted(names))

    @cached_property
    def taken(self) -> tuple[tuple[Ad, Taken], ...]:
        """Each of `jobs`, and what the policy takes of the empty slot for it."""
        return tuple(zip(self.jobs, self.charges(self.whole, self.jobs)))

    @cached_property
    def accepted(self) -> tuple[tuple[Ad, Amounts], ...]:
        """Rows of `taken` for which the empty slot has room."""
        return tuple((job, taken) for job, taken in self.taken if fits(taken, self.whole))  # type: ignore[misc]

    @cached_property
    def fillings(self) -> tuple[Filling, ...]:
        """The slot filled with the smallest job, with custom resources and without."""
        smallest = [job for job, _ in self.accepted if set(job.values()) == {"1"}]
        return tuple(self._filled(job) for job in smallest)

    def cost(self, free: Amounts, job: Ad) -> Optional[float]:
        """Cost of a match where the slot has that free; None if there is no room."""
        (taken,) = self.charges(free, [job])
        if not fits(taken, free):
            return None
        rest = {asset: free[asset] - (amount or 0.0) for asset, amount in taken.items()}
        before, after = map(number_of, self.weights([self.slot_ad(free), self.slot_ad(rest)]))
        return None if before is None or after is None else before - after

    def charges(self, free: Amounts, jobs: Sequence[Ad]) -> list[Taken]:
        """Amounts that the policy takes for each job; the negotiator takes a missing request for 0."""
        zero = requests(dict.fromkeys(self.whole, "0"))
        expressions = [f"MY.Consumption{asset}" for asset in self.whole]
        ad = self.slot_ad(free)
        columns = self.htcondor.evaluate(expressions, [ad], [{**zero, **job} for job in jobs])
        amounts = [[number_of(value) for value in column[0]] for column in columns if column]
        return [dict(zip(self.whole, row)) for row in zip(*amounts)]

    def weights(self, ads: Sequence[Ad]) -> list[Any]:
        """SlotWeight in each ad."""
        (rows,) = self.htcondor.evaluate(["MY.SlotWeight"], ads)
        return [row[0] for row in rows or ()]

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

    def _filled(self, job: Ad) -> Filling:
        free, is_full = dict(self.whole), False
        steps: list[Step] = []
        (weight,) = map(number_of, self.weights([self.slot_ad(free)]))
        while not is_full and len(steps) < min(MOST_CLAIMS, self.whole["Cpus"] + 1):
            (taken,) = self.charges(free, [job])
            is_full = not fits(taken, free)
            if is_full:
                break
            amounts = {asset: amount or 0.0 for asset, amount in taken.items()}
            rest = {asset: free[asset] - amount for asset, amount in amounts.items()}
            (after,) = map(number_of, self.weights([self.slot_ad(rest)]))
            cost = None if weight is None or after is None else weight - after
            steps.append(Step(free, amounts, cost))
            free, weight = rest, after
        return Filling(job, tuple(steps), free, weight, is_full)


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
        texts = list(
            dict.fromkeys(
                setting.text
                for _, slot in self.slots
                for setting in (*slot.policies.values(), slot.weight)
            )
        )
        printed = self.htcondor.canonical(texts) if texts else []
        return {
            text: again for text, again in zip(texts, printed) if again is not None and text.strip()
        }

    @cached_property
    def trials(self) -> tuple[PolicyTrial, ...]:
        """Rows of `slots` whose policies and weight HTCondor can read, empty."""
        return tuple(
            PolicyTrial(self.htcondor, self.readable, node, slot, *node.whole(slot, self.size))
            for node, slot in self.slots
            if all(
                setting.text in self.readable for setting in (*slot.policies.values(), slot.weight)
            )
        )


def setting(configuration: Configuration, number: int, knob: str, default: str) -> Setting:
    """Knob for slots of a type, as the startd looks for it (SlotType::param in Resource.cpp).

    SLOT_TYPE_<N>_ goes first. A name with the daemon's goes before the one without, because
    HTCondor reads the configuration as a startd.
    """
    own = f"SLOT_TYPE_{number}_{knob}"
    for name in (f"STARTD.{own}", own, f"STARTD.{knob}", knob):
        text, written = configuration.text(name), configuration.assignments(name)
        if written and (text or name.endswith(own)):
            return Setting(written[-1].name, text, configuration.place(name))
    text = configuration.text(knob) or default
    return Setting(knob, text, configuration.place(knob), is_default=True)


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
    numbers, unused = _types(configuration)
    slot_types = tuple(
        _slot_type(configuration, number, (*STANDARD_ASSETS, *resources), taken_for)
        for number in numbers
    )
    return CheckedNode(configuration, slot_types, unused, resources, taken_for)


def _resources(configuration: Configuration) -> dict[str, Optional[float]]:
    """Custom resources, as the startd finds them (MachAttributes::init_machine_resources).

    GPUs that a knob counts on are some that the startd detects.
    """
    allowed = [word.lower() for word in configuration.words("MACHINE_RESOURCE_NAMES")]
    resources: dict[str, Optional[float]] = {}
    for definition in configuration.definitions:
        match, text = _RESOURCE.fullmatch(definition.name), configuration.text(definition.name)
        if match and text and match["name"].upper() != "NAMES":
            name, amount = match["name"], None if match["scripted"] else _declared(text)
        elif not match and _NAMES_GPUS.search(f"{definition.name} {definition.text}"):
            name, amount = GPUS, None
        else:
            continue
        name = next((known for known in resources if known.lower() == name.lower()), name)
        if not allowed or name.lower() in allowed:
            resources[name] = resources.get(name) if amount is None else amount
    return resources


def _declared(text: str) -> float:
    """Amount of a resource: a number, or as many as there are names in a list."""
    number = _number(text)
    return float(len(re.split(r"[\s,]+", text.strip()))) if number is None else number


def _slot_type(
    configuration: Configuration,
    number: int,
    assets: Sequence[str],
    taken_for: Mapping[str, Optional[bool]],
) -> SlotType:
    partitionable = setting(configuration, number, "PARTITIONABLE", "")
    policy = setting(configuration, number, POLICY, "False")
    # The startd goes by the knob of all types where that of one type is invalid
    # (SlotType::type_param_boolean).
    texts = (policy.text, configuration.text(f"STARTD.{POLICY}"), configuration.text(POLICY))
    wanted = [taken_for[text] for text in texts if taken_for.get(text) is not None]
    own = bool(configuration.assignments(f"SLOT_TYPE_{number}_PARTITIONABLE"))
    # A snippet may leave it to the site's own file.
    left_open = number == 0 or not configuration.assignments(f"SLOT_TYPE_{number}")
    count = configuration.text(f"NUM_SLOTS_TYPE_{number}").strip()
    return SlotType(
        number=number,
        partitionable=taken_for.get(partitionable.text) is True if own else left_open,
        policies={
            asset: setting(
                configuration, number, f"CONSUMPTION_{asset}", f"TARGET.Request{asset} ?: 0"
            )
            for asset in assets
        },
        policy=policy,
        wants_policy=bool(wanted and wanted[0]),
        is_misread=any(
            knob.text and taken_for.get(knob.text, False) is None
            for knob in (partitionable, policy)
        ),
        weight=setting(configuration, number, WEIGHT, "Cpus"),
        claims=setting(configuration, number, NUM_CLAIMS, ""),
        shares=configuration.text(f"SLOT_TYPE_{number}"),
        count=int(count) if count.isdecimal() else 1,
    )


def _types(configuration: Configuration) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Slot types of which the node has slots, and those that are described in vain."""
    numbers = {
        parts[0] for definition in configuration.definitions if (parts := typed(definition.name))
    }
    counts = {
        number: configuration.text(f"NUM_SLOTS_TYPE_{number}").strip()
        for number in sorted(numbers - {0})
    }
    present = [number for number, count in counts.items() if count not in ("", "0")]
    if not configuration.is_whole and not present:
        # Another file may have the slots.
        present = [
            number
            for number, count in counts.items()
            if not count and not configuration.assignments(f"SLOT_TYPE_{number}")
        ]
    plain = () if configuration.text("NUM_SLOTS").strip() == "0" else (0,)
    unused = tuple(number for number in counts if number not in present)
    return tuple(sorted(present)) or plain, unused


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
