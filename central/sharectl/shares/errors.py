"""Usage of each group, and its error: what it uses less its share of all that is used."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import fsum

from sharectl.model import GroupError, GroupUsage, PendingJobs, Snapshot


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
    running: defaultdict[str, _Held] = defaultdict(_Held)
    pending: defaultdict[str, list[PendingJobs]] = defaultdict(list)
    for _, group, cores, hs06_per_core, _, jobs, _ in snapshot.running:
        held = running[group]
        if cores == 1:
            held.single_cores += jobs
        else:
            held.multi_cores += jobs * cores
        held.powers_hs06.append(jobs * cores * hs06_per_core)
    for waiting in snapshot.pending:
        pending[waiting.group].append(waiting)
    return {group: _usage(running[group], pending[group]) for group in groups}


class _Held:
    """Cores that a group holds, and the power of each row of its jobs."""

    __slots__ = ("multi_cores", "powers_hs06", "single_cores")

    def __init__(self) -> None:
        self.single_cores = self.multi_cores = 0
        self.powers_hs06: list[float] = []


def _usage(held: _Held, pending: Sequence[PendingJobs]) -> GroupUsage:
    waiting = _jobs_by_cores(pending)
    return GroupUsage(
        single_cores=held.single_cores,
        multi_cores=held.multi_cores,
        power_hs06=fsum(held.powers_hs06),
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
