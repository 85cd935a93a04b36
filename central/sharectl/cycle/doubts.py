"""Doubts about a look at the pool: a collector that is too young, an odd configuration."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import fsum
from typing import TYPE_CHECKING, Optional

from sharectl.model import OTHER, GroupUsage, Snapshot, Source
from sharectl.plan.nodes import (
    MOST_CORES,
    NO_SNIPPET,
    OUT_OF_RANGE,
    Controlled,
    ControlledConstraint,
    ControlledHosts,
    ControlledShare,
    never_steered,
)
from sharectl.plan.waits import nodes_of
from sharectl.shares.demand import unplaceable_words
from sharectl.shares.errors import usage_by_group
from sharectl.shares.groups import levels_above
from sharectl.words import counted

if TYPE_CHECKING:  # a snapshot needs no plans
    from sharectl.plan.plan import PlanConfig, State

WARMUP_SECONDS = 330
"""Time for every daemon to send its ad to a new collector: UPDATE_INTERVAL and SCHEDD_INTERVAL, 300
by HTCondor's defaults, and some."""


def with_restart(snapshot: Snapshot, before: State) -> Snapshot:
    """Snapshot, incomplete if its collector just started and knows less than the last cycle.

    Daemons report to a new collector at their own pace. Nodes that leave while it runs are gone,
    and so is a daemon that has not reported by the end of `WARMUP_SECONDS`.
    """
    age_seconds = snapshot.taken_at - snapshot.collector_started_at
    if not snapshot.complete or age_seconds >= WARMUP_SECONDS:
        return snapshot
    missing = [
        f"{now} of {then} {daemons}"
        for daemons, now, then in (
            ("execute points", len(snapshot.nodes), before.nodes),
            ("schedds", snapshot.schedds, before.schedds),
        )
        if now < then
    ]
    if not missing:
        return snapshot
    problem = (
        f"it started {age_seconds} s ago and knows {' and '.join(missing)} of the last cycle; "
        f"after {WARMUP_SECONDS} s what it does not know counts as gone"
    )
    return replace(snapshot, sources=(*snapshot.sources, Source("collector", 0.0, problem)))


FEW_NODES = 5
"""In a pool of fewer nodes, one may have more power than all others."""
MOST_UNPLACEABLE = 10
"""Groups and sizes of jobs that no node could run, as many as are listed."""


def doubts(config: PlanConfig, snapshot: Snapshot) -> tuple[str, ...]:
    """Doubts about a complete snapshot, a line each; they change no plan."""
    usage = usage_by_group(snapshot, (*config.shared_hs06, OTHER))
    untried = snapshot.untried
    return (
        *_nodes(config.controlled, snapshot),
        *power_doubts(snapshot),
        *_several_slots(snapshot),
        *_oversized(config.controlled, snapshot),
        *filter(None, (_misspelt(group, usage) for group in config.pledge_hs06)),
        *map(unplaceable_words, snapshot.unplaceable[:MOST_UNPLACEABLE]),
        *((f"{untried}: they count as demand",) if untried is not None else ()),
        *((snapshot.over_budget,) if snapshot.over_budget is not None else ()),
    )


def power_doubts(snapshot: Snapshot) -> tuple[str, ...]:
    """Doubt, a line, if no node of the pool publishes its power."""
    if not snapshot.nodes or not all(node.power_assumed for node in snapshot.nodes):
        return ()
    doubt = (
        "no node publishes t1_wn_hs06: all nodes count as equally strong, whatever cores they have "
        "(pool.default_node_hs06); write on each node t1_wn_hs06 = 640 and "
        "STARTD_ATTRS = $(STARTD_ATTRS) t1_wn_hs06"
    )
    return (doubt,)


def _nodes(controlled: Controlled, snapshot: Snapshot) -> Iterator[str]:
    only_measures = isinstance(controlled, ControlledShare) and controlled.ratio == 0
    chosen = [node for node in snapshot.nodes if node.controlled]
    if only_measures or any(node.deaf != NO_SNIPPET for node in chosen) or not snapshot.nodes:
        return
    choice = "no node has the execute point's snippet"
    if isinstance(controlled, ControlledConstraint) and not chosen:
        choice = " ".join(controlled.expression.split())
    elif isinstance(controlled, ControlledHosts) and not chosen:
        choice = ", ".join(controlled.patterns)
    nodes = counted(len(snapshot.nodes), "node")
    yield (
        f"nodes.controlled matches none of {nodes}: {choice}: no node gets a target; `sharectl "
        "snapshot` lists the nodes"
        if not chosen
        else f"none of {counted(len(chosen), 'node')} under control has the execute point's "
        "snippet: no node gets a target; docs/getting-started.md says how to install it"
    )


def _several_slots(snapshot: Snapshot) -> Iterator[str]:
    names = [node.name for node in snapshot.nodes if node.controlled and node.several_slots]
    if names:
        yield (
            f"nodes with several partitionable slots, {len(names)} under control (such as "
            f"{names[0]}): they get no target, because a cap is the node's and each slot compares "
            "its own cores with it; give each one partitionable slot"
        )


def _oversized(controlled: Controlled, snapshot: Snapshot) -> Iterator[str]:
    never = never_steered(nodes_of(snapshot), controlled)
    names = [name for name, reason in never.items() if reason == OUT_OF_RANGE]
    if names:
        yield (
            f"nodes with more than {MOST_CORES} cores, {len(names)} (such as {names[0]}): they get "
            "no target, because nodes refuse such a number; correct NUM_CPUS there"
        )
    held_hs06: defaultdict[str, float] = defaultdict(float)
    for name, _, cores, hs06_per_core, _, jobs, _ in snapshot.running:
        held_hs06[name] += cores * jobs * hs06_per_core
    hs06 = {n.name: max(n.cores * n.hs06_per_core, held_hs06[n.name]) for n in snapshot.nodes}
    most_hs06, largest = max(((power, name) for name, power in hs06.items()), default=(0.0, ""))
    if len(hs06) >= FEW_NODES and 2 * most_hs06 > fsum(hs06.values()):
        yield (
            f"node {largest} has more power than all other nodes together, {most_hs06:.0f} HS06: "
            "its figures decide about all targets; compare its TotalSlotCpus, t1_wn_hs06 and jobs "
            "with the machine"
        )


def _misspelt(group: str, usage: Mapping[str, GroupUsage]) -> Optional[str]:
    """Doubt about a group without jobs, if jobs of no configured group may be meant for it."""
    if usage[group].cores or usage[group].pending_by_cores:
        return None
    for strangers in (*reversed(levels_above(group)), OTHER):
        used = usage.get(strangers, GroupUsage())
        waiting = sum(used.pending_by_cores.values())
        if used.cores or waiting:
            own = " in none of the groups within it" if strangers != OTHER else ""
            return (
                f"group {group} has neither running nor pending jobs, and {strangers} has "
                f"{used.cores} cores and {waiting} pending jobs{own}: is it spelt as in "
                "AccountingGroup?"
            )
    return None
