"""An operator's YAML as plain data, with the place of each value and each fault.

YAML changes the meaning of text silently. Duplicate keys, tags, anchors and aliases are therefore
faults, each with its line and remedy. Keys are names as they are written, and numbers in notations
that only YAML knows, such as 51:00, are text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Optional, Union

import yaml

from sharectl.errors import ConfigError
from sharectl.files import files
from sharectl.words import shown

ValuePath = tuple[Union[str, int], ...]
"""Keys and list positions from the top of the file to a value."""

MAX_BYTES = 2**20
"""Size of a file that is still read."""
MAX_DEPTH = 20
"""Levels of mappings and lists within each other."""
MAX_VALUES = 20_000
"""Keys and values of a file; PyYAML takes a millisecond for ten."""
MAX_PROBLEMS = 100
"""Problems that are listed one by one."""

_TAG = "tag:yaml.org,2002:"
_INDENTED = "indented otherwise than the lines before; indent keys of one level alike, by spaces"
_SYNTAX = {
    "'\\t'": "a tab; write spaces instead of tabs",
    "scanning an alias": '; put a pattern that begins with * in quotes: "*"',
    "are not read": "; put a name that begins with *, & or ! in quotes, and write values out",
    "cannot start any token": "; put text that begins with %, @ or ` in quotes",
    "mapping values are not allowed": "no key can begin here; write a colon and a space "
    "behind the key before, indent keys alike, and put text that holds a colon in quotes",
    "expected ':'": "a key without a value; write a colon and a space behind the key",
    "unexpected end of stream": "the quote that begins here does not end; write its end",
    "but found '<block": _INDENTED,
    "but found '-'": _INDENTED,
    "expected <block end>": "no place for this; look for a bracket or quote too many or too few",
    "expected ',' or": "the bracket of line {line} does not end; write it, or a comma, before this",
    "another document": "a second document begins; remove the line ---, or all from there on",
    "": "; check indentation, brackets, colons and quotes on this line and the one before",
}
"""Words of PyYAML's message → fact, if it is plainer than PyYAML's, and remedy."""
_AT_BEGIN = ("expected ':'", "unexpected end of stream")
"""Words of messages whose place is where the faulty part begins."""
_NUMBERS: dict[str, tuple[re.Pattern[str], Callable[[str], Any]]] = {
    "int": (re.compile(r"[-+]?(0|[1-9][0-9]{0,299})"), int),
    "float": (re.compile(r"[-+]?[0-9]{0,299}\.[0-9]{0,299}([eE][-+][0-9]{1,9})?"), float),
}
"""YAML's type → the notation that an operator may use, and its constructor."""


@dataclass(frozen=True)
class Fault:
    """Something wrong at a place of the text."""

    index: int
    """Characters before it."""
    path: Optional[ValuePath]
    """Value that it is about; None: the text."""
    message: str
    """Fact, and remedy."""


@dataclass
class Tree:
    """Content of a YAML text."""

    text: str
    data: Any = None
    """Mappings with text keys, lists, text, numbers, truth values; None for a refused value."""
    start: int = 0
    """Characters before the content."""
    keys: dict[ValuePath, int] = field(default_factory=dict)
    """Value → characters before its key, or before itself in a list."""
    texts: dict[ValuePath, str] = field(default_factory=dict)
    """Scalar → its notation, without quotes."""
    faults: list[Fault] = field(default_factory=list)
    refused: set[ValuePath] = field(default_factory=set)
    """Values that are missing in `data` because they are faulty."""

    def line(self, index: int) -> int:
        """Line of a character, from 1; the last one if the text ends before."""
        return _position(self.text, index)[0]

    def refuse(self, index: int, path: ValuePath, message: str) -> None:
        """Note a fault of the value at ``path``, which does not count."""
        self.faults.append(Fault(index, path, message))
        self.refused.add(path)


def read(text: str) -> Tree:
    """Tree of one YAML document; one of text that is not YAML is refused as a whole."""
    tree, loader, node = Tree(text), None, None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        tree.faults.append(_syntax_fault(text, error, loader))
        tree.refused.add(())
    if node is not None:
        tree.start = node.start_mark.index
        tree.data = _value(tree, node, ())
    return tree


def text_of(path: Path, least: str, how: str = "") -> str:
    """Text of a file, ``-`` being standard input; ``how`` names the option.

    ``least`` is the remedy without a file. Raises ConfigError if it cannot be read.
    """
    try:
        content = files.content_of(path, MAX_BYTES + 1)
        if len(content) <= MAX_BYTES:
            return content.decode("utf-8")
        problem = f" has more than {MAX_BYTES} bytes; name another file"
    except FileNotFoundError:
        problem = f" there is no such file; {least}, or name another file{how}"
    except UnicodeDecodeError as error:
        line, byte = content.count(b"\n", 0, error.start) + 1, content[error.start]
        problem = f"{line}: byte 0x{byte:02X} is not UTF-8; save the file as UTF-8"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        problem = f" cannot be read: {reason}; check its path, owner and mode"
    raise ConfigError([f"{path}:{problem}"])


def place(path: ValuePath) -> str:
    """``path`` as people write it: ``publish[0].file``."""
    words = ""
    for part in path:
        words += f"[{part}]" if isinstance(part, int) else f".{shown(part)}"
    return words.lstrip(".")


def problem_lines(name: str, text: str, faults: Iterable[Fault]) -> list[str]:
    """``NAME:LINE: where: fact; remedy``, in the order of the lines."""
    lines = []
    for fault in sorted(faults, key=lambda fault: fault.index):
        line, column = _position(text, fault.index)
        where = f"{place(fault.path)}: " if fault.path else ""
        at = f"{line}:{column}" if fault.path is None else str(line)
        lines.append(f"{name}:{at}: {where}{fault.message}")
    if more := lines[MAX_PROBLEMS:]:
        return [*lines[:MAX_PROBLEMS], f"{name}: {len(more)} more problems; mend these first"]
    return lines


def _position(text: str, index: int) -> tuple[int, int]:
    """Line and column of a character, from 1; of the last one if the text ends before."""
    before = text[: min(index, len(text.rstrip("\n")))]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


class _Loader(yaml.SafeLoader):
    """Nodes without anchors, aliases and tags, of a bounded depth and number."""

    _depth = _values = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Node of the next events."""
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        is_alias = isinstance(event, yaml.AliasEvent)
        self._values += 1
        problem = ""
        if self._depth >= MAX_DEPTH:
            problem = f"more than {MAX_DEPTH} levels within each other"
        elif self._values > MAX_VALUES:
            problem = f"more than {MAX_VALUES} values"
        elif is_alias or event.anchor is not None or event.tag is not None:
            problem = "aliases, anchors and tags are not read"
        if problem:
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def _syntax_fault(text: str, error: Exception, loader: Optional[_Loader]) -> Fault:
    if not isinstance(error, yaml.MarkedYAMLError):
        # Characters that YAML forbids, escapes such as \UFFFFFFFF, endless version numbers.
        index = getattr(error, "position", loader.index if loader else 0)
        return Fault(index, None, "not YAML: a character or number here is not allowed; remove it")
    mark, context = error.problem_mark or error.context_mark, error.context_mark
    line = _position(text, context.index)[0] if context else 0
    within = f", {error.context} at line {line}" if context else ""
    words = next(words for words in _SYNTAX if words in str(error))
    mark = context if words in _AT_BEGIN else mark
    index = int(mark.index) if mark else 0
    fact, remedy = _SYNTAX[words].split("; ", 1)
    fact = fact.format(line=line) or f"{error.problem}{within}"
    return Fault(index, None, f"not YAML: {fact}; {remedy}")


def _value(tree: Tree, node: Any, path: ValuePath) -> Any:
    if isinstance(node, yaml.MappingNode):
        return _mapping(tree, node, path)
    if isinstance(node, yaml.SequenceNode):
        items = {(*path, number): item for number, item in enumerate(node.value)}
        tree.keys.update({at: item.start_mark.index for at, item in items.items()})
        return [_value(tree, item, at) for at, item in items.items()]
    tree.texts[path] = node.value
    if fault := _unprintable(node.value):
        tree.refuse(node.start_mark.index, path, fault)
        return None
    return _scalar(node.value, str(node.tag))


def _mapping(tree: Tree, node: Any, path: ValuePath) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for key_node, value_node in node.value:
        index, key, fault = key_node.start_mark.index, key_node.value, ""
        if not isinstance(key_node, yaml.ScalarNode):
            key, fault = "?", "a key is a plain name; write it without brackets"
        elif "{" in key:
            key, fault = (
                key.split("{")[0].rstrip(" :"),
                "{ is in it; write a colon and a space before",
            )
        fault, at = fault or _unprintable(key), (*path, key)
        if fault:
            tree.refuse(index, at, fault)
        elif key in content:
            first = tree.line(tree.keys[at])
            message = f"is here a second time, first at line {first}; keep one of them"
            tree.faults.append(Fault(index, at, message))
        else:
            tree.keys[at] = index
            content[key] = _value(tree, value_node, at)
    return content


def _unprintable(text: str) -> str:
    """Fault of a text with a character that cannot be seen; empty without one."""
    bad = next((c for c in text if not c.isprintable() and c not in "\n\t"), "")
    return f"holds the character U+{ord(bad):04X}, which cannot be seen; remove it" if bad else ""


def _scalar(text: str, tag: str) -> Any:
    kind = tag.replace(_TAG, "")
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() in ("yes", "true", "on")
    notation, number = _NUMBERS.get(kind, (None, str))
    return number(text) if notation and notation.fullmatch(text) else text
