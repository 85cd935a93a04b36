"""No strategy has a smaller shortfall than the bound, whatever the pool and its jobs."""

from __future__ import annotations

from math import fsum

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from sharectl_lab.scenarios.file import scenario_of
from sharectl_lab.scenarios.strategies import USUAL, read_strategies
from sharectl_lab.study.begin import begin_of
from sharectl_lab.study.run import simulate
from sharectl_lab.twin.answers import missing_hs06
from sharectl_lab.twin.bound import least_shortfalls_hs06

STRATEGIES = read_strategies(f"{','.join(USUAL)},live:period_seconds=60")
LAWS = st.sampled_from(
    ("{600: 3, 3600: 1}", "constant:1800", "'exponential:2400'", "{300: 1, 7200: 2}")
)
ARRIVALS = st.sampled_from(
    ("keep_pending: 6", "per_hour: 8", "at_start: 40", "per_hour: 20, phases: [{length_hours: 2}]")
)
OTHERS = st.sampled_from(
    (
        "{group: cms, cores: 3, run_time: constant:900, per_hour: 5}",
        "{group: lhcb, run_time: 'exponential:1800', keep_pending: 10}",
        "{group: strangers, cores: 2, run_time: constant:2400, per_hour: 4}",
        "{group: cms, whole_node: true, run_time: constant:900, per_hour: 1}",
    )
)


SIZES = st.sampled_from((2, 4, 8))


@st.composite
def scenarios(draw: st.DrawFn) -> str:
    """A scenario: single-core jobs of alice, multicore jobs of cms, and others."""
    cores, slots = draw(st.sampled_from((8, 16, 20))), draw(st.integers(1, 2))
    pledges, size = draw(st.tuples(st.integers(1, 5), st.integers(1, 5))), draw(SIZES)
    return f"""
nodes:
  - {{name: a, count: {draw(st.integers(1, 3))}, cores: {cores}, slots: {slots}}}
  - {{name: b, cores: 16, hs06_per_core: 14}}
groups:
  alice: {{pledge_hs06: {pledges[0]}}}
  cms: {{pledge_hs06: {pledges[1]}}}
  lhcb: {{pledge_hs06: 1}}
jobs:
  - {{group: alice, run_time: {draw(LAWS)}, keep_pending: 60}}
  - {{group: cms, cores: {size}, run_time: {draw(LAWS)}, {draw(ARRIVALS)}}}
  - {draw(OTHERS)}
warmup_hours: {draw(st.sampled_from((0, 1, 2)))}
days: 0.1
sample_seconds: {draw(st.sampled_from((60, 100)))}
"""


@given(scenarios(), st.integers(1, 1000))
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
def test_no_strategy_without_evictions_lies_below_the_bound(text: str, seed: int) -> None:
    scenario = scenario_of(text, "drawn")
    begin = begin_of(scenario, seed)
    event(f"bound above 0: {max(least_shortfalls_hs06(begin)) > 0}")
    for strategy in STRATEGIES:
        outcome = simulate(scenario, strategy, seed, equal_start=True)
        assert outcome.evicted_jobs == 0
        missing = missing_hs06(outcome)
        least = least_shortfalls_hs06(begin, fsum(outcome.idle_core_seconds.values()))
        assert len(missing) == len(least) == begin.intervals
        below = [n for n, pair in enumerate(zip(missing, least)) if pair[0] < pair[1] - 1e-6]
        assert below == [], strategy.name
