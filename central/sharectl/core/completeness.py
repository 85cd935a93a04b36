"""Whether a collector that answers can know the whole pool yet."""

from __future__ import annotations

from dataclasses import replace

from sharectl.core.model import Snapshot, Source
from sharectl.core.plan import State

WARMUP_SECONDS = 330
"""Within this every daemon has sent its ad to a collector that has started: UPDATE_INTERVAL (300) and some."""


def with_restart(snapshot: Snapshot, before: State) -> Snapshot:
    """``snapshot``, incomplete if its collector has just started and knows less than at the last complete cycle.

    A collector begins with nothing, and daemons report at their own pace: what it does not know yet is not gone.
    Nodes that left while it ran are gone, and so is what has not reported by the end of `WARMUP_SECONDS`.
    """
    age_seconds = snapshot.taken_at - snapshot.collector_started_at
    if not snapshot.complete or age_seconds >= WARMUP_SECONDS:
        return snapshot
    missing = [
        f"{now} of {then} {what}"
        for what, now, then in (
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
