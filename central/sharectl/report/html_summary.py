"""The numbers of a period: what tables, captions and the JSON are made from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import fsum, sqrt
from typing import Optional

from sharectl.core.cycle_record import NodeRecord
from sharectl.core.ledger_series import GroupPoint, PoolPoint, Series

HOUR_SECONDS = 3600


@dataclass(frozen=True)
class GroupSummary:
    """One group over a period: means are over its complete cycles."""

    group: str
    pledge_hs06: float
    power_hs06: float
    work_hs06_hours: float
    pledge_hs06_hours: float
    """Pledge times the time that is recorded."""
    error_hs06: float
    error_rms_hs06: float
    over_ratio: float
    """Part of the recorded time in which the error was above the deadband."""
    under_ratio: float
    """Part in which it was below minus the deadband."""
    running_cores: float
    pending_jobs: float
    unplaceable_jobs: Optional[float]
    """Mean of those of them that no node could run if it were empty; None if no cycle knows."""
    held_back_nodes: Optional[float]
    """Mean of nodes on which a target held it back; None if no cycle knows."""
    helped_nodes: Optional[float]
    """Mean of nodes on which one helped it; None if no cycle knows."""

    @property
    def error_ratio(self) -> Optional[float]:
        """Mean error by the mean of what it was entitled to; None if that was nothing."""
        share_hs06 = self.power_hs06 - self.error_hs06
        return self.error_hs06 / share_hs06 if share_hs06 > 0 else None

    @property
    def work_ratio(self) -> Optional[float]:
        """Work by pledge; None without a pledge."""
        return self.work_hs06_hours / self.pledge_hs06_hours if self.pledge_hs06_hours > 0 else None


@dataclass(frozen=True)
class PoolSummary:
    """The pool over a period."""

    cycles: int
    complete_cycles: int
    covered_seconds: int
    """Time that complete cycles stand for."""
    idle_cores: Optional[float]
    """Mean; None if no cycle knows."""
    idle_core_hours: Optional[float]
    """Over the recorded time."""
    idle_target_cores: Optional[float]
    """Mean of those that targets kept from jobs; None if no cycle knows."""
    idle_grace_cores: Optional[float]
    """Mean of those that grace kept; None if no cycle knows."""
    targets: Optional[float]
    """Mean of nodes under a target; None if no cycle knows."""
    cycle_seconds: Optional[float]
    """Mean duration; None if no cycle knows."""


@dataclass(frozen=True)
class PeriodSummary:
    """A stretch of time and what the ledger says of it."""

    since: int
    until: int
    bucket_seconds: int
    pool: PoolSummary
    groups: tuple[GroupSummary, ...]
    """Those with the largest pledge first."""

    def of(self, group: str) -> Optional[GroupSummary]:
        """The group's summary; None if no complete cycle knows it."""
        return next((found for found in self.groups if found.group == group), None)


def summarized(series: Series, deadband_hs06: float = 0.0) -> PeriodSummary:
    """The numbers of a period.

    Parameters
    ----------
    deadband_hs06
        Errors of at most this size are neither over nor under, HS06, >= 0.
    """
    groups = [_group(series, group, deadband_hs06) for group in series.groups]
    groups.sort(key=lambda group: (-group.pledge_hs06, group.group))
    return PeriodSummary(series.since, series.until, series.bucket_seconds, _pool(series), tuple(groups))


def _group(series: Series, group: str, deadband_hs06: float) -> GroupSummary:
    points = [bucket.groups[group] for bucket in series.buckets if group in bucket.groups]

    def mean(value: Callable[[GroupPoint], float]) -> float:
        return mean_of_known((value(point), point.cycles) for point in points) or 0.0

    return GroupSummary(
        group=group,
        pledge_hs06=mean(lambda point: point.pledge_hs06),
        power_hs06=mean(lambda point: point.power_hs06),
        work_hs06_hours=fsum(point.work_hs06_seconds for point in points) / HOUR_SECONDS,
        pledge_hs06_hours=fsum(point.pledge_hs06_seconds for point in points) / HOUR_SECONDS,
        error_hs06=mean(lambda point: point.error_hs06),
        error_rms_hs06=sqrt(mean(lambda point: point.error_rms_hs06**2)),
        over_ratio=mean(lambda point: point.error_hs06 > deadband_hs06),
        under_ratio=mean(lambda point: point.error_hs06 < -deadband_hs06),
        running_cores=mean(lambda point: fsum(point.cores_by_size.values())),
        pending_jobs=mean(lambda point: fsum(point.pending_by_size.values())),
        unplaceable_jobs=mean_of_known((point.unplaceable_jobs, point.cycles) for point in points),
        held_back_nodes=mean_of_known((point.held_back_nodes, point.cycles) for point in points),
        helped_nodes=mean_of_known((point.helped_nodes, point.cycles) for point in points),
    )


def _pool(series: Series) -> PoolSummary:
    points = [bucket.pool for bucket in series.buckets]

    def mean(value: Callable[[PoolPoint], Optional[float]]) -> Optional[float]:
        return mean_of_known((value(point), point.complete_cycles) for point in points)

    idle = [point for point in points if point.idle_cores is not None]
    return PoolSummary(
        cycles=sum(point.cycles for point in points),
        complete_cycles=sum(point.complete_cycles for point in points),
        covered_seconds=sum(point.covered_seconds for point in points),
        idle_cores=mean(lambda point: point.idle_cores),
        idle_core_hours=fsum((point.idle_cores or 0.0) * point.covered_seconds for point in idle)
        / HOUR_SECONDS
        if idle
        else None,
        idle_target_cores=mean(lambda point: point.idle_target_cores),
        idle_grace_cores=mean(lambda point: point.idle_grace_cores),
        targets=mean(lambda point: point.targets),
        cycle_seconds=mean_of_known((point.seconds, point.cycles) for point in points),
    )


@dataclass(frozen=True)
class MulticoreOnly:
    """Nodes that take multicore jobs alone (t1_MulticoreOnly), and how their cores were used in one cycle."""

    nodes: int
    cores: int
    multi_cores: int
    """Cores held by jobs of more than one core."""
    single_cores: int
    """Cores held by jobs of one core, which started before."""
    idle_cores: int


def multicore_only(nodes: Iterable[NodeRecord]) -> Optional[MulticoreOnly]:
    """Those of the nodes that take multicore jobs alone; None if there are none."""
    alone = [node for node in nodes if node.multicore_only]
    held = [jobs for node in alone for jobs in node.held]
    if not alone:
        return None
    return MulticoreOnly(
        nodes=len(alone),
        cores=sum(node.cores for node in alone),
        multi_cores=sum(jobs.jobs * jobs.cores for jobs in held if jobs.cores > 1),
        single_cores=sum(jobs.jobs for jobs in held if jobs.cores == 1),
        idle_cores=sum(node.idle_cores for node in alone),
    )


def mean_of_known(weighted: Iterable[tuple[Optional[float], int]]) -> Optional[float]:
    """Mean of the values that are known, by their weights; None if none is."""
    known = [(value, weight) for value, weight in weighted if value is not None and weight]
    weights = sum(weight for _value, weight in known)
    return fsum(value * weight for value, weight in known) / weights if weights else None
