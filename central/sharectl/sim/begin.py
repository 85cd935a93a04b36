"""Pool and jobs at the begin of the time that counts, for the bound of a scenario.

The pool is that of the strategy `nothing`: under `--bound` all strategies begin with it.
"""

from __future__ import annotations

from collections import defaultdict
from math import floor

from sharectl.errors import ConfigError
from sharectl.sim.bound import Begin, Demand, Held, Job, Slot
from sharectl.sim.run import Run
from sharectl.sim.scenario import Scenario
from sharectl.sim.strategies import Strategy
from sharectl.times import DAY_SECONDS

MOST_LOOKS = 3_000_000
"""Looks at slots, one of each slot in each interval: a million take some seconds."""


def refuse_large(scenario: Scenario) -> None:
    """Raise ConfigError for a scenario whose bound would take minutes."""
    slots = sum(group.count * group.slots for group in scenario.nodes)
    looks = slots * scenario.days * DAY_SECONDS / scenario.sample_seconds
    if looks > MOST_LOOKS:
        fact = f"--bound looks at most {MOST_LOOKS / 1e6:g} million times at a slot, here"
        remedy = "write fewer days or nodes, or a longer sample_seconds"
        raise ConfigError([f"{scenario.name}: {fact} {looks / 1e6:.3g} million times; {remedy}"])


def begin_of(scenario: Scenario, seed: int, later_seconds: float = 0.0) -> Begin:
    """Pool at the end of the warm-up, and the jobs that wait then or come later.

    With ``later_seconds`` the begin is so much later, and jobs that came earlier are taken as done:
    the bound is then that of strategies that prepared nothing for the jobs from there on.
    """
    run = Run(scenario, Strategy("nothing", ""), seed)
    begin = run.begin + later_seconds
    twin, workload = run.twin, scenario.workload(seed)
    twin.run(begin, before=True)
    intervals = round((run.end - begin) / run.step)
    factories = {factory.kind: factory for factory in workload.factories}
    waiting = [
        (kind.number, 0.0, seconds)
        for kind in twin.kinds
        if kind.number not in factories
        for _, seconds in kind.pending
    ]
    later = [
        (job.kind, job.at - begin, job.run_seconds)
        for job in workload.arrivals()
        if job.at >= begin
    ]
    coming: defaultdict[str, list[Job]] = defaultdict(list)
    for number, at, seconds in later if later_seconds else [*waiting, *later]:
        kind = twin.kinds[number]
        if kind.placeable:
            coming[kind.group].append(Job(at, kind.wanted_cores, seconds))
    kept: defaultdict[str, list[int]] = defaultdict(lambda: [0] * intervals)
    for number, factory in factories.items():
        kind, period = twin.kinds[number], factory.period_seconds
        for place in range(intervals if kind.placeable else 0):
            end = begin + (place + 1) * run.step
            if factory.is_active(floor(end / period) * period):
                kept[kind.group][place] += kind.wanted_cores * factory.keep_pending
    slots = []
    for slot in twin.slots:
        held = [Held(c.cores, c.group, c.run_until - begin) for c in slot.claims]
        sizes: defaultdict[str, set[int]] = defaultdict(set)
        for kind in twin.kinds:
            if slot.could_fit(kind):
                sizes[kind.group].add(kind.on(slot).cores)
        slots.append(Slot(slot.total_cores, slot.node.spec.hs06_per_core, held, dict(sizes)))
    laws = [stream.run_time for stream in scenario.jobs if stream.keep_pending is not None]
    shortest = [0.0 if law.is_continuous else min(law.weights()) for law in laws]
    return Begin(
        slots=slots,
        pledge_hs06=run.config.shared_hs06,
        demand={group: Demand(coming[group], kept[group]) for group in {**coming, **kept}},
        interval_seconds=run.step,
        intervals=intervals,
        shortest_seconds=min(
            [*shortest, *(seconds for _, _, seconds in [*waiting, *later])], default=0.0
        ),
    )
