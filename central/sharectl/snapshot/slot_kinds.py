"""Kinds of slots when nothing runs there, as jobs that wait tell them apart: rows of their ads."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from math import floor, log

from sharectl.condor.ad_rows import (
    FUNCTIONS,
    LITERAL,
    AdRow,
    clauses_of,
    emptied,
    resources_of,
    seen_by,
)
from sharectl.condor.clock import ON_TIME, is_momentary, moments
from sharectl.condor.expressions import code_of

ACCEPTS, OPEN = "t1_slotaccepts", "t1_slotopen"
"""Attributes that an emptied slot gets: its lasting clauses, and those on time."""
_NUMBER = re.compile(r"\d{4,}(?:\.\d*)?")
_STEP = 1.03
"""Numbers from 1000 on within about this ratio make no kinds of slots."""
_LOCAL_TIME = ("clockmin", "clockday")


def kinds(rows: Iterable[AdRow]) -> list[dict[str, str]]:
    """Kinds of rows, each with the largest numbers that any of the kind has."""
    largest: dict[frozenset[tuple[str, str]], dict[str, str]] = {}
    for row in rows:
        key = frozenset((name, _stepped(name, text)) for name, text in row.items())
        most = largest.setdefault(key, dict(row))
        for name, text in row.items():
            if text != most[name] and float(text) > float(most[name]):
                most[name] = text
    return list(largest.values())


@lru_cache(maxsize=100_000)
def _stepped(name: str, text: str) -> str:
    """``text``, or the step of a large number; disks differ on each node, so are one."""
    if not _NUMBER.fullmatch(text):
        return text
    return "~" if "disk" in name else f"~{floor(log(float(text), _STEP))}"


def asking(row: AdRow, of_jobs: frozenset[str]) -> dict[str, str]:
    """`ACCEPTS` and `OPEN` of a slot, and what they see of it when nothing runs there.

    ``of_jobs`` are the attributes that jobs tell, in lower case.
    """
    free = {name.lower(): text for name, text in emptied(row).items()}
    expressions = sorted(pair for pair in free.items() if not LITERAL.fullmatch(pair[1]))
    own, seen = _lasting(
        tuple(expressions), frozenset(free), unsure_of(row), moments(free), of_jobs
    )
    names = (*seen, *resources_of(row))
    return {**{name: free[name] for name in names if name in free}, **own}


def unsure_of(row: AdRow) -> frozenset[str]:
    """Attributes, in lower case, of which a clocked slot does not tell what they will be.

    Resources of which it does not say how much it has in all, and a local time that stands still.
    """
    local = (name for name in _LOCAL_TIME if LITERAL.fullmatch(row.get(name, "0")))
    return frozenset(
        [*(name for name in resources_of(row) if f"totalslot{name}" not in row), *local]
    )


@lru_cache(maxsize=1000)
def _lasting(
    expressions: tuple[tuple[str, str], ...],
    names: frozenset[str],
    unsure: frozenset[str],
    aged: frozenset[str],
    of_jobs: frozenset[str],
) -> tuple[AdRow, frozenset[str]]:
    """Clauses of a slot's Requirements that ask something of jobs and last, and those on time.

    Returns them by name, and what they look at. ``aged`` are points in time. A clause that looks at
    an attribute that the slot lacks is left out: the slot may lack it for a moment. So is one
    on an attribute that jobs do not tell.
    """
    texts = {**dict.fromkeys(names, ""), **dict(expressions)}
    parts: dict[str, list[str]] = {ACCEPTS: [], OPEN: []}
    seen: set[str] = set()
    for clause in clauses_of(texts):
        own, others, words = seen_by(clause.text, texts)
        momentary = any(is_momentary(name) or name in unsure for name in own)
        momentary = momentary or not FUNCTIONS.isdisjoint(words)
        on_time = not ON_TIME.isdisjoint(own | words)
        momentary = momentary or (on_time and not aged.isdisjoint(own))
        sites = code_of(clause) in ("site-start", "slot-requirements")
        counts = sites and (others or on_time) and not momentary
        if counts and own <= names and others <= of_jobs:
            seen |= own
            parts[OPEN if on_time else ACCEPTS].append(f"({clause.text})")
    return {name: " && ".join(part) or "true" for name, part in parts.items()}, frozenset(seen)
