"""From usage to the power to move, group by group: setpoints, errors, controllers."""

from __future__ import annotations

from collections.abc import Mapping

from sharectl.core.model import GroupControl, Snapshot
from sharectl.core.shares import group_errors
from sharectl.core.usage import usage_by_group


def steer(
    pledge_hs06: Mapping[str, float], deadband_hs06: float, snapshot: Snapshot
) -> tuple[GroupControl, ...]:
    """What each group's controller says, in the order of the pledges."""
    errors = group_errors(usage_by_group(snapshot, pledge_hs06), pledge_hs06)
    return tuple(
        GroupControl(
            error=error,
            setpoint_hs06=error.usage.power_hs06 - error.error_hs06,
            control_error_hs06=error.error_hs06,
            output_hs06=error.error_hs06 if abs(error.error_hs06) > deadband_hs06 else 0.0,
            acted=() if abs(error.error_hs06) > deadband_hs06 else ("deadband",),
        )
        for error in errors
    )
