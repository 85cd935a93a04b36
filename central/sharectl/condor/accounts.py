"""AccountingGroup of jobs that have an expression there, as their access point evaluates it.

HTCondor charges a job by the value that the attribute has in the job's own ad. A schedd adds to the
attributes that it is asked for all those that they look at, also to the keys of rows that it
groups: so an ad has what its expression needs.

A user may write an expression that takes hours. They are evaluated in a child, with a budget for
each user (`sharectl.condor.user_budgets`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Optional

from sharectl.condor.ad_rows import FUNCTIONS
from sharectl.condor.ads import MAX_TEXT, evaluated
from sharectl.condor.expressions import words_of_text
from sharectl.condor.user_budgets import OVER, UNTRIED, UserBudgets, answer_within

ACCOUNT = "AccountingGroup"
MOST_EXPRESSIONS = 8
"""Expressions that are evaluated, those of the most users; a site's transform is one of them."""
MOST_CHARACTERS = 2000
"""Of an expression that is evaluated."""
_DEADLINE_SECONDS = 5.0
_USER_SECONDS = 0.4
"""Processor time for expressions of a user."""
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

    alike = [
        ads
        for text in sorted(written, key=rank)[:MOST_EXPRESSIONS]
        for ads in written[text].values()
    ]
    if alike:
        # Without a user each has a budget.
        users = [ads[0].get("User") or f"#{number}" for number, ads in enumerate(alike)]
        evaluate = partial(_values, [ads[0] for ads in alike])
        none = dict[int, str]()
        values, _ = answer_within(
            UserBudgets(users, _USER_SECONDS), evaluate, _DEADLINE_SECONDS, none
        )
        for number, value in values.items():
            for ad in alike[number]:
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
    """Number of an ad -> its value; for a child, which ends with an ad that costs too much."""
    values: dict[int, str] = {}
    for number, ad in enumerate(ads):
        if budgets.results[number] != OVER and budgets.remaining_seconds(number) > 0:
            with budgets.trying(number):
                value = evaluated(ad, ACCOUNT)
            budgets.results[number] = UNTRIED
            if isinstance(value, str):
                values[number] = value[:MAX_TEXT]
    return values
