"""Ads of slots, jobs and groups as HTCondor's tools print them, ``-long`` or ``-json``.

An ad becomes name → expression, as text in the syntax of ``-long``; nothing is evaluated here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sharectl.errors import InputError
from sharectl.files import packed
from sharectl.words import Problems

MOST_BYTES = 2**28
"""Of a file: 20,000 slots as condor_status prints them."""
MOST_CHARACTERS = 2**16
"""Of an expression: longer ones are no requests or policies."""

_ATTRIBUTE = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_.]*)\s*=(?!=)\s*(.*?)\s*")
_EXPRESSION = re.compile(r"/Expr\((.*)\)/", re.DOTALL)
_HEADING = re.compile(r"\s*(--|#)")
"""What condor_q prints in front of the ads of a schedd."""
_AS_JSON = "write what condor_status or condor_q prints with -json"
_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class AdOfFile:
    """An ad and where it begins."""

    place: str
    """``file:line``, or ``file: ad N`` in JSON."""
    attributes: Mapping[str, str]


def read(path: Path) -> list[AdOfFile]:
    """Ads of a file; ``-`` is standard input.

    Raises InputError if it has no ad, or something else: with every place.
    """
    return parse(*content_of(path))


def content_of(path: Path) -> tuple[str, str]:
    """Text of a file, ``-`` being standard input, and its name in errors.

    Raises InputError if it cannot be read or is too long.
    """
    content, name = packed.content_of(path, MOST_BYTES)
    if len(content) > MOST_BYTES:
        raise InputError(
            [f"{name}: more than {MOST_BYTES >> 20} MiB; restrict it with -constraint"]
        )
    return content.decode("utf-8", errors="replace"), name


def parse(text: str, name: str) -> list[AdOfFile]:
    """Ads of a text; ``name`` stands for it in places and errors.

    Raises InputError as for `read`.
    """
    problems = Problems()
    from_text = _from_json if text.lstrip()[:1] in ("[", "{") else _from_long
    ads = list(from_text(text, name, problems))
    if not ads and not problems:
        problems.add(
            name, "no ad in it; write what condor_status or condor_q prints with -long or -json"
        )
    if problems:
        raise InputError(problems.lines())
    return ads


def from_long(text: str) -> dict[str, str]:
    """Attributes of one ad as the bindings print it."""
    return {
        match[1]: match[2]
        for line in text.splitlines()
        if len(line) <= MOST_CHARACTERS and (match := _ATTRIBUTE.fullmatch(line))
    }


def text_of(ad: Mapping[str, str], name: str) -> str:
    """The text that an attribute is; empty if it is missing or something else."""
    literal = _LITERAL.fullmatch(_attribute(ad, name))
    return literal[1].replace('\\"', '"') if literal else ""


def number_of(ad: Mapping[str, str], name: str) -> float:
    """The number that an attribute is; NaN if it is missing or something else."""
    try:
        return float(_attribute(ad, name))
    except ValueError:
        return float("nan")


def _attribute(ad: Mapping[str, str], name: str) -> str:
    if name in ad:
        return ad[name]
    wanted = name.lower()
    return next((text for key, text in ad.items() if key.lower() == wanted), "")


def _from_long(text: str, name: str, problems: Problems) -> Iterator[AdOfFile]:
    attributes: dict[str, str] = {}
    began = 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if not line.strip() or _HEADING.match(line):
            if attributes:
                yield AdOfFile(f"{name}:{began}", attributes)
            attributes = {}
            continue
        match = _ATTRIBUTE.fullmatch(line)
        if match is None or len(line) > MOST_CHARACTERS:
            fault = "no attribute" if match is None else "too long"
            remedy = "write Name = expression, an empty line between ads"
            problems.add(f"{name}:{number}", f"{fault}; {remedy}")
            continue
        began = number if not attributes else began
        attributes[match[1]] = match[2]


def _from_json(text: str, name: str, problems: Problems) -> Iterator[AdOfFile]:
    """Ads of lists, or side by side: condor_q prints a list for each schedd."""
    decoder = json.JSONDecoder()
    at = number = 0
    try:
        while at < len(text):
            if text[at].isspace():
                at += 1
                continue
            value, at = decoder.raw_decode(text, at)
            for ad in value if isinstance(value, list) else [value]:
                number += 1
                if isinstance(ad, dict):
                    yield AdOfFile(f"{name}: ad {number}", _attributes(ad))
                else:
                    problems.add(f"{name}: ad {number}", f"no object; {_AS_JSON}")
    except (ValueError, RecursionError) as error:  # numbers of many digits too
        line = text.count("\n", 0, getattr(error, "pos", at)) + 1
        problems.add(f"{name}:{line}", f"no JSON; {_AS_JSON}")


def _attributes(ad: Mapping[str, Any]) -> dict[str, str]:
    texts = {key: _expression(value) for key, value in ad.items() if key.isidentifier()}
    return {key: text for key, text in texts.items() if len(text) <= MOST_CHARACTERS}


def _expression(value: Any) -> str:
    """Expression of a JSON value."""
    if isinstance(value, str):
        written = _EXPRESSION.fullmatch(value)
        # In expressions backslashes are doubled, as nowhere else.
        return (
            written[1].replace("\\\\", "\\")
            if written
            else '"{}"'.format(value.replace('"', '\\"'))
        )
    if isinstance(value, list):
        return f"{{ {', '.join(map(_expression, value))} }}"
    if isinstance(value, dict):
        return f"[ {'; '.join(f'{key} = {_expression(part)}' for key, part in value.items())} ]"
    return repr(value).lower() if isinstance(value, (bool, int, float)) else "undefined"
