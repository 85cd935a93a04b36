"""Usage, error and shortfall of each group.

The error is measured against power in use. Power is due by the max-min share, by pledge, of the
power that is present: a group gets at most what its jobs can use. Present is the power of all
nodes, under control or not, less what jobs of other groups use, and without idle cores of a node
that takes none of the waiting jobs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from math import fsum
from typing import NamedTuple

from sharectl.model import (
    DEFAULT_NODE_CORES,
    DEFAULT_NODE_HS06,
    GroupError,
    GroupUsage,
    Node,
    Snapshot,
)


def group_errors(
    usage: Mapping[str, GroupUsage], pledge_hs06: Mapping[str, float]
) -> tuple[GroupError, ...]:
    """Error of every group, in the order of the pledges. Positive: over its share.

    With ``share = pledge / sum of pledges``: DHS = power - share * power of all, in HS06; DC the
    same in cores; DPHS = power - pledge. "All" are the groups with a pledge: what others use is not
    theirs to share. Raises ValueError if no group has a pledge.
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
    """Usage of each of ``groups``, in their order; zero for a group without jobs."""
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


def max_min_shares(
    amount: float, most: Mapping[str, float], weights: Mapping[str, float]
) -> dict[str, float]:
    """Name of ``weights`` -> its weighted max-min share of ``amount``, in their order and its unit.

    Each gets at most its ``most``, 0 if it has none. What it leaves is shared out among those that
    can use more, in proportion to their ``weights``, >= 0. A weight of 0 gets nothing. See
    Bertsekas and Gallager, Data Networks, 6.5.2.
    """
    shares = dict.fromkeys(weights, 0.0)
    weighted = [name for name, weight in weights.items() if weight > 0]
    # Who can use least of its weight is served first: what it leaves only raises the others' level.
    weighted.sort(key=lambda name: most.get(name, 0.0) / weights[name])
    rest = amount
    for number, name in enumerate(weighted):
        level = rest / fsum(weights[other] for other in weighted[number:])
        shares[name] = min(most.get(name, 0.0), level * weights[name])
        rest = max(0.0, rest - shares[name])
    return shares


def shortfalls_hs06(
    due_hs06: Mapping[str, float], power_hs06: Mapping[str, float]
) -> dict[str, float]:
    """Group -> power that is due to it and that it does not use, HS06, >= 0."""
    return {group: max(0.0, due - power_hs06.get(group, 0.0)) for group, due in due_hs06.items()}


def pool_hs06(nodes: Iterable[Node]) -> float:
    """Power of all cores of nodes, HS06."""
    return fsum(node.cores * node.hs06_per_core for node in nodes)


def demand_hs06(usage: Mapping[str, GroupUsage], nodes: Collection[Node]) -> dict[str, float]:
    """Group -> power, HS06, with its waiting jobs on cores of the pool's mean power."""
    cores = sum(node.cores for node in nodes)
    core_hs06 = pool_hs06(nodes) / cores if cores else DEFAULT_NODE_HS06 / DEFAULT_NODE_CORES
    return {
        group: used.power_hs06
        + core_hs06 * sum(cores * jobs for cores, jobs in used.demand_by_cores.items())
        for group, used in usage.items()
    }


class Shortfalls(NamedTuple):
    """Power that is due to each group, and that it lacks, at one look at the pool, HS06."""

    present_hs06: float
    due_hs06: Mapping[str, float]
    shortfall_hs06: Mapping[str, float]


def shortfalls_of(snapshot: Snapshot, pledge_hs06: Mapping[str, float]) -> Shortfalls:
    """Shortfall of each group of ``pledge_hs06``, in a complete snapshot."""
    usage = usage_by_group(snapshot, pledge_hs06)
    held_cores: Counter[str] = Counter()
    others_hs06 = []
    for node, group, cores, hs06_per_core, _, jobs, _ in snapshot.running:
        held_cores[node] += jobs * cores
        if group not in pledge_hs06:
            others_hs06.append(jobs * cores * hs06_per_core)
    kinds = {(group, cores) for group in usage for cores in usage[group].demand_by_cores}
    shut_hs06 = fsum(
        max(0, node.cores - held_cores[node.name]) * node.hs06_per_core
        for node in snapshot.nodes
        if node.hot or (kinds and not any(map(node.admits, kinds)))
    )
    present_hs06 = max(0.0, pool_hs06(snapshot.nodes) - fsum(others_hs06) - shut_hs06)
    due = max_min_shares(present_hs06, demand_hs06(usage, snapshot.nodes), pledge_hs06)
    power = {group: used.power_hs06 for group, used in usage.items()}
    return Shortfalls(present_hs06, due, shortfalls_hs06(due, power))
