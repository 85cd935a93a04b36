"""The sharectl loop and condor_defrag on the real engine, with all that may go wrong."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from sharectl.control.laws import Control
from sharectl.control.steering import SteeringConfig
from sharectl_lab.scenarios import file
from sharectl_lab.scenarios.scenario import Scenario
from sharectl_lab.scenarios.strategies import read_strategies
from sharectl_lab.study.run import Run

TEXT = """
nodes: [{name: wn, count: 8, cores: 16}]
groups: {alice: {pledge_hs06: 640}, cms: {pledge_hs06: 640}}
validity_seconds: 600
loop: {period_seconds: 200}
jobs:
  - {group: alice, run_time: "exponential:2000", keep_pending: 200}
  - {group: cms, cores: 8, run_time: "constant:3000", keep_pending: 20,
     phases: [{length_hours: 1}]}
warmup_hours: 0
days: 0.5
"""
HOURS = 6


@pytest.fixture
def scenario() -> Scenario:
    return file.parse(TEXT, "eight-nodes")


def watched(run: Run) -> tuple[Counter[str], set[str]]:
    """Cores of each group, summed over looks each minute, and nodes that ever had a target."""
    cores: Counter[str] = Counter()
    aimed: set[str] = set()
    for minute in range(60 * HOURS):
        run.until(60.0 * minute)
        cores.update({name: measure.cores for name, measure in run.twin.measures.items()})
        aimed.update(slot.node.spec.name for slot in run.twin.slots if slot.target is not None)
    return cores, aimed


@pytest.mark.parametrize("strategy", ["live", "cron"])
def test_the_loop_moves_cores_to_the_group_that_starves(scenario: Scenario, strategy: str) -> None:
    starved, none = watched(Run(scenario, read_strategies("nothing")[0], 1))
    scenario = replace(scenario, loop=replace(scenario.loop, job_ctl_seconds=60.0))
    helped, aimed = watched(Run(scenario, read_strategies(strategy)[0], 1))
    assert not none
    assert aimed
    assert helped["cms"] > 1.5 * starved["cms"] + 100


def test_a_law_that_fails_is_in_the_note(scenario: Scenario) -> None:
    """Without it the strategy looks as one that found nothing to do."""
    run = Run(scenario, read_strategies("live")[0], 1)
    assert run.steering is not None
    failed = Control("learned")
    run.steering.config = replace(run.steering.config, steering=SteeringConfig(failed))
    run.until(run.begin + 2 * 3600.0)
    outcome = run.outcome()
    words = f"live, seed 1: {outcome.plans} cycles with a failed law: group "
    assert (outcome.note or "").startswith(words)
