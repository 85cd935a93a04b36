"""What reports draw: figures of the ledger over a stretch of time, a bucket a point.

A bucket in which no cycle ran is not there, and one without a complete cycle has no groups: missing
is never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Optional

UNKNOWN_SIZE = 0
"""Stands for the cores of multicore jobs where only their sum is known: in rows of an imported shares_Error.log."""

MOST_COVERED_SECONDS = 3600
"""A cycle's figures stand for the time since the complete cycle before it, at most for so long: the rest is a gap."""

HOUR_SECONDS = 3600
QUARTER_SECONDS = 21600
DAY_SECONDS = 86400
LEVELS_SECONDS = (DAY_SECONDS, QUARTER_SECONDS, HOUR_SECONDS)
"""Widths of roll-ups, each a whole number of the next."""

_COARSER = 4
"""A figure is drawn with a point a cycle where it shows days, and the widest roll-up that is no coarser than this elsewhere."""


@dataclass(frozen=True)
class GroupPoint:
    """One group in one bucket: means over its complete cycles, and sums over the time that they cover."""

    cycles: int
    """Complete cycles that know the group, >= 1."""
    pledge_hs06: float
    power_hs06: float
    setpoint_hs06: float
    error_hs06: float
    """Power less setpoint."""
    error_rms_hs06: float
    """Root of the mean square of it."""
    output_hs06: Optional[float]
    """Of the controller; None if no cycle knows, since all are imported."""
    work_hs06_seconds: float
    """Power times time."""
    pledge_hs06_seconds: float
    """Pledge times the same time."""
    cores_by_size: Mapping[int, float] = field(default_factory=dict)
    """Cores of a job -> cores that such jobs held; `UNKNOWN_SIZE` for multicore jobs of any."""
    pending_by_size: Mapping[int, float] = field(default_factory=dict)
    """Cores requested -> jobs that waited; `UNKNOWN_SIZE` likewise."""
    held_back_nodes: Optional[float] = None
    """Nodes on which a target held it, or a group within it, back; None if no cycle knows."""
    helped_nodes: Optional[float] = None
    """Nodes on which one helped it; None if no cycle knows."""
    unplaceable_jobs: Optional[float] = None
    """Pending jobs that no node could run if it were empty; None if no cycle knows."""


@dataclass(frozen=True)
class PoolPoint:
    """The pool in one bucket."""

    cycles: int
    """All that ran, >= 1."""
    complete_cycles: int
    covered_seconds: int
    """Time that complete cycles stand for: less than the bucket where cycles are missing."""
    idle_cores: Optional[float]
    """Mean of what no job held; None if no cycle knows."""
    targets: Optional[float]
    """Mean of nodes under a target; None if no cycle knows."""
    seconds: Optional[float]
    """Mean duration of a cycle; None if no cycle knows."""
    idle_target_cores: Optional[float] = None
    """Mean of idle cores that targets kept from jobs; None if no cycle knows."""
    idle_grace_cores: Optional[float] = None
    """Mean of those that grace kept; None if no cycle knows."""


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
    """Unix seconds: begin of the first bucket, the time asked for or somewhat earlier."""
    until: int
    """Unix seconds: end, the time asked for or somewhat later."""
    bucket_seconds: int
    buckets: tuple[Bucket, ...] = ()

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of all groups that any bucket has, by name."""
        return tuple(sorted({name for bucket in self.buckets for name in bucket.groups}))


@dataclass(frozen=True)
class Layout:
    """Which buckets answer a question."""

    since: int
    until: int
    bucket_seconds: int
    level_seconds: int
    """Width of the roll-ups that they are added up from; 0: the cycles themselves."""


def layout(since: int, until: int, points: int) -> Layout:
    """Buckets for about ``points`` points from ``since`` to ``until``, Unix seconds.

    There are at most so many. A bucket of a quarter of an hour or more is made a whole number of
    hours, of quarters of a day or of days (UTC), so that it can be added up from roll-ups: up to
    `_COARSER` times as wide as asked for. Then the ends are moved outwards to whole ones.
    """
    span_seconds = max(1, until - since)
    width = -(-span_seconds // max(1, points))
    level = next((level for level in LEVELS_SECONDS if level <= _COARSER * width), 0)
    if level == 0:
        return Layout(since, max(until, since + 1), width, 0)
    begin = since // level * level
    end = -(-max(until, since + 1) // level) * level
    return Layout(begin, end, -(-width // level) * level, level)
