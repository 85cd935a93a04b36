"""Strategies: ways to run a pool, which the twin compares on the same jobs.

`sharectl_lab.scenarios.strategy_file` reads them from YAML, which has a few lines for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Any, Optional

from sharectl.settings import setting
from sharectl.times import CRON_JOB_CTL_SECONDS, CRON_PERIOD_SECONDS
from sharectl_lab.twin.records import NodeSpec
from sharectl_lab.twin.settings import Defrag, Loop

STEERING = {
    "live": "slots count their jobs themselves, and job_ctl looks for targets every 30 s",
    "cron": "job_ctl counts the jobs of its node every 13 minutes (the original method)",
}
"""Ways in which nodes act on targets."""
CRON = {
    "period_seconds": float(CRON_PERIOD_SECONDS),
    "job_ctl_seconds": float(CRON_JOB_CTL_SECONDS),
}
"""Defaults of `Loop` in cron mode."""


@dataclass(frozen=True)
class Static:
    """Nodes whose START takes multicore jobs alone."""

    ratio: Optional[float] = setting(None, least=0, most=1)
    """Part of the pool's power; null: the part of all pledges that is for multicore jobs."""


@dataclass(frozen=True)
class Strategy:
    """A way to run a pool; the scenario decides all else."""

    name: str
    """Its file's name, with the options behind it."""
    summary: str
    grace: bool = False
    """Whether START keeps 8 free cores for multicore jobs for a time (MC_GRACE)."""
    steering: Optional[str] = None
    """One of `STEERING`; None: sharectl does not run."""
    control: tuple[str, ...] = ()
    """Settings of sharectl's configuration, such as `control.law=pid`."""
    loop: tuple[tuple[str, Any], ...] = ()
    """Fields of `Loop` that go before the scenario's, with their values."""
    defrag: Optional[Defrag] = None
    """Settings of condor_defrag; None: it does not run."""
    static: Optional[Static] = None
    """Nodes for multicore jobs alone; None: no nodes."""

    def loop_of(self, loop: Loop) -> Loop:
        """The loop of a scenario, with cron mode's defaults and the strategy's own fields."""
        own = dict(self.loop)
        if self.steering == "cron":
            defaults = Loop()
            own = {k: v for k, v in CRON.items() if getattr(loop, k) == getattr(defaults, k)} | own
        return replace(loop, **own)


def multicore_ratio(pledge_hs06: Mapping[str, float], multicore: Mapping[str, float]) -> float:
    """Part of all pledges that is for multicore jobs.

    ``multicore`` is group -> part of its work that its multicore jobs are to do; 0 if absent.
    """
    pledges = fsum(pledge_hs06.values())
    parts = (pledge * multicore.get(group, 0.0) for group, pledge in pledge_hs06.items())
    return fsum(parts) / pledges if pledges else 0.0


def with_static(nodes: Sequence[NodeSpec], ratio: float) -> tuple[NodeSpec, ...]:
    """``nodes``, of which so large a part of the power takes multicore jobs alone.

    They are spread over the pool, so that each kind of node has its part.
    """
    chosen, power_hs06, static_hs06 = [], 0.0, 0.0
    for node in nodes:
        node_hs06 = node.cores * node.hs06_per_core
        power_hs06 += node_hs06
        # A node is static where that brings the part of the nodes so far nearer to the ratio.
        is_static = ratio * power_hs06 - static_hs06 > node_hs06 / 2
        static_hs06 += node_hs06 * is_static
        chosen.append(replace(node, multicore_only=True) if is_static else node)
    return tuple(chosen)
