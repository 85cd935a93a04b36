"""Doubts about a look at the pool: a collector that is too young, an odd configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Optional

from sharectl.model import OTHER, GroupUsage, Snapshot, Source
from sharectl.shares.demand import unplaceable_words
from sharectl.shares.errors import usage_by_group
from sharectl.shares.groups import levels_above

if TYPE_CHECKING:  # a snapshot needs no plans
    from sharectl.plan.plan import PlanConfig, State

WARMUP_SECONDS = 330
"""Time for every daemon to send its ad to a new collector: 300 by HTCondor's defaults, and some."""


def with_restart(snapshot: Snapshot, before: State) -> Snapshot:
    """Snapshot, incomplete if its collector just started and knows less than the last cycle.

    Daemons report to a new collector at their own pace. Nodes that leave while it runs are gone,
    and so is a daemon that has not reported by the end of `WARMUP_SECONDS`.
    """
    age_seconds = snapshot.taken_at - snapshot.collector_started_at
    knows_all = len(snapshot.nodes) >= before.nodes and snapshot.schedds >= before.schedds
    if not snapshot.complete or age_seconds >= WARMUP_SECONDS or knows_all:
        return snapshot
    problem = (
        f"it started {age_seconds} s ago and knows {len(snapshot.nodes)} of {before.nodes} execute "
        f"points and {snapshot.schedds} of {before.schedds} schedds of the last cycle; after "
        f"{WARMUP_SECONDS} s what it does not know counts as gone"
    )
    return replace(snapshot, sources=(*snapshot.sources, Source("collector", 0.0, problem)))


MOST_UNPLACEABLE = 10


def doubts(config: PlanConfig, snapshot: Snapshot) -> tuple[str, ...]:
    """Doubts about a complete snapshot, a line each; they change no plan."""
    usage = usage_by_group(snapshot, (*config.shared_hs06, OTHER))
    untried, shadow = snapshot.untried, config.steering.control.shadow
    unloaded = shadow.loaded if shadow is not None and isinstance(shadow.loaded, str) else None
    return (
        *((f"{unloaded}; cycles leave the shadow out",) if unloaded is not None else ()),
        *power_doubts(snapshot),
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
