"""The twin that halts before each cycle of sharectl, and the verb that trains on it."""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from sharectl.cli.main import main
from sharectl.config.laws import with_laws
from sharectl.control.laws import Control, Move
from sharectl.control.learned import FEATURES
from sharectl.control.steering import SteeringConfig
from sharectl.cycle.record import record_of
from sharectl.ledger.export import TABLES
from sharectl.plan.plan import decide
from sharectl_lab.scenarios.file import load, parse
from sharectl_lab.scenarios.strategies import Strategy
from sharectl_lab.scenarios.strategy_file import read_strategies
from sharectl_lab.study.learning import OBSERVED, TwinEnv
from sharectl_lab.study.run import simulate
from sharectl_lab.study.stepped import (
    Episode,
    Halting,
    PolicyTrial,
    SteppedRun,
    control_of,
    scores,
)
from sharectl_lab.study.training import START, StepFigures
from sharectl_lab.twin.answers import figures_of
from sharectl_lab.twin.look import Looks, unix
from sharectl_lab.verbs import learn, tune

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
PERIOD_SECONDS = 300.0


@pytest.fixture(scope="module")
def episode() -> Episode:
    (live,) = read_strategies("live")
    return Episode(parse(SCENARIO, "small"), live, HOURS * 3600.0)


def figures(episode: Episode, control: Control, seed: int = 1) -> list[StepFigures]:
    run = Halting(episode, seed, lambda steering: replace(steering, control=control, by_group={}))
    steps = []
    while not run.is_over:
        steps.append(run.step())
    return steps


def test_an_agent_that_acts_as_a_policy_gets_its_figures(episode: Episode) -> None:
    """Limits, dwell, give-up and the deadband act on an agent as on every law."""
    twin = SteppedRun(episode)
    step = twin.reset(1)
    steps = []
    while not step.is_over:
        step = twin.step({group: values["error"] for group, values in step.values.items()})
        steps.append(step.figures)
    assert steps == figures(episode, control_of(START, 7200.0))
    assert len(steps) == int(HOURS * 3600 / PERIOD_SECONDS) - 1
    assert any(figure.churn_ratio > 0 for figure in steps)
    assert any(figure.shortfall_ratio > 0 for figure in steps)


def test_values_are_those_of_the_cycle_that_comes(episode: Episode) -> None:
    twin = SteppedRun(episode)
    step = twin.reset(2)
    assert {tuple(values) for values in step.values.values()} == {tuple(FEATURES)}
    before = dict(step.values)
    # The cycle's own look comes last before the next halt.
    seen = []
    act = twin._act  # noqa: SLF001 - what the law of the cycle is given

    def note(*arguments: Any) -> Move:
        move = act(*arguments)
        seen.append(dict(twin._values))  # noqa: SLF001
        return move

    assert twin._halting is not None  # noqa: SLF001
    loop = twin._halting.loop  # noqa: SLF001
    laws = {
        group: replace(control, loaded=lambda *rest, group=group: note(group, *rest))
        for group, control in loop.config.steering.by_group.items()
    }
    loop.config = replace(loop.config, steering=replace(loop.config.steering, by_group=laws))
    twin.step(dict.fromkeys(twin.groups, 0.0))
    assert seen[len(twin.groups) - 1] == before


def exported(twin: SteppedRun) -> tuple[list[dict[str, Any]], int, int]:
    """Rows of groups in the ledger's export, idle cores and all cores, if the cycle ran now."""
    assert twin._halting is not None  # noqa: SLF001
    loop, run = twin._halting.loop, twin._halting.run  # noqa: SLF001
    looks = Looks(run.twin.nodes, run.twin.kinds, run.meets)
    taken = looks.take(run.twin.now, run.twin.start_knobs, [0] * len(loop.nodes), {}).snapshot
    decision = decide(loop.config, loop.state, taken, unix(run.twin.now))
    record = record_of(loop.config, taken, decision, decision.plan, ())
    rows = {
        name: [dict(zip(TABLES[name].columns, row)) for row in TABLES[name].rows(record)]
        for name in ("groups", "cycles", "nodes")
    }
    cores = sum(int(node["cores"] or 0) for node in rows["nodes"])
    return list(rows["groups"]), int(rows["cycles"][0]["idle_cores"] or 0), cores


def by_size(row: dict[str, Any], column: str) -> dict[int, int]:
    pairs = (pair.split(":") for pair in row[column].split())
    return {int(cores): int(jobs) for cores, jobs in pairs}


def test_an_observation_is_made_of_columns_of_the_ledger(episode: Episode) -> None:
    env = TwinEnv(twin := SteppedRun(episode))
    seen, _ = env.reset(seed=3)
    errors: dict[str, float] = {}
    means: dict[str, float] = {}
    for cycle in range(9):
        rows, idle, cores = exported(twin)
        sums = [sum(row[name] for row in rows) for name in ("power_hs06", "setpoint_hs06")]
        for number, row in enumerate(rows):
            group, error = row["group"], row["control_error_hs06"] / max(sums)
            pending, never = by_size(row, "pending_by_size"), by_size(row, "unplaceable_by_size")
            waiting = {size: jobs - never.get(size, 0) for size, jobs in pending.items()}
            multi = sum(size * jobs for size, jobs in waiting.items() if size > 1)
            kept = 2 ** (-PERIOD_SECONDS / 7200)
            means[group] = means.get(group, error) * kept + error * (1 - kept)
            columns = {
                "error": error,
                "mean": means[group],
                "trend": (error - errors.get(group, error)) * 7200 / PERIOD_SECONDS,
                "setpoint": row["setpoint_hs06"] / max(sums),
                "single": min(1, waiting.get(1, 0) / cores),
                "multi": min(1, multi / cores),
                "idle": idle / cores,
            }
            errors[group] = error
            assert tuple(columns) == tuple(OBSERVED)
            of_past = ("mean", "trend") if cycle == 0 else ()
            for place, (name, value) in enumerate(columns.items()):
                if name not in of_past:
                    assert seen[number, place] == pytest.approx(value, abs=1e-5), (cycle, name)
            if cycle == 0:
                means[group] = float(seen[number, 1])
        seen, *_ = env.step(np.zeros(len(rows), np.float32))


def test_a_real_twin_passes_the_checks_of_gymnasium(episode: Episode) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*spec.*")
        check_env(TwinEnv(SteppedRun(episode)), skip_render_check=True)


def test_an_agent_steers(episode: Episode) -> None:
    """Power that is taken from alice all the time is hers no more, and cms has it."""
    errors = []
    for sign in (1.0, -1.0):
        env = TwinEnv(SteppedRun(episode))
        env.reset(seed=1)
        total, is_over = 0.0, False
        while not is_over:
            seen, _, _, is_over, _ = env.step(np.asarray([sign, -sign], np.float32))
            total += float(seen[0, 0])
        errors.append(total)
    assert errors[0] < 0 < errors[1]


def test_the_reward_is_the_shortfall_and_the_idle_cores_beyond_those_without_sharectl(
    episode: Episode,
) -> None:
    """Without grace, a law that moves nothing leaves the shortfall of `nothing`, and its idle."""
    bare = replace(episode, strategy=replace(episode.strategy, grace=False))
    weights = (0.0,) * len(FEATURES)
    nothing = figures_of(simulate(bare.scenario, Strategy("nothing", ""), 1, bare.seconds))
    assert nothing.shortfall_mean_ratio > 0.1
    mean = fmean(step.shortfall_ratio for step in figures(bare, control_of(weights, 7200.0)))
    assert mean == pytest.approx(nothing.shortfall_mean_ratio, abs=0.01)
    (reward,) = scores([PolicyTrial(bare, 1, weights, 7200.0)], lambda _part: None)
    assert nothing.idle_ratio > 0.001
    assert reward == pytest.approx(-mean, abs=0.0005)


@pytest.mark.parametrize("verb", [learn, tune])
def test_the_scenario_of_the_examples_has_something_to_gain(verb: ModuleType) -> None:
    name = re.findall(r"sharectl (?:learn|tune) (\S+)", verb._EPILOG)[0]  # noqa: SLF001
    scenario = load(name)
    (nothing, live) = (
        figures_of(simulate(scenario, read_strategies(how)[0], 1, 86_400.0))
        for how in ("nothing", "live")
    )
    assert nothing.shortfall_rms_ratio > 0.1
    assert live.shortfall_rms_ratio < nothing.shortfall_rms_ratio / 1.5


def test_a_strategy_without_cycles_has_no_steps(episode: Episode) -> None:
    (nothing,) = read_strategies("nothing")
    with pytest.raises(ValueError, match="no cycles of sharectl"):
        Halting(replace(episode, strategy=nothing), 1, lambda steering: steering)


def test_learn_writes_a_policy_that_a_configuration_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario, policy = tmp_path / "small.yaml", tmp_path / "policy.json"
    scenario.write_text(SCENARIO, encoding="utf-8")
    size = ("--hours", "2", "--seeds", "1", "--generations", "1", "--population", "2")
    command = ["learn", str(scenario), "-o", str(policy), *size, "--date", "2026-01-01"]
    texts = []
    for jobs in ("1", "2"):
        assert main([*command, "--jobs", jobs]) == 0
        texts.append(policy.read_text(encoding="utf-8"))
    assert texts[0] == texts[1]
    assert capsys.readouterr().out.startswith(f"{policy}: score -0.")
    training = json.loads(texts[0])["training"]
    assert (training["scenarios"], training["seeds"]) == (["small"], [1])
    assert training["date"] == "2026-01-01"
    law = with_laws(SteeringConfig(Control("learned", policy=policy))).control.loaded
    assert law is not None


def test_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = str(tmp_path / "policy.json")
    for words, code, message in (
        (("learn", "small-site"), 2, "-o/--output"),
        (("learn", "small-site", "-o", policy, "--strategy", "nothing"), 2, "sharectl runs"),
        (("learn", "small-site", "-o", policy, "--hours", "0"), 2, "whole number from 1"),
        (("learn", "small-site", "-o", policy, "--date", "a\nb"), 2, "--date is one line"),
        (("learn", "no-such-site", "-o", policy), 78, "no-such-site"),
    ):
        try:
            ended = main(list(words))
        except SystemExit as error:
            ended = int(error.code or 0)
        assert (ended, message in capsys.readouterr().err) == (code, True), words
