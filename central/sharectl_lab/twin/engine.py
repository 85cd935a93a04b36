"""Pool in simulated seconds: jobs that wait are matched, run in claims, and end.

A cycle gives each partitionable slot to one submitter, whose access point fills what is left of it
(CLAIM_PARTITIONABLE_LEFTOVERS), or several matches of a slot with a consumption policy. An access
point runs job after job in a claim until that is older than CLAIM_WORKLIFE.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from math import fsum, inf
from random import Random  # noqa: TID251 - with a seed
from typing import Any, Callable, Optional

from sharectl.model import OTHER
from sharectl.shares.errors import max_min_shares
from sharectl.shares.groups import is_within
from sharectl_lab.twin.accountant import Accountant
from sharectl_lab.twin.group_quotas import QuotaTree
from sharectl_lab.twin.matching import Candidates, Meets, Shape, SiteStarts, forget_cause
from sharectl_lab.twin.measures import GroupMeasure, IdleMeasure, outcome_of
from sharectl_lab.twin.negotiator import PoolWeights, SubmitterAd, negotiate
from sharectl_lab.twin.pool import Claim, ShapedKind, SimNode, SimSlot
from sharectl_lab.twin.queues import Queues
from sharectl_lab.twin.records import GroupOutcome, NodeSpec
from sharectl_lab.twin.settings import Access, Negotiator
from sharectl_lab.twin.start import (
    SlotTarget,
    StartKnobs,
    claim_worklife_seconds,
    is_seen,
    refusal,
    reuse_refusal,
)
from sharectl_lab.workload.draw import Workload

Call = Callable[[float], None]


@dataclass(frozen=True)
class Setup:
    """Pool before its first job."""

    nodes: tuple[NodeSpec, ...]
    pledge_hs06: Mapping[str, float]
    """Group -> its pledge; other groups count as `OTHER`."""
    quotas: QuotaTree = field(default_factory=QuotaTree)
    negotiator: Negotiator = field(default_factory=Negotiator)
    access: Access = field(default_factory=Access)
    start: StartKnobs = field(default_factory=StartKnobs)
    meets: Meets = lambda _slot, kind: not kind.requirements
    """Requirements of jobs beside their requests."""
    site_start: Optional[SiteStarts] = None
    """The site's own START; None for True."""
    reads_time: bool = False
    """True if that START changes with the time; each cycle then looks at all free slots."""
    seed: int = 0


class Twin:
    """A pool that runs."""

    def __init__(self, setup: Setup, workload: Workload) -> None:
        self.setup = setup
        self.now = 0.0
        self.groups = tuple(setup.pledge_hs06)
        self.nodes = [SimNode(number, spec) for number, spec in enumerate(setup.nodes)]
        self.slots = [slot for node in self.nodes for slot in node.slots]
        order = Random(f"{setup.seed}/slots").random
        for place, slot in enumerate(sorted(self.slots, key=lambda _: order())):
            slot.order = place
        self.measures = {name: GroupMeasure() for name in (*self.groups, OTHER)}
        self.idle = IdleMeasure(sum(slot.total_cores for slot in self.slots))
        self.queues = Queues(workload, self.groups, self.slots, setup.meets, self.idle)
        self.kinds: Sequence[ShapedKind] = self.queues.kinds
        self.counts: defaultdict[str, float] = defaultdict(float)
        self.times: list[float] = []
        self.on_end: list[Callable[[Claim, float], None]] = []
        self.start_knobs = setup.start
        self._in_cron_mode = setup.start.actuation == "cron"
        phase = Random(f"{setup.seed}/mc_grace").random
        for node in self.nodes:
            node.mc_grace_phase = phase() * setup.start.mc_grace_period_seconds
        factors = setup.negotiator.priority_factors or {}
        self.accountant = Accountant(
            setup.negotiator.half_life_seconds,
            {name.lower(): factor for name, factor in factors.items()},
        )
        self.candidates = Candidates(self.slots, self._refusal, setup.meets)
        self._weights = PoolWeights(pool_weight(setup.nodes, setup.negotiator))
        self._pool_hs06 = fsum(spec.cores * spec.hs06_per_core for spec in setup.nodes)
        self._mean_hs06 = self._pool_hs06 / max(1, self.idle.total)
        self._by_cores = setup.negotiator.slot_weight == "cores"
        self._events: list[tuple[float, int, Callable[[Any], None], Any]] = []
        self._number = 0
        self._rejected: set[int] = set()
        self._cycle_end = 0
        self._cycle_at = 0.0
        self._matches = 0
        self._at(0.0, self._arrive, None)
        for factory in workload.factories:
            self._at(0.0, self._look_at_factory, factory)
        self._at(0.0, self._cycle, None)

    # ---- time

    def _at(self, time: float, call: Callable[[Any], None], argument: Any) -> int:
        self._number += 1
        heappush(self._events, (time, self._number, call, argument))
        return self._number

    def at(self, time: float, call: Call) -> None:
        """Have ``call`` called with the time, at that time."""
        self._at(time, lambda _: call(self.now), None)

    def run(self, until: float, *, before: bool = False) -> None:
        """Let the pool run until a time, with what happens then, or to just ``before``."""
        events = self._events
        while events and (events[0][0] < until or (events[0][0] == until and not before)):
            self.now, _, call, argument = heappop(events)
            call(argument)
        self.now = until

    # ---- jobs

    def _arrive(self, _: None) -> None:
        next_at = self.queues.arrive(self.now)
        if next_at is not None:
            self._at(next_at, self._arrive, None)

    def _look_at_factory(self, factory: Any) -> None:
        self.queues.top_up(factory, self.now)
        self._at(self.now + factory.period_seconds, self._look_at_factory, factory)

    # ---- claims

    def _refusal(self, slot: SimSlot, kind: ShapedKind, now: float) -> Optional[str]:
        kind = kind.on(slot)
        refused = refusal(slot, kind.cores, kind.account, now, self.start_knobs)
        if refused is None and self.setup.site_start is not None:
            return None if self.setup.site_start(slot, kind, now, None) else "start"
        return refused

    def _start(self, slot: SimSlot, kind: ShapedKind, at: float) -> None:
        """Make a claim for the first pending job of a kind, which starts at a time."""
        kind = kind.on(slot)
        claim = Claim(slot, kind, at)
        slot.claims[claim] = None
        before = slot.free_cores
        slot.free_cores -= kind.cores
        if self._in_cron_mode and slot.free_cores < self.start_knobs.multicore_cores <= before:
            slot.room_until = self.now
        slot.free_memory_mib -= kind.memory_mib
        slot.free_disk_kib -= kind.disk_kib
        for name, count in kind.custom:
            slot.free_custom[name] -= count
        self._hold(claim, kind.cores)
        self._begin(claim, kind, at)

    def _hold(self, claim: Claim, cores: int) -> None:
        """Count cores that a claim takes, or gives back below 0."""
        slot, now = claim.slot, self.now
        target = slot.target
        if target is not None and is_within(claim.kind.account, target.held_back):
            slot.held_back_cores += cores
        if self._in_cron_mode:
            taken = slot.total_cores - slot.free_cores
            slot.taken_since = max(0, taken - slot.counted_taken)
        idle = self.idle
        if idle.since != now:
            idle.settle(now)
        if slot.idle_as:
            forget_cause(slot, idle)
        idle.total -= cores
        hs06 = cores * slot.node.spec.hs06_per_core
        self.measures[claim.group].use(now, cores, hs06)
        weight = cores if self._by_cores else hs06
        self.accountant.charge(claim.kind.submitter, now, weight)
        self.candidates.note(slot)

    def _begin(self, claim: Claim, kind: ShapedKind, at: float) -> None:
        claim.submitted_at, run_seconds = self.queues.pop(kind, self.now)
        claim.job, claim.run_until = kind, at + run_seconds
        claim.slot.begin(claim, at)
        self.measures[claim.group].wait(kind.cores, at - claim.submitted_at)
        claim.number = self._at(claim.run_until, self._end, (claim, self._number + 1))

    def _end(self, run: tuple[Claim, int]) -> None:
        claim, number = run
        if claim.number != number:
            return
        for call in self.on_end:
            call(claim, self.now)
        self.measures[claim.group].done[claim.job.cores] += 1
        claim.slot.end(claim)
        kind = self._next_of(claim)
        if kind is None:
            self._release(claim)
        else:
            self._begin(claim, kind, self.now)

    def _next_of(self, claim: Claim) -> Optional[ShapedKind]:
        """Kind of the job that its access point runs next in a claim; None for none."""
        slot, now = claim.slot, self.now
        worklife = self.setup.access.claim_worklife_seconds
        worklife = claim_worklife_seconds(slot, claim.kind.account, now, self.start_knobs, worklife)
        if slot.draining or (worklife >= 0 and now - claim.since > worklife):
            return None
        first, oldest = None, inf
        for waiting in self.queues.of_submitter[claim.kind.submitter, claim.kind.access_point]:
            kind = waiting.on(slot)
            if not kind.pending or kind.pending[0][0] >= oldest:
                continue
            if (
                kind.cores <= claim.cores
                and kind.memory_mib <= claim.memory_mib
                and kind.disk_kib <= claim.disk_kib
                and (kind is claim.kind or not kind.custom)
                and self.setup.meets(slot, kind)
            ):
                if self._refuses_reuse(claim, kind):
                    self.counts["refusals"] += 1
                    continue
                first, oldest = kind, kind.pending[0][0]
        return first

    def _refuses_reuse(self, claim: Claim, kind: ShapedKind) -> bool:
        slot, now, site_start = claim.slot, self.now, self.setup.site_start
        of_claim, of_job = (claim.cores, claim.kind.account), (kind.cores, kind.account)
        if reuse_refusal(slot, *of_claim, *of_job, now, self.start_knobs) is not None:
            return True
        return site_start is not None and not site_start(slot, kind, now, claim.kind)

    def _release(self, claim: Claim) -> None:
        slot, kind = claim.slot, claim.kind
        del slot.claims[claim]
        claim.number = 0
        before = slot.free_cores
        slot.free_cores += kind.cores
        slot.free_memory_mib += kind.memory_mib
        slot.free_disk_kib += kind.disk_kib
        for name, count in kind.custom:
            slot.free_custom[name] += count
        self._hold(claim, -kind.cores)
        knobs = self.start_knobs
        if before < knobs.multicore_cores <= slot.free_cores and self._is_new_room(slot):
            slot.room_since = self.now
            self._at(self.now + knobs.grace_seconds, self.candidates.note, slot)

    def _is_new_room(self, slot: SimSlot) -> bool:
        """Tell if grace begins again: in cron mode mc_grace.py has seen the cores taken."""
        return not self._in_cron_mode or is_seen(
            slot.room_until,
            self.now,
            self.start_knobs.mc_grace_period_seconds,
            slot.node.mc_grace_phase,
        )

    def evict(self, claim: Claim) -> None:
        """Send a running job back to its queue, without its work."""
        for call in self.on_end:
            call(claim, self.now)
        job = (claim.submitted_at, claim.run_until - claim.started_at)
        self.queues.put_back(claim.job, job, self.now)
        self.counts["evicted_jobs"] += 1
        claim.slot.end(claim)
        self.counts["lost_core_seconds"] += claim.cores * max(0.0, self.now - claim.started_at)
        self._release(claim)

    # ---- negotiation

    def _cycle(self, _: None) -> None:
        """Run a negotiation cycle."""
        knobs, shapes = self.setup.negotiator, self.queues.shapes
        self.counts["cycles"] += 1
        begin = self._cycle_at = self.now
        self._matches = 0
        if self.queues.pending:
            self.candidates.forget(shapes)
            if self.setup.reads_time:
                self._note_free_slots()
            self._cycle_end = len(self.candidates.changes)
            self._rejected.clear()
            stopped: frozenset[str] = frozenset()
            active = [shape for shape in shapes if shape.pending]
            if any(self._best(shape) is not None for shape in active):
                stopped = self._negotiate()
            self._classify(stopped)
        duration = knobs.base_seconds + self._matches * knobs.match_seconds
        next_begin = max(knobs.interval_seconds, duration + knobs.cycle_delay_seconds)
        self._at(begin + next_begin, self._cycle, None)

    def _negotiate(self) -> frozenset[str]:
        """Match pending jobs; submitters that a quota stopped."""
        setup, unit = self.setup, 1.0 if self._by_cores else self._mean_hs06
        ads = [
            SubmitterAd(submitter, weight, access_point)
            for (submitter, access_point), kinds in self.queues.of_submitter.items()
            if (weight := fsum(len(kind.pending) * (kind.wanted_cores * unit) for kind in kinds))
        ]
        accountant, weights = self.accountant, self._weights
        return negotiate(
            setup.negotiator, setup.quotas, ads, accountant, weights, self.now, self._match
        )

    def _best(self, shape: Shape) -> Optional[SimSlot]:
        policy = self.setup.access.consumption_policy
        end = len(self.candidates.changes) if policy else self._cycle_end
        return self.candidates.best(shape, self.now, end)

    def _match(self, ad: SubmitterAd, room: float) -> Optional[float]:
        """Start the oldest job of a submitter that fits, as `negotiate` wants it."""
        too_large: Optional[float] = None
        rejected, knobs = self._rejected, self.setup.negotiator
        for kind in _by_age(self.queues.of_submitter[ad.name, ad.access_point]):
            if kind.shape in rejected:
                continue
            slot = self._best(self.queues.shapes[kind.shape])
            if slot is None:
                rejected.add(kind.shape)
                continue
            policy = self.setup.access.consumption_policy
            cores = kind.on(slot).cores if policy else slot.free_cores
            weight = cores * (1.0 if self._by_cores else slot.node.spec.hs06_per_core)
            if weight <= room:
                self._matches += 1
                at = self._cycle_at + knobs.base_seconds + self._matches * knobs.match_seconds
                self._start(slot, kind, at)
                if self.setup.access.leftovers and not policy:
                    self._fill(slot, kind, at)
                return weight
            too_large = inf
        return too_large

    def _fill(self, slot: SimSlot, like: ShapedKind, at: float) -> None:
        """Start further jobs of a submitter on what is left of a slot."""
        kinds = self.queues.of_submitter[like.submitter, like.access_point]
        while slot.free_cores:
            for kind in _by_age(kinds):
                if (
                    slot.fits(kind)
                    and self.setup.meets(slot, kind)
                    and self._refusal(slot, kind, self.now) is None
                ):
                    self._start(slot, kind, at)
                    break
            else:
                return

    def _classify(self, stopped: frozenset[str]) -> None:
        active = [shape for shape in self.queues.shapes if shape.pending]
        if not active:
            self.idle.settle(self.now)
            self.idle.looked = False
            return
        numbers: set[int] = set()
        if stopped:
            waiting = [kind for kind in self.queues.kinds if kind.pending]
            numbers.update(kind.shape for kind in waiting)
            numbers -= {kind.shape for kind in waiting if kind.submitter not in stopped}
        self.candidates.classify(self.idle, self.now, active, numbers)

    # ---- what acts on nodes

    def wait(self, until: float, multicore_only: Sequence[int]) -> None:
        """Have neither grace nor START of the multicore nodes of these numbers act until then."""
        knobs = self.start_knobs
        slots = [slot for number in multicore_only for slot in self.nodes[number].slots]
        self.start_knobs = replace(knobs, enabled=False)
        for slot in slots:
            slot.multicore_only = False

        def act(_now: float) -> None:
            self.start_knobs = knobs
            for slot in slots:
                slot.multicore_only = True
            self._note_free_slots()

        self.at(until, act)

    def set_target(self, node: SimNode, target: Optional[SlotTarget]) -> None:
        """Put a target in force on a node, renew it, or take it off."""
        for slot in node.slots:
            before, slot.target = slot.target, target
            # All but the last field, until when it is valid.
            renewed = before is not None and target is not None and before[:-1] == target[:-1]
            if not renewed:
                slot.held_back_cores = sum(
                    claim.cores
                    for claim in slot.claims
                    if target is not None and is_within(claim.kind.account, target.held_back)
                )
                self.candidates.note(slot)

    def look(self, slot: SimSlot) -> None:
        """Count the cores of the held-back group, as job_ctl does in cron mode."""
        slot.counted_cores, slot.taken_since = slot.held_back_cores, 0
        slot.counted_taken = slot.total_cores - slot.free_cores
        self.candidates.note(slot)

    def set_multicore_pending(self, pending: Optional[bool]) -> None:  # noqa: FBT001
        """Let nodes know whether a multicore job waits: grace needs one."""
        if pending == self.start_knobs.multicore_pending:
            return
        self.start_knobs = replace(self.start_knobs, multicore_pending=pending)
        self._note_free_slots()

    def _note_free_slots(self) -> None:
        for slot in self.slots:
            if slot.free_cores:
                self.candidates.note(slot)

    def set_draining(self, node: SimNode, *, draining: bool) -> None:
        """Let no job start on a node until its drain ends, or end it."""
        node.draining = draining
        for slot in node.slots:
            slot.draining = draining
            self.candidates.note(slot)

    # ---- figures

    def sample(self, seconds: float) -> None:
        """End an interval of so many seconds."""
        for name, measure in self.measures.items():
            measure.sample(self.now, seconds, self.queues.groups_pending[name])
        power = {name: measure.hs06_series[-1] for name, measure in self.measures.items()}
        _, due = self.due_hs06(power)
        for name, measure in self.measures.items():
            measure.due_series.append(due.get(name, 0.0))
        self.idle.sample(self.now, seconds)
        self.times.append(self.now)

    def due_hs06(self, power_hs06: Mapping[str, float]) -> tuple[float, dict[str, float]]:
        """Power present, and due to each group that used such power lately, HS06."""
        demand = dict(power_hs06)
        for kind in self.queues.kinds:
            if kind.pending and kind.placeable:
                demand[kind.group] += kind.wanted_cores * len(kind.pending) * self._mean_hs06
        present_hs06 = max(0.0, self._pool_hs06 - power_hs06[OTHER])
        return present_hs06, max_min_shares(present_hs06, demand, self.setup.pledge_hs06)

    def forget(self) -> None:
        """Begin to measure: the warm-up is over."""
        for name, measure in self.measures.items():
            self.measures[name] = GroupMeasure(measure.cores, measure.hs06, self.now)
        self.idle.forget(self.now)
        self.counts.clear()
        self.times.clear()

    def outcomes(self) -> dict[str, GroupOutcome]:
        """Outcome of each group, in the time that counts."""
        pledges = self.setup.pledge_hs06
        return {
            name: outcome_of(measure, pledges.get(name, 0.0))
            for name, measure in self.measures.items()
        }


def pool_weight(nodes: Iterable[NodeSpec], knobs: Negotiator) -> float:
    """SLOT_WEIGHT of all slots of nodes."""
    by_cores = knobs.slot_weight == "cores"
    return fsum(node.cores * (1.0 if by_cores else node.hs06_per_core) for node in nodes)


def _by_age(kinds: Iterable[ShapedKind]) -> list[ShapedKind]:
    """Kinds with pending jobs, that of the oldest job first."""
    waiting = [kind for kind in kinds if kind.pending]
    if len(waiting) > 1:
        waiting.sort(key=lambda kind: kind.pending[0][0])
    return waiting
