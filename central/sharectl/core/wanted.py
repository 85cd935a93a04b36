"""What a strategy calls for, before limits act."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Optional

from sharectl.core.model import LimitNote, Target

ROUNDING_HS06 = 1e-6
"""An error of exactly n blocks pays for n blocks, whatever the last bits of the sums are."""


@dataclass(frozen=True)
class Wait:
    """What a target costs until its cores are free."""

    seconds: float
    """Expected time."""
    idle_core_seconds: float
    """Cores expected to stand idle meanwhile, times seconds."""


@dataclass(frozen=True)
class Wanted:
    """What the controllers' outputs call for."""

    reason: str
    """One of `sharectl.core.plan.REASONS`."""
    targets: tuple[Target, ...] = ()
    """At most one a node, the most useful first."""
    pair: Optional[tuple[str, str]] = None
    """Groups held back and helped, if there is one such pair."""
    notes: tuple[LimitNote, ...] = ()
    """What kept the strategy from doing better."""
    waits: Mapping[str, Wait] = field(default_factory=dict)
    """Node -> what the target called for there costs, if the strategy knows."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Node -> one of `sharectl.core.plan.NODE_REASONS`, where the strategy knows better than the plan."""
    standing_waits: Mapping[str, Wait] = field(default_factory=dict)
    """Node -> what the target that stands there costs still, called for or not; likewise."""
