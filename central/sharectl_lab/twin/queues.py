"""Jobs that wait: they arrive, or are kept in supply, and leave their queue for a claim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Optional

from sharectl_lab.twin.matching import Meets, Shape
from sharectl_lab.twin.measures import IdleMeasure
from sharectl_lab.twin.pool import ShapedKind, SimSlot, group_of
from sharectl_lab.workload.draw import Arrival, Workload


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
        self._idle = idle
        self._arrivals: Iterator[Arrival] = workload.arrivals()
        self._next = next(self._arrivals, None)
        alike: dict[object, Shape] = {}
        for number, job_kind in enumerate(workload.kinds):
            kind = ShapedKind(number, job_kind, group_of(job_kind.account, groups))
            shape = alike.setdefault(_look_of(kind), Shape(len(alike), kind))
            example, kind.shape = shape.example, shape.number
            if example is kind:
                self.shapes.append(shape)
                kind.placeable = any(slot.could_fit(kind) and meets(slot, kind) for slot in slots)
                if kind.sizes is not None:
                    fitting = (slot.total_cores for slot in slots if slot.could_fit(kind))
                    kind.wanted_cores = min(fitting, default=kind.cores)
            kind.placeable, kind.wanted_cores = example.placeable, example.wanted_cores
            self.kinds.append(kind)
            self.of_submitter.setdefault((kind.submitter, kind.access_point), []).append(kind)

    def arrive(self, now: float) -> Optional[float]:
        """Submit all jobs that come until now; returns the time of the next one."""
        arrival = self._next
        while arrival is not None and arrival.at <= now:
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
        return kind.pending.popleft()

    def put_back(self, kind: ShapedKind, job: tuple[float, float], now: float) -> None:
        """Have a job wait again, before all others of its kind."""
        kind.pending.appendleft(job)
        self._count(kind, 1, now)

    def _count(self, kind: ShapedKind, jobs: int, now: float) -> None:
        self.shapes[kind.shape].pending += jobs
        self.pending += jobs
        self.groups_pending[kind.group] += jobs
        self._idle.want(now, kind.wanted_cores * jobs, placeable=kind.placeable)


def _look_of(kind: ShapedKind) -> tuple[object, ...]:
    size = (kind.cores, kind.memory_mib, kind.disk_kib, kind.custom)
    is_whole = kind.sizes is not None
    return (kind.account, kind.requirements, tuple(kind.attributes.items()), is_whole, *size)
