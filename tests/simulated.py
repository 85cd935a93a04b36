"""Cycles of sharectl in the digital twin: records and snapshots as a real pool would give them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from statistics import median

from sharectl.cycle.record import record_of
from sharectl.model import JobWaits, Kind, Snapshot, Source, WaitTimes
from sharectl.plan.records import CycleRecord
from sharectl.times import DAY_SECONDS
from sharectl_lab.scenarios import file
from sharectl_lab.scenarios.strategies import read_strategies
from sharectl_lab.study.run import Run
from sharectl_lab.twin.look import Looks, unix

PERIOD_SECONDS = 1020
SCENARIO = """
nodes:
  - {name: wn-old, count: 4, cores: 32, hs06_per_core: 9.5, memory_mib: 98304}
  - {name: wn-new, count: 4, cores: 48, hs06_per_core: 13.2, memory_mib: 196608}
groups:
  atlas: {pledge_hs06: 1250}
  cms: {pledge_hs06: 1000}
  alice: {pledge_hs06: 800}
  lhcb: {pledge_hs06: 550}
  theory: {pledge_hs06: 250}
control: {strategy: many}
validity_seconds: 7500
jobs:
  - {group: atlas, cores: 8, run_time: "log-normal:43200,20000", keep_pending: 8}
  - {group: cms, cores: 8, run_time: "log-normal:36000,18000", keep_pending: 6}
  - {group: cms, cores: 128, run_time: "constant:3600", keep_pending: 2}
  - {group: alice, run_time: "log-normal:28000,12000", keep_pending: 20}
  - {group: lhcb, run_time: "exponential:21600", keep_pending: 15}
  - {group: stranger, run_time: "constant:30000", keep_pending: 1}
  - group: theory
    run_time: "exponential:10800"
    per_hour: 2
    phases: [{begin_hours: 8, length_hours: 10, every_hours: 24, factor: 4}]
warmup_hours: 0
days: 31
"""
"""Five groups on two classes of nodes; some jobs of cms are larger than any node."""
SMALL = """\
summary: two nodes and two groups
nodes: [{name: wn, count: 2, cores: 16}]
groups: {alice: {pledge_hs06: 200}, cms: {pledge_hs06: 120}}
jobs:
  - {group: alice, run_time: "exponential:900", keep_pending: 20}
  - {group: cms, cores: 8, run_time: "exponential:1800", keep_pending: 2}
warmup_hours: 1
days: 0.1
"""
SILENT_EVERY = 97
"""Every so many cycles a schedd does not answer."""
COLLECTOR, SCHEDD = Source("collector", 0.12), Source("schedd ce-1.example.org", 0.34)


def cycles(
    days: float, period_seconds: int = PERIOD_SECONDS
) -> Iterator[tuple[CycleRecord, Snapshot]]:
    """Record and snapshot of every cycle from the first day on."""
    scenario = file.parse(SCENARIO, "five-groups")
    loop = replace(scenario.loop, period_seconds=float(period_seconds))
    scenario = replace(scenario, loop=loop)
    run = Run(scenario, read_strategies("live")[0], 1)
    looks = Looks(run.twin, run.meets)
    steering = run.steering
    assert steering is not None
    for number in range(1, int(days * DAY_SECONDS / period_seconds)):
        now = number * period_seconds
        run.until(now)
        if number % SILENT_EVERY == 0:
            silent = replace(SCHEDD, seconds=60.0, problem="no answer within 60 s")
            seen = Snapshot(unix(now), (), (), (), (COLLECTOR, silent))
            yield replace(record_of(run.config, seen, None, None, ()), seconds=61.0), seen
            continue
        obeyed = [steering.nodes[node.spec.name].obeyed_at(now) for node in run.twin.nodes]
        helped = {stood.target.node: stood.target.helped for stood in steering.state.standing}
        seen = looks.take(obeyed, helped).snapshot
        seen = replace(seen, sources=(COLLECTOR, SCHEDD), waits=tuple(_waits(run, now)))
        decision = steering.decision
        assert decision is not None
        record = record_of(run.config, seen, decision, decision.plan, ("/srv/sharectl.txt",))
        yield replace(record, seconds=1.5 + number % 7 / 10), seen


def _waits(run: Run, now: int) -> Iterator[JobWaits]:
    pending: defaultdict[Kind, list[int]] = defaultdict(list)
    for kind in run.twin.kinds:
        pending[kind.group, kind.cores] += [int(now - since) for since, _ in kind.pending]
    for (group, cores), waits in sorted(pending.items()):
        if waits:
            times = WaitTimes(len(waits), int(median(waits)), max(waits))
            yield JobWaits(group, cores, times, replace(times, jobs=1))
