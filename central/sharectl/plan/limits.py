"""Limits of the change from the targets that stand to those that the errors call for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import fsum, sqrt
from typing import Union

from sharectl.model import LimitNote, Node, PlanLimits, Standing, Target
from sharectl.plan.nodes import MOST_CORES, nodes_in_share
from sharectl.plan.records import NodeRecord
from sharectl.plan.waits import NodeCores

LIMITS = {
    "dwell": "targets younger than control.dwell_seconds stay",
    "max-nodes": "control.max_nodes allows no more nodes under targets",
    "max-target-share": "control.max_target_share allows no more nodes under targets",
    "max-changed-nodes": "control.max_changed_nodes allows no more changes in this cycle",
    "given-up": "no job came to free cores within control.give_up_seconds: one block is "
    "tried now and then",
    "probing": "no more open blocks of cores than jobs earned by taking some, and a few to try",
}
"""Code of a limit -> what it does."""


DEADBAND_ROOTS = 16
"""The root of the pool's blocks over this is the deadband, in blocks. With half the deadband a
twentieth of `infn-t1` idles 14 % more, and no group is nearer to its due."""


def deadband_hs06(limits: PlanLimits, nodes: Iterable[Union[Node, NodeRecord]]) -> float:
    """For errors up to this size no target begins, HS06.

    Below half a block nothing can be mended. The number of jobs in a large pool goes up and down by
    about its root from cycle to cycle; to steer against that idles cores for nothing.
    """
    if limits.deadband_hs06 is not None:
        return limits.deadband_hs06
    nodes = [node for node in nodes if node.cores <= MOST_CORES]
    cores = sum(node.cores for node in nodes)
    power_hs06 = fsum(node.cores * node.hs06_per_core for node in nodes)
    if not cores:
        return 0.0
    block_cores = min(limits.multicore_cores, cores)
    blocks = cores / block_cores
    return block_cores * power_hs06 / cores * max(0.5, sqrt(blocks) / DEADBAND_ROOTS)


def limited(
    standing: Iterable[Standing],
    may_stay: Iterable[Standing],
    wanted: Sequence[Target],
    limits: PlanLimits,
    now: int,
    pool_nodes: int,
    uncertain_nodes: int = 0,
) -> tuple[tuple[Target, ...], tuple[LimitNote, ...]]:
    """Targets to publish, those of ``wanted`` first and in its order, and the limits that acted.

    What must go goes, whatever the limits: targets of nodes that are gone or no longer controlled,
    of groups no longer configured, those that are given back, and those beyond a room that was
    lowered. It counts as a change. Of the changes that are left, removals come first, then
    alterations, then additions. ``uncertain_nodes`` count as changed: a cycle that was ended may
    have published their change already.
    """
    before = {stood.target.node: stood for stood in standing}
    staying = {stood.target.node: stood for stood in may_stay}
    young = {target.node: target for target in dwelling(staying.values(), limits, now)}
    called_for = {target.node: target for target in wanted}
    desired = {**young, **{n: target for n, target in called_for.items() if n not in young}}
    rooms = rooms_for_targets(limits, pool_nodes)
    notes = {
        "dwell": sum(called_for.get(node) != target for node, target in young.items()),
        **{code: max(0, len(desired) - most) for code, most in rooms.items()},
    }
    room = min(rooms.values(), default=len(desired) + len(staying))
    desired = {node: desired[node] for node in list(desired)[:room]}
    leaving = sorted(staying.keys() - desired.keys(), key=lambda node: (staying[node].since, node))
    # On a node whose target must go, any other target is the same one change.
    free = {*(before.keys() - staying.keys()), *leaving[: max(0, len(staying) - room)]}
    changes = [node for node in leaving if node not in free]
    changes += [n for n in desired if n in staying and staying[n].target != desired[n]]
    changes += [node for node in desired if node not in staying and node not in free]
    made = changes
    if limits.max_changed_nodes is not None:
        made = changes[: max(0, limits.max_changed_nodes - uncertain_nodes - len(free))]
    targets = {node: stood.target for node, stood in staying.items() if node not in {*free, *made}}
    targets.update((node, desired[node]) for node in made if node in desired)
    renewed = [node for node in desired if node in free]
    fitting = renewed[: max(0, room - len(targets))]
    targets.update((node, desired[node]) for node in fitting)
    notes["max-changed-nodes"] = len(changes) - len(made) + len(renewed) - len(fitting)
    order = {target.node: number for number, target in enumerate(wanted)}
    return (
        tuple(sorted(targets.values(), key=lambda t: (order.get(t.node, len(order)), t.node))),
        tuple(LimitNote(code, nodes) for code, nodes in notes.items() if nodes),
    )


def dwelling(standing: Iterable[Standing], limits: PlanLimits, now: int) -> list[Target]:
    """Targets that stay as they are because they are young, the youngest first.

    One from the future is as young as one of now.
    """
    young = [stood for stood in standing if now - min(stood.since, now) < limits.dwell_seconds]
    young.sort(key=lambda stood: (-stood.since, stood.target.node))
    return [stood.target for stood in young]


def standing_after(
    before: Iterable[Standing], targets: Iterable[Target], now: int
) -> tuple[Standing, ...]:
    """Targets that stand after a publication, by node; unchanged ones keep their time."""
    stood = {old.target: replace(old, since=min(old.since, now)) for old in before}
    stands = (stood.get(target, Standing(target, now)) for target in targets)
    return tuple(sorted(stands, key=lambda stood: stood.target.node))


def with_jobs(standing: Iterable[Standing], nodes: Mapping[str, NodeCores]) -> tuple[Standing, ...]:
    """Targets that stand, with the jobs that were on their nodes when they began."""
    return tuple(
        replace(stood, jobs=nodes[stood.target.node].jobs(stood.target.kind))
        if stood.jobs is None and stood.target.node in nodes
        else stood
        for stood in standing
    )


def rooms_for_targets(limits: PlanLimits, pool_nodes: int) -> dict[str, int]:
    """Limit -> how many nodes it lets be under targets."""
    rooms = {} if limits.max_nodes is None else {"max-nodes": limits.max_nodes}
    if limits.max_target_ratio is not None:
        rooms["max-target-share"] = nodes_in_share(limits.max_target_ratio, pool_nodes)
    return rooms
