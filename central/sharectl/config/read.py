"""Sections of a file as records: every fault at once, each at its place."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, replace
from pathlib import Path
from typing import Any, Optional, get_args, get_origin

from sharectl.config import fields
from sharectl.config.groups import GroupConfig, SubgroupConfig, name_fault
from sharectl.config.model import faults_between
from sharectl.files.yaml import Fault, Tree, ValuePath, place
from sharectl.model import Way
from sharectl.words import did_you_mean, shown

GROUP_EXAMPLE = "cms: {pledge_hs06: 87100}"
_EXAMPLES = {
    "groups": f"groups, and below it such as {GROUP_EXAMPLE}",
    "file": "such as file: /shared/sharectl.txt",
}
"""Required key → example; others are shown by their name."""
_SCIENTIFIC = re.compile(r"[-+]?[0-9]{1,20}(\.[0-9]{0,20})?[eE][-+]?[0-9]{1,3}")
"""Number such as 1e9, which YAML 1.1 takes for text."""


class Reader:
    """Reader of one file; the faults of its tree grow.

    A value that cannot be used is None in the record, and its path is in ``broken``: checks between
    values leave those out.
    """

    def __init__(self, tree: Tree, top: type, source: Optional[str] = None) -> None:
        self.tree = tree
        self.top = top
        """Section of the whole file."""
        self.source = source
        """Source of pledges; None if it is invalid."""
        self.faults: list[Fault] = tree.faults
        self.broken: set[ValuePath] = set(tree.refused)
        self._places = {_folded(path): index for path, index in tree.keys.items()}

    def fault(self, path: ValuePath, message: str) -> None:
        """Note a fault at ``path``, on the line of its key or of the nearest one around it."""
        around = [_folded(path[:length]) for length in range(len(path), 0, -1)]
        indices = (self._places.get(at) for at in around)
        index = next((index for index in indices if index is not None), self.tree.start)
        self.faults.append(Fault(index, path, message))

    def _advice(self, name: str, keys: Iterable[str]) -> str:
        """Section in which ``name`` is a key, or the most similar one of ``keys``."""
        for at, section in fields.sections_of(self.top).items():
            if name in fields.keys_of(section):
                where = f"under {place(at)}" if at else "at the top level, not indented"
                return f"write it {where}"
        return did_you_mean(name, keys, f"write one of {', '.join(keys)}")

    def section(self, section: type, value: Any, path: ValuePath) -> Any:
        """Record of the mapping at ``path``."""
        keys = fields.keys_of(section)
        if not isinstance(value, dict):
            self._refuse(value, path, f"keys below it, such as {next(iter(keys))}")
            return fields.record_of(section, dict.fromkeys(keys))
        values: dict[str, Any] = {}
        for name, key in keys.items():
            at = (*path, name)
            if name in value:
                values[name] = self.value(key, value[name], at)
            elif key.default is MISSING:
                self.fault(at, f"is missing; write {_EXAMPLES.get(name, name)}")
                self.broken.add(at)
                values[name] = None
        unknown = [name for name in value if name not in keys]
        for name in unknown:
            if (*path, name) not in self.tree.refused:
                self.fault((*path, name), f"unknown key; {self._advice(name, keys)}")
        if not unknown:
            refused = self.tree.refused
            written = {key for key in value if value[key] is not None or (*path, key) in refused}
            for message in faults_between(section, written, self.source):
                self.fault(path, message)
        return fields.record_of(section, values)

    def value(self, key: fields.Key, value: Any, path: ValuePath) -> Any:
        """Value of a key; None if it cannot be used."""
        if value is None and key.optional:
            return None
        section, origin = key.section, get_origin(key.hint)
        if origin is tuple:
            return self._list(key, section, value, path)
        if section is None:
            read = self._values if origin is Mapping else self._scalar
            return read(key, value, path)
        return (self._named if origin else self.section)(section, value, path)

    def _list(self, key: fields.Key, section: Optional[type], value: Any, path: ValuePath) -> Any:
        if not isinstance(value, list):
            example = "ap-1"
            if section is not None:
                first = next(iter(fields.keys_of(section)))
                example = "{file: /shared/sharectl.txt}" if section is Way else f"{{{first}: …}}"
            return self._refuse(value, path, f"a list, such as [{example}]")
        if len(value) < (key.setting.least or 0):
            self._note(path, "the list is empty; write an entry, or remove it for the default")
            return None
        item = replace(key, hint=get_args(key.hint)[0], optional=False)
        return tuple(self.value(item, entry, (*path, number)) for number, entry in enumerate(value))

    def _values(self, key: fields.Key, value: Any, path: ValuePath) -> Any:
        """Mapping of names to numbers or words."""
        if not isinstance(value, dict):
            return self._refuse(value, path, "names below it, such as {NAME: …}")
        item = replace(key, hint=get_args(key.hint)[1], optional=False)
        return {name: self.value(item, entry, (*path, name)) for name, entry in value.items()}

    def _named(self, section: type, value: Any, path: ValuePath) -> Any:
        """Mapping of names; those of groups are folded."""
        is_group = section in (GroupConfig, SubgroupConfig)
        if not isinstance(value, dict):
            example = GROUP_EXAMPLE if is_group else "NAME: {…}"
            self._refuse(value, path, f"names below it, such as {example}")
            return {}
        named: dict[str, Any] = {}
        for name, content in value.items():
            at = (*path, name)
            problem = name_fault(name, section) if is_group else None
            if problem:
                self.fault(at, problem)
            # A dot would make two names of a faulty one.
            folded = name.lower().replace(".", " ") if is_group else name
            if folded in named:
                first = next(other for other in value if other.lower() == name.lower())
                line = self.tree.line(self.tree.keys.get((*path, first), 0))
                fact = f"is the same group as {first} at line {line}, case does not count"
                self.fault(at, f"{fact}; keep one of them")
            else:
                named[folded] = self.section(section, content, at)
        return named

    def _scalar(self, key: fields.Key, value: Any, path: ValuePath) -> Any:
        setting, is_text = key.setting, isinstance(value, str)
        if setting.choices and not setting.kind:
            sound = is_text and value in setting.choices
            remedy = f"one of {', '.join(setting.choices)}"
            return value if sound else self._refuse(value, path, remedy)
        if key.hint is bool:
            sound = isinstance(value, bool)
            return value if sound else self._refuse(value, path, "true or false")
        if key.hint in (int, float) and not setting.kind:
            return self._number(key, value, path)
        if key.hint in (str, Path) and not is_text:
            is_scalar = isinstance(value, (bool, int, float))
            text = f'text, in quotes: "{self._text(value, path)}"' if is_scalar else "text"
            return self._refuse(value, path, text)
        read = fields.NOTATIONS[setting.kind].read if setting.kind else fields.absolute_path
        try:
            return read(value)
        except fields.WrongError as error:
            self._note((*path, *error.at), str(error))
            return None

    def _number(self, key: fields.Key, value: Any, path: ValuePath) -> Any:
        kinds = (int,) if key.hint is int else (int, float)
        if isinstance(value, str) and _SCIENTIFIC.fullmatch(value):
            number = float(value)
            value = int(number) if number.is_integer() else number
        if isinstance(value, bool) or not isinstance(value, kinds):
            plain = ", without quotes or a unit" if isinstance(value, str) else ""
            return self._refuse(value, path, f"a {key.range}{plain}")
        if not math.isfinite(value) or not key.admits(value):
            return self._refuse(value, path, f"a {key.range}")
        return key.hint(value)

    def _refuse(self, value: Any, path: ValuePath, wanted: str) -> None:
        """Note that ``value`` is not what is wanted."""
        text = self._text(value, path)
        if value is None:
            fact = "there is no value" if path else "the file is empty"
        elif isinstance(value, bool):
            fact = f"YAML reads {text} as {str(value).lower()}"
        elif isinstance(value, (dict, list)):
            fact = f"this is a {'mapping' if isinstance(value, dict) else 'list'}"
        else:
            fact = f'"{text}" is invalid' if isinstance(value, str) else f"{text} is invalid"
        self._note(path, f"{fact}; write {wanted}")

    def _note(self, path: ValuePath, message: str) -> None:
        """Note a fault of a value, unless YAML has refused it, or one around it."""
        if not any(path[:length] in self.tree.refused for length in range(len(path) + 1)):
            self.fault(path, message)
        self.broken.add(path)

    def _text(self, value: Any, path: ValuePath) -> str:
        return shown(self.tree.texts.get(path, str(value)))


def _folded(path: ValuePath) -> ValuePath:
    return tuple(part.lower() if isinstance(part, str) else part for part in path)
