"""Records of the twin: what a pool is made of, and the outcome of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

CAUSES = {
    "cadence": "the next negotiation cycle has not looked at them yet",
    "grace": "grace keeps them for multicore jobs",
    "target": "a target keeps them for the helped group",
    "drain": "the node is being drained",
    "start": "another clause of START refuses all pending jobs that would fit",
    "fragmentation": "no pending job fits into what is free on the node",
    "quota": "the negotiator gives no pending job's group more",
    "unmatchable": "no pending job could run there, were it empty",
    "no-jobs": "no job is pending",
}
"""Cause of idle cores -> its meaning, in the order in which a cause goes before the next."""


@dataclass(frozen=True)
class SlotSpec:
    """A partitionable slot."""

    cores: int
    memory_mib: int
    disk_kib: int = 0
    custom: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class NodeSpec:
    """An execute point."""

    name: str
    slots: tuple[SlotSpec, ...]
    hs06_per_core: float
    controlled: bool = True
    multicore_only: bool = False
    """Whether START takes multicore jobs alone (t1_MulticoreOnly)."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """Further attributes of its ads, names in lower case."""

    @property
    def cores(self) -> int:
        """Cores of all slots."""
        return sum(slot.cores for slot in self.slots)


@dataclass(frozen=True)
class Waits:
    """Waiting times of jobs that started, of one group and size."""

    jobs: int
    mean_seconds: float
    median_seconds: float
    p95_seconds: float
    longest_seconds: float


@dataclass(frozen=True)
class GroupOutcome:
    """Outcome of one configured group, or of `sharectl.model.OTHER`."""

    pledge_hs06: float
    """0 of `OTHER`."""
    power_hs06: tuple[float, ...]
    """Mean power used in each interval of `Outcome.times`."""
    due_hs06: tuple[float, ...]
    """Power that is due in each interval, as of `sharectl.shares.errors`."""
    cores: tuple[float, ...]
    """Mean cores held in each interval."""
    pending_jobs: tuple[int, ...]
    """Jobs that wait at the end of each interval."""
    work_hs06_hours: float
    """Power used, over the whole time that counts."""
    starts_by_cores: Mapping[int, int] = field(default_factory=dict)
    done_by_cores: Mapping[int, int] = field(default_factory=dict)
    """Jobs that ended."""
    waits_by_cores: Mapping[int, Waits] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """Outcome of one strategy on one scenario with one seed."""

    scenario: str
    strategy: str
    seed: int
    seconds: float
    """Time that counts, after the warm-up."""
    times: tuple[float, ...]
    """End of each interval, all of one length, seconds since the end of the warm-up."""
    pool_cores: int
    pool_hs06: float
    groups: Mapping[str, GroupOutcome]
    idle_core_seconds: Mapping[str, float]
    """Cause of `CAUSES` -> core-seconds; all causes are there."""
    idle_cores: Mapping[str, tuple[float, ...]]
    """Cause of `CAUSES` -> mean cores in each interval."""
    refusals: int = 0
    """Matches that the startd refused."""
    evicted_jobs: int = 0
    lost_core_seconds: float = 0.0
    """Work of evicted jobs."""
    drained_nodes: int = 0
    cycles: int = 0
    """Negotiation cycles."""
    plans: int = 0
    """Cycles of sharectl that published."""
    changed_targets: int = 0
    """Targets that were added, altered or removed."""
    complete: bool = True
    """False if it was interrupted."""


COUNTS = ("refusals", "evicted_jobs", "drained_nodes", "cycles", "plans", "changed_targets")
"""Counters of the twin that `Outcome` and the figures have."""
