"""Power that is due to each group, and the shortfall: power that is due and not delivered.

Due is the max-min share, by pledge, of the power that is present (`sharectl.shares.max_min`): a
group gets at most what its jobs can use. The error of `sharectl.shares.errors` measures against
power in use instead, and becomes smaller when cores stand idle.

Present is the power of all nodes, under control or not, less what jobs of other groups use: nobody
can have it before they end. Demand is the power that a group uses, and that of its pending jobs
that some node could run, at the pool's mean power of a core. Idle cores of a node that takes none
of these jobs are not present.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from math import fsum
from typing import NamedTuple

from sharectl.model import Snapshot
from sharectl.shares.max_min import max_min_shares

SERVED_RATIO = 0.9
"""Part of its due from which a group counts as served."""
LACKING_RATIO = 0.75
"""Part of its due below which a group must fall for a time without it to count.

Between the two a group loses and gains single jobs all day.
"""


def shortfalls_hs06(
    due_hs06: Mapping[str, float], power_hs06: Mapping[str, float]
) -> dict[str, float]:
    """Group -> power that is due to it and that it does not use, HS06, >= 0."""
    return {group: max(0.0, due - power_hs06.get(group, 0.0)) for group, due in due_hs06.items()}


class Lack(NamedTuple):
    """Time during which a group had less than `SERVED_RATIO` of its due."""

    seconds: float
    ended: bool
    """False if it had not ended with the last interval: it would have been longer."""


def lacks(
    due_hs06: Iterable[float], power_hs06: Iterable[float], interval_seconds: float
) -> list[Lack]:
    """Times from the begin of a group's shortfall until it has 90 % of its due, by their begin.

    Due and power are those of consecutive intervals. A time in which the group never had less than
    `LACKING_RATIO` of its due is left out.
    """
    times: list[Lack] = []
    intervals, counts = 0, False
    for due, power in zip(due_hs06, power_hs06):
        if power < SERVED_RATIO * due:
            intervals += 1
            counts = counts or power < LACKING_RATIO * due
            continue
        if counts:
            times.append(Lack(intervals * interval_seconds, ended=True))
        intervals, counts = 0, False
    return [*times, Lack(intervals * interval_seconds, ended=False)] if counts else times


class Shortfalls(NamedTuple):
    """Power that is due to each group, and that it lacks, at one look at the pool, HS06."""

    present_hs06: float
    due_hs06: Mapping[str, float]
    shortfall_hs06: Mapping[str, float]


def shortfalls_of(snapshot: Snapshot, pledge_hs06: Mapping[str, float]) -> Shortfalls:
    """Shortfall of each group of ``pledge_hs06``, in a complete snapshot."""
    powers: defaultdict[str, list[float]] = defaultdict(list)
    held_cores: Counter[str] = Counter()
    for node, group, cores, hs06_per_core, _, jobs, _ in snapshot.running:
        powers[group if group in pledge_hs06 else ""].append(jobs * cores * hs06_per_core)
        held_cores[node] += jobs * cores
    power = {group: fsum(parts) for group, parts in powers.items()}
    waiting = [
        row for row in snapshot.pending if row.placeable and row.jobs and row.group in pledge_hs06
    ]
    kinds = {row.kind for row in waiting}
    pool_hs06 = fsum(node.cores * node.hs06_per_core for node in snapshot.nodes)
    core_hs06 = pool_hs06 / max(1, sum(node.cores for node in snapshot.nodes))
    shut_hs06 = fsum(
        max(0, node.cores - held_cores[node.name]) * node.hs06_per_core
        for node in snapshot.nodes
        if node.hot or (kinds and not any(map(node.admits, kinds)))
    )
    demand = {group: power.get(group, 0.0) for group in pledge_hs06}
    for row in waiting:
        demand[row.group] += row.jobs * row.cores * core_hs06
    present_hs06 = max(0.0, pool_hs06 - power.get("", 0.0) - shut_hs06)
    due = max_min_shares(present_hs06, demand, pledge_hs06)
    return Shortfalls(present_hs06, due, shortfalls_hs06(due, power))
