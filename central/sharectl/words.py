"""Words in messages: text from outside, numbers of things, and problems that are alike."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Optional

MAX_SHOWN = 60
"""Characters of a text in a message."""

_NUMBER = re.compile(r"\d+")
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_AT_THE_END = re.compile(r"\d+$")
_MOST_PLACES = 3
_MOST_ALIKE = 5


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


def near(word: str, words: Iterable[str], most: int = 1, likeness: float = 0.6) -> list[str]:
    """The ``words`` that ``word`` may be a slip of, the likeliest first."""
    from difflib import get_close_matches  # noqa: PLC0415 - few runs need it

    return get_close_matches(word[:MAX_SHOWN], list(words), most, likeness)


def did_you_mean(word: str, words: Iterable[str], otherwise: str, most: int = 1) -> str:
    """Question after the word that was meant, or ``otherwise`` if none is near."""
    meant = near(word.lower(), words, most)
    return f"did you mean {' or '.join(meant)}?" if meant else otherwise


class Problems:
    """Problems of a file, those that differ in numbers only as one line.

    Parameters
    ----------
    most
        Lines; the rest is counted. Of problems that differ in quoted text only a few are lines.
    """

    def __init__(self, most: int = 20) -> None:
        self._most = most
        self._same: dict[str, _Same] = {}
        self._alike: Counter[str] = Counter()
        self._rest = 0

    def __bool__(self) -> bool:
        """Return whether there is a problem."""
        return bool(self._same)

    def add(self, place: str, problem: str) -> None:
        """Add a problem at a place."""
        text = _NUMBER.sub("", problem)
        alike = _QUOTED.sub("", text)
        if text in self._same:
            self._same[text].add(place)
        elif len(self._same) < self._most and self._alike[alike] < _MOST_ALIKE:
            self._alike[alike] += 1
            self._same[text] = _Same(f"{place}: {problem}")
        else:
            self._rest += 1

    def lines(self) -> list[str]:
        """First problem of each kind, with the other places."""
        lines = [str(same) for same in self._same.values()]
        return [*lines, f"… and {self._rest} more problems"] if self._rest else lines


class _Same:
    def __init__(self, first: str) -> None:
        self.first = first
        self.places: list[str] = []
        self.more = 0

    def add(self, place: str) -> None:
        number = _AT_THE_END.search(place)
        if number and len(self.places) < _MOST_PLACES:
            self.places.append(number[0])
        else:
            self.more += 1

    def __str__(self) -> str:
        others = [f"also at {', '.join(self.places)}"] if self.places else []
        others += [f"{self.more} more like this"] if self.more else []
        return f"{self.first} ({', and '.join(others)})" if others else self.first
