"""Jobs that wait: demand, jobs that no node could run, and waiting times."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple, Optional

from sharectl.model import JobWaits, Kind, PendingJobs, Snapshot, UnplaceableJobs, WaitTimes
from sharectl.words import counted as number_of

Request = tuple[str, int, int]
"""Group, cores requested, memory requested in MiB."""


def shared_out(jobs: int, sample: Mapping[int, int]) -> dict[int, int]:
    """``jobs`` in the proportions of a sample: value -> jobs; without a sample all are of 0."""
    counts = sorted(sample.items()) if any(sample.values()) else [(0, 1)]
    total = sum(count for _, count in counts)
    bounds = [0, *(jobs * seen // total for seen in accumulate(count for _, count in counts))]
    shared = {size: high - low for (size, _), low, high in zip(counts, bounds, bounds[1:])}
    return {size: share for size, share in shared.items() if share}


def pending_rows(
    counted: Mapping[Request, int], unplaceable: Mapping[Request, int]
) -> tuple[PendingJobs, ...]:
    """Rows of the jobs counted; those that no node could run are rows of their own."""
    rows = []
    for kind, jobs in sorted(counted.items()):
        group, cores, memory_mib = kind
        # Counted at different moments: there are no more of them than wait.
        without = min(jobs, unplaceable.get(kind, 0))
        rows += [
            PendingJobs(group, cores, count, memory_mib, placeable)
            for count, placeable in ((jobs - without, True), (without, False))
            if count > 0
        ]
    return tuple(rows)


def pending_alike(pending: Iterable[PendingJobs], groups: Collection[str]) -> list[PendingJobs]:
    """Pending jobs of ``groups``, one row for jobs of one size and, by powers of two, memory."""
    alike: dict[tuple[str, int, int, bool], PendingJobs] = {}
    for jobs in pending:
        if jobs.group in groups and jobs.jobs > 0:
            key = (jobs.group, jobs.cores, jobs.memory_mib.bit_length(), jobs.placeable)
            other = alike.get(key, replace(jobs, jobs=0))
            most_mib = max(other.memory_mib, jobs.memory_mib)
            alike[key] = replace(jobs, jobs=other.jobs + jobs.jobs, memory_mib=most_mib)
    return [alike[key] for key in sorted(alike)]


def unplaceable_jobs(
    pending: Iterable[PendingJobs], kinds: Iterable[UnplaceableJobs]
) -> tuple[UnplaceableJobs, ...]:
    """Jobs of ``pending`` that no node could run, by group and size, the most first."""
    counted: Counter[Kind] = Counter()
    for jobs in pending:
        if not jobs.placeable:
            counted[jobs.kind] += jobs.jobs
    alike: dict[tuple[bool, str, int], UnplaceableJobs] = {}
    for row in sorted(kinds, key=lambda row: -row.jobs):
        key = (row.later, row.group, row.cores)
        before = alike.get(key, replace(row, jobs=0))
        alike[key] = replace(before, jobs=before.jobs + row.jobs)
    rows = []
    for _, row in sorted(alike.items()):
        if count := min(row.jobs, counted[row.group, row.cores]):
            counted[row.group, row.cores] -= count
            rows.append(replace(row, jobs=count))
    return tuple(sorted(rows, key=lambda row: (-row.jobs, row.group, row.cores, row.later)))


def multicore_pending(
    snapshot: Snapshot, far_over: Collection[str] = (), failing: Collection[Kind] = ()
) -> Optional[bool]:
    """True if multicore jobs wait that some node could run; None if that is unknown.

    Jobs of the groups ``far_over`` their share do not count: cores that were kept for them would be
    taken from groups to which they are due. Nor do kinds that are ``failing``: no job of them took
    the cores that were kept free for it, or every node is closed to them.
    """
    waits = any(
        row.cores > 1 and row.jobs > 0 and row.placeable
        for row in snapshot.pending
        if row.group not in far_over and row.kind not in failing
    )
    return None if not snapshot.complete or (waits and snapshot.untried is not None) else waits


def unplaceable_words(jobs: UnplaceableJobs) -> str:
    """Sentence on jobs that no node could run, and where more is to be read."""
    count = f"{number_of(jobs.jobs, 'pending job')} of {jobs.group}, {jobs.cores} cores"
    why = "no node could run them if it were empty: they are no demand"
    if jobs.later:
        why = "their time has not come: they are no demand until then"
    see = f"; see `sharectl explain job {jobs.example}`" if jobs.example else ""
    return f"{count}: {why}{see}"


STARTED_SECONDS = 3600
"""Jobs that started at most so long ago tell how long started jobs have waited."""


class JobWait(NamedTuple):
    """One job of a sample."""

    group: str
    cores: int
    """Cores that it requests."""
    started: bool
    """True if it has started, within `STARTED_SECONDS`; else it waits still."""
    seconds: int
    """From its submission until now, or until its start."""
    jobs: int
    """Jobs that it stands for, >= 1."""
    request: str = ""
    """Its request, where that has these cores only without a slot; else empty."""


def job_waits(sample: Iterable[JobWait]) -> tuple[JobWaits, ...]:
    """Waiting times of each group and size of which a job is in the sample, by name and cores."""
    kinds: defaultdict[Kind, tuple[list[JobWait], list[JobWait]]] = defaultdict(lambda: ([], []))
    for job in sample:
        kinds[job.group, job.cores][job.started].append(job)
    return tuple(JobWaits(*kind, *map(_times, kinds[kind])) for kind in sorted(kinds))


def _times(jobs: list[JobWait]) -> Optional[WaitTimes]:
    if not jobs:
        return None
    jobs = sorted(jobs, key=lambda job: job.seconds)
    reached = list(accumulate(job.jobs for job in jobs))
    median = jobs[bisect_left(reached, reached[-1] / 2)]
    sampled = any(job.jobs != 1 for job in jobs)
    return WaitTimes(len(jobs), median.seconds, jobs[-1].seconds, sampled=sampled)
