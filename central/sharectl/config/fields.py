"""Keys of sections, with type, default and bounds, from the fields of their records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from typing import Any, Optional, Union, get_args, get_origin, get_type_hints

from sharectl.files.yaml import ValuePath
from sharectl.settings import Setting, setting_of

UNIT_NAMES = {
    "seconds": "seconds",
    "bytes": "bytes",
    "hs06": "HS06",
    "hepscore23": "HEPscore23",
    "cores": "cores",
}
"""Unit at the end of a key → its name in a sentence."""


@dataclass(frozen=True)
class Key:
    """Key of a section."""

    name: str
    hint: Any
    """Type of its value, without Optional."""
    optional: bool
    default: Any
    setting: Setting

    @property
    def range(self) -> str:
        """Numbers that it may be, such as ``whole number, 60 to 86400 seconds``."""
        one = self.setting
        kind = "whole number" if self.hint is int else "number"
        least = f"above {_number(one.above)}" if one.above is not None else _number(one.least or 0)
        unit = UNIT_NAMES.get(self.name.rpartition("_")[2], "")
        return f"{kind}, {least} to {_number(one.most or 0)} {unit}".rstrip()

    def admits(self, number: float) -> bool:
        """Whether a number is within the bounds."""
        one = self.setting
        above = one.above is None or number > one.above
        above = above and (one.least is None or number >= one.least)
        return above and (one.most is None or number <= one.most)


@cache
def keys_of(section: Any) -> Mapping[str, Key]:
    """Name → key of a section, in order, with those of its inline records."""
    found: dict[str, Key] = {}
    hints = get_type_hints(section)
    for one in fields(section):
        setting = setting_of(one)
        if setting is None:
            continue
        hint, optional = _without_none(hints[one.name])
        if setting.inline:
            found.update(keys_of(hint))
        else:
            name = setting.key or one.name
            made = one.default_factory
            default = one.default if made is MISSING else made()
            found[name] = Key(name, hint, optional, default, setting)
    return found


def _without_none(hint: Any) -> tuple[Any, bool]:
    kinds = get_args(hint) if get_origin(hint) is Union else (hint,)
    rest = tuple(kind for kind in kinds if kind is not type(None))
    return (Union[rest] if len(rest) > 1 else rest[0]), len(rest) < len(kinds)


def items_of(record: Any) -> Iterator[tuple[Key, Any]]:
    """Key and value of a section, with those of its inline records."""
    section: Any = type(record)
    keys = keys_of(section)
    for one in fields(record):
        setting, value = setting_of(one), getattr(record, one.name)
        if setting is not None and setting.inline:
            yield from items_of(value)
        elif setting is not None:
            yield keys[setting.key or one.name], value


def record_of(section: type, values: Mapping[str, Any]) -> Any:
    """Record of a section; a key without a value has its default."""
    arguments: dict[str, Any] = {}
    for one in fields(section):
        setting = setting_of(one)
        if setting is not None and setting.inline:
            arguments[one.name] = record_of(type(one.default), values)
        elif setting is not None and (setting.key or one.name) in values:
            arguments[one.name] = values[setting.key or one.name]
    return section(**arguments)


def section_in(key: Key) -> Optional[type]:
    """Section that a key holds: itself, or as an entry of its list or mapping; None without one."""
    inner = get_args(key.hint)
    origin = get_origin(key.hint)
    hint = inner[0] if origin is tuple else inner[1] if origin is Mapping else key.hint
    sound = isinstance(hint, type) and is_dataclass(hint) and not key.setting.kind
    return hint if sound else None


@cache
def sections_of(top: Any) -> Mapping[ValuePath, type]:
    """Path of each section, ``*`` for any name or number; of several paths the shortest."""
    found: dict[ValuePath, type] = {(): top}
    todo: list[ValuePath] = [()]
    for path in todo:
        for name, key in keys_of(found[path]).items():
            section = section_in(key)
            if section is not None and section not in found.values():
                at = (*path, name) if key.hint is section else (*path, name, "*")
                found[at] = section
                todo.append(at)
    order = ["", *keys_of(top)]
    return dict(sorted(found.items(), key=lambda row: order.index(str((*row[0], "")[0]))))


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)
