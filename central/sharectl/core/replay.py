"""A cycle of the ledger as the snapshot that it was decided on, as near as the record allows."""

from __future__ import annotations

from collections.abc import Iterator

from sharectl.core.cycle_record import CycleRecord, NodeRecord
from sharectl.core.group_tree import own_pending
from sharectl.core.model import Node, PendingJobs, RunningJobs, Snapshot


def snapshot_of(record: CycleRecord) -> Snapshot:
    """Snapshot of a cycle that was read with its nodes.

    What the ledger has rounded stays rounded: the jobs of one node, group and size have run for their mean time and
    hold their mean memory. Of pending jobs it has cores and about the memory, as plans see them; of rows that lack it the memory
    is unknown. Each job has the power of its node. Short host names stand for full ones; pending jobs of no configured group
    are not kept. Absent nodes, which are recorded for their target's sake, have no cores and are left out.
    """
    present = [node for node in record.nodes if node.cores > 0]
    return Snapshot(
        taken_at=record.taken_at,
        nodes=tuple(_node(node) for node in present),
        running=tuple(jobs for node in present for jobs in _running(node)),
        pending=tuple(_pending(record)),
        sources=record.sources,
    )


def _node(node: NodeRecord) -> Node:
    return Node(
        name=node.node,
        machine=node.node,
        cores=node.cores,
        hs06_per_core=node.hs06_per_core,
        controlled=node.controlled,
        memory_mib=node.memory_mib,
        reserved=node.reserved,
        draining=node.draining,
        multicore_only=node.multicore_only,
        several_slots=node.reason == "several-slots",
    )


def _running(node: NodeRecord) -> Iterator[RunningJobs]:
    for held in node.held:
        yield RunningJobs(
            node=node.node,
            group=held.group,
            cores=held.cores,
            hs06_per_core=node.hs06_per_core,
            seconds=held.seconds,
            jobs=held.jobs,
            memory_mib=held.memory_mib,
        )


def _pending(record: CycleRecord) -> Iterator[PendingJobs]:
    if record.pending_known:
        yield from record.pending
        return
    for group, waiting in own_pending(record.groups).items():
        for cores, jobs in waiting.items():
            yield PendingJobs(group, cores, jobs)
