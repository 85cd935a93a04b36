"""The configuration file, read and judged: everything that is wrong at once, each with its line and its remedy."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Optional

from pydantic import ValidationError

from sharectl.adapters import pipes, yaml_tree
from sharectl.adapters.config_model import Config
from sharectl.adapters.config_problems import fault_of, place
from sharectl.adapters.yaml_syntax import Fault, NotYamlError, column_of, line_of
from sharectl.adapters.yaml_syntax import Path as ValuePath
from sharectl.adapters.yaml_tree import Tree
from sharectl.errors import ConfigError

MAX_BYTES = 2**20
"""Size of a file that is still read."""
PIPE_SECONDS = 5.0
"""How long a pipe may be silent."""
MAX_PROBLEMS = 100
"""Problems that are listed one by one."""

_LEAST = "write at least groups: {cms: {pledge_hs06: 87100}}"
_ANY_GROUPS = {"any": {"pledge_hs06": 1.0}}


def load(path: Path) -> Config:
    """Configuration in the file at ``path``.

    Raises
    ------
    ConfigError
        If it cannot be read or something is wrong in it: ``problems`` has all of it, in the order of the
        lines, each as ``FILE:LINE: where: what is wrong; what to write instead``.
    """
    return parse(_text(path), str(path))


def parse(text: str, name: str) -> Config:
    """Configuration of the YAML ``text``; ``name`` is what messages call the file. Raises as `load`."""
    try:
        tree = yaml_tree.read(text)
    except NotYamlError as error:
        raise ConfigError(_lines(name, text, error.faults)) from error
    if not isinstance(tree.data, dict):
        what = "the file is empty" if tree.empty else "the file is no mapping of keys to values"
        top = [] if () in tree.refused else [Fault(tree.values.get((), 0), (), f"{what}; {_LEAST}")]
        raise ConfigError(_lines(name, text, [*tree.faults, *top]))
    _fold_groups(tree, tree.data.get("groups"))
    config, faults = _validated(tree)
    if config is None or tree.faults:
        raise ConfigError(_lines(name, text, [*tree.faults, *faults]))
    return config


def _text(path: Path) -> str:
    try:
        with pipes.open_bytes(path, PIPE_SECONDS) as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise ConfigError([f"{path}: there is no such file; {_LEAST}, or name another file"]) from error
    except IsADirectoryError as error:
        raise ConfigError([f"{path}: is a directory; name a file in it"]) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError([f"{path}: cannot be read: {reason}; check its owner and mode"]) from error
    if len(content) > MAX_BYTES:
        raise ConfigError(
            [f"{path}: has more than {MAX_BYTES} bytes, so it is no configuration; name another file"]
        )
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = content[error.start]
        raise ConfigError(
            [f"{path}:{line}: byte 0x{byte:02X} is not UTF-8; save the file as UTF-8"]
        ) from error


def _fold_groups(tree: Tree, groups: Any) -> None:
    """Note groups whose names differ in case only, and keep the first of each."""
    if not isinstance(groups, dict):
        return
    first: dict[str, str] = {}
    for name in list(groups):
        kept = first.setdefault(name.lower(), name)
        if kept != name:
            line = tree.line(tree.keys["groups", kept])
            message = f"is the same group as {kept} at line {line}, case does not count; keep one of them"
            tree.faults.append(Fault(tree.keys["groups", name], ("groups", name), message))
            del groups[name]


def _validated(tree: Tree) -> tuple[Optional[Config], list[Fault]]:
    """The configuration, or None, and what the models say about it."""
    try:
        return Config.model_validate(tree.data), []
    except ValidationError as error:
        faults = _faults(error, tree)
    # What concerns several sections is looked at only once each of them is sound: so again, without the unsound.
    try:
        Config.model_validate(_sound_part(tree.data, [fault.path for fault in faults]))
    except ValidationError as error:
        faults += _faults(error, tree)
    return None, _not_following(faults, tree.refused)


def _faults(error: ValidationError, tree: Tree) -> list[Fault]:
    found = error.errors(include_url=False)
    # A list whose entries are all unsound is also called too short.
    return [fault_of(one, tree) for one in found if one["type"] != "too_short" or not one["input"]]


def _sound_part(data: dict[str, Any], unsound: Iterable[Any]) -> dict[str, Any]:
    """``data`` without what lies at a path of ``unsound``; with some group if there is none left."""
    sound = {**data}
    for path in filter(None, unsound):
        section = sound.get(path[0])
        if len(path) > 1 and isinstance(section, dict) and path[0] != "groups":
            sound[path[0]] = {key: value for key, value in section.items() if key != path[1]}
        else:
            sound.pop(path[0], None)
    return {"groups": _ANY_GROUPS, **sound}


def _not_following(faults: Iterable[Fault], refused: Iterable[ValuePath]) -> list[Fault]:
    """``faults`` but for those that are there only since a value was refused: below it, at it, or in what holds it."""
    refused = set(refused)
    holding = {path[:length] for path in refused for length in range(len(path))}

    def follows(at: ValuePath) -> bool:
        return at in holding or any(at[:length] in refused for length in range(len(at) + 1))

    return [fault for fault in faults if not follows(fault.path or ())]


def _lines(name: str, text: str, faults: Iterable[Fault]) -> list[str]:
    ordered = sorted(faults, key=lambda fault: fault.index)
    lines = [_line(name, text, fault) for fault in ordered[:MAX_PROBLEMS]]
    if len(ordered) > MAX_PROBLEMS:
        line = line_of(text, ordered[MAX_PROBLEMS].index)
        lines.append(
            f"{name}:{line}: {len(ordered) - MAX_PROBLEMS} more problems from here on; mend these first"
        )
    return lines


def _line(name: str, text: str, fault: Fault) -> str:
    line = line_of(text, fault.index)
    if fault.path is None:
        return f"{name}:{line}:{column_of(text, fault.index)}: {fault.message}"
    where = f"{place(fault.path)}: " if fault.path else ""
    return f"{name}:{line}: {where}{fault.message}"
