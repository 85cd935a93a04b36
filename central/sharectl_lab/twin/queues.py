"""Jobs that wait: they arrive, or are kept in supply, and leave their queue for a claim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Optional

from sharectl_lab.twin.matching import Meets, Shape
from sharectl_lab.twin.measures import IdleMeasure
from sharectl_lab.twin.pool import ShapedKind, SimSlot, group_of
from sharectl_lab.twin.records import Arrival, Workload


class Queues:
    """Waiting jobs of a workload, by kind, in the order of their submission."""

    def __init__(
        self,
        workload: Workload,
        groups: Sequence[str],
        slots: Sequence[SimSlot],
        meets: Meets,
        idle: IdleMeasure,
    ) -> None:
        self.kinds: list[ShapedKind] = []
        self.shapes: list[Shape] = []
        self.of_submitter: dict[tuple[str, int], list[ShapedKind]] = {}
        """Submitter and access point -> their kinds."""
        self.pending = 0
        """Jobs that wait."""
        self.groups_pending: Counter[str] = Counter()
        self._workload = workload
        self._groups = groups
        self._slots = slots
        self._meets = meets
        self._idle = idle
        self._arrivals: Iterator[Arrival] = workload.arrivals()
        self._add_kinds()
        self._next = next(self._arrivals, None)

    def arrive(self, now: float) -> Optional[float]:
        """Submit all jobs that come until now; returns the time of the next one."""
        arrival = self._next
        while arrival is not None and arrival.at <= now:
            if arrival.kind >= len(self.kinds):
                self._add_kinds()
            kind = self.kinds[arrival.kind]
            kind.pending.append((now, arrival.run_seconds))
            self._count(kind, 1, now)
            arrival = next(self._arrivals, None)
        self._next = arrival
        return None if arrival is None else arrival.at

    def top_up(self, factory: Any, now: float) -> None:
        """Submit as many jobs as a factory lacks."""
        kind = self.kinds[factory.kind]
        missing = factory.keep_pending - len(kind.pending)
        if missing > 0 and factory.is_active(now):
            draw_seconds = factory.draw_seconds
            kind.pending.extend([(now, draw_seconds()) for _ in range(missing)])
            self._count(kind, missing, now)

    def pop(self, kind: ShapedKind, now: float) -> tuple[float, float]:
        """Submission and run time of the first job of a kind, which waits no more."""
        self._count(kind, -1, now)
        submitted, run_seconds = kind.pending.popleft()
        return submitted, run_seconds

    def put_back(self, kind: ShapedKind, job: tuple[float, float], now: float) -> None:
        """Have a job wait again, before all others of its kind."""
        kind.pending.appendleft(job)
        self._count(kind, 1, now)

    def _count(self, kind: ShapedKind, jobs: int, now: float) -> None:
        self.shapes[kind.shape].pending += jobs
        self.pending += jobs
        self.groups_pending[kind.group] += jobs
        self._idle.want(now, kind.wanted_cores * jobs, placeable=kind.placeable)

    def _add_kinds(self) -> None:
        """Take up kinds that the workload has met since."""
        kinds = self._workload.kinds
        alike = {_look_of(shape.example): shape for shape in self.shapes}
        for number in range(len(self.kinds), len(kinds)):
            kind = ShapedKind(number, kinds[number], group_of(kinds[number].account, self._groups))
            look = _look_of(kind)
            if look not in alike:
                alike[look] = Shape(len(self.shapes), kind)
                self.shapes.append(alike[look])
            kind.shape = alike[look].number
            example = alike[look].example
            kind.placeable = example.placeable
            if example is kind:
                kind.placeable = self._is_placeable(kind)
                if kind.sizes is not None:
                    fitting = (slot.total_cores for slot in self._slots if slot.could_fit(kind))
                    kind.wanted_cores = min(fitting, default=kind.cores)
            kind.wanted_cores = example.wanted_cores
            self.kinds.append(kind)
            self.of_submitter.setdefault((kind.submitter, kind.access_point), []).append(kind)

    def _is_placeable(self, kind: ShapedKind) -> bool:
        return any(slot.could_fit(kind) and self._meets(slot, kind) for slot in self._slots)


def _look_of(kind: ShapedKind) -> tuple[object, ...]:
    size = (kind.cores, kind.memory_mib, kind.disk_kib, kind.custom)
    is_whole = kind.sizes is not None
    return (kind.account, kind.requirements, tuple(kind.attributes.items()), is_whole, *size)
