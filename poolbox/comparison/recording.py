"""Figures of a run: cores and errors of groups over time, idle cores, starts and ends by size."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

from poolbox import event_log
from poolbox.comparison.scenario import Comparison
from poolbox.event_log import EVICTED, EXECUTE, TERMINATED

STEP_SECONDS = 5.0
ABORTED, HELD, DISCONNECTED = "009", "012", "022"
ENDS = (EVICTED, TERMINATED, ABORTED, DISCONNECTED, HELD)


@dataclasses.dataclass(frozen=True)
class Run:
    """One start of a job; times are seconds since the end of the warm-up."""

    job: int
    """Place in `Comparison.jobs`."""
    node: str
    start: float
    end: Optional[float]
    """None while it runs."""
    evicted: bool = False


@dataclasses.dataclass(frozen=True)
class Figures:
    """Figures of the time that counts; the twin's outcome is brought into this form too."""

    times: tuple[float, ...]
    """End of each interval."""
    cores: Mapping[str, tuple[float, ...]]
    """Group -> mean cores of running jobs in each interval."""
    power_hs06: Mapping[str, tuple[float, ...]]
    idle_cores: tuple[float, ...]
    """Cores without a running job."""
    rms_hs06: Mapping[str, float]
    """Group -> root mean square of its error."""
    starts_by_cores: Mapping[int, int]
    done_by_cores: Mapping[int, int]
    evicted_jobs: int
    lost_core_seconds: float

    @property
    def worst_rms_hs06(self) -> float:
        """RMS error of the group that has the largest."""
        return max(self.rms_hs06.values())

    @property
    def mean_idle_cores(self) -> float:
        """Idle cores, on average."""
        return sum(self.idle_cores) / len(self.idle_cores)

    @property
    def idle_core_seconds(self) -> float:
        """Idle cores over the whole time."""
        return self.mean_idle_cores * self.times[-1]

    def mean_cores(self, group: str) -> float:
        """Cores of a group, on average."""
        return sum(self.cores[group]) / len(self.cores[group])


@dataclasses.dataclass(frozen=True)
class Record:
    """A strategy on a real pool."""

    comparison: str
    strategy: str
    seed: int
    scale: float
    htcondor: str
    warm_up_seconds: float
    """Measured: until all cores were taken, and at least what was asked for."""
    cycles: int
    """Cycles of sharectl."""
    failed_cycles: int
    runs: tuple[Run, ...]
    figures: Figures

    def as_json(self) -> dict[str, Any]:
        """Data for a file, with the sums."""
        figures = self.figures
        sums = {
            "worst_rms_hs06": figures.worst_rms_hs06,
            "mean_idle_cores": figures.mean_idle_cores,
            "idle_core_seconds": figures.idle_core_seconds,
        }
        return {**dataclasses.asdict(self), **sums}


def runs_of(log: Path, first_proc: Mapping[int, int], began: float) -> list[Run]:
    """Starts of jobs by their event log.

    Parameters
    ----------
    first_proc
        Cluster -> place in `Comparison.jobs` of its first job.
    began
        Unix seconds of the end of the warm-up.
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


def figures(runs: Iterable[Run], comparison: Comparison, step: float = STEP_SECONDS) -> Figures:
    """Figures of runs, in intervals of `step` seconds."""
    runs = list(runs)
    count = max(1, round(comparison.seconds / step))
    end = count * step
    cores = {group: [0.0] * count for group in comparison.pledge_hs06}
    power = {group: [0.0] * count for group in comparison.pledge_hs06}
    hs06_per_core = {node.name: node.hs06 / node.cores for node in comparison.nodes}
    starts: Counter[int] = Counter()
    done: Counter[int] = Counter()
    lost = 0.0
    for run in runs:
        job = comparison.jobs[run.job]
        stop = end if run.end is None else run.end
        for place, part in _overlaps(run.start, stop, step, count):
            cores[job.group][place] += part * job.cores
            power[job.group][place] += part * job.cores * hs06_per_core[run.node]
        starts[job.cores] += 0 <= run.start < end
        if run.end is not None and 0 <= run.end < end:
            done[job.cores] += not run.evicted
            lost += (run.end - run.start) * job.cores * run.evicted
    errors = errors_hs06(power, comparison.pledge_hs06)
    return Figures(
        times=tuple(step * (place + 1) for place in range(count)),
        cores={group: tuple(series) for group, series in cores.items()},
        power_hs06={group: tuple(series) for group, series in power.items()},
        idle_cores=tuple(comparison.cores - sum(held) for held in zip(*cores.values())),
        rms_hs06={group: root_mean_square(series) for group, series in errors.items()},
        starts_by_cores=dict(sorted(starts.items())),
        done_by_cores=dict(sorted(done.items())),
        evicted_jobs=sum(run.evicted and 0 <= (run.end or 0.0) < end for run in runs),
        lost_core_seconds=lost,
    )


def errors_hs06(
    power_hs06: Mapping[str, Sequence[float]], pledge_hs06: Mapping[str, float]
) -> dict[str, list[float]]:
    """Group -> DHS of each interval: power used less the pledge's part of all power used."""
    whole = sum(pledge_hs06.values())
    used = [sum(powers) for powers in zip(*power_hs06.values())]
    return {
        group: [
            power - pledge_hs06[group] * everybody / whole for power, everybody in zip(series, used)
        ]
        for group, series in power_hs06.items()
    }


def root_mean_square(values: Sequence[float]) -> float:
    """Root of the mean of the squares."""
    return math.sqrt(sum(value * value for value in values) / len(values))


def _overlaps(start: float, end: float, step: float, count: int) -> Iterable[tuple[int, float]]:
    """Interval -> the part of it that lies between start and end."""
    first = max(0, math.floor(start / step))
    for place in range(first, min(count, math.ceil(end / step))):
        part = min(end, (place + 1) * step) - max(start, place * step)
        if part > 0:
            yield place, part / step
