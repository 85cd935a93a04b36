"""What a group may collect later, or has to pay back, of the time when nobody was the loser: by default nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import expm1, fsum, log
from typing import Optional

from sharectl.core.control_law import MOST_HS06, own_state
from sharectl.core.setpoints import in_proportion

ACCOUNT = "carried_hs06_seconds"
SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True)
class CarryOver:
    """How much is carried over, and for how long."""

    pledge_hours: Optional[float] = None
    """Most that is carried, in hours of the group's pledge; None if ``hs06_hours`` says it."""
    hs06_hours: Optional[float] = None
    """Most that is carried, HS06-hours."""
    half_life_seconds: float = 86400.0
    """Time after which half of it is forgotten."""
    repay_seconds: float = 21600.0
    """Time in which it is collected, if the pool has it to give."""
    gap_seconds: float = 3060.0
    """Longest interval that is counted; of a longer one nobody knows what the error was."""

    def most_hs06_seconds(self, pledge_hs06: float) -> float:
        """Largest size of a group's account."""
        hours = self.hs06_hours if self.hs06_hours is not None else (self.pledge_hours or 0.0) * pledge_hs06
        return hours * SECONDS_PER_HOUR


def account_of(state: Mapping[str, float]) -> float:
    """HS06-seconds that a group has used beyond its setpoint (above 0) or left to others (below 0)."""
    own = own_state(state, (ACCOUNT,))
    return own[ACCOUNT] if own is not None else 0.0


def account_after(
    config: CarryOver,
    before: float,
    error_hs06: float,
    dt_seconds: float,
    pledge_hs06: float,
    *,
    contested: bool,
) -> float:
    """The account after ``dt_seconds`` of ``error_hs06``, HS06-seconds.

    It halves in every half-life. Of errors that were nobody's loss it grows; of those that are ``contested`` it only
    becomes smaller: a group that uses more than its setpoint collects what it is owed, and no more than that.

    Parameters
    ----------
    error_hs06
        Power used less the setpoint, as it is without what is carried over.
    """
    left = before * 2.0 ** (-dt_seconds / config.half_life_seconds)
    counted_seconds = min(dt_seconds, config.gap_seconds)
    rate = log(2) / config.half_life_seconds
    after = left - error_hs06 * expm1(-counted_seconds * rate) / rate
    if contested:
        after = min(max(after, min(left, 0.0)), max(left, 0.0))
    most = min(config.most_hs06_seconds(pledge_hs06), MOST_HS06)
    return float(min(max(after, -most), most))


def repaid_setpoints(
    setpoints: Mapping[str, float], claims: Mapping[str, float], highest: Mapping[str, float]
) -> dict[str, float]:
    """Setpoints moved by ``claims``, HS06; their sum stays, or falls where a group may have no more.

    Who owes pays first, then all in proportion to their setpoints, and nobody more than half of its setpoint in all: so no
    more than half of everything is collected either.

    Parameters
    ----------
    claims
        Group -> HS06 to add to its setpoint (above 0: it is owed), or to take from it.
    highest
        Group -> most that its setpoint may be, HS06; a group that is not there has no such limit.
    """
    total = fsum(setpoints.values())
    owed = fsum(claim for claim in claims.values() if claim > 0)
    part = min(1.0, 0.5 * total / owed) if owed > 0 else 0.0
    collected = {group: claim * part for group, claim in claims.items() if claim > 0}
    paid = {group: min(-claims[group], 0.5 * setpoints[group]) for group in claims if claims[group] < 0}
    lacking = fsum(collected.values()) - fsum(paid.values())
    if lacking > 0:
        left = {group: 0.5 * power - paid.get(group, 0.0) for group, power in setpoints.items()}
        shares = in_proportion(lacking, left, setpoints)
    else:
        shares = {group: lacking * power / total for group, power in setpoints.items() if power > 0}
    after = {
        group: max(0.0, power + collected.get(group, 0.0) - paid.get(group, 0.0) - shares.get(group, 0.0))
        for group, power in setpoints.items()
    }
    return {group: min(power, highest.get(group, power)) for group, power in after.items()}
