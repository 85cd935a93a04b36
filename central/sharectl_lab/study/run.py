"""A run of the twin: the one place where scenario, strategy and pool are put together."""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import ceil, fsum
from statistics import fmean
from typing import Any, Callable, Optional

from sharectl.times import validity_of
from sharectl_lab.scenarios.extent import refuse_endless
from sharectl_lab.scenarios.scenario import Scenario
from sharectl_lab.scenarios.strategies import Strategy, multicore_ratio, with_static
from sharectl_lab.twin.ads import SiteExpressions
from sharectl_lab.twin.defrag import Defragmenter
from sharectl_lab.twin.engine import Setup, Twin, pool_weight
from sharectl_lab.twin.group_quotas import GroupQuota, QuotaTree
from sharectl_lab.twin.pool import group_of
from sharectl_lab.twin.records import COUNTS, NodeSpec, Outcome
from sharectl_lab.twin.start import StartKnobs
from sharectl_lab.twin.steering import Steering
from sharectl_lab.workload.draw import Workload

Progress = Callable[[float], object]
"""Is called with the part of the run that is done."""
MOST_UNSEARCHED = 200_000
"""New objects after which Python looks for garbage: more than a look at a large pool makes."""


@dataclass(frozen=True)
class Episode:
    """Scenario and strategy by which a policy or settings are judged."""

    scenario: Scenario
    strategy: Strategy


class Run:
    """A run that can be halted at any moment.

    With ``equal_start`` the strategy begins after the warm-up, from the pool that `nothing` has.
    """

    def __init__(
        self,
        scenario: Scenario,
        strategy: Strategy,
        seed: int,
        seconds: Optional[float] = None,
        *,
        equal_start: bool = False,
    ) -> None:
        self.scenario, self.strategy, self.seed = scenario, strategy, seed
        loop = strategy.loop_of(scenario.loop)
        validity_seconds = scenario.validity_seconds or validity_of(loop.period_seconds)
        config = scenario.plan_config(strategy.control_settings)
        self.config = replace(config, validity_seconds=validity_seconds)
        self.begin = scenario.warmup_seconds
        self.end = scenario.end_seconds if seconds is None else self.begin + seconds
        self.step = min(scenario.sample_seconds, self.end - self.begin)
        """Interval of the figures over time."""
        refuse_endless(scenario, strategy, self.end)
        workload = scenario.workload(seed)
        pledges = self.config.shared_hs06
        nodes = _nodes(scenario, strategy, pledges, workload)
        start = scenario.start
        expressions = SiteExpressions(workload.kinds, start.site)
        self.meets = expressions.may_meet
        """Tells if a trial of pending jobs counts a job as placeable on a slot."""
        setup = Setup(
            nodes=nodes,
            pledge_hs06=pledges,
            quotas=_quotas(scenario, nodes),
            negotiator=scenario.negotiator,
            access=scenario.access,
            start=StartKnobs(
                enabled=strategy.grace or strategy.steering is not None,
                actuation=strategy.steering or "live",
                multicore_cores=start.multicore_cores,
                grace_seconds=start.grace_seconds if strategy.grace else 0.0,
                mc_grace_period_seconds=start.mc_grace_period_seconds,
            ),
            meets=expressions.meets,
            site_start=expressions.site_start,
            reads_time=expressions.reads_time,
            seed=seed,
        )
        self.twin = Twin(setup, workload)
        starts_at = self.begin if equal_start else 0.0
        if starts_at:
            before = [node.multicore_only for node in scenario.nodes_of()]
            static = [n for n, node in enumerate(nodes) if node.multicore_only > before[n]]
            self.twin.wait(starts_at, static)
        self.steering: Optional[Steering] = None
        if strategy.steering is not None:
            # Cycles come when they would have: no timer waits for a group's jobs.
            cycle = ceil(starts_at / loop.period_seconds) * loop.period_seconds
            self.steering = Steering(
                self.twin, self.config, loop, strategy.steering, seed, cycle, self.meets
            )
        if strategy.defrag is not None:
            Defragmenter(self.twin, strategy.defrag, seed, starts_at)
        self._is_measured = False

    def until(self, time: float, progress: Progress = lambda _part: None) -> None:
        """Let the pool run until a time, and measure once the warm-up is over."""
        twin, step = self.twin, self.step
        with _little_search_for_garbage():
            if not self._is_measured:
                while (following := twin.now + step) < min(time, self.begin):
                    twin.run(following)
                    progress(following / self.end)
                if time < self.begin:
                    twin.run(time)
                    return
                # A job that starts at that moment counts.
                twin.run(self.begin, before=True)
                twin.forget()
                self._is_measured = True
            while (following := self.begin + (len(twin.times) + 1) * step) <= time:
                twin.run(following)
                twin.sample(step)
                progress(following / self.end)
            twin.run(time)

    def outcome(self, *, complete: bool = True) -> Outcome:
        """Outcome of the intervals that have ended."""
        twin = self.twin
        counts = twin.counts
        whole: dict[str, Any] = {name: int(counts[name]) for name in COUNTS}
        return Outcome(
            scenario=self.scenario.name,
            strategy=self.strategy.name,
            seed=self.seed,
            seconds=len(twin.times) * self.step,
            times=tuple(time - self.begin for time in twin.times),
            pool_cores=sum(node.spec.cores for node in twin.nodes),
            pool_hs06=fsum(node.spec.cores * node.spec.hs06_per_core for node in twin.nodes),
            groups=twin.outcomes(),
            idle_core_seconds=dict(twin.idle.seconds),
            idle_cores={cause: tuple(cores) for cause, cores in twin.idle.series.items()},
            lost_core_seconds=counts["lost_core_seconds"],
            complete=complete,
            **whole,
        )


@contextmanager
def _little_search_for_garbage() -> Iterator[None]:
    """Have Python search rarely for garbage: it takes as long as a cycle, and the twin has none."""
    before = gc.get_threshold()
    gc.set_threshold(MOST_UNSEARCHED)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def simulate(
    scenario: Scenario,
    strategy: Strategy,
    seed: int,
    seconds: Optional[float] = None,
    progress: Progress = lambda _part: None,
    *,
    equal_start: bool = False,
) -> Outcome:
    """Outcome of a strategy; interrupted by Ctrl-C, of the time until then."""
    run = Run(scenario, strategy, seed, seconds, equal_start=equal_start)
    try:
        run.until(run.end, progress)
    except KeyboardInterrupt:
        return run.outcome(complete=False)
    return run.outcome()


def _nodes(
    scenario: Scenario, strategy: Strategy, pledges: Mapping[str, float], workload: Workload
) -> tuple[NodeSpec, ...]:
    nodes = scenario.nodes_of()
    if strategy.static is None:
        return nodes
    ratio = strategy.static.ratio
    if ratio is None:
        sizes: defaultdict[str, list[bool]] = defaultdict(list)
        for kind in workload.kinds:
            sizes[group_of(kind.account, tuple(pledges))].append(kind.cores > 1)
        ratio = multicore_ratio(pledges, {group: fmean(of) for group, of in sizes.items()})
    return with_static(nodes, ratio)


def _quotas(scenario: Scenario, nodes: tuple[NodeSpec, ...]) -> QuotaTree:
    knobs = scenario.negotiator
    if knobs.quotas == "none":
        return QuotaTree()
    pledges = scenario.config.tree.pledge_hs06
    top = fsum(hs06 for name, hs06 in pledges.items() if "." not in name)
    weight = pool_weight(nodes, knobs)
    by_pledge = {name: weight * hs06 / top for name, hs06 in pledges.items()}
    return QuotaTree(
        GroupQuota(name, quota, knobs.accept_surplus, knobs.autoregroup)
        for name, quota in (knobs.group_quotas or by_pledge).items()
    )
