"""Training of a policy: rewards, and a seeded evolution strategy.

Each generation tries a number of policies around the present one, in pairs that differ from it by
the same step either way, on the same episodes. The next one is the mean of the best half, better
ones counting more. Plain numbers and `Random.random` alone make a seed give the same policy
everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import cos, fsum, log, pi, sqrt
from random import Random  # noqa: TID251 - with a seed
from statistics import fmean
from typing import Callable, NamedTuple, Protocol

from sharectl.control.learned import FEATURES, Policy, Training

FIRST_STEP: Mapping[str, float] = {
    "error": 0.3,
    "mean": 0.3,
    "trend": 0.05,
    "setpoint": 0.005,
    "single": 0.005,
    "multi": 0.005,
    "idle": 0.02,
    "error_single": 0.2,
    "error_multi": 0.2,
    "error_idle": 0.2,
}
"""Feature -> standard deviation of its weight in the first generation."""


class StepFigures(NamedTuple):
    """Time between two cycles of sharectl, as parts of 1."""

    shortfall_ratio: float
    """Power that was due to groups and that they did not use, by the power present."""
    idle_ratio: float
    """Core-seconds idle while jobs were pending that could run, by the pool's."""
    churn_ratio: float
    """Targets that changed, by nodes."""


@dataclass(frozen=True)
class RewardWeights:
    """Price of each figure."""

    shortfall: float = 1.0
    idle: float = 1.0
    churn: float = 0.02

    def reward(self, figures: StepFigures) -> float:
        """Reward of a step, at most 0."""
        return -(
            self.shortfall * figures.shortfall_ratio
            + self.idle * figures.idle_ratio
            + self.churn * figures.churn_ratio
        )


REWARD = RewardWeights()


class Step(NamedTuple):
    """Twin before a cycle of sharectl."""

    values: Mapping[str, Mapping[str, float]]
    """Group -> values of `sharectl.control.learned.FEATURES`."""
    figures: StepFigures
    """Of the time since the cycle before."""
    is_over: bool


class SteppedTwin(Protocol):
    """A twin that halts before each cycle of sharectl."""

    @property
    def groups(self) -> tuple[str, ...]:
        """Configured groups."""

    def reset(self, seed: int) -> Step:
        """Begin again, and halt before the first cycle after the warm-up."""

    def step(self, outputs: Mapping[str, float]) -> Step:
        """Run a cycle with these outputs, parts of all power that is shared out, to the next."""


# ---- evolution


@dataclass(frozen=True)
class Evolution:
    """Size of a training."""

    generations: int = 12
    population: int = 8
    """Policies of a generation, in pairs."""
    decay: float = 0.85
    """Factor of the standard deviations from one generation to the next."""
    half_life_seconds: float = 7200.0
    """Of the average of the error."""


Weights = tuple[float, ...]
Evaluate = Callable[[Sequence[Weights]], Sequence[float]]
"""Mean reward of each of several policies, on the same episodes."""

START: Weights = tuple(float(name == "error") for name in FEATURES)
"""Weights of the law *latest*."""


class Generation(NamedTuple):
    """Outcome of a generation."""

    number: int
    mean: Weights
    best: Weights
    """Of its policies."""
    best_score: float


def evolve(size: Evolution, seed: int, evaluate: Evaluate) -> Iterator[Generation]:
    """Generations, the first around the law *latest*."""
    draw = Random(f"{seed}/evolution").random
    mean, sigma = START, 1.0
    pairs = max(1, size.population // 2)
    for number in range(1, size.generations + 1):
        tried: list[Weights] = []
        for _ in range(pairs):
            step = [sigma * spread * _normal(draw) for spread in FIRST_STEP.values()]
            tried += [
                tuple(weight + sign * part for weight, part in zip(mean, step)) for sign in (1, -1)
            ]
        scores = evaluate(tried)
        mean = recombined(tried, scores)
        sigma *= size.decay
        best = max(range(len(tried)), key=lambda place: scores[place])
        yield Generation(number, mean, tried[best], scores[best])


def recombined(tried: Sequence[Weights], scores: Sequence[float]) -> Weights:
    """Mean of the better half; of k the best counts as log(k + 1), the others less and less."""
    ranked = sorted(range(len(tried)), key=lambda place: (-scores[place], place))
    best = ranked[: max(1, len(tried) // 2)]
    shares = [log(len(best) + 1) - log(place + 1) for place in range(len(best))]
    total = fsum(shares)
    return tuple(
        fsum(share * tried[place][feature] for share, place in zip(shares, best)) / total
        for feature in range(len(START))
    )


def _normal(draw: Callable[[], float]) -> float:
    """Number of the normal distribution (Box and Muller)."""
    return sqrt(-2.0 * log(1.0 - draw())) * cos(2.0 * pi * draw())


def policy_of(weights: Weights, half_life_seconds: float, training: Training) -> Policy:
    """Policy with all features; weights have six digits, as they are written."""
    return Policy(tuple(FEATURES), _rounded(weights), half_life_seconds, training)


def _rounded(weights: Weights) -> Weights:
    return tuple(float(f"{weight:.6g}") for weight in weights)


def trained(
    size: Evolution,
    seed: int,
    evaluate: Evaluate,
    training: Training,
    note: Callable[[Generation], object] = lambda _generation: None,
) -> Policy:
    """Best on the same episodes of the last mean, all policies that were tried, and *latest*.

    ``training`` has scenarios, seeds and date.
    """
    generations = []
    for generation in evolve(size, seed, evaluate):
        generations.append(generation)
        note(generation)
    best = max(generations, key=lambda generation: generation.best_score).best
    ends = [_rounded(weights) for weights in (START, generations[-1].mean, best)]
    scores = evaluate(ends)
    before, score = scores[0], max(scores)
    method = f"evolution strategy, seed {seed}, {size.generations} generations of {size.population}"
    done = replace(training, score=score, score_before=before, method=method)
    return policy_of(ends[scores.index(score)], size.half_life_seconds, done)


def score_of(rewards: Sequence[float]) -> float:
    """Score of an episode: the mean reward of its steps."""
    return fmean(rewards)
