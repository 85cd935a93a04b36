"""Figures of the ledger over time, one bucket a point, for reports.

A bucket without a cycle is left out; one without a complete cycle has no groups: missing is never
zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Optional

MOST_COVERED_SECONDS = 3600
"""Figures of a cycle hold for the time since the complete cycle before it, at most for so long."""


@dataclass(frozen=True)
class GroupPoint:
    """Means of a group over complete cycles, sums over the time they cover; None: unknown."""

    cycles: int
    """Complete cycles with the group, >= 1."""
    pledge_hs06: float
    power_hs06: float
    error_hs06: float
    """Power less setpoint."""
    output_hs06: Optional[float]
    work_hs06_seconds: float
    """Power times time."""
    pledge_hs06_seconds: float
    """Pledge times the same time."""
    single_cores: Optional[float] = None
    """Cores held by jobs of one core."""
    multi_cores: Optional[float] = None
    pending_single_jobs: Optional[float] = None
    pending_multi_jobs: Optional[float] = None
    held_back_nodes: Optional[float] = None
    """Nodes whose target held it, or a group within it, back."""
    helped_nodes: Optional[float] = None
    """Nodes whose target helped it."""
    unplaceable_jobs: Optional[float] = None
    """Pending jobs that no node could run if it were empty."""
    due_hs06: Optional[float] = None
    shortfall_hs06: Optional[float] = None
    """Power that was due and that it did not use."""
    shortfall_squares: Optional[float] = None
    """Mean square of it."""


@dataclass(frozen=True)
class PoolPoint:
    """Means of the pool in one bucket; None stands for a figure that is unknown."""

    cycles: int
    """All that ran, >= 1."""
    complete_cycles: int
    covered_seconds: int
    """Time that complete cycles cover: less than the bucket where cycles are missing."""
    idle_cores: Optional[float]
    targets: Optional[float]
    """Nodes under a target."""
    seconds: Optional[float]
    """Duration of a cycle."""
    idle_target_cores: Optional[float] = None
    """Idle cores that targets kept from jobs."""
    idle_grace_cores: Optional[float] = None
    """Idle cores that grace kept."""
    present_hs06: Optional[float] = None
    """Power that the groups could have."""
    shortfall_hs06: Optional[float] = None
    """Power that was due to groups and that they did not use."""


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
