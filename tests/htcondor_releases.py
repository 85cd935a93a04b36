"""Points in which releases of HTCondor differ, by the table of docs/versions.md."""

from __future__ import annotations

import re
from math import inf
from pathlib import Path

from sharectl.condor.pool_look import Version

DOCUMENT = Path(__file__).parents[1] / "docs" / "versions.md"
SENDS_SLOTS = "HTCONDOR-3526"
OFFERS_FEWER_JOBS = "HTCONDOR-3664"
OVERFLOWS_TO_ZERO = "HTCONDOR-2140"


def holds(fact: str, version: Version) -> bool:
    """Tell if a version has the fact with these words: of a series each, from and before."""
    (row,) = (row for row in DOCUMENT.read_text().splitlines() if row[:1] == "|" and fact in row)
    return any(
        _release("from", span, 0) <= version < _release("before", span, inf)
        for span in row.split("|")[2].split(";")
        if version
    )


def _release(word: str, span: str, default: float) -> tuple[float, ...]:
    match = re.search(rf"{word} ([\d.]+\d)", span)
    return tuple(map(int, match[1].split("."))) if match else (default,)
