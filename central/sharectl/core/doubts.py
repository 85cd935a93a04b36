"""What in a look at the pool tells that the configuration was probably not meant so."""

from __future__ import annotations

from sharectl.core.model import OTHER, Snapshot
from sharectl.core.nodes import Controlled, ControlledConstraint, ControlledHosts, ControlledShare
from sharectl.core.plan import PlanConfig, State
from sharectl.core.usage import usage_by_group


def doubts(config: PlanConfig, state: State, snapshot: Snapshot, now: int) -> tuple[str, ...]:
    """A line for each doubt about a complete snapshot at Unix time ``now``; they change no plan."""
    return (*_nodes(config, state, snapshot, now), *_groups(config, snapshot))


def _nodes(config: PlanConfig, state: State, snapshot: Snapshot, now: int) -> tuple[str, ...]:
    only_measures = isinstance(config.controlled, ControlledShare) and config.controlled.ratio == 0
    if only_measures or not snapshot.nodes or any(node.controlled for node in snapshot.nodes):
        return ()
    stood = len(state.standing_at(now))
    gone = f", and the {stood} that stood are withdrawn" if stood else ""
    words = f"{len(snapshot.nodes)} nodes: {_words(config.controlled)}: no node gets a target{gone}"
    return (f"nodes.controlled matches none of {words}; `sharectl snapshot` lists the nodes",)


def _words(controlled: Controlled) -> str:
    if isinstance(controlled, ControlledHosts):
        return ", ".join(controlled.patterns)
    if isinstance(controlled, ControlledConstraint):
        return " ".join(controlled.expression.split())
    return "the share comes to less than one node"


def _groups(config: PlanConfig, snapshot: Snapshot) -> tuple[str, ...]:
    usage = usage_by_group(snapshot, (*config.pledge_hs06, OTHER))
    other = usage.pop(OTHER)
    waiting = sum(other.pending_by_cores.values())
    if not other.cores and not waiting:
        return ()
    return tuple(
        f"group {group} has neither running nor pending jobs, and {OTHER} has {other.cores} cores and {waiting} "
        "pending jobs: is it spelt as in AcctGroup?"
        for group, used in usage.items()
        if not used.cores and not used.pending_by_cores
    )
