"""Control laws: from a group's error to the power to move.

A law is a pure function ``(control, state, reading, dt_seconds) -> Move``. *latest* acts on the
error alone, *ewma* on its average over time, younger values counting more. *pid* has, with the
error e = power - setpoint, in HS06, and the power y:

    output = gain * (e + (sum of e dt) / integral_seconds + derivative_seconds * dy/dt), dy/dt
    low-pass filtered

bounded by ``most_hs06``, and never against the sign of e. Anti-windup is by back-calculation: while
the output is not the sum of the three terms, the integral moves towards the value that would make
it so, with the time constant ``integral_seconds``. Clamping would keep an old integral for as long
as the bound, a lack of work or the deadband acts.

*learned* acts by a policy, which is data: `sharectl.control.learned`. Without one it moves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import exp, fsum, inf, isfinite
from pathlib import Path
from typing import Callable, NamedTuple, Optional

from sharectl.settings import setting
from sharectl.times import CRON_PERIOD_SECONDS

MOST_HS06 = 1e15
"""No power, error or state is larger than this: beyond it a number is broken."""
GAP_SECONDS = 3.0 * CRON_PERIOD_SECONDS
"""Longest interval between complete cycles that is counted: three of the longest shipped period."""
YEAR_SECONDS = 31_536_000

BOUNDED = {
    "no-number": "the error was no finite number: nothing is moved or remembered",
    "gap": "no complete cycle for 51 minutes: the derivative begins again",
    "output-limit": "the output limit: all power that is shared out",
    "against-error": "integral and derivative were against the error: nothing is moved",
}
"""Code of a law's bound that changed an output -> what it means."""

LAWS = {
    "latest": "acts on the latest error alone (the original method)",
    "ewma": "acts on the average of the errors, of which younger ones count more",
    "pid": "acts on the error, its sum over time and the change of the power",
}
"""Name of a law -> what it does."""

LEARNED = "learned"
LOADED = {LEARNED: "acts by the policy of a file (control.policy), which `sharectl learn` wrote"}
"""The law that a file completes."""

REMEMBERING = frozenset({"ewma", "pid", LEARNED})
"""Laws that act on earlier errors too: those must not remember what was nobody's loss."""


@dataclass(frozen=True)
class Reading:
    """Measurement of a group in one cycle."""

    error_hs06: float
    """Power used less the setpoint. Positive: over."""
    power_hs06: float
    """Power used: the measurement."""
    deadband_hs06: float = 0.0
    """Errors and outputs of at most this size are left alone."""
    most_hs06: float = MOST_HS06
    """More than this is not to be moved either way."""
    setpoint_hs06: float = 0.0
    """Power that the group is entitled to."""
    demand_by_cores: Mapping[int, int] = field(default_factory=dict)
    """Cores requested -> its jobs that wait and that some node could run."""
    pool_cores: int = 0
    """Cores of all nodes."""
    idle_cores: int = 0
    """Cores of all nodes that no job holds."""


class Move(NamedTuple):
    """Answer of a law."""

    state: Mapping[str, float]
    """Name with unit -> number, to be handed back in the next cycle."""
    output_hs06: float
    """Power to move: positive, to take from the group; negative, to give to it."""
    acted: tuple[str, ...] = ()
    """Codes of what bounded or changed the output, in order."""


def beyond(value_hs06: float, deadband_hs06: float) -> float:
    """``value_hs06`` if it is larger than the deadband, over or under; else 0."""
    return value_hs06 if abs(value_hs06) > deadband_hs06 else 0.0


def limited(value: float, most: float) -> float:
    """``value``, of at most the size of ``most``."""
    return min(max(value, -most), most)


def own_state(state: Mapping[str, float], names: tuple[str, ...]) -> Optional[Mapping[str, float]]:
    """``state``; None, as for a fresh controller, if a number of ``names`` is missing or broken."""
    return state if all(abs(state.get(name, inf)) <= MOST_HS06 for name in names) else None


AVERAGE, AVERAGE_BEFORE = "average_hs06", "average_before_hs06"
WEIGHT_BEFORE = "weight_before_ratio"
"""Components of the average: the average before and its weight; the rest is the error's."""


@dataclass(frozen=True)
class Ewma:
    """Parameters of the law ``ewma``."""

    half_life_seconds: float = setting(3600.0, above=0, most=YEAR_SECONDS)
    """Age at which an error counts half in the average."""


def ewma(control: Control, state: Mapping[str, float], reading: Reading, dt_seconds: float) -> Move:
    """The exponentially weighted average of the error; the first error is the average so far.

    The error counts as if it had been so for all of ``dt_seconds``.
    """
    before = own_state(state, (AVERAGE, AVERAGE_BEFORE, WEIGHT_BEFORE))
    kept = 2.0 ** (-dt_seconds / control.ewma.half_life_seconds) if before else 0.0
    before_hs06 = before[AVERAGE] if before else reading.error_hs06
    average_hs06 = before_hs06 * kept + reading.error_hs06 * (1.0 - kept)
    after = {AVERAGE: average_hs06, AVERAGE_BEFORE: before_hs06, WEIGHT_BEFORE: kept}
    return Move(after, average_hs06)


INTEGRAL, SLOPE, POWER = "integral_hs06", "slope_hs06_per_second", "power_hs06"
ERROR, GAIN, SLOPE_GAIN = "error_hs06", "gain", "slope_gain_seconds"
PID_STATE = (INTEGRAL, SLOPE, POWER, ERROR, GAIN, SLOPE_GAIN)

FILTER_SECONDS = 2.0 * CRON_PERIOD_SECONDS
"""Time constant of the low-pass filter of the change of the power (docs/measurements.md)."""


@dataclass(frozen=True)
class Pid:
    """Parameters of the law ``pid``."""

    gain: float = setting(1.0, above=0, most=100)
    """HS06 to move for each HS06 of error."""
    integral_seconds: float = setting(28800.0, least=0, most=YEAR_SECONDS)
    """Time in which a lasting error doubles the output, and what a bound prevented is forgotten; 0:
    no integral."""
    derivative_seconds: float = setting(0.0, least=0, most=86400)
    """How far ahead the group's power is extrapolated."""


def pid(control: Control, state: Mapping[str, float], reading: Reading, dt_seconds: float) -> Move:
    """Output of the formula above, bounded.

    Without a state the integral and the derivative begin at 0. After a gap the integral goes on
    from where it was, and the derivative begins again. When ``gain`` or ``derivative_seconds``
    changed, the integral takes up the difference: the output stays what it was and changes from
    there. Without an integral such a change acts at once.
    """
    error_hs06 = beyond(reading.error_hs06, reading.deadband_hs06)
    params, before = control.pid, own_state(state, PID_STATE)
    slope_gain = params.gain * params.derivative_seconds
    gap = before is not None and not 0 < dt_seconds <= GAP_SECONDS
    slope = integral_hs06 = tracked = 0.0
    if before and not gap:
        change = (reading.power_hs06 - before[POWER]) / dt_seconds
        new = 1.0 - exp(-dt_seconds / FILTER_SECONDS)
        slope = before[SLOPE] + new * (change - before[SLOPE])
    if before and params.integral_seconds:
        counted_seconds = min(dt_seconds, GAP_SECONDS)
        tracked = 1.0 - exp(-counted_seconds / params.integral_seconds)
        integral_hs06 = (
            before[INTEGRAL]
            + (before[GAIN] - params.gain) * before[ERROR]
            + (before[SLOPE_GAIN] - slope_gain) * before[SLOPE]
            + params.gain * error_hs06 * counted_seconds / params.integral_seconds
        )
    numbers = (integral_hs06, slope, reading.power_hs06, error_hs06, params.gain, slope_gain)
    after = dict(zip(PID_STATE, numbers))
    sum_hs06 = fsum((params.gain * error_hs06, integral_hs06, slope_gain * slope))
    most_hs06 = reading.most_hs06
    lowest_hs06, highest_hs06 = -most_hs06 * (error_hs06 < 0), most_hs06 * (error_hs06 > 0)
    output_hs06 = min(max(sum_hs06, lowest_hs06), highest_hs06)
    after[INTEGRAL] = limited(integral_hs06 + (output_hs06 - sum_hs06) * tracked, most_hs06)
    acted = {
        "gap": gap,
        "output-limit": abs(sum_hs06) > most_hs06,
        "against-error": sum_hs06 * error_hs06 < 0,
    }
    return Move(after, output_hs06, tuple(code for code, did in acted.items() if did))


@dataclass(frozen=True)
class Shadow:
    """Law that steers nothing: cycles record its output beside the one that acts."""

    law: str = setting(kind="law")
    """As `control.law`."""
    policy: Optional[Path] = setting(None)
    """As `control.policy`."""
    loaded: object = None
    """As `Control.loaded`."""


@dataclass(frozen=True)
class Control:
    """The law of a group, and the parameters of each law."""

    law: str = setting("latest", kind="law", choices=tuple(LAWS))
    """Error acted on: `latest`, of this cycle; `ewma`, its average; `pid`, with integral and
    derivative; `learned`, by a policy (docs/control.md)."""
    ewma: Ewma = setting(Ewma())
    """Parameters of `ewma`."""
    pid: Pid = setting(Pid())
    """Parameters of `pid`."""
    policy: Optional[Path] = setting(None)
    """File of `learned`."""
    shadow: Optional[Shadow] = setting(None)
    """Law that is tried beside the one that acts: cycles record its output, and nothing follows it;
    null: none."""
    loaded: object = None
    """`sharectl.control.learned.Policy` of `learned`; of a shadow also words: why there is none."""


def by_policy(
    control: Control, state: Mapping[str, float], reading: Reading, dt_seconds: float
) -> Move:
    """Answer of the policy, of at most ``reading.most_hs06``; without a policy, 0 and no state."""
    from sharectl.control.learned import Policy, learned  # noqa: PLC0415 - few pools have one

    if not isinstance(control.loaded, Policy):
        return Move({}, 0.0)
    move = learned(control.loaded, state, reading, dt_seconds)
    output_hs06 = limited(move.output_hs06, reading.most_hs06)
    acted = ("output-limit",) if output_hs06 != move.output_hs06 else ()
    return Move(move.state, output_hs06, acted)


STEPS: Mapping[str, Callable[[Control, Mapping[str, float], Reading, float], Move]] = {
    "latest": lambda _control, _state, reading, _dt: Move({}, reading.error_hs06),
    "ewma": ewma,
    "pid": pid,
    LEARNED: by_policy,
}
"""Name of a law -> the law."""


def step(control: Control, state: Mapping[str, float], reading: Reading, dt_seconds: float) -> Move:
    """Answer of the law of ``control``, with the deadband applied.

    A state that is empty, broken or of another law means a fresh controller. ``dt_seconds`` since
    the last complete cycle are 0 if unknown; a time below 0 counts as 0.
    """
    if not (isfinite(reading.error_hs06) and isfinite(reading.power_hs06)):
        return Move({name: n for name, n in state.items() if isfinite(n)}, 0.0, ("no-number",))
    sound = replace(
        reading,
        error_hs06=limited(reading.error_hs06, MOST_HS06),
        power_hs06=limited(reading.power_hs06, MOST_HS06),
    )
    dt_seconds = max(dt_seconds, 0.0) if isfinite(dt_seconds) else 0.0
    inside = abs(reading.error_hs06) <= reading.deadband_hs06 > 0
    move = STEPS[control.law](control, state, sound, dt_seconds)
    is_shut = inside and control.law == LEARNED
    output_hs06 = 0.0 if is_shut else beyond(move.output_hs06, reading.deadband_hs06)
    if output_hs06 != move.output_hs06 or (inside and output_hs06 == 0 != reading.error_hs06):
        return move._replace(output_hs06=output_hs06, acted=(*move.acted, "deadband"))
    return move
