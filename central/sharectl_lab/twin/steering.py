"""The sharectl loop of the twin: cycles decide as real ones do, and nodes act on their targets.

A node reads the plan at its next run of job_ctl; only nodes whose target changes cost anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from math import ceil, inf
from random import Random  # noqa: TID251 - with a seed
from typing import NamedTuple, Optional

from sharectl.model import Plan, Target
from sharectl.plan.plan import Decision, PlanConfig, State, decide
from sharectl_lab.twin.engine import Twin
from sharectl_lab.twin.look import EPOCH, Looks, unix
from sharectl_lab.twin.matching import Meets
from sharectl_lab.twin.pool import SimNode
from sharectl_lab.twin.run_times import LearntRunTimes
from sharectl_lab.twin.settings import Loop
from sharectl_lab.twin.start import SlotTarget

PAIR_CORES = 8
"""`pair`: larger requests count as this, or as `PlanLimits.multicore_cores` if that is more."""


class Published(NamedTuple):
    """A plan, with its targets by node."""

    plan: Plan
    targets: Mapping[str, Target]

    @property
    def until(self) -> float:
        """Time at which it runs out."""
        return self.plan.valid_until - EPOCH

    def target_of(self, name: str, now: float) -> Optional[SlotTarget]:
        """Target of a node, as it reads it at a time."""
        target = self.targets.get(name)
        if target is None or now >= self.until:
            return None
        return SlotTarget(
            target.held_back, target.cap_cores, target.helped, target.request_cores, self.until
        )


@dataclass(eq=False)
class JobCtl:
    """job_ctl of one node: its runs, and the target that the node acts on."""

    node: SimNode
    phase: float
    """Time of its first run."""
    acts: bool
    """True if it reads plans. One that does not reads an old copy for ever."""
    target: Optional[SlotTarget] = None
    sequence: int = 0
    """Number of the plan that has its target."""
    next_run: float = inf
    """Time of the run that is scheduled; inf for none that matters."""
    ends: bool = False
    """True if the end of its target is scheduled."""

    def obeyed_at(self, now: float) -> int:
        """Sequence that the node publishes: 0 without a target."""
        return self.sequence if self.target is not None and now < self.target.until else 0


class Steering:
    """The loop, from its first cycle on; ``actuation`` is `live` or `cron`."""

    def __init__(
        self,
        twin: Twin,
        config: PlanConfig,
        loop: Loop,
        actuation: str,
        seed: int,
        starts_at: float = 0.0,
        meets: Meets = lambda _slot, _kind: True,
    ) -> None:
        self.twin = twin
        self.config = config
        self.loop = loop
        self.state = State()
        """State after the last cycle."""
        self.decision: Optional[Decision] = None
        """Decision of the last cycle that did not fail."""
        self._counts = actuation == "cron"
        self._period = loop.job_ctl_seconds
        self._readable: Published
        """Plan that nodes can read; none before the first arrives."""
        self._named: Iterable[str] = ()
        """Nodes that it has targets for."""
        self._targets: Mapping[str, Target] = {}
        """Targets of the last plan."""
        self._pending_until = -inf
        most_cores = None
        if config.strategy == "pair":
            most_cores = max(PAIR_CORES, config.limits.multicore_cores)
        self._looks = Looks(twin, meets, most_cores)
        self.learnt = LearntRunTimes(config.pledge_hs06)
        phase = Random(f"{seed}/job_ctl").random
        self._fails = Random(f"{seed}/cycles").random
        deaf = _deaf(len(twin.nodes), loop.deaf_ratio, seed)
        self.nodes = {
            node.spec.name: JobCtl(node, phase() * self._period, acts=number not in deaf)
            for number, node in enumerate(twin.nodes)
        }
        """Node -> its job_ctl."""
        twin.on_end.append(lambda claim, _: self.learnt.note_end(claim, unix(claim.started_at)))
        twin.at(starts_at, self._cycle)

    # ---- the centre

    def _cycle(self, now: float) -> None:
        self.twin.at(now + self.loop.period_seconds, self._cycle)
        if self._fails() < self.loop.failing_ratio:
            return
        helped = {stood.target.node: stood.target.helped for stood in self.state.standing}
        obeyed = [job.obeyed_at(now) for job in self.nodes.values()]
        look = self._looks.take(obeyed, helped, self.learnt.last_at)
        run_times = self.learnt.run_times()
        self.decision = decide(self.config, self.state, look.snapshot, unix(now), run_times)
        self.state = self.decision.state
        self.learnt.look(look.snapshot.taken_at, look.ages, look.new_ages)
        self._publish(self.decision.plan, now)

    def _publish(self, plan: Plan, now: float) -> None:
        published = Published(plan, {target.node: target for target in plan.targets})
        before, self._targets = self._targets, published.targets
        names = before.keys() | published.targets.keys()
        changed = sum(before.get(name) != published.targets.get(name) for name in names)
        self.twin.counts["plans"] += 1
        self.twin.counts["changed_targets"] += changed
        self.twin.at(now + self.loop.transport_seconds, partial(self._arrive, published))

    # ---- the nodes

    def _arrive(self, published: Published, now: float) -> None:
        names = {*self._named, *published.targets}
        self._readable, self._named = published, published.targets
        for name in sorted(names):
            job = self.nodes.get(name)
            if job is not None and job.acts:
                self._schedule(job, now)
        # Each node knows it from its own next run on: on average half a period later.
        knows_at = now + self._period / 2
        self.twin.at(knows_at, partial(self._know_pending, published))

    def _schedule(self, job: JobCtl, earliest: float) -> None:
        """Schedule the first run from ``earliest`` on, unless one is scheduled already."""
        if job.next_run == inf:
            runs = max(0, ceil((earliest - job.phase) / self._period))
            job.next_run = max(earliest, job.phase + runs * self._period)
            self.twin.at(job.next_run, partial(self._run, job))

    def _run(self, job: JobCtl, now: float) -> None:
        job.next_run = inf
        target = self._readable.target_of(job.node.spec.name, now)
        job.sequence = self._readable.plan.sequence
        if target != job.target:
            job.target = target
            self.twin.set_target(job.node, target)
        if target is None:
            return
        if not job.ends:
            job.ends = True
            self.twin.at(target.until, partial(self._end, job))
        if self._counts:
            for slot in job.node.slots:
                self.twin.look(slot)
            self._schedule(job, now + self._period / 2)

    def _end(self, job: JobCtl, now: float) -> None:
        """Take a target off a node if no plan has renewed it."""
        job.ends = False
        if job.target is None:
            return
        if now < job.target.until:
            job.ends = True
            self.twin.at(job.target.until, partial(self._end, job))
        else:
            job.target = None
            self.twin.set_target(job.node, None)

    def _know_pending(self, published: Published, now: float) -> None:
        if now < published.until:
            self._pending_until = published.until
            self.twin.set_multicore_pending(published.plan.multicore_pending)
            self.twin.at(published.until, self._forget_pending)

    def _forget_pending(self, now: float) -> None:
        if now >= self._pending_until:
            self.twin.set_multicore_pending(None)


def _deaf(nodes: int, ratio: float, seed: int) -> frozenset[int]:
    """Numbers of the nodes that never act on a target."""
    draw = Random(f"{seed}/deaf").random
    ranked = sorted((draw(), number) for number in range(nodes))
    return frozenset(number for _, number in ranked[: round(ratio * nodes)])
