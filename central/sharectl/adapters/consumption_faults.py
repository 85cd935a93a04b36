"""What is wrong between the keys of a file of consumption policies, where each by itself is sound."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Optional

from pydantic import BaseModel

from sharectl.adapters.consumption_config import ExpressionAsset, FileConfig, SharedAsset, SlotConfig
from sharectl.adapters.consumption_faults_assets import Problem, naming_problems
from sharectl.adapters.consumption_faults_sums import sum_problems
from sharectl.adapters.consumption_meaning import Slots
from sharectl.adapters.wording import quoted, shown
from sharectl.adapters.yaml_syntax import Fault
from sharectl.adapters.yaml_syntax import Path as ValuePath
from sharectl.adapters.yaml_tree import Tree
from sharectl.core.consumption import CLAIMS
from sharectl.core.consumption_rules import ALWAYS_THERE, attribute_of

_ASSET_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_SLOT_TYPE = re.compile(r"[1-9][0-9]{0,3}")
_TYPE_0 = (
    "slot types begin at 1: what HTCondor calls type 0 is every slot of a node without slot types, and no other node reads its "
    "knobs; write the number N of SLOT_TYPE_<N>, or startd: in place of slot_types for every slot of the node"
)
_TOP = tuple(FileConfig.model_fields)
_WAYS = ("request", "always", "whole", "expression")
_TEXTS = re.compile(r'"(?:[^"\\]|\\.)*"')
_NAMES = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?!\w|\s*[.(])")
_WORDS = {"true", "false", "undefined", "error", "is", "isnt"}
_DIVISOR = re.compile(r"[/%][\s(]*(MY\.\w+)", re.IGNORECASE)


def meaning_faults(tree: Tree, slots: Slots) -> Iterator[Fault]:
    """What is wrong with policies whose keys are sound one by one, each at its place."""
    problems = [
        *_top_problems(tree),
        *_declared_problems(slots),
        *_claims_problems(slots),
        *sum_problems(slots),
    ]
    written = {path: _all_written(tree, path, slots) for path in slots}
    for path, (slot, assets) in slots.items():
        found = _slot_problems(path, slot, assets, written[path])
        problems += [((*path, *at), message) for at, message in found]
        problems += naming_problems(path, slots, written)
    of_every_slot = {(path[1:], message) for path, message in problems if path[:1] == ("startd",)}
    for path, message in problems:
        if path[:1] == ("slot_types",) and (path[2:], message) in of_every_slot:
            continue
        at = next(path[:end] for end in range(len(path), -1, -1) if path[:end] in tree.keys or end == 0)
        yield Fault(tree.keys.get(at, 0), path, message)


def _all_written(tree: Tree, path: ValuePath, slots: Slots) -> dict[str, Any]:
    """Assets of a policy as they are written, for a slot type also those of every slot that it has too."""
    default = slots.get(("startd",))
    if default is None or slots[path][0].model != default[0].model:
        return _written_assets(tree, path)
    own = _written_assets(tree, path)
    names = {name.lower() for name in own}
    others = _written_assets(tree, ("startd",)).items()
    return {**{name: rule for name, rule in others if name.lower() not in names}, **own}


def _written_assets(tree: Tree, path: ValuePath) -> dict[str, Any]:
    content = tree.data
    for part in (*path, "assets"):
        content = content.get(part, {})
    return content if isinstance(content, dict) else {}


def misspelt_keys(tree: Tree) -> dict[str, str]:
    """Key at the top of the file that is like one of a file's → that one."""
    keys = [key for key in tree.data if key not in _TOP] if isinstance(tree.data, dict) else []
    near = {key: get_close_matches(key.lower(), _TOP, n=1) for key in keys}
    return {key: found[0] for key, found in near.items() if found}


def _top_problems(tree: Tree) -> Iterator[Problem]:
    types = tree.data.get("slot_types")
    written = {*tree.data} & {*_TOP}
    # A key that is misspelt is said to be one already.
    if not (written or misspelt_keys(tree)):
        yield (
            (),
            "write startd, for every slot of the node, or slot_types, with the policy of each type, or both",
        )
    if not isinstance(types, dict):
        return
    if not types:
        yield ("slot_types",), "there is no slot type; write such as 1: {model: minimum_charge, …}"
    for number in types:
        if number == "0":
            yield ("slot_types", number), _TYPE_0
        elif not _SLOT_TYPE.fullmatch(number):
            yield (
                ("slot_types", number),
                f"{quoted(number)} is no slot type; write the number N of SLOT_TYPE_<N>",
            )


def _declared_problems(slots: Slots) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for path, (_, assets) in slots.items():
        for name, asset in assets.items():
            units = getattr(asset, "declare", None)
            if units is None:
                continue
            at = (*path, "assets", name, "declare")
            if name.lower() in ALWAYS_THERE:
                yield at, f"{name} is an asset of every slot, not a custom resource; remove declare"
            elif first.setdefault(name.lower(), units) != units:
                yield (
                    at,
                    f"{units} units, and {first[name.lower()]} for another slot type; it is the machine's number: write it once",
                )


def _claims_problems(slots: Slots) -> Iterator[Problem]:
    """Claims that are counted are a custom resource of the machine: slot types must say how many each has."""
    if not any(slot.model == "fixed_claims" for slot, _ in slots.values()):
        return
    for path, (slot, assets) in slots.items():
        if len(slots) > 1 and slot.resources is None and path != ("startd",):
            yield (
                path,
                (
                    "beside a slot type of fixed_claims every slot type says its resources; write such as "
                    'resources: "cpus=50%, memory=50%"'
                ),
            )
        for name in assets:
            if name.lower() == CLAIMS:
                yield (*path, "assets", name), f"{CLAIMS} is what fixed_claims counts in; choose another name"


def _slot_problems(
    path: ValuePath, slot: SlotConfig, assets: Mapping[str, BaseModel], written: Mapping[str, Any]
) -> Iterator[Problem]:
    yield from _claims_and_slots(path, slot)
    if slot.model == "none":
        for key in ("assets", "weight", "num_claims", "claims"):
            if getattr(slot, key):
                yield (key,), "a slot type without policy has none; remove this line, or choose a model"
        return
    yield from _weight_problems(slot, {name.lower() for name in written})
    first: dict[str, str] = {}
    for name in written:
        problem = _name_problem(name)
        if problem:
            yield ("assets", name), problem
        if first.setdefault(name.lower(), name) != name:
            yield (
                ("assets", name),
                f"is the same asset as {first[name.lower()]}, case does not count; keep one",
            )
    for name, asset in assets.items():
        if isinstance(asset, (ExpressionAsset, SharedAsset)):
            yield from ((("assets", name, *at), message) for at, message in _asset_problems(asset))


def _claims_and_slots(path: ValuePath, slot: SlotConfig) -> Iterator[Problem]:
    if slot.model == "fixed_claims" and slot.claims is None:
        yield (), "claims is missing; write how many claims a slot has, such as claims: 20"
    if slot.model not in ("fixed_claims", "none") and slot.claims is not None:
        yield ("claims",), "only fixed_claims counts claims; remove this line, or write model: fixed_claims"
    if path == ("startd",) and slot.resources is not None:
        yield ("resources",), "belongs to a slot type; write slot_types in place of startd"
    if slot.slots is not None and slot.resources is None:
        yield ("slots",), "needs resources beside it, what one slot of the type has; or remove this line"


def _name_problem(name: str) -> Optional[str]:
    if name.lower() == "swap":
        return "HTCondor leaves swap out of consumption policies; remove it"
    if not _ASSET_NAME.fullmatch(name):
        return f"{quoted(name)} is no asset; write letters, digits and _, a letter first, at most 64"
    return None


def _weight_problems(slot: SlotConfig, assets: set[str]) -> Iterator[Problem]:
    if slot.weight is None or slot.weight == "model":
        if slot.model == "expressions":
            yield (
                () if slot.weight is None else ("weight",),
                (
                    "expressions have no model that counts claims; write weight: with an asset, or a ClassAd "
                    "expression of MY. attributes that is the number of claims left"
                ),
            )
        return
    if re.fullmatch(r"[A-Za-z_]\w*", slot.weight):
        if slot.weight.lower() not in assets:
            yield ("weight",), f"{quoted(slot.weight)} is no asset of this slot; write one, or model"
        return
    yield from ((("weight",), problem) for problem in _expression_problems(slot.weight))
    text = _TEXTS.sub("", slot.weight)
    if re.search(r"\bTARGET\b", text, re.IGNORECASE):
        yield ("weight",), "a weight is the slot's alone: HTCondor evaluates it without a job; remove TARGET."
    for divisor in _DIVISOR.findall(text):
        if divisor[3:].lower() in {attribute_of(asset).lower() for asset in assets}:
            yield (
                ("weight",),
                f"divides by {divisor}, which is 0 when it is used up: the negotiator then ends; divide by a number",
            )


def _asset_problems(asset: BaseModel) -> Iterator[Problem]:
    if isinstance(asset, SharedAsset):
        if sum((bool(asset.even), asset.always is not None, bool(asset.request))) > 1:
            yield (), "has two of even, always, request; keep one of them"
        return
    assert isinstance(asset, ExpressionAsset)  # noqa: S101 - by the caller
    ways = [way for way in _WAYS if getattr(asset, way) is not None and getattr(asset, way) is not False]
    if len(ways) != 1:
        yield (), f"has {len(ways) or 'none'} of {', '.join(_WAYS)}; write one of them, such as request: true"
    for key in ("step", "missing"):
        if getattr(asset, key) is not None and "request" not in ways:
            yield (key,), "belongs to what the job asks for; write request: true beside it"
    if asset.expression is not None:
        yield from ((("expression",), problem) for problem in _expression_problems(asset.expression))


def _expression_problems(text: str) -> Iterator[str]:
    names = [word for word in _NAMES.findall(_TEXTS.sub("", text)) if word.lower() not in _WORDS]
    for word in dict.fromkeys(names):
        yield (
            f"{shown(word)} has no scope, so that a job could put its own in place of the slot's; write MY.{shown(word)} for "
            f"the slot's, TARGET.{shown(word)} for the job's"
        )
