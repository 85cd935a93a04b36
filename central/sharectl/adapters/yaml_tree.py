"""YAML text as plain data and the place of each value, without what YAML does behind an operator's back.

Refused, each with its place: duplicate keys, tags, anchors and aliases, keys that are not strings, numbers in
notations that only YAML reads as numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Optional

import yaml

from sharectl.adapters.wording import shown
from sharectl.adapters.yaml_syntax import TAG, Fault, Path, compose, line_of

MAX_NUMBER = 300
"""Characters of a number; the largest finite one has 309 digits."""

_NUMBERS = {
    "int": (re.compile(r"[-+]?(0|[1-9][0-9]*)"), int),
    "float": (re.compile(r"[-+]?[0-9]*\.[0-9]*([eE][-+][0-9]+)?"), float),
}
"""Type -> how an operator writes it, and what makes it. YAML also knows _ between digits, octal, binary and base 60."""
_NOT_FINITE = re.compile(r"[-+]?\.(inf|nan)", re.IGNORECASE)
_READ_AS = {"bool": "true or false", "int": "a number", "float": "a number", "null": "no value at all"}
"""Type -> what YAML makes of a word that looks like it."""


@dataclass
class Tree:
    """What a YAML text holds."""

    text: str
    data: Any = None
    """Mappings with string keys, lists, strings, numbers, truth values and None; None where a value was refused."""
    empty: bool = True
    """Whether there is nothing but blanks and comments."""
    keys: dict[Path, int] = field(default_factory=dict)
    """Value -> characters before its key, or before itself in a list."""
    values: dict[Path, int] = field(default_factory=dict)
    """Value -> characters before it."""
    texts: dict[Path, str] = field(default_factory=dict)
    """Scalar value -> how it is written, without quotes."""
    faults: list[Fault] = field(default_factory=list)
    refused: set[Path] = field(default_factory=set)
    """Values that are not in `data` as they were written."""
    numbered: frozenset[Path] = frozenset()
    """Mappings whose keys may be numbers; they are read as the text of the number."""

    def line(self, index: int) -> int:
        """Line of the character at ``index``, from 1; the last one for what is missing at the end."""
        return line_of(self.text, index)

    def refuse(self, index: int, path: Path, message: str) -> None:
        """Note a fault of the value at ``path``."""
        self.faults.append(Fault(index, path, message))
        self.refused.add(path)


def read(text: str, numbered: frozenset[Path] = frozenset()) -> Tree:
    """Tree of one YAML document; the mappings of ``numbered`` may have keys that are whole numbers.

    Raises
    ------
    NotYamlError
        If the text is no YAML.
    """
    composed = compose(text)
    tree = Tree(text, empty=composed.node is None, numbered=numbered)
    if composed.node is not None:
        tree.data = _value(tree, composed.refused, composed.node, ())
    return tree


def _value(tree: Tree, refused: dict[int, str], node: Any, path: Path) -> Any:
    tree.values[path] = node.start_mark.index
    if id(node) in refused:
        tree.refuse(node.start_mark.index, path, refused[id(node)])
        return None
    if isinstance(node, yaml.MappingNode):
        return _mapping(tree, refused, node, path)
    if isinstance(node, yaml.SequenceNode):
        return _sequence(tree, refused, node, path)
    tree.texts[path] = node.value
    fault = _unprintable(node.value)
    content = None
    if fault is None:
        content, fault = _scalar(node)
    if fault:
        tree.refuse(node.start_mark.index, path, fault)
    return content


def _sequence(tree: Tree, refused: dict[int, str], node: Any, path: Path) -> list[Any]:
    items = {(*path, number): item for number, item in enumerate(node.value)}
    tree.keys.update({at: item.start_mark.index for at, item in items.items()})
    return [_value(tree, refused, item, at) for at, item in items.items()]


def _mapping(tree: Tree, refused: dict[int, str], node: Any, path: Path) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for key_node, value_node in node.value:
        index = key_node.start_mark.index
        key = key_node.value if isinstance(key_node, yaml.ScalarNode) else "?"
        at = (*path, key)
        fault = refused.get(id(key_node)) or _key_fault(key_node)
        if fault:
            tree.refuse(index, at, fault)
        elif key in content:
            first = tree.line(tree.keys[at])
            tree.faults.append(
                Fault(index, at, f"is here a second time, first at line {first}; keep one of them")
            )
        else:
            misread = _READ_AS.get(_kind(key_node))
            if misread and not (path in tree.numbered and key.isdecimal()):
                message = (
                    f'YAML reads the key {shown(key)} as {misread}, not as a name; quote it: "{shown(key)}"'
                )
                tree.faults.append(Fault(index, at, message))
            tree.keys[at] = index
            content[key] = _value(tree, refused, value_node, at)
    return content


def _key_fault(node: Any) -> Optional[str]:
    """Why a node cannot be a key; None if it can."""
    if not isinstance(node, yaml.ScalarNode):
        return "a key is a plain name; write it without brackets"
    if _kind(node) == "merge":
        return "YAML merge keys are not read; write the keys out"
    return _unprintable(node.value)


def _kind(node: Any) -> str:
    """What YAML makes of a scalar: str, bool, int and so on."""
    return str(node.tag).replace(TAG, "")


def _unprintable(text: str) -> Optional[str]:
    """What is wrong with the characters of a scalar; None if all of them can be seen."""
    for character in text:
        if not character.isprintable() and character not in "\n\t":
            return f"holds the character U+{ord(character):04X}, which cannot be seen; remove it"
    return None


def _scalar(node: Any) -> tuple[Any, Optional[str]]:
    """Value of a scalar, and what is wrong with how it is written."""
    kind = _kind(node)
    if kind == "null":
        return None, None
    if kind == "bool":
        return node.value.lower() in ("yes", "true", "on"), None
    if kind in _NUMBERS:
        return _number(node, kind)
    return node.value, None


def _number(node: Any, kind: str) -> tuple[Any, Optional[str]]:
    written, make = _NUMBERS[kind]
    digits = node.value.replace("_", "")
    if len(digits) > MAX_NUMBER:
        return None, "has more digits than any number here; write a shorter one"
    if written.fullmatch(node.value):
        return make(digits), None
    if _NOT_FINITE.fullmatch(node.value):
        return float(node.value.replace(".", "")), None
    return None, _other_notation(node, kind)


def _other_notation(node: Any, kind: str) -> str:
    constructor = yaml.constructor.SafeConstructor()
    construct: Any = getattr(constructor, f"construct_yaml_{kind}")
    try:
        number = construct(node)
    except ValueError:
        return f'{node.value} is no number; write one, or "{node.value}" in quotes for a name'
    return f'YAML reads {node.value} as the number {number}; write {number}, or "{node.value}" in quotes for a name'
