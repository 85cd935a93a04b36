"""What the nodes make of their targets, as the collector knows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional

from sharectl.adapters.ads import evaluated, sequence, text, whole

_PARTITIONABLE = "PartitionableSlot =?= True"
_PROJECTION = [
    "Machine",
    "t1_Targetcores",
    "t1_TargetUntil",
    "t1_JobCtlReason",
    "t1_JobCtlTime",
    "MC_GRACE",
    "Cpus",
    "SlotID",
    "t1_Disabled",
    "MyCurrentTime",
]
UNKNOWN_REASON = "not-published"
"""Reason of a node where the job ``job_ctl`` has not run."""

STALE_REASON = "stale"
"""Reason of a node where it ran, but not lately."""


@dataclass(frozen=True)
class NodeStatus:
    """How many partitionable slots do what."""

    slots: int
    with_target: int
    """Slots whose START acts on a target now."""
    in_grace: int
    """Slots that keep freed cores for multicore jobs now."""
    disabled: int
    """Slots of nodes that somebody has switched off on the node."""
    reasons: dict[str, int]
    """Reason code of job_ctl -> slots."""


def look(collector: Optional[str], now: int, stale_seconds: int) -> NodeStatus:
    """Status of all partitionable slots, as `status_of` says; to be asked by `sharectl.adapters.deadline`."""
    import htcondor2

    asked = htcondor2.Collector(collector) if collector else htcondor2.Collector()
    ads = asked.query(htcondor2.AdType.Slot, constraint=_PARTITIONABLE, projection=_PROJECTION)
    return status_of(ads, now, stale_seconds)


def status_of(ads: Sequence[Any], now: int, stale_seconds: int) -> NodeStatus:
    """Status of the slots with these ads at Unix time ``now``.

    A run of job_ctl is stale if the node's own clock was ``stale_seconds`` further when it last sent its ad: how often
    ads are sent, and how well clocks agree, do not count.
    """
    return NodeStatus(
        slots=len(ads),
        with_target=sum(_has_target(ad, now) for ad in ads),
        in_grace=sum(evaluated(ad, "MC_GRACE") in (True, 1) for ad in ads),
        disabled=sum(evaluated(ad, "t1_Disabled") in (True, 1) for ad in ads),
        reasons=dict(Counter(_reason(ad, now, stale_seconds) for ad in ads).most_common()),
    )


def _reason(ad: Any, now: int, stale_seconds: int) -> str:
    reason = text(evaluated(ad, "t1_JobCtlReason"))
    if reason is None:
        return UNKNOWN_REASON
    sent_at = whole(evaluated(ad, "MyCurrentTime"), now)
    return reason if sent_at - whole(evaluated(ad, "t1_JobCtlTime"), 0) < stale_seconds else STALE_REASON


def _has_target(ad: Any, now: int) -> bool:
    cores = sequence(evaluated(ad, "t1_Targetcores"))
    return len(cores) > 1 and whole(cores[1], 0) > 0 and whole(evaluated(ad, "t1_TargetUntil"), 0) > now
