"""Formulas of a group's error, setpoint and output, with their numbers."""

from __future__ import annotations

from collections.abc import Iterator
from math import fsum
from typing import NamedTuple

from sharectl.control.setpoints import SETPOINTS, shared_ratio
from sharectl.model import GroupControl
from sharectl.plan.records import CycleRecord
from sharectl.shares.groups import BY_SUBGROUPS, first_level

ROUNDING_HS06 = 0.05
"""Numbers that differ by less are shown alike."""

_SHARED = {
    "in_use": "pledge x (all power used / all pledges)",
    "present": "pledge x (power of all nodes / all pledges)",
    "pledge": "the pledge itself",
}


class Formula(NamedTuple):
    """One equation."""

    name: str
    """Left side, such as ``DHS``."""
    value: float
    numbers: str
    """Right side with numbers, such as ``62615.0 - 71400.0 x 0.7006``."""
    words: str
    """Right side in words."""


def control_of(record: CycleRecord, group: str) -> GroupControl:
    """Controller's outcome of a group of the record."""
    return next(control for control in record.groups if control.group == group)


def is_withheld(control: GroupControl) -> bool:
    """True if the law got an error of 0 because nobody is to collect the error later."""
    return bool({"no-demand", "no-claimant"}.intersection(control.acted))


def number(value: float, digits: int = 1) -> str:
    """Value with a fixed number of digits, never ``-0.0``."""
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if not float(text) else text


def plain(value: float) -> str:
    """Value without needless digits; shares lie between 0 and 1."""
    if value == int(value):
        return str(int(value))
    return number(value) if abs(value) >= 1 else f"{value:.3g}"


def formulas(record: CycleRecord, group: str) -> Iterator[Formula]:
    """DHS, setpoint, error and output of a group of a complete cycle."""
    control = control_of(record, group)
    pledge, setpoint = number(control.error.pledge_hs06), number(control.setpoint_hs06)
    power = number(control.error.usage.power_hs06)
    in_use = f"{power} - {pledge} x {_ratio(record, 'in_use'):.6g}"
    yield Formula("DHS", control.error.error_hs06, in_use, f"power - {_SHARED['in_use']}")
    yield _setpoint(record, control)
    words = f"power - setpoint{'; the law is given 0' if is_withheld(control) else ''}"
    yield Formula("error", control.control_error_hs06, f"{power} - {setpoint}", words)
    yield _output(control)


def _ratio(record: CycleRecord, setpoint: str) -> float:
    errors = {control.group: control.error for control in record.groups}
    groups = first_level(errors)
    return shared_ratio(
        setpoint,
        {group: errors[group].pledge_hs06 for group in groups},
        {group: errors[group].usage for group in groups},
        fsum(node.cores * node.hs06_per_core for node in record.nodes),
    )


def _setpoint(record: CycleRecord, control: GroupControl) -> Formula:
    if record.setpoint not in SETPOINTS:
        return Formula("setpoint", control.setpoint_hs06, "as recorded", record.setpoint)
    words, ratio = _SHARED[record.setpoint], _ratio(record, record.setpoint)
    moved_hs06 = control.setpoint_hs06 - control.error.pledge_hs06 * ratio
    numbers = f"{number(control.error.pledge_hs06)} x {ratio:.6g}"
    if abs(moved_hs06) >= ROUNDING_HS06:
        sign = "+" if moved_hs06 > 0 else "-"
        numbers += f" {sign} {number(abs(moved_hs06))}"
        words += f" {sign} what is lent, borrowed or carried over"
    return Formula("setpoint", control.setpoint_hs06, numbers, words)


def _output(control: GroupControl) -> Formula:
    """Output of the law: the latest error, or as it was recorded beside the law's state."""
    output_hs06, error_hs06 = control.output_hs06, control.control_error_hs06
    if BY_SUBGROUPS in control.acted:
        words = "the groups within it have controllers"
        return Formula("output", output_hs06, "none of its own", words)
    if control.law != "latest":
        words = ", ".join(f"{name} {value:.10g}" for name, value in sorted(control.state.items()))
        return Formula("output", output_hs06, "as recorded", words or f"law {control.law}")
    numbers = "error"
    if abs(error_hs06 - output_hs06) >= ROUNDING_HS06:
        numbers += f" = {number(error_hs06)}, and then: {', '.join(control.acted) or 'bounded'}"
    return Formula("output", output_hs06, numbers, "the latest error alone")
