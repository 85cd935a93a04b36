"""A YAML file of consumption policies, read and judged: everything that is wrong at once, with line and remedy."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Optional, TypeVar

from pydantic import BaseModel, ValidationError

from sharectl.adapters import yaml_tree
from sharectl.adapters.config_fields import Sections
from sharectl.adapters.config_problems import fault_of
from sharectl.adapters.consumption_config import ASSETS, FileConfig, SlotConfig
from sharectl.adapters.consumption_faults import meaning_faults
from sharectl.adapters.consumption_meaning import consumption_of
from sharectl.adapters.yaml_file import MAX_BYTES, not_following, problem_lines, text_of
from sharectl.adapters.yaml_syntax import Fault, NotYamlError
from sharectl.adapters.yaml_syntax import Path as ValuePath
from sharectl.adapters.yaml_tree import Tree
from sharectl.core.consumption_rules import Consumption
from sharectl.errors import ConfigError

LEAST = "write such as what `sharectl consumption examples minimum-charge` prints"
_SECTIONS: Sections = {(): FileConfig, ("startd",): SlotConfig, ("slot_types", "*"): SlotConfig}
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
    try:
        tree = yaml_tree.read(text, frozenset({("slot_types",)}))
    except NotYamlError as error:
        raise ConfigError(problem_lines(name, text, error.faults)) from error
    if not isinstance(tree.data, dict):
        what = "the file is empty" if tree.empty else "the file is no mapping of keys to values"
        top = [] if () in tree.refused else [Fault(tree.values.get((), 0), (), f"{what}; {LEAST}")]
        raise ConfigError(problem_lines(name, text, [*tree.faults, *top]))
    faults: list[Fault] = []
    slots = dict(_slots(tree, faults))
    faults += meaning_faults(tree, slots)
    faults = [*tree.faults, *not_following(faults, tree.refused)]
    if faults:
        raise ConfigError(problem_lines(name, text, faults))
    return consumption_of(slots)


def _slots(
    tree: Tree, faults: list[Fault]
) -> Iterator[tuple[ValuePath, tuple[SlotConfig, Mapping[str, BaseModel]]]]:
    """Path of each policy → the policy and its assets, those that are sound; ``faults`` gets the others'."""
    top = _validated(FileConfig, tree, (), faults, _SECTIONS)
    data = tree.data
    if top is None:
        data = {key: data.get(key) for key in ("startd", "slot_types") if key in data}
    at: dict[ValuePath, Any] = {}
    if data.get("startd") is not None:
        at[("startd",)] = data["startd"]
    if isinstance(data.get("slot_types"), dict):
        at.update({("slot_types", number): slot for number, slot in data["slot_types"].items()})
    for path, content in at.items():
        slot = _validated(SlotConfig, tree, path, faults, _SECTIONS, content)
        model = content.get("model") if isinstance(content, dict) else None
        section = ASSETS.get(model) if isinstance(model, str) else None
        assets = content.get("assets") if isinstance(content, dict) else None
        read: dict[str, BaseModel] = {}
        if section is not None and isinstance(assets, dict):
            sections = {**_SECTIONS, (*path, "assets", "*"): section}
            for asset, rule in assets.items():
                sound = _validated(section, tree, (*path, "assets", asset), faults, sections, rule)
                if sound is not None:
                    read[asset] = sound
        if slot is not None:
            yield path, (slot, read)


def _validated(
    section: type[_Model],
    tree: Tree,
    path: ValuePath,
    faults: list[Fault],
    sections: Sections,
    content: Any = None,
) -> Optional[_Model]:
    try:
        return section.model_validate(tree.data if not path else content)
    except ValidationError as error:
        faults += [fault_of(one, tree, sections, path) for one in error.errors(include_url=False)]
        return None
