"""Setpoints: the power that each group is entitled to in one cycle.

That is its share, with what it lends to others or borrows, and with what it collects or pays back
of the time when nobody was the loser (carry-over, by default nothing).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import exp, expm1, fsum, inf, log
from typing import NamedTuple, Optional

from sharectl.control.laws import GAP_SECONDS, MOST_HS06, beyond, limited
from sharectl.model import GroupUsage, Snapshot
from sharectl.settings import setting
from sharectl.shares.errors import demand_hs06, max_min_shares, pool_hs06
from sharectl.times import HOUR_SECONDS

SETPOINTS = {
    "in_use": "its pledge's share of the power that the groups use (the original method)",
    "present": "its pledge's share of the power of all nodes",
    "pledge": "its pledge itself",
}
"""Mode -> a group's setpoint before anything is lent."""

MOVED = {
    "lends": "the setpoint is lower by the power that the group lends",
    "borrows": "the setpoint is higher by what other groups lend",
    "paid-back": "the setpoint is higher by what control.carry_over lets the group collect",
    "pays-back": "the setpoint is lower by what control.carry_over has the group pay back",
}
"""Code of a change of a setpoint -> what it means."""

ACCOUNT = "carried_hs06_seconds"


@dataclass(frozen=True)
class Loans:
    """Limits of lending and borrowing, after Kueue's lendingLimit and borrowingLimit."""

    max_lent_hs06: Mapping[str, float] = field(default_factory=dict)
    """Group -> most of its unused share that others may have, HS06; 0 of other groups."""
    max_borrowed_hs06: Mapping[str, float] = field(default_factory=dict)
    """Group -> most above its own share, HS06; other groups may have any amount that is lent."""


@dataclass(frozen=True)
class CarryOver:
    """Power to collect later or to pay back."""

    pledge_hours: Optional[float] = setting(None, least=0, most=8784)
    """Most carried over either way, in hours of the pledge; null: none."""
    half_life_seconds: float = 86400.0
    """Time after which half of it is forgotten: a day, so that it follows the days of users."""
    repay_seconds: float = 21600.0
    """Time that it is divided by to move the setpoint: some lengths of a job."""


@dataclass(frozen=True)
class Entitlement:
    """Settings of setpoints."""

    setpoint: str = setting("in_use", choices=tuple(SETPOINTS))
    """Entitlement: the pledge's share of power in use, of power present, or the pledge itself."""
    loans: Loans = field(default_factory=Loans)
    carry_over: CarryOver = setting(CarryOver())
    """Power to collect later or to pay back."""


class Entitled(NamedTuple):
    """Setpoint of one group in one cycle, and how it came about."""

    setpoint_hs06: float
    contested: bool
    """True if its error is a loss to a group that waits, itself included."""
    account_hs06_seconds: Optional[float] = None
    """Its account; None if nothing is to be carried over."""
    acted: tuple[str, ...] = ()
    """Codes of `MOVED`, in order."""


def entitlements(
    config: Entitlement,
    pledge_hs06: Mapping[str, float],
    deadband_hs06: float,
    usage: Mapping[str, GroupUsage],
    snapshot: Snapshot,
    accounts: Mapping[str, float],
    dt_seconds: Mapping[str, float],
) -> dict[str, Entitled]:
    """Setpoint of each group, in the order of the pledges.

    Setpoints sum to no more than the power shared out. ``accounts`` are HS06-seconds used beyond
    the setpoint (above 0) or left to others (below 0) up to the last complete cycle.
    """
    ratio = shared_ratio(config.setpoint, pledge_hs06, usage, pool_hs06(snapshot.nodes))
    nominal = {group: pledge * ratio for group, pledge in pledge_hs06.items()}
    moved = loans(nominal, demand_hs06(usage, snapshot.nodes), pledge_hs06, config.loans)
    setpoints = {group: nominal[group] + moved[group] for group in pledge_hs06}
    errors = {group: usage[group].power_hs06 - setpoints[group] for group in pledge_hs06}
    waits = {group for group in pledge_hs06 if usage[group].demand_by_cores}
    contested = contested_errors(errors, waits, deadband_hs06)
    carried: dict[str, float] = {}
    repaid = setpoints
    if config.carry_over.pledge_hours:
        carried = {
            group: account_after(
                config.carry_over,
                accounts[group],
                errors[group],
                dt_seconds[group],
                pledge,
                contested=contested[group],
            )
            for group, pledge in pledge_hs06.items()
        }
        # A group collects only while it has jobs waiting, and pays back only while another does.
        claims = {
            group: -account / config.carry_over.repay_seconds
            for group, account in carried.items()
            if (account < 0 and group in waits) or (account > 0 and waits - {group})
        }
        most = config.loans.max_borrowed_hs06
        repaid = repaid_setpoints(
            setpoints, claims, {name: nominal[name] + most[name] for name in most}
        )
    entitled = {}
    for group in pledge_hs06:
        account, change_hs06 = carried.get(group, 0.0), repaid[group] - setpoints[group]
        codes = {
            "lends": moved[group] < 0,
            "borrows": moved[group] > 0,
            "paid-back": account < 0 < change_hs06,
            "pays-back": change_hs06 < 0 < account,
        }
        acted = tuple(code for code, did in codes.items() if did)
        entitled[group] = Entitled(repaid[group], contested[group], carried.get(group), acted)
    return entitled


def shared_ratio(
    mode: str, pledge_hs06: Mapping[str, float], usage: Mapping[str, GroupUsage], present: float
) -> float:
    """Power shared out for each HS06 pledged, more than 0; ``present``: that of all nodes, HS06."""
    pledged = fsum(pledge_hs06.values())
    in_use = fsum(usage[group].power_hs06 for group in pledge_hs06)
    return {"in_use": in_use, "present": present, "pledge": pledged}[mode] / pledged


def loans(
    nominal: Mapping[str, float],
    demand: Mapping[str, float],
    pledge_hs06: Mapping[str, float],
    limits: Loans,
) -> dict[str, float]:
    """HS06 that each group borrows (above 0) or lends.

    A group whose demand is below its nominal setpoint offers the difference, up to its limit.
    Groups whose demand is above theirs take of it in proportion to their pledges, up to the demand
    and to their limits. If not all is taken, all lend the same part of what they offer. All lend
    together as much as all borrow.
    """
    offered, wanted = {}, {}
    for group, setpoint_hs06 in nominal.items():
        lacks_hs06 = demand[group] - setpoint_hs06
        offered[group] = min(max(0.0, -lacks_hs06), limits.max_lent_hs06.get(group, 0.0))
        wanted[group] = min(max(0.0, lacks_hs06), limits.max_borrowed_hs06.get(group, inf))
    offered_hs06 = fsum(offered.values())
    borrowed = max_min_shares(offered_hs06, wanted, pledge_hs06)
    ratio = min(1.0, fsum(borrowed.values()) / offered_hs06) if offered_hs06 > 0 else 0.0
    return {group: borrowed.get(group, 0.0) - offered[group] * ratio for group in nominal}


def contested_errors(
    errors: Mapping[str, float], waits: Collection[str], deadband_hs06: float
) -> dict[str, bool]:
    """Group -> True if its error is somebody's loss.

    A group under its setpoint has a loss if it has jobs waiting. A group over it causes one if
    another is under its own by more than the deadband and has jobs waiting.
    """
    losing = {group for group in waits if beyond(errors[group], deadband_hs06) < 0}
    return {
        group: group in waits if error_hs06 < 0 else bool(losing - {group})
        for group, error_hs06 in errors.items()
    }


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

    It halves in every half-life. Of errors that were nobody's loss it grows; of those that are
    ``contested`` it only becomes smaller: a group that uses more than its setpoint collects what it
    is owed, and no more than that. The error is that of the setpoint without carry-over.
    """
    rate = log(2) / config.half_life_seconds
    kept = before * exp(-dt_seconds * rate)
    after = kept - error_hs06 * expm1(-min(dt_seconds, GAP_SECONDS) * rate) / rate
    if contested:
        after = min(max(after, min(kept, 0.0)), max(kept, 0.0))
    most_hs06_seconds = (config.pledge_hours or 0.0) * pledge_hs06 * HOUR_SECONDS
    return limited(after, min(most_hs06_seconds, MOST_HS06))


def repaid_setpoints(
    setpoints: Mapping[str, float], claims: Mapping[str, float], highest: Mapping[str, float]
) -> dict[str, float]:
    """Setpoints moved by ``claims``, HS06; their sum stays, or falls at ``highest``.

    A group that owes pays first, then all in proportion to their setpoints, and none more than half
    of its setpoint in all: so no more than half of everything is collected either. A claim above 0
    is owed to the group.
    """
    total = fsum(setpoints.values())
    owed = fsum(claim for claim in claims.values() if claim > 0)
    part = min(1.0, 0.5 * total / owed) if owed > 0 else 0.0
    moved = {
        group: max(claim * part if claim > 0 else claim, -0.5 * setpoints[group])
        for group, claim in claims.items()
    }
    lacking = fsum(moved.values())
    shares = {group: lacking * hs06 / total if hs06 else 0.0 for group, hs06 in setpoints.items()}
    if lacking > 0:
        spare = {
            name: 0.5 * hs06 + min(0.0, moved.get(name, 0.0)) for name, hs06 in setpoints.items()
        }
        shares = max_min_shares(lacking, spare, setpoints)
    after = {
        group: max(0.0, hs06 + moved.get(group, 0.0) - shares[group])
        for group, hs06 in setpoints.items()
    }
    return {group: min(power, highest.get(group, power)) for group, power in after.items()}
