"""The law that averages the error over time, younger values counting more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sharectl.core.control_law import Reading, Said, own_state

AVERAGE = "average_hs06"
HALF_LIFE = "half_life_seconds"
"""In the state only to tell how the average came about: what counts is configured."""


@dataclass(frozen=True)
class Ewma:
    """Parameters."""

    half_life_seconds: float = 3600.0
    """Age at which an error counts half."""


def ewma(params: Ewma, state: Mapping[str, float], reading: Reading, dt_seconds: float) -> Said:
    """The exponentially weighted average of the error; the first error is the average so far.

    The error counts as if it had been so for all of ``dt_seconds``: a long interval weighs more than a short one, and
    one that is cut in two weighs as much as both parts.
    """
    before = own_state(state, (AVERAGE, HALF_LIFE) if HALF_LIFE in state else (AVERAGE,))
    if before is None:
        average_hs06 = reading.error_hs06
    else:
        kept = 2.0 ** (-dt_seconds / params.half_life_seconds)
        average_hs06 = before[AVERAGE] * kept + reading.error_hs06 * (1.0 - kept)
    return Said({AVERAGE: average_hs06, HALF_LIFE: params.half_life_seconds}, average_hs06)
