"""Record of a cycle for the ledger, and the snapshot that can be made from a record again."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import fsum
from typing import Any, Optional

from sharectl.model import GroupControl, Node, Plan, RunningJobs, Snapshot
from sharectl.plan.nodes import DEAF, UNKNOWN_CODE
from sharectl.plan.plan import Decision, PlanConfig, State
from sharectl.plan.records import (
    OF_NODE,
    OF_STATE,
    Basis,
    CycleRecord,
    NodeRecord,
    TargetNodes,
    group_reasons,
)
from sharectl.plan.waits import RemainingTimes, RunTimes
from sharectl.shares.demand import pending_alike
from sharectl.shares.errors import Shortfalls, shortfalls_of
from sharectl.shares.groups import is_within, levels_above


def record_of(
    config: PlanConfig,
    snapshot: Snapshot,
    decision: Optional[Decision],
    published: Optional[Plan],
    places: Sequence[str],
    *,
    off: Optional[str] = None,
) -> CycleRecord:
    """Record of a cycle, without its duration, problems and digest of the configuration.

    An incomplete snapshot has no ``decision``. ``published`` is the last plan that went out, and
    ``places`` took it. ``off`` is the reason why no target of the decision may stand, ``disabled``
    or ``foreign``; a cycle that observes has its targets all the same.
    """
    plan = published
    if decision and (config.observes or not (published or off)):
        plan = decision.plan
    record = CycleRecord(
        taken_at=snapshot.taken_at,
        seconds=0.0,
        complete=snapshot.complete,
        sources=snapshot.sources,
        sequence=published.sequence if published and places else None,
        strategy=config.strategy,
        setpoint=config.steering.entitlement.setpoint,
        reason=plan.reason if plan else off,
        limits=plan.limits if plan else (),
        published=tuple(places),
        observed=config.observes,
    )
    if decision is None:
        return record
    nodes = decision.nodes
    if plan is not decision.plan:
        nothing: Any = {"target": None, "wait_seconds": 0.0, "idle_core_seconds": 0.0}
        nodes = tuple(replace(node, **nothing) for node in nodes)
    lacking = shortfalls_of(snapshot, config.shared_hs06)
    controls = tuple(_with_shortfall(control, lacking) for control in decision.groups)
    groups = [control.group for control in controls]
    reasons = group_reasons(decision.groups, plan, config.strategy, nodes, snapshot.pending)
    return replace(
        record,
        groups=controls,
        present_hs06=lacking.present_hs06,
        shortfall_hs06=fsum(lacking.shortfall_hs06.values()),
        pending=tuple(pending_alike(snapshot.pending, groups)),
        waits=tuple(waits for waits in snapshot.waits if waits.group in groups),
        cores_by_size=_cores_by_size(groups, decision),
        nodes=nodes,
        basis=Basis(
            **{name: getattr(decision.before, name) for name in OF_STATE},
            run_times={name: seen.as_rows() for name, seen in decision.situation.run_times.items()},
        ),
        idle_cores=sum(node.idle_cores for node in nodes),
        idle_target_cores=decision.idle.target,
        idle_grace_cores=decision.idle.grace,
        blocks=decision.state.blocks,
        target_nodes=target_nodes(groups, () if config.observes else nodes),
        group_reasons=reasons,
    )


def _with_shortfall(control: GroupControl, lacking: Shortfalls) -> GroupControl:
    names = [name for name in lacking.due_hs06 if is_within(name, control.group)]
    return replace(
        control,
        due_hs06=fsum(lacking.due_hs06[name] for name in names),
        shortfall_hs06=fsum(lacking.shortfall_hs06[name] for name in names),
    )


def target_nodes(groups: Iterable[str], nodes: Iterable[NodeRecord]) -> dict[str, TargetNodes]:
    """Group -> nodes whose target holds it, or a group within it, back, and those that help it."""
    held_back: Counter[str] = Counter()
    helped: Counter[str] = Counter()
    for target in (node.target for node in nodes if node.target is not None):
        held_back.update((target.held_back, *levels_above(target.held_back)))
        helped.update((target.helped, *levels_above(target.helped)))
    return {group: TargetNodes(held_back[group], helped[group]) for group in groups}


def _cores_by_size(groups: Iterable[str], decision: Decision) -> dict[str, dict[int, int]]:
    cores: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for held in (held for node in decision.nodes for held in node.held):
        for group in {held.group, *levels_above(held.group)}.intersection(groups):
            cores[group][held.cores] += held.jobs * held.cores
    return {group: dict(by_size) for group, by_size in cores.items()}


def case_of(record: CycleRecord) -> tuple[State, Snapshot, RunTimes]:
    """State, snapshot and run times that a complete cycle decided on; read with its nodes."""
    basis = record.basis or Basis()
    state = State(
        sequence=(record.sequence or record.taken_at) - 1,
        **{name: getattr(basis, name) for name in OF_STATE},
    )
    run_times = {name: RemainingTimes.from_rows(rows) for name, rows in basis.run_times.items()}
    return state, snapshot_of(record), run_times


def snapshot_of(record: CycleRecord) -> Snapshot:
    """Snapshot of a cycle that was read with its nodes, as near as the record allows.

    Jobs are those of `sharectl.plan.records.as_kept`, each with the power of its node. Pending jobs
    of no configured group, absent nodes and the codes of refusals are missing. Short host names
    stand for full ones.
    """
    present = [node for node in record.nodes if node.cores > 0]
    nodes = [
        Node(
            node.node,
            node.node,
            several_slots=node.reason == "several-slots",
            refusal=UNKNOWN_CODE if node.reason == "refused" else None,
            deaf=node.reason if node.reason in DEAF else None,
            **{field: getattr(node, field) for field in OF_NODE},
        )
        for node in present
    ]
    running = [
        RunningJobs(node.node, group, cores, node.hs06_per_core, seconds, jobs, memory_mib)
        for node in present
        for group, cores, jobs, seconds, memory_mib in node.held
    ]
    return Snapshot(record.taken_at, tuple(nodes), tuple(running), record.pending, record.sources)
