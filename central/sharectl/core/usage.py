"""What each group holds and waits for, summed from the jobs of a snapshot."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from math import fsum

from sharectl.core.model import GroupUsage, PendingJobs, RunningJobs, Snapshot


def usage_by_group(snapshot: Snapshot, groups: Iterable[str]) -> dict[str, GroupUsage]:
    """Usage of each of ``groups``, in their order; zero for a group without jobs.

    A job of one core is single, one of more is multicore.
    """
    running: defaultdict[str, list[RunningJobs]] = defaultdict(list)
    pending: defaultdict[str, list[PendingJobs]] = defaultdict(list)
    for held in snapshot.running:
        running[held.group].append(held)
    for waiting in snapshot.pending:
        pending[waiting.group].append(waiting)
    return {group: _usage(running[group], pending[group]) for group in groups}


def cores_by_node(snapshot: Snapshot, group: str) -> dict[str, int]:
    """Cores that ``group`` holds on each node where it holds any: node -> cores."""
    cores: Counter[str] = Counter()
    for held in snapshot.running:
        if held.group == group:
            cores[held.node] += held.jobs * held.cores
    return dict(cores)


def hs06_per_core_by_node(snapshot: Snapshot) -> dict[str, float]:
    """Power of a core of each node, HS06: from the node's ad, else from the jobs that run there."""
    power = {held.node: held.hs06_per_core for held in snapshot.running}
    power.update((node.name, node.hs06_per_core) for node in snapshot.nodes)
    return power


def _usage(running: Iterable[RunningJobs], pending: Iterable[PendingJobs]) -> GroupUsage:
    running, pending = tuple(running), tuple(pending)
    waiting = _jobs_by_cores(pending)
    return GroupUsage(
        single_cores=sum(held.jobs for held in running if held.cores == 1),
        multi_cores=sum(held.jobs * held.cores for held in running if held.cores > 1),
        power_hs06=fsum(held.jobs * held.cores * held.hs06_per_core for held in running),
        pending_single_jobs=waiting.get(1, 0),
        pending_multi_jobs=sum(jobs for cores, jobs in waiting.items() if cores > 1),
        pending_by_cores=waiting,
        unplaceable_by_cores=_jobs_by_cores(jobs for jobs in pending if not jobs.placeable),
    )


def _jobs_by_cores(pending: Iterable[PendingJobs]) -> Mapping[int, int]:
    waiting: Counter[int] = Counter()
    for jobs in pending:
        waiting[jobs.cores] += jobs.jobs
    return dict(sorted(waiting.items()))
