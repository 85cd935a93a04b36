"""The law `learned`: a linear policy over a group's figures, trained on the twin.

Output = scale * (sum of weight * feature), with the scale all power that is shared out. Features
have no unit, so that a policy that was trained on a small pool reads a large one. With weight 1 of
`error` and no other the law is *latest*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum, isfinite
from typing import Any

from sharectl.control.laws import (
    GAP_SECONDS,
    LEARNED,
    MOST_HS06,
    YEAR_SECONDS,
    Move,
    Reading,
    limited,
    own_state,
)
from sharectl.words import quoted

FEATURES = {
    "error": "power used less the setpoint, by the scale",
    "mean": "average of it, younger values counting more",
    "trend": "change of it in the policy's half-life, at most 1",
    "setpoint": "setpoint, by the scale",
    "single": "cores that waiting single-core jobs request, by the pool's, at most 1",
    "multi": "cores that waiting multicore jobs request, by the pool's, at most 1",
    "idle": "part of the pool's cores that no job holds",
    "error_single": "error * single",
    "error_multi": "error * multi",
    "error_idle": "error * idle",
}
"""Feature -> its meaning. The scale is `Reading.most_hs06`."""

MOST_WEIGHT = 1000.0
_MEAN, _ERROR = f"{LEARNED}.mean_ratio", f"{LEARNED}.error_ratio"


@dataclass(frozen=True)
class Policy:
    """Weights of features."""

    features: tuple[str, ...]
    """Of `FEATURES`."""
    weights: tuple[float, ...]
    half_life_seconds: float
    """Of the average of the error."""
    training: Mapping[str, Any]
    """Its origin, for people: nothing follows from it."""


def faults(policy: Policy) -> list[str]:
    """Place and fault of everything that no policy can have."""
    problems = [
        f"features[{number}]: {quoted(name)} is none of {', '.join(FEATURES)}"
        for number, name in enumerate(policy.features)
        if name not in FEATURES
    ]
    problems += [
        f"weights[{number}]: {weight} is not a number of at most {MOST_WEIGHT:g} either way"
        for number, weight in enumerate(policy.weights)
        if not (isfinite(weight) and abs(weight) <= MOST_WEIGHT)
    ]
    if len(set(policy.features)) < len(policy.features):
        problems.append("features: a feature is there twice")
    if len(policy.features) != len(policy.weights):
        problems.append(f"weights: {len(policy.weights)} for {len(policy.features)} features")
    if not 0 < policy.half_life_seconds <= YEAR_SECONDS:
        problems.append(f"half_life_seconds: {policy.half_life_seconds} is not above 0")
    return problems


def learned(
    policy: Policy, state: Mapping[str, float], reading: Reading, dt_seconds: float
) -> Move:
    """Output of the policy: a finite number, not bounded by ``reading.most_hs06``."""
    scale = reading.most_hs06
    if not 0 < scale <= MOST_HS06:
        return Move({}, 0.0)
    values, after = features(policy.half_life_seconds, state, reading, dt_seconds)
    pairs = zip(policy.features, policy.weights)
    return Move(after, scale * fsum(values[name] * weight for name, weight in pairs))


def features(
    half_life_seconds: float, state: Mapping[str, float], reading: Reading, dt_seconds: float
) -> tuple[dict[str, float], dict[str, float]]:
    """Values of `FEATURES`, without average and trend after a gap, and the next cycle's state."""
    scale, cores = reading.most_hs06, max(reading.pool_cores, 1)
    error = limited(reading.error_hs06 / scale, MOST_HS06)
    before = own_state(state, (_MEAN, _ERROR)) if 0 < dt_seconds <= GAP_SECONDS else None
    mean, trend = error, 0.0
    if before is not None:
        kept = 2.0 ** (-dt_seconds / half_life_seconds)
        mean = before[_MEAN] * kept + error * (1.0 - kept)
        trend = limited((error - before[_ERROR]) * half_life_seconds / dt_seconds, 1.0)
    sizes = reading.demand_by_cores
    single = min(1.0, sizes.get(1, 0) / cores)
    multi = min(1.0, sum(size * jobs for size, jobs in sizes.items() if size > 1) / cores)
    idle = reading.idle_cores / cores
    values = {
        "error": error,
        "mean": mean,
        "trend": trend,
        "setpoint": limited(reading.setpoint_hs06 / scale, MOST_HS06),
        "single": single,
        "multi": multi,
        "idle": idle,
        "error_single": error * single,
        "error_multi": error * multi,
        "error_idle": error * idle,
    }
    return values, {_MEAN: mean, _ERROR: error}
