"""Numbers in sentences.

Problems of a file, those that are the same told once: somebody may have named the wrong file.

Outside text in messages.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

_NUMBER = re.compile(r"\d+")
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_AT_THE_END = re.compile(r"\d+$")
_MOST_PLACES = 3
_MOST_ALIKE = 5


@dataclass
class _Same:
    first: str
    places: list[str] = field(default_factory=list)
    more: int = 0

    def add(self, place: str) -> None:
        number = _AT_THE_END.search(place)
        if number and len(self.places) < _MOST_PLACES:
            self.places.append(number[0])
        else:
            self.more += 1

    def __str__(self) -> str:
        others = [*([f"also at {', '.join(self.places)}"] if self.places else [])]
        others += [f"{self.more} more like this"] if self.more else []
        return f"{self.first} ({', and '.join(others)})" if others else self.first


class Problems:
    """Problems by what they are: those that differ in numbers only are the same.

    Parameters
    ----------
    most
        That are told of; the rest is counted. Of those that differ in quoted text only a few are.
    """

    def __init__(self, most: int = 20) -> None:
        self._most = most
        self._told: dict[str, _Same] = {}
        self._alike: Counter[str] = Counter()
        self._untold = 0

    def __bool__(self) -> bool:
        """Whether there is one."""
        return bool(self._told)

    def add(self, place: str, said: str) -> None:
        """Note what is wrong at ``place``."""
        text = _NUMBER.sub("", said)
        alike = _QUOTED.sub("", text)
        if text in self._told:
            self._told[text].add(place)
        elif len(self._told) < self._most and self._alike[alike] < _MOST_ALIKE:
            self._alike[alike] += 1
            self._told[text] = _Same(f"{place}: {said}")
        else:
            self._untold += 1

    def lines(self) -> list[str]:
        """The first of each, with where and how often it is there too."""
        told = [str(same) for same in self._told.values()]
        return [*told, f"… and {self._untold} more problems"] if self._untold else told


MAX_SHOWN = 60
"""Characters of a text in a message."""


def shown(text: str) -> str:
    """``text`` on one line, cut to `MAX_SHOWN` characters, without what could steer a terminal."""
    seen = "".join(
        character if character.isprintable() else "?" for character in text[: MAX_SHOWN + 1]
    )
    return seen if len(seen) <= MAX_SHOWN else f"{seen[:MAX_SHOWN]}…"


def quoted(text: str) -> str:
    """`shown` in quotes."""
    return f'"{shown(text)}"'


def counted(count: int, what: str) -> str:
    """``what`` in the number that there is of it: 1 job, 2 jobs."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
