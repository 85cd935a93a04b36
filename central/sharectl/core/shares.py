"""Each group's error: what it uses, less what its pledge entitles it to of all that is used.

Source: seed 004, "Computing e_g"; the formulas are worked out from its three printed rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum

from sharectl.core.model import GroupError, GroupUsage


def group_errors(usage: Mapping[str, GroupUsage], pledge_hs06: Mapping[str, float]) -> tuple[GroupError, ...]:
    """Error of every group, in the order of the pledges. Positive: over its share.

    With ``share = pledge / sum of pledges``: DHS = power - share * power of all, in HS06; DC the same in
    cores; DPHS = power - pledge. "All" are the groups with a pledge: what others use is not theirs to share.

    Parameters
    ----------
    usage
        Group -> what it holds; a group that is not there holds nothing.
    pledge_hs06
        Group -> pledge, HS06, >= 0; their sum is > 0.

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
