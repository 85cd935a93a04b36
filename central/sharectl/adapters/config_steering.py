"""Setpoints and controllers, as the configuration has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Optional, Union

from sharectl.adapters.config_control import ControlConfig
from sharectl.adapters.config_groups import GroupConfig, SubgroupConfig
from sharectl.adapters.config_laws import GroupControlConfig
from sharectl.adapters.config_model import Config
from sharectl.core.control import Control
from sharectl.core.entitlement import Entitlement
from sharectl.core.setpoints import Loans
from sharectl.core.steering import SteeringConfig

_AnyGroup = Union[GroupConfig, SubgroupConfig]


def steering_of(config: Config) -> SteeringConfig:
    """What `sharectl.core.steering.steer` needs of the configuration."""
    control = config.control
    groups = dict(_all_groups("", config.groups, ()))
    return SteeringConfig(
        control=_control(control, ()),
        by_group={
            name: _control(control, [one.control for one in line])
            for name, line in groups.items()
            if any(one.control is not None for one in line)
        },
        entitlement=Entitlement(
            setpoint=control.setpoint,
            loans=Loans(
                max_lent_hs06=_written({name: line[-1].max_lent_hs06 for name, line in groups.items()}),
                max_borrowed_hs06=_written(
                    {name: line[-1].max_borrowed_hs06 for name, line in groups.items()}
                ),
            ),
            carry_over=control.carry_over.params(control.gap_seconds),
        ),
    )


def _all_groups(
    above: str, groups: Mapping[str, _AnyGroup], line: tuple[_AnyGroup, ...]
) -> Iterator[tuple[str, tuple[_AnyGroup, ...]]]:
    """Full name, and the group with those that it is within, the first level first."""
    for name, group in groups.items():
        yield f"{above}{name}", (*line, group)
        yield from _all_groups(f"{above}{name}.", group.groups or {}, (*line, group))


def _control(control: ControlConfig, own: Iterable[Optional[GroupControlConfig]]) -> Control:
    """The law and parameters of a group: what it says itself, else what the group above it does, else ``control``."""
    law, ewma, pid = control.law, control.ewma, control.pid
    for said in own:
        if said is not None:
            law, ewma, pid = said.law or law, said.ewma or ewma, said.pid or pid
    return Control(law, ewma.params, pid.params(control.gap_seconds))


def _written(values: Mapping[str, Optional[float]]) -> dict[str, float]:
    return {name: value for name, value in values.items() if value is not None}
