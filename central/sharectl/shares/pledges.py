"""Pledges of groups, with the source and age of each figure, and groups of the negotiator."""

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
"""Origin of pledges -> its name in messages."""

SOURCE_NAME = "pledges"
"""Name of the source of pledges among those of a cycle."""


@dataclass(frozen=True)
class Pledge:
    """Pledge of one group."""

    group: str
    hs06: float
    """Power, HS06 (or HEPscore23, which is on the same scale)."""
    source: str
    """One of `SOURCES`."""
    place: str
    """A key, a knob, a federation and a period."""
    said_at: Optional[int] = None
    """Unix seconds of the source's last answer; None if it is of now, or is the configuration."""
    surplus: Optional[str] = None
    """Use of power that others leave: ``no``, ``byquota`` or ``regroup``; None if unknown."""


@dataclass(frozen=True)
class Pledged:
    """All pledges of one moment, or why they cannot be had."""

    source: Source
    """How the source answered; with a problem there are no pledges."""
    pledges: tuple[Pledge, ...] = ()
    """By the order of the configuration."""
    warnings: tuple[str, ...] = ()
    """Lines on what an operator should mend: a copy in use, a pledge that jumps."""
    notes: tuple[str, ...] = ()
    """Lines on what may be meant so: a pledge that differs, a group that is not steered."""

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
    months = 12 * date.year + date.month - 4
    return Period(months // 12, months % 12 // 3 + 1)


def jumps(before: float, after: float, factor: float) -> bool:
    """True if a pledge rose or fell by more than ``factor``, > 1."""
    return not before / factor <= after <= before * factor


ROOT = "<none>"
"""HTCondor's name for the group of jobs that are in no other."""
