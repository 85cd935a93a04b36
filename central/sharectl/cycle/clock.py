"""State of a cycle whose clock was ahead: what of it may be used once the clock is right."""

from __future__ import annotations

from typing import Optional

from sharectl.plan.plan import State
from sharectl.times import shown

MAX_AHEAD_SECONDS = 300
"""Most seconds that a sequence may be ahead of now: nodes refuse one that is further ahead (`future`)."""


def of_now(state: State, now: int) -> tuple[State, Optional[str]]:
    """State that can be used at Unix time ``now``, and what is wrong with ``state``; None if nothing is.

    A sequence is at least the second in which its plan was made, so it tells that a clock was
    ahead. Nothing then stands that is known of: the nodes of its targets count as changed, and the
    audit is told that the targets are gone. Controllers keep what they have summed up.
    """
    ahead_seconds = state.sequence - now
    if ahead_seconds <= MAX_AHEAD_SECONDS:
        return state, None
    used = State(
        nodes=state.nodes,
        schedds=state.schedds,
        withdrawn=state.withdrawn,
        uncertain_nodes=state.uncertain_nodes + len(state.standing),
        unaudited=state.standing if state.unaudited is None else state.unaudited,
        controllers=state.controllers,
    )
    return used, (
        f"the last plan was made at {shown(state.sequence)}, {ahead_seconds} s from now: the "
        "clock of this machine was ahead "
        "then, or is behind now; nodes refuse such a plan (future). Sequence and targets begin "
        "again from now; see "
        "`timedatectl`, and whether chronyd or ntpd runs"
    )
