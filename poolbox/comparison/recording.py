"""Record of a run: power that is due and missing, cores and idle cores over time."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Optional

from poolbox import event_log
from poolbox.comparison.scenario import SCALE, Comparison
from poolbox.demo.scenario import HELPED
from poolbox.event_log import EVICTED, EXECUTE, TERMINATED
from sharectl.shares.errors import max_min_shares, shortfalls_hs06
from sharectl_lab.twin.answers import Lack, lacks

STEP_SECONDS = 5.0
ABORTED, HELD, DISCONNECTED = "009", "012", "022"
ENDS = (EVICTED, TERMINATED, ABORTED, DISCONNECTED, HELD)
TWIN = "twin"
Key = tuple[str, str, str, int]
"""Source, scenario, strategy and seed of a run."""


@dataclasses.dataclass(frozen=True)
class Run:
    """One start of a job; times are seconds since the demand came."""

    job: int
    """Place in `Comparison.jobs`."""
    node: str
    start: float
    end: Optional[float]
    """None while it runs."""
    evicted: bool = False


@dataclasses.dataclass(frozen=True)
class Usage:
    """Use of a pool in intervals of `STEP_SECONDS` from the demand on, by group."""

    cores: Mapping[str, Sequence[float]]
    """Cores that jobs hold, on average."""
    power_hs06: Mapping[str, Sequence[float]]
    """Power of these cores."""
    pending_cores: Mapping[str, Sequence[float]]
    """Cores that waiting jobs request, at the end of the interval."""
    killed_jobs: int
    lost_core_seconds: float


@dataclasses.dataclass(frozen=True)
class Record:
    """A strategy on a pool: a line of the results. Series are as in `Usage`."""

    source: str
    """Version of HTCondor, or `TWIN`."""
    scenario: str
    strategy: str
    seed: int
    seconds: float
    pool_cores: int
    pool_hs06: float
    cycles: int
    """Cycles of sharectl."""
    failed_cycles: int
    killed_jobs: int
    lost_core_seconds: float
    reached_seconds: Optional[float]
    """Time until the group that comes back has 90 % of its due; None: never."""
    mean_hs06: Mapping[str, float]
    """Group -> power that it uses, on average."""
    idle_cores: float
    """Cores that no job holds, on average."""
    missing_hs06: Sequence[float]
    """Power that is due and not delivered, of all groups."""
    returning_cores: Sequence[float]
    """Cores of the group that comes back."""

    @property
    def key(self) -> Key:
        """Run that it is of."""
        return self.source, self.scenario, self.strategy, self.seed

    @property
    def reached_hours(self) -> Optional[float]:
        """`reached_seconds` in hours of a site."""
        reached = self.reached_seconds
        return None if reached is None else reached * SCALE / 3600

    @property
    def rms_percent(self) -> float:
        """Root mean square of the power that is missing, % of the pool's."""
        return 100 * root_mean_square(self.missing_hs06) / self.pool_hs06

    @property
    def late_rms_percent(self) -> float:
        """`rms_percent` of the second half."""
        late = self.missing_hs06[len(self.missing_hs06) // 2 :]
        return 100 * root_mean_square(late) / self.pool_hs06


def record(
    comparison: Comparison,
    strategy: str,
    source: str,
    usage: Usage,
    cycles: int = 0,
    failed_cycles: int = 0,
) -> Record:
    """Record of what a pool's groups used."""
    hs06_per_core = comparison.pool_hs06 / comparison.cores
    missing, due_hs06 = [], []
    for place in range(len(usage.cores[HELPED])):
        power = {group: series[place] for group, series in usage.power_hs06.items()}
        demand = {
            group: hs06 + usage.pending_cores[group][place] * hs06_per_core
            for group, hs06 in power.items()
        }
        due = max_min_shares(comparison.pool_hs06, demand, comparison.pledge_hs06)
        missing.append(round(sum(shortfalls_hs06(due, power).values())))
        due_hs06.append(due[HELPED])
    first = next(
        iter(lacks(due_hs06, usage.power_hs06[HELPED], STEP_SECONDS)), Lack(0.0, ended=True)
    )
    held = sum(sum(series) / len(series) for series in usage.cores.values())
    return Record(
        source=source,
        scenario=comparison.name,
        strategy=strategy,
        seed=comparison.seed,
        seconds=comparison.seconds,
        pool_cores=comparison.cores,
        pool_hs06=comparison.pool_hs06,
        cycles=cycles,
        failed_cycles=failed_cycles,
        killed_jobs=usage.killed_jobs,
        lost_core_seconds=round(usage.lost_core_seconds, 1),
        reached_seconds=first.seconds if first.ended else None,
        mean_hs06={
            group: round(sum(series) / len(series), 1) for group, series in usage.power_hs06.items()
        },
        idle_cores=round(comparison.cores - held, 2),
        missing_hs06=missing,
        returning_cores=[round(cores, 1) for cores in usage.cores[HELPED]],
    )


def root_mean_square(values: Sequence[float]) -> float:
    """Root of the mean of the squares."""
    return math.sqrt(sum(value * value for value in values) / len(values))


def runs_of(log: Path, first_proc: Mapping[int, int], began: float) -> list[Run]:
    """Starts of jobs by their event log.

    Parameters
    ----------
    first_proc
        Cluster -> place in `Comparison.jobs` of its first job.
    began
        Unix seconds at which the demand came.
    """
    running: dict[str, tuple[float, str]] = {}
    runs: list[Run] = []

    def run(name: str, end: Optional[float], *, evicted: bool = False) -> Run:
        start, node = running.pop(name)
        cluster, proc = map(int, name.split("."))
        return Run(first_proc[cluster] + proc, node, start, end, evicted)

    for event in event_log.events(log, EXECUTE, *ENDS):
        if event.number == EXECUTE:
            running[event.job] = (event.at - began, event.host)
        elif event.job in running:
            ended = event.number == TERMINATED
            runs.append(run(event.job, event.at - began, evicted=not ended))
    runs += [run(name, None) for name in list(running)]
    return sorted(runs, key=lambda run: (run.start, run.job))


def usage_of(runs: Iterable[Run], comparison: Comparison) -> Usage:
    """Use of a pool by the starts and ends of its jobs."""
    count = max(1, round(comparison.seconds / STEP_SECONDS))
    end = count * STEP_SECONDS
    cores, power, pending = (
        {group: [0.0] * count for group in comparison.pledge_hs06} for _ in range(3)
    )
    hs06_per_core = {node.name: node.hs06 / node.cores for node in comparison.nodes}
    killed, lost = 0, 0.0
    for job in comparison.jobs:
        _wait(pending[job.group], job.at, job.cores)
    for run in runs:
        job = comparison.jobs[run.job]
        for place, part in _overlaps(run.start, end if run.end is None else run.end, count):
            cores[job.group][place] += part * job.cores
            power[job.group][place] += part * job.cores * hs06_per_core[run.node]
        _wait(pending[job.group], run.start, -job.cores)
        if run.evicted and run.end is not None:
            _wait(pending[job.group], run.end, job.cores)
            if 0 <= run.end < end:
                killed += 1
                lost += (run.end - run.start) * job.cores
    return Usage(cores, power, pending, killed, lost)


def _wait(pending_cores: list[float], since: float, cores: int) -> None:
    """Add the cores of a job that waits from then on, or take them off."""
    for place in range(max(0, math.ceil(since / STEP_SECONDS) - 1), len(pending_cores)):
        pending_cores[place] += cores


def _overlaps(start: float, end: float, count: int) -> Iterable[tuple[int, float]]:
    """Interval -> the part of it that lies between start and end."""
    first = max(0, math.floor(start / STEP_SECONDS))
    for place in range(first, min(count, math.ceil(end / STEP_SECONDS))):
        part = min(end, (place + 1) * STEP_SECONDS) - max(start, place * STEP_SECONDS)
        if part > 0:
            yield place, part / STEP_SECONDS
