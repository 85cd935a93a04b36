"""Power that is due to each group, and the shortfall: power that is due and not delivered.

Due is the max-min share, by pledge, of the power that is present: a group gets at most what its
jobs can use. The error of `sharectl.shares.errors` measures against power in use instead, and
becomes smaller when cores stand idle.

Present is the power of all nodes, under control or not, less what jobs of other groups use: nobody
can have it before they end. Idle cores of a node that takes none of the waiting jobs are not
present.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from math import fsum
from typing import NamedTuple

from sharectl.model import (
    DEFAULT_NODE_CORES,
    DEFAULT_NODE_HS06,
    GroupUsage,
    Node,
    Snapshot,
)
from sharectl.shares.errors import usage_by_group


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
