"""Clauses on time: ads with a clock that can be set, and the second from which clauses are true.

A clause that compares the time with one that a slot publishes has no later: that time moves on too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Optional

from sharectl.condor.ad_rows import (
    FUNCTIONS,
    LITERAL,
    AdRow,
    clauses_of,
    long_of,
    names_reached,
    seen_by,
)
from sharectl.condor.ads import ad_of_long, expression, is_true, value_of, whole
from sharectl.condor.expressions import conjunction, with_clock, words_of_text
from sharectl.times import DAY_SECONDS

CLOCK = "sharectl_clock"
"""Attribute that the ads get: Unix seconds for time() and CurrentTime in their expressions."""
ON_TIME = frozenset((CLOCK, "daytime", "abstime", "currenttime"))
"""Words of clocked ads that go by the clock: functions that cannot be set read that of now."""
OF_SLOTS = ("ClockMin", "ClockDay", "MyCurrentTime")
"""Attributes of a slot by which its local time is known."""
_GRID = ((8 * DAY_SECONDS, 60), (366 * DAY_SECONDS, 3600))
"""Seconds from now, and the step at which clauses are tried until then."""
_WEEKDAY = 4
"""ClockDay of 1970-01-01."""
_ZONE_SECONDS = 900
_MOMENT = re.compile(r"[12]\d{9}")
_MOMENTARY_NAMES = """
    mycurrenttime lastheardfrom updatesequencenumber state activity
    enteredcurrentstate enteredcurrentactivity draining drainreason offline numdynamicslots jobstart
    currentrank remoteuser remoteowner numclaims loadavg condorloadavg totalloadavg
    totalcondorloadavg keyboardidle consoleidle cpubusy cpubusytime cpuisbusy virtualmemory
    totalvirtualmemory isowner mc_grace availablegpus
"""
_PREFIXES = """
    child t1_ recent monitorself remote preempting totaltime totaljob totalclaim retirementtime
"""
_MOMENTARY = FUNCTIONS.union(_MOMENTARY_NAMES.split())
_MOMENTARY_PREFIXES = tuple(_PREFIXES.split())


@lru_cache(maxsize=10_000)
def clocked_text(text: str, clock: str = CLOCK) -> str:
    """Expression that stands for ``text`` in an ad with the time in the attribute ``clock``."""
    literal = "time" not in text.lower() or LITERAL.fullmatch(text)
    return text if literal else with_clock(text, f"MY.{clock}")


def clocked(row: AdRow, now: int) -> dict[str, str]:
    """``row`` with the clock at Unix time ``now``; a slot's ClockMin and ClockDay go by it too."""
    texts = {name: clocked_text(text) for name, text in row.items()}
    zone = _zone_seconds(row)
    if zone is not None:
        texts["clockmin"] = f"(MY.{CLOCK} + {zone}) / 60 % 1440"
        texts["clockday"] = f"((MY.{CLOCK} + {zone}) / {DAY_SECONDS} + {_WEEKDAY}) % 7"
    return {**texts, CLOCK: str(now)}


def _zone_seconds(row: AdRow) -> Optional[int]:
    """Seconds that the local time of a slot is ahead of UTC; None if its ad does not say."""
    values = [row.get(name.lower(), "") for name in OF_SLOTS]
    if not all(map(str.isdecimal, values)):
        return None
    minute, day, at = map(int, values)
    ahead = (minute * 60 + 30 - at) % DAY_SECONDS
    for seconds in (ahead, ahead - DAY_SECONDS):
        if ((at + seconds) // DAY_SECONDS + _WEEKDAY) % 7 == day:
            return round(seconds / _ZONE_SECONDS) * _ZONE_SECONDS
    return None


def moments(row: AdRow) -> frozenset[str]:
    """Attributes whose values are points in time, or may be."""
    return frozenset(
        name for name, text in row.items() if name != CLOCK and _MOMENT.fullmatch(text)
    )


def is_momentary(word: str) -> bool:
    """True if an attribute or a function, in lower case, may have another value in a minute."""
    is_renewed = word.startswith(_MOMENTARY_PREFIXES) and word != "t1_wn_hs06"
    return is_renewed or word in _MOMENTARY


def is_on_time(clause: str, job: AdRow, slot: AdRow) -> bool:
    """True if a clause of two clocked ads goes by the clock, and by nothing that a slot renews."""
    reached = names_reached(words_of_text(clause), {**slot, **job})
    return not ON_TIME.isdisjoint(reached) and moments(slot).isdisjoint(reached)


def first_true(
    job: AdRow, slot: AdRow, clauses: tuple[Sequence[str], Sequence[str]], now: int
) -> Optional[int]:
    """First second, at or after ``now``, at which clauses of a job and of a slot are all true.

    The ads are clocked. They are tried every minute of eight days, every hour of a year, and at
    each time that the job names. None if these find no such second.
    """
    ads = [ad_of_long(long_of(row)) for row in (job, slot)]
    trees = [expression(conjunction(of_ad)) for of_ad in clauses]

    def holds(at: int) -> bool:
        for ad in ads:
            ad[CLOCK] = at
        return all(
            tree is not None and is_true(value_of(tree, *pair))
            for tree, pair in zip(trees, (ads, ads[::-1]))
        )

    before = now - 1
    for at in _candidates(ads[0], names_reached(words_of_text(" ".join(clauses[0])), job), now):
        if holds(at):
            low, high = before, at
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if holds(middle) else (middle, high)
            return high
        before = at
    return None


def opens_at(slot: AdRow, now: int) -> Optional[int]:
    """First second from ``now`` at which a slot's clauses on time hold; None if now, or never."""
    row = clocked(slot, now)
    texts = (clause.text for clause in clauses_of(row))
    late = [text for text in texts if is_on_time(text, {}, row) and not seen_by(text, row)[1]]
    at = first_true({}, row, ((), late), now) if late else None
    return None if at == now else at


def _candidates(job: Any, names: Iterable[str], now: int) -> Iterator[int]:
    """Points in time, Unix seconds, at which clauses are tried, in order."""
    # Windows that are shorter than a step of the grid lie about a time that the job names.
    named = (value_of(expression(f"MY.{name}"), job) for name in names)
    about = {whole(value, 0) + more for value in named for more in (-1, 0, 1)}
    grid = chain.from_iterable(range(now, now + until, step) for until, step in _GRID)
    return iter(sorted({*grid, *(at for at in about if at >= now)}))
