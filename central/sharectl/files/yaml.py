"""YAML text as plain data and the place of each value, without what YAML does behind an operator's back.

Refused, each with its place: duplicate keys, tags, anchors and aliases, keys that are not strings,
numbers in notations that only YAML reads as numbers.

YAML text as nodes, or what is wrong with it in words for an operator. No aliases, anchors or tags.

A YAML file of an operator: its text, and the lines that say what is wrong in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional, Union

import yaml
from yaml.composer import Composer
from yaml.parser import Parser
from yaml.reader import Reader, ReaderError
from yaml.resolver import Resolver
from yaml.scanner import Scanner

from sharectl.errors import ConfigError
from sharectl.files import files
from sharectl.words import shown

ValuePath = tuple[Union[str, int], ...]
"""Keys and list positions from the top of the file to a value."""

TAG = "tag:yaml.org,2002:"
"""What PyYAML puts before the names of YAML's own types."""
MAX_DEPTH = 20
"""Levels of mappings and lists within each other."""
MAX_VALUES = 20_000
"""Keys and values of a file."""
_TAB = re.compile(r"^ *\t", re.MULTILINE)
_HINTS = {
    "scanning an alias": 'put a pattern that begins with * in quotes: "*"',
    "scanning an anchor": "put text that begins with & in quotes",
    "cannot start any token": "put text that begins with %, @ or ` in quotes",
    "mapping values are not allowed": "indent all keys of a mapping alike, and put text that holds a colon in quotes",
    "expected a single document": "remove the line --- and what follows it, or put that into a file of its own",
    "too many levels": "write no more levels than docs/configuration.md shows",
    "too many values": f"write at most {MAX_VALUES} keys and values, and many hosts as one pattern",
    "quoted scalar": "close the quotes",
    "flow mapping": "close {, and put commas between the entries",
    "flow sequence": "close [, and put commas between the entries",
}
"""Words of PyYAML's message -> what to do."""
_ANY_HINT = "check indentation, colons and quotes on this line and the one before"


@dataclass(frozen=True)
class Fault:
    """Something that is wrong at a place of the text."""

    index: int
    """Characters before it."""
    path: Optional[ValuePath]
    """Value that it is about; None if it is about the text."""
    message: str
    """What is wrong, and what to write instead."""


class NotYamlError(Exception):
    """The text is no YAML; ``faults`` has what is wrong, as far as could be read."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__(faults[0].message)
        self.faults = faults


@dataclass(frozen=True)
class Composed:
    """A YAML document as PyYAML's nodes."""

    node: Any
    """None if there is nothing but blanks and comments."""
    refused: dict[int, str]
    """``id`` of a node -> why its value does not count."""


def compose(text: str) -> Composed:
    """Nodes of the one document in ``text``.

    Raises
    ------
    NotYamlError
        If the text is no YAML.
    """
    loader: Optional[_Loader] = None
    try:
        loader = _Loader(text)
        return Composed(loader.get_single_node(), loader.refused)
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise NotYamlError(_syntax_faults(text, error, loader)) from error


class _Loader(Reader, Scanner, Parser, Composer, Resolver):
    """Composes nodes without anchors, aliases and tags; ``refused`` has what was wrong by the node's identity."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)
        Composer.__init__(self)
        Resolver.__init__(self)
        self.refused: dict[int, str] = {}
        self._depth = 1
        self._values = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Node of the next events."""
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        self._values += 1
        for count, most, what in (
            (self._depth, MAX_DEPTH, "levels within each other"),
            (self._values, MAX_VALUES, "values"),
        ):
            if count > most:
                raise yaml.MarkedYAMLError(
                    problem=f"too many {what}", problem_mark=event.start_mark
                )
        if isinstance(event, yaml.AliasEvent):
            self.get_event()  # type: ignore[no-untyped-call]
            node: Any = yaml.ScalarNode(f"{TAG}null", "")
            node.start_mark = event.start_mark
            self.refused[id(node)] = (
                "YAML aliases are not read; write the value out, or "
                f'"*{shown(str(event.anchor))}" in quotes for a name'
            )
            return node
        message = _extra(event)
        event.anchor = event.tag = None
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        if message:
            self.refused[id(node)] = message
        return node


def _extra(event: Any) -> Optional[str]:
    """What is wrong with the properties of a node; None if it has none."""
    if event.anchor is not None:
        return f"YAML anchors are not read; remove &{shown(event.anchor)}"
    if event.tag is not None:
        return (
            f"YAML tags are not read; remove {shown(event.tag.replace(TAG, '!!'))}, or quote a name "
            "that begins with !"
        )
    return None


def place(path: ValuePath) -> str:
    """``path`` as people write it: ``publish[0].file``."""
    words = ""
    for part in path:
        words += f"[{part}]" if isinstance(part, int) else f".{shown(part)}"
    return words.lstrip(".")


def line_of(text: str, index: int) -> int:
    """Line of the character at ``index``, from 1, as editors count; the last one for what is missing at the end."""
    return text.count("\n", 0, _within(text, index)) + 1


def column_of(text: str, index: int) -> int:
    """Column of the character at ``index``, from 1, counted in characters."""
    index = _within(text, index)
    return index - text.rfind("\n", 0, index)


def _within(text: str, index: int) -> int:
    return min(index, len(text.rstrip("\n")))


def _syntax_faults(text: str, error: Exception, loader: Optional[_Loader]) -> list[Fault]:
    if isinstance(error, ReaderError):
        message = (
            f"holds the character U+{ord(text[error.position]):04X}, which YAML forbids; remove it"
        )
        return [Fault(error.position, None, message)]
    if not isinstance(error, yaml.MarkedYAMLError):
        # PyYAML trips over escapes such as \UFFFFFFFF and over endless version numbers.
        return [
            Fault(
                loader.index if loader else 0, None, f"not YAML: {error}; remove what stands here"
            )
        ]
    if "'\\t'" in (error.problem or ""):
        return [
            Fault(tab.end() - 1, None, "a tab in the indentation, which YAML forbids; write spaces")
            for tab in _TAB.finditer(text)
        ] or [Fault(_index(error), None, "a tab, which YAML forbids here; write spaces")]
    hint = next((hint for words, hint in _HINTS.items() if words in str(error)), _ANY_HINT)
    context = (
        f", {error.context} at line {line_of(text, error.context_mark.index)}"
        if error.context_mark
        else ""
    )
    return [Fault(_index(error), None, f"not YAML: {error.problem}{context}; {hint}")]


def _index(error: yaml.MarkedYAMLError) -> int:
    mark = error.problem_mark or error.context_mark
    return int(mark.index) if mark else 0


MAX_BYTES = 2**20
"""Size of a file that is still read."""
PIPE_SECONDS = 5.0
"""How long a pipe may be silent."""
MAX_PROBLEMS = 100
"""Problems that are listed one by one."""


def text_of(path: Path, least: str, how: str = "") -> str:
    """Text of the file at ``path``; in an error ``least`` says what to write where there is none, ``how`` how to name it.

    Raises
    ------
    ConfigError
        If it cannot be read.
    """
    try:
        with files.open_bytes(path, PIPE_SECONDS) as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise ConfigError(
            [f"{path}: there is no such file; {least}, or name another file{how}"]
        ) from error
    except IsADirectoryError as error:
        raise ConfigError([f"{path}: is a directory; name a file in it"]) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(
            [f"{path}: cannot be read: {reason}; check its owner and mode"]
        ) from error
    if len(content) > MAX_BYTES:
        raise ConfigError(
            [
                (
                    f"{path}: has more than {MAX_BYTES} bytes, so it is no configuration; name "
                    "another file"
                )
            ]
        )
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = content[error.start]
        raise ConfigError(
            [f"{path}:{line}: byte 0x{byte:02X} is not UTF-8; save the file as UTF-8"]
        ) from error


def not_following(faults: Iterable[Fault], refused: Iterable[ValuePath]) -> list[Fault]:
    """``faults`` but for those that are there only since a value was refused: below it, at it, or in what holds it."""
    refused = set(refused)
    holding = {path[:length] for path in refused for length in range(len(path))}

    def follows(at: ValuePath) -> bool:
        return at in holding or any(at[:length] in refused for length in range(len(at) + 1))

    return [fault for fault in faults if not follows(fault.path or ())]


def problem_lines(name: str, text: str, faults: Iterable[Fault]) -> list[str]:
    """``NAME:LINE: where: what is wrong; what to write instead``, in the order of the lines."""
    ordered = sorted(faults, key=lambda fault: fault.index)
    lines = [_line(name, text, fault) for fault in ordered[:MAX_PROBLEMS]]
    if len(ordered) > MAX_PROBLEMS:
        line = line_of(text, ordered[MAX_PROBLEMS].index)
        lines.append(
            f"{name}:{line}: {len(ordered) - MAX_PROBLEMS} more problems from here on; mend "
            "these first"
        )
    return lines


def _line(name: str, text: str, fault: Fault) -> str:
    line = line_of(text, fault.index)
    if fault.path is None:
        return f"{name}:{line}:{column_of(text, fault.index)}: {fault.message}"
    where = f"{place(fault.path)}: " if fault.path else ""
    return f"{name}:{line}: {where}{fault.message}"


MAX_NUMBER = 300
"""Characters of a number; the largest finite one has 309 digits."""

_NUMBERS = {
    "int": (re.compile(r"[-+]?(0|[1-9][0-9]*)"), int),
    "float": (re.compile(r"[-+]?[0-9]*\.[0-9]*([eE][-+][0-9]+)?"), float),
}
"""Type -> how an operator writes it, and what makes it.

YAML also knows _ between digits, octal, binary and base 60.
"""
_NOT_FINITE = re.compile(r"[-+]?\.(inf|nan)", re.IGNORECASE)
_READ_AS = {
    "bool": "true or false",
    "int": "a number",
    "float": "a number",
    "null": "no value at all",
}
"""Type -> what YAML makes of a word that looks like it."""


@dataclass
class Tree:
    """What a YAML text holds."""

    text: str
    data: Any = None
    """Mappings with string keys, lists, strings, numbers, truth values and None; None where a value was refused."""
    empty: bool = True
    """Whether there is nothing but blanks and comments."""
    keys: dict[ValuePath, int] = field(default_factory=dict)
    """Value -> characters before its key, or before itself in a list."""
    values: dict[ValuePath, int] = field(default_factory=dict)
    """Value -> characters before it."""
    texts: dict[ValuePath, str] = field(default_factory=dict)
    """Scalar value -> how it is written, without quotes."""
    faults: list[Fault] = field(default_factory=list)
    refused: set[ValuePath] = field(default_factory=set)
    """Values that are not in `data` as they were written."""
    numbered: frozenset[ValuePath] = frozenset()
    """Mappings whose keys may be numbers; they are read as the text of the number."""

    def line(self, index: int) -> int:
        """Line of the character at ``index``, from 1; the last one for what is missing at the end."""
        return line_of(self.text, index)

    def refuse(self, index: int, path: ValuePath, message: str) -> None:
        """Note a fault of the value at ``path``."""
        self.faults.append(Fault(index, path, message))
        self.refused.add(path)


def read(text: str, numbered: frozenset[ValuePath] = frozenset()) -> Tree:
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


def _value(tree: Tree, refused: dict[int, str], node: Any, path: ValuePath) -> Any:
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


def _sequence(tree: Tree, refused: dict[int, str], node: Any, path: ValuePath) -> list[Any]:
    items = {(*path, number): item for number, item in enumerate(node.value)}
    tree.keys.update({at: item.start_mark.index for at, item in items.items()})
    return [_value(tree, refused, item, at) for at, item in items.items()]


def _mapping(tree: Tree, refused: dict[int, str], node: Any, path: ValuePath) -> dict[str, Any]:
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
                message = f'YAML reads the key {shown(key)} as {misread}, not as a name; quote it: "{shown(key)}"'
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
    return (
        f'YAML reads {node.value} as the number {number}; write {number}, or "{node.value}" in '
        "quotes for a name"
    )
