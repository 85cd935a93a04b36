"""START of the execute point's snippet in Python, for the engine, which asks millions of times.

`config.d/60-sharectl-execute-point.conf` is the law: a contract test holds these functions against
HTCondor's own evaluation of it. Groups and accounts are in lower case. What the startd knows late,
a latch of up to 5 s among it, is for the caller: `StartSlot` has what the node acts on now.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import NamedTuple, Optional, Protocol

from sharectl.shares.groups import is_within

MULTICORE_ONLY_CORES = 2
"""MULTICORE_ONLY_CORES of `config.d/examples/70-multicore-only.conf`."""


class SlotTarget(NamedTuple):
    """Target that a slot's node has read."""

    held_back: str
    cap_cores: int
    """Most cores of the group held back, from 0."""
    helped: str
    request_cores: int
    """Cores that a job of the helped group requests, from 1."""
    until: float = inf
    """Time from which it is no longer valid, or job_ctl's last look at it is stale."""


@dataclass(frozen=True)
class StartKnobs:
    """Knobs of the snippet, and the demand that the plan publishes."""

    enabled: bool = True
    """SHARECTL_ENABLED; False also on nodes without the snippet."""
    actuation: str = "live"
    """SHARECTL_ACTUATION: `live` or `cron`."""
    multicore_cores: int = 8
    """SHARECTL_MULTICORE_CORES."""
    grace_seconds: float = 480.0
    """SHARECTL_GRACE_SECONDS."""
    mc_grace_period_seconds: float = 60.0
    """SHARECTL_MC_GRACE_PERIOD_SECONDS: cron: time between two runs of mc_grace.py."""
    multicore_pending: Optional[bool] = None
    """t1_MulticorePending; None if the plan does not tell."""
    multicore_pending_until: float = inf
    """t1_MulticorePendingUntil."""


class StartSlot(Protocol):
    """Partitionable slot of the engine."""

    free_cores: int
    target: Optional[SlotTarget]
    held_back_cores: int
    """live: cores of the held-back group's claims and of new claims of any group; with a
    consumption policy also cores that this negotiation cycle has matched already."""
    counted_cores: int
    """cron: cores of the held-back group on the node when job_ctl last looked."""
    taken_since: int
    """cron: cores taken on the slot beyond all those that job_ctl counted on the node, at least
    0."""
    room_since: float
    """Time at which the end of a job left `multicore_cores` free, as t1_McRoomTime or mc_grace.py
    (`is_seen`) has it; -inf if the cores were free when the startd began."""
    multicore_only: bool
    draining: bool


def refusal(
    slot: StartSlot, cores: int, account: str, now: float, knobs: StartKnobs
) -> Optional[str]:
    """Cause for which START of a partitionable slot refuses a job; None if it admits the job.

    `drain`, `grace`, `target`, or `start` for a node that takes multicore jobs alone.
    """
    if slot.draining:
        return "drain"
    if knobs.enabled:
        target = slot.target
        if target is not None and now >= target.until:
            target = None
        if cores <= 1 and now < slot.room_since + knobs.grace_seconds:
            # A target for single-core jobs frees these cores for them.
            is_meant = (
                target is not None
                and target.request_cores == 1
                and is_within(account, target.helped)
            )
            if not is_meant and is_in_grace(slot, now, knobs):
                return "grace"
        if target is not None and not _is_within_cap(slot, target, cores, account, knobs):
            return "target"
    if slot.multicore_only and cores < MULTICORE_ONLY_CORES:
        return "start"
    return None


def is_in_grace(slot: StartSlot, now: float, knobs: StartKnobs) -> bool:
    """Tell if the slot keeps its free cores for multicore jobs (MC_GRACE, of an enabled node)."""
    return (
        now < slot.room_since + knobs.grace_seconds
        and slot.free_cores >= knobs.multicore_cores
        and (knobs.multicore_pending is not False or now >= knobs.multicore_pending_until)
    )


def _is_within_cap(
    slot: StartSlot, target: SlotTarget, cores: int, account: str, knobs: StartKnobs
) -> bool:
    if is_within(account, target.helped):
        return cores == target.request_cores
    if not is_within(account, target.held_back):
        return False
    if knobs.actuation == "live":
        return cores <= target.cap_cores - slot.held_back_cores
    return cores <= target.cap_cores - slot.counted_cores - slot.taken_since


def reuse_refusal(
    slot: StartSlot,
    claim_cores: int,
    claim_account: str,
    cores: int,
    account: str,
    now: float,
    knobs: StartKnobs,
) -> Optional[str]:
    """Cause for which START of a claimed dynamic slot refuses its next job; None if it admits it.

    ``claim_account`` is that of the job for which the claim was made.
    """
    if slot.draining:
        return "drain"
    if knobs.enabled:
        if cores <= 1 and claim_cores >= knobs.multicore_cores:
            return "grace"
        target = slot.target
        if (
            target is not None
            and now < target.until
            and is_within(account, target.held_back)
            and not is_within(claim_account, target.held_back)
        ):
            return "target"
    if slot.multicore_only and cores < MULTICORE_ONLY_CORES:
        return "start"
    return None


def claim_worklife_seconds(
    slot: StartSlot, claim_account: str, now: float, knobs: StartKnobs, worklife_seconds: float
) -> float:
    """CLAIM_WORKLIFE of a claim: 0, no further job, if a target holds its group back."""
    target = slot.target
    if (
        target is not None
        and knobs.enabled
        and now < target.until
        and is_within(claim_account, target.held_back)
    ):
        return 0.0
    return worklife_seconds


def is_seen(begin: float, end: float, period_seconds: float, phase_seconds: float) -> bool:
    """Tell if a periodic job of the node looks in the time from ``begin`` to before ``end``.

    cron: mc_grace.py begins grace again only if it has seen the cores taken; else `room_since`
    stays as it was.
    """
    looks = -((phase_seconds - begin) // period_seconds)
    return phase_seconds + max(0.0, looks) * period_seconds < end
