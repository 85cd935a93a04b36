"""The configuration file, read and judged: everything that is wrong at once, each with its line and its remedy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any, Optional

from pydantic import ValidationError

from sharectl.adapters import yaml_tree
from sharectl.adapters.config_files import as_written, clashes
from sharectl.adapters.config_model import Config
from sharectl.adapters.config_pledges import context_of
from sharectl.adapters.config_problems import fault_at, fault_of
from sharectl.adapters.config_sound_part import sound_part
from sharectl.adapters.yaml_file import MAX_PROBLEMS, not_following, problem_lines, text_of
from sharectl.adapters.yaml_syntax import Fault, NotYamlError, Path
from sharectl.adapters.yaml_tree import Tree
from sharectl.errors import ConfigError

_LEAST = "write at least groups: {cms: {pledge_hs06: 87100}}"


def load(path: FilePath) -> Config:
    """Configuration in the file at ``path``.

    Raises
    ------
    ConfigError
        If it cannot be read or something is wrong in it: ``problems`` has all of it, in the order of the
        lines, each as ``FILE:LINE: where: what is wrong; what to write instead``.
    """
    return parse(text_of(path, _LEAST, " with --config"), str(path))


def parse(text: str, name: str) -> Config:
    """Configuration of the YAML ``text``; ``name`` is what messages call the file. Raises as `load`."""
    try:
        tree = yaml_tree.read(text)
    except NotYamlError as error:
        raise ConfigError(problem_lines(name, text, error.faults)) from error
    if not isinstance(tree.data, dict):
        what = "the file is empty" if tree.empty else "the file is no mapping of keys to values"
        top = [] if () in tree.refused else [Fault(tree.values.get((), 0), (), f"{what}; {_LEAST}")]
        raise ConfigError(problem_lines(name, text, [*tree.faults, *top]))
    _fold_groups(tree, tree.data, ())
    config, faults = _validated(tree, FilePath(name))
    if config is None or tree.faults:
        raise ConfigError(problem_lines(name, text, [*tree.faults, *faults]))
    return config


def _fold_groups(tree: Tree, above: Any, at: Path) -> None:
    """Note groups of any level below ``above`` whose names differ in case only, and keep the first of each."""
    groups = above.get("groups") if isinstance(above, dict) else None
    if not isinstance(groups, dict):
        return
    at = (*at, "groups")
    first: dict[str, str] = {}
    for name in list(groups):
        kept = first.setdefault(name.lower(), name)
        here, there = (*at, name), (*at, kept)
        if here == there:
            _fold_groups(tree, groups[name], here)
        else:
            line = tree.line(tree.keys[there])
            message = f"is the same group as {kept} at line {line}, case does not count; keep one of them"
            tree.faults.append(Fault(tree.keys[here], here, message))
            del groups[name]


def _validated(tree: Tree, file: FilePath) -> tuple[Optional[Config], list[Fault]]:
    """The configuration, or None, and what the models say about it.

    What concerns several values is looked at only once each of them is sound: so again and again without the unsound, until
    nothing more is found.
    """
    context = context_of(tree.data)
    config, faults = _judged(tree, tree.data, context, file)
    found = faults
    while found and len(faults) <= MAX_PROBLEMS:
        unsound = [*tree.refused, *(fault.path or () for fault in faults)]
        _, more = _judged(tree, sound_part(tree.data, unsound), context, file)
        found = [fault for fault in more if fault not in faults]
        faults = [*faults, *found]
    return config, not_following(faults, tree.refused)


def _judged(
    tree: Tree, data: Mapping[str, Any], context: dict[str, Optional[str]], file: FilePath
) -> tuple[Optional[Config], list[Fault]]:
    try:
        config = Config.model_validate(data, context=context)
    except ValidationError as error:
        return None, _faults(error, tree)
    faults = [fault_at(at, message, tree) for at, message in clashes(config, file, as_written)]
    return (None if faults else config), faults


def _faults(error: ValidationError, tree: Tree) -> list[Fault]:
    found = error.errors(include_url=False)
    # A list whose entries are all unsound is also called too short.
    return [fault_of(one, tree) for one in found if one["type"] != "too_short" or not one["input"]]
