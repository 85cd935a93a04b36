"""Figures of the ledger over time, one bucket a point, for reports.

A bucket without a cycle is left out; one without a complete cycle has no groups: missing is never
zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Optional

from sharectl.times import DAY_SECONDS

UNKNOWN_SIZE = 0
"""Cores of a multicore job of unknown size, in rows of an imported shares_Error.log."""

MOST_COVERED_SECONDS = 3600
"""Figures of a cycle hold for the time since the complete cycle before it, at most for so long."""

HOUR_SECONDS = 3600

_COARSER = 4
"""Sums are used where they are at most so many times as wide as a point, and cycles elsewhere."""


@dataclass(frozen=True)
class GroupPoint:
    """One group in one bucket: means over its complete cycles, sums over the time they cover."""

    cycles: int
    """Complete cycles with the group, >= 1."""
    pledge_hs06: float
    power_hs06: float
    setpoint_hs06: float
    error_hs06: float
    """Power less setpoint."""
    output_hs06: Optional[float]
    """Of the controller; None if all cycles are imported."""
    work_hs06_seconds: float
    """Power times time."""
    pledge_hs06_seconds: float
    """Pledge times the same time."""
    cores_by_size: Mapping[int, float] = field(default_factory=dict)
    """Cores of a job -> cores that such jobs held."""
    pending_by_size: Mapping[int, float] = field(default_factory=dict)
    """Cores requested -> jobs that waited."""
    held_back_nodes: Optional[float] = None
    """Nodes whose target held it, or a group within it, back; None if unknown."""
    helped_nodes: Optional[float] = None
    """Nodes whose target helped it; None if unknown."""
    unplaceable_jobs: Optional[float] = None
    """Pending jobs that no node could run if it were empty; None if unknown."""
    due_hs06: Optional[float] = None
    """Power that was due; None if unknown."""
    shortfall_hs06: Optional[float] = None
    """Power that was due and that it did not use; None if unknown."""
    shortfall_squares: Optional[float] = None
    """Mean square of it; None if unknown."""


@dataclass(frozen=True)
class PoolPoint:
    """The pool in one bucket."""

    cycles: int
    """All that ran, >= 1."""
    complete_cycles: int
    covered_seconds: int
    """Time that complete cycles cover: less than the bucket where cycles are missing."""
    idle_cores: Optional[float]
    """Mean of cores without a job; None if unknown."""
    targets: Optional[float]
    """Mean of nodes under a target; None if unknown."""
    seconds: Optional[float]
    """Mean duration of a cycle; None if unknown."""
    idle_target_cores: Optional[float] = None
    """Mean of idle cores that targets kept from jobs; None if unknown."""
    idle_grace_cores: Optional[float] = None
    """Mean of those that grace kept; None if unknown."""
    present_hs06: Optional[float] = None
    """Mean of the power that the groups could have; None if unknown."""
    shortfall_hs06: Optional[float] = None
    """Mean of the power that was due to groups and that they did not use; None if unknown."""
    shortfall_squares: Optional[float] = None
    """Mean square of it; None if unknown."""


@dataclass(frozen=True)
class Bucket:
    """One point of a figure."""

    start: int
    """Unix seconds."""
    pool: PoolPoint
    groups: Mapping[str, GroupPoint] = field(default_factory=dict)


@dataclass(frozen=True)
class Series:
    """Buckets of one width, the oldest first."""

    since: int
    """Unix seconds: no cycle before it counts, though the first bucket may begin earlier."""
    until: int
    """Unix seconds: end."""
    bucket_seconds: int
    buckets: tuple[Bucket, ...] = ()

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of all groups that any bucket has, by name."""
        return tuple(sorted({name for bucket in self.buckets for name in bucket.groups}))


class Layout(NamedTuple):
    """Buckets of a series."""

    begin: int
    """Of the first one."""
    bucket_seconds: int
    level_seconds: int
    """Width of the sums that they are made from; 0: cycles."""


def layout(since: int, until: int, points: int) -> Layout:
    """At most ``points`` buckets from ``since`` to ``until``, Unix seconds.

    Buckets that are made from sums are whole hours or whole days (UTC), up to `_COARSER` times as
    wide as asked for.
    """
    width = -(-max(1, until - since) // max(1, points))
    levels = (level for level in (DAY_SECONDS, HOUR_SECONDS) if level <= _COARSER * width)
    level = next(levels, 0)
    if level == 0:
        return Layout(since, width, 0)
    return Layout(since // level * level, -(-width // level) * level, level)
