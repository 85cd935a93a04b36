"""AccountingGroup of jobs that have an expression there, as their access point evaluates it.

HTCondor charges a job by the value that the attribute has in the job's own ad. A schedd adds to the
attributes that it is asked for all those that they look at: so an ad has what its expression needs.

A user may write an expression that takes hours. They are evaluated in a child with one deadline.
A user whose jobs cost more than `USER_SECONDS`, or end the process, has no more of his tried; the
verdicts on jobs of others stay. Users are as their access points have authenticated them.
"""

from __future__ import annotations

import mmap
import os
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Callable, Optional, TypeVar

from sharectl.condor.ad_rows import FUNCTIONS
from sharectl.condor.ads import MAX_TEXT, evaluated
from sharectl.condor.deadline import Question, ask_all
from sharectl.condor.expressions import words_of_text

T = TypeVar("T")

MOST_MEMORY_BYTES = 2**28
SHAPE_SECONDS, USER_SECONDS = 1.0, 2.0
"""Processor time of jobs that are alike, and of all jobs of a user."""
MOST_WORDS, MOST_WORDS_OF_USER = 1000, 250
"""Attributes of slots that are asked for."""
UNTRIED, UNPLACEABLE, PLACEABLE, TRYING, OVER, LATER = range(6)
"""Results; `OVER` is of jobs for which their user's budget is not enough."""


class UserBudgets:
    """Results by number, and what their users may still spend, in memory that children share."""

    def __init__(self, users: Sequence[str], seconds: float = USER_SECONDS) -> None:
        """Begin with no result; ``users`` has the user of each number."""
        self._seconds = seconds
        numbers = {user: number for number, user in enumerate(dict.fromkeys(users))}
        self._users = [numbers[user] for user in users]
        self._spent = memoryview(mmap.mmap(-1, 8 * len(numbers) + 8)).cast("d")
        self.results = mmap.mmap(-1, len(users) + 1)

    def remaining_seconds(self, number: int) -> float:
        """Processor time that the user may still have, seconds."""
        return self._seconds - self._spent[self._users[number]]

    @contextmanager
    def trying(self, number: int) -> Iterator[None]:
        """Evaluate for this number in the body; at its limit the process ends."""
        self.results[number] = TRYING
        began = time.process_time()
        seconds = max(1e-3, self.remaining_seconds(number))
        signal.setitimer(signal.ITIMER_PROF, min(SHAPE_SECONDS, seconds))
        yield
        signal.setitimer(signal.ITIMER_PROF, 0)
        self._spent[self._users[number]] += time.process_time() - began

    def give_up(self) -> bool:
        """Give up the number that ended the process, and its user; False if no number did."""
        culprit = self.results.find(bytes((TRYING,)))
        if culprit < 0:
            return False
        self.results[culprit] = OVER
        self._spent[self._users[culprit]] = self._seconds
        return True


def affordable_words(
    words: Iterable[frozenset[str]], users: Iterable[str]
) -> tuple[set[str], set[int]]:
    """Attributes to ask for, and numbers of jobs whose user has brought `MOST_WORDS_OF_USER`."""
    names: set[str] = set()
    over: set[int] = set()
    brought: Counter[str] = Counter()
    for number, (several, user) in enumerate(zip(words, users)):
        fresh = several - names
        if brought[user] + len(fresh) > MOST_WORDS_OF_USER:
            over.add(number)
        elif len(names) + len(fresh) <= MOST_WORDS:
            names |= fresh
            brought[user] += len(fresh)
    return names, over


def answer_within(
    budgets: UserBudgets, ask: Callable[[UserBudgets], T], deadline_seconds: float, none: T
) -> tuple[T, Optional[str]]:
    """Answer of ``ask`` in a child, again without costly users, or ``none`` and the problem."""
    deadline = time.monotonic() + deadline_seconds
    while True:
        seconds = max(0.0, deadline - time.monotonic())
        question = Question(partial(_quiet, ask, budgets), seconds, more_bytes=MOST_MEMORY_BYTES)
        answer = ask_all({"trial": question})["trial"]
        problem = answer.source.problem
        if problem is None:
            return answer.value, None
        if time.monotonic() >= deadline or not budgets.give_up():
            return none, problem


def _quiet(ask: Callable[[UserBudgets], T], budgets: UserBudgets) -> T:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the library writes there when memory ends
    return ask(budgets)


ACCOUNT = "AccountingGroup"
MOST_EXPRESSIONS = 8
"""Expressions that are evaluated, those of the most users; a site's transform is one of them."""
MOST_CHARACTERS = 2000
"""Of an expression that is evaluated."""
_DEADLINE_SECONDS, _USER_SECONDS = 5.0, 0.4
"""Time for all expressions, and processor time for those of a user."""
_CHANGING = FUNCTIONS.union(("time", "currenttime", "daytime", "formattime", "abstime"))
"""Functions by which a value changes, or is another one on the access point."""

_Seen = tuple[tuple[str, str], ...]
"""Attributes that an expression looks at, with their values."""


def charged(ads: Iterable[Any]) -> list[Any]:
    """Job ads, or grouped rows, with the value of AccountingGroup in the place of an expression.

    An expression stays where its value is no string, changes from moment to moment, looks at maps
    of the access point, or costs too much: these jobs count as `sharectl.model.OTHER`.
    """
    every = list(ads)
    same: defaultdict[tuple[str, _Seen], list[Any]] = defaultdict(list)
    users_of: defaultdict[str, set[str]] = defaultdict(set)
    for ad in every:
        account = ad.get(ACCOUNT)
        text = "" if account is None or isinstance(account, str) else str(account)
        seen = _seen(text, ad) if 0 < len(text) <= MOST_CHARACTERS else None
        if seen is not None:
            same[text, seen].append(ad)
            users_of[text].add(ad.get("User"))
    first = sorted(users_of, key=lambda text: (-len(users_of[text]), text))[:MOST_EXPRESSIONS]
    groups = [ads for text in first for (of, _), ads in same.items() if of == text]
    if groups:
        # Without a user each has a budget.
        users = [ads[0].get("User") or f"#{number}" for number, ads in enumerate(groups)]
        evaluate = partial(_values, [ads[0] for ads in groups])
        budgets, none = UserBudgets(users, _USER_SECONDS), dict[int, str]()
        values, _ = answer_within(budgets, evaluate, _DEADLINE_SECONDS, none)
        for number, value in values.items():
            for ad in groups[number]:
                ad[ACCOUNT] = value
    return every


def _seen(written: str, ad: Any) -> Optional[_Seen]:
    """Attributes that an expression looks at, directly or not; None for one of the moment."""
    seen: dict[str, str] = {}
    waiting = [*words_of_text(written)]
    while waiting:
        name = waiting.pop()
        if name in _CHANGING:
            return None
        value = ad.get(name)
        if name not in seen and value is not None:
            seen[name] = str(value)
            waiting += () if isinstance(value, str) else words_of_text(seen[name])
    return tuple(sorted(seen.items()))


def _values(ads: Sequence[Any], budgets: UserBudgets) -> dict[int, str]:
    """Number of an ad → its value."""
    values: dict[int, str] = {}
    for number, ad in enumerate(ads):
        if budgets.results[number] != OVER and budgets.remaining_seconds(number) > 0:
            with budgets.trying(number):
                value = evaluated(ad, ACCOUNT)
            budgets.results[number] = UNTRIED
            if isinstance(value, str):
                values[number] = value[:MAX_TEXT]
    return values
