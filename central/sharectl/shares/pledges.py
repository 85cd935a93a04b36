"""Pledges of groups as records, with the source and age of each figure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Optional

from sharectl.model import Source

SOURCES = {
    "yaml": "the configuration",
    "negotiator": "the negotiator's group quotas",
    "cric": "WLCG CRIC",
}
"""Where pledges can be from -> how that is called."""

SOURCE_NAME = "pledges"
"""How the source of pledges is called among those of a cycle."""

_FIRST_MONTH = 4
_MONTHS = 3
_QUARTERS = 4


@dataclass(frozen=True)
class Pledge:
    """Pledge of one group."""

    group: str
    hs06: float
    """Power to use, HS06 or HEPscore23, which are on one scale."""
    source: str
    """One of `SOURCES`."""
    place: str
    """Where exactly: a key, a knob, a federation and a period."""
    said_at: Optional[int] = None
    """Unix seconds of the source's answer; None for now, or if it is the configuration."""
    instead_of_hs06: Optional[float] = None
    """Pledge of the source that the configuration overrides; None without one."""
    surplus: Optional[str] = None
    """Use of what others leave, by the negotiator: ``no``, ``byquota`` or ``regroup``; None if
    unknown."""


@dataclass(frozen=True)
class Pledged:
    """All pledges of one moment, or why they cannot be had."""

    source: Source
    """How the source answered; with a problem there are no pledges."""
    pledges: tuple[Pledge, ...] = ()
    """By the order of the configuration."""
    warnings: tuple[str, ...] = ()
    """Facts to mend, one line each: a copy in use, a pledge that jumps."""
    notes: tuple[str, ...] = ()
    """Facts that may be meant so, one line each: a written pledge that differs, a group that is not
    steered."""

    @property
    def hs06(self) -> dict[str, float]:
        """Group (dotted where nested) -> pledge, HS06."""
        return {pledge.group: pledge.hs06 for pledge in self.pledges}


@dataclass(frozen=True)
class Period:
    """A quarter of a WLCG year, which begins in April: Q4 of 2026 ends in March 2027."""

    year: int
    quarter: int
    """1 to 4."""

    def __str__(self) -> str:
        return f"{self.year} Q{self.quarter}"


def period_at(now: int) -> Period:
    """The quarter that the Unix time ``now`` is in, by UTC."""
    date = datetime.fromtimestamp(now, timezone.utc)
    quarter = (date.month - _FIRST_MONTH) // _MONTHS
    return (
        Period(date.year, quarter + 1)
        if quarter >= 0
        else Period(date.year - 1, quarter + 1 + _QUARTERS)
    )


def jumps(before: float, after: float, factor: float) -> bool:
    """Whether a pledge rose or fell by more than ``factor``, > 1."""
    return not before / factor <= after <= before * factor
