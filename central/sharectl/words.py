"""Words in messages: text from outside, numbers of things, and problems that are alike."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from decimal import Decimal
from typing import Optional

MAX_SHOWN = 60
"""Characters of a text in a message."""

_VARIES = re.compile(r"\d+|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
"""Numbers and quoted text of a problem."""
_TINY = 1e-6
_MOST_PLACES = 3
_MOST_KINDS = 20


def printable(text: object, most: Optional[int] = None) -> str:
    """``text`` on one line, cut to ``most`` characters; those that do not print are escaped.

    Text of a job or a file must not steer a terminal.
    """
    escaped = "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in str(text)[:most]
    )
    return escaped[:most]


def shown(text: str) -> str:
    """``text`` as of `printable`, cut to `MAX_SHOWN` characters."""
    escaped = printable(text, MAX_SHOWN + 1)
    return escaped if len(escaped) <= MAX_SHOWN else f"{escaped[:MAX_SHOWN]}…"


def quoted(text: str) -> str:
    """`shown` in quotes."""
    return f'"{shown(text)}"'


def counted(count: int, noun: str) -> str:
    """Number and noun: 1 job, 2 jobs."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def rounded(value: float, digits: int = 6) -> str:
    """Number with at most so many ``digits`` that count, without an exponent; tiny ones are 0."""
    return f"{Decimal(f'{0.0 if abs(value) < _TINY else value:.{digits}g}'):f}"


def near(word: str, words: Iterable[str], most: int = 1, likeness: float = 0.6) -> list[str]:
    """The ``words`` that ``word`` may be a slip of, the likeliest first."""
    from difflib import get_close_matches  # noqa: PLC0415 - few runs need it

    return get_close_matches(word[:MAX_SHOWN], list(words), most, likeness)


def did_you_mean(word: str, words: Iterable[str], otherwise: str, most: int = 1) -> str:
    """Question after the word that was meant, or ``otherwise`` if none is near."""
    meant = near(word.lower(), words, most)
    return f"did you mean {' or '.join(meant)}?" if meant else otherwise


class Problems:
    """Problems of a file; those that differ in numbers or quoted text only are one line."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}
        self._places: defaultdict[str, list[str]] = defaultdict(list)
        self._more: Counter[str] = Counter()

    def __bool__(self) -> bool:
        """True if there is a problem."""
        return bool(self._first)

    def add(self, place: str, problem: str) -> None:
        """Add a problem at a place, which ends in the number of a line."""
        kind = _VARIES.sub("", problem)
        if kind not in self._first and len(self._first) >= _MOST_KINDS:
            kind = "others"  # strangers may make any number of kinds
        if kind not in self._first:
            self._first[kind] = f"{place}: {problem}"
        elif len(self._places[kind]) < _MOST_PLACES:
            self._places[kind].append(place.rpartition(":")[2])
        else:
            self._more[kind] += 1

    def lines(self) -> list[str]:
        """First problem of each kind, with the other places."""
        lines = []
        for kind, first in self._first.items():
            others = self._places[kind]
            if more := self._more[kind]:
                others = [*others, f"and {more} more like this"]
            lines.append(f"{first} (also at {', '.join(others)})" if others else first)
        return lines
