"""Training of policies, and the verb that trains on the twin."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest

from sharectl.cli.main import main
from sharectl.config.laws import with_laws
from sharectl.control.laws import Control
from sharectl.control.learned import FEATURES
from sharectl.control.steering import SteeringConfig
from sharectl_lab.scenarios.file import load, parse
from sharectl_lab.scenarios.strategies import Strategy, read_strategies
from sharectl_lab.study.run import Episode, simulate
from sharectl_lab.study.training import (
    START,
    Case,
    StepFigures,
    Weights,
    policy_of,
    score,
    steps_of,
    trained,
    with_idle,
)
from sharectl_lab.twin.answers import figures_of
from sharectl_lab.verbs import learn, tune
from tests.verbs import run

WANTED = tuple(0.5 if name == "error" else 0.1 for name in FEATURES)
SCENARIO = """
nodes: [{name: wn, count: 4, cores: 16, hs06_per_core: 10}]
groups: {alice: {pledge_hs06: 300}, cms: {pledge_hs06: 300}}
jobs:
  - {group: alice, run_time: "exponential:3600", keep_pending: 20}
  - {group: cms, cores: 8, run_time: "exponential:7200", keep_pending: 5}
control: {deadband_hs06: 0}
warmup_hours: 2
days: 1
"""
HOURS = 8


@pytest.fixture(scope="module")
def episode() -> Episode:
    (live,) = read_strategies("live")
    return Episode(replace(parse(SCENARIO, "small"), days=HOURS / 24), live)


def distances(policies: Sequence[Weights]) -> list[float]:
    """Scores: 0 at `WANTED`, less the further away."""
    return [
        -sum(abs(weight - goal) for weight, goal in zip(weights, WANTED)) for weights in policies
    ]


def test_training_comes_nearer_to_the_best_policy_and_says_how_much() -> None:
    policy = trained(40, 1, distances)
    assert policy.training["score_before"] == distances([START])[0]
    assert policy.training["score"] == distances([policy.weights])[0]
    assert policy.training["score"] > policy.training["score_before"] / 2
    assert policy.features == tuple(FEATURES)
    assert policy.training["method"] == "evolution strategy, seed 1, 40 generations of 8"


def test_a_seed_gives_the_same_policy() -> None:
    first, again, other = (trained(3, seed, distances) for seed in (5, 5, 6))
    assert first == again
    assert first.weights != other.weights
    tried: list[Sequence[Weights]] = []

    def noted(policies: Sequence[Weights]) -> list[float]:
        tried.append(policies)
        return distances(policies)

    trained(1, 5, noted)
    assert tried[1][1][0] == 0.888579, "the mean, on every Python"


def test_a_policy_that_is_worse_than_latest_is_not_written() -> None:
    def best_at_start(policies: Sequence[Weights]) -> list[float]:
        return [-sum(abs(w - s) for w, s in zip(weights, START)) for weights in policies]

    policy = trained(2, 1, best_at_start)
    assert policy.weights == START
    assert policy.training["score"] == policy.training["score_before"] == 0


# ---- on the twin


def test_a_step_has_the_stated_reward(episode: Episode) -> None:
    assert StepFigures(0.5, 0.25, 0.1).reward == pytest.approx(-(0.5 + 0.25 + 0.02 * 0.1))
    steps = steps_of(episode, 1, Control("learned", loaded=policy_of(START)))
    assert len(steps) == HOURS * 12 - 1
    assert any(step.churn_ratio > 0 for step in steps)
    assert any(step.shortfall_ratio > 0 for step in steps)


def test_the_score_is_the_shortfall_and_the_idle_cores_beyond_those_without_sharectl(
    episode: Episode,
) -> None:
    """Without grace, a law that moves nothing leaves the shortfall of `nothing`, and its idle."""
    bare = replace(episode, strategy=replace(episode.strategy, grace=False))
    weights = (0.0,) * len(FEATURES)
    nothing = figures_of(simulate(bare.scenario, Strategy("", name="nothing"), 1))
    assert nothing.shortfall_mean_ratio > 0.1
    steps = steps_of(bare, 1, Control("learned", loaded=policy_of(weights)))
    mean = fmean(step.shortfall_ratio for step in steps)
    assert mean == pytest.approx(nothing.shortfall_mean_ratio, abs=0.01)
    case = with_idle(Case(bare, 1), print)
    assert case.idle_ratio == nothing.idle_ratio > 0.001
    assert score(case, weights, print) == pytest.approx(-mean, abs=0.0005)


def test_the_scenario_of_the_examples_has_something_to_gain() -> None:
    examples = learn._EPILOG + tune._EPILOG  # noqa: SLF001
    name = re.findall(r"sharectl (?:learn|tune) (\S+)", examples)[0]
    scenario = load(name)
    (nothing, live) = (
        figures_of(simulate(scenario, read_strategies(how)[0], 1, 86_400.0))
        for how in ("nothing", "live")
    )
    assert nothing.shortfall_rms_ratio > 0.1
    assert live.shortfall_rms_ratio < nothing.shortfall_rms_ratio / 1.5


def test_learn_writes_a_policy_that_a_configuration_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario, policy = tmp_path / "small.yaml", tmp_path / "policy.json"
    scenario.write_text(SCENARIO, encoding="utf-8")
    size = ("--hours", "2", "--seeds", "1", "--generations", "1")
    texts = []
    for jobs in ("1", "2"):
        assert main(["learn", str(scenario), "-o", str(policy), *size, "--jobs", jobs]) == 0
        texts.append(policy.read_text(encoding="utf-8"))
    assert texts[0] == texts[1]
    assert capsys.readouterr().out.startswith(f"{policy}: score -0.")
    training = json.loads(texts[0])["training"]
    assert (training["scenarios"], training["seeds"]) == (["small"], [1])
    law = with_laws(SteeringConfig(Control("learned", policy=policy))).control.loaded
    assert law is not None


def test_mistakes(tmp_path: Path) -> None:
    policy = str(tmp_path / "policy.json")
    for words, code, message in (
        (("learn", "small-site"), 2, "-o/--output"),
        (("learn", "small-site", "-o", policy, "--strategy", "nothing"), 2, "sharectl runs"),
        (("learn", "small-site", "-o", policy, "--hours", "0"), 2, "whole number from 1"),
        (("learn", "no-such-site", "-o", policy), 2, "no-such-site"),
    ):
        ended = run(words)
        assert (ended.code, message in ended.err) == (code, True), words
