"""What every control law is given, what it answers, and what all of them do alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple, Optional

MOST_HS06 = 1e15
"""No power, error or state is larger than this: beyond it a number is broken."""

DEADBAND = "deadband"
OUTPUT_LIMIT = "output-limit"
AGAINST_ERROR = "against-error"
GAP = "gap"
NO_NUMBER = "no-number"


@dataclass(frozen=True)
class Reading:
    """What a controller sees of its group in one cycle."""

    error_hs06: float
    """Power used less the setpoint. Positive: over."""
    power_hs06: float
    """Power used: the measurement."""
    deadband_hs06: float = 0.0
    """Errors and outputs of at most this size are left alone."""
    most_hs06: float = MOST_HS06
    """More than this is not to be moved either way."""


class Said(NamedTuple):
    """What a law answers."""

    state: Mapping[str, float]
    """Name with unit -> number, to be handed back in the next cycle."""
    output_hs06: float
    """Power to move: positive, to take from the group; negative, to give to it."""
    acted: tuple[str, ...] = ()
    """Codes of what bounded or changed the output, in order."""


def beyond(value_hs06: float, deadband_hs06: float) -> float:
    """``value_hs06`` if it is larger than the deadband, over or under; else 0: what all deadbands mean."""
    return value_hs06 if abs(value_hs06) > deadband_hs06 else 0.0


def own_state(state: Mapping[str, float], names: tuple[str, ...]) -> Optional[dict[str, float]]:
    """Numbers of ``names`` in ``state``; None, as for a fresh controller, if one is missing or broken."""
    own = {name: state[name] for name in names if name in state}
    sound = len(own) == len(names) and all(isfinite(n) and abs(n) <= MOST_HS06 for n in own.values())
    return own if sound else None
