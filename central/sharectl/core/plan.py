"""From errors to targets: whom to help, whom to hold back, and on which nodes (seed 004, ideas 2 to 4)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Optional

from sharectl.core.limits import Steerable, dwelling, limited, standing_after
from sharectl.core.model import (
    GroupError,
    LimitNote,
    Plan,
    PlanLimits,
    Snapshot,
    Standing,
    Target,
)
from sharectl.core.nodes import ALL_NODES, Controlled
from sharectl.core.shares import group_errors
from sharectl.core.usage import cores_by_node, hs06_per_core_by_node, usage_by_group

REASONS = {
    "targets": "a group over its share gives way to one under it",
    "no-group-over": "no group is over its share by more than the deadband",
    "no-group-under": "no group under its share has jobs of the multicore size pending",
    "no-node": "the group over its share holds no block of cores on a node under control",
    "error-below-node": "the smaller of the two errors is not worth one node's block of cores",
    "no-room": "the errors call for targets, and the limits leave no room for one",
    "withdrawn": "targets were withdrawn since the pool did not answer completely",
    "disabled": "targets were withdrawn since sharectl is disabled",
}
"""Why a plan has targets, or has none."""

ROUNDING_HS06 = 1e-6
"""An error of exactly n blocks pays for n blocks, whatever the last bits of the sums are."""


@dataclass(frozen=True)
class State:
    """What one cycle hands to the next."""

    sequence: int = 0
    """Number of the last plan that was published."""
    nodes: int = 0
    """Nodes that the last complete snapshot had."""
    schedds: int = 0
    """Schedds that it asked."""
    standing: tuple[Standing, ...] = ()
    """Targets of the last plan, by node."""
    standing_until: int = 0
    """Unix seconds from which they count no more, since the plan runs out."""
    withdrawn: bool = False
    """Whether every publisher has taken a plan without targets since sharectl was disabled."""
    uncertain_nodes: int = 0
    """Nodes that a publication was to change that was begun, and of which nobody knows whether it ended."""
    unaudited: Optional[tuple[Standing, ...]] = None
    """Targets that the audit knows of, if it has not been told of the last plan; else None."""

    def standing_at(self, now: int) -> tuple[Standing, ...]:
        """Targets that nodes may act on at Unix time ``now``."""
        return self.standing if now < self.standing_until else ()


@dataclass(frozen=True)
class PlanConfig:
    """What an operator decides about plans."""

    pledge_hs06: Mapping[str, float]
    """Group -> pledge, HS06."""
    limits: PlanLimits
    validity_seconds: int
    """How long nodes act on a plan that is not renewed."""
    controlled: Controlled = ALL_NODES
    """Which nodes he means; snapshots know which they are."""


def plan(config: PlanConfig, state: State, snapshot: Snapshot, now: int) -> tuple[Plan, State]:
    """Plan for a complete snapshot at Unix time ``now``, and the state to keep once it is published."""
    groups = tuple(config.pledge_hs06)
    errors = group_errors(usage_by_group(snapshot, groups), config.pledge_hs06)
    standing = state.standing_at(now)
    where = Steerable({node.name for node in snapshot.nodes if node.controlled}, groups, len(snapshot.nodes))
    kept = dwelling(standing, config.limits, now, where)
    reason, pair, wanted = _decide(errors, snapshot, config.limits, where.nodes, kept)
    targets, notes = limited(standing, wanted, config.limits, now, where, state.uncertain_nodes)
    if wanted and not targets:
        reason = "no-room"
    decided, after = _sealed(config, state, now, reason=reason, pair=pair, targets=targets, limits=notes)
    return decided, replace(after, nodes=len(snapshot.nodes), schedds=snapshot.schedds)


def withdrawal(config: PlanConfig, state: State, now: int, reason: str = "withdrawn") -> tuple[Plan, State]:
    """Plan without targets, whatever stands, for when none may stand: ``reason`` says why."""
    return _sealed(config, state, now, reason=reason, pair=None, targets=(), limits=())


def held_back_group(errors: Iterable[GroupError], deadband_hs06: float) -> Optional[GroupError]:
    """g_r: the group with the largest error above the deadband, by name among equals; None if there is none."""
    over = [error for error in errors if error.error_hs06 > deadband_hs06]
    return min(over, key=lambda error: (-error.error_hs06, error.group), default=None)


def helped_group(
    errors: Iterable[GroupError], deadband_hs06: float, multicore_cores: int
) -> Optional[GroupError]:
    """g_p: the group with the smallest error below the deadband that has jobs of ``multicore_cores`` pending."""
    under = [
        error
        for error in errors
        if error.error_hs06 < -deadband_hs06 and error.usage.pending_by_cores.get(multicore_cores, 0) > 0
    ]
    return min(under, key=lambda error: (error.error_hs06, error.group), default=None)


def nodes_by_preference(cores: Mapping[str, int], controlled: Collection[str], block_cores: int) -> list[str]:
    """Nodes that can give a block of cores: those where most cores are held first, then by name."""
    able = [node for node, held in cores.items() if held >= block_cores and node in controlled]
    return sorted(able, key=lambda node: (-cores[node], node))


def _decide(
    errors: Sequence[GroupError],
    snapshot: Snapshot,
    limits: PlanLimits,
    controlled: Collection[str],
    kept: Sequence[Target],
) -> tuple[str, Optional[tuple[str, str]], tuple[Target, ...]]:
    """Reason, pair and targets that the errors call for besides those of ``kept``, which stay anyway."""
    over = held_back_group(errors, limits.deadband_hs06)
    if over is None:
        return "no-group-over", None, ()
    under = helped_group(errors, limits.deadband_hs06, limits.multicore_cores)
    if under is None:
        return "no-group-under", None, ()
    pair = (over.group, under.group)
    cores = cores_by_node(snapshot, over.group)
    nodes = nodes_by_preference(cores, controlled, limits.multicore_cores)
    if not nodes:
        return "no-node", pair, ()
    chosen = {target.node for target in kept if (target.held_back, target.helped) == pair}
    chosen.update(_affordable(nodes, over, under, snapshot, limits, kept))
    if not chosen:
        return "error-below-node", pair, ()
    block = limits.multicore_cores
    return (
        "targets",
        pair,
        tuple(
            Target(node, over.group, cores[node] - block, under.group, block)
            for node in nodes
            if node in chosen
        ),
    )


def _affordable(
    nodes: Sequence[str],
    over: GroupError,
    under: GroupError,
    snapshot: Snapshot,
    limits: PlanLimits,
    kept: Sequence[Target],
) -> list[str]:
    """First nodes of ``nodes`` that pending jobs can fill and that together remove no more than the smaller error.

    What the targets of ``kept`` are still to take from the one group and to give to the other is taken off first.
    """
    block = limits.multicore_cores
    power = hs06_per_core_by_node(snapshot)
    due = _still_due(kept, snapshot)
    taken_hs06 = fsum(power[t.node] * due[t] for t in kept if t.held_back == over.group)
    given_hs06 = fsum(power[t.node] * due[t] for t in kept if t.helped == under.group)
    awaited = sum(due[t] > 0 for t in kept if (t.helped, t.request_cores) == (under.group, block))
    budget_hs06 = min(over.error_hs06 - taken_hs06, -under.error_hs06 - given_hs06)
    occupied = {target.node for target in kept}
    free = [node for node in nodes if node not in occupied]
    chosen: list[str] = []
    for node in free[: max(0, under.usage.pending_by_cores[block] - awaited)]:
        budget_hs06 -= block * power[node]
        if budget_hs06 < -ROUNDING_HS06:
            break
        chosen.append(node)
    return chosen


def _still_due(kept: Iterable[Target], snapshot: Snapshot) -> dict[Target, int]:
    """Target -> cores that its held-back group still has above the cap."""
    kept = tuple(kept)
    cores = {group: cores_by_node(snapshot, group) for group in {target.held_back for target in kept}}
    return {target: max(0, cores[target.held_back].get(target.node, 0) - target.cap_cores) for target in kept}


def _sealed(
    config: PlanConfig,
    state: State,
    now: int,
    *,
    reason: str,
    pair: Optional[tuple[str, str]],
    targets: tuple[Target, ...],
    limits: tuple[LimitNote, ...],
) -> tuple[Plan, State]:
    # At least the time itself, so that a lost state file does not send the sequence backwards.
    sequence = max(state.sequence + 1, now)
    sealed = Plan(
        sequence=sequence,
        generated_at=now,
        valid_until=now + config.validity_seconds,
        groups=tuple(config.pledge_hs06),
        targets=targets,
        reason=reason,
        held_back=pair[0] if pair else None,
        helped=pair[1] if pair else None,
        limits=limits,
    )
    return sealed, published(state, sealed, now)


def published(state: State, decided: Plan, now: int) -> State:
    """State once ``decided`` is published at Unix time ``now``."""
    return replace(
        state,
        sequence=decided.sequence,
        standing=standing_after(state.standing_at(now), decided.targets, now),
        standing_until=decided.valid_until,
        withdrawn=False,
    )
