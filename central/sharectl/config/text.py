"""The configuration as plain data, as YAML with its defaults, and as the reference of all keys."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml

from sharectl.config.fields import NOTATIONS, Key, items_of
from sharectl.config.model import Config
from sharectl.files.yaml import ValuePath

_PLAIN = re.compile(r"/?[A-Za-z_][A-Za-z0-9_./-]*")
_TEXT = "tag:yaml.org,2002:str"
_DEFAULT = "  # default"


def as_data(section: Any, *, nulls: bool = True) -> dict[str, Any]:
    """Plain data of a configuration or a section."""
    return {
        key.name: plain(key, value, nulls=nulls)
        for key, value in items_of(section)
        if nulls or value is not None
    }


def plain(key: Key, value: Any, *, nulls: bool = True) -> Any:
    """Plain data of the value of a key."""
    if value is None:
        return None
    if key.section is None:
        return _scalars(key, value)
    if isinstance(value, tuple):
        # An entry leaves out the ways that it is not, but no null of its section.
        rows = [as_data(entry) for entry in value]
        return [{name: part for name, part in row.items() if part is not None} for row in rows]
    if isinstance(value, Mapping):
        return {name: as_data(entry, nulls=False) for name, entry in value.items()}
    return as_data(value, nulls=nulls)


def _scalars(key: Key, value: Any) -> Any:
    """Plain data of a scalar, or of a list or mapping of them."""
    if isinstance(value, Mapping):
        return {name: _scalars(key, entry) for name, entry in value.items()}
    if isinstance(value, tuple):
        return [_scalars(key, entry) for entry in value]
    value = NOTATIONS[key.setting.kind].write(value) if key.setting.kind else value
    return str(value) if isinstance(value, Path) else value


def render(config: Config) -> str:
    """YAML that `sharectl.config.load` reads as ``config``; defaults are marked."""
    return "".join(f"{line}\n" for line in _section(config, config.written, ()))


def _section(section: Any, written: frozenset[ValuePath], path: ValuePath) -> Iterator[str]:
    for key, value in items_of(section):
        at = (*path, key.name)
        if key.section is key.hint and value is not None:
            yield f"{key.name}:"
            yield from (f"  {line}" for line in _section(value, written, at))
        elif key.name == "groups":
            yield f"{key.name}:"
            groups = plain(key, value).items()
            yield from (f"  {_scalar(name)}: {flow(content)}" for name, content in groups)
        else:
            yield f"{key.name}: {flow(plain(key, value))}{'' if at in written else _DEFAULT}"


def flow(value: Any) -> str:
    """A value of plain data as YAML on one line."""
    if isinstance(value, Mapping):
        pairs = (f"{_scalar(key)}: {flow(content)}" for key, content in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(flow, value))}]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        resolver: Any = yaml.resolver.Resolver()
        is_plain = _PLAIN.fullmatch(value) and (
            resolver.resolve(yaml.ScalarNode, value, (True, False)) == _TEXT
        )
        return value if is_plain else json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):  # YAML 1.1 takes 1e-07 for text
        return str(int(value)) if value == int(value) else f"{Decimal(repr(value)):f}"
    return json.dumps(value)
