"""What one partitionable slot says of its target: its ad in the collector, read in one way for all verbs."""

from __future__ import annotations

from typing import Any, Optional

from sharectl.condor.ads import evaluated, sequence, text, whole
from sharectl.plan import nodes

PROJECTION = (
    *("Machine", "MyCurrentTime", "t1_JobCtlReason", "t1_JobCtlTime", "t1_JobCtlStaleSeconds"),
    *("t1_Disabled", "t1_Enabled"),
    # What t1_TargetActive is made of, in either way of actuation,
    *(
        "t1_TargetActive",
        "t1_TargetGroups",
        "t1_Targetcores",
        "t1_TargetUntil",
        "PartitionableSlot",
        "Cpus",
    ),
    *("Childt1_HeldBackCores", "ChildCpus", "TotalSlotCpus", "t1_CurrentJobs"),
    # and what MC_GRACE and t1_GraceActive are made of.
    *("MC_GRACE", "t1_GraceActive", "t1_McGraceTime", "SlotID", "t1_McRoomValue", "t1_McRoomTime"),
    *("t1_WatchedTime", "t1_MulticorePending", "t1_MulticorePendingUntil", "t1_MulticoreOnly"),
)
"""Attributes that are asked for: with one missing, expressions that name it have another value here than there."""

MOST_STALE_SECONDS = 604_800
"""A week: a node that goes by older figures than that is believed no longer."""

_NOTHING_FOUND = (nodes.NO_FILE, nodes.NO_AD, nodes.EXPIRED)
"""What nodes say too where nothing has been published for them: no refusal by itself."""


def code_of(ad: Any, now: int, stale_seconds: int) -> Optional[str]:
    """Code of job_ctl in the ad at Unix time ``now``; None of a slot that publishes none.

    A run of job_ctl is stale if it was too long ago for START by the node's own clock when it last
    sent its ad: how often ads are sent, and how well clocks agree, do not count. ``stale_seconds``
    is for nodes that do not say. The time of the last run is set in the ad as if that had just been
    sent, which `has_target` wants.
    """
    said = text(evaluated(ad, "t1_JobCtlReason"))
    if said is None:
        return None
    age = _as_if_just_sent(ad, "t1_JobCtlTime", now)
    stale = whole(evaluated(ad, "t1_JobCtlStaleSeconds"), stale_seconds, 1, MOST_STALE_SECONDS)
    return nodes.known(said) if age < stale else nodes.STALE


def _as_if_just_sent(ad: Any, name: str, now: int) -> int:
    """Age in seconds of the time ``name`` when the slot sent its ad; the ad has a time of this age at ``now`` then."""
    age = whole(evaluated(ad, "MyCurrentTime"), now) - whole(evaluated(ad, name), 0)
    ad[name] = now - age
    return age


def has_target(ad: Any, now: int) -> bool:
    """Whether START acts on a target."""
    if ad.get("t1_TargetActive") is not None:
        return says(ad, "t1_TargetActive", said=True)
    cores = sequence(evaluated(ad, "t1_Targetcores"))
    return (
        len(cores) > 1
        and whole(cores[1], 0) > 0
        and whole(evaluated(ad, "t1_TargetUntil"), 0) > now
    )


def says(ad: Any, name: str, *, said: bool) -> bool:
    """Whether the attribute says so; undefined and error, which are numbers in the bindings, say nothing."""
    value = evaluated(ad, name)
    return type(value) in (bool, int) and value == said


def switched_off(ad: Any) -> tuple[str, ...]:
    """Which of `sharectl.explain.node.SWITCHES` the slot says are off."""
    said = {"file": says(ad, "t1_Disabled", said=True), "knob": says(ad, "t1_Enabled", said=False)}
    return tuple(switch for switch, is_off in said.items() if is_off)


def in_grace(ad: Any, now: int) -> bool:
    """Whether START keeps single-core jobs out of the slot for the sake of multicore jobs.

    In cron mode mc_grace ran at t1_McGraceTime, which is set in the ad as `code_of` sets
    t1_JobCtlTime: ask once.
    """
    if ad.get("t1_McGraceTime") is not None:
        _as_if_just_sent(ad, "t1_McGraceTime", now)
    name = "t1_GraceActive" if ad.get("t1_GraceActive") is not None else "MC_GRACE"
    return not switched_off(ad) and says(ad, name, said=True)


def obedience_of(ad: Any, now: int, stale_seconds: int) -> tuple[Optional[int], Optional[str]]:
    """Sequence of the plan that the slot acts on, and why it has refused what was published.

    The sequence is 0 if the slot acts on no target, None if it publishes nothing, or acts on a
    target without one. The reason is a code of `node_reasons`; None where nothing was refused, or
    nothing found.
    """
    code = code_of(ad, now, stale_seconds)
    if code is None:
        return None, None
    refusal = None if code in nodes.QUIET or code in _NOTHING_FOUND else code
    sequence_number = (
        (whole(evaluated(ad, "t1_TargetSequence"), 0) or None) if has_target(ad, now) else 0
    )
    return sequence_number, refusal


def is_draining(ad: Any) -> bool:
    """Whether its startd is being drained: ``Draining`` of 23.9 and 25, or a slot that is drained already."""
    return says(ad, "Draining", said=True) or text(evaluated(ad, "State")) == "Drained"
