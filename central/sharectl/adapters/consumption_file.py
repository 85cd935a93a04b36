"""A YAML file of consumption policies, read and judged: everything that is wrong at once, with line and remedy."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Optional, TypeVar

from pydantic import BaseModel, ValidationError

from sharectl.adapters import yaml_tree
from sharectl.adapters.condor_config import Source
from sharectl.adapters.condor_process import CondorProcess
from sharectl.adapters.config_fields import Sections
from sharectl.adapters.config_problems import fault_of
from sharectl.adapters.consumption_config import ASSETS, FileConfig, SlotConfig
from sharectl.adapters.consumption_faults import meaning_faults, misspelt_keys
from sharectl.adapters.consumption_meaning import Slots, consumption_of
from sharectl.adapters.wording import quoted
from sharectl.adapters.yaml_file import MAX_BYTES, not_following, problem_lines, text_of
from sharectl.adapters.yaml_syntax import Fault, NotYamlError
from sharectl.adapters.yaml_syntax import Path as ValuePath
from sharectl.adapters.yaml_tree import Tree
from sharectl.core.consumption_rules import Consumption
from sharectl.errors import ConfigError

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
                f"{name}:{line}: is configuration of HTCondor, and what it is rendered from is YAML; {LEAST}, or check this: {check}"
            ]
        )


def _tree(text: str) -> Tree:
    """Tree of the file, in which slot types may be numbers, also below a key that is ``slot_types`` misspelt."""
    tree = yaml_tree.read(text, frozenset({("slot_types",)}))
    others = [key for key, meant in misspelt_keys(tree).items() if meant == "slot_types"]
    return yaml_tree.read(text, frozenset((key,) for key in (*others, "slot_types"))) if others else tree


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


def _with_default_model(content: Any, default: Optional[tuple[SlotConfig, Mapping[str, BaseModel]]]) -> Any:
    return {"model": default[0].model, **content} if default and isinstance(content, dict) else content


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
        key: getattr(default, key) for key in ("weight", "num_claims", "claims") if getattr(slot, key) is None
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
        written.update({at: text for at, text in texts.items() if text is not None and at in tree.values})
    if not written:
        return
    source = Source()
    with CondorProcess(source.root_file(), source.environment) as process:
        read = process.canonical(list(written.values()))
    for (path, text), canonical in zip(written.items(), read):
        if canonical is None:
            yield Fault(
                tree.values[path], path, f"HTCondor cannot read {quoted(text)}; write a ClassAd expression"
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
