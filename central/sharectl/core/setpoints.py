"""Setpoints: the power that each group is entitled to now, with what groups lend and borrow."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import fsum
from typing import Callable

from sharectl.core.model import DEFAULT_NODE_CORES, DEFAULT_NODE_HS06, GroupUsage, Snapshot

SETPOINTS = {
    "in_use": "its pledge's share of the power that the groups use (the original method)",
    "present": "its pledge's share of the power present in the pool's nodes, used or not",
    "pledge": "its pledge itself, however large the pool is",
}
"""Mode -> what a group's setpoint is before anything is lent."""

ROUNDING_RATIO = 1e-12
"""Part of the power shared out below which nothing is left to lend."""


@dataclass(frozen=True)
class Loans:
    """What groups may lend and borrow, after Kueue's lendingLimit and borrowingLimit; the nominal quota is the setpoint before."""

    max_lent_hs06: Mapping[str, float] = field(default_factory=dict)
    """Group -> most of its unused share that others may have, HS06; a group that is not there lends nothing."""
    max_borrowed_hs06: Mapping[str, float] = field(default_factory=dict)
    """Group -> most above its own share, HS06; a group that is not there may have any amount that is lent."""


NO_LOANS = Loans()


@dataclass(frozen=True)
class Lent:
    """What one group lends or borrows, HS06: at most one of the two is above 0."""

    lent_hs06: float = 0.0
    borrowed_hs06: float = 0.0
    limited: bool = False
    """Whether its limit kept it from more, while there was someone to take it, or something to take."""


def nominal_hs06(
    mode: str, pledge_hs06: Mapping[str, float], usage: Mapping[str, GroupUsage], snapshot: Snapshot
) -> dict[str, float]:
    """Group -> setpoint before anything is lent, HS06. Pledges sum to more than 0."""
    shared_hs06 = _SHARED[mode](pledge_hs06, usage, snapshot)
    ratio = shared_hs06 / fsum(pledge_hs06.values())
    return {group: pledge * ratio for group, pledge in pledge_hs06.items()}


def demand_hs06(usage: GroupUsage, hs06_per_core: float) -> float:
    """Power that a group would use if all its waiting jobs ran that some node could run, on cores of ``hs06_per_core``."""
    waiting_cores = sum(cores * jobs for cores, jobs in usage.demand_by_cores.items())
    return usage.power_hs06 + waiting_cores * hs06_per_core


def mean_hs06_per_core(snapshot: Snapshot) -> float:
    """Power of a core of the pool on average, HS06; the default where no node is known."""
    cores = sum(node.cores for node in snapshot.nodes)
    return present_hs06(snapshot) / cores if cores else DEFAULT_NODE_HS06 / DEFAULT_NODE_CORES


def present_hs06(snapshot: Snapshot) -> float:
    """Power of all cores of all nodes, HS06."""
    return fsum(node.cores * node.hs06_per_core for node in snapshot.nodes)


def loans(
    nominal: Mapping[str, float], demand: Mapping[str, float], pledge_hs06: Mapping[str, float], limits: Loans
) -> dict[str, Lent]:
    """What each group lends and borrows. What all lend is what all borrow.

    A group whose demand is below its nominal setpoint offers the difference, up to its limit. Groups whose demand is above
    theirs take of it in proportion to their pledges, up to the demand and to their limits. If not all is taken, all
    lend the same part of what they offer.

    Parameters
    ----------
    nominal
        Group -> setpoint before, HS06.
    demand
        Group -> power that it could use, HS06.
    """
    unused = {group: max(0.0, nominal[group] - demand[group]) for group in nominal}
    offered = {group: min(power, limits.max_lent_hs06.get(group, 0.0)) for group, power in unused.items()}
    lacked = {group: max(0.0, demand[group] - nominal[group]) for group in nominal}
    wanted = {
        group: min(power, limits.max_borrowed_hs06.get(group, power)) for group, power in lacked.items()
    }
    borrowed = in_proportion(fsum(offered.values()), wanted, pledge_hs06)
    taken_hs06, offered_hs06 = fsum(borrowed.values()), fsum(offered.values())
    ratio = min(1.0, taken_hs06 / offered_hs06) if offered_hs06 > 0 else 0.0
    # A limit acts if the group itself would take more, and the others would have it to give.
    short = taken_hs06 >= offered_hs06 * (1 - ROUNDING_RATIO) and fsum(wanted.values()) > taken_hs06
    return {
        group: Lent(
            lent_hs06=offered[group] * ratio,
            borrowed_hs06=borrowed.get(group, 0.0),
            limited=(short and unused[group] > offered[group])
            or (offered_hs06 > taken_hs06 and lacked[group] > wanted[group]),
        )
        for group in nominal
    }


def in_proportion(amount: float, most: Mapping[str, float], weights: Mapping[str, float]) -> dict[str, float]:
    """``amount`` shared out in proportion to ``weights``, to each at most its ``most``: what one cannot take others get."""
    shares: dict[str, float] = {}
    open_to = {name for name, limit in most.items() if limit > 0 and weights[name] > 0}
    left = amount
    while open_to and left > amount * ROUNDING_RATIO:
        per_weight = left / fsum(weights[name] for name in open_to)
        full = _filled(open_to, most, weights, per_weight)
        if not full:
            shares.update((name, weights[name] * per_weight) for name in open_to)
            break
        shares.update((name, most[name]) for name in full)
        left = max(0.0, amount - fsum(shares.values()))
        open_to -= full
    return shares


def _filled(
    names: Collection[str], most: Mapping[str, float], weights: Mapping[str, float], per_weight: float
) -> set[str]:
    return {name for name in names if most[name] <= weights[name] * per_weight}


def _in_use(pledges: Mapping[str, float], usage: Mapping[str, GroupUsage], snapshot: Snapshot) -> float:
    del snapshot
    return fsum(usage[group].power_hs06 for group in pledges)


def _present(pledges: Mapping[str, float], usage: Mapping[str, GroupUsage], snapshot: Snapshot) -> float:
    del pledges, usage
    return present_hs06(snapshot)


def _pledged(pledges: Mapping[str, float], usage: Mapping[str, GroupUsage], snapshot: Snapshot) -> float:
    del usage, snapshot
    return fsum(pledges.values())


_Shared = Callable[[Mapping[str, float], Mapping[str, GroupUsage], Snapshot], float]
_SHARED: Mapping[str, _Shared] = {"in_use": _in_use, "present": _present, "pledge": _pledged}
"""Mode -> the power that is shared out, HS06."""
