"""List of all nodes: control, snippet and version, target, and why a node gets none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Optional

from sharectl.condor.ads import evaluated, sequence, text, whole
from sharectl.condor.daemons import slots, slots_in_parts
from sharectl.condor.node_ads import code_of, has_target, machine_of, met_by
from sharectl.model import Node, Target
from sharectl.plan.nodes import NEVER_RAN, STALE, never_steered, version_of
from sharectl.plan.waits import NodeCores
from sharectl.snapshot.pool import PROJECTION, CondorPool, machines_of, nodes_of

_OF_THE_SNIPPET = ("t1_Enabled", "t1_JobCtlReason")
"""Attributes that slots have by the snippet alone: the first one, or what its job publishes."""


class NodeRow(NamedTuple):
    """A node of the list."""

    node: str
    """Name as plans have it: the short host name, or the full one where two nodes share that."""
    machine: str
    """Full host name, lower case."""
    controlled: bool
    reserved: bool
    snippet: bool
    """True if the execute point's snippet is configured there, also where START bypasses it."""
    version: Optional[str]
    """Version of job_ctl there; None if it publishes nothing."""
    job_ctl: Optional[str]
    """Code of its last run, of `sharectl.plan.nodes`; None if it publishes nothing."""
    target: Optional[Target]
    """Target that START acts on."""
    reason: Optional[str]
    """Why the node gets no target, of `NODE_REASONS` or `REMEDIES`; None if it can get one."""


def list_nodes(collector: Any, access: CondorPool, now: int) -> list[NodeRow]:
    """Row of each node that a collector of the bindings knows, by name."""
    met = met_by(collector, access.nodes)
    ads = slots(collector, projection=["Machine"])
    machines = machines_of(map(machine_of, ads), access, met)
    rows: list[NodeRow] = []
    for ads in slots_in_parts(collector, sorted(machines.names), PROJECTION):
        nodes = nodes_of(ads, access, machines, now)
        never = never_steered({n.name: NodeCores(n) for n in nodes}, access.nodes.controlled)
        by_machine: dict[str, list[Any]] = {}
        for ad in ads:
            by_machine.setdefault(machine_of(ad), []).append(ad)
        for node in nodes:
            own = by_machine[node.machine]
            codes = [code_of(ad, access.nodes.job_ctl_stale_seconds) for ad in own]
            code = next(filter(None, codes), None)
            rows.append(
                NodeRow(
                    node=node.name,
                    machine=node.machine,
                    controlled=node.controlled,
                    reserved=node.reserved,
                    snippet=any(name in ad for ad in own for name in _OF_THE_SNIPPET),
                    version=_version(own) if code is not None else None,
                    job_ctl=code,
                    target=_target(node.name, own, now),
                    reason=_reason(node, never.get(node.name), code),
                )
            )
    return sorted(rows, key=lambda row: row.node)


def _reason(node: Node, never: Optional[str], code: Optional[str]) -> Optional[str]:
    """Why the node gets no target, in the order in which a plan asks."""
    if never == STALE and code is None:
        return NEVER_RAN
    return never or ("draining" if node.draining else node.refusal)


def _version(ads: Iterable[Any]) -> str:
    versions = (text(evaluated(ad, "t1_SharectlVersion")) for ad in ads)
    return version_of(next(filter(None, versions), None))


def _target(node: str, ads: Sequence[Any], now: int) -> Optional[Target]:
    """Target of the first slot that acts on one; what the ad lacks is ``?`` or 0."""
    for ad in ads:
        if has_target(ad, now):
            groups = [text(group) or "?" for group in sequence(evaluated(ad, "t1_TargetGroups"))]
            cores = [whole(number, 0) for number in sequence(evaluated(ad, "t1_Targetcores"))]
            held_back, helped = (*groups, "?", "?")[:2]
            cap, request = (*cores, 0, 0)[:2]
            return Target(node, held_back, cap, helped, request)
    return None
