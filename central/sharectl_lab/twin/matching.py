"""Slots that shapes of jobs may take, and the cause of each idle core.

A *shape*, all kinds that differ in their user alone, looks again only at slots that have changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Callable, Optional

from sharectl_lab.twin.measures import IdleMeasure
from sharectl_lab.twin.pool import ShapedKind, SimSlot
from sharectl_lab.twin.records import CAUSES

Refusal = Callable[[SimSlot, ShapedKind, float], Optional[str]]
"""Cause for which START refuses a job on a slot at a time; None if it admits it."""
Meets = Callable[[SimSlot, ShapedKind], bool]
"""Tells if a slot meets the requirements of a job."""
SiteStarts = Callable[[SimSlot, ShapedKind, float, Optional[ShapedKind]], bool]
"""Tells if a site's START lets a job start at a time: in a new dynamic slot for None, else in one
that is claimed, of the kind for which it was made."""
_RANK = {cause: rank for rank, cause in enumerate(CAUSES)}
_FEW_CHANGES = 10_000


@dataclass(eq=False)
class Shape:
    """Jobs that differ in their user and access point alone."""

    number: int
    example: ShapedKind
    pending: int = 0
    """Jobs that wait."""
    best: list[tuple[int, int, int, int, SimSlot]] = field(default_factory=list)
    """Heap of slots that it may take: free cores, free memory, place, version, slot."""
    seen: int = -1
    """Changes that it has looked at; -1 for none."""


class Candidates:
    """Slots by what has changed."""

    def __init__(self, slots: Sequence[SimSlot], refusal: Refusal, meets: Meets) -> None:
        self.slots = slots
        self._refusal = refusal
        self._meets = meets
        self.changes: list[SimSlot] = []
        self._classified = -1
        self._signature: object = None

    def note(self, slot: SimSlot) -> None:
        """Note that a slot has changed."""
        slot.version += 1
        slot.logged_at = len(self.changes)
        self.changes.append(slot)

    def forget(self, shapes: Iterable[Shape]) -> None:
        """Drop the log of changes where it has become long."""
        length = len(self.changes)
        if length <= max(_FEW_CHANGES, 4 * len(self.slots)):
            return
        for shape in shapes:
            shape.seen = 0 if shape.seen == length else -1
        self._classified = 0 if self._classified == length else -1
        self.changes.clear()
        for slot in self.slots:
            slot.logged_at = -1

    def best(self, shape: Shape, now: float, end: int) -> Optional[SimSlot]:
        """Slot that a shape takes next, by the first ``end`` changes (NEGOTIATOR_PRE_JOB_RANK)."""
        if shape.seen < end:
            self._look(shape, now, end)
        best = shape.best
        while best:
            *_, version, slot = best[0]
            if slot.version == version:
                return slot
            heappop(best)
        return None

    def _look(self, shape: Shape, now: float, end: int) -> None:
        best = shape.best
        changed: Iterable[SimSlot] = self._changed(shape.seen, end)
        if shape.seen < 0 or len(best) > 2 * len(self.slots) + 1000:
            best.clear()
            changed = (slot for slot in self.slots if slot.logged_at < end)
        kind, cores = shape.example, shape.example.cores
        for slot in changed:
            # Most slots of a busy pool are full.
            if (
                cores <= slot.free_cores
                and slot.fits(kind)
                and self._meets(slot, kind)
                and self._refusal(slot, kind, now) is None
            ):
                row = (slot.free_cores, slot.free_memory_mib, slot.order, slot.version, slot)
                heappush(best, row)
        shape.seen = end

    def _changed(self, begin: int, end: int) -> list[SimSlot]:
        """Slots whose last change is one of these."""
        changes = enumerate(self.changes[begin:end], begin)
        return [slot for place, slot in changes if slot.logged_at == place]

    def classify(
        self,
        idle: IdleMeasure,
        now: float,
        shapes: Sequence[Shape],
        stopped: Collection[int],
    ) -> None:
        """Give each slot's idle cores their cause at the end of a cycle.

        ``shapes`` have pending jobs; ``stopped`` are numbers of those that a quota stops.
        """
        idle.settle(now)
        signature = tuple((shape.number, shape.number in stopped) for shape in shapes)
        length = len(self.changes)
        changed: Iterable[SimSlot] = self.slots
        if idle.looked and signature == self._signature and self._classified >= 0:
            changed = self._changed(self._classified, length)
        for slot in changed:
            cause = self._cause(slot, now, shapes, stopped) if slot.free_cores else ""
            forget_cause(slot, idle)
            if cause:
                slot.cause, slot.idle_as = cause, slot.free_cores
                idle.cores[cause] += slot.free_cores
        self._signature, self._classified = signature, length
        idle.looked = True

    def _cause(
        self, slot: SimSlot, now: float, shapes: Sequence[Shape], stopped: Collection[int]
    ) -> str:
        if slot.draining:
            return "drain"
        first = _RANK["no-jobs"]
        for shape in shapes:
            kind = shape.example
            if not slot.could_fit(kind) or not self._meets(slot, kind):
                cause = "unmatchable"
            elif not slot.fits(kind):
                cause = "fragmentation"
            else:
                refused = self._refusal(slot, kind, now)
                cause = refused or ("quota" if shape.number in stopped else "cadence")
            first = min(first, _RANK[cause])
            if not first:
                break
        return _CAUSES[first]


_CAUSES = tuple(CAUSES)


def forget_cause(slot: SimSlot, idle: IdleMeasure) -> None:
    """Count a slot's idle cores as not looked at."""
    if slot.idle_as:
        idle.cores[slot.cause] -= slot.idle_as
        slot.idle_as = 0
