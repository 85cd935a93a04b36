"""Targets as ads: what is sent to a collector, and what one makes of the ads that a collector holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Optional

from sharectl.adapters.ads import evaluated, text, whole
from sharectl.core.model import Plan

TARGET_TYPE = "SharectlTarget"
"""MyType of a target's ad."""
PLAN_TYPE = "SharectlPlan"
"""MyType of the ad that tells of the plan as a whole; no node reads it."""
PLAN_NAME = "sharectl"
NAME_PREFIX = "sharectl-"
"""What the name of a target's ad begins with, before the node's."""
ALL_OF_OURS = f'MyType == "{TARGET_TYPE}" || MyType == "{PLAN_TYPE}"'
PROJECTION = [
    "MyType",
    "Name",
    "AuthenticatedIdentity",
    "t1_TargetSequence",
    "t1_TargetValidUntil",
    "t1_TargetPool",
]
NOBODY = "unauthenticated@unmapped"
"""AuthenticatedIdentity of those whom the collector did not ask who they are."""


@dataclass(frozen=True)
class HeldAd:
    """One ad as a collector holds it; the numbers are 0 if it has none."""

    is_plan: bool
    name: str
    identity: str
    sequence: int
    valid_until: int
    """Unix seconds."""
    pool: Optional[str]


@dataclass(frozen=True)
class Holding:
    """What a collector holds of one publisher."""

    identity: Optional[str]
    """As whom the collector knows it; None if there is no plan of it."""
    sequence: Optional[int] = None
    """Of the newest plan."""
    valid_until: Optional[int] = None
    """Unix seconds."""
    pool: Optional[str] = None
    targets: int = 0
    """Ads of that plan."""
    older: int = 0
    """Ads of this publisher that belong to another plan."""
    foreign: Mapping[str, int] = field(default_factory=dict)
    """Identity of somebody else -> ads of his that look like targets or plans. No node believes them."""


def ads_of(plan: Plan, pool: Optional[str]) -> list[dict[str, Any]]:
    """Attributes of an ad for each target, and last of one for the plan."""
    about: dict[str, Any] = {
        "t1_TargetKnownGroups": ",".join(plan.groups),
        "t1_TargetSequence": plan.sequence,
        "t1_TargetGenerated": plan.generated_at,
        "t1_TargetValidUntil": plan.valid_until,
        **({"t1_TargetPool": pool} if pool is not None else {}),
        **({"t1_MulticorePending": plan.multicore_pending} if plan.multicore_pending is not None else {}),
        # Only tidies up, and late: nodes go by t1_TargetValidUntil.
        "ClassAdLifetime": max(1, plan.valid_until - plan.generated_at),
    }
    targets = [
        {
            "MyType": TARGET_TYPE,
            "Name": f"{NAME_PREFIX}{target.node}",
            "t1_TargetNode": target.node,
            "t1_TargetGroups": [target.held_back, target.helped],
            "t1_Targetcores": [target.cap_cores, target.request_cores],
            **about,
        }
        for target in plan.targets
    ]
    return [*targets, {"MyType": PLAN_TYPE, "Name": PLAN_NAME, "t1_Targets": len(plan.targets), **about}]


def other_ads(identity: str, sequence: int, names: Iterable[str] = ()) -> str:
    """Constraint of the targets of ``identity`` that are not of the plan ``sequence``, and of those with these names.

    Whatever their sequence is, and if they have none: no other plan of the same identity is to stand beside the newest.
    """
    others = [f"t1_TargetSequence =!= {sequence}", *(f"Name =?= {_quoted(name)}" for name in names)]
    return f"AuthenticatedIdentity =?= {_quoted(identity)} && ({' || '.join(others)})"


def strays(held: Iterable[HeldAd], plan: Plan, identity: str) -> list[HeldAd]:
    """Targets of ``identity`` that are not those of ``plan``."""
    names = {f"{NAME_PREFIX}{target.node}" for target in plan.targets}
    own = (ad for ad in held if not ad.is_plan and ad.identity == identity)
    return [ad for ad in own if ad.sequence != plan.sequence or ad.name not in names]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def held_ads(ads: Iterable[Any]) -> list[HeldAd]:
    """The ads of targets and plans among ``ads``, whoever sent them."""
    held = []
    for ad in ads:
        kind = text(evaluated(ad, "MyType")) or ""
        if kind.lower() in (TARGET_TYPE.lower(), PLAN_TYPE.lower()):
            held.append(
                HeldAd(
                    is_plan=kind.lower() == PLAN_TYPE.lower(),
                    name=text(evaluated(ad, "Name")) or "",
                    identity=text(evaluated(ad, "AuthenticatedIdentity")) or NOBODY,
                    sequence=whole(evaluated(ad, "t1_TargetSequence"), 0),
                    valid_until=whole(evaluated(ad, "t1_TargetValidUntil"), 0),
                    pool=text(evaluated(ad, "t1_TargetPool")),
                )
            )
    return held


def holding(held: Collection[HeldAd], identity: Optional[str]) -> Holding:
    """What there is of ``identity``; of whoever sent the plan if that is None."""
    plans = [ad for ad in held if ad.is_plan and ad.name == PLAN_NAME and identity in (None, ad.identity)]
    plan = max(plans, key=lambda ad: ad.sequence, default=None)
    whose = plan.identity if plan else identity
    targets = [ad for ad in held if not ad.is_plan]
    own = [ad for ad in targets if ad.identity == whose]
    foreign = Counter(ad.identity for ad in held if ad.identity != whose)
    if plan is None:
        return Holding(None, older=len(own), foreign=foreign)
    current = [ad for ad in own if ad.sequence == plan.sequence]
    return Holding(
        identity=plan.identity,
        sequence=plan.sequence,
        valid_until=plan.valid_until,
        pool=plan.pool,
        targets=len(current),
        older=len(own) - len(current),
        foreign=foreign,
    )
