"""What is wrong between the keys of a file of consumption policies, where each by itself is sound.

What a YAML file of consumption policies may say: names, units and ranges. `consumption_file` reads
one.

The policies that a file of consumption policies means.

Assets that a policy leaves out, misspells, or charges although its slots have none.

Slot types that together want more of an asset than their machine has.

A YAML file of consumption policies, read and judged: everything that is wrong at once, with line
and remedy.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Callable, Optional, TypeVar, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError

from sharectl.condor.library import CondorProcess
from sharectl.config.fields import Section, wrong
from sharectl.config.problems import Sections, fault_of
from sharectl.consumption.claims import CLAIMS, MAX_AMOUNT, MAX_CLAIMS
from sharectl.consumption.policy import (
    ALWAYS_THERE,
    UNITS,
    Always,
    Consumption,
    Even,
    LeastCharge,
    Levels,
    ModelName,
    Requested,
    Rule,
    SlotPolicy,
    Whole,
    Written,
    amount_of,
    attribute_of,
    by_name,
    has_none,
    is_htcondors,
    part_of,
)
from sharectl.errors import ConfigError
from sharectl.files import yaml
from sharectl.files.yaml import (
    MAX_BYTES,
    Fault,
    NotYamlError,
    Tree,
    ValuePath,
    not_following,
    problem_lines,
    text_of,
)
from sharectl.words import quoted, shown

MAX_UNITS = 10**15
"""Units of an asset."""
MAX_TEXT = 2000
"""Characters of an expression."""


def _one_line(text: str) -> str:
    if not text.strip():
        raise wrong("there is no expression; write one, such as TARGET.RequestCpus")
    if "\n" in text or "\t" in text or not text.isprintable():
        raise wrong("an expression is one line; join its lines")
    if "$" in text or text.rstrip().endswith("\\"):
        raise wrong(f"{quoted(text)} holds a macro of HTCondor's configuration; write its value")
    if text.count('"') % 2:
        raise wrong(f"{quoted(text)} has a quote that is not closed")
    return text.strip()


def _whole(amount: Any) -> Any:
    if isinstance(amount, float) and not amount.is_integer():
        raise wrong(
            f"{amount} is no whole number, and HTCondor gives a claim whole units, of cores 1 "
            "at least; write a whole number, "
            "and let NUM_CPUS say more cores than there are where jobs share them"
        )
    return amount


def _nothing(amount: Optional[int]) -> Optional[int]:
    if amount:
        raise wrong(
            "HTCondor puts 0 for what a job does not ask for before it asks the policy, so that "
            "only 0 has an effect; write "
            "missing: 0, or step for a least amount"
        )
    return amount


Amount = Annotated[int, BeforeValidator(_whole)]
MaybeAmount = Annotated[Optional[int], BeforeValidator(_whole)]
Expression = Annotated[str, Field(min_length=1, max_length=MAX_TEXT), AfterValidator(_one_line)]


class _Asset(Section):
    declare: Optional[int] = Field(
        None,
        ge=1,
        le=MAX_CLAIMS,
        description="Units of a custom resource that the machine has: MACHINE_RESOURCE_<name> is rendered.",
    )


class ChargeAsset(_Asset):
    """Of `minimum_charge`."""

    charge: Amount = Field(ge=1, le=MAX_UNITS, description="Least amount that a claim is charged.")


class LevelsAsset(_Asset):
    """Of `quanta_all` and `quanta_any`."""

    levels: int = Field(
        ge=1, le=MAX_CLAIMS, description="Quanta that the slot's amount is cut into."
    )
    total: MaybeAmount = Field(
        None,
        ge=1,
        le=MAX_UNITS,
        description="Amount of one slot without claims; by default what the slot's ad says.",
    )


class SharedAsset(_Asset):
    """Of `fixed_claims`."""

    even: Optional[bool] = Field(
        None, description="Each claim takes the slot's amount divided by `claims`: the default."
    )
    always: MaybeAmount = Field(
        None, ge=0, le=MAX_UNITS, description="Amount that each claim takes."
    )
    request: Optional[bool] = Field(
        None, description="What the job asks for; of cores and memory at least 1."
    )


class ExpressionAsset(_Asset):
    """Of `expressions`."""

    request: Optional[bool] = Field(None, description="What the job asks for.")
    step: MaybeAmount = Field(
        None,
        ge=1,
        le=MAX_UNITS,
        description="Requests are rounded up to whole steps, at least one.",
    )
    missing: Annotated[Optional[int], AfterValidator(_nothing)] = Field(
        None, description="0: a job that does not ask for it gets none; without, it gets a step."
    )
    always: MaybeAmount = Field(
        None, ge=0, le=MAX_UNITS, description="Amount that each claim takes."
    )
    whole: Optional[bool] = Field(None, description="All that the slot has: one claim.")
    expression: Optional[Expression] = Field(
        None, description="A ClassAd expression, with MY. and TARGET."
    )


ASSETS: Mapping[str, type[BaseModel]] = {
    "fixed_claims": SharedAsset,
    "quanta_all": LevelsAsset,
    "quanta_any": LevelsAsset,
    "minimum_charge": ChargeAsset,
    "expressions": ExpressionAsset,
}
"""Model -> what may be said of an asset."""


class SlotConfig(Section):
    """The slots of one type; ``assets`` are validated by the model."""

    model: ModelName = Field(description="How claims are counted.")
    assets: Mapping[str, Any] = Field(
        {}, description="Every asset of the slot, and how claims take of it."
    )
    weight: Optional[Expression] = Field(
        None,
        description="SLOT_WEIGHT: `model` (the default), the name of an asset, or a ClassAd expression.",
    )
    num_claims: Optional[int] = Field(
        None,
        ge=1,
        le=MAX_CLAIMS,
        description="Matches of one cycle at most; by default as many as the machine has cores.",
    )
    claims: Optional[int] = Field(
        None, ge=1, le=MAX_CLAIMS, description="Claims of `fixed_claims`."
    )
    resources: Optional[Expression] = Field(
        None,
        description="SLOT_TYPE_<N>, such as `cpus=50%, memory=50%`; by default it is configured elsewhere.",
    )
    slots: Optional[int] = Field(
        None, ge=1, le=1000, description="NUM_SLOTS_TYPE_<N>, with `resources`."
    )


class FileConfig(Section):
    """The whole file: one of the two keys, or both."""

    startd: Optional[Any] = Field(
        None, description="The policy of every slot of the node, and what slot types leave out."
    )
    slot_types: Optional[Mapping[str, Any]] = Field(
        None, description="N of SLOT_TYPE_<N> to its policy."
    )


_AS_REQUESTED = Requested(1, zero_allowed=True)

Slots = Mapping[ValuePath, tuple[SlotConfig, Mapping[str, BaseModel]]]
"""Path of a policy in the file → the policy, and its assets."""


def consumption_of(slots: Slots) -> Consumption:
    """The policies that ``slots``, in which nothing is wrong, mean."""
    declared = {
        name.lower(): units
        for _, assets in slots.values()
        for name, asset in assets.items()
        if (units := getattr(asset, "declare", None)) is not None
    }
    machine = custom_assets(slots)
    return Consumption(
        tuple(_policy(path, *slot, machine) for path, slot in slots.items()), declared
    )


def custom_assets(slots: Slots) -> tuple[str, ...]:
    """Assets, in lower case, that the policies name besides those of every slot: HTCondor has them on all slots of the machine."""
    named = [name.lower() for _, assets in slots.values() for name in assets]
    named += [name for slot, _ in slots.values() for name in said_of(slot) if name in UNITS]
    return tuple(dict.fromkeys(name for name in named if name not in ALWAYS_THERE))


def said_of(slot: SlotConfig) -> dict[str, str]:
    """Name, in lower case, -> its share, of what ``resources`` say by name."""
    return {name.lower(): share for name, share in by_name(slot.resources or "").items()}


def _policy(
    path: ValuePath, slot: SlotConfig, assets: Mapping[str, BaseModel], machine: Sequence[str]
) -> SlotPolicy:
    rules = {name.lower(): rule_of(name.lower(), asset) for name, asset in assets.items()}
    # What is asked for, so that a job which wants some of what the slot has none of is refused.
    none = (
        {}
        if slot.model == "none"
        else {name: _AS_REQUESTED for name in machine if name not in rules}
    )
    return SlotPolicy(
        slot_type=int(path[1]) if len(path) > 1 else None,
        model=slot.model,
        assets={**rules, **none},
        weight=slot.weight or "model",
        num_claims=slot.num_claims,
        claims=slot.claims or 0,
        resources=slot.resources or "",
        slots=slot.slots,
    )


def rule_of(name: str, asset: BaseModel) -> Rule:
    """How claims take of the asset ``name``, in lower case."""
    return _RULES[type(asset)](name, asset)


def _shared(name: str, asset: BaseModel) -> Rule:
    shared = cast("SharedAsset", asset)
    if shared.request:
        return Requested(zero_allowed=_may_be_zero(name))
    return Even() if shared.always is None else Always(shared.always)


def _expression(name: str, asset: BaseModel) -> Rule:
    written = cast("ExpressionAsset", asset)
    if written.expression is not None:
        return Written(written.expression)
    if written.whole:
        return Whole()
    if written.always is not None:
        return Always(written.always)
    zero = written.missing is not None or (written.step is None and _may_be_zero(name))
    return Requested(written.step or 1, zero)


def _may_be_zero(name: str) -> bool:
    """Whether a claim may take none: the startd gives it a core and 1 MiB in any case, and so does the policy."""
    return name not in ("cpus", "memory")


_RULES: Mapping[type[BaseModel], Callable[[str, BaseModel], Rule]] = {
    ChargeAsset: lambda _name, asset: LeastCharge(cast("ChargeAsset", asset).charge),
    LevelsAsset: lambda _name, asset: Levels(
        cast("LevelsAsset", asset).levels, cast("LevelsAsset", asset).total
    ),
    SharedAsset: _shared,
    ExpressionAsset: _expression,
}


_ZERO = re.compile(r"[\s(]*(?:0+(?:\.0*)?|\.0+)[\s)]*")

Problem = tuple[ValuePath, str]
"""Path of what is wrong, and the message."""


def naming_problems(
    path: ValuePath, slots: Slots, written: Mapping[ValuePath, Mapping[str, Any]]
) -> Iterator[Problem]:
    """What is wrong with the names of one policy's assets, beside what all policies name.

    Parameters
    ----------
    written
        Path of each policy → its assets as they are written, sound or not.
    """
    slot, assets = slots[path]
    yield from _naming_problems(
        path, slot, written[path], _custom(slots, written), _declared(slots)
    )
    yield from _never_run(path, slot, assets)
    # Of what is written wrong nobody knows what it was to take.
    if slot.model == "expressions" and len(assets) == len(written[path]):
        yield from _nothing_taken(path, slot, assets)


def _custom(slots: Slots, written: Mapping[ValuePath, Mapping[str, Any]]) -> set[str]:
    """Assets that every slot of the machine has, besides those of all slots."""
    declared = _declared(slots)
    meant = {
        name.lower()
        for names in written.values()
        for name in set(names) - set(_misspelt(names, declared))
    }
    from_resources = {name for name in custom_assets(slots) if name in UNITS}
    own = {CLAIMS} if any(slot.model == "fixed_claims" for slot, _ in slots.values()) else set()
    return (meant | from_resources) - {*ALWAYS_THERE, "swap", *own}


def _naming_problems(
    path: ValuePath,
    slot: SlotConfig,
    written: Mapping[str, Any],
    custom: Collection[str],
    declared: Collection[str],
) -> Iterator[Problem]:
    named = {name.lower() for name in written}
    yield from _share_problems(path, slot, {*custom, *named})
    if slot.model == "none":
        return
    for name in ALWAYS_THERE:
        if name not in named:
            yield (
                (*path, "assets"),
                f"{name} is missing; every slot has it, write how claims take of it",
            )
    for name, meant in _misspelt(written, declared).items():
        is_no_asset = f"{quoted(name)} is no asset of every slot, did you mean {meant}?"
        yield (
            (*path, "assets", name),
            f"{is_no_asset} Of a custom resource write declare: with the machine's units",
        )
    for name in sorted(set(custom) - named):
        if not has_none(slot.resources or "", name):
            yield (*path, "assets"), _missing(path, name)


def _missing(path: ValuePath, name: str) -> str:
    without = "" if path == ("startd",) else f", or {name}=0 in resources of a type that has none"
    return (
        f"{name} is missing; it is named elsewhere in the file, and HTCondor has it on slots of "
        "every type; write how claims take "
        f"of it (where jobs may do without: model: expressions, {name}: {{request: true, "
        f"missing: 0}}, or model: quanta_any){without}"
    )


def _declared(slots: Slots) -> set[str]:
    return {
        name.lower()
        for _, assets in slots.values()
        for name, asset in assets.items()
        if getattr(asset, "declare", None) is not None
    }


def _misspelt(written: Mapping[str, Any], declared: Collection[str]) -> dict[str, str]:
    """Names that are like an asset that is missing -> that asset; what is known or declared is meant as it stands."""
    missing = [name for name in ALWAYS_THERE if name not in {other.lower() for other in written}]
    found: dict[str, str] = {}
    for name, rule in written.items():
        near = get_close_matches(name.lower(), missing, n=1)
        is_declared = name.lower() in declared or (isinstance(rule, dict) and "declare" in rule)
        if near and name.lower() not in UNITS and not is_declared:
            found[name] = near[0]
    return found


def _share_problems(path: ValuePath, slot: SlotConfig, named: Collection[str]) -> Iterator[Problem]:
    for name, share in said_of(slot).items():
        if name in named or name in UNITS or is_htcondors(name):
            continue
        near = get_close_matches(name, sorted({*named, *UNITS}), n=1)
        advice = (
            f"did you mean {near[0]}?" if near else "write how claims take of it, or remove it here"
        )
        yield (
            (*path, "resources"),
            f"{quoted(f'{name}={share}')}: assets have no {quoted(name)}; {advice}",
        )


def _never_run(
    path: ValuePath, slot: SlotConfig, assets: Mapping[str, BaseModel]
) -> Iterator[Problem]:
    """Assets of which every claim takes more than the slot ever has."""
    for name, asset in assets.items():
        # Of a machine that has more than enough.
        given = amount_of(slot.resources or "", name, MAX_AMOUNT)
        least = _least(slot, name, asset)
        if given is not None and least is not None and given < least:
            remedy = (
                "give it more in resources"
                if given or name.lower() in ALWAYS_THERE
                else f"remove this line: jobs that ask for {name} are then refused, and others take none"
            )
            yield (
                (*path, "assets", name),
                (
                    f"every claim takes {least} at least, and resources give a slot {given:.15g}: "
                    f"nothing could ever run; {remedy}"
                ),
            )


def _nothing_taken(
    path: ValuePath, slot: SlotConfig, assets: Mapping[str, BaseModel]
) -> Iterator[Problem]:
    """A policy by which no job takes anything: the negotiator refuses the match (cp_sufficient_assets)."""
    is_whole = {*ALWAYS_THERE} <= {name.lower() for name in assets}
    if is_whole and all(_is_nothing(slot, name, asset) for name, asset in assets.items()):
        yield (
            (*path, "assets"),
            (
                f"a claim takes 0 of {', '.join(assets)}, whatever the job asks for: the "
                "negotiator refuses every job (Consumption for "
                "all assets … was zero); let every claim take some of one asset, such as cpus: "
                "{request: true}"
            ),
        )


def _is_nothing(slot: SlotConfig, name: str, asset: BaseModel) -> bool:
    """Whether no job that can run takes anything of an asset."""
    rule = rule_of(name.lower(), asset)
    if isinstance(rule, Written):
        return _ZERO.fullmatch(rule.expression) is not None
    if isinstance(rule, Requested):
        return rule.zero_allowed and has_none(slot.resources or "", name)
    return isinstance(rule, Always) and rule.amount == 0


def _least(slot: SlotConfig, name: str, asset: BaseModel) -> Optional[int]:
    rule = rule_of(name.lower(), asset)
    if isinstance(rule, (LeastCharge, Always)):
        return rule.amount
    if isinstance(rule, Levels):
        return 1 if slot.model == "quanta_all" else 0
    if isinstance(rule, Requested):
        return 0 if rule.zero_allowed else rule.step
    return None


_ROUNDING = 1e-9


def sum_problems(slots: Slots) -> Iterator[Problem]:
    """What ``resources`` give away more than once; of assets whose total the file does not tell, parts alone count."""
    declared = {
        name.lower(): units
        for _, assets in slots.values()
        for name, asset in assets.items()
        if (units := getattr(asset, "declare", None)) is not None
    }
    most = 1 + _ROUNDING
    given = dict.fromkeys((*ALWAYS_THERE, "swap", *custom_assets(slots)), 0.0)
    for path, (slot, _) in slots.items():
        too_much = []
        for name, before in given.items():
            total = declared.get(name)
            given[name] += (_part_of(slot.resources or "", name, total) or 0.0) * (slot.slots or 1)
            if before <= most < given[name]:
                has = f"{given[name] * total:g} of {total}" if total else f"{100 * given[name]:g}%"
                too_much.append(f"{has} {name}")
        if too_much:
            yield (
                (*path, "resources"),
                (
                    f"the slot types together want {', '.join(too_much)}, and the startd of 23.9.6 "
                    "ends; let them want no more"
                ),
            )


def _part_of(shares: str, asset: str, total: Optional[int]) -> Optional[float]:
    """Part of the machine's total that a slot type gets; None if that is not told."""
    if total is None:
        return part_of(shares, asset)
    amount = amount_of(shares, asset, total)
    return None if amount is None else amount / total


_ASSET_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_SLOT_TYPE = re.compile(r"[1-9][0-9]{0,3}")
_TYPE_0 = (
    "slot types begin at 1: what HTCondor calls type 0 is every slot of a node without slot "
    "types, and no other node reads its "
    "knobs; write the number N of SLOT_TYPE_<N>, or startd: in place of slot_types for every "
    "slot of the node"
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
        at = next(
            path[:end] for end in range(len(path), -1, -1) if path[:end] in tree.keys or end == 0
        )
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
            (
                "write startd, for every slot of the node, or slot_types, with the policy of each "
                "type, or both"
            ),
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
                    (
                        f"{units} units, and {first[name.lower()]} for another slot type; it is the "
                        "machine's number: write it once"
                    ),
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
                    "beside a slot type of fixed_claims every slot type says its resources; "
                    "write such as "
                    'resources: "cpus=50%, memory=50%"'
                ),
            )
        for name in assets:
            if name.lower() == CLAIMS:
                yield (
                    (*path, "assets", name),
                    f"{CLAIMS} is what fixed_claims counts in; choose another name",
                )


def _slot_problems(
    path: ValuePath, slot: SlotConfig, assets: Mapping[str, BaseModel], written: Mapping[str, Any]
) -> Iterator[Problem]:
    yield from _claims_and_slots(path, slot)
    if slot.model == "none":
        for key in ("assets", "weight", "num_claims", "claims"):
            if getattr(slot, key):
                yield (
                    (key,),
                    "a slot type without policy has none; remove this line, or choose a model",
                )
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
        yield (
            ("claims",),
            "only fixed_claims counts claims; remove this line, or write model: fixed_claims",
        )
    if path == ("startd",) and slot.resources is not None:
        yield ("resources",), "belongs to a slot type; write slot_types in place of startd"
    if slot.slots is not None and slot.resources is None:
        yield (
            ("slots",),
            "needs resources beside it, what one slot of the type has; or remove this line",
        )


def _name_problem(name: str) -> Optional[str]:
    if name.lower() == "swap":
        return "HTCondor leaves swap out of consumption policies; remove it"
    if not _ASSET_NAME.fullmatch(name):
        return (
            f"{quoted(name)} is no asset; write letters, digits and _, a letter first, at most 64"
        )
    return None


def _weight_problems(slot: SlotConfig, assets: set[str]) -> Iterator[Problem]:
    if slot.weight is None or slot.weight == "model":
        if slot.model == "expressions":
            yield (
                () if slot.weight is None else ("weight",),
                (
                    "expressions have no model that counts claims; write weight: with an asset, "
                    "or a ClassAd "
                    "expression of MY. attributes that is the number of claims left"
                ),
            )
        return
    if re.fullmatch(r"[A-Za-z_]\w*", slot.weight):
        if slot.weight.lower() not in assets:
            yield (
                ("weight",),
                f"{quoted(slot.weight)} is no asset of this slot; write one, or model",
            )
        return
    yield from ((("weight",), problem) for problem in _expression_problems(slot.weight))
    text = _TEXTS.sub("", slot.weight)
    if re.search(r"\bTARGET\b", text, re.IGNORECASE):
        yield (
            ("weight",),
            "a weight is the slot's alone: HTCondor evaluates it without a job; remove TARGET.",
        )
    for divisor in _DIVISOR.findall(text):
        if divisor[3:].lower() in {attribute_of(asset).lower() for asset in assets}:
            yield (
                ("weight",),
                (
                    f"divides by {divisor}, which is 0 when it is used up: the negotiator then "
                    "ends; divide by a number"
                ),
            )


def _asset_problems(asset: BaseModel) -> Iterator[Problem]:
    if isinstance(asset, SharedAsset):
        if sum((bool(asset.even), asset.always is not None, bool(asset.request))) > 1:
            yield (), "has two of even, always, request; keep one of them"
        return
    assert isinstance(asset, ExpressionAsset)  # noqa: S101 - by the caller
    ways = [
        way for way in _WAYS if getattr(asset, way) is not None and getattr(asset, way) is not False
    ]
    if len(ways) != 1:
        yield (
            (),
            (
                f"has {len(ways) or 'none'} of {', '.join(_WAYS)}; write one of them, such as "
                "request: true"
            ),
        )
    for key in ("step", "missing"):
        if getattr(asset, key) is not None and "request" not in ways:
            yield (key,), "belongs to what the job asks for; write request: true beside it"
    if asset.expression is not None:
        yield from (
            (("expression",), problem) for problem in _expression_problems(asset.expression)
        )


def _expression_problems(text: str) -> Iterator[str]:
    names = [word for word in _NAMES.findall(_TEXTS.sub("", text)) if word.lower() not in _WORDS]
    for word in dict.fromkeys(names):
        yield (
            f"{shown(word)} has no scope, so that a job could put its own in place of the "
            f"slot's; write MY.{shown(word)} for "
            f"the slot's, TARGET.{shown(word)} for the job's"
        )


LEAST = "write such as what `sharectl consumption examples minimum-charge` prints"
_SECTIONS: Sections = {(): FileConfig, ("startd",): SlotConfig, ("slot_types", "*"): SlotConfig}
_TELLING = {
    "charge": "minimum_charge",
    "levels": "quanta_all",
    "even": "fixed_claims",
    "claims": "fixed_claims",
    "request": "expressions",
    "expression": "expressions",
    "whole": "expressions",
}
"""Key that tells of a model → the model."""
_HTCONDORS = re.compile(
    r"(?:[^\S\n]*(?:#[^\n]*)?\n)*[^\S\n]*(?P<statement>[A-Za-z_][\w.]*[^\S\n]*(?:@?=)|use[^\S\n]+\w+[^\S\n]*:)"
)
"""Blank lines and comments, then an assignment or ``use``."""
_Model = TypeVar("_Model", bound=BaseModel)


def load(name: str) -> Consumption:
    """Policies of the file ``name``, or of standard input for ``-``. Raises as `parse`."""
    if name != "-":
        return parse(text_of(Path(name), LEAST), name)
    text = sys.stdin.read(MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        raise ConfigError([f"standard input: has more than {MAX_BYTES} characters; {LEAST}"])
    return parse(text, "-")


def parse(text: str, name: str) -> Consumption:
    """Policies of the YAML ``text``; ``name`` is what messages call the file.

    Raises
    ------
    ConfigError
        If something is wrong in it: ``problems`` has all of it, in the order of the lines, each as
        ``NAME:LINE: where: what is wrong; what to write instead``.
    """
    _refuse_htcondors(text, name)
    try:
        tree = _tree(text)
    except NotYamlError as error:
        raise ConfigError(problem_lines(name, text, error.faults)) from error
    if not isinstance(tree.data, dict):
        what = "the file is empty" if tree.empty else "the file is no mapping of keys to values"
        top = [] if () in tree.refused else [Fault(tree.values.get((), 0), (), f"{what}; {LEAST}")]
        raise ConfigError(problem_lines(name, text, [*tree.faults, *top]))
    faults: list[Fault] = []
    slots = dict(_slots(tree, faults))
    faults += [*meaning_faults(tree, slots), *_unreadable(tree, slots)]
    faults = [*tree.faults, *not_following(faults, tree.refused)]
    if faults:
        raise ConfigError(problem_lines(name, text, faults))
    return consumption_of(slots)


def _refuse_htcondors(text: str, name: str) -> None:
    """ConfigError for HTCondor's configuration, which is what a file of policies is rendered to."""
    begun = _HTCONDORS.match(text)
    if begun is not None:
        line = text.count("\n", 0, begun.start("statement")) + 1
        check = f"sharectl consumption check {shlex.quote(name)}"
        raise ConfigError(
            [
                (
                    f"{name}:{line}: is configuration of HTCondor, and what it is rendered from is "
                    f"YAML; {LEAST}, or check this: {check}"
                )
            ]
        )


def _tree(text: str) -> Tree:
    """Tree of the file, in which slot types may be numbers, also below a key that is ``slot_types`` misspelt."""
    tree = yaml.read(text, frozenset({("slot_types",)}))
    others = [key for key, meant in misspelt_keys(tree).items() if meant == "slot_types"]
    return yaml.read(text, frozenset((key,) for key in (*others, "slot_types"))) if others else tree


def _slots(
    tree: Tree, faults: list[Fault]
) -> Iterator[tuple[ValuePath, tuple[SlotConfig, Mapping[str, BaseModel]]]]:
    """Path of each policy → the policy and its assets, those that are sound; ``faults`` gets the others'."""
    _validated(FileConfig, tree, (), tree.data, _SECTIONS, faults)
    types = tree.data.get("slot_types")
    at: dict[ValuePath, Any] = {("startd",): tree.data["startd"]} if "startd" in tree.data else {}
    if isinstance(types, dict):
        at.update({("slot_types", number): content for number, content in types.items()})
    default: Optional[tuple[SlotConfig, Mapping[str, BaseModel]]] = None
    for path, written in at.items():
        content = _with_default_model(written, default)
        slot = _validated(SlotConfig, tree, path, content, _SECTIONS, faults)
        if not isinstance(content, dict):
            continue
        if slot is None:
            wrong = {fault.path[: len(path) + 1] for fault in faults if fault.path}
            sound = {key: value for key, value in content.items() if (*path, key) not in wrong}
            sound.setdefault("model", _likely_model(content))
            slot = _validated(SlotConfig, tree, path, sound, _SECTIONS, [])
        if slot is not None:
            assets = dict(_assets(tree, path, slot.model, content, faults))
            policy = (slot, assets) if default is None else _with_defaults(slot, assets, *default)
            yield path, policy
            default = policy if path == ("startd",) else default


def _with_default_model(
    content: Any, default: Optional[tuple[SlotConfig, Mapping[str, BaseModel]]]
) -> Any:
    return (
        {"model": default[0].model, **content} if default and isinstance(content, dict) else content
    )


def _with_defaults(
    slot: SlotConfig,
    assets: Mapping[str, BaseModel],
    default: SlotConfig,
    default_assets: Mapping[str, BaseModel],
) -> tuple[SlotConfig, Mapping[str, BaseModel]]:
    """A slot type's policy beside that of every slot: of the same model, what it leaves out is as there."""
    if slot.model != default.model:
        return slot, assets
    taken = {
        key: getattr(default, key)
        for key in ("weight", "num_claims", "claims")
        if getattr(slot, key) is None
    }
    own = {name.lower(): asset for name, asset in assets.items()}
    merged = {name: own.pop(name.lower(), asset) for name, asset in default_assets.items()}
    return slot.model_copy(update=taken), {**merged, **own}


def _likely_model(content: Mapping[str, Any]) -> Optional[str]:
    """The model that a policy without a sound one seems to mean, to find what else is wrong in it."""
    near = get_close_matches(str(content.get("model")).lower(), [*ASSETS, "none"], n=1, cutoff=0.5)
    if near:
        return near[0]
    assets = content.get("assets")
    rules = assets.values() if isinstance(assets, dict) else ()
    keys = {*content, *(key for rule in rules if isinstance(rule, dict) for key in rule)}
    return next((model for key, model in _TELLING.items() if key in keys), None)


def _unreadable(tree: Tree, slots: Slots) -> Iterator[Fault]:
    """Expressions that HTCondor's own parser refuses: a startd that reads one ends."""
    written: dict[ValuePath, str] = {}
    for path, (slot, assets) in slots.items():
        texts: dict[ValuePath, Optional[str]] = {
            (*path, "assets", name, "expression"): getattr(asset, "expression", None)
            for name, asset in assets.items()
        }
        texts.update({(*path, "weight"): slot.weight})
        # What a slot type has from startd is read there.
        written.update(
            {at: text for at, text in texts.items() if text is not None and at in tree.values}
        )
    if not written:
        return
    with CondorProcess() as process:
        read = process.canonical(list(written.values()))
    for (path, text), canonical in zip(written.items(), read):
        if canonical is None:
            yield Fault(
                tree.values[path],
                path,
                f"HTCondor cannot read {quoted(text)}; write a ClassAd expression",
            )


def _assets(
    tree: Tree, path: ValuePath, model: str, content: Mapping[str, Any], faults: list[Fault]
) -> Iterator[tuple[str, BaseModel]]:
    """Name and rule of each asset that is sound."""
    section, assets = ASSETS.get(model), content.get("assets")
    if section is None or not isinstance(assets, dict):
        return
    sections = {**_SECTIONS, (*path, "assets", "*"): section}
    for name, rule in assets.items():
        at = (*path, "assets", name)
        foreign = _foreign(section, rule)
        faults += [
            Fault(
                tree.keys.get((*at, key), 0),
                (*at, key),
                f"belongs to model: {others}; remove it, or choose that model",
            )
            for key, others in foreign.items()
        ]
        own = {key: value for key, value in rule.items() if key not in foreign} if foreign else rule
        asset = _validated(section, tree, at, own, sections, faults)
        if asset is not None:
            yield name, asset


def _foreign(section: type[BaseModel], rule: Any) -> dict[str, str]:
    """Keys that other models have, not this one → those models."""
    found: dict[str, str] = {}
    for key in rule if isinstance(rule, dict) else ():
        others = [model for model, other in ASSETS.items() if key in other.model_fields]
        if others and key not in section.model_fields:
            found[key] = " or ".join(others)
    return found


def _validated(
    section: type[_Model],
    tree: Tree,
    path: ValuePath,
    content: Any,
    sections: Sections,
    faults: list[Fault],
) -> Optional[_Model]:
    try:
        return section.model_validate(content)
    except ValidationError as error:
        faults += [fault_of(one, tree, sections, path) for one in error.errors(include_url=False)]
        return None
