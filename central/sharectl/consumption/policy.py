"""Consumption policies of a node, and the ClassAd expressions that they become.

Every attribute has its scope: an unscoped one a job could replace by its own. Every request is
compared with 0 first: NaN, text and negative numbers make the consumption negative or an error, and
HTCondor refuses the match.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, Optional, Union, get_args

from jinja2 import Environment, PackageLoader, StrictUndefined

from sharectl.settings import Setting, setting

ModelName = Literal[
    "fixed_claims", "quanta_all", "quanta_any", "minimum_charge", "expressions", "none"
]
"""Rule by which claims are counted; ``none`` is a slot type without consumption policy."""

CLAIMS, QUANTA = "claims", "quanta_{}"
"""Custom resources: ``fixed_claims`` counts in one, ``quanta_…`` in one for each asset."""
STANDARD = ("cpus", "memory", "disk")
"""Assets of every slot; all others are custom resources and GPUs."""
UNITS = {"cpus": "cores", "memory": "MiB", "disk": "KiB", "gpus": "GPUs"}
"""Asset -> HTCondor's unit; a custom resource counts in units of itself."""
DISK_TENTHS = 9
"""Tenths of TotalSlotDisk that are divided: Disk is what is free now, which may be less."""
MAX_UNITS = 10**15
"""Units of an asset: the disk of an exabyte in KiB."""
MAX_CLAIMS = 10**6
"""Claims, or quanta of an asset, of one slot."""
_ATTRIBUTES = {"cpus": "Cpus", "memory": "Memory", "disk": "Disk", "gpus": "GPUs"}


def attribute_of(asset: str) -> str:
    """Name of an asset in the ads: ``Cpus`` of ``cpus``. HTCondor reads names without case."""
    return _ATTRIBUTES.get(asset.lower(), asset[:1].upper() + asset[1:])


@dataclass(frozen=True)
class AssetPolicy:
    """Amount of an asset that a claim takes: one of the keys, or an even part of the slot."""

    charge: Optional[int] = setting(None, least=1, most=MAX_UNITS)
    levels: Optional[int] = setting(None, least=1, most=MAX_CLAIMS)
    even: Optional[bool] = setting(None)
    always: Optional[int] = setting(None, least=0, most=MAX_UNITS)
    request: Optional[bool] = setting(None)
    """Request of the job, in multiples of ``step``."""
    step: Optional[int] = setting(None, least=1, most=MAX_UNITS)
    missing: Optional[int] = setting(None, least=0, most=0)
    """A job that requests none gets none, not a step."""
    whole: Optional[bool] = setting(None)
    expression: Optional[str] = setting(None, kind="expression")
    declare: Optional[int] = setting(None, least=1, most=MAX_CLAIMS)

    def keys(self) -> list[str]:
        """Keys with an effect, but ``declare``."""
        values = {key: value for key, value in vars(self).items() if key != "declare"}
        return [key for key, value in values.items() if value is not None and value is not False]

    def is_zero_allowed(self, asset: str) -> bool:
        """A claim may take none, of a job that requests none."""
        # The startd gives every claim a core and 1 MiB in any case.
        by_default = self.step is None and asset not in ("cpus", "memory")
        return bool(self.request) and (self.missing is not None or by_default)


@dataclass(frozen=True)
class SlotPolicy:
    """Consumption of the slots of one type, or of every slot of the startd."""

    model: Optional[ModelName] = setting(None, choices=get_args(ModelName))
    assets: Mapping[str, AssetPolicy] = field(default_factory=dict, metadata={"setting": Setting()})
    """By asset, in lower case, in the order of the file."""
    weight: Optional[str] = setting(None, kind="expression")
    """``model``, an asset, or a ClassAd expression; None for ``model``."""
    num_claims: Optional[int] = setting(None, least=1, most=MAX_CLAIMS)
    """Matches of one cycle at most; None for as many as fit."""
    claims: Optional[int] = setting(None, least=1, most=MAX_CLAIMS)
    resources: Optional[str] = setting(None, kind="expression")
    """Value of SLOT_TYPE_<N>; None if it is configured elsewhere."""
    slots: Optional[int] = setting(None, least=1, most=1000)
    """NUM_SLOTS_TYPE_<N>; None for 1."""
    slot_type: Optional[int] = None
    """N of SLOT_TYPE_<N>; None for every slot of the startd."""


@dataclass(frozen=True)
class Consumption:
    """Policies of a node, and the custom resources that it declares."""

    policies: tuple[SlotPolicy, ...]
    declared: Mapping[str, int] = field(default_factory=dict)
    """Custom resource -> units of the machine."""
    num_cpus: Optional[str] = None
    """NUM_CPUS, where claims share cores."""
    lines: Mapping[tuple[Union[str, int], ...], int] = field(default_factory=dict, compare=False)
    """Path of a key in the YAML -> its line, from 1."""

    def line_of(self, policy: SlotPolicy, *keys: str) -> int:
        """Line of a key of a policy, or of what is around it."""
        number = policy.slot_type
        base = ("startd",) if number is None else ("slot_types", str(number))
        paths = ((*base, *keys[:length]) for length in range(len(keys), -1, -1))
        return next((self.lines[path] for path in paths if path in self.lines), 1)


def counters(policy: SlotPolicy) -> dict[str, int]:
    """Custom resource that counts claims or quanta -> units of a slot without claims.

    Amounts of assets do not tell how many quanta are left: they are cut to whole units, and free
    Disk changes.
    """
    if policy.claims is not None:
        return {CLAIMS: policy.claims}
    rules = policy.assets.items()
    return {QUANTA.format(asset): rule.levels for asset, rule in rules if rule.levels is not None}


def consumed(policy: SlotPolicy) -> dict[str, str]:
    """Asset -> amount that a claim takes, an expression over the slot (MY) and the job (TARGET)."""
    taken = {asset: _taken(policy, asset, rule) for asset, rule in policy.assets.items()}
    if policy.claims is not None:
        return {**taken, CLAIMS: "1"}
    for asset, rule in policy.assets.items():
        if rule.levels is not None:
            quanta = _if_partitionable(_macro(policy, asset, "QUANTA"), "0")
            taken[QUANTA.format(asset)] = _guarded(asset, quanta)
    return taken


def _taken(policy: SlotPolicy, asset: str, rule: AssetPolicy) -> str:
    if (written := rule.expression) is not None:
        by_request = "target" in written.lower()
        return f"ifThenElse(({written}) >= 0, {written}, -1)" if by_request else written
    if rule.levels is not None:
        quanta = (
            f"{_macro(policy, asset, 'TOTAL')} * {_macro(policy, asset, 'QUANTA')} / {rule.levels}"
        )
        return _guarded(asset, _if_partitionable(quanta, _request(asset)))
    total = _whole(asset)
    if rule.charge is not None:
        # A list rounds up to its first value, then to multiples of its last one.
        steps = "{1}" if rule.charge == 1 else f"{{{rule.charge}, 1}}"
        taken = f"quantize({_request(asset)}, {steps})"
    elif rule.always is not None:
        taken = str(rule.always)
    elif rule.request:
        step = str(rule.step or 1)
        step = step if rule.is_zero_allowed(asset) else f"{{{step}}}"
        taken = f"quantize({_request(asset)}, {step})"
    elif rule.whole:
        taken = total
    else:
        share = f"floor({total} / {policy.claims}.0)"
        share = f"max({{1, {share}}})" if asset in ("cpus", "memory") else share
        taken = _if_partitionable(share, total)
    return _guarded(asset, taken)


def _quanta(policy: SlotPolicy, asset: str, levels: int) -> str:
    """Quanta that a claim takes of a partitionable slot: one too many if it wants too much."""
    total, request = _macro(policy, asset, "TOTAL"), _request(asset)
    count = f"(ceiling({request}) * {levels} + {total} - 1) / {total}"
    count = f"ifThenElse({request} > {total}, {levels + 1}, {count})"
    if policy.model == "quanta_all":
        return f"max({{1, {count}}})"
    if asset != next(iter(policy.assets)):
        return count
    nothing = " && ".join(f"{_request(other)} == 0" for other in policy.assets)
    return f"ifThenElse({nothing}, 1, {count})"


def weight(policy: SlotPolicy) -> str:
    """The slot's weight, an expression over the slot alone that has a value at any rest, also 0."""
    written = policy.weight or "model"
    if written.lower() in policy.assets:
        return f"MY.{attribute_of(written)}"
    if written != "model":
        return written
    if counts := [f"MY.{attribute_of(counter)}" for counter in counters(policy)]:
        most = "max" if policy.model == "quanta_any" else "min"
        return counts[0] if len(counts) == 1 else f"{most}({{{', '.join(counts)}}})"
    for asset, rule in policy.assets.items():
        divisor = "" if rule.charge == 1 else f" / {rule.charge}.0"
        counts += [f"floor(MY.{attribute_of(asset)}{divisor})"] if rule.charge is not None else []
    return f"min({{{', '.join(counts)}}})"


def macros(policy: SlotPolicy) -> dict[str, str]:
    """Amount of the slot, 1 at least, and quanta of a claim, of each asset: macro -> its text."""
    made = {}
    for asset, rule in policy.assets.items():
        if rule.levels is not None:
            total = _whole(asset) if asset == "disk" else f"floor({_whole(asset)})"
            made[_macro(policy, asset, "TOTAL")] = f"max({{1, {total}}})"
            made[_macro(policy, asset, "QUANTA")] = f"({_quanta(policy, asset, rule.levels)})"
    return {macro[2:-1]: text for macro, text in made.items()}


def _macro(policy: SlotPolicy, asset: str, kind: str) -> str:
    slot_type = "" if policy.slot_type is None else f"{policy.slot_type}_"
    return f"$(SHARECTL_{slot_type}{kind}_{asset.upper()})"


def _request(asset: str) -> str:
    return f"(TARGET.Request{attribute_of(asset)} ?: 0)"


def _guarded(asset: str, taken: str) -> str:
    return f"ifThenElse({_request(asset)} >= 0, {taken}, -1)"


def _if_partitionable(taken: str, on_dynamic_slot: str) -> str:
    """HTCondor compares a policy with a dynamic slot too, whenever a job starts there."""
    return f"ifThenElse(MY.PartitionableSlot =?= true, {taken}, {on_dynamic_slot})"


def _whole(asset: str) -> str:
    """Amount of a slot without claims; of disk, the part that is divided.

    TotalSlotDisk is 0 in a startd of 23.9.6 until the first claim: Disk is whole then.
    """
    if asset == "disk":
        return f"floor(0.{DISK_TENTHS} * max({{MY.TotalSlotDisk, MY.Disk}}))"
    return f"MY.TotalSlot{attribute_of(asset)}"


def items(shares: str) -> list[str]:
    """Items of a SLOT_TYPE_<N>, such as ``cpus=50%`` and ``25%``.

    They end with lines if there are several, else with commas if there are any, else with blanks.
    """
    between = r"\n" if "\n" in shares.strip() else r"[,\n]" if "," in shares else r"\s"
    return [item.strip() for item in re.split(between, shares) if item.strip()]


def by_name(shares: str) -> dict[str, str]:
    """Name in lower case → its share, of a SLOT_TYPE_<N>; without the share of all others."""
    named = (item.partition("=") for item in items(shares))
    return {name.strip().lower(): share.strip() for name, sign, share in named if sign}


_TEMPLATES = Environment(  # noqa: S701 - configuration is no HTML
    loader=PackageLoader("sharectl", "consumption"),
    undefined=StrictUndefined,
    trim_blocks=True,
    keep_trailing_newline=True,
)
_MARK = "\x1f"
"""Character between a line of the template's text and its line in the YAML."""


@dataclass(frozen=True)
class Snippet:
    """A file for ``/etc/condor/config.d``."""

    text: str
    yaml_lines: tuple[int, ...]
    """Line of the YAML that each line of the text comes from."""


def snippet(consumption: Consumption) -> Snippet:
    """Configuration of the policies."""
    policies = consumption.policies
    # Beside slot types, a policy of every slot is for slot types that the file leaves out.
    of_types = [policy for policy in policies if policy.slot_type is not None] or policies
    units = Counter[str](consumption.declared)
    for policy in of_types:
        units.update({n: count * (policy.slots or 1) for n, count in counters(policy).items()})
    every = dict.fromkeys(name for policy in policies for name in counters(policy))

    def taken(policy: SlotPolicy) -> dict[str, str]:
        by_policy = consumed(policy)
        return {**by_policy, **{name: "0" for name in every if name not in by_policy}}

    marked = _TEMPLATES.get_template("snippet.conf.j2").render(
        policies=policies,
        units=units,
        num_cpus=consumption.num_cpus,
        every_slot=any(policy.slot_type is None for policy in policies),
        at=partial(_mark, consumption),
        taken=taken,
        resources=partial(_resources, every),
        claims=_claims,
        attribute_of=attribute_of,
        macros=macros,
        weight=weight,
        STANDARD=STANDARD,
    )
    rows = [line.partition(_MARK) for line in marked.splitlines()]
    text = "".join(f"{line}\n" for line, _, _ in rows)
    return Snippet(text, tuple(int(number or 1) for _, _, number in rows))


def _mark(consumption: Consumption, policy: SlotPolicy, *keys: str) -> str:
    return f"{_MARK}{consumption.line_of(policy, *keys)}"


def _resources(counted: dict[str, None], policy: SlotPolicy) -> str:
    """Value of SLOT_TYPE_<N>, with the custom resources that count claims."""
    units = counters(policy)
    # Beside a comma, the startd takes blanks for a part of an item.
    return ", ".join(
        [*items(policy.resources or ""), *(f"{name}={units.get(name, 0)}" for name in counted)]
    )


def _claims(policy: SlotPolicy) -> int:
    most = max if policy.model == "quanta_any" else min
    return most(counters(policy).values(), default=0)
