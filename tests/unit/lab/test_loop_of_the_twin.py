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
from sharectl_lab.twin.settings import Loop
from tests import laws

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


def steered(
    scenario: Scenario, loop: Loop, strategy: str = "live"
) -> tuple[Counter[str], set[str]]:
    """Cores and nodes of a run with such a loop."""
    return watched(Run(replace(scenario, loop=loop), read_strategies(strategy)[0], 1))


@pytest.mark.parametrize("strategy", ["live", "cron"])
def test_the_loop_moves_cores_to_the_group_that_starves(scenario: Scenario, strategy: str) -> None:
    starved, none = watched(Run(scenario, read_strategies("nothing")[0], 1))
    loop = replace(scenario.loop, job_ctl_seconds=60.0)
    helped, aimed = steered(scenario, loop, strategy)
    assert not none
    assert aimed
    assert helped["cms"] > 1.5 * starved["cms"] + 100


@pytest.mark.parametrize(
    "broken", [{"failing_ratio": 1.0}, {"deaf_ratio": 1.0}, {"transport_seconds": 700.0}]
)
def test_no_target_acts_if_cycles_fail_or_plans_come_too_late(
    scenario: Scenario, broken: dict[str, float]
) -> None:
    _, aimed = steered(scenario, replace(scenario.loop, **broken))
    assert not aimed


def test_a_law_that_fails_is_in_the_note(scenario: Scenario) -> None:
    """Without it the strategy looks as one that found nothing to do."""
    run = Run(scenario, read_strategies("live")[0], 1)
    assert run.steering is not None
    failed = Control("odd", loaded=laws.broken(None))
    run.steering.config = replace(run.steering.config, steering=SteeringConfig(failed))
    run.until(run.begin + 2 * 3600.0)
    outcome = run.outcome()
    words = f"live, seed 1: {outcome.plans} cycles with a failed law: group "
    assert (outcome.note or "").startswith(words)


def test_a_node_of_several_slots_is_never_steered(scenario: Scenario) -> None:
    """Plans leave it out, in cron mode too, where job_ctl counts the jobs of a whole node."""
    nodes = (replace(scenario.nodes[0], slots=2),)
    _, aimed = steered(replace(scenario, nodes=nodes), scenario.loop, "cron")
    assert not aimed


def test_condor_defrag_empties_nodes_and_jobs_run_there_again(scenario: Scenario) -> None:
    (defrag,) = read_strategies("defrag:defrag.machines_per_hour=6:defrag.max_concurrent=2")
    run = Run(scenario, defrag, 1)
    draining, resumed = 0, 0
    before: set[int] = set()
    for minute in range(60 * HOURS):
        run.until(60.0 * minute)
        now = {node.number for node in run.twin.nodes if node.draining}
        draining, resumed = max(draining, len(now)), resumed + len(before - now)
        before = now
    assert 1 <= draining <= 2
    assert resumed >= 4
    assert run.twin.counts["drained_nodes"] >= resumed
    assert run.twin.measures["cms"].starts[8] > 4
