"""Waiting times of jobs by group and size, from a sample of the jobs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from sharectl.model import JobWaits, WaitTimes

STARTED_SECONDS = 3600
"""Jobs that started at most so long ago tell how long started jobs have waited."""


class JobWait(NamedTuple):
    """One job of a sample."""

    group: str
    cores: int
    """Cores that it requests."""
    started: bool
    """Whether it has started, within `STARTED_SECONDS`; else it waits still."""
    seconds: int
    """From its submission until now, or until its start."""
    jobs: int
    """Jobs that it stands for, >= 1."""


def job_waits(sample: Iterable[JobWait]) -> tuple[JobWaits, ...]:
    """Waiting times of each group and size of which a job is in the sample, by name and cores."""
    kinds: defaultdict[tuple[str, int], tuple[list[JobWait], list[JobWait]]] = defaultdict(
        lambda: ([], [])
    )
    for job in sample:
        kinds[job.group, job.cores][job.started].append(job)
    return tuple(
        JobWaits(group, cores, *(_times(jobs) if jobs else None for jobs in both))
        for (group, cores), both in sorted(kinds.items())
    )


def _times(jobs: list[JobWait]) -> WaitTimes:
    ordered = sorted(jobs, key=lambda job: job.seconds)
    half = sum(job.jobs for job in ordered) / 2
    counted = 0
    median_seconds = ordered[-1].seconds
    for job in ordered:
        counted += job.jobs
        if counted >= half:
            median_seconds = job.seconds
            break
    every = all(job.jobs == 1 for job in ordered)
    return WaitTimes(len(ordered), median_seconds, ordered[-1].seconds, sampled=not every)
