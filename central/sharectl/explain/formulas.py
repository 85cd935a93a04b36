"""Formulas of a group's error, setpoint and output, with their numbers."""

from __future__ import annotations

from collections.abc import Iterator
from math import fsum
from typing import NamedTuple

from sharectl.control.laws import (
    AVERAGE,
    AVERAGE_BEFORE,
    ERROR,
    GAIN,
    PID_STATE,
    SLOPE,
    SLOPE_GAIN,
    WEIGHT_BEFORE,
    pid_terms,
)
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
_TERMS = (
    "gain x error beyond the deadband",
    "gain x sum of errors over time, held by what bounds the output",
    "gain x derivative time x filtered change of the power",
)


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
    yield from _output(control)


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


def _output(control: GroupControl) -> Iterator[Formula]:
    """Terms of the law, and the output that they come to."""
    state, output_hs06 = control.state, control.output_hs06
    if BY_SUBGROUPS in control.acted:
        words = "the groups within it have controllers"
        yield Formula("output", output_hs06, "none of its own", words)
    elif control.law == "latest":
        yield _sum(control, "error", control.control_error_hs06, "the latest error alone")
    elif control.law == "ewma" and WEIGHT_BEFORE in state:
        weight, numbers, words = state[WEIGHT_BEFORE], "as recorded", "begins with the first error"
        if weight:
            error = number(0.0 if is_withheld(control) else control.control_error_hs06)
            numbers = f"{number(state[AVERAGE_BEFORE])} x {weight:.4f} + {error} x {1 - weight:.4f}"
            words = "average before x weight + error x rest"
        yield Formula("average", state[AVERAGE], numbers, words)
        yield _sum(control, "average", state[AVERAGE], "the average of the errors")
    elif control.law == "pid" and state.keys() >= set(PID_STATE):
        terms = pid_terms(state)
        proportional = f"{state[GAIN]:g} x {number(state[ERROR])}"
        derivative = f"{state[SLOPE_GAIN]:g} x {state[SLOPE]:.6f}"
        yield from map(Formula, "PID", terms, (proportional, "as recorded", derivative), _TERMS)
        yield _sum(control, "P + I + D", fsum(terms), "the three terms together")
    else:
        words = ", ".join(f"{name} {value:g}" for name, value in sorted(state.items()))
        yield Formula("output", output_hs06, "as recorded", words or f"law {control.law}")


def _sum(control: GroupControl, numbers: str, sum_hs06: float, words: str) -> Formula:
    """Output as the sum of a law's terms, with its bounds."""
    if abs(sum_hs06 - control.output_hs06) >= ROUNDING_HS06:
        bounds = ", ".join(control.acted) or "bounded"
        numbers += f" = {number(sum_hs06)}, and then: {bounds}"
    return Formula("output", control.output_hs06, numbers, words)
