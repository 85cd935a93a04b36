"""Pool of `nothing` and jobs, at the begin of the time that counts, for the bound of a scenario."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import floor, fsum, inf
from typing import Optional

from sharectl.times import HOUR_SECONDS
from sharectl_lab.scenarios.scenario import Scenario
from sharectl_lab.scenarios.strategies import Strategy
from sharectl_lab.study.run import Progress, Run
from sharectl_lab.twin import bound
from sharectl_lab.twin.answers import WASTE, root_mean_square
from sharectl_lab.twin.bound import Begin, Bound, ComingJob, Demand, Held, Slot
from sharectl_lab.twin.records import Outcome

_STEPS = 12


def idle_of(outcomes: Sequence[Outcome]) -> tuple[tuple[float, ...], float]:
    """Idle core-hours for bounds, to the most that a strategy had, and the most useless ones."""
    wasted = [fsum(outcome.idle_core_seconds[cause] for cause in WASTE) for outcome in outcomes]
    useless = [
        fsum(outcome.idle_core_seconds.values()) - idle for outcome, idle in zip(outcomes, wasted)
    ]
    step = max(wasted) / HOUR_SECONDS / _STEPS
    return tuple(step * number for number in range(_STEPS + 1)), max(useless) / HOUR_SECONDS


def bound_of(
    scenario: Scenario,
    seed: int,
    idle_core_hours: Sequence[float],
    useless_core_hours: float,
    progress: Progress,
) -> Optional[Bound]:
    """Bound of a seed at each of the idle core-hours; None if it was interrupted.

    ``useless_core_hours`` come on top: those that any strategy had while no job wanted them.
    """
    rms_hs06 = []
    try:
        begin = begin_of(scenario, seed)
        for number, hours in enumerate((*idle_core_hours, inf)):
            idle_core_seconds = (hours + useless_core_hours) * HOUR_SECONDS
            least_hs06 = bound.least_shortfalls_hs06(begin, idle_core_seconds)
            rms_hs06.append(root_mean_square(least_hs06))
            progress((number + 1) / (len(idle_core_hours) + 1))
    except KeyboardInterrupt:
        return None
    return Bound(idle_core_hours, rms_hs06[:-1], rms_hs06[-1])


def begin_of(scenario: Scenario, seed: int) -> Begin:
    """Pool at the end of the warm-up, and the jobs that wait then or come later."""
    run = Run(scenario, Strategy("", name="nothing"), seed)
    begin = run.begin
    twin, workload = run.twin, scenario.workload(seed)
    twin.run(begin, before=True)
    intervals = floor((run.end - begin) / run.step + 1e-9)
    factories = {factory.kind: factory for factory in workload.factories}
    jobs = [
        (kind, 0.0, seconds)
        for kind in twin.kinds
        if kind.number not in factories
        for _, seconds in kind.pending
    ]
    later = (job for job in workload.arrivals() if job.at >= begin)
    jobs += [(twin.kinds[job.kind], job.at - begin, job.run_seconds) for job in later]
    coming: defaultdict[str, list[ComingJob]] = defaultdict(list)
    for kind, at, seconds in jobs:
        if kind.placeable:
            coming[kind.group].append(ComingJob(at, kind.wanted_cores, seconds))
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
    shortest = [0.0 if law.is_continuous else min(law.shares) for law in laws]
    shortest += [seconds for _, _, seconds in jobs]
    return Begin(
        slots=slots,
        pledge_hs06=run.config.shared_hs06,
        demand={group: Demand(coming[group], kept[group]) for group in {**coming, **kept}},
        interval_seconds=run.step,
        intervals=intervals,
        shortest_seconds=min(shortest, default=0.0),
    )
