"""condor_defrag and the drains that it asks of nodes, as HTCondor 25 does both.

DEFRAG_CANCEL_REQUIREMENTS is DEFRAG_WHOLE_MACHINE_EXPR, HTCondor's default.
"""

from __future__ import annotations

from functools import partial
from math import floor, inf
from random import Random  # noqa: TID251 - with a seed
from typing import Optional

from sharectl.times import DAY_SECONDS, HOUR_SECONDS
from sharectl_lab.twin.engine import Twin
from sharectl_lab.twin.look import unix
from sharectl_lab.twin.pool import Claim, SimNode, SimSlot
from sharectl_lab.twin.settings import Defrag

MOST_INTERVAL_SECONDS = 3600
"""With a longer DEFRAG_INTERVAL condor_defrag drains nothing."""

VACATE_SECONDS = 600
"""MachineMaxVacateTime: a job is told to go so long before its retirement is over."""

MOST_BADPUT = 2**31 - 1
"""Startds publish no larger number: with a long retirement all busy nodes are alike."""

RECIPE_CORES = 8
"""Cores of the rank `cores-to-free`."""


def drains_at(now: int, last: Optional[int], interval: int, machines_per_hour: float) -> int:
    """Machines to drain at a poll; times are Unix seconds, ``last`` is the poll before.

    Each poll has whole ones of the rate; the rest are whole ones of each new hour, then day.
    """
    if interval > MOST_INTERVAL_SECONDS or machines_per_hour <= 0:
        return 0
    rate = machines_per_hour / HOUR_SECONDS * interval
    each_poll = floor(rate + 1e-5)
    rest_per_hour = (rate - each_poll) / interval * HOUR_SECONDS
    each_hour = floor(rest_per_hour + 1e-5)
    each_day = floor((rest_per_hour - each_hour) * 24 + 0.5)
    drains = each_poll
    if last is not None:
        for machines, period in ((each_hour, HOUR_SECONDS), (each_day, DAY_SECONDS)):
            if now // period != last // period:
                drains += _prorated(machines, now % period, period, interval)
    return drains


def _prorated(machines: int, elapsed: int, period: int, interval: int) -> int:
    """Part of ``machines`` for the rest of a period, and for the poll that it may have missed."""
    ratio = (period - elapsed) / period + interval / period
    return min(machines, floor(machines * ratio + 0.5))


class Defragmenter:
    """condor_defrag, from its first poll on."""

    def __init__(self, twin: Twin, settings: Defrag, seed: int, starts_at: float = 0.0) -> None:
        self.twin = twin
        self.settings = settings
        self._draw = Random(f"{seed}/defrag").random
        self._last: Optional[int] = None
        """Unix seconds of the last poll."""
        self._drains = 0
        self.draining: dict[int, int] = {}
        """Number of each node that is drained -> number of the drain."""
        twin.on_end.append(self._note_end)
        twin.at(starts_at, self._poll)

    def _poll(self, now: float) -> None:
        """Cancel drains of whole nodes, and begin others within the limits."""
        settings, last = self.settings, self._last
        self.twin.at(now + settings.interval_seconds, self._poll)
        self._last = unix(now)
        interval = int(settings.interval_seconds)
        drains = drains_at(self._last, last, interval, settings.machines_per_hour)
        draining = len(self.draining)
        whole = {node.number for node in self.twin.nodes if self._is_whole(node)}
        cancelled = [number for number in self.draining if number in whole]
        for number in cancelled:
            self._resume(self.twin.nodes[number])
        if (
            drains <= 0
            or 0 <= settings.max_concurrent <= draining
            or 0 <= settings.max_whole <= len(whole)
        ):
            return
        candidates = [
            (-self._rank(node, now), self._draw(), node.number)
            for node in self.twin.nodes
            if node.number not in whole and not node.draining and not node.spec.multicore_only
        ]
        for _, _, number in sorted(candidates)[:drains]:
            self._drain(self.twin.nodes[number], now)

    def _is_whole(self, node: SimNode) -> bool:
        least = self.settings.whole_cores
        return any(
            slot.free_cores >= (slot.total_cores if least is None else least) for slot in node.slots
        )

    def _rank(self, node: SimNode, now: float) -> float:
        if self.settings.rank == "badput":
            return -self._badput(node, now)
        return max(_cores_to_free(slot) for slot in node.slots)

    def _badput(self, node: SimNode, now: float) -> int:
        """ExpectedMachineGracefulDrainingBadput, core-seconds."""
        retirement, badput = int(min(self.settings.retirement_seconds, MOST_BADPUT)), 0
        for slot in node.slots:
            for claim in slot.claims:
                age = max(0, int(now - claim.started_at))
                badput += claim.cores * max(retirement, age + VACATE_SECONDS)
        return min(badput, MOST_BADPUT)

    # ---- the nodes

    def _drain(self, node: SimNode, now: float) -> None:
        self._drains += 1
        self.draining[node.number] = self._drains
        self.twin.counts["drained_nodes"] += 1
        self.twin.set_draining(node, draining=True)
        self._retire(node, self._drains, now)

    def _retire(self, node: SimNode, drain: int, now: float) -> None:
        """Evict the jobs whose retirement is over, and come back for the next ones."""
        if self.draining.get(node.number) != drain:
            return
        following = inf
        for claim in node.claims():
            retirement = max(0.0, self.settings.retirement_seconds - VACATE_SECONDS)
            end = claim.started_at + retirement
            if end <= now:
                self.twin.evict(claim)
            else:
                following = min(following, end)
        if following < inf:
            self.twin.at(following, partial(self._retire, node, drain))
        self._resume_if_idle(node, drain, now)

    def _note_end(self, claim: Claim, now: float) -> None:
        node = claim.slot.node
        if node.number in self.draining:
            # The claim is gone only after this.
            drain = self.draining[node.number]
            self.twin.at(now, partial(self._resume_if_idle, node, drain))

    def _resume_if_idle(self, node: SimNode, drain: int, _now: float) -> None:
        if self.draining.get(node.number) == drain and not node.claims():
            self._resume(node)

    def _resume(self, node: SimNode) -> None:
        del self.draining[node.number]
        self.twin.set_draining(node, draining=False)


def _cores_to_free(slot: SimSlot) -> float:
    """Rank of the sites' recipe: most cores, and fewest to free, first."""
    if slot.free_cores >= RECIPE_CORES:
        return -10.0
    total = slot.node.spec.cores
    return (total - slot.free_cores) / (RECIPE_CORES - slot.free_cores)
