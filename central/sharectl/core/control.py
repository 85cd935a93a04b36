"""Control laws: from a group's error to the power to move.

A law is a pure function ``(params, state, reading, dt_seconds) -> (state, output, what acted)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Callable

from sharectl.core.control_ewma import Ewma, ewma
from sharectl.core.control_law import (
    AGAINST_ERROR,
    DEADBAND,
    GAP,
    MOST_HS06,
    NO_NUMBER,
    OUTPUT_LIMIT,
    Reading,
    Said,
    beyond,
)
from sharectl.core.control_pid import Pid, pid
from sharectl.core.group_tree import BY_SUBGROUPS

LAWS = {
    "latest": "acts on the latest error alone (the original method)",
    "ewma": "acts on the average of the errors, of which younger ones count more",
    "pid": "acts on the error, on its sum over time and on how fast the power changes",
}
"""Name of a law -> what it does."""

REMEMBERING = frozenset({"ewma", "pid"})
"""Laws that act on earlier errors too: those must not remember what was nobody's loss."""

NO_DEMAND = "no-demand"
NO_CLAIMANT = "no-claimant"
LENDS = "lends"
BORROWS = "borrows"
LENT_LIMIT = "lent-limit"
BORROWED_LIMIT = "borrowed-limit"
PAID_BACK = "paid-back"
PAYS_BACK = "pays-back"

ACTED = {
    LENDS: "the setpoint is lower by what the group has no work for and lends to others",
    BORROWS: "the setpoint is higher by what other groups lend",
    LENT_LIMIT: "max_lent_hs06 keeps the group from lending more",
    BORROWED_LIMIT: "max_borrowed_hs06 keeps the group from borrowing more",
    PAID_BACK: "the setpoint is higher by what control.carry_over lets the group collect",
    PAYS_BACK: "the setpoint is lower by what control.carry_over has the group pay back",
    NO_DEMAND: "the group is under its setpoint and has no job waiting: nothing is remembered to collect later",
    NO_CLAIMANT: "the group is over its setpoint and no group under its own waits: nothing is remembered to pay back",
    NO_NUMBER: "the error was no finite number: nothing is moved, and the controller remembers what it did before",
    GAP: "more time than control.gap_seconds, or none, has passed since the last complete cycle: the derivative begins anew",
    OUTPUT_LIMIT: "the output limit (control.pid.max_output_hs06, or all power that is shared out)",
    AGAINST_ERROR: "integral and derivative wanted to move power against the error of now: none is moved",
    BY_SUBGROUPS: "the group is steered through those within it; jobs of its own, in none of these, are only counted",
    DEADBAND: "it is inside control.deadband_hs06: nothing is moved",
}
"""Code of what bounded or changed a setpoint or an output -> what it means."""


@dataclass(frozen=True)
class Control:
    """The law of a group, and the parameters of each law."""

    law: str = "latest"
    """One of `LAWS`."""
    ewma: Ewma = field(default_factory=Ewma)
    pid: Pid = field(default_factory=Pid)


def _latest(control: Control, state: Mapping[str, float], reading: Reading, dt_seconds: float) -> Said:
    del control, state, dt_seconds
    return Said({}, reading.error_hs06)


STEPS: Mapping[str, Callable[[Control, Mapping[str, float], Reading, float], Said]] = {
    "latest": _latest,
    "ewma": lambda control, state, reading, dt: ewma(control.ewma, state, reading, dt),
    "pid": lambda control, state, reading, dt: pid(control.pid, state, reading, dt),
}
"""Name of a law -> the law."""


def step(control: Control, state: Mapping[str, float], reading: Reading, dt_seconds: float) -> Said:
    """What the law of ``control`` says, with the deadband applied, and its state after it.

    Parameters
    ----------
    state
        As this function returned it in the last complete cycle; empty, broken or of another law: a fresh controller.
    dt_seconds
        Measured time since then; 0 if it is not known. One below 0 counts as 0.
    """
    if not (isfinite(reading.error_hs06) and isfinite(reading.power_hs06)):
        return Said({name: n for name, n in state.items() if isfinite(n)}, 0.0, (NO_NUMBER,))
    sound = replace(
        reading,
        error_hs06=_limited(reading.error_hs06, MOST_HS06),
        power_hs06=_limited(reading.power_hs06, MOST_HS06),
        most_hs06=min(abs(reading.most_hs06), MOST_HS06),
    )
    said = STEPS[control.law](control, state, sound, max(dt_seconds, 0.0) if isfinite(dt_seconds) else 0.0)
    output_hs06 = beyond(said.output_hs06, reading.deadband_hs06)
    inside = beyond(reading.error_hs06, reading.deadband_hs06) != reading.error_hs06
    if output_hs06 != said.output_hs06 or (inside and output_hs06 == 0):
        return Said(said.state, output_hs06, (*said.acted, DEADBAND))
    return said


def _limited(value: float, most: float) -> float:
    return min(max(value, -most), most)
