"""Snapshots of the twin, as a cycle takes them of a real pool.

Their rows of jobs are those that `sharectl.plan.records.as_kept` makes of a real pool's.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from math import inf
from typing import NamedTuple, Optional

from sharectl.model import Node, PendingJobs, RunningJobs, Snapshot
from sharectl.plan.records import kept_age
from sharectl.plan.waits import EDGES_SECONDS, age_bin
from sharectl.shares.demand import Request, pending_rows, shared_out
from sharectl_lab.twin.engine import Twin
from sharectl_lab.twin.matching import Meets
from sharectl_lab.twin.pool import ShapedKind, SimNode, SimSlot
from sharectl_lab.twin.run_times import Ages
from sharectl_lab.twin.start import MULTICORE_ONLY_CORES, is_in_grace

EPOCH = 1_700_000_000
"""Unix seconds at which the time of a twin begins."""

_ENDS = (0, *EDGES_SECONDS[1:], inf)
"""Ends of the bins of age, by their number from 1."""

_Sums = dict[tuple[str, int], list[int]]
"""Group and number of a bin of age, from 1 -> jobs, and the sum of their ages."""


class TwinLook(NamedTuple):
    """Snapshot, and the ages of its jobs."""

    snapshot: Snapshot
    ages: Mapping[str, Ages]
    """Group -> its jobs."""
    new_ages: Mapping[str, Ages]
    """Group -> those of its jobs that began since the last look."""


def unix(now: float) -> int:
    """Unix seconds at a time of the twin."""
    return EPOCH + int(now)


class Looks:
    """Looks at the nodes and jobs of a twin."""

    def __init__(self, twin: Twin, meets: Meets, most_cores: Optional[int] = None) -> None:
        self._twin = twin
        self._meets = meets
        self._most_cores = most_cores
        """Larger requests count as this; None: as they are."""
        self._placeable: dict[int, bool] = {}
        self._records: dict[str, tuple[object, Node]] = {}
        """Node -> its state and its record as of the last look: few change."""

    def take(
        self,
        obeyed: Iterable[Optional[int]],
        helped: Mapping[str, str],
        last_at: Optional[int] = None,
    ) -> TwinLook:
        """Look at a time.

        ``obeyed`` has the sequence that each node acts on, in their order, ``helped`` nodes with
        their groups, ``last_at`` the Unix seconds of the last look.
        """
        now = self._twin.now
        taken_at = unix(now)
        # No job is younger than 0 s: none is new at the first look.
        newest_seconds = 0 if last_at is None else taken_at - last_at
        sums: _Sums = {}
        new: _Sums = {}
        running: list[RunningJobs] = []
        for node in self._twin.nodes:
            group = helped.get(node.spec.name)
            running += _rows(node, int(now), group, sums, newest_seconds, new)
        nodes = (self._record(node, sequence) for node, sequence in zip(self._twin.nodes, obeyed))
        snapshot = Snapshot(taken_at, tuple(nodes), tuple(running), self._pending())
        return TwinLook(snapshot, _ages(sums), _ages(new))

    def _record(self, node: SimNode, obeyed: Optional[int]) -> Node:
        now, knobs, grace = self._twin.now, self._twin.start_knobs, 0
        for slot in node.slots:
            if now < slot.room_since + knobs.grace_seconds and is_in_grace(slot, now, knobs):
                grace += slot.free_cores
        spec = node.spec
        state = (node.draining, obeyed, grace)
        before = self._records.get(spec.name)
        if before is not None and before[0] == state:
            return before[1]
        record = Node(
            name=spec.name,
            machine=spec.name,
            cores=spec.cores,
            hs06_per_core=spec.hs06_per_core,
            controlled=spec.controlled,
            memory_mib=sum(slot.memory_mib for slot in spec.slots),
            draining=node.draining,
            obeyed_sequence=obeyed,
            multicore_only=spec.multicore_only,
            several_slots=len(spec.slots) > 1,
            grace_cores=grace,
        )
        self._records[spec.name] = (state, record)
        return record

    def _pending(self) -> tuple[PendingJobs, ...]:
        counted: Counter[Request] = Counter()
        unplaceable: Counter[Request] = Counter()
        for kind in self._twin.kinds:
            for requested, jobs in self._sizes(kind, len(kind.pending)).items():
                cores = requested if self._most_cores is None else min(requested, self._most_cores)
                request = (kind.group, cores, kind.memory_mib)
                counted[request] += jobs
                if not self._is_placeable(kind):
                    unplaceable[request] += jobs
        return pending_rows(counted, unplaceable)

    def _sizes(self, kind: ShapedKind, jobs: int) -> Mapping[int, int]:
        """Jobs by the cores that they request; whole nodes as a snapshot of a pool counts them."""
        if kind.sizes is None or not jobs:
            return {kind.cores: jobs} if jobs else {}
        slots = (slot for slot in self._twin.slots if self._could_run(slot, kind))
        sizes = Counter(node.spec.cores for node in dict.fromkeys(slot.node for slot in slots))
        return shared_out(jobs, sizes or {kind.cores: 1})

    def _is_placeable(self, kind: ShapedKind) -> bool:
        """Tell if some node could run a job if it were empty."""
        if kind.number not in self._placeable:
            slots = self._twin.slots
            self._placeable[kind.number] = any(self._could_run(slot, kind) for slot in slots)
        return self._placeable[kind.number]

    def _could_run(self, slot: SimSlot, kind: ShapedKind) -> bool:
        is_refused = slot.multicore_only and kind.on(slot).cores < MULTICORE_ONLY_CORES
        return slot.could_fit(kind) and not is_refused and self._meets(slot, kind)


def _rows(
    node: SimNode, now: int, helped: Optional[str], sums: _Sums, newest_seconds: int, new: _Sums
) -> list[RunningJobs]:
    """Rows of a node's jobs, as `as_kept` joins them.

    Adds all jobs to ``sums``, and to ``new`` those that are younger than ``newest_seconds``.
    """
    # Sums of slices: a month of a large pool has fifty million jobs at its looks.
    alike: dict[tuple[str, int, bool, int], list[int]] = {}
    for slot in node.slots:
        for (group, cores, memory_mib), starts in slot.starts.items():
            end = len(starts)
            while end:
                begin = end - 1
                age = now - starts[begin]
                if age < 0:  # noqa: PLR1730 - a call of max takes as long as the rest
                    # It has a match, and starts soon.
                    age = 0
                number = bisect_right(EDGES_SECONDS, age)
                if age < newest_seconds:
                    youngest = new.setdefault((group, number), [0, 0])
                    youngest[0] += 1
                    youngest[1] += age
                elif age and group != helped:
                    begin = bisect_right(starts, now - _ENDS[number], 0, begin)
                seconds = age if end - begin == 1 else (end - begin) * now - sum(starts[begin:end])
                key = (group, cores, memory_mib > 0, number if group != helped else -age)
                row = alike.get(key)
                if row is None:
                    alike[key] = [end - begin, seconds, (end - begin) * memory_mib]
                else:
                    row[0] += end - begin
                    row[1] += seconds
                    row[2] += (end - begin) * memory_mib
                end = begin
    name, power = node.spec.name, node.spec.hs06_per_core
    rows = []
    for (group, cores, _, number), (jobs, seconds, memory_mib) in alike.items():
        age = _KEPT_AGES[seconds // jobs] if number > 0 else -number
        # In half the time of `RunningJobs(*fields)`.
        fields = (name, group, cores, power, age, jobs, -(-memory_mib // jobs))
        rows.append(tuple.__new__(RunningJobs, fields))
        kind = (group, number if number > 0 else bisect_right(EDGES_SECONDS, age))
        if kind in sums:
            total = sums[kind]
            total[0] += jobs
            total[1] += seconds
        else:
            sums[kind] = [jobs, seconds]
    return rows


class _KeptAges(dict[int, int]):
    """Mean age of alike jobs, seconds -> that of their row: the mean is of their bin."""

    def __missing__(self, seconds: int) -> int:
        age = self[seconds] = kept_age(seconds, age_bin(seconds))
        return age


_KEPT_AGES = _KeptAges()


def _ages(sums: _Sums) -> dict[str, Ages]:
    ages: dict[str, Ages] = {}
    for (group, number), (jobs, seconds) in sums.items():
        ages.setdefault(group, Ages()).add(number - 1, jobs, seconds)
    return ages
