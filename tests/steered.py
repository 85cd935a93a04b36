"""A hand-written twin: a clock, nodes, and jobs that a test starts and ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from random import Random
from typing import Any, Callable, NamedTuple, Optional

from sharectl.shares.groups import is_within
from sharectl_lab.twin.pool import Claim, ShapedKind, SimNode, SimSlot, group_of
from sharectl_lab.twin.records import JobKind, NodeSpec, SlotSpec
from sharectl_lab.twin.start import SlotTarget, StartKnobs

Call = Callable[[float], None]


class Act(NamedTuple):
    """A call that changed the twin."""

    at: float
    name: str
    node: str = ""
    argument: object = None


class FakeTwin:
    """A pool whose jobs start where and when the test says; it notes what acts on it."""

    def __init__(self, nodes: Iterable[NodeSpec], kinds: Sequence[JobKind]) -> None:
        self.now = 0.0
        self.nodes = [SimNode(number, spec) for number, spec in enumerate(nodes)]
        groups = sorted({kind.account for kind in kinds})
        self.kinds = [
            ShapedKind(number, kind, group_of(kind.account, groups))
            for number, kind in enumerate(kinds)
        ]
        self.on_end: list[Callable[[Claim, float], None]] = []
        self.start_knobs = StartKnobs()
        self.acts: list[Act] = []
        self.counts: Counter[str] = Counter()
        self.closed: set[str] = set()
        """Nodes on which `fill` starts no jobs, beside those with a target."""
        self._events: list[tuple[float, int, Call]] = []
        self._number = 0

    def at(self, time: float, call: Call) -> None:
        assert time >= self.now
        self._number += 1
        heappush(self._events, (time, self._number, call))

    def run(self, until: float) -> None:
        while self._events and self._events[0][0] <= until:
            self.now, _, call = heappop(self._events)
            call(self.now)
        self.now = until

    # ---- jobs

    def start(self, slot: SimSlot, kind: int, run_seconds: Optional[float] = None) -> Claim:
        claim = Claim(slot, self.kinds[kind], self.now)
        slot.claims[claim] = None
        slot.begin(claim, self.now)
        slot.free_cores -= claim.cores
        slot.free_memory_mib -= claim.memory_mib
        assert slot.free_cores >= 0
        if run_seconds is not None:
            claim.run_until = self.now + run_seconds
            self.at(claim.run_until, lambda _: self.end(claim))
        return claim

    def end(self, claim: Claim) -> None:
        slot = claim.slot
        if claim not in slot.claims:
            return
        for call in self.on_end:
            call(claim, self.now)
        del slot.claims[claim]
        slot.end(claim)
        slot.free_cores += claim.cores
        slot.free_memory_mib += claim.memory_mib

    def evict(self, claim: Claim) -> None:
        self.counts["evicted_jobs"] += 1
        self.acts.append(Act(self.now, "evict", claim.slot.node.spec.name))
        self.end(claim)

    # ---- what acts on nodes

    def set_target(self, node: SimNode, target: Optional[SlotTarget]) -> None:
        self.acts.append(Act(self.now, "target", node.spec.name, target))
        for slot in node.slots:
            slot.target = target

    def set_multicore_pending(self, pending: Optional[bool]) -> None:  # noqa: FBT001 - as the engine's
        self.acts.append(Act(self.now, "pending", argument=pending))

    def look(self, slot: SimSlot) -> None:
        assert slot.target is not None
        self.acts.append(Act(self.now, "look", slot.node.spec.name))
        slot.counted_cores = sum(
            claim.cores
            for claim in slot.claims
            if is_within(claim.kind.account, slot.target.held_back)
        )

    def drain(self, node: SimNode) -> None:
        self._set_draining(node, draining=True)

    def resume(self, node: SimNode) -> None:
        self._set_draining(node, draining=False)

    def _set_draining(self, node: SimNode, *, draining: bool) -> None:
        assert node.draining != draining
        node.draining = draining
        for slot in node.slots:
            slot.draining = draining
        self.acts.append(Act(self.now, "drain" if draining else "resume", node.spec.name))

    @staticmethod
    def is_idle(node: SimNode) -> bool:
        return not any(slot.claims for slot in node.slots)

    def count(self, name: str, by: float = 1) -> None:
        self.counts[name] += int(by)

    # ---- what a test asks

    def acts_of(self, name: str, node: Optional[str] = None) -> list[Act]:
        return [act for act in self.acts if act.name == name and node in (None, act.node)]


def node(number: int, cores: int = 16, hs06_per_core: float = 10.0, **others: Any) -> NodeSpec:
    """A node with one slot, of 2 GiB a core."""
    slot = SlotSpec(cores, 2048 * cores)
    return NodeSpec(f"wn-{number}", (slot,), hs06_per_core, **others)


def kind(account: str, cores: int = 1) -> JobKind:
    """Jobs of 2 GiB a core."""
    return JobKind(account, "user", cores, 2048 * cores)


def wait(twin: FakeTwin, number: int, jobs: int) -> None:
    """Have so many jobs of a kind pending."""
    pending = twin.kinds[number].pending
    pending.clear()
    pending.extend((twin.now, 1.0) for _ in range(jobs))


def fill(twin: FakeTwin, draw: Random, kinds: Sequence[int], most_seconds: float) -> None:
    """Start jobs of random kinds on all free cores, and others whenever some end.

    Cores under a target stay free.
    """

    def refill(slot: SimSlot, _now: float) -> None:
        while slot.target is None and slot.node.spec.name not in twin.closed:
            fitting = [number for number in kinds if twin.kinds[number].cores <= slot.free_cores]
            if not fitting:
                return
            number = fitting[int(draw.random() * len(fitting))]
            seconds = 1 + draw.random() ** 3 * most_seconds
            twin.start(slot, number, seconds)
            twin.at(twin.now + seconds, lambda now: refill(slot, now))

    for every in twin.nodes:
        for slot in every.slots:
            refill(slot, twin.now)
