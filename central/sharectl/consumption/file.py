"""YAML files of consumption policies: keys, types and ranges; ready examples.

The meaning of policies is checked on the rendered configuration, by `sharectl.check.consumption`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Optional, Union

from sharectl.config.read import Reader
from sharectl.consumption.policy import (
    STANDARD,
    UNITS,
    AssetPolicy,
    Consumption,
    SlotPolicy,
    by_name,
    counters,
)
from sharectl.errors import ConfigError
from sharectl.files import yaml
from sharectl.files.yaml import Tree, ValuePath, problem_lines
from sharectl.settings import setting

LEAST = "write such as what `sharectl consumption examples minimum-charge` prints"
_ASSET_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_SLOT_TYPE = re.compile(r"[1-9][0-9]{0,3}")
_RULES = {
    "minimum_charge": ("charge",),
    "quanta_all": ("levels",),
    "quanta_any": ("levels",),
    "fixed_claims": ("", "even", "always", "request"),
    "expressions": (
        *("request", "request step", "request missing", "request step missing"),
        *("always", "whole", "expression"),
    ),
}
"""Model -> keys that an asset may have together, but ``declare``."""


@dataclass(frozen=True)
class FileConfig:
    """Keys at the top: one of startd and slot_types, or both."""

    startd: Optional[SlotPolicy] = setting(None)
    slot_types: Optional[Mapping[str, SlotPolicy]] = setting(None)
    num_cpus: Optional[Union[int, str]] = setting(None, kind="shared cores")


def load(name: str) -> Consumption:
    """Policies of the file ``name``, or of standard input for ``-``. Raises as `parse`."""
    return parse(yaml.text_of(Path(name), LEAST), name)


def parse(text: str, name: str) -> Consumption:
    """Policies of the YAML ``text``; messages call it ``name``.

    ConfigError has all faults in the order of the lines, as ``NAME:LINE: place: fault; remedy``.
    """
    tree = yaml.read(text)
    reader = Reader(tree, FileConfig)
    config = reader.section(FileConfig, tree.data, ())
    slots = _slots(config, reader)
    if tree.faults:
        raise ConfigError(problem_lines(name, text, tree.faults))
    return _consumption(slots, config.num_cpus, tree)


def _slots(config: FileConfig, reader: Reader) -> dict[ValuePath, SlotPolicy]:
    """Policies by their paths; notes faults of those that are read."""
    slots: dict[ValuePath, SlotPolicy] = {("startd",): config.startd} if config.startd else {}
    slots.update({("slot_types", n): slot for n, slot in (config.slot_types or {}).items()})
    if not slots and not reader.faults:
        reader.fault((), "write startd, for every slot of the node, or slot_types, or both")
    unsound = {(f.path or ())[:length] for f in reader.faults for length in (1, 2)}
    for path, slot in slots.items():
        if len(path) > 1 and not _SLOT_TYPE.fullmatch(str(path[1])):
            reader.fault(path, "write the number N of SLOT_TYPE_<N>, from 1 on")
        if path not in unsound:
            for at, message in (*_slot_problems(slot, path), *_asset_problems(slot)):
                reader.fault((*path, *at), message)
    return slots


def _slot_problems(slot: SlotPolicy, path: ValuePath) -> Iterator[tuple[ValuePath, str]]:
    """Paths within a policy, and messages."""
    if slot.model is None:
        yield ("model",), f"is missing; write one of {', '.join((*_RULES, 'none'))}"
        return
    if path == ("startd",) and slot.resources is not None:
        yield ("resources",), "belongs to a slot type; write it there"
    if slot.slots is not None and slot.resources is None:
        yield ("slots",), "needs resources beside it; write them, or remove this line"
    if slot.model == "none":
        for key in ("assets", "weight", "num_claims", "claims"):
            if getattr(slot, key):
                yield (key,), "belongs to a policy; remove this line, or choose another model"
        return
    if slot.model == "fixed_claims" and slot.claims is None:
        yield (), "claims is missing; write such as claims: 20, the claims of one slot"
    if slot.model != "fixed_claims" and slot.claims is not None:
        yield ("claims",), "only fixed_claims counts claims; remove this line"
    if slot.model == "expressions" and slot.weight in (None, "model"):
        message = "expressions have no model that counts claims; write weight: with an asset, or a"
        yield (), f"{message} ClassAd expression of MY. attributes"


def _asset_problems(slot: SlotPolicy) -> Iterator[tuple[ValuePath, str]]:
    names = [name.lower() for name in slot.assets]
    missing = [name for name in STANDARD if name not in names]
    if missing and slot.model in _RULES:
        yield ("assets",), f"every slot has {', '.join(missing)} too; write what a claim takes"
    for number, (name, asset) in enumerate(slot.assets.items()):
        at, rules = ("assets", name), _RULES.get(slot.model or "", ())
        if not _ASSET_NAME.fullmatch(name) or name.lower() == "swap":
            yield at, "no asset of a policy; write letters, digits and _, a letter first, not swap"
        if name.lower() in counters(slot):
            yield at, f"{slot.model} counts in this one; choose another name"
        if names.index(name.lower()) < number:
            yield at, "is in the file twice, case does not count; keep one"
        if name.lower() in STANDARD and asset.declare is not None:
            yield (*at, "declare"), "belongs to custom resources; remove it"
        if rules and " ".join(keys := asset.keys()) not in rules:
            fact = f"{slot.model} has no rule with {' and '.join(keys) or 'no key'}"
            together = (rule.replace(" ", " and ") for rule in rules if rule)
            yield at, f"{fact}; write one of: {', '.join(together)}"


def _consumption(
    slots: Mapping[ValuePath, SlotPolicy], num_cpus: Optional[str], tree: Tree
) -> Consumption:
    every = [(name.lower(), a) for slot in slots.values() for name, a in slot.assets.items()]
    shares = [name for slot in slots.values() for name in by_name(slot.resources or "")]
    named = [*(name for name, _ in every), *(name for name in shares if name in UNITS)]
    # HTCondor has a custom resource on slots of every type: claims take what jobs request.
    custom = {name: AssetPolicy(request=True) for name in named if name not in STANDARD}
    policies = []
    for path, slot in slots.items():
        assets = {name.lower(): asset for name, asset in slot.assets.items()}
        for name, asset in custom.items() if slot.model != "none" else ():
            assets.setdefault(name, asset)
        number = int(path[1]) if len(path) > 1 else None
        policies.append(replace(slot, assets=assets, slot_type=number))
    return Consumption(
        tuple(policies),
        {name: asset.declare for name, asset in every if asset.declare is not None},
        num_cpus,
        {(*at[:-1], str(at[-1]).lower()): tree.line(index) for at, index in tree.keys.items()},
    )


# ---- examples

_FOLDER = Path(__file__).with_name("examples")


def examples() -> dict[str, str]:
    """Name -> purpose of the example, the comment in its first line."""
    return {
        path.stem: path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
        for path in sorted(_FOLDER.glob("*.yaml"))
    }


def example(name: str) -> str:
    """YAML text of an example."""
    return (_FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
