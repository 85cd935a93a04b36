"""Usage of each group, and its error: what it uses less its share of all that is used."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import fsum

from sharectl.model import GroupError, GroupUsage, PendingJobs, RunningJobs, Snapshot


def group_errors(
    usage: Mapping[str, GroupUsage], pledge_hs06: Mapping[str, float]
) -> tuple[GroupError, ...]:
    """Error of every group, in the order of the pledges. Positive: over its share.

    With ``share = pledge / sum of pledges``: DHS = power - share * power of all, in HS06; DC the
    same in cores; DPHS = power - pledge. "All" are the groups with a pledge: what others use is not
    theirs to share. A group without usage holds nothing.

    Raises
    ------
    ValueError
        If no group has a pledge.
    """
    pledge_sum = fsum(pledge_hs06.values())
    if not pledge_sum > 0:
        raise ValueError("the sum of all pledges must be above 0")
    held = {group: usage.get(group, GroupUsage()) for group in pledge_hs06}
    power_ratio = fsum(used.power_hs06 for used in held.values()) / pledge_sum
    cores_per_hs06 = sum(used.cores for used in held.values()) / pledge_sum
    return tuple(
        GroupError(
            group=group,
            pledge_hs06=pledge,
            error_cores=held[group].cores - pledge * cores_per_hs06,
            error_hs06=held[group].power_hs06 - pledge * power_ratio,
            power_minus_pledge_hs06=held[group].power_hs06 - pledge,
            usage=held[group],
        )
        for group, pledge in pledge_hs06.items()
    )


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


def _usage(running: Sequence[RunningJobs], pending: Sequence[PendingJobs]) -> GroupUsage:
    waiting, cores_by_size = _jobs_by_cores(pending), Counter[int]()
    for held in running:
        cores_by_size[held.cores] += held.jobs * held.cores
    single_cores = cores_by_size[1]
    return GroupUsage(
        single_cores=single_cores,
        multi_cores=sum(cores_by_size.values()) - single_cores,
        power_hs06=fsum([held.jobs * held.cores * held.hs06_per_core for held in running]),
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
