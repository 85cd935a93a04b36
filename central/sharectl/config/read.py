"""Sections of a file as records: every fault at once, each at its place."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, replace
from pathlib import Path
from typing import Any, Optional, get_args, get_origin

from sharectl.config import messages
from sharectl.config.fields import Key, keys_of, record_of, section_in, sections_of
from sharectl.config.groups import GroupConfig, SubgroupConfig, first_level_fault, part_fault
from sharectl.config.model import faults_between
from sharectl.config.values import NOTATIONS, WrongError, absolute_path
from sharectl.files.yaml import Fault, Tree, ValuePath
from sharectl.words import shown


class Reader:
    """Reader of one file; ``faults`` grow.

    A value that cannot be used is None in the record, whatever its type, and its path is in
    ``broken``: what is checked between values says nothing of those.
    """

    def __init__(self, tree: Tree, top: type, source: Optional[str] = None) -> None:
        self.tree = tree
        self.top = top
        """Section of the whole file."""
        self.source = source
        """Source of pledges; None if that is not known."""
        self.faults: list[Fault] = []
        self.broken: set[ValuePath] = set(tree.refused)
        self._places = {_folded(path): index for path, index in tree.keys.items()}

    def fault(self, path: ValuePath, message: str, *, of_key: bool = False) -> None:
        """Note a fault of the value at ``path``, or of the nearest one around it that is there."""
        first, second = self.tree.values, self.tree.keys
        if of_key:
            first, second = second, first
        for length in range(len(path), -1, -1):
            at = path[:length]
            index = first.get(at, second.get(at, self._places.get(_folded(at))))
            if index is not None or not at:
                self.faults.append(Fault(index or 0, path, message))
                return

    def unknown_keys(self, section: type, value: Mapping[str, Any], path: ValuePath) -> bool:
        """Note the keys that a section does not have; False without one."""
        keys = keys_of(section)
        unknown = [(*path, name) for name in value if name not in keys]
        elsewhere = {at: keys_of(one) for at, one in sections_of(self.top).items()}
        for at in unknown:
            if at not in self.tree.refused:
                self.fault(at, messages.unknown_key(str(at[-1]), keys, elsewhere), of_key=True)
        return bool(unknown)

    def section(self, section: type, value: Any, path: ValuePath) -> Any:
        """Record of the mapping at ``path``."""
        keys = keys_of(section)
        if not isinstance(value, dict):
            self._refuse(path, messages.not_a_mapping(path, value, self._text(path, value), keys))
            return _unknown(section)
        values: dict[str, Any] = {}
        for name, key in keys.items():
            at = (*path, name)
            if at in self.tree.refused:
                values[name] = _nothing(key)
            elif name in value:
                values[name] = self.value(key, value[name], at)
        for name in (key.name for key in keys.values() if key.default is MISSING):
            if name not in value:
                self.fault((*path, name), messages.missing(name), of_key=True)
                self.broken.add((*path, name))
                values[name] = None
        if not self.unknown_keys(section, value, path):
            written = {
                name
                for name, content in value.items()
                if content is not None or (*path, name) in self.tree.refused
            }
            for message in faults_between(section, written, self.source):
                self.fault(path, message, of_key=True)
        return record_of(section, values)

    def value(self, key: Key, value: Any, path: ValuePath) -> Any:
        """Value of a key; None if it cannot be used."""
        if value is None and key.optional:
            return None
        section, origin = section_in(key), get_origin(key.hint)
        if origin is tuple:
            return self._list(key, section, value, path)
        if section is not None:
            many = origin is not None
            return self._named(section, value, path) if many else self.section(section, value, path)
        return self._scalar(key, value, path)

    def _list(self, key: Key, section: Optional[type], value: Any, path: ValuePath) -> Any:
        if not isinstance(value, list):
            text = self._text(path, value)
            message = messages.not_a_list(value, text, of_mappings=section is not None)
            return self._refuse(path, message)
        if len(value) < (key.setting.least or 0):
            return self._refuse(
                path,
                f"the list is empty; write at least one entry, or remove {path[-1]} for the "
                "default",
            )
        item = replace(key, hint=get_args(key.hint)[0], optional=False)
        return tuple(
            self.section(section, entry, (*path, number))
            if section is not None
            else self._scalar(item, entry, (*path, number))
            for number, entry in enumerate(value)
        )

    def _named(self, section: type, value: Any, path: ValuePath) -> Any:
        """Mapping of names; those of groups are folded."""
        if not isinstance(value, dict):
            keys = () if path == ("groups",) else ("NAME",)
            self._refuse(path, messages.not_a_mapping(path, value, self._text(path, value), keys))
            return {}
        name_fault = _NAME_FAULTS.get(section)
        named: dict[str, Any] = {}
        for name, content in value.items():
            at = (*path, name)
            problem = name_fault(name) if name_fault is not None else None
            if problem:
                self.fault(at, problem, of_key=True)
            # A dot would make two names of a faulty one.
            folded = name.lower().replace(".", " ") if name_fault is not None else name
            if folded in named:
                first = next(other for other in value if other.lower() == name.lower())
                line = self.tree.line(self.tree.keys.get((*path, first), 0))
                message = (
                    f"is the same group as {first} at line {line}, case does not count; keep one "
                    "of them"
                )
                self.fault(at, message, of_key=True)
            else:
                refused = at in self.tree.refused
                named[folded] = _unknown(section) if refused else self.section(section, content, at)
        return named

    def _scalar(self, key: Key, value: Any, path: ValuePath) -> Any:
        text, one = self._text(path, value), key.setting
        if one.choices:
            sound = isinstance(value, str) and value in one.choices
            message = messages.not_a_choice(one.choices, value, text)
            return value if sound else self._refuse(path, message)
        if key.hint is bool:
            fact = messages.unusable(value, text)
            sound = isinstance(value, bool)
            return value if sound else self._refuse(path, f"{fact}; write true or false")
        if key.hint in (str, Path) and not isinstance(value, str):
            return self._refuse(path, messages.not_text(value, text))
        if not one.kind and key.hint is not Path:
            return self._number(key, value, path, text)
        read = NOTATIONS[one.kind].read if one.kind else absolute_path
        try:
            return read(value)
        except WrongError as error:
            return self._refuse((*path, *error.at), str(error))

    def _number(self, key: Key, value: Any, path: ValuePath, text: str) -> Any:
        kinds = (int,) if key.hint is int else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds):
            return self._refuse(path, messages.not_a_number(key, value, text))
        if not math.isfinite(value) or not key.admits(value):
            return self._refuse(path, messages.out_of_range(key, text))
        return key.hint(value)

    def _refuse(self, path: ValuePath, message: str) -> None:
        if not any(path[:length] in self.tree.refused for length in range(len(path) + 1)):
            self.fault(path, message)
        self.broken.add(path)

    def _text(self, path: ValuePath, value: Any) -> str:
        return shown(self.tree.texts.get(path, messages.kind_of(value)))


def _folded(path: ValuePath) -> ValuePath:
    return tuple(part.lower() if isinstance(part, str) else part for part in path)


def _unknown(section: type) -> Any:
    """Record of a section that cannot be read."""
    return record_of(section, {name: _nothing(key) for name, key in keys_of(section).items()})


def _nothing(key: Key) -> Any:
    """Value of a key that cannot be read."""
    section = section_in(key)
    is_record = section is not None and section is key.hint and not key.optional
    return _unknown(key.hint) if is_record else None


_NAME_FAULTS = {GroupConfig: first_level_fault, SubgroupConfig: part_fault}
"""Section of a group → why a name cannot be one."""
