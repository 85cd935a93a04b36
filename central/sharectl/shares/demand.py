"""Demand: pending jobs that some node could run if it were empty."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Optional

from sharectl.model import PendingJobs, Snapshot, UnplaceableJobs

Kind = tuple[str, int, int]
"""Group, cores requested, memory requested in MiB."""


def pending_rows(
    counted: Mapping[Kind, int], unplaceable: Mapping[Kind, int]
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


def unplaceable_by_cores(pending: Iterable[PendingJobs], group: str) -> dict[int, int]:
    """Cores requested -> jobs of ``group``, and of the groups within it, that no node could run."""
    counted: Counter[int] = Counter()
    for row in pending:
        if not row.placeable and (row.group == group or row.group.startswith(f"{group}.")):
            counted[row.cores] += row.jobs
    return dict(sorted(counted.items()))


def unplaceable_jobs(
    pending: Iterable[PendingJobs], kinds: Iterable[UnplaceableJobs]
) -> tuple[UnplaceableJobs, ...]:
    """Jobs of ``pending`` that no node could run, by group and size, the most first.

    Parameters
    ----------
    kinds
        Parts of them, each with its reason; the largest of a group and size speaks for all.
    """
    counted: Counter[tuple[str, int]] = Counter()
    for row in pending:
        if not row.placeable:
            counted[row.group, row.cores] += row.jobs
    largest: dict[tuple[str, int], UnplaceableJobs] = {}
    for kind in kinds:
        key = (kind.group, kind.cores)
        if key not in largest or kind.jobs > largest[key].jobs:
            largest[key] = kind
    rows = [
        UnplaceableJobs(*key, jobs, largest[key].example, largest[key].reason)
        for key, jobs in counted.items()
        if key in largest
    ]
    return tuple(sorted(rows, key=lambda jobs: (-jobs.jobs, jobs.group, jobs.cores)))


def multicore_pending(snapshot: Snapshot) -> Optional[bool]:
    """Tells if multicore jobs wait that some node could run; None if that is unknown."""
    waiting = [row for row in snapshot.pending if row.cores > 1 and row.jobs > 0 and row.placeable]
    if not snapshot.complete or (waiting and snapshot.untried is not None):
        return None
    return bool(waiting)


def unplaceable_words(jobs: UnplaceableJobs) -> str:
    """Sentence on jobs that no node could run, and where more is to be read."""
    count = (
        f"{jobs.jobs} pending job{'s' if jobs.jobs != 1 else ''} of {jobs.group}, {jobs.cores} "
        "cores"
    )
    why = f" ({jobs.reason})" if jobs.reason else ""
    see = f"; see `sharectl explain job {jobs.example}`" if jobs.example else ""
    return f"{count}: no node could run them if it were empty{why}: they are no demand{see}"
