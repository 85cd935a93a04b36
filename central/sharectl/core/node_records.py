"""What a plan did on each node, for the ledger and for `explain`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import floor, log10
from typing import Optional

from sharectl.core.cycle_record import HeldJobs, NodeRecord
from sharectl.core.model import Node, RunningJobs, Snapshot, Target
from sharectl.core.wanted import Wait

NO_WAIT = Wait(0.0, 0.0)


def node_records(
    snapshot: Snapshot,
    targets: Iterable[Target],
    reasons: Mapping[str, str],
    waits: Mapping[str, Wait],
) -> tuple[NodeRecord, ...]:
    """A record for every node of the snapshot and every node with a target or a reason, by name."""
    held = _held(snapshot)
    stands = {target.node: target for target in targets}
    nodes = {node.name: node for node in snapshot.nodes}
    return tuple(
        _record(nodes.get(name) or _absent(name), held.get(name, ()), stands.get(name), reasons, waits)
        for name in sorted({*nodes, *stands, *reasons})
    )


@lru_cache(maxsize=65_536)
def rounded(number: int) -> int:
    """``number`` to two digits, so that the same is kept of what is nearly the same."""
    if number < 1:
        return 0
    return int(round(number, 1 - floor(log10(number))))


def _record(
    node: Node,
    held: tuple[HeldJobs, ...],
    target: Optional[Target],
    reasons: Mapping[str, str],
    waits: Mapping[str, Wait],
) -> NodeRecord:
    wait = waits.get(node.name, NO_WAIT) if target is not None else NO_WAIT
    return NodeRecord(
        node=node.name,
        cores=node.cores,
        hs06_per_core=node.hs06_per_core,
        controlled=node.controlled,
        held=held,
        target=target,
        reason=reasons.get(node.name),
        wait_seconds=wait.seconds,
        idle_core_seconds=wait.idle_core_seconds,
        memory_mib=node.memory_mib,
        reserved=node.reserved,
        draining=node.draining,
        multicore_only=node.multicore_only,
    )


def _absent(name: str) -> Node:
    return Node(name, name, cores=0, hs06_per_core=0.0, controlled=False)


def _held(snapshot: Snapshot) -> dict[str, tuple[HeldJobs, ...]]:
    """Jobs of each node by group and size."""
    jobs: defaultdict[str, list[RunningJobs]] = defaultdict(list)
    for job in snapshot.running:
        jobs[job.node].append(job)
    return {node: _by_kind(here) for node, here in jobs.items()}


def _by_kind(here: Iterable[RunningJobs]) -> tuple[HeldJobs, ...]:
    sums: dict[tuple[str, int], list[int]] = {}
    for job in here:
        row = sums.setdefault((job.group, job.cores), [0, 0, 0, 0, job.memory_mib])
        row[0] += job.jobs
        row[1] += job.seconds * job.jobs
        if job.memory_mib > 0:
            row[2] += job.jobs
            row[3] += job.memory_mib * job.jobs
            row[4] = job.memory_mib if row[4] == job.memory_mib else 0
    return tuple(_jobs(group, cores, row) for (group, cores), row in sorted(sums.items()))


def _jobs(group: str, cores: int, sums: list[int]) -> HeldJobs:
    jobs, seconds, with_memory, memory_mib, alike_mib = sums
    return HeldJobs(
        group,
        cores,
        jobs,
        rounded(seconds // jobs) if jobs else 0,
        # Exact where all hold the same: a job for which there is just enough room must fit again.
        alike_mib or (rounded(memory_mib // with_memory) if with_memory else 0),
    )
