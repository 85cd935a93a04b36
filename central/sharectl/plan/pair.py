"""The original plan: the group furthest over its share gives to the one furthest under."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import ceil, fsum
from typing import Optional

from sharectl.model import GroupControl, LimitNote, Snapshot, Target
from sharectl.plan.limits import PROBING
from sharectl.plan.many import Situation
from sharectl.plan.records import ROUNDING_HS06, Wanted
from sharectl.shares.errors import cores_by_node, hs06_per_core_by_node


def one_pair(situation: Situation) -> Wanted:
    """Targets that the outputs call for beside those on young nodes, which stay anyway."""
    groups, block, look = situation.groups, situation.block_cores, situation.look
    over = held_back_group(groups)
    if over is None:
        return Wanted("no-group-over")
    able = [
        control
        for control in groups
        if (control.group, helped_size(control, block)) not in look.left_alone_kinds
    ]
    under = helped_group(able, block)
    if under is None:
        return Wanted("given-up" if helped_group(groups, block) else "no-group-under")
    request = helped_size(under, block)
    pair, kind = (over.group, under.group), (under.group, request)
    cores = cores_by_node(situation.snapshot, over.group)
    alone = {node for *kinds, node in look.left_alone if tuple(kinds) == kind}
    nodes = nodes_by_preference(cores, set(situation.nodes) - alone, block)
    if not nodes:
        return Wanted("given-up" if alone else "no-node", pair=pair)
    targets = [stood.target for stood in situation.standing]
    kept = sorted(
        (target for target in targets if target.node in situation.young),
        key=lambda target: target.node,
    )
    chosen = {target.node for target in kept if (target.held_back, target.helped) == pair}
    affordable = _affordable(nodes, (over, under, request), situation, kept)
    stands = {target.node for target in targets if (target.helped, target.request_cores) == kind}
    fresh = [node for node in affordable if node not in stands]
    most = look.most_new(kind)
    later = [] if most is None else fresh[ceil(most / (block // request)) :]
    chosen.update(node for node in affordable if node not in later)
    if not chosen:
        if set(nodes) <= situation.young:
            return Wanted("no-room", pair=pair)
        return Wanted(_too_small(over, under, nodes, situation), pair=pair)
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
    situation: Situation,
) -> str:
    """Code: the errors are not worth a block, or the controllers' outputs are not."""
    power = hs06_per_core_by_node(situation.snapshot)
    least_hs06 = situation.block_cores * min(power[node] for node in nodes) - ROUNDING_HS06
    outputs_hs06 = min(over.output_hs06, -under.output_hs06)
    errors_hs06 = min(over.control_error_hs06, -under.control_error_hs06)
    return "output-below-node" if outputs_hs06 < least_hs06 <= errors_hs06 else "error-below-node"


def held_back_group(groups: Iterable[GroupControl]) -> Optional[GroupControl]:
    """g_r: the group with the most power to take, by name among equals; None if there is none."""
    over = [control for control in groups if control.output_hs06 > 0]
    return min(over, key=lambda control: (-control.output_hs06, control.group), default=None)


def helped_group(groups: Iterable[GroupControl], multicore_cores: int) -> Optional[GroupControl]:
    """g_p: the group with most power to give to that has a job of at most that size pending."""
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
    situation: Situation,
    kept: Sequence[Target],
) -> list[str]:
    """First nodes that pending jobs can use, removing together at most the smaller error.

    Power that the targets of ``kept`` are still to move is taken off first.
    """
    over, under, request = purpose
    block = situation.block_cores
    power = hs06_per_core_by_node(situation.snapshot)
    due = _still_due(kept, situation.snapshot)
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


def _still_due(kept: Sequence[Target], snapshot: Snapshot) -> dict[Target, int]:
    """Target -> cores that its held-back group still has above the cap."""
    cores = {
        group: cores_by_node(snapshot, group) for group in {target.held_back for target in kept}
    }
    return {
        target: max(0, cores[target.held_back].get(target.node, 0) - target.cap_cores)
        for target in kept
    }
