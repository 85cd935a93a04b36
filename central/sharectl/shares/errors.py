"""Usage of each group, and its error: what it uses less its share of all that is used."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from math import fsum

from sharectl.model import GroupError, GroupUsage, Snapshot


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
    single_cores, multi_cores = Counter[str](), Counter[str]()
    powers_hs06: defaultdict[str, list[float]] = defaultdict(list)
    for _, group, cores, hs06_per_core, _, jobs, _ in snapshot.running:
        if cores == 1:
            single_cores[group] += jobs
        else:
            multi_cores[group] += jobs * cores
        powers_hs06[group].append(jobs * cores * hs06_per_core)
    waiting: defaultdict[str, Counter[int]] = defaultdict(Counter)
    unplaceable: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for row in snapshot.pending:
        waiting[row.group][row.cores] += row.jobs
        if not row.placeable:
            unplaceable[row.group][row.cores] += row.jobs
    return {
        group: GroupUsage(
            single_cores=single_cores[group],
            multi_cores=multi_cores[group],
            power_hs06=fsum(powers_hs06[group]),
            pending_single_jobs=waiting[group][1],
            pending_multi_jobs=sum(jobs for cores, jobs in waiting[group].items() if cores > 1),
            pending_by_cores=dict(sorted(waiting[group].items())),
            unplaceable_by_cores=dict(sorted(unplaceable[group].items())),
        )
        for group in groups
    }
