"""AccountingGroup of jobs that have an expression there, as their access point evaluates it.

HTCondor charges a job by the value that the attribute has in the job's own ad. A schedd adds to the
attributes that it is asked for all those that they look at, also to the keys of rows that it
groups: so an ad has what its expression needs.

A user may write an expression that takes hours. They are evaluated in children that have
`EXPRESSION_SECONDS` of processor time and `MOST_MEMORY_BYTES` each.
"""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Optional

from sharectl.condor.ad_rows import FUNCTIONS
from sharectl.condor.ads import MAX_TEXT, evaluated
from sharectl.condor.deadline import Question, ask_all
from sharectl.condor.expressions import words_of_text

ACCOUNT = "AccountingGroup"
MOST_EXPRESSIONS = 8
"""Expressions that are evaluated, those of the most users; a site's transform is one of them."""
MOST_CHARACTERS = 2000
"""Of an expression that is evaluated."""
MOST_MEMORY_BYTES = 2**26
EXPRESSION_SECONDS = 1.0
"""Processor time for one expression in all ads."""
_DEADLINE_SECONDS = 5.0
_CHANGING = FUNCTIONS.union(("time", "currenttime", "daytime", "formattime", "abstime"))
"""Functions by which a value changes, or is another one on the access point."""

_Seen = tuple[tuple[str, str], ...]
_Alike = dict[_Seen, list[Any]]
"""Attributes that an expression looks at → ads that have them so."""


def charged(ads: Iterable[Any]) -> list[Any]:
    """Job ads, or grouped rows, with the value of AccountingGroup in the place of an expression.

    An expression stays where its value is no string, changes from moment to moment, looks at maps
    of the access point, or costs too much: these jobs count as `sharectl.model.OTHER`.
    """
    every = list(ads)
    written: defaultdict[str, _Alike] = defaultdict(lambda: defaultdict(list))
    for ad in every:
        account = ad.get(ACCOUNT)
        if account is not None and not isinstance(account, str):
            text = str(account)
            seen = _seen(text, ad) if len(text) <= MOST_CHARACTERS else None
            if seen is not None:
                written[text][seen].append(ad)

    def rank(text: str) -> tuple[int, int, str]:
        ads = [ad for alike in written[text].values() for ad in alike]
        return (-len({ad.get("User") for ad in ads}), -len(ads), text)

    most = sorted(written, key=rank)
    questions = {
        text: Question(
            partial(_values, [ads[0] for ads in written[text].values()]),
            _DEADLINE_SECONDS,
            more_bytes=MOST_MEMORY_BYTES,
        )
        for text in most[:MOST_EXPRESSIONS]
    }
    for text, answer in ask_all(questions).items():
        for alike, value in zip(written[text].values(), answer.value or ()):
            for ad in alike if value is not None else ():
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


def _values(ads: Sequence[Any]) -> list[Optional[str]]:
    """Value in each ad; for a child, which ends when it costs too much."""
    signal.setitimer(signal.ITIMER_PROF, EXPRESSION_SECONDS)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the library writes there when memory ends
    values = (evaluated(ad, ACCOUNT) for ad in ads)
    return [value[:MAX_TEXT] if isinstance(value, str) else None for value in values]
