"""How a group's figures came about: each formula with its numbers, as the cycle had them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Callable, Optional

from sharectl.core.control import NO_CLAIMANT, NO_DEMAND
from sharectl.core.control_ewma import AVERAGE, HALF_LIFE
from sharectl.core.control_pid import ERROR, GAIN, INTEGRAL, SLOPE, SLOPE_GAIN
from sharectl.core.cycle_record import CycleRecord
from sharectl.core.group_tree import BY_SUBGROUPS, first_level_of
from sharectl.core.model import GroupControl
from sharectl.core.steering import STEPPED_AT

ROUNDING_HS06 = 0.05
"""Two numbers that differ by less are shown alike."""


@dataclass(frozen=True)
class Formula:
    """One equation."""

    name: str
    """What is on its left, such as ``DHS``."""
    value: float
    numbers: str
    """Its right side with the numbers, such as ``62615.0 - 71400.0 x 0.7006``."""
    words: str
    """The same in words."""


def formulas(record: CycleRecord, group: str, before: Optional[GroupControl]) -> tuple[Formula, ...]:
    """DHS, the setpoint, the error and the law of ``group`` in a complete cycle that has it.

    Parameters
    ----------
    before
        The group in the complete cycle before; None if that is not known.
    """
    control = next(control for control in record.groups if control.group == group)
    lines = [_dhs(control), _setpoint(record, control)]
    lines.append(
        Formula(
            "error",
            control.control_error_hs06,
            f"{number(control.error.usage.power_hs06)} - {number(control.setpoint_hs06)}",
            f"power - setpoint{'; the law is given 0' if is_withheld(control) else ''}",
        )
    )
    if BY_SUBGROUPS in control.acted:
        words = "the groups within it have controllers"
        return (*lines, Formula("output", control.output_hs06, "none of its own", words))
    return (*lines, *_LAWS.get(control.law, _unknown)(control, before))


def is_withheld(control: GroupControl) -> bool:
    """Whether the group's law was given no error although there is one: nobody is to collect it later."""
    return bool({NO_DEMAND, NO_CLAIMANT}.intersection(control.acted))


def given_hs06(control: GroupControl) -> float:
    """Error that the group's law was given, HS06."""
    return 0.0 if is_withheld(control) else control.control_error_hs06


def number(value: float, digits: int = 1) -> str:
    """``value`` with a fixed number of digits, and never ``-0.0``."""
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if not float(text) else text


def _dhs(control: GroupControl) -> Formula:
    error = control.error
    return Formula(
        "DHS",
        error.error_hs06,
        f"{number(error.usage.power_hs06)} - {number(error.pledge_hs06)} x {_ratio(control):.6g}",
        "power - pledge x (all power used / all pledges)",
    )


def _ratio(control: GroupControl) -> float:
    """All power used over all pledges, as the group's own error tells it."""
    error = control.error
    if not error.pledge_hs06:
        return 0.0
    return (error.usage.power_hs06 - error.error_hs06) / error.pledge_hs06


def _over_pledges(power_hs06: float, groups: Sequence[GroupControl]) -> float:
    pledges = fsum(control.error.pledge_hs06 for control in first_level_of(groups))
    return power_hs06 / pledges if pledges else 0.0


def _setpoint(record: CycleRecord, control: GroupControl) -> Formula:
    present = fsum(node.cores * node.hs06_per_core for node in record.nodes)
    shared: Mapping[str, tuple[Optional[float], str]] = {
        "in_use": (_ratio(control), "pledge x (all power used / all pledges)"),
        "present": (
            _over_pledges(present, record.groups) if present else None,
            "pledge x (power of all nodes / all pledges)",
        ),
        "pledge": (1.0, "the pledge itself"),
    }
    ratio, words = shared.get(record.setpoint, (None, record.setpoint))
    if ratio is None:
        return Formula("setpoint", control.setpoint_hs06, "as recorded", words)
    nominal = control.error.pledge_hs06 * ratio
    moved = control.setpoint_hs06 - nominal
    numbers = f"{number(control.error.pledge_hs06)} x {ratio:.6g}"
    if abs(moved) >= ROUNDING_HS06:
        numbers += f" {'+' if moved > 0 else '-'} {number(abs(moved))}"
        words += f" {'+' if moved > 0 else '-'} what is lent, borrowed or carried over"
    return Formula("setpoint", control.setpoint_hs06, numbers, words)


def _bounded(control: GroupControl, said_hs06: float) -> str:
    """What became of the law's own number on its way to the output; empty if nothing."""
    if abs(said_hs06 - control.output_hs06) < ROUNDING_HS06:
        return ""
    return f" = {number(said_hs06)}, and then: {', '.join(control.acted) or 'bounded'}"


def _latest(control: GroupControl, before: Optional[GroupControl]) -> tuple[Formula, ...]:
    del before
    said = control.control_error_hs06
    return (
        Formula("output", control.output_hs06, f"error{_bounded(control, said)}", "the latest error alone"),
    )


def _ewma(control: GroupControl, before: Optional[GroupControl]) -> tuple[Formula, ...]:
    average = control.state.get(AVERAGE)
    if average is None:
        return _unknown(control, before)
    output = Formula(
        "output", control.output_hs06, f"average{_bounded(control, average)}", "the average of the errors"
    )
    old = before.state.get(AVERAGE) if before is not None and before.law == control.law else None
    if old is None:
        words = "begins with the first error" if before is not None else "as recorded"
        return (Formula("average", average, "as recorded", words), output)
    error = given_hs06(control)
    kept = _kept(control, before)
    if kept is None or abs(old * kept + error * (1 - kept) - average) > ROUNDING_HS06:
        return (Formula("average", average, "as recorded", "the ledger does not tell the weights"), output)
    numbers = f"{number(old)} x {kept:.4f} + {number(error)} x {1 - kept:.4f}"
    words = f"average before x weight + error x rest{_seconds(control, before)}"
    return (Formula("average", average, numbers, words), output)


def _kept(control: GroupControl, before: Optional[GroupControl]) -> Optional[float]:
    """Weight of the average before, by the time between and the half-life of then; None if that is not known."""
    half_life, now = control.state.get(HALF_LIFE, 0.0), control.state.get(STEPPED_AT)
    then = before.state.get(STEPPED_AT) if before is not None else None
    if now is None or then is None or half_life <= 0:
        return None
    return float(2.0 ** (-max(0.0, now - then) / half_life))


def _pid(control: GroupControl, before: Optional[GroupControl]) -> tuple[Formula, ...]:
    del before
    state = control.state
    if not {GAIN, ERROR, INTEGRAL, SLOPE, SLOPE_GAIN} <= set(state):
        return _unknown(control, None)
    proportional = state[GAIN] * state[ERROR]
    derivative = state[SLOPE_GAIN] * state[SLOPE]
    said = proportional + state[INTEGRAL] + derivative
    return (
        Formula(
            "P", proportional, f"{state[GAIN]:g} x {number(state[ERROR])}", "gain x error beyond the deadband"
        ),
        Formula(
            "I",
            state[INTEGRAL],
            "as recorded",
            "gain x sum of errors over time, held by what bounds the output",
        ),
        Formula(
            "D",
            derivative,
            f"{state[SLOPE_GAIN]:g} x {state[SLOPE]:.6f}",
            "gain x derivative time x filtered change of the power",
        ),
        Formula(
            "output", control.output_hs06, f"P + I + D{_bounded(control, said)}", "the three terms together"
        ),
    )


def _unknown(control: GroupControl, before: Optional[GroupControl]) -> tuple[Formula, ...]:
    del before
    kept = ", ".join(f"{name} {value:g}" for name, value in sorted(control.state.items()))
    return (Formula("output", control.output_hs06, "as recorded", kept or f"law {control.law}"),)


def _seconds(control: GroupControl, before: Optional[GroupControl]) -> str:
    now = control.state.get(STEPPED_AT)
    then = before.state.get(STEPPED_AT) if before is not None else None
    return f", {now - then:.0f} s later" if now is not None and then is not None else ""


_Law = Callable[[GroupControl, Optional[GroupControl]], tuple[Formula, ...]]
_LAWS: Mapping[str, _Law] = {"latest": _latest, "ewma": _ewma, "pid": _pid}
"""Name of a law -> how its output came about."""
