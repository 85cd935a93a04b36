"""Share of a job's group and the wait of its like, by the latest complete cycle of the ledger."""

from __future__ import annotations

from typing import NamedTuple, Optional

from sharectl.model import WaitTimes
from sharectl.plan.records import CycleRecord

OLD_SECONDS = 3600
"""Age of a cycle that says nothing of now."""
LEAST_OVER_RATIO = 0.01
"""Part of its share by which a group is over it, at least, to be called so."""


class Prospect(NamedTuple):
    """Share of a job's group, and waits of its like, as the ledger has them."""

    problem: Optional[str] = None
    """Why nothing is known; None if the rest is filled."""
    cycle: int = 0
    taken_at: int = 0
    """Unix seconds of the cycle."""
    power_hs06: Optional[float] = None
    """Power that its group uses; None for no configured group."""
    share_hs06: Optional[float] = None
    """Setpoint of its group."""
    over_hs06: float = 0.0
    """Power beyond the setpoint; 0 if it is at its share or below."""
    block_nodes: tuple[str, ...] = ()
    """Nodes whose target frees a block of its size for its group, the first block first."""
    block_seconds: float = 0.0
    """Expected time from now until the first of them is free."""
    pending: Optional[WaitTimes] = None
    """Of jobs of its group and size that wait."""
    started: Optional[WaitTimes] = None
    """Of those that have started in the hour before the cycle."""

    @property
    def over(self) -> str:
        """By how much its group is over its share, in words; empty if it is not, or not known."""
        if not self.over_hs06:
            return ""
        return f"{self.over_hs06:.0f} HS06 over its share of {self.share_hs06:.0f}"


def prospect(record: Optional[CycleRecord], group: str, cores: int, now: int) -> Prospect:
    """Prospect of a job of a configured group at Unix time ``now``.

    ``record`` is the latest complete cycle, or None. ``cores`` are 0 if not known.
    """
    if record is None:
        return Prospect("the ledger has no complete cycle: `sharectl cycle`")
    if now - record.taken_at > OLD_SECONDS:
        return Prospect("the last complete cycle of the ledger is more than an hour old")
    control = next((control for control in record.groups if control.group == group), None)
    due = control.setpoint_hs06 if control else None
    over = control.control_error_hs06 if control else 0.0
    freeing = sorted(
        (max(0.0, node.wait_seconds - (now - record.taken_at)), node.node)
        for node in record.nodes
        if node.target and not record.observed
        if (node.target.helped, node.target.request_cores) == (group, cores)
    )
    alike = next((w for w in record.waits if (w.group, w.cores) == (group, cores)), None)
    return Prospect(
        None,
        record.number,
        record.taken_at,
        control.error.usage.power_hs06 if control else None,
        due,
        over if over > LEAST_OVER_RATIO * (due or 0.0) else 0.0,
        tuple(node for _, node in freeing),
        freeing[0][0] if freeing else 0.0,
        alike.pending if alike else None,
        alike.started if alike else None,
    )
