"""What the nodes make of their targets, as the collector knows it.

What one node says of its target, asked now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

from sharectl.condor import node_words
from sharectl.condor.ads import evaluated, text, whole
from sharectl.condor.daemons import ask_collector, query
from sharectl.errors import PoolUnavailableError
from sharectl.plan import nodes as node_reasons
from sharectl.plan.nodes import HOST_NAME, NodeWords

_PROJECTION = (*node_words.PROJECTION, "t1_TargetSequence")


def ask(
    collector: Optional[str], name: str, now: int, stale_seconds: int, deadline_seconds: float
) -> NodeWords:
    """What the node of that short or full host name says at Unix time ``now``; never raises.

    Parameters
    ----------
    collector
        Its address; None for the pool of this machine's configuration.
    """
    if not HOST_NAME.fullmatch(name):
        return NodeWords(problem="it has no host name")

    def look(asked: Any) -> NodeWords:
        ads = query(asked, "Slot", constraint_of(name), _PROJECTION)
        return words_of(ads, now, stale_seconds)

    try:
        return ask_collector(collector, deadline_seconds, look)
    except PoolUnavailableError as error:
        return NodeWords(problem=str(error))


def constraint_of(name: str) -> str:
    """Constraint on ads of the partitionable slots of a node; ``name`` is a host name, short or full."""
    machine = name.lower()
    begins = f'substr(toLower(Machine), 0, {len(machine) + 1}) == "{machine}."'
    return f'PartitionableSlot =?= True && (toLower(Machine) == "{machine}" || {begins})'


def words_of(ads: list[Any], now: int, stale_seconds: int) -> NodeWords:
    """What the partitionable slots of one node say together: a refusal of any, a switch of any, the newest plan that one obeys."""
    if not ads:
        return NodeWords(problem="the collector knows no partitionable slot of it")
    said = [node_words.obedience_of(ad, now, stale_seconds) for ad in ads]
    refusals = [refusal for _, refusal in said if refusal is not None]
    obeyed = [sequence for sequence, _ in said if sequence is not None]
    off = dict.fromkeys(switch for ad in ads for switch in node_words.switched_off(ad))
    return NodeWords(
        max(obeyed, default=None), refusals[0] if refusals else None, switched_off=tuple(off)
    )


_PARTITIONABLE = "PartitionableSlot =?= True"
_OF_THE_SNIPPET = ("t1_Enabled", "t1_JobCtlStaleSeconds")
"""Attributes that slots have by the snippet alone, whether or not its programs run."""


@dataclass(frozen=True)
class Awaited:
    """What nodes can find where they look."""

    valid: bool = False
    """Whether anything is published that is valid."""
    file_since: Optional[int] = None
    """Since when a file with targets is, Unix seconds; None if there is none."""
    ads_since: Mapping[str, int] = field(default_factory=dict)
    """Node that has a target in a collector -> since when, Unix seconds."""
    free_nodes: frozenset[str] = frozenset()
    """Nodes of which the last cycle saw cores stand free under a target."""


@dataclass(frozen=True)
class NodeStatus:
    """How many partitionable slots do what."""

    slots: int
    with_target: int
    """Slots whose START acts on a target now."""
    in_grace: int
    """Slots that keep freed cores for multicore jobs now."""
    disabled: int
    """Slots of nodes that somebody has switched off on the node, by file."""
    disabled_by_knob: int
    """The same by SHARECTL_ENABLED."""
    multicore_only: int
    """Slots that take multicore jobs alone, by t1_MulticoreOnly."""
    reasons: dict[str, int]
    """Code of `sharectl.plan.nodes` -> slots."""
    refusing: dict[str, int]
    """Those of them that keep targets from nodes that should find some."""
    idle_cores: dict[str, int]
    """Node of `Awaited.free_nodes` -> cores that no job holds there now."""
    idle_grace_cores: int
    """Cores in grace now."""


def look_at_nodes(collector: Any, now: int, stale_seconds: int, awaited: Awaited) -> NodeStatus:
    """Status of all partitionable slots that a collector of the bindings knows; see `status_of`."""
    ads = query(collector, "Slot", _PARTITIONABLE, node_words.PROJECTION)
    return status_of(ads, now, stale_seconds, awaited)


def status_of(
    ads: Sequence[Any], now: int, stale_seconds: int, awaited: Awaited = Awaited()
) -> NodeStatus:
    """Status of the slots with these ads at Unix time ``now``.

    ``stale_seconds`` is for nodes that do not say; see `node_words.code_of`.
    """
    # First: it sets the time of the last run as if the ad had just been sent.
    codes = [_code(ad, now, stale_seconds, awaited) for ad in ads]
    in_grace = [ad for ad in ads if node_words.in_grace(ad, now)]
    return NodeStatus(
        slots=len(ads),
        with_target=sum(node_words.has_target(ad, now) for ad in ads),
        in_grace=len(in_grace),
        disabled=sum(node_words.says(ad, "t1_Disabled", said=True) for ad in ads),
        disabled_by_knob=sum(node_words.says(ad, "t1_Enabled", said=False) for ad in ads),
        multicore_only=sum(node_words.says(ad, "t1_MulticoreOnly", said=True) for ad in ads),
        reasons=dict(Counter(code for code, _ in codes).most_common()),
        refusing=dict(Counter(code for code, refuses in codes if refuses).most_common()),
        idle_cores=_idle_cores(ads, awaited.free_nodes),
        idle_grace_cores=sum(whole(evaluated(ad, "Cpus"), 0) for ad in in_grace),
    )


def _idle_cores(ads: Sequence[Any], nodes: frozenset[str]) -> dict[str, int]:
    idle: Counter[str] = Counter()
    for ad in ads:
        machine = (text(evaluated(ad, "Machine")) or "").lower()
        for name in {machine, machine.partition(".")[0]} & nodes:
            idle[name] += whole(evaluated(ad, "Cpus"), 0)
    return dict(idle)


def _code(ad: Any, now: int, stale_seconds: int, awaited: Awaited) -> tuple[str, bool]:
    """Code of the slot, and whether it keeps a target away."""
    ran_at = whole(evaluated(ad, "t1_JobCtlTime"), 0)
    code = node_words.code_of(ad, now, stale_seconds)
    if code is None:
        installed = any(name in ad for name in _OF_THE_SNIPPET)
        return node_reasons.NEVER_RAN if installed else node_reasons.NOT_PUBLISHED, True
    return code, _refuses(code, ad, ran_at, awaited)


def _refuses(code: str, ad: Any, ran_at: int, awaited: Awaited) -> bool:
    unless_awaited = {
        node_reasons.EXPIRED: awaited.valid,
        node_reasons.NO_FILE: awaited.file_since is not None and ran_at > awaited.file_since,
        node_reasons.NO_AD: ran_at > _ad_since(ad, awaited, ran_at),
    }
    return unless_awaited.get(code, code not in node_reasons.QUIET)


def _ad_since(ad: Any, awaited: Awaited, otherwise: int) -> int:
    machine = (text(evaluated(ad, "Machine")) or "").lower()
    return awaited.ads_since.get(
        machine, awaited.ads_since.get(machine.partition(".")[0], otherwise)
    )
