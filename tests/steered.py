"""A twin whose jobs a test starts and ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf
from random import Random
from typing import Any, NamedTuple, Optional

from sharectl_lab.twin.engine import Setup, Twin
from sharectl_lab.twin.pool import Claim, SimNode, SimSlot
from sharectl_lab.twin.records import NodeSpec, SlotSpec
from sharectl_lab.twin.settings import Access
from sharectl_lab.twin.start import SlotTarget
from sharectl_lab.workload.draw import Arrival, JobKind


class Act(NamedTuple):
    """A call that changed the twin."""

    at: float
    name: str
    node: str = ""
    argument: object = None


class Listed(NamedTuple):
    """Workload of listed jobs."""

    kinds: tuple[JobKind, ...]
    jobs: tuple[Arrival, ...]
    factories: tuple[()] = ()

    def arrivals(self) -> Iterator[Arrival]:
        """Jobs in the order of their times."""
        return iter(self.jobs)


class FakeTwin(Twin):
    """A pool whose jobs start where and when the test says; it notes what acts on it."""

    def __init__(self, nodes: Iterable[NodeSpec], kinds: Sequence[JobKind]) -> None:
        groups = dict.fromkeys(sorted({kind.account for kind in kinds}), 1.0)
        # No job takes over the claim of another one.
        access = Access(claim_worklife_seconds=0.0)
        super().__init__(Setup(tuple(nodes), groups, access=access), Listed(tuple(kinds), ()))
        self.acts: list[Act] = []
        self.closed: set[str] = set()
        """Nodes on which `fill` starts no jobs, beside those with a target."""

    def _cycle(self, _: None) -> None:
        """No negotiation cycle."""

    # ---- jobs

    def start(self, slot: SimSlot, kind: int, run_seconds: float = inf) -> Claim:
        self.queues.put_back(self.kinds[kind], (self.now, run_seconds), self.now)
        self._start(slot, self.kinds[kind], self.now)
        assert slot.free_cores >= 0
        return [*slot.claims][-1]

    def end(self, claim: Claim) -> None:
        if claim in claim.slot.claims:
            self._end((claim, claim.number))

    def evict(self, claim: Claim) -> None:
        self.acts.append(Act(self.now, "evict", claim.slot.node.spec.name))
        super().evict(claim)

    # ---- what acts on nodes

    def set_target(self, node: SimNode, target: Optional[SlotTarget]) -> None:
        self.acts.append(Act(self.now, "target", node.spec.name, target))
        super().set_target(node, target)

    def set_multicore_pending(self, pending: Optional[bool]) -> None:  # noqa: FBT001 - as the engine's
        self.acts.append(Act(self.now, "pending", argument=pending))
        super().set_multicore_pending(pending)

    def look(self, slot: SimSlot) -> None:
        assert slot.target is not None
        self.acts.append(Act(self.now, "look", slot.node.spec.name))
        super().look(slot)

    def set_draining(self, node: SimNode, *, draining: bool) -> None:
        assert node.draining != draining
        self.acts.append(Act(self.now, "drain" if draining else "resume", node.spec.name))
        super().set_draining(node, draining=draining)

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
