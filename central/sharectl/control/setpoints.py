"""Setpoints: the power that each group is entitled to in one cycle.

That is its share, with what it lends to others or borrows, and with what it collects or pays back
of the time when nobody was the loser (carry-over, by default nothing).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import expm1, fsum, log
from typing import Optional

from sharectl.control.laws import (
    BORROWED_LIMIT,
    BORROWS,
    GAP_SECONDS,
    LENDS,
    LENT_LIMIT,
    MOST_HS06,
    PAID_BACK,
    PAYS_BACK,
    YEAR_SECONDS,
    beyond,
    own_state,
)
from sharectl.model import (
    DEFAULT_NODE_CORES,
    DEFAULT_NODE_HS06,
    MAX_HS06,
    GroupUsage,
    Snapshot,
)
from sharectl.settings import setting

SETPOINTS = {
    "in_use": "its pledge's share of the power that the groups use (the original method)",
    "present": "its pledge's share of the power of all nodes",
    "pledge": "its pledge itself",
}
"""Mode -> a group's setpoint before anything is lent."""

ROUNDING_RATIO = 1e-12
"""Part of the power shared out below which nothing is left to lend."""


@dataclass(frozen=True)
class Loans:
    """Limits of lending and borrowing, after Kueue's lendingLimit and borrowingLimit."""

    max_lent_hs06: Mapping[str, float] = field(default_factory=dict)
    """Group -> most of its unused share that others may have, HS06; 0 of other groups."""
    max_borrowed_hs06: Mapping[str, float] = field(default_factory=dict)
    """Group -> most above its own share, HS06; other groups may have any amount that is lent."""


@dataclass(frozen=True)
class Lent:
    """Power that one group lends or borrows, HS06: at most one of the two is above 0."""

    lent_hs06: float = 0.0
    borrowed_hs06: float = 0.0
    limited: bool = False
    """Whether its limit kept it from more that others would take, or give."""


def nominal_hs06(
    mode: str, pledge_hs06: Mapping[str, float], usage: Mapping[str, GroupUsage], snapshot: Snapshot
) -> dict[str, float]:
    """Group -> setpoint before anything is lent, HS06. Pledges sum to more than 0."""
    ratio = shared_ratio(mode, pledge_hs06, usage, present_hs06(snapshot))
    return {group: pledge * ratio for group, pledge in pledge_hs06.items()}


def shared_ratio(
    mode: str, pledge_hs06: Mapping[str, float], usage: Mapping[str, GroupUsage], present: float
) -> float:
    """Power that is shared out for each HS06 pledged; ``present`` is that of all nodes, HS06."""
    pledged = fsum(pledge_hs06.values())
    in_use = fsum(usage[group].power_hs06 for group in pledge_hs06)
    return {"in_use": in_use, "present": present, "pledge": pledged}[mode] / pledged


def demand_hs06(usage: GroupUsage, hs06_per_core: float) -> float:
    """Power that a group would use if its demand ran on cores of ``hs06_per_core``, HS06."""
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
    nominal: Mapping[str, float],
    demand: Mapping[str, float],
    pledge_hs06: Mapping[str, float],
    limits: Loans,
) -> dict[str, Lent]:
    """Loans of each group. All lend together as much as all borrow.

    A group whose demand is below its nominal setpoint offers the difference, up to its limit.
    Groups whose demand is above theirs take of it in proportion to their pledges, up to the demand
    and to their limits. If not all is taken, all lend the same part of what they offer.

    Parameters
    ----------
    nominal
        Group -> setpoint before, HS06.
    demand
        Group -> power that it could use, HS06.
    """
    unused = {group: max(0.0, nominal[group] - demand[group]) for group in nominal}
    offered = {
        group: min(power, limits.max_lent_hs06.get(group, 0.0)) for group, power in unused.items()
    }
    lacked = {group: max(0.0, demand[group] - nominal[group]) for group in nominal}
    wanted = {
        group: min(power, limits.max_borrowed_hs06.get(group, power))
        for group, power in lacked.items()
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


def in_proportion(
    amount: float, most: Mapping[str, float], weights: Mapping[str, float]
) -> dict[str, float]:
    """``amount`` shared out in proportion to ``weights``, to each at most its ``most``."""
    shares: dict[str, float] = {}
    open_to = {name for name, limit in most.items() if limit > 0 and weights[name] > 0}
    left = amount
    while open_to and left > amount * ROUNDING_RATIO:
        per_weight = left / fsum(weights[name] for name in open_to)
        full = {name for name in open_to if most[name] <= weights[name] * per_weight}
        if not full:
            shares.update((name, weights[name] * per_weight) for name in open_to)
            break
        shares.update((name, most[name]) for name in full)
        left = max(0.0, amount - fsum(shares.values()))
        open_to -= full
    return shares


ACCOUNT = "carried_hs06_seconds"
SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True)
class CarryOver:
    """Power to collect later or to pay back."""

    pledge_hours: Optional[float] = setting(None, least=0, most=8784)
    """Most carried over either way, in hours of the pledge; null: none."""
    hs06_hours: Optional[float] = setting(None, least=0, most=MAX_HS06)
    """The same in HS06-hours, for every group; instead of `pledge_hours`."""
    half_life_seconds: float = setting(86400.0, above=0, most=YEAR_SECONDS)
    """Time after which half of it is forgotten."""
    repay_seconds: float = setting(21600.0, least=60, most=YEAR_SECONDS)
    """Time that it is divided by to move the setpoint."""
    gap_seconds: float = GAP_SECONDS

    @property
    def carries(self) -> bool:
        """Whether anything is carried over."""
        return bool(self.pledge_hours or self.hs06_hours)

    def most_hs06_seconds(self, pledge_hs06: float) -> float:
        """Largest size of a group's account."""
        hours = self.hs06_hours
        if hours is None:
            hours = (self.pledge_hours or 0.0) * pledge_hs06
        return hours * SECONDS_PER_HOUR


def account_of(state: Mapping[str, float]) -> float:
    """HS06-seconds used beyond the setpoint (above 0) or left to others (below 0)."""
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

    It halves in every half-life. Of errors that were nobody's loss it grows; of those that are
    ``contested`` it only becomes smaller: a group that uses more than its setpoint collects what it
    is owed, and no more than that.

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
    """Setpoints moved by ``claims``, HS06; their sum stays, or falls at ``highest``.

    Who owes pays first, then all in proportion to their setpoints, and nobody more than half of its
    setpoint in all: so no more than half of everything is collected either.

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
    paid = {
        group: min(-claims[group], 0.5 * setpoints[group]) for group in claims if claims[group] < 0
    }
    lacking = fsum(collected.values()) - fsum(paid.values())
    if lacking > 0:
        left = {group: 0.5 * power - paid.get(group, 0.0) for group, power in setpoints.items()}
        shares = in_proportion(lacking, left, setpoints)
    else:
        shares = {group: lacking * power / total for group, power in setpoints.items() if power > 0}
    after = {
        group: max(
            0.0, power + collected.get(group, 0.0) - paid.get(group, 0.0) - shares.get(group, 0.0)
        )
        for group, power in setpoints.items()
    }
    return {group: min(power, highest.get(group, power)) for group, power in after.items()}


@dataclass(frozen=True)
class Entitlement:
    """Settings of setpoints."""

    setpoint: str = setting("in_use", choices=tuple(SETPOINTS))
    """Entitlement: the pledge's share of power in use, of power present, or the pledge itself."""
    loans: Loans = field(default_factory=Loans)
    carry_over: CarryOver = setting(CarryOver())
    """Power to collect later or to pay back."""


@dataclass(frozen=True)
class Entitled:
    """Setpoint of one group in one cycle, and how it came about."""

    setpoint_hs06: float
    contested: bool
    """Whether its error is a loss to a group that waits, itself included."""
    account_hs06_seconds: Optional[float] = None
    """Its account; None if nothing is to be carried over."""
    acted: tuple[str, ...] = ()
    """Codes of `sharectl.control.laws.ACTED`."""


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

    Setpoints sum to no more than the power shared out.

    Parameters
    ----------
    usage
        Usage of each group in ``snapshot``.
    accounts
        Group -> its account after the last complete cycle, HS06-seconds.
    dt_seconds
        Group -> time since then.
    """
    nominal = nominal_hs06(config.setpoint, pledge_hs06, usage, snapshot)
    core_hs06 = mean_hs06_per_core(snapshot)
    demand = {group: demand_hs06(used, core_hs06) for group, used in usage.items()}
    lent = loans(nominal, demand, pledge_hs06, config.loans)
    setpoints = {g: nominal[g] - lent[g].lent_hs06 + lent[g].borrowed_hs06 for g in pledge_hs06}
    errors = {group: usage[group].power_hs06 - setpoints[group] for group in pledge_hs06}
    contested = contested_errors(errors, usage, deadband_hs06)
    if not config.carry_over.carries:
        return {g: Entitled(setpoints[g], contested[g], None, _codes(lent[g])) for g in pledge_hs06}
    carried = {
        g: account_after(
            config.carry_over,
            accounts[g],
            errors[g],
            dt_seconds[g],
            pledge_hs06[g],
            contested=contested[g],
        )
        for g in pledge_hs06
    }
    highest = {
        group: nominal[group] + most for group, most in config.loans.max_borrowed_hs06.items()
    }
    claims = _claims(config.carry_over, carried, usage)
    repaid = repaid_setpoints(setpoints, claims, highest)
    return {
        g: Entitled(
            repaid[g],
            contested[g],
            carried[g],
            _codes(lent[g], carried[g], repaid[g] - setpoints[g]),
        )
        for g in pledge_hs06
    }


def contested_errors(
    errors: Mapping[str, float], usage: Mapping[str, GroupUsage], deadband_hs06: float
) -> dict[str, bool]:
    """Group -> whether its error is somebody's loss.

    A group under its setpoint has a loss if it has jobs waiting. A group over it causes one if
    another is under its own by more than the deadband and has jobs waiting.
    """
    waits = {group: bool(usage[group].demand_by_cores) for group in errors}
    losing = {
        group
        for group, error_hs06 in errors.items()
        if waits[group] and beyond(error_hs06, deadband_hs06) < 0
    }
    return {
        group: waits[group] if error_hs06 < 0 else bool(losing - {group})
        for group, error_hs06 in errors.items()
    }


def _claims(
    config: CarryOver, accounts: Mapping[str, float], usage: Mapping[str, GroupUsage]
) -> dict[str, float]:
    """HS06 that each group may have more, or has to do with less, to settle its account in time.

    A group collects only while it has jobs waiting, and pays back only while another does.
    """
    waits = {group for group in accounts if usage[group].demand_by_cores}
    return {
        group: -account / config.repay_seconds
        for group, account in accounts.items()
        if (account < 0 and group in waits) or (account > 0 and waits - {group})
    }


def _codes(lent: Lent, carried: float = 0.0, moved_hs06: float = 0.0) -> tuple[str, ...]:
    codes = {
        LENDS: lent.lent_hs06 > 0,
        LENT_LIMIT: lent.limited and lent.lent_hs06 > 0,
        BORROWS: lent.borrowed_hs06 > 0,
        BORROWED_LIMIT: lent.limited and lent.borrowed_hs06 > 0,
        PAID_BACK: carried < 0 < moved_hs06,
        PAYS_BACK: moved_hs06 < 0 < carried,
    }
    return tuple(code for code, did in codes.items() if did)
