"""The seed's plan: the group furthest over gives to the one furthest under (seed 004, ideas 3 and 4)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import ceil, fsum
from typing import Optional

from sharectl.model import GroupControl, LimitNote, PlanLimits, Snapshot, Target
from sharectl.plan.free_blocks import NO_STANDING, StandingBlocks
from sharectl.plan.limits import PROBING
from sharectl.plan.records import ROUNDING_HS06, Wanted
from sharectl.shares.errors import cores_by_node, hs06_per_core_by_node


def one_pair(
    groups: Sequence[GroupControl],
    snapshot: Snapshot,
    limits: PlanLimits,
    controlled: Collection[str],
    kept: Sequence[Target],
    blocks: StandingBlocks = NO_STANDING,
) -> Wanted:
    """Targets that the outputs call for beside those of ``kept``, which stay anyway."""
    over = held_back_group(groups)
    if over is None:
        return Wanted("no-group-over")
    size, look = limits.multicore_cores, blocks.look
    able = [
        each
        for each in groups
        if (each.group, helped_size(each, size)) not in look.left_alone_kinds
    ]
    under = helped_group(able, size)
    if under is None:
        return Wanted("given-up" if helped_group(groups, size) else "no-group-under")
    request = helped_size(under, size)
    pair = (over.group, under.group)
    cores = cores_by_node(snapshot, over.group)
    kind = (under.group, request)
    alone = {node for *each, node in look.left_alone if tuple(each) == kind}
    nodes = nodes_by_preference(cores, set(controlled) - alone, size)
    if not nodes:
        return Wanted("given-up" if alone else "no-node", pair=pair)
    chosen = {target.node for target in kept if (target.held_back, target.helped) == pair}
    affordable = _affordable(nodes, (over, under, request), snapshot, limits, kept)
    targets = [stood.target for stood in blocks.standing]
    stands = {target.node for target in targets if (target.helped, target.request_cores) == kind}
    fresh = [node for node in affordable if node not in stands]
    most = look.most_new(kind)
    later = [] if most is None else fresh[ceil(most / (size // request)) :]
    chosen.update(node for node in affordable if node not in later)
    if not chosen:
        if all(node in {target.node for target in kept} for node in nodes):
            return Wanted("no-room", pair=pair)
        return Wanted(_too_small(over, under, nodes, snapshot, limits), pair=pair)
    block = limits.multicore_cores
    return Wanted(
        "targets",
        tuple(
            Target(node, over.group, cores[node] - block, under.group, request)
            for node in nodes
            if node in chosen
        ),
        pair,
        (LimitNote(PROBING, len(later)),) if later else (),
        reasons=dict.fromkeys(later, PROBING),
    )


def _too_small(
    over: GroupControl,
    under: GroupControl,
    nodes: Sequence[str],
    snapshot: Snapshot,
    limits: PlanLimits,
) -> str:
    """Code: the errors are not worth a block, or the controllers' outputs are not."""
    power = hs06_per_core_by_node(snapshot)
    least_hs06 = limits.multicore_cores * min(power[node] for node in nodes) - ROUNDING_HS06
    outputs_hs06 = min(over.output_hs06, -under.output_hs06)
    errors_hs06 = min(over.control_error_hs06, -under.control_error_hs06)
    return "output-below-node" if outputs_hs06 < least_hs06 <= errors_hs06 else "error-below-node"


def held_back_group(groups: Iterable[GroupControl]) -> Optional[GroupControl]:
    """g_r: the group with the most power to take, by name among equals; None if there is none."""
    over = [control for control in groups if control.output_hs06 > 0]
    return min(over, key=lambda control: (-control.output_hs06, control.group), default=None)


def helped_group(groups: Iterable[GroupControl], multicore_cores: int) -> Optional[GroupControl]:
    """g_p: the group with the most power to give to that has jobs of up to ``multicore_cores`` pending."""
    under = [
        control
        for control in groups
        if control.output_hs06 < 0 and helped_size(control, multicore_cores) > 0
    ]
    return min(under, key=lambda control: (control.output_hs06, control.group), default=None)


def helped_size(group: GroupControl, multicore_cores: int) -> int:
    """Cores of the largest jobs of its demand that a block of ``multicore_cores`` holds; 0 without any."""
    pending = group.error.usage.demand_by_cores
    return max(
        (cores for cores, jobs in pending.items() if jobs > 0 and cores <= multicore_cores),
        default=0,
    )


def nodes_by_preference(
    cores: Mapping[str, int], controlled: Collection[str], block_cores: int
) -> list[str]:
    """Nodes that can give a block of cores: those where most cores are held first, then by name."""
    able = [node for node, held in cores.items() if held >= block_cores and node in controlled]
    return sorted(able, key=lambda node: (-cores[node], node))


def _affordable(
    nodes: Sequence[str],
    purpose: tuple[GroupControl, GroupControl, int],
    snapshot: Snapshot,
    limits: PlanLimits,
    kept: Sequence[Target],
) -> list[str]:
    """First nodes of ``nodes`` that pending jobs can use and that together remove no more than the smaller error.

    What the targets of ``kept`` are still to take from the one group and to give to the other is
    taken off first.
    """
    over, under, request = purpose
    block = limits.multicore_cores
    power = hs06_per_core_by_node(snapshot)
    due = _still_due(kept, snapshot)
    taken_hs06 = fsum(power[t.node] * due[t] for t in kept if t.held_back == over.group)
    given_hs06 = fsum(power[t.node] * due[t] for t in kept if t.helped == under.group)
    awaited = sum(due[t] > 0 for t in kept if (t.helped, t.request_cores) == (under.group, request))
    usable = ceil(under.error.usage.demand_by_cores[request] / (block // request))
    budget_hs06 = min(over.output_hs06 - taken_hs06, -under.output_hs06 - given_hs06)
    occupied = {target.node for target in kept}
    free = [node for node in nodes if node not in occupied]
    chosen: list[str] = []
    for node in free[: max(0, usable - awaited)]:
        budget_hs06 -= block * power[node]
        if budget_hs06 < -ROUNDING_HS06:
            break
        chosen.append(node)
    return chosen


def _still_due(kept: Iterable[Target], snapshot: Snapshot) -> dict[Target, int]:
    """Target -> cores that its held-back group still has above the cap."""
    kept = tuple(kept)
    cores = {
        group: cores_by_node(snapshot, group) for group in {target.held_back for target in kept}
    }
    return {
        target: max(0, cores[target.held_back].get(target.node, 0) - target.cap_cores)
        for target in kept
    }
