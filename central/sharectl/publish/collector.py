"""Targets as ads in the pool's collectors: sent, seen to arrive, and older ones withdrawn.

Nothing spans two messages to a collector. So the new ads are sent first, each in the place of the
node's last one, and the ad of the plan last in that stream. Once that is seen to have arrived all
other ads of the same identity are withdrawn at once. A failure in between leaves only ads that
expire by themselves.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Callable, NamedTuple, Optional

from sharectl.condor import daemons
from sharectl.condor.ads import evaluated, quoted, text, whole
from sharectl.condor.daemons import UNKNOWN_USER
from sharectl.condor.deadline import Answer, ask_all
from sharectl.cycle.ports import PlacedTargets
from sharectl.errors import ConfigError, PartlyPublishedError, PublishError
from sharectl.model import CollectorWay, Plan
from sharectl.publish.text import refuse_unreadable

TARGET_TYPE, PLAN_TYPE = "SharectlTarget", "SharectlPlan"
"""MyType of a target's ad, and of the ad of the plan as a whole, which no node reads."""
PLAN_NAME = "sharectl"
NAME_PREFIX = "sharectl-"
"""Begin of the name of a target's ad, before the node's."""
ALL_OF_OURS = f'MyType == "{TARGET_TYPE}" || MyType == "{PLAN_TYPE}"'
PROJECTION = (
    "MyType",
    "Name",
    "AuthenticatedIdentity",
    "t1_TargetSequence",
    "t1_TargetValidUntil",
    "t1_TargetWriter",
)

_PAGE = "(docs/transports.md)"
_PUBLISHING = "UPDATE_AD_GENERIC"
_METHODS = "SEC_CLIENT_AUTHENTICATION_METHODS"
_LOOK_SECONDS = 0.05
_UNMAPPED = "@unmapped"
"""End of identities of users whom the collector could not authenticate."""
_PATIENCE_RATIO = 0.6
"""Part of the deadline within which ads must appear; the rest is for finding out why not."""


class PlacedAd(NamedTuple):
    """An ad as a collector holds it; numbers that it lacks are 0."""

    is_plan: bool
    name: str
    identity: str
    sequence: int
    valid_until: int
    """Unix seconds."""
    writer: Optional[str] = None


@dataclass(frozen=True)
class CollectorPublisher:
    """Publishes plans as ads in every collector of the pool; see `Transport`.

    Not whole or not at all: a failure may leave targets of two plans, which expire by themselves.
    """

    way: CollectorWay
    collector: Optional[str]
    """Addresses; None for COLLECTOR_HOST of this machine's configuration."""
    pool: Optional[str]
    """Name of the pool, for nodes that are told one."""
    writer: Optional[str] = None
    """Name of the installation that publishes."""

    def publish(self, plan: Plan) -> str:
        """Replace the ads by those of ``plan``; returns the collectors, one of which is enough."""
        refuse_unreadable(plan, self.pool, f"collector:{self.collector or ''}")
        ads = ads_of(plan, self.pool, self.writer)
        deliver = partial(_deliver, ads=ads, plan=plan, way=self.way)
        places, problems = [], []
        for address, answer in self._ask(deliver).items():
            identity, problem = answer.value or (None, answer.source.problem)
            if problem:
                problems.append(f"collector {address}: {problem}")
            else:
                places.append(f"collector:{address}({identity})")
        if problems and places:
            raise PartlyPublishedError(",".join(places), "; ".join(problems))
        if problems:
            raise PublishError("; ".join(problems))
        return ",".join(places)

    def look(self) -> list[PlacedTargets]:
        """Look into every collector."""
        try:
            answers = self._ask(_ads_in)
        except PublishError as error:
            return [PlacedTargets("collector", "collector", str(error))]
        return [
            placed(f"collector:{address}", answer.value, self.way.identity, answer.source.problem)
            for address, answer in answers.items()
        ]

    held = look

    def _ask(self, ask: Callable[[Any], Any]) -> dict[str, Answer]:
        try:
            of_machine = daemons.param("COLLECTOR_HOST")
        except ConfigError as error:
            raise PublishError(f"collector: {error}") from error
        host = self.collector or of_machine
        addresses = [address for address in re.split(r"[,\s]+", host) if address]
        if not addresses:
            raise PublishError(
                "collector: no pool is named; set pool.collector, or CONDOR_CONFIG of this process"
            )
        seconds = self.way.deadline_seconds
        return ask_all(
            {address: daemons.collector_question(address, seconds, ask) for address in addresses}
        )


def placed(
    name: str,
    ads: Optional[Collection[PlacedAd]],
    identity: Optional[str] = None,
    problem: Optional[str] = None,
) -> PlacedTargets:
    """Targets of the publisher ``identity`` in one collector, or its problem."""
    every = ads or ()
    plan = plan_of(every, identity)
    publisher = plan.identity if plan else identity
    foreign = sorted(Counter(ad.identity for ad in every if ad.identity != publisher).items())
    others = ", ".join(f"{count} of {other}" for other, count in foreign)
    if plan is None:
        beside = f", and targets of others: {others}" if others else ""
        empty = f"holds no plan of sharectl{beside}; `sharectl cycle`, or correct identity {_PAGE}"
        return PlacedTargets("collector", name, f"{name}: {problem or empty}")
    mixed = (
        f"{name}: holds ads of targets that are not sharectl's: {others}; nodes refuse them, and "
        "COLLECTOR_REQUIREMENTS keeps them out (docs/transports.md)"
    )
    return PlacedTargets(
        "collector",
        name,
        mixed if others else None,
        targets=sum(ad.sequence == plan.sequence for ad in _targets_of(every, plan.identity)),
        sequence=plan.sequence,
        valid_until=plan.valid_until,
        # A sender that the collector did not authenticate may name anybody.
        writer=None if plan.identity.endswith(_UNMAPPED) else plan.writer,
        more={"identity": plan.identity},
    )


def ads_of(plan: Plan, pool: Optional[str], writer: Optional[str] = None) -> list[dict[str, Any]]:
    """Attributes of an ad for each target, and last of one for the plan."""
    facts = {
        "t1_TargetKnownGroups": ",".join(plan.groups),
        "t1_TargetSequence": plan.sequence,
        "t1_TargetGenerated": plan.generated_at,
        "t1_TargetValidUntil": plan.valid_until,
        # Only tidies up, and late: nodes go by t1_TargetValidUntil.
        "ClassAdLifetime": max(1, plan.valid_until - plan.generated_at),
        "t1_TargetPool": pool,
        "t1_TargetWriter": writer,
        "t1_MulticorePending": plan.multicore_pending,
    }
    about = {name: value for name, value in facts.items() if value is not None}
    targets: list[dict[str, Any]] = [
        {
            "MyType": TARGET_TYPE,
            "Name": f"{NAME_PREFIX}{target.node}",
            "t1_TargetNode": target.node,
            "t1_TargetGroups": [target.held_back, target.helped],
            "t1_Targetcores": [target.cap_cores, target.request_cores],
        }
        for target in plan.targets
    ]
    whole_plan = {"MyType": PLAN_TYPE, "Name": PLAN_NAME, "t1_Targets": len(plan.targets)}
    return [{**ad, **about} for ad in (*targets, whole_plan)]


def other_ads(identity: str, sequence: int, names: Iterable[str] = ()) -> str:
    """Constraint of ads of ``identity`` that are not of the plan ``sequence``, or have a name."""
    others = [f"t1_TargetSequence =!= {sequence}", *(f"Name =?= {quoted(name)}" for name in names)]
    return f"AuthenticatedIdentity =?= {quoted(identity)} && ({' || '.join(others)})"


def placed_ads(ads: Iterable[Any]) -> list[PlacedAd]:
    """Ads of targets and plans among ``ads``, of any publisher."""
    kinds = ((ad, (text(evaluated(ad, "MyType")) or "").lower()) for ad in ads)
    return [
        PlacedAd(
            is_plan=kind == PLAN_TYPE.lower(),
            name=text(evaluated(ad, "Name")) or "",
            identity=text(evaluated(ad, "AuthenticatedIdentity")) or UNKNOWN_USER,
            sequence=whole(evaluated(ad, "t1_TargetSequence"), 0),
            valid_until=whole(evaluated(ad, "t1_TargetValidUntil"), 0),
            writer=text(evaluated(ad, "t1_TargetWriter")),
        )
        for ad, kind in kinds
        if kind in (TARGET_TYPE.lower(), PLAN_TYPE.lower())
    ]


def plan_of(ads: Iterable[PlacedAd], identity: Optional[str] = None) -> Optional[PlacedAd]:
    """Newest plan of the publisher ``identity``; of any publisher if that is None."""
    plans = (ad for ad in ads if ad.is_plan and ad.name == PLAN_NAME)
    published = (ad for ad in plans if identity in (None, ad.identity))
    return max(published, key=lambda ad: ad.sequence, default=None)


def strays(ads: Iterable[PlacedAd], plan: Plan, identity: str) -> list[PlacedAd]:
    """Targets of ``identity`` that are not those of ``plan``."""
    planned = {(plan.sequence, f"{NAME_PREFIX}{target.node}") for target in plan.targets}
    return [ad for ad in _targets_of(ads, identity) if (ad.sequence, ad.name) not in planned]


def _targets_of(ads: Iterable[PlacedAd], identity: str) -> list[PlacedAd]:
    return [ad for ad in ads if not ad.is_plan and ad.identity == identity]


# ---- questions, and their part in a child


def who_may_publish(collector: Any) -> Optional[tuple[str, str]]:
    """Identity and method of this user, if the collector takes its ads; in a child."""
    daemons.authenticate(always=True)
    return daemons.collector_identity(collector, _PUBLISHING)


def _ads_in(collector: Any) -> list[PlacedAd]:
    return placed_ads(daemons.query(collector, "Any", ALL_OF_OURS, PROJECTION))


def _deliver(
    collector: Any, ads: Sequence[dict[str, Any]], plan: Plan, way: CollectorWay
) -> tuple[Optional[str], Optional[str]]:
    """Send the ads, and look until they and no others are there; returns identity and problem."""
    # Nodes do not believe ads of a sender that the collector did not authenticate.
    daemons.authenticate(always=True)
    patience_seconds = _PATIENCE_RATIO * way.deadline_seconds
    if not daemons.advertise(collector, _PUBLISHING, ads):
        sender = daemons.collector_identity(collector, "READ")
        if sender is None:
            # Without authentication it answers, or this raises the reason why it does not.
            daemons.authenticate(always=False)
            _ads_in(collector)
        return None, f"does not take the ads{why_not_shown(sender, way.identity)}"
    newest = plan_of(there := _until(collector, partial(_shows, plan), patience_seconds))
    if newest is None or not _shows(plan, there):
        sender = daemons.collector_identity(collector, _PUBLISHING)
        return None, f"took the ads and does not show them{why_not_shown(sender, way.identity)}"
    identity = newest.identity
    problem = why_unexpected(identity, way.identity)
    if not identity.endswith(_UNMAPPED):
        names = [stray.name for stray in strays(there, plan, identity)]
        daemons.withdraw(collector, TARGET_TYPE, other_ads(identity, plan.sequence, names))
        not_whole = partial(why_not_whole, plan=plan, identity=identity)
        there = _until(collector, lambda ads: not not_whole(ads), patience_seconds / 2)
        problem = not_whole(there) or problem
    return identity, problem


def _shows(plan: Plan, ads: Iterable[PlacedAd]) -> bool:
    newest = plan_of(ads)
    return newest is not None and newest.sequence == plan.sequence


def _until(
    collector: Any, arrived: Callable[[list[PlacedAd]], bool], patience_seconds: float
) -> list[PlacedAd]:
    """Ads in the collector once they have ``arrived``, or when patience ends."""
    end = time.monotonic() + patience_seconds
    while not arrived(ads := _ads_in(collector)) and time.monotonic() <= end:
        time.sleep(_LOOK_SECONDS)
    return ads


# ---- problems


def why_not_whole(ads: Collection[PlacedAd], plan: Plan, identity: str) -> Optional[str]:
    """Problem if targets of ``plan`` are missing, or others of ``identity`` stand beside them."""
    beside = strays(ads, plan, identity)
    arrived = len(_targets_of(ads, identity)) - len(beside)
    if not _shows(plan, ads):
        return "shows another plan by now; see whether a second sharectl publishes there"
    if not beside and arrived >= len(plan.targets):
        return None
    others = f", and targets from {identity} that are not of this plan" if beside else ""
    return (
        f"holds {arrived} of {len(plan.targets)} targets{others}; see CollectorLog there, and who "
        "else has the token of that identity; the next cycle tries again"
    )


def why_not_shown(sender: Optional[tuple[str, str]], expected: Optional[str]) -> str:
    """Words on the sender (identity and method) of ads that are not there, and the remedies."""
    known_as = "it does not know sharectl"
    if sender:
        known_as = f"it knows sharectl as {sender[0]} (by {sender[1]})"
        known_as += f", not as {expected}" if expected not in (None, sender[0]) else ""
    return (
        f"; {known_as}; see whether COLLECTOR.ALLOW_DAEMON there lacks it, COLLECTOR_REQUIREMENTS "
        "refuses the ads, another identity sends ads of the same names, or the token is not the "
        f"one that is meant (`condor_token_list`; {_METHODS} here must have IDTOKENS) {_PAGE}"
    )


def why_unexpected(identity: str, expected: Optional[str]) -> Optional[str]:
    """Problem if nodes that go by the identity ``expected`` do not believe ``identity``."""
    is_another = expected not in (None, identity)
    if not is_another and not identity.endswith(_UNMAPPED):
        return None
    wanted = f", not as {expected}" if is_another else ""
    return (
        f"knows sharectl as {identity}{wanted}: nodes do not believe it; give sharectl the token "
        f"of the identity that nodes are told, or correct identity, here and on nodes {_PAGE}"
    )
