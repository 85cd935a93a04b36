"""Settings of plans, and the worth of a target by them."""

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


NEGOTIATION_SECONDS = 60
"""HTCondor's NEGOTIATOR_INTERVAL: longest time between cycles of a pool that keeps up."""

NEGOTIATION_CYCLES = 2
"""A block waits for so many negotiation cycles more than blocks waited that were taken."""

IN_A_ROW = 3
"""Blocks of a kind given back in a row: its open blocks then go, and grace heeds it no more."""

MOST_DOUBLINGS = 3
"""A block of a kind that failed as a whole waits up to so many times twice as long."""


@dataclass(frozen=True)
class Assigning:
    """Settings of `many`, with the prices that make the worth of a target."""

    horizon_seconds: float = setting(86_400.0, least=60, most=2_592_000)
    """`many`: time for which moved power counts. Nodes that free cores later get no target."""
    idle_price: float = setting(1.0, least=0, most=1000)
    """`many`: worth of idle power in moved power. Above 1 nodes that free cores faster go before
    stronger ones."""
    keep_gain_ratio: float = setting(0.25, least=0, most=100)
    """`many`: a target stays unless another one is worth more by this part."""
    obey_seconds: int = setting(2340, least=10, most=604_800)
    """`many`: a node that ignores its target for longer loses it for four times as long. Three
    13-minute periods of cron mode; live nodes need 330 s, `job_ctl`'s 30 and UPDATE_INTERVAL."""
    single_core_ratio: float = 0.5
    """Part of their value at which cores for single-core jobs count."""

    def value(
        self, cores: int, hs06_per_core: float, wait_seconds: float, idle_core_seconds: float
    ) -> float:
        """HS06-seconds of a block that is ready after so long, less its idle cores."""
        moved = cores * max(0.0, self.horizon_seconds - wait_seconds)
        return hs06_per_core * (moved - self.idle_price * idle_core_seconds)

    def single_core_value(
        self, cores: int, hs06_per_core: float, wait_seconds: float, idle_core_seconds: float
    ) -> float:
        """HS06-seconds of cores for single-core jobs, each of which is used once it is free."""
        worked = cores * (self.horizon_seconds - wait_seconds) + idle_core_seconds
        return self.single_core_ratio * hs06_per_core * worked


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
