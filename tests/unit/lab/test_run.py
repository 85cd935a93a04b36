"""Runs of a small scenario with each way to run a pool."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.twin import scaled
from sharectl_lab.scenarios import file
from sharectl_lab.scenarios.scenario import Scenario
from sharectl_lab.scenarios.strategies import USUAL, read_strategies
from sharectl_lab.study.run import Run, simulate
from sharectl_lab.twin.answers import figures_of

TEXT = """
nodes: [{name: wn, count: 6, cores: 16}]
groups: {alice: {pledge_hs06: 480}, cms: {pledge_hs06: 480}}
negotiator: {quotas: static}
loop: {period_seconds: 120}
jobs:
  - {group: alice, run_time: "exponential:3000", keep_pending: 100}
  - {group: cms, cores: 8, run_time: "constant:6000", keep_pending: 20}
warmup_hours: 2
days: 0.5
"""
SECONDS = 12 * 3600.0


@pytest.fixture
def scenario() -> Scenario:
    return file.parse(TEXT, "six-nodes")


@pytest.mark.parametrize("name", ["nothing", "static", "grace", "cron", "live"])
def test_a_run_accounts_for_every_core_second(scenario: Scenario, name: str) -> None:
    (strategy,) = read_strategies(name)
    outcome = simulate(scenario, strategy, 1)
    assert outcome.complete
    assert (outcome.strategy, outcome.seconds) == (name, SECONDS)
    assert len(outcome.times) == SECONDS / scenario.sample_seconds
    used = sum(sum(group.cores) for group in outcome.groups.values()) * scenario.sample_seconds
    idle = sum(outcome.idle_core_seconds.values())
    assert used + idle == pytest.approx(96 * SECONDS)
    assert (outcome.plans > 0) == (name in {"cron", "live"})


def test_a_run_that_is_interrupted_has_the_figures_until_then(scenario: Scenario) -> None:
    (nothing,) = read_strategies("nothing")

    def interrupt(done: float) -> None:
        if done > 0.5:
            raise KeyboardInterrupt

    outcome = simulate(scenario, nothing, 1, progress=interrupt)
    assert not outcome.complete
    assert 0 < outcome.seconds < SECONDS
    assert len(outcome.groups["cms"].cores) == len(outcome.times)


def test_where_multicore_work_comes_and_goes_live_has_least_error_and_idles_least() -> None:
    """`infn-t1` at a fiftieth for one turn of its multicore work.

    condor_defrag drains nearly as many nodes as live steers.
    """
    small = replace(scaled(file.load("infn-t1"), 0.02), days=4.0)
    defrag = "defrag:machines_per_hour=24:max_concurrent=2:max_whole=8"
    nothing, static, defragged, live = (
        figures_of(simulate(small, read_strategies(name)[0], 1, 4 * 86_400.0))
        for name in ("nothing", "static", defrag, "live")
    )
    for other in (static, defragged):
        assert other.multicore_starts > 1.5 * nothing.multicore_starts, "it makes room"
        assert live.shortfall_rms_ratio < other.shortfall_rms_ratio
        assert live.idle_core_hours < other.idle_core_hours


def test_with_an_equal_start_strategies_act_from_one_pool_on(scenario: Scenario) -> None:
    pools: set[tuple[tuple[str, float], ...]] = set()
    later: set[tuple[tuple[str, float], ...]] = set()
    for strategy in read_strategies(",".join(USUAL)):
        run = Run(scenario, strategy, 1, equal_start=True)
        for time, seen in ((run.begin, pools), (run.end, later)):
            run.twin.run(time, before=True)
            claims = [claim for slot in run.twin.slots for claim in slot.claims]
            seen.add(tuple((claim.kind.account, claim.run_until) for claim in claims))
    assert len(pools) == 1 < len(later)
