"""Ads of slots, jobs and groups as HTCondor's tools print them with ``-long``.

An ad becomes name → expression, as text; nothing is evaluated here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sharectl.errors import InputError
from sharectl.files import packed
from sharectl.words import Problems

MOST_BYTES = 2**28
"""Of a file: 20,000 slots as condor_status prints them."""
MOST_CHARACTERS = 2**16
"""Of an expression: longer ones are no requests or policies."""

_ATTRIBUTE = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_.]*)\s*=(?!=)\s*(.*?)\s*")
_HEADING = re.compile(r"\s*(--|#)")
"""What condor_q prints in front of the ads of a schedd."""
_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class AdOfFile:
    """An ad and where it begins."""

    place: str
    """``file:line``."""
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
    """Ads of a text; ``name`` stands for it in places and errors. Raises as `read`."""
    problems, ads = Problems(), list[AdOfFile]()
    attributes: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or _HEADING.match(line):
            attributes = {}
        elif (match := _ATTRIBUTE.fullmatch(line)) is None or len(line) > MOST_CHARACTERS:
            fault = "too long" if match else "no attribute"
            remedy = "write Name = expression, an empty line between ads"
            problems.add(f"{name}:{number}", f"{fault}; {remedy}")
        else:
            if not attributes:
                ads.append(AdOfFile(f"{name}:{number}", attributes))
            attributes[match[1]] = match[2]
    if not ads and not problems:
        problems.add(name, "no ad in it; write what condor_status or condor_q prints with -long")
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
