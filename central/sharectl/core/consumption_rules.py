"""What an operator wrote of consumption: slot types, their assets, and by which rule claims take of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Optional, Union

ModelName = Literal["fixed_claims", "quanta_all", "quanta_any", "minimum_charge", "expressions", "none"]
"""How claims are counted; ``none`` is a slot type without consumption policy."""

ALWAYS_THERE = ("cpus", "memory", "disk")
"""Assets of every slot; further ones are custom resources and GPUs."""
UNITS = {"cpus": "cores", "memory": "MiB", "disk": "KiB", "gpus": "GPUs"}
"""Asset -> HTCondor's unit; a custom resource has its own."""
_ATTRIBUTES = {"cpus": "Cpus", "memory": "Memory", "disk": "Disk", "gpus": "GPUs"}


def attribute_of(asset: str) -> str:
    """Name of an asset in the ads: ``Cpus`` of ``cpus``. HTCondor reads names without case."""
    return _ATTRIBUTES.get(asset.lower(), asset[:1].upper() + asset[1:])


def unit_of(asset: str) -> str:
    """What an asset is counted in."""
    return UNITS.get(asset.lower(), asset)


@dataclass(frozen=True)
class LeastCharge:
    """`core.consumption.MinimumCharge`: what is asked for, and at least ``amount``."""

    amount: int


@dataclass(frozen=True)
class Levels:
    """`core.consumption.Quanta`: whole quanta of the asset's total."""

    levels: int
    total: Optional[int] = None
    """Amount of a slot without claims; None for what the slot itself says."""


@dataclass(frozen=True)
class Even:
    """`core.consumption.FixedClaims`: the total, divided by the number of claims."""


@dataclass(frozen=True)
class Always:
    """The same amount for every claim."""

    amount: int


@dataclass(frozen=True)
class Requested:
    """What is asked for, in multiples of ``step``."""

    step: int = 1
    zero_allowed: bool = False
    """Whether a claim that asks for none gets none, not a step."""


@dataclass(frozen=True)
class Whole:
    """All that the slot has."""


@dataclass(frozen=True)
class Written:
    """A ClassAd expression of the operator."""

    expression: str


Rule = Union[LeastCharge, Levels, Even, Always, Requested, Whole, Written]


@dataclass(frozen=True)
class SlotPolicy:
    """How the slots of one type may be consumed."""

    slot_type: Optional[int]
    """N of SLOT_TYPE_<N>; None for every slot of the startd."""
    model: ModelName
    assets: Mapping[str, Rule] = field(default_factory=dict)
    """Asset -> how claims take of it; the names in lower case, in the order of the file."""
    weight: str = "model"
    """``model``, an asset, or a ClassAd expression."""
    num_claims: Optional[int] = None
    """Claims that may be taken in one cycle; None for what fills the slot."""
    claims: int = 0
    """Claims of the slot, of the model ``fixed_claims``."""
    resources: str = ""
    """Value of SLOT_TYPE_<N>; empty if it is configured elsewhere."""
    slots: Optional[int] = None
    """NUM_SLOTS_TYPE_<N>; None if it is configured elsewhere."""


@dataclass(frozen=True)
class Consumption:
    """A file: policies of a node, and the custom resources that it declares."""

    policies: tuple[SlotPolicy, ...]
    declared: Mapping[str, int] = field(default_factory=dict)
    """Custom resource -> units of the machine."""
