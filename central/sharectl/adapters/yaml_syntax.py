"""YAML text as nodes, or what is wrong with it in words for an operator. No aliases, anchors or tags."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Optional, Union

import yaml
from yaml.composer import Composer
from yaml.parser import Parser
from yaml.reader import Reader, ReaderError
from yaml.resolver import Resolver
from yaml.scanner import Scanner

from sharectl.adapters.wording import shown

Path = tuple[Union[str, int], ...]
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
    path: Optional[Path]
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
                raise yaml.MarkedYAMLError(problem=f"too many {what}", problem_mark=event.start_mark)
        if isinstance(event, yaml.AliasEvent):
            self.get_event()  # type: ignore[no-untyped-call]
            node: Any = yaml.ScalarNode(f"{TAG}null", "")
            node.start_mark = event.start_mark
            self.refused[id(node)] = (
                f'YAML aliases are not read; write the value out, or "*{shown(str(event.anchor))}" in quotes for a name'
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
        return f"YAML tags are not read; remove {shown(event.tag.replace(TAG, '!!'))}, or quote a name that begins with !"
    return None


def place(path: Path) -> str:
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
        message = f"holds the character U+{ord(text[error.position]):04X}, which YAML forbids; remove it"
        return [Fault(error.position, None, message)]
    if not isinstance(error, yaml.MarkedYAMLError):
        # PyYAML trips over escapes such as \UFFFFFFFF and over endless version numbers.
        return [Fault(loader.index if loader else 0, None, f"not YAML: {error}; remove what stands here")]
    if "'\\t'" in (error.problem or ""):
        return [
            Fault(tab.end() - 1, None, "a tab in the indentation, which YAML forbids; write spaces")
            for tab in _TAB.finditer(text)
        ] or [Fault(_index(error), None, "a tab, which YAML forbids here; write spaces")]
    hint = next((hint for words, hint in _HINTS.items() if words in str(error)), _ANY_HINT)
    context = (
        f", {error.context} at line {line_of(text, error.context_mark.index)}" if error.context_mark else ""
    )
    return [Fault(_index(error), None, f"not YAML: {error.problem}{context}; {hint}")]


def _index(error: yaml.MarkedYAMLError) -> int:
    mark = error.problem_mark or error.context_mark
    return int(mark.index) if mark else 0
