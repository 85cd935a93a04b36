"""Training of a policy on the twin: scores of episodes, and a seeded evolution strategy.

Each generation tries policies around the present one, in pairs that differ from it by a step either
way; the next one is the mean of the best half, better ones counting more. Plain numbers and
`Random.random` alone make a seed give the same policy everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import cos, floor, fsum, inf, log, pi, sqrt
from random import Random  # noqa: TID251 - with a seed
from statistics import fmean
from typing import Any, Callable, NamedTuple

from sharectl.control.laws import Control
from sharectl.control.learned import FEATURES, Policy
from sharectl.errors import InputError
from sharectl.model import OTHER
from sharectl.shares.errors import shortfalls_hs06
from sharectl_lab.scenarios.strategies import Strategy
from sharectl_lab.study.run import Episode, Progress, Run, simulate
from sharectl_lab.twin.answers import NOTHING, WASTE, figures_of

EARLY_SECONDS = 0.001
"""Time before a cycle at which the twin halts."""
HALF_LIFE_SECONDS = 7200.0
"""Of the average of the error, in each policy."""
CHURN_PRICE = 0.02
"""Price of changed targets, by nodes; that of a shortfall and of idle cores is 1."""


class StepFigures(NamedTuple):
    """Time between two cycles of sharectl, as parts of 1."""

    shortfall_ratio: float
    """Power that was due to groups and that they did not use, by the power present."""
    idle_ratio: float
    """Core-seconds idle while jobs were pending that could run, by the pool's."""
    churn_ratio: float
    """Targets that changed, by nodes."""

    @property
    def reward(self) -> float:
        """Reward of a step, at most 0."""
        return -(self.shortfall_ratio + self.idle_ratio + CHURN_PRICE * self.churn_ratio)


def steps_of(episode: Episode, seed: int, control: Control) -> list[StepFigures]:
    """Figures between each two cycles with one law; InputError if no job of a group ran."""
    run = Run(episode.scenario, episode.strategy, seed)
    if run.steering is None:
        raise ValueError(f"strategy {episode.strategy.name} has no cycles of sharectl")
    steering = replace(run.steering.config.steering, control=control, by_group={})
    run.steering.config = replace(run.steering.config, steering=steering)
    period = episode.strategy.loop_of(episode.scenario.loop).period_seconds
    cores = sum(node.spec.cores for node in run.twin.nodes)
    # It halts before a cycle, so that a step has the whole effect of the one before.
    halt = period * (floor(run.begin / period) + 1) - EARLY_SECONDS
    run.until(halt)
    steps, before = [], _sums(run)
    while (halt := halt + period) <= run.end:
        run.until(halt)
        after = _sums(run)
        power = {name: (work - before.work[name]) / period for name, work in after.work.items()}
        present_hs06, due = run.twin.due_hs06(power)
        missing_hs06 = fsum(shortfalls_hs06(due, power).values())
        figures = StepFigures(
            shortfall_ratio=missing_hs06 / present_hs06 if present_hs06 > 0 else 0.0,
            idle_ratio=(after.idle - before.idle) / (cores * period),
            churn_ratio=(after.changed - before.changed) / len(run.twin.nodes),
        )
        steps.append(figures)
        before = after
    if not any(work for group, work in before.work.items() if group != OTHER):
        raise InputError([f"{episode.scenario.name}: {NOTHING}"])
    return steps


class _Sums(NamedTuple):
    """Work of each group, wasted core-seconds and changed targets so far."""

    work: Mapping[str, float]
    idle: float
    changed: float


def _sums(run: Run) -> _Sums:
    twin = run.twin
    twin.idle.settle(twin.now)
    for measure in twin.measures.values():
        measure.use(twin.now, 0, 0.0)
    work = {group: measure.work for group, measure in twin.measures.items()}
    idle = fsum(twin.idle.seconds[cause] for cause in WASTE)
    return _Sums(work, idle, twin.counts["changed_targets"])


class Case(NamedTuple):
    """Episode with a seed."""

    episode: Episode
    seed: int
    idle_ratio: float = 0.0
    """Part of the pool's core-seconds that is idle without sharectl on the same jobs."""


def with_idle(case: Case, _progress: Progress) -> Case:
    """Case with the idle ratio of the strategy `nothing`."""
    outcome = simulate(case.episode.scenario, Strategy("", name="nothing"), case.seed)
    return case._replace(idle_ratio=figures_of(outcome).idle_ratio)


def score(case: Case, weights: Weights, _progress: Progress) -> float:
    """Mean reward of a policy; only cores idle beyond those without sharectl count."""
    control = Control("learned", loaded=policy_of(weights))
    steps = steps_of(case.episode, case.seed, control)
    return fmean(step.reward for step in steps) + case.idle_ratio


# ---- evolution

POPULATION = 8
"""Policies of a generation, in pairs."""
DECAY = 0.85
"""Factor of the standard deviations from one generation to the next."""
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
Weights = tuple[float, ...]
Evaluate = Callable[[Sequence[Weights]], Sequence[float]]
"""Mean reward of each of several policies, on the same episodes."""

START: Weights = tuple(float(name == "error") for name in FEATURES)
"""Weights of the law *latest*."""
NEW: Mapping[str, Any] = {}
"""Origin of a policy that is being trained."""


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


def policy_of(weights: Weights, training: Mapping[str, Any] = NEW) -> Policy:
    """Policy with all features; weights have six digits, as they are written."""
    rounded = tuple(float(f"{weight:.6g}") for weight in weights)
    return Policy(tuple(FEATURES), rounded, HALF_LIFE_SECONDS, training)


def trained(
    generations: int,
    seed: int,
    evaluate: Evaluate,
    training: Mapping[str, Any] = NEW,
    note: Callable[[int, float], object] = lambda _number, _score: None,
) -> Policy:
    """Best on the same episodes of the last mean, all policies that were tried, and *latest*.

    ``training`` has scenarios and seeds; ``note`` gets number and best score of a generation.
    """
    draw = Random(f"{seed}/evolution").random
    mean, sigma = START, 1.0
    best_score, best = -inf, START
    for number in range(1, generations + 1):
        tried: list[Weights] = []
        for _ in range(POPULATION // 2):
            step = [sigma * spread * _normal(draw) for spread in FIRST_STEP.values()]
            tried += [
                tuple(weight + sign * part for weight, part in zip(mean, step)) for sign in (1, -1)
            ]
        scores = evaluate(tried)
        mean = recombined(tried, scores)
        sigma *= DECAY
        note(number, max(scores))
        if max(scores) > best_score:
            best_score, best = max(scores), tried[scores.index(max(scores))]
    ends = [policy_of(weights) for weights in (START, mean, best)]
    scores = evaluate([policy.weights for policy in ends])
    method = f"evolution strategy, seed {seed}, {generations} generations of {POPULATION}"
    done = {**training, "score": max(scores), "score_before": scores[0], "method": method}
    return replace(ends[scores.index(max(scores))], training=done)
