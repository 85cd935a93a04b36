"""START of a site and Requirements of jobs in the twin, as HTCondor's own library evaluates them.

Answers are kept by the values of the attributes that an expression reads, so that the library is
asked once for each combination. The twin's clock stands for time().
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from functools import partial
from marshal import dumps
from typing import Any, Optional

from sharectl.condor.ads import ad_of, expression, is_true, value_of
from sharectl.condor.deadline import Question, ask_all
from sharectl.condor.expressions import (
    MAX_CHARACTERS,
    MY,
    TARGET,
    UNSCOPED,
    is_balanced,
    references,
    with_clock,
)
from sharectl.errors import InputError
from sharectl.words import quoted

CLOCK = "t1_Clock"
"""Attribute of both ads: the twin's time, whole seconds."""
TRIAL_BYTES = 2**28

_UNREPEATABLE = re.compile(
    r"\b(random|usermap|userhome|currenttime|daytime)\(|\b(abstime|formattime)\(\s*\)",
    re.IGNORECASE,
)
"""Functions whose value is not of the simulation: chance, files and clock of this machine."""
_STRING = re.compile(r'"(?:\\.|[^"\\])*"')
_READS_ALL = re.compile(
    r"\beval\(|\b(?:MY|TARGET)\b(?!\s*\.)|(?:^|[(,=&|<>!{+*/:?-])\s*\.\s*[a-z]",
    re.IGNORECASE,
)
"""Signs of names that only an evaluation tells."""
_MOMENT = "currenttime"
_LONE_BACKSLASH = re.compile(r'\\(?!")')


class Condition:
    """An expression of an ad about another one, such as START or Requirements.

    ``place`` is for messages. Raises InputError if ``text`` cannot be used.
    """

    most_kept = 200_000
    """Answers that are kept, some 50 MB."""
    trial_seconds = 20.0
    """Deadline of the first look at an expression, which takes some 10 ms in a child."""

    def __init__(self, text: str, place: str) -> None:
        self.place = place
        if len(text) > MAX_CHARACTERS:
            raise self._error(f"is longer than {MAX_CHARACTERS} characters; write less")
        printed = self._tried(partial(_printed, text))
        if printed is None:
            raise self._error(f"HTCondor cannot read {quoted(text)}; write a ClassAd expression")
        words = _STRING.sub('""', printed)
        if match := _UNREPEATABLE.search(words):
            function = f"{match[1] or match[2]}()"
            problem = f"{function} is not of the simulation; write time(), or leave it out"
            raise self._error(problem)
        clocked = with_clock(printed, CLOCK)
        self.reads_time = clocked != printed
        self.reads_all = bool(_READS_ALL.search(words))
        """True if it may read other attributes than those below."""
        other = {MY: (MY,), TARGET: (TARGET,), UNSCOPED: (MY, TARGET)}
        self._reads: dict[tuple[tuple[str, ...], str], str] = {}
        for scope, name in references(printed):
            self._reads.setdefault((other[scope], name.lower()), name)
        self.my_names, self.target_names = (
            tuple(dict.fromkeys(name for scopes, name in self._reads if side in scopes))
            for side in (MY, TARGET)
        )
        """Attributes of its own ad and of the other ad that it reads, in lower case."""
        self._tree = expression(clocked)
        self._memo: dict[bytes, bool] = {}
        self._second = -1
        self._is_tried = False

    @property
    def names(self) -> tuple[Optional[tuple[str, ...]], Optional[tuple[str, ...]]]:
        """Attributes of the first ad and of the second that it may read; None for all."""
        return (None, None) if self.reads_all else (self.my_names, self.target_names)

    def without_owner(self, my: Container[str], target: Container[str]) -> list[tuple[str, str]]:
        """Attributes that neither ad has: scope by which it is read, and name.

        ``my`` and ``target`` are names that the two ads have, in lower case.
        """
        has = {MY: my, TARGET: target}
        return [
            (scopes[0], written)
            for (scopes, name), written in self._reads.items()
            # A job need not request what it does not use.
            if name != _MOMENT and not name.startswith("request")
            if not any(name in has[scope] for scope in scopes)
        ]

    @property
    def kept(self) -> int:
        """Answers that are kept now."""
        return len(self._memo)

    def is_true(self, my: Mapping[str, Any], target: Mapping[str, Any], now: float) -> bool:
        """Return whether it is true for two ads, each attribute in lower case -> value.

        Values are numbers, booleans, texts, and lists of these. Raises InputError if its first
        evaluation does not end.
        """
        if self.reads_time and int(now) != self._second:
            self._memo.clear()
            self._second = int(now)
        if self.reads_all:
            my, target = dict(sorted(my.items())), dict(sorted(target.items()))
            key = dumps((tuple(my.items()), tuple(target.items())), 2)
        else:
            mine = tuple(map(my.get, self.my_names))
            key = dumps((mine, tuple(map(target.get, self.target_names))), 2)
        answer = self._memo.get(key)
        if answer is None:
            if len(self._memo) >= self.most_kept:
                self._memo.clear()
            answer = self._memo[key] = self._evaluated(my, target, now)
        return answer

    def _evaluated(self, my: Mapping[str, Any], target: Mapping[str, Any], now: float) -> bool:
        mine, others = self.names
        ads = (
            _ad(my, my if mine is None else mine, now),
            _ad(target, target if others is None else others, now),
        )
        if not self._is_tried:
            self._tried(partial(_truth, self._tree, *ads))
            self._is_tried = True
        return _truth(self._tree, *ads)

    def _tried(self, ask: Any) -> Any:
        """Answer of a child: it may end or hang with the expressions of a stranger."""
        answer = ask_all({"": Question(ask, self.trial_seconds, more_bytes=TRIAL_BYTES)})[""]
        if answer.source.problem is not None:
            problem = f"HTCondor cannot evaluate it: {answer.source.problem}; write it simpler"
            raise self._error(problem)
        return answer.value

    def _error(self, problem: str) -> InputError:
        return InputError([f"{self.place}: {problem}"])


def _ad(values: Mapping[str, Any], names: Iterable[str], now: float) -> Any:
    has = {name: values[name] for name in names if values.get(name) is not None}
    lists = {name: list(value) for name, value in has.items() if isinstance(value, tuple)}
    return ad_of({**has, **lists, CLOCK: int(now)})


def _truth(tree: Any, my: Any, target: Any) -> bool:
    return is_true(value_of(tree, my, target))


def _printed(text: str) -> Optional[str]:
    """Expression of a configuration as HTCondor prints it; None for an unreadable one."""
    if not is_balanced(text):
        return None
    # A comment ends with its line, and a backslash escapes nothing but a quote.
    tree = expression(_LONE_BACKSLASH.sub(r"\\\\", f"({text}\n)"))
    return None if tree is None else str(tree)
