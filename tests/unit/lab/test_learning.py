"""The environment of learners, and the training of policies, on a twin of three lines."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from math import isclose

import numpy as np
import pytest

from sharectl.control.learned import FEATURES, Training
from sharectl_lab.study.learning import OBSERVED, TwinEnv
from sharectl_lab.study.training import (
    FIRST_STEP,
    START,
    Evolution,
    RewardWeights,
    Step,
    StepFigures,
    Weights,
    evolve,
    recombined,
    trained,
)

GROUPS = ("alice", "cms", "lhcb")
NONE = Training((), (), "", 0.0, 0.0, "")


class ToyTwin:
    """Groups whose errors drift, and become smaller by what is moved."""

    groups = GROUPS

    def __init__(self) -> None:
        self.outputs: list[Mapping[str, float]] = []

    def reset(self, seed: int) -> Step:
        self._draw = random.Random(seed).random
        self._errors = {group: self._draw() - 0.5 for group in GROUPS}
        self._cycles = 0
        return self._step()

    def step(self, outputs: Mapping[str, float]) -> Step:
        self.outputs.append(outputs)
        self._cycles += 1
        for group in GROUPS:
            self._errors[group] += 0.1 * (self._draw() - 0.5) - 0.5 * outputs[group]
        return self._step()

    def _step(self) -> Step:
        error = sum(map(abs, self._errors.values())) / 6
        values = {
            group: {**dict.fromkeys(FEATURES, 0.0), "error": self._errors[group]}
            for group in GROUPS
        }
        return Step(values, StepFigures(error, 0.1, 0.25), is_over=self._cycles == 20)


def test_an_observation_is_a_row_of_figures_for_each_group() -> None:
    env = TwinEnv(ToyTwin())
    observation, info = env.reset(seed=3)
    assert (observation.shape, info) == ((3, len(OBSERVED)), {"seed": 3})
    assert set(OBSERVED) <= set(FEATURES)
    assert observation[0, 0] == pytest.approx(random.Random(3).random() - 0.5)


def test_a_step_moves_power_between_groups_and_has_the_stated_reward() -> None:
    twin = ToyTwin()
    env = TwinEnv(twin, RewardWeights(shortfall=1.0, idle=2.0, churn=4.0))
    env.reset(seed=1)
    _, reward, ended, cut, figures = env.step(np.asarray([0.5, 0.5, 0.2], np.float32))
    moved = twin.outputs[0]
    assert list(moved) == list(GROUPS)
    assert sum(moved.values()) == pytest.approx(0, abs=1e-7)
    assert moved["alice"] - moved["lhcb"] == pytest.approx(0.3)
    assert (figures["idle_ratio"], figures["churn_ratio"]) == (0.1, 0.25)
    assert isclose(reward, -(figures["shortfall_ratio"] + 2 * 0.1 + 4 * 0.25))
    assert (ended, cut) == (False, False)
    for _ in range(19):
        _, _, ended, cut, _ = env.step(np.zeros(3, np.float32))
    assert (ended, cut) == (False, True)


def test_a_seed_is_drawn_from_the_one_before() -> None:
    seeds = []
    for _ in range(2):
        env = TwinEnv(ToyTwin())
        env.reset(seed=7)
        seeds.append([env.reset()[1]["seed"] for _ in range(3)])
    assert seeds[0] == seeds[1]
    assert len(set(seeds[0])) == 3


# ---- training

WANTED = tuple(0.5 if name == "error" else 0.1 for name in FEATURES)


def distances(policies: Sequence[Weights]) -> list[float]:
    """Scores: 0 at `WANTED`, less the further away."""
    return [
        -sum(abs(weight - goal) for weight, goal in zip(weights, WANTED)) for weights in policies
    ]


def test_training_comes_nearer_to_the_best_policy_and_says_how_much() -> None:
    policy = trained(Evolution(40, 16, decay=0.95), 1, distances, NONE)
    assert policy.training.score_before == distances([START])[0]
    assert policy.training.score == distances([policy.weights])[0]
    assert policy.training.score > policy.training.score_before / 2
    assert policy.features == tuple(FEATURES)
    assert policy.training.method == "evolution strategy, seed 1, 40 generations of 16"


def test_a_seed_gives_the_same_policy() -> None:
    first, again, other = (trained(Evolution(3, 4), seed, distances, NONE) for seed in (5, 5, 6))
    assert first == again
    assert first.weights != other.weights
    # On every Python.
    (generation,) = evolve(Evolution(1, 2), 5, distances)
    assert generation.mean[0] == pytest.approx(0.8390528830672642, rel=1e-12)


def test_a_policy_that_is_worse_than_latest_is_not_written() -> None:
    def best_at_start(policies: Sequence[Weights]) -> list[float]:
        return [-sum(abs(w - s) for w, s in zip(weights, START)) for weights in policies]

    policy = trained(Evolution(2, 4), 1, best_at_start, NONE)
    assert policy.weights == START
    assert policy.training.score == policy.training.score_before == 0


def test_the_best_policy_that_was_tried_is_written() -> None:
    """The mean of a generation may be worse than all of it."""
    tried: list[Weights] = []

    def best_is_second(policies: Sequence[Weights]) -> list[float]:
        tried.extend(weights for weights in policies if weights not in tried)
        return [float(place == 1) for place in map(rounded_place, policies)]

    def rounded_place(weights: Weights) -> int:
        near = [n for n, one in enumerate(tried) if one == pytest.approx(weights, rel=1e-5)]
        return near[0]

    policy = trained(Evolution(2, 4), 1, best_is_second, NONE)
    assert policy.weights == pytest.approx(tried[1], rel=1e-5)
    assert (policy.training.score, policy.training.score_before) == (1.0, 0.0)


def test_the_better_half_counts_by_rank() -> None:
    tried = [(float(number),) * len(START) for number in range(4)]
    mean = recombined(tried, [0.0, 3.0, 1.0, 2.0])
    # Ranks: 1, 3; log 3 and log 3 - log 2.
    assert mean[0] == pytest.approx((1.0986 * 1 + 0.4055 * 3) / 1.5041, rel=1e-3)
    assert recombined(tried, [1.0] * 4)[0] < 1


def test_every_feature_has_a_step() -> None:
    assert list(FIRST_STEP) == list(FEATURES)


def test_a_law_that_acts_needs_no_library_of_learners() -> None:
    code = "import sys, sharectl.control.learned, sharectl_lab.study.training; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"numpy", "gymnasium"}.isdisjoint(done.stdout.split())
