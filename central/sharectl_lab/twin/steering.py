"""The sharectl loop of the twin: cycles decide as real ones do, and nodes act on their targets.

A cycle looks at the twin, decides and publishes. A node reads the plan at its next run of job_ctl
and acts on its target until the plan runs out. Only nodes whose target changes cost anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import ceil, inf
from random import Random  # noqa: TID251 - with a seed
from typing import NamedTuple, Optional, Protocol

from sharectl.model import Plan, Target
from sharectl.plan.plan import Decision, PlanConfig, State, decide
from sharectl_lab.twin.defrag import RunningTwin
from sharectl_lab.twin.look import EPOCH, Looks, Meets, unix
from sharectl_lab.twin.pool import Claim, ShapedKind, SimNode, SimSlot
from sharectl_lab.twin.run_times import LearntRunTimes
from sharectl_lab.twin.settings import Loop
from sharectl_lab.twin.start import SlotTarget, StartKnobs

PAIR_CORES = 8
"""`pair`: larger requests count as this, or as `PlanLimits.multicore_cores` if that is more."""


class SteeredTwin(RunningTwin, Protocol):
    """The twin as the loop knows it."""

    start_knobs: StartKnobs

    @property
    def kinds(self) -> Sequence[ShapedKind]:
        """All kinds of jobs."""

    def set_target(self, node: SimNode, target: Optional[SlotTarget]) -> None:
        """Put a target in force."""

    def set_multicore_pending(self, pending: Optional[bool]) -> None:  # noqa: FBT001
        """Let nodes know whether a multicore job waits."""

    def look(self, slot: SimSlot) -> None:
        """Count the cores of the held-back group, as job_ctl does in cron mode."""


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


class JobCtl:
    """job_ctl of one node: its runs, and the target that the node acts on."""

    __slots__ = ("acts", "ends", "next_run", "node", "phase", "sequence", "target")

    def __init__(self, node: SimNode, phase: float, *, acts: bool) -> None:
        self.node = node
        self.phase = phase
        """Time of its first run."""
        self.acts = acts
        """Whether it reads plans. One that does not reads an old copy for ever."""
        self.target: Optional[SlotTarget] = None
        self.sequence = 0
        """Number of the plan that has its target."""
        self.next_run = inf
        """Time of the run that is scheduled; inf for none that matters."""
        self.ends = False
        """Whether the end of its target is scheduled."""

    def obeyed_at(self, now: float) -> int:
        """Sequence that the node publishes: 0 without a target."""
        return self.sequence if self.target is not None and now < self.target.until else 0


class Steering:
    """The loop, from its first cycle on.

    ``actuation`` is `live` or `cron`; ``meets`` tells if a slot meets the requirements of a job.
    """

    def __init__(
        self,
        twin: SteeredTwin,
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
        self.law_problem = ""
        """Problem of a law that failed in a cycle; empty if none did."""
        self._counts = actuation == "cron"
        self._period = loop.job_ctl_seconds
        self._readable: Optional[Published] = None
        self._published: Optional[Published] = None
        self._pending_until = -inf
        most_cores = None
        if config.strategy == "pair":
            most_cores = max(PAIR_CORES, config.limits.multicore_cores)
        self._looks = Looks(twin.nodes, twin.kinds, meets, most_cores)
        self.learnt = LearntRunTimes(config.pledge_hs06)
        phase = Random(f"{seed}/job_ctl").random
        self._fails = Random(f"{seed}/cycles").random
        deaf = _deaf(len(twin.nodes), loop.deaf_ratio, seed)
        self.nodes = {
            node.spec.name: JobCtl(node, phase() * self._period, acts=number not in deaf)
            for number, node in enumerate(twin.nodes)
        }
        """Node -> its job_ctl."""
        twin.on_end.append(self._note_end)
        twin.at(starts_at, self._cycle)

    def _note_end(self, claim: Claim, _now: float) -> None:
        self.learnt.note_end(claim, unix(claim.started_at))

    # ---- the centre

    def _cycle(self, now: float) -> None:
        self.twin.at(now + self.loop.period_seconds, self._cycle)
        if self._fails() < self.loop.failing_ratio:
            return
        helped = {stood.target.node: stood.target.helped for stood in self.state.standing}
        look = self._looks.take(
            now,
            self.twin.start_knobs,
            [job.obeyed_at(now) for job in self.nodes.values()],
            helped,
            self.learnt.last_at,
        )
        run_times = self.learnt.run_times()
        self.decision = decide(self.config, self.state, look.snapshot, unix(now), run_times)
        self.state = self.decision.state
        if problems := self.decision.law_problems:
            self.law_problem = problems[0]
            self.twin.count("failed_laws")
        self.learnt.look(look.snapshot.taken_at, look.ages, look.new_ages)
        self._publish(self.decision.plan, now)

    def _publish(self, plan: Plan, now: float) -> None:
        before = self._published.targets if self._published is not None else {}
        published = Published(plan, {target.node: target for target in plan.targets})
        self._published = published
        names = before.keys() | published.targets.keys()
        changed = sum(before.get(name) != published.targets.get(name) for name in names)
        self.twin.count("plans")
        self.twin.count("changed_targets", changed)
        self.twin.at(now + self.loop.transport_seconds, partial(self._arrive, published))

    # ---- the nodes

    def _arrive(self, published: Published, now: float) -> None:
        before = self._readable.targets if self._readable is not None else {}
        self._readable = published
        for name in sorted(before.keys() | published.targets.keys()):
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
        target = None
        if self._readable is not None:
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
