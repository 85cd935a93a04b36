"""Steps of the scenario: the demo shows them, and the loop's test judges them."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence
from typing import Optional

from poolbox.demo import scenario
from poolbox.demo.pictures import NodePicture, look
from poolbox.demo.steering import Cycle, Sharectl

LOOK_SECONDS = 1.0
SETTLED_CYCLES = 3
"""Cycles in a row that find every group near its due when the pool counts as settled."""


@dataclasses.dataclass(frozen=True)
class Moment:
    """One look at the pool while sharectl runs."""

    seen_at: float
    """Unix seconds."""
    nodes: tuple[NodePicture, ...]
    cycle: Cycle
    """The cycle that ran last."""
    fresh: bool
    """True for the first look after it."""


def watch(sharectl: Sharectl, controlled: str, seconds: float) -> Iterator[Moment]:
    """Looks, one a second for ``seconds``, with a cycle every `scenario.CYCLE_SECONDS`."""
    end = time.monotonic() + seconds
    due = time.monotonic()
    cycle: Optional[Cycle] = None
    while cycle is None or time.monotonic() < end:
        began = time.monotonic()
        fresh = cycle is None or began >= due
        if cycle is None or fresh:
            due = began + scenario.CYCLE_SECONDS
            cycle = sharectl.cycle(controlled)
        yield Moment(time.time(), look(sharectl.box), cycle, fresh)
        time.sleep(max(0.0, LOOK_SECONDS - (time.monotonic() - began)))


@dataclasses.dataclass(frozen=True)
class Phase:
    """Result of one phase, from its looks."""

    name: str
    moments: Sequence[Moment]
    large_jobs_started: int = 0

    @property
    def last_nodes(self) -> tuple[NodePicture, ...]:
        """The nodes at the last look."""
        return self.moments[-1].nodes

    @property
    def measured(self) -> tuple[Cycle, ...]:
        """The cycles that saw the whole pool, in order."""
        return tuple(
            moment.cycle for moment in self.moments if moment.fresh and moment.cycle.measured
        )

    @property
    def idle_cores_mean(self) -> float:
        """Cores that no job held, on all nodes together, on average over the looks."""
        idle = [sum(node.idle_cores for node in moment.nodes) for moment in self.moments]
        return sum(idle) / len(idle)

    @property
    def furthest_hs06(self) -> list[float]:
        """Error of the group that is furthest from its due, at each cycle of `measured`."""
        groups = scenario.PLEDGE_HS06
        return [max(abs(cycle.error_hs06(group)) for group in groups) for cycle in self.measured]

    @property
    def is_settled(self) -> bool:
        """True if the last cycles found every group within half a block of its due."""
        last = self.furthest_hs06[-SETTLED_CYCLES:]
        return len(last) == SETTLED_CYCLES and max(last) <= scenario.HALF_BLOCK_HS06
