"""Settings of plans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from sharectl.settings import setting

STRATEGIES = {
    "many": "every group over its share can give to every one under it",
    "pair": "the group furthest over its share gives to the one furthest under it (the original "
    "method)",
}
"""How groups are brought together."""


OBEY_SECONDS = 2340
"""A node that ignores its target for longer loses it: three 13-minute periods of cron mode."""

NEGOTIATION_SECONDS = 60
"""HTCondor's NEGOTIATOR_INTERVAL: longest time between cycles of a pool that keeps up."""

NEGOTIATION_CYCLES = 2
"""A block waits for so many negotiation cycles more than blocks waited that were taken."""

IN_A_ROW = 3
"""Blocks of a kind given back in a row: its open blocks then go, and it has failed as a whole."""

MOST_DOUBLINGS = 3
"""A block of a kind that failed as a whole waits up to so many times twice as long."""


@dataclass(frozen=True)
class GiveUp:
    """Settings of giving back blocks that stand free."""

    seconds: Optional[float] = setting(None, above=0, most=604_800, key="give_up_seconds")
    """Time that cores of a block may stand free. Then the target goes, and its group tries one
    block at a time: the next once 0.1 % of the pool's cores (at least 1) have made up for its cost,
    within a day. null: two negotiation cycles (NEGOTIATOR_INTERVAL, 60 s) more than blocks needed
    that jobs took."""

    def patience_seconds(self, wait_seconds: float, failures: int = 0) -> float:
        """Time for which a block may stand free that jobs are expected to take after a wait.

        A kind that failed as a whole, several times in a row, is tried with one block at a time,
        each for twice as long as the one before: a negotiator whose cycles take longer than is
        learnt yet starves no group.
        """
        if self.seconds is not None:
            return self.seconds
        seconds = NEGOTIATION_CYCLES * NEGOTIATION_SECONDS + wait_seconds
        return seconds * (1 << min(MOST_DOUBLINGS, max(0, failures - IN_A_ROW + 1)))
