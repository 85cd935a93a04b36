"""YAML files of consumption policies: keys, types and ranges.

The meaning of policies is checked on the rendered configuration, by `sharectl.check.consumption`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Optional

from pydantic import AfterValidator, Field, ValidationError, model_validator

from sharectl.config.fields import Section, wrong
from sharectl.config.problems import Sections, fault_of
from sharectl.consumption.policy import (
    CLAIMS,
    STANDARD,
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
    by_name,
)
from sharectl.errors import ConfigError
from sharectl.files import yaml
from sharectl.files.yaml import MAX_BYTES, Fault, NotYamlError, Tree, ValuePath, problem_lines
from sharectl.words import quoted

MAX_UNITS = 10**15
"""Units of an asset: the disk of an exabyte in KiB."""
MAX_CLAIMS = 10**6
"""Claims, or quanta of an asset, of one slot."""
MAX_CHARACTERS = 2000
"""Length of an expression."""
LEAST = "write such as what `sharectl consumption examples minimum-charge` prints"
_ASSET_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_SLOT_TYPE = re.compile(r"[1-9][0-9]{0,3}")
_AS_REQUESTED = Requested(zero_allowed=True)


def _one_line(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise wrong("an expression is one line of text; write one, such as TARGET.RequestCpus")
    if "$" in text or text.rstrip().endswith("\\"):
        raise wrong(f"{quoted(text)} has a macro or a continued line; write the whole value")
    return text.strip()


def _asset_name(name: str) -> str:
    if name.lower() == "swap":
        raise wrong("HTCondor leaves swap out of consumption policies; remove it")
    if not _ASSET_NAME.fullmatch(name):
        raise wrong(
            f"{quoted(name)} is an invalid asset; write letters, digits and _, a letter first"
        )
    return name


Count = Annotated[int, Field(ge=1, le=MAX_CLAIMS)]
MaybeCount = Annotated[Optional[int], Field(ge=1, le=MAX_CLAIMS)]
MaybeUnits = Annotated[Optional[int], Field(ge=1, le=MAX_UNITS)]
Expression = Annotated[str, Field(max_length=MAX_CHARACTERS), AfterValidator(_one_line)]
AssetName = Annotated[str, AfterValidator(_asset_name)]


class _Asset(Section):
    declare: MaybeCount = None

    def rule(self, name: str) -> Rule:
        """Amount that a claim takes of the asset ``name``, in lower case."""
        raise NotImplementedError


class ChargeAsset(_Asset):
    """Asset of `minimum_charge`."""

    charge: int = Field(ge=1, le=MAX_UNITS)

    def rule(self, _name: str) -> Rule:
        """See `_Asset.rule`."""
        return LeastCharge(self.charge)


class LevelsAsset(_Asset):
    """Asset of `quanta_all` and `quanta_any`."""

    levels: Count
    total: MaybeUnits = None

    def rule(self, _name: str) -> Rule:
        """See `_Asset.rule`."""
        return Levels(self.levels, self.total)


class _OneWay(_Asset):
    request: bool = False
    always: Optional[int] = Field(None, ge=0, le=MAX_UNITS)

    @model_validator(mode="after")
    def _has_one_way(self) -> _OneWay:
        """Refuse keys that contradict each other."""
        written = {way: getattr(self, way) for way in self.ways()}
        ways = [way for way, value in written.items() if value is not None and value is not False]
        if len(ways) > 1 or not (ways or isinstance(self, SharedAsset)):
            choice = ", ".join(self.ways())
            raise wrong(f"has {len(ways) or 'none'} of {choice}; write one, such as request: true")
        return self

    @classmethod
    def ways(cls) -> list[str]:
        """Keys of which an asset has one."""
        return [key for key in cls.model_fields if key not in ("declare", "step", "missing")]


class SharedAsset(_OneWay):
    """Asset of `fixed_claims`."""

    even: bool = False

    def rule(self, name: str) -> Rule:
        """See `_Asset.rule`."""
        if self.request:
            return Requested(zero_allowed=_may_be_zero(name))
        return Even() if self.always is None else Always(self.always)


class ExpressionAsset(_OneWay):
    """Asset of `expressions`."""

    whole: bool = False
    expression: Optional[Expression] = None
    step: MaybeUnits = None
    missing: Optional[int] = Field(None, ge=0, le=0)

    @model_validator(mode="after")
    def _step_is_of_request(self) -> ExpressionAsset:
        """Refuse ``step`` and ``missing`` where they have no effect."""
        if (self.step is not None or self.missing is not None) and not self.request:
            raise wrong("step and missing belong to request; write request: true beside them")
        return self

    def rule(self, name: str) -> Rule:
        """See `_Asset.rule`."""
        if self.expression is not None:
            return Written(self.expression)
        if self.whole:
            return Whole()
        if self.always is not None:
            return Always(self.always)
        zero = self.missing is not None or (self.step is None and _may_be_zero(name))
        return Requested(self.step or 1, zero)


def _may_be_zero(name: str) -> bool:
    """A claim may take none: the startd gives it a core and 1 MiB in any case."""
    return name not in ("cpus", "memory")


class SlotConfig(Section):
    """Slots of one type, or of the whole startd."""

    model: ModelName
    resources: Optional[Expression] = None
    slots: Optional[int] = Field(None, ge=1, le=1000)

    @model_validator(mode="after")
    def _slots_have_resources(self) -> SlotConfig:
        """Refuse a number of slots without their size."""
        if self.slots is not None and self.resources is None:
            raise wrong("needs resources beside it; write them, or remove this line", "slots")
        return self


class WithPolicy(SlotConfig):
    """Slots with a consumption policy."""

    weight: Optional[Expression] = None
    num_claims: MaybeCount = None
    claims: MaybeCount = None
    assets: Mapping[AssetName, Any] = Field({})

    @model_validator(mode="after")
    def _has_the_standard_assets(self) -> WithPolicy:
        """Refuse a policy that leaves out an asset of every slot, or has one twice."""
        names = [name.lower() for name in self.assets]
        if missing := [name for name in STANDARD if name not in names]:
            words = " and ".join(missing)
            raise wrong(f"without {words}, of which every slot has some; add it", "assets")
        for number, name in enumerate(self.assets):
            if names.index(names[number]) < number:
                raise wrong("is in the file twice, case does not count; keep one", "assets", name)
            if names[number] in STANDARD and getattr(self.assets[name], "declare", None):
                raise wrong("declare is for custom resources; remove it", "assets", name)
        return self

    @model_validator(mode="after")
    def _counts_claims_if_fixed(self) -> WithPolicy:
        """Refuse ``claims`` of another model, and ``fixed_claims`` without."""
        if self.model == "fixed_claims" and self.claims is None:
            raise wrong("claims is missing; write such as claims: 20, the claims of one slot")
        if self.model != "fixed_claims" and self.claims is not None:
            raise wrong("only fixed_claims counts claims; remove this line", "claims")
        if self.model == "fixed_claims" and CLAIMS in map(str.lower, self.assets):
            raise wrong(f"{CLAIMS} is what fixed_claims counts in; choose another name", "assets")
        if self.model == "expressions" and self.weight in (None, "model"):
            raise wrong(
                "expressions have no model that counts claims; write weight: with an asset, or a "
                "ClassAd expression of MY. attributes"
            )
        return self


class Charges(WithPolicy):
    """`minimum_charge`."""

    assets: Mapping[AssetName, ChargeAsset] = Field({})


class Quanta(WithPolicy):
    """`quanta_all` and `quanta_any`."""

    assets: Mapping[AssetName, LevelsAsset] = Field({})


class FixedClaims(WithPolicy):
    """`fixed_claims`."""

    assets: Mapping[AssetName, SharedAsset] = Field({})


class Expressions(WithPolicy):
    """`expressions`."""

    assets: Mapping[AssetName, ExpressionAsset] = Field({})


MODELS: Mapping[str, tuple[type[SlotConfig], type[_Asset]]] = {
    "fixed_claims": (FixedClaims, SharedAsset),
    "quanta_all": (Quanta, LevelsAsset),
    "quanta_any": (Quanta, LevelsAsset),
    "minimum_charge": (Charges, ChargeAsset),
    "expressions": (Expressions, ExpressionAsset),
    "none": (SlotConfig, _Asset),
}
"""Model -> keys of a policy, and keys of its assets."""


class FileConfig(Section):
    """Keys at the top: one of the two, or both."""

    startd: Optional[Mapping[str, Any]] = None
    slot_types: Optional[Mapping[str, Any]] = Field(None, min_length=1)

    @model_validator(mode="after")
    def _is_for_some_slot(self) -> FileConfig:
        """Refuse a file without a policy, and a policy of all slots that has the size of some."""
        if self.startd is None and self.slot_types is None:
            raise wrong("write startd, for every slot of the node, or slot_types, or both")
        if self.startd is not None and "resources" in self.startd:
            raise wrong("belongs to a slot type; write it there", "startd", "resources")
        for number in self.slot_types or ():
            if not _SLOT_TYPE.fullmatch(number):
                raise wrong("write the number N of SLOT_TYPE_<N>, from 1 on", "slot_types", number)
        return self


def load(name: str) -> Consumption:
    """Policies of the file ``name``, or of standard input for ``-``. Raises as `parse`."""
    if name != "-":
        return parse(yaml.text_of(Path(name), LEAST), name)
    text = sys.stdin.read(MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        raise ConfigError([f"standard input: has more than {MAX_BYTES} characters; {LEAST}"])
    return parse(text, "-")


def parse(text: str, name: str) -> Consumption:
    """Policies of the YAML ``text``; messages call it ``name``.

    Raises
    ------
    ConfigError
        If something is wrong in it: ``problems`` has all of it, in the order of the lines, each as
        ``NAME:LINE: place: fault; remedy``.
    """
    try:
        tree = yaml.read(text, frozenset({("slot_types",)}))
    except NotYamlError as error:
        raise ConfigError(problem_lines(name, text, error.faults)) from error
    faults = list(tree.faults)
    slots: dict[ValuePath, SlotConfig] = {}
    if isinstance(tree.data, dict):
        slots = dict(_slots(tree, faults))
    elif not faults:
        message = f"the file is no mapping of keys to values; {LEAST}"
        checked = "HTCondor's configuration is for `sharectl consumption check`"
        faults = [Fault(tree.values.get((), 0), (), f"{message} ({checked})")]
    if faults:
        raise ConfigError(problem_lines(name, text, yaml.not_following(faults, tree.refused)))
    return _consumption(slots, tree)


def _slots(tree: Tree, faults: list[Fault]) -> Iterator[tuple[ValuePath, SlotConfig]]:
    """Policies that are sound, by their paths; the others' faults go to ``faults``."""
    faults += _faults_of(FileConfig, tree.data, tree, ())
    types, default = tree.data.get("slot_types"), tree.data.get("startd")
    written: dict[ValuePath, Any] = {("startd",): default} if default is not None else {}
    for number, content in types.items() if isinstance(types, dict) else ():
        written["slot_types", number] = _with_default(content, default)
    for path, content in written.items():
        model = content.get("model") if isinstance(content, dict) else None
        section, _ = MODELS.get(str(model), (WithPolicy, _Asset))
        if found := _faults_of(section, content, tree, path):
            # What a slot type has from startd is at fault there.
            faults += [fault for fault in found if _is_own(fault, path, tree)]
        else:
            yield path, section.model_validate(content)


def _with_default(content: Any, default: Any) -> Any:
    """Content of a slot type, completed by ``startd`` where that has the same model."""
    if not isinstance(content, dict) or not isinstance(default, dict):
        return content
    if content.get("model", default.get("model")) != default.get("model"):
        return content
    merged = {**default, **content}
    own, others = content.get("assets", {}), default.get("assets", {})
    if isinstance(own, dict) and isinstance(others, dict):
        by_lower = {name.lower(): rule for name, rule in own.items()}
        assets = {name: by_lower.pop(name.lower(), rule) for name, rule in others.items()}
        assets.update({name: rule for name, rule in own.items() if name.lower() in by_lower})
        merged["assets"] = assets
    return merged


def _faults_of(section: type[Section], content: Any, tree: Tree, path: ValuePath) -> list[Fault]:
    asset = next((asset for slot, asset in MODELS.values() if slot is section), _Asset)
    sections: Sections = {(): FileConfig, path: section, (*path, "assets", "*"): asset}
    try:
        section.model_validate(content)
    except ValidationError as error:
        return [fault_of(one, tree, sections, path) for one in error.errors(include_url=False)]
    return []


def _is_own(fault: Fault, path: ValuePath, tree: Tree) -> bool:
    at = fault.path or ()
    in_default = ("startd", *at[len(path) :])
    return path == ("startd",) or at in tree.keys or in_default not in tree.keys


def _consumption(slots: Mapping[ValuePath, SlotConfig], tree: Tree) -> Consumption:
    with_policy = {path: slot for path, slot in slots.items() if isinstance(slot, WithPolicy)}
    named = [name.lower() for slot in with_policy.values() for name in slot.assets]
    named += [
        name.lower()
        for slot in slots.values()
        for name in by_name(slot.resources or "")
        if name.lower() in UNITS
    ]
    custom = [name for name in dict.fromkeys(named) if name not in STANDARD]
    return Consumption(
        tuple(_policy(path, slot, custom) for path, slot in slots.items()),
        {
            name.lower(): asset.declare
            for slot in with_policy.values()
            for name, asset in slot.assets.items()
            if asset.declare is not None
        },
        {
            (*path[:-1], str(path[-1]).lower()): tree.line(index)
            for path, index in tree.keys.items()
        },
    )


def _policy(path: ValuePath, slot: SlotConfig, custom: list[str]) -> SlotPolicy:
    number = int(path[1]) if len(path) > 1 else None
    resources = slot.resources or ""
    if not isinstance(slot, WithPolicy):
        return SlotPolicy(number, slot.model, resources=resources, slots=slot.slots)
    rules = {name.lower(): asset.rule(name.lower()) for name, asset in slot.assets.items()}
    # HTCondor has a custom resource on slots of every type: claims take what jobs request.
    others = {name: _AS_REQUESTED for name in custom if name not in rules}
    return SlotPolicy(
        number,
        slot.model,
        {**rules, **others},
        slot.weight or "model",
        slot.num_claims,
        slot.claims or 0,
        resources,
        slot.slots,
    )
