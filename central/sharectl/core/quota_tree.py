"""What HTCondor's negotiator makes of group quotas: statics first, shares of what is left, each group within its parent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum
from typing import Optional

_ROOT = ""


@dataclass(frozen=True)
class Quota:
    """A group's quota as it is configured."""

    value: float
    """Weighted slots if static, else a share of what its parent has left, 0 to 1; >= 0."""
    static: bool


def effective_quotas(
    configured: Mapping[str, Quota], pool_weight: Optional[float], *, oversubscribe: bool = False
) -> dict[str, Optional[float]]:
    """Group -> weighted slots for it and the groups below it; None where that needs a pool weight that is not known.

    Parameters
    ----------
    configured
        Dotted group -> its quota, each group's parents among them; names in one case.
    pool_weight
        Sum of the weights of all slots when nothing runs; None if not known.
    oversubscribe
        NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION: static quotas are not cut to what their parent has.
    """
    found: dict[str, Optional[float]] = {_ROOT: pool_weight}
    children: dict[str, list[str]] = {}
    for name in configured:
        children.setdefault(name.rpartition(".")[0], []).append(name)
    waiting = [_ROOT]
    while waiting:
        parent = waiting.pop()
        named = children.get(parent, ())
        below = {name: configured[name] for name in named}
        found.update(_shared_out(below, found[parent], oversubscribe=oversubscribe))
        waiting.extend(named)
    return {name: found[name] for name in configured if name in found}


def _shared_out(
    quotas: Mapping[str, Quota], weight: Optional[float], *, oversubscribe: bool
) -> dict[str, Optional[float]]:
    """The same for groups of one parent, which has ``weight``."""
    static_sum = fsum(quota.value for quota in quotas.values() if quota.static)
    share_sum = fsum(quota.value for quota in quotas.values() if not quota.static)
    if weight is None:
        return {name: quota.value if quota.static else None for name, quota in quotas.items()}
    given = static_sum if oversubscribe else min(static_sum, weight)
    kept_ratio = given / static_sum if static_sum > 0 else 1.0
    left = max(0.0, weight - given) / max(1.0, share_sum)
    return {
        name: quota.value * (kept_ratio if quota.static else left) if weight > 0 else 0.0
        for name, quota in quotas.items()
    }
