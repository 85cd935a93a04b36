"""Ads as rows of text, and the attributes that their expressions look at."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import inf
from typing import Any

from sharectl.condor.empty_slots import RESOURCES
from sharectl.condor.expressions import (
    MY,
    TARGET,
    Clause,
    clauses,
    references,
    words_of_text,
)

Row = Mapping[str, str]
"""Attributes of an ad, in lower case -> expression."""

LITERAL = re.compile(r'-?\d[\d.eE+-]*|"[^"\\]*"|true|false|undefined', re.IGNORECASE)
FUNCTIONS = frozenset(("random", "eval", "usermap", "userhome"))
"""Functions of the moment; the last two read files of the machine that they are evaluated on."""


def row_of(ad: Any) -> dict[str, str]:
    """Attributes of an ad of the bindings, or of its text."""
    text = ad if isinstance(ad, str) else ad.printOld()
    lines = (line.partition(" = ") for line in text.split("\n"))
    return {name.lower(): value for name, sign, value in lines if sign}


def long_of(row: Row) -> str:
    """Ad of a row as ``-long`` prints it."""
    return "\n".join(f"{name} = {text}" for name, text in row.items())


def resources_of(row: Row) -> list[str]:
    """Resources of a slot, in lower case."""
    return re.findall(r"\w+", row.get("machineresources", RESOURCES).lower())


def seen_by(
    written: str, texts: Row, most_characters: float = inf
) -> tuple[set[str], set[str], set[str]]:
    """Attributes that an expression in the ad ``texts`` looks at, directly or not, and all words.

    First its own ones, then those of the other ad, where names without scope count that it lacks.
    It ends before it reads more than ``most_characters``.
    """
    own: set[str] = set()
    others: set[str] = set()
    words: set[str] = set()
    waiting = [written]
    while waiting:
        text = waiting.pop()
        most_characters -= len(text)
        if most_characters < 0:
            break
        words |= words_of_text(text)
        for reference in references(text):
            name = reference.name.lower()
            absent = reference.scope != MY and name not in texts
            if reference.scope == TARGET or absent:
                others.add(name)
            elif name not in own:
                own.add(name)
                waiting.append(texts.get(name, ""))
    return own, others, words


def names_reached(words: Iterable[str], texts: Row) -> set[str]:
    """The words, and those of the attributes in ``texts`` that they name, in turn."""
    reached: set[str] = set()
    waiting = list(words)
    while waiting:
        word = waiting.pop()
        if word not in reached:
            reached.add(word)
            waiting += words_of_text(texts.get(word, ""))
    return reached


def clauses_of(texts: Row) -> tuple[Clause, ...]:
    """Clauses of the Requirements of an ad."""
    return clauses(
        texts.get("requirements") or "true", lambda name: texts.get(name.lower()) or None
    )
