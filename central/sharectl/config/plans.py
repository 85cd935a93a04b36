"""The configuration as settings of plans."""

from __future__ import annotations

from sharectl.config.laws import with_laws
from sharectl.config.load import steering_of
from sharectl.config.model import OBSERVE, Config
from sharectl.plan.plan import PlanConfig
from sharectl.shares.groups import GroupTree


def plan_config_of(
    config: Config, tree: GroupTree, *, offline: bool = False, withdraws: bool = False
) -> PlanConfig:
    """Settings of plans for groups of these pledges.

    ``offline`` is for a list of jobs, which has no blocks of cores. Laws are loaded, and raise
    ConfigError, unless it only ``withdraws`` targets or publishes a plan that was made before.
    """
    steering = steering_of(config)
    return PlanConfig(
        pledge_hs06=tree.steered_hs06,
        own_hs06=tree.own_hs06,
        limits=config.control.limits,
        validity_seconds=config.validity_seconds,
        controlled=config.nodes.controlled,
        steering=steering if withdraws else with_laws(steering),
        strategy=config.control.strategy,
        give_up=None if offline else config.control.give_up,
        observes=config.mode == OBSERVE,
    )
