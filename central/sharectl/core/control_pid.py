"""The law of industry: proportional to the error, to its sum over time, and to how fast the power changes.

With the error e = power - setpoint, in HS06, and the power y:

    output = gain * (e + (sum of e dt) / integral_seconds + derivative_seconds * dy/dt), dy/dt low-pass filtered

bounded by ``most_hs06``, and never against the sign of e. Anti-windup is by back-calculation: while the output is not what
the three terms say, the integral moves towards the value that would say it, with the time constant ``integral_seconds``.
Clamping (not to integrate meanwhile) would keep an old integral for as long as the bound, a lack of work or the deadband
acts; this one forgets it, and all bounds go through the one mechanism.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp
from typing import Optional

from sharectl.core.control_law import AGAINST_ERROR, GAP, OUTPUT_LIMIT, Reading, Said, beyond, own_state

INTEGRAL = "integral_hs06"
SLOPE = "slope_hs06_per_second"
POWER = "power_hs06"
ERROR = "error_hs06"
GAIN = "gain"
SLOPE_GAIN = "slope_gain_seconds"
_NAMES = (INTEGRAL, SLOPE, POWER, ERROR, GAIN, SLOPE_GAIN)


@dataclass(frozen=True)
class Pid:
    """Parameters."""

    gain: float = 1.0
    """HS06 to move for each HS06 of error."""
    integral_seconds: Optional[float] = 28800.0
    """Time in which a lasting error doubles the output; None for no integral."""
    derivative_seconds: float = 0.0
    """How far ahead a change of the power is extrapolated; 0 for no derivative."""
    filter_seconds: float = 2040.0
    """Time constant of the derivative's low-pass filter."""
    max_output_hs06: Optional[float] = None
    """Most power to move either way; None for no limit but the power that is shared out."""
    gap_seconds: float = 3060.0
    """Longest interval that is counted; of a longer one nobody knows what the error was."""

    @property
    def slope_gain_seconds(self) -> float:
        """HS06 to move for each HS06 per second."""
        return self.gain * self.derivative_seconds


def pid(params: Pid, state: Mapping[str, float], reading: Reading, dt_seconds: float) -> Said:
    """Output of the formula above, bounded.

    Without a state the integral and the derivative begin at 0. After a gap the integral goes on from where it was, and the
    derivative begins anew. When ``gain`` or ``derivative_seconds`` changed, the integral takes up the difference: the
    output stays what it was and changes from there. Without an integral such a change acts at once.
    """
    error_hs06 = beyond(reading.error_hs06, reading.deadband_hs06)
    before = own_state(state, _NAMES)
    gap = before is not None and not 0 < dt_seconds <= params.gap_seconds
    counted_seconds = min(max(dt_seconds, 0.0), params.gap_seconds) if before is not None else 0.0
    slope = 0.0 if before is None or gap else _slope(params, before, reading.power_hs06, dt_seconds)
    integral_hs06 = 0.0
    if before is not None and params.integral_seconds is not None:
        grown_hs06 = params.gain * error_hs06 * counted_seconds / params.integral_seconds
        integral_hs06 = _taken_up(params, before) + grown_hs06
    most_hs06 = min(reading.most_hs06, params.max_output_hs06 or reading.most_hs06)
    said_hs06 = params.gain * error_hs06 + integral_hs06 + params.slope_gain_seconds * slope
    output_hs06 = _bounded(said_hs06, error_hs06, most_hs06)
    integral_hs06 += (output_hs06 - said_hs06) * _tracked(params, counted_seconds)
    after = {
        INTEGRAL: min(max(integral_hs06, -most_hs06), most_hs06),
        SLOPE: slope,
        POWER: reading.power_hs06,
        ERROR: error_hs06,
        GAIN: params.gain,
        SLOPE_GAIN: params.slope_gain_seconds,
    }
    acted = {GAP: gap, OUTPUT_LIMIT: abs(said_hs06) > most_hs06, AGAINST_ERROR: said_hs06 * error_hs06 < 0}
    return Said(after, output_hs06, tuple(code for code, did in acted.items() if did))


def _slope(params: Pid, before: Mapping[str, float], power_hs06: float, dt_seconds: float) -> float:
    """Filtered change of the power, HS06 per second."""
    new = 1.0 - exp(-dt_seconds / params.filter_seconds)
    return before[SLOPE] + new * ((power_hs06 - before[POWER]) / dt_seconds - before[SLOPE])


def _taken_up(params: Pid, before: Mapping[str, float]) -> float:
    """The integral, with what the other terms would have said more, or less, by the parameters of then."""
    by_gain = (before[GAIN] - params.gain) * before[ERROR]
    by_slope = (before[SLOPE_GAIN] - params.slope_gain_seconds) * before[SLOPE]
    return before[INTEGRAL] + by_gain + by_slope


def _bounded(said_hs06: float, error_hs06: float, most_hs06: float) -> float:
    lowest = -most_hs06 if error_hs06 < 0 else 0.0
    highest = most_hs06 if error_hs06 > 0 else 0.0
    return min(max(said_hs06, lowest), highest)


def _tracked(params: Pid, counted_seconds: float) -> float:
    """Part of the way that the integral goes towards what the output really is."""
    if params.integral_seconds is None:
        return 0.0
    return 1.0 - exp(-counted_seconds / params.integral_seconds)
