"""From usage to the power to move, group by group: setpoints, errors, controllers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import fsum
from typing import Optional

from sharectl.control.laws import BOUNDED, REMEMBERING, Control, Move, Reading, own_state, step
from sharectl.control.setpoints import ACCOUNT, MOVED, Entitlement, entitlements
from sharectl.model import GroupControl, ShadowMove, Snapshot
from sharectl.shares.errors import group_errors, usage_by_group
from sharectl.shares.groups import BY_SUBGROUPS

ACTED = {
    **MOVED,
    "foreseen": "power that groups will soon give up, and others take, counts already",
    "no-demand": "under its setpoint without waiting jobs: nothing is remembered to collect later",
    "no-claimant": "over its setpoint while no group under its own waits: nothing is remembered to "
    "pay back",
    **BOUNDED,
    BY_SUBGROUPS: "steered through the groups within it; its own jobs are only counted",
    "deadband": "inside control.deadband_hs06: no target begins",
}
"""Code of what changed or bounded a setpoint or an output -> what it means."""

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
    """Settings of all setpoints."""


SEED = SteeringConfig()


def steer(
    pledge_hs06: Mapping[str, float],
    deadband_hs06: float,
    config: SteeringConfig,
    before: Mapping[str, Mapping[str, float]],
    snapshot: Snapshot,
    now: int,
    foreseen_hs06: Optional[Mapping[str, float]] = None,
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
    idle_cores = max(0, pool_cores - sum([job.jobs * job.cores for job in snapshot.running]))
    controls = []
    for error in group_errors(usage, pledge_hs06):
        group, power_hs06 = error.group, error.usage.power_hs06
        due = entitled[group]
        law = config.by_group.get(group, config.control)
        change_hs06 = (foreseen_hs06 or {}).get(group, 0.0)
        reading = Reading(
            error_hs06=power_hs06 - due.setpoint_hs06 + change_hs06,
            power_hs06=power_hs06,
            deadband_hs06=deadband_hs06,
            most_hs06=most_hs06,
            setpoint_hs06=due.setpoint_hs06,
            demand_by_cores=error.usage.demand_by_cores,
            pool_cores=pool_cores,
            idle_cores=idle_cores,
        )
        move = _moved(law, states[group], reading, dt_seconds[group], contested=due.contested)
        state, shadow = dict(move.state), None
        if law.shadow is not None and not isinstance(law.shadow.loaded, str):
            beside = replace(law, law=law.shadow.law, loaded=law.shadow.loaded)
            kept = {
                name[len(SHADOW) :]: number
                for name, number in states[group].items()
                if name.startswith(SHADOW)
            }
            tried = _moved(beside, kept, reading, dt_seconds[group], contested=due.contested)
            state.update((f"{SHADOW}{name}", number) for name, number in tried.state.items())
            shadow = ShadowMove(beside.law, tried.output_hs06, tried.acted)
        if due.account_hs06_seconds is not None:
            state[ACCOUNT] = due.account_hs06_seconds
        controls.append(
            GroupControl(
                error=error,
                setpoint_hs06=due.setpoint_hs06,
                control_error_hs06=power_hs06 - due.setpoint_hs06,
                output_hs06=move.output_hs06,
                law=law.law,
                state={**state, STEPPED_AT: float(now)} if state else {},
                acted=(*due.acted, *(("foreseen",) if change_hs06 else ()), *move.acted),
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
    if contested or reading.error_hs06 == 0 or control.law not in REMEMBERING:
        return step(control, state, reading, dt_seconds)
    code = "no-demand" if reading.error_hs06 < 0 else "no-claimant"
    move = step(control, state, replace(reading, error_hs06=0.0), dt_seconds)
    return move._replace(acted=(code, *move.acted))


def _number(state: Mapping[str, float], name: str, default: float) -> float:
    return state[name] if own_state(state, (name,)) else default
