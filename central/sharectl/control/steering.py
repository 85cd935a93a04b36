"""From usage to the power to move, group by group: setpoints, errors, controllers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import fsum
from typing import Optional

from sharectl.control.laws import Control, Move, Reading, own_state, step
from sharectl.control.setpoints import ACCOUNT, Entitlement, entitlements
from sharectl.model import GroupControl, ShadowMove, Snapshot
from sharectl.shares.errors import group_errors, usage_by_group

STEPPED_AT = "stepped_at_seconds"
"""Unix seconds of the complete cycle that a group's state is from."""
SHADOW = "shadow."
"""Begin of the names of the shadow law's state."""


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
NOTHING_FORESEEN: Mapping[str, float] = {}


def steer(
    pledge_hs06: Mapping[str, float],
    deadband_hs06: float,
    config: SteeringConfig,
    before: Mapping[str, Mapping[str, float]],
    snapshot: Snapshot,
    now: int,
    foreseen_hs06: Mapping[str, float] = NOTHING_FORESEEN,
) -> tuple[GroupControl, ...]:
    """Controls of all groups at Unix time ``now``, in the order of the pledges.

    ``before`` has each group's state after the last complete cycle; without one its controller is
    fresh. Laws act on errors with the change of power that is foreseen for the group.
    """
    usage = usage_by_group(snapshot, pledge_hs06)
    states = {group: before.get(group, {}) for group in pledge_hs06}
    accounts = {group: _number(state, ACCOUNT, 0.0) for group, state in states.items()}
    dt_seconds = {
        group: max(0.0, now - _number(state, STEPPED_AT, now)) for group, state in states.items()
    }
    entitled = entitlements(
        config.entitlement, pledge_hs06, deadband_hs06, usage, snapshot, accounts, dt_seconds
    )
    most_hs06 = max(
        fsum(used.power_hs06 for used in usage.values()),
        fsum(setpoint.setpoint_hs06 for setpoint in entitled.values()),
    )
    pool_cores = sum(node.cores for node in snapshot.nodes)
    held_cores = sum([jobs * cores for _, _, cores, _, _, jobs, _ in snapshot.running])
    idle_cores = max(0, pool_cores - held_cores)
    controls = []
    for error in group_errors(usage, pledge_hs06):
        group, power_hs06 = error.group, error.usage.power_hs06
        setpoint_hs06, contested, account, acted = entitled[group]
        control = config.by_group.get(group, config.control)
        error_hs06 = power_hs06 - setpoint_hs06
        due = (deadband_hs06, most_hs06, setpoint_hs06, error.usage.demand_by_cores)
        change_hs06 = foreseen_hs06.get(group, 0.0)
        acted = (*acted, *(("foreseen",) if change_hs06 else ()))
        reading = Reading(error_hs06 + change_hs06, power_hs06, *due, pool_cores, idle_cores)
        move = _moved(control, states[group], reading, dt_seconds[group], contested=contested)
        beside, shadow = _shadowed(
            control, states[group], reading, dt_seconds[group], contested=contested
        )
        state = {**move.state, **beside, **({} if account is None else {ACCOUNT: account})}
        controls.append(
            GroupControl(
                error=error,
                setpoint_hs06=setpoint_hs06,
                control_error_hs06=error_hs06,
                output_hs06=move.output_hs06,
                law=control.law,
                state={**state, STEPPED_AT: float(now)} if state else {},
                acted=(*acted, *move.acted),
                problem=move.problem,
                shadow=shadow,
            )
        )
    return tuple(controls)


def _moved(
    control: Control,
    state: Mapping[str, float],
    reading: Reading,
    dt_seconds: float,
    *,
    contested: bool,
) -> Move:
    """Answer of a law, which remembers no error that was nobody's loss."""
    if contested or reading.error_hs06 == 0 or not control.remembers:
        return step(control, state, reading, dt_seconds)
    code = "no-demand" if reading.error_hs06 < 0 else "no-claimant"
    move = step(control, state, replace(reading, error_hs06=0.0), dt_seconds)
    return move._replace(acted=(code, *move.acted))


def _shadowed(
    control: Control,
    state: Mapping[str, float],
    reading: Reading,
    dt_seconds: float,
    *,
    contested: bool,
) -> tuple[dict[str, float], Optional[ShadowMove]]:
    """State and answer of the shadow law; its state has names of its kind alone."""
    shadow = control.shadow
    if shadow is None:
        return {}, None
    own = {name[len(SHADOW) :]: number for name, number in state.items() if name.startswith(SHADOW)}
    law = replace(control, law=shadow.law, loaded=shadow.loaded)
    move = _moved(law, own, reading, dt_seconds, contested=contested)
    after = {f"{SHADOW}{name}": number for name, number in move.state.items()}
    return after, ShadowMove(shadow.law, move.output_hs06, move.acted, move.problem)


def _number(state: Mapping[str, float], name: str, default: float) -> float:
    own = own_state(state, (name,))
    return own[name] if own else default
