"""Weighted max-min shares of an amount (Bertsekas and Gallager, Data Networks, 6.5.2)."""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum


def max_min_shares(
    amount: float, most: Mapping[str, float], weights: Mapping[str, float]
) -> dict[str, float]:
    """Name of ``weights`` -> its share of ``amount``, in their order and its unit.

    Each gets at most its ``most``, 0 if it has none. What it leaves is shared out among those that
    can use more, in proportion to their ``weights``, >= 0. A weight of 0 gets nothing.
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
