"""Power that is due to each group, and the shortfall: power that is due and not delivered.

Due is the max-min share, by pledge, of the power that is present: a group gets at most what its
jobs can use, and its rest is shared out among the groups that can use more (Bertsekas and Gallager,
Data Networks, 6.5.2). The error of `sharectl.shares.errors` measures against power in use instead,
and becomes smaller when cores stand idle.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum


def due_powers_hs06(
    pledge_hs06: Mapping[str, float], demand_hs06: Mapping[str, float], present_hs06: float
) -> dict[str, float]:
    """Group of ``pledge_hs06`` -> power that is due to it, HS06, in their order.

    Parameters
    ----------
    pledge_hs06
        Group -> pledge, >= 0. One of 0 gets only what all others cannot use, which is nobody's due.
    demand_hs06
        Group -> power of its jobs, running and waiting for a node that could run them, >= 0.
    present_hs06
        Power that is there for these groups, >= 0.

    """
    due = dict.fromkeys(pledge_hs06, 0.0)
    rest_hs06 = present_hs06
    pledged = [group for group, pledge in pledge_hs06.items() if pledge > 0]
    # Who can use least of its pledge is served first: what it leaves only raises the others' level.
    pledged.sort(key=lambda group: demand_hs06.get(group, 0.0) / pledge_hs06[group])
    for number, group in enumerate(pledged):
        level = rest_hs06 / fsum(pledge_hs06[other] for other in pledged[number:])
        due[group] = min(demand_hs06.get(group, 0.0), level * pledge_hs06[group])
        rest_hs06 = max(0.0, rest_hs06 - due[group])
    return due


def shortfalls_hs06(
    due_hs06: Mapping[str, float], power_hs06: Mapping[str, float]
) -> dict[str, float]:
    """Group -> power that is due to it and that it does not use, HS06, >= 0."""
    return {group: max(0.0, due - power_hs06.get(group, 0.0)) for group, due in due_hs06.items()}
