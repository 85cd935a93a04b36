"""Settings of a sound configuration that do nothing, and what they want to do something."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Optional, Union

from pydantic import BaseModel

from sharectl.adapters.config_groups import GroupConfig, SubgroupConfig
from sharectl.adapters.config_laws import CarryOverConfig, EwmaConfig, PidConfig
from sharectl.adapters.config_model import Config

_AnyGroup = Union[GroupConfig, SubgroupConfig]
_PARAMETERS: Mapping[str, type[BaseModel]] = {"ewma": EwmaConfig, "pid": PidConfig}
"""Law -> its parameters."""


def idle(config: Config) -> list[str]:
    """Place, why a setting does nothing or not what it says, and what to write instead."""
    return [*_loans(config), *_carry_over(config), *_laws(config), *_dwell(config)]


def _loans(config: Config) -> Iterator[str]:
    groups = dict(_all_groups(config.groups))
    pledges = config.tree.pledge_hs06
    lenders = {name for name, (_, one) in groups.items() if one.max_lent_hs06}
    for name, (place, one) in groups.items():
        most, pledge = one.max_lent_hs06, pledges.get(name, 0.0)
        if most is not None and 0 < pledge < most and config.pledges.source == "yaml":
            yield (
                f"{place}.max_lent_hs06: {most:g} bounds nothing while its share is no more than its pledge, {pledge:g} HS06: "
                "all of it may be lent; write less than that"
            )
        if one.max_borrowed_hs06 is not None and not lenders - {name}:
            yield (
                f"{place}.max_borrowed_hs06: has no effect, since no other group lends; write max_lent_hs06 for those that "
                "may, or remove it"
            )


def _carry_over(config: Config) -> Iterator[str]:
    said = config.control.carry_over
    amount = said.pledge_hours or said.hs06_hours
    if not amount and _differs(
        said, CarryOverConfig(pledge_hours=said.pledge_hours, hs06_hours=said.hs06_hours)
    ):
        yield (
            "control.carry_over: has no effect without an amount; write pledge_hours, such as 24, or hs06_hours in it, or "
            "remove it"
        )


def _laws(config: Config) -> Iterator[str]:
    """Parameters of laws that nobody uses."""
    used = set(_used("", config.groups, dict.fromkeys(_PARAMETERS, "control"), config.control.law))
    written = {
        f"control.{law}": law
        for law, section in _PARAMETERS.items()
        if _differs(getattr(config.control, law), section())
    }
    for place, one in dict(_all_groups(config.groups)).values():
        own = one.control
        written.update(
            (f"{place}.control.{law}", law) for law in _PARAMETERS if own is not None and getattr(own, law)
        )
    for place, law in written.items():
        if place not in used:
            yield f"{place}: has no effect, since no group goes by it; write law: {law} beside it, or remove it"


def _used(
    place: str, groups: Mapping[str, _AnyGroup], parameters: Mapping[str, str], law: str
) -> Iterator[str]:
    """Places of the parameters that groups go by; ``parameters`` and ``law`` are those of what they are within."""
    for name, one in groups.items():
        at = f"{place}groups.{name}"
        own = one.control
        here, acts = dict(parameters), law
        if own is not None:
            acts = own.law or law
            here.update({key: f"{at}.control" for key in _PARAMETERS if getattr(own, key) is not None})
        if acts in here:
            yield f"{here[acts]}.{acts}"
        yield from _used(f"{at}.", one.groups or {}, here, acts)


def _dwell(config: Config) -> Iterator[str]:
    dwell, validity = config.control.dwell_seconds, config.validity_seconds
    if dwell > validity:
        yield (
            f"control.dwell_seconds: {dwell} is above validity_seconds, {validity}: a target lasts that long only while cycles "
            f"renew it. {validity} s after the last cycle nodes drop it, and the next cycle then decides anew; write cycles "
            "closer than that, or a longer validity_seconds"
        )


def _differs(said: BaseModel, default: BaseModel) -> bool:
    return said.model_dump() != default.model_dump()


def _all_groups(
    groups: Mapping[str, _AnyGroup], above: str = "", place: str = ""
) -> Iterator[tuple[str, tuple[str, _AnyGroup]]]:
    """Full name -> place in the file, and the group."""
    for name, one in groups.items():
        at = f"{place}groups.{name}"
        yield f"{above}{name}", (at, one)
        inner: Optional[Mapping[str, SubgroupConfig]] = one.groups
        yield from _all_groups(inner or {}, f"{above}{name}.", f"{at}.")
