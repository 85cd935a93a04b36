"""From usage to the power to move, group by group: setpoints, errors, controllers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import fsum

from sharectl.control.laws import (
    NO_CLAIMANT,
    NO_DEMAND,
    REMEMBERING,
    Control,
    Reading,
    own_state,
    step,
)
from sharectl.control.setpoints import ACCOUNT, Entitled, Entitlement, account_of, entitlements
from sharectl.model import GroupControl, GroupError, Snapshot
from sharectl.shares.errors import group_errors, usage_by_group

STEPPED_AT = "stepped_at_seconds"
"""Unix seconds of the complete cycle that a group's state is from."""


@dataclass(frozen=True)
class SteeringConfig:
    """Settings of setpoints and controllers. The default is the seed's law."""

    control: Control = field(default_factory=Control)
    """Of groups that have none of their own."""
    by_group: Mapping[str, Control] = field(default_factory=dict)
    """Group -> its own law and parameters."""
    entitlement: Entitlement = field(default_factory=Entitlement)
    """What all setpoints are made of."""


SEED = SteeringConfig()


def steer(
    pledge_hs06: Mapping[str, float],
    deadband_hs06: float,
    config: SteeringConfig,
    before: Mapping[str, Mapping[str, float]],
    snapshot: Snapshot,
    now: int,
) -> tuple[GroupControl, ...]:
    """Controls of all groups at Unix time ``now``, in the order of the pledges.

    Parameters
    ----------
    before
        Group -> state after the last complete cycle (`GroupControl.state`); one that is not there
        begins anew.
    """
    usage = usage_by_group(snapshot, pledge_hs06)
    errors = group_errors(usage, pledge_hs06)
    dt_seconds = {group: _seconds_since(before.get(group, {}), now) for group in pledge_hs06}
    accounts = {group: account_of(before.get(group, {})) for group in pledge_hs06}
    entitled = entitlements(
        config.entitlement, pledge_hs06, deadband_hs06, usage, snapshot, accounts, dt_seconds
    )
    most_hs06 = max(
        fsum(used.power_hs06 for used in usage.values()),
        fsum(setpoint.setpoint_hs06 for setpoint in entitled.values()),
    )
    return tuple(
        _controlled(
            error,
            entitled[error.group],
            config.by_group.get(error.group, config.control),
            before.get(error.group, {}),
            (deadband_hs06, most_hs06),
            (dt_seconds[error.group], now),
        )
        for error in errors
    )


def _controlled(
    error: GroupError,
    entitled: Entitled,
    control: Control,
    before: Mapping[str, float],
    bounds: tuple[float, float],
    times: tuple[float, int],
) -> GroupControl:
    power_hs06 = error.usage.power_hs06
    error_hs06 = power_hs06 - entitled.setpoint_hs06
    forgotten = control.law in REMEMBERING and not entitled.contested and error_hs06 != 0
    why = (NO_DEMAND if error_hs06 < 0 else NO_CLAIMANT,) if forgotten else ()
    reading = Reading(0.0 if forgotten else error_hs06, power_hs06, *bounds)
    said = step(control, before, reading, times[0])
    state = (
        {**said.state, STEPPED_AT: float(times[1])}
        if said.state or entitled.account_hs06_seconds is not None
        else {}
    )
    if entitled.account_hs06_seconds is not None:
        state[ACCOUNT] = entitled.account_hs06_seconds
    return GroupControl(
        error=error,
        setpoint_hs06=entitled.setpoint_hs06,
        control_error_hs06=error_hs06,
        output_hs06=said.output_hs06,
        law=control.law,
        state=state,
        acted=(*entitled.acted, *why, *said.acted),
    )


def _seconds_since(state: Mapping[str, float], now: int) -> float:
    """Seconds since the complete cycle of ``state``; 0 if not known, or in the future."""
    own = own_state(state, (STEPPED_AT,))
    return max(0.0, now - own[STEPPED_AT]) if own is not None else 0.0
