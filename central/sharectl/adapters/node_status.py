"""What the nodes make of their targets, as the collector knows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

from sharectl.adapters.ads import evaluated, sequence, text, whole
from sharectl.core import node_reasons

_PARTITIONABLE = "PartitionableSlot =?= True"
PROJECTION = (
    *("Machine", "MyCurrentTime", "t1_JobCtlReason", "t1_JobCtlTime", "t1_JobCtlStaleSeconds"),
    *("t1_Disabled", "t1_Enabled"),
    # What t1_TargetActive is made of, in either way of actuation,
    *("t1_TargetActive", "t1_TargetGroups", "t1_Targetcores", "t1_TargetUntil", "PartitionableSlot", "Cpus"),
    *("Childt1_HeldBackCores", "ChildCpus", "TotalSlotCpus", "t1_CurrentJobs"),
    # and MC_GRACE.
    *("MC_GRACE", "SlotID", "t1_McRoomValue", "t1_McRoomTime", "t1_WatchedTime", "t1_McGraceTime"),
)
"""Attributes that are asked for: with one missing, expressions that name it have another value here than there."""

MOST_STALE_SECONDS = 604_800
"""A week: a node that goes by older figures than that is believed no longer."""


@dataclass(frozen=True)
class Awaited:
    """What nodes can find where they look."""

    valid: bool = False
    """Whether anything is published that is valid."""
    file: bool = False
    """Whether a file with targets is."""
    ads_since: Mapping[str, int] = field(default_factory=dict)
    """Node that has a target in a collector -> since when, Unix seconds."""


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
    reasons: dict[str, int]
    """Code of `sharectl.core.node_reasons` -> slots."""
    refusing: dict[str, int]
    """Those of them that keep targets from nodes that should find some."""


def look(collector: Optional[str], now: int, stale_seconds: int, awaited: Awaited) -> NodeStatus:
    """Status of all partitionable slots, as `status_of` says; to be asked by `sharectl.adapters.deadline`."""
    import htcondor2

    asked = htcondor2.Collector(collector) if collector else htcondor2.Collector()
    ads = asked.query(htcondor2.AdType.Slot, constraint=_PARTITIONABLE, projection=list(PROJECTION))
    return status_of(ads, now, stale_seconds, awaited)


def status_of(ads: Sequence[Any], now: int, stale_seconds: int, awaited: Awaited = Awaited()) -> NodeStatus:
    """Status of the slots with these ads at Unix time ``now``.

    A run of job_ctl is stale if it was too long ago for START by the node's own clock when it last sent its ad: how
    often ads are sent, and how well clocks agree, do not count. ``stale_seconds`` is for nodes that do not say.
    """
    # First: it sets the time of the last run as if the ad had just been sent.
    codes = [_code(ad, now, stale_seconds, awaited) for ad in ads]
    return NodeStatus(
        slots=len(ads),
        with_target=sum(_has_target(ad, now) for ad in ads),
        in_grace=sum(_is(ad, "MC_GRACE", said=True) for ad in ads),
        disabled=sum(_is(ad, "t1_Disabled", said=True) for ad in ads),
        disabled_by_knob=sum(_is(ad, "t1_Enabled", said=False) for ad in ads),
        reasons=dict(Counter(code for code, _ in codes).most_common()),
        refusing=dict(Counter(code for code, refuses in codes if refuses).most_common()),
    )


def _code(ad: Any, now: int, stale_seconds: int, awaited: Awaited) -> tuple[str, bool]:
    """Code of the slot, and whether it keeps a target away."""
    said = text(evaluated(ad, "t1_JobCtlReason"))
    if said is None:
        return node_reasons.NOT_PUBLISHED, True
    ran_at = whole(evaluated(ad, "t1_JobCtlTime"), 0)
    age = whole(evaluated(ad, "MyCurrentTime"), now) - ran_at
    ad["t1_JobCtlTime"] = now - age
    stale = whole(evaluated(ad, "t1_JobCtlStaleSeconds"), stale_seconds, 1, MOST_STALE_SECONDS)
    code = node_reasons.known(said) if age < stale else node_reasons.STALE
    return code, _refuses(code, ad, ran_at, awaited)


def _refuses(code: str, ad: Any, ran_at: int, awaited: Awaited) -> bool:
    unless_awaited = {
        node_reasons.EXPIRED: awaited.valid,
        node_reasons.NO_FILE: awaited.file,
        node_reasons.NO_AD: ran_at > _ad_since(ad, awaited, ran_at),
    }
    return unless_awaited.get(code, code not in node_reasons.QUIET)


def _ad_since(ad: Any, awaited: Awaited, otherwise: int) -> int:
    machine = (text(evaluated(ad, "Machine")) or "").lower()
    return awaited.ads_since.get(machine, awaited.ads_since.get(machine.partition(".")[0], otherwise))


def _has_target(ad: Any, now: int) -> bool:
    if ad.get("t1_TargetActive") is not None:
        return _is(ad, "t1_TargetActive", said=True)
    cores = sequence(evaluated(ad, "t1_Targetcores"))
    return len(cores) > 1 and whole(cores[1], 0) > 0 and whole(evaluated(ad, "t1_TargetUntil"), 0) > now


def _is(ad: Any, name: str, *, said: bool) -> bool:
    """Whether the attribute says so; undefined and error, which are numbers in the bindings, say nothing."""
    value = evaluated(ad, name)
    return type(value) in (bool, int) and value == said
