"""What a cycle leaves to the ledger, made from what it saw, decided and published.

A cycle of the ledger as the snapshot that it was decided on, as near as the record allows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Optional

from sharectl.model import JobWaits, Node, PendingJobs, Plan, RunningJobs, Snapshot
from sharectl.plan.free_blocks import NO_BLOCKS
from sharectl.plan.group_reasons import Outcome, group_reasons
from sharectl.plan.plan import Decision, PlanConfig
from sharectl.plan.records import CycleRecord, NodeRecord, TargetNodes
from sharectl.shares.groups import levels_above, own_pending


def record_of(
    config: PlanConfig,
    snapshot: Snapshot,
    decision: Optional[Decision],
    published: Optional[Plan],
    places: Sequence[str],
    *,
    disabled: bool = False,
) -> CycleRecord:
    """Record of a cycle, which still lacks its duration, its problems and the digest of its configuration.

    Parameters
    ----------
    decision
        None if the snapshot is incomplete: nothing is known of groups and nodes then.
    published
        The last plan that went out, which is a withdrawal if sharectl is disabled; None if none
        did.
    places
        Where it went; empty if it arrived nowhere.
    """
    plan = published or (decision.plan if decision and not disabled else None)
    nodes = decision.nodes if decision else ()
    if decision and (disabled or (plan is not None and plan is not decision.plan)):
        nodes = tuple(map(_without_target, nodes))
    counts = target_nodes([control.group for control in decision.groups], nodes) if decision else {}
    outcome = Outcome(plan, config.strategy, nodes, snapshot.pending, counts)
    return CycleRecord(
        taken_at=snapshot.taken_at,
        seconds=0.0,
        complete=snapshot.complete,
        sources=snapshot.sources,
        groups=decision.groups if decision else (),
        pending=_recording_pending(decision, snapshot) if decision else (),
        waits=_waits(decision, snapshot) if decision else (),
        cores_by_size=_cores_by_size(decision) if decision else {},
        nodes=nodes,
        sequence=plan.sequence if plan and places else None,
        strategy=config.strategy,
        setpoint=config.steering.entitlement.setpoint,
        reason="disabled" if disabled else plan.reason if plan else None,
        limits=plan.limits if plan else (),
        published=tuple(places),
        idle_cores=sum(node.idle_cores for node in nodes),
        idle_target_cores=decision.idle.target if decision else None,
        idle_grace_cores=decision.idle.grace if decision else None,
        blocks=decision.state.blocks if decision else NO_BLOCKS,
        target_nodes=counts,
        group_reasons=group_reasons(decision.groups, outcome) if decision else {},
    )


def target_nodes(groups: Iterable[str], nodes: Iterable[NodeRecord]) -> dict[str, TargetNodes]:
    """Each of ``groups`` -> on how many of ``nodes`` a target holds it back and on how many one helps it.

    Targets name the innermost groups: each counts for those around it too.
    """
    held_back: Counter[str] = Counter()
    helped: Counter[str] = Counter()
    for target in (node.target for node in nodes if node.target is not None):
        held_back.update((target.held_back, *levels_above(target.held_back)))
        helped.update((target.helped, *levels_above(target.helped)))
    return {group: TargetNodes(held_back[group], helped[group]) for group in groups}


def _without_target(node: NodeRecord) -> NodeRecord:
    return replace(node, target=None, wait_seconds=0.0, idle_core_seconds=0.0)


def _cores_by_size(decision: Decision) -> dict[tuple[str, int], int]:
    groups = {control.group for control in decision.groups}
    cores: Counter[tuple[str, int]] = Counter()
    for node in decision.nodes:
        for held in node.held:
            for group in groups.intersection((held.group, *levels_above(held.group))):
                cores[group, held.cores] += held.jobs * held.cores
    return dict(cores)


def _waits(decision: Decision, snapshot: Snapshot) -> tuple[JobWaits, ...]:
    groups = {control.group for control in decision.groups}
    return tuple(waits for waits in snapshot.waits if waits.group in groups)


def _recording_pending(decision: Decision, snapshot: Snapshot) -> tuple[PendingJobs, ...]:
    groups = {control.group for control in decision.groups}
    alike: dict[tuple[str, int, int, bool], PendingJobs] = {}
    for jobs in snapshot.pending:
        if jobs.group in groups and jobs.jobs > 0:
            key = (jobs.group, jobs.cores, jobs.memory_mib.bit_length(), jobs.placeable)
            other = alike.get(key, PendingJobs(jobs.group, jobs.cores, 0, placeable=jobs.placeable))
            alike[key] = replace(
                other,
                jobs=other.jobs + jobs.jobs,
                memory_mib=max(other.memory_mib, jobs.memory_mib),
            )
    return tuple(alike[key] for key in sorted(alike))


def snapshot_of(record: CycleRecord) -> Snapshot:
    """Snapshot of a cycle that was read with its nodes.

    What the ledger has rounded stays rounded: the jobs of one node, group and size have run for
    their mean time and hold their mean memory. Of pending jobs it has cores and about the memory,
    as plans see them; of rows that lack it the memory is unknown. Each job has the power of its
    node. Short host names stand for full ones; pending jobs of no configured group are not kept.
    Absent nodes, which are recorded for their target's sake, have no cores and are left out.
    """
    present = [node for node in record.nodes if node.cores > 0]
    return Snapshot(
        taken_at=record.taken_at,
        nodes=tuple(_node(node) for node in present),
        running=tuple(jobs for node in present for jobs in _running(node)),
        pending=tuple(_replay_pending(record)),
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


def _replay_pending(record: CycleRecord) -> Iterator[PendingJobs]:
    if record.pending_known:
        yield from record.pending
        return
    for group, waiting in own_pending(record.groups).items():
        for cores, jobs in waiting.items():
            yield PendingJobs(group, cores, jobs)
