"""What each group is entitled to in one cycle: its share, what it lends or borrows, what it collects or pays back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Optional

from sharectl.core.carry_over import CarryOver, account_after, repaid_setpoints
from sharectl.core.control import BORROWED_LIMIT, BORROWS, LENDS, LENT_LIMIT, PAID_BACK, PAYS_BACK
from sharectl.core.control_law import beyond
from sharectl.core.model import GroupUsage, Snapshot
from sharectl.core.setpoints import (
    NO_LOANS,
    Lent,
    Loans,
    demand_hs06,
    loans,
    mean_hs06_per_core,
    nominal_hs06,
)


@dataclass(frozen=True)
class Entitlement:
    """What an operator decides about setpoints."""

    setpoint: str = "in_use"
    """One of `sharectl.core.setpoints.SETPOINTS`."""
    loans: Loans = NO_LOANS
    carry_over: Optional[CarryOver] = None
    """None: nothing is carried over."""


@dataclass(frozen=True)
class Entitled:
    """One group's setpoint in one cycle, and how it came about."""

    setpoint_hs06: float
    contested: bool
    """Whether its error is somebody's loss: its own, since it waits, or that of a group that waits."""
    account_hs06_seconds: Optional[float] = None
    """What it carries over; None if nothing is to be carried."""
    acted: tuple[str, ...] = ()
    """Codes of `sharectl.core.control.ACTED`."""


def entitlements(
    config: Entitlement,
    pledge_hs06: Mapping[str, float],
    deadband_hs06: float,
    usage: Mapping[str, GroupUsage],
    snapshot: Snapshot,
    accounts: Mapping[str, float],
    dt_seconds: Mapping[str, float],
) -> dict[str, Entitled]:
    """What each group is entitled to, in the order of the pledges. Setpoints sum to no more than the power shared out.

    Parameters
    ----------
    usage
        Group -> what it holds and waits for in ``snapshot``.
    accounts
        Group -> what it carried over until the last complete cycle, HS06-seconds.
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
    plain = {g: Entitled(setpoints[g], contested[g], None, _codes_of(lent[g])) for g in pledge_hs06}
    if config.carry_over is None:
        return plain
    carried = {
        g: account_after(
            config.carry_over, accounts[g], errors[g], dt_seconds[g], pledge_hs06[g], contested=contested[g]
        )
        for g in pledge_hs06
    }
    highest = {group: nominal[group] + most for group, most in config.loans.max_borrowed_hs06.items()}
    claims = _claims(config.carry_over, carried, usage)
    return _with_account(plain, repaid_setpoints(setpoints, claims, highest), carried)


def contested_errors(
    errors: Mapping[str, float], usage: Mapping[str, GroupUsage], deadband_hs06: float
) -> dict[str, bool]:
    """Group -> whether its error is somebody's loss.

    A group under its setpoint has a loss if it has jobs waiting. A group over it causes one if another is under its own by
    more than the deadband and has jobs waiting.
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


def _with_account(
    plain: Mapping[str, Entitled], repaid: Mapping[str, float], accounts: Mapping[str, float]
) -> dict[str, Entitled]:
    after = {}
    for group, entitled in plain.items():
        moved_hs06 = repaid[group] - entitled.setpoint_hs06
        own = PAID_BACK if accounts[group] < 0 < moved_hs06 else None
        own = PAYS_BACK if moved_hs06 < 0 < accounts[group] else own
        codes = (*entitled.acted, own) if own else entitled.acted
        after[group] = Entitled(repaid[group], entitled.contested, accounts[group], codes)
    return after


def _codes_of(lent: Lent) -> tuple[str, ...]:
    codes = {
        LENDS: lent.lent_hs06 > 0,
        LENT_LIMIT: lent.limited and lent.lent_hs06 > 0,
        BORROWS: lent.borrowed_hs06 > 0,
        BORROWED_LIMIT: lent.limited and lent.borrowed_hs06 > 0,
    }
    return tuple(code for code, did in codes.items() if did)
