"""Nodes under control, by the snippet that the collector sees on them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from sharectl.condor.ads import evaluated, text
from sharectl.condor.daemons import PARTITIONABLE, slots
from sharectl.plan.nodes import (
    HOST_NAME,
    Controlled,
    ControlledConstraint,
    NodesConfig,
    controlled_machines,
    names_nodes,
)

INSTALLED = (
    f"{PARTITIONABLE} && (t1_Enabled =?= true "
    "|| (t1_Enabled =?= undefined && t1_JobCtlReason =!= undefined))"
)
"""Constraint of slots with the execute point's snippet, not switched off by SHARECTL_ENABLED.

It holds while job_ctl is late, the file `disabled` exists or the node drains: a share of the nodes
stays the same ones then.
"""
BYPASSED = (
    f'{PARTITIONABLE} && Draining =!= true && State =!= "Drained" '
    '&& regexp("MY[.]t1_TargetAdmits", unparse(Start)) =?= false'
)
"""Constraint of slots whose START has no clause of sharectl's; of a draining one it is another."""

Met = Mapping[str, frozenset[str]]
"""ClassAd constraint -> host names, lower case, of the nodes that meet it."""


class InControl(NamedTuple):
    """Nodes of a pool, by host name."""

    controlled: Collection[str]
    reserved: Collection[str]
    bypassed: Collection[str]
    """Nodes whose START has no clause of sharectl's."""
    expected: Collection[str]
    """Controlled nodes that should act on targets: of all nodes, and while observing, those with
    the snippet."""
    rehearsed: bool
    """True if a plan is made as if all nodes had the snippet, because none has it yet."""


def machine_of(ad: Any) -> str:
    """Host name, lower case; empty without one, and a target could not reach that slot."""
    machine = text(evaluated(ad, "Machine")) or ""
    return machine.lower() if HOST_NAME.fullmatch(machine) else ""


def met_by(collector: Any, nodes: NodesConfig) -> Met:
    """Nodes that meet each constraint that `in_control` wants."""
    own = [
        by.expression
        for by in (nodes.controlled, nodes.reserved)
        if isinstance(by, ControlledConstraint)
    ]
    return {
        constraint: frozenset(machine_of(ad) for ad in slots(collector, constraint, ["Machine"]))
        for constraint in (INSTALLED, BYPASSED, *own)
    }


def in_control(
    nodes: NodesConfig, machines: Collection[str], met: Met, *, observes: bool
) -> InControl:
    """Nodes under control among ``machines``; constraints that ``met`` lacks are not known.

    While sharectl observes a pool in which no node has the snippet, it plans as if all had it.
    """
    installed = met.get(INSTALLED)
    rehearsed = observes and installed is not None and installed.isdisjoint(machines)

    def chosen(by: Controlled, able: Any) -> frozenset[str]:
        return controlled_machines(by, machines, met.get(getattr(by, "expression", ""), ()), able)

    named = names_nodes(nodes.controlled)
    controlled = chosen(nodes.controlled, None if rehearsed else installed)
    return InControl(
        controlled,
        chosen(nodes.reserved, None) if nodes.reserved is not None else frozenset(),
        met.get(BYPASSED, ()),
        controlled if installed is None or (named and not observes) else controlled & installed,
        rehearsed,
    )
