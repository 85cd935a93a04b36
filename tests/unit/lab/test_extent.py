"""Scenarios that would not end, and large ones that do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sharectl.errors import ConfigError, SettingError
from sharectl_lab.scenarios import file
from sharectl_lab.scenarios.extent import MOST_STEPS, steps_of
from sharectl_lab.scenarios.strategies import read_strategies
from sharectl_lab.study.run import Run

SCENARIO = """\
nodes: [{name: wn, cores: 48, count: 9}]
groups: {alice: {pledge_hs06: 300}}
jobs: [{group: alice, run_time: 600, JOBS}]
warmup_hours: 1
days: 1
"""
BURSTS = ["{length_hours: 1, factor: 1000000}"] * 60
ENDLESS = [
    "per_hour: 1000000000",
    "at_start: 10000000",
    "keep_pending: 10000000",
    "per_hour: 1, users: 10000, access_points: 1000",
    "per_hour: 9, phases: [{length_hours: 1.0e-13, every_hours: 1.0e-12}]",
    "per_hour: 9, phases: [{length_hours: 1.0e-7, every_hours: 2.0e-7}]",
    f"per_hour: 9, phases: [{', '.join(BURSTS)}]",
    "keep_pending: 100000, factory_seconds: 1, run_time: 1.0e-6",
    "keep_pending: 100000, factory_seconds: 1, run_time: 'log-normal:1,1000000'",
]


@pytest.mark.parametrize("jobs", ENDLESS)
def test_a_stream_without_end_is_refused_with_its_line(jobs: str) -> None:
    text = SCENARIO.replace("JOBS", jobs)
    if "run_time" in jobs:
        text = text.replace("run_time: 600, ", "")
    with pytest.raises(ConfigError, match=r"mine:3: jobs\[0\]: .* too many for one run; "):
        file.parse(text, "mine")


@pytest.mark.parametrize(
    "setting",
    [
        "nodes=[{name: wn, cores: 1000, count: 100000, slots: 1000}]",
        "loop.period_seconds=1 warmup_hours=100000 days=10000",
        "negotiator.interval_seconds=1 days=10000",
        "sample_seconds=1 days=1000",
    ],
)
def test_a_setting_without_end_is_refused(setting: str) -> None:
    settings = setting.split(" ") if "{" not in setting else [setting]
    with pytest.raises(SettingError, match="too many for one run"):
        file.changed(file.parse(SCENARIO.replace("JOBS", "per_hour: 1"), "mine"), settings)


@pytest.mark.parametrize(
    "strategy", ["live:period_seconds=1", "defrag:interval_seconds=1", "nothing"]
)
def test_a_run_of_a_strategy_or_of_more_days_is_refused_before_it_begins(strategy: str) -> None:
    scenario = file.load("infn-t1")
    days = 1e6 if strategy == "nothing" else 30.0
    with pytest.raises(ConfigError, match=r"infn-t1: .*too many for one run"):
        Run(replace(scenario, days=days), read_strategies(strategy)[0], 1)


@pytest.mark.parametrize("name", file.SHIPPED)
def test_a_year_of_a_shipped_scenario_is_allowed(name: str) -> None:
    scenario = replace(file.load(name), days=365.0, warmup_hours=365 * 24.0)
    steps = sum(steps for _, steps in steps_of(scenario, scenario.end_seconds))
    assert MOST_STEPS / 1000 < steps < MOST_STEPS
