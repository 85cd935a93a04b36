"""Targets in the pool's collectors: sent, withdrawn, and read back, so that "published" means arrived.

Nothing spans two messages to a collector, so the order is such that a failure in between leaves
only what expires by itself: first the new ads, each in the place of the node's last one, and last
in that stream the ad of the plan; then, once that is seen to have arrived, all older ads of the
same identity are withdrawn at once.

Targets as ads: what is sent to a collector, and what one makes of the ads that a collector holds.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Callable, Optional

from sharectl.condor.ads import evaluated, text, whole
from sharectl.condor.deadline import Answer, Question, ask_all
from sharectl.errors import PublishError
from sharectl.model import Plan

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
    """Identity of somebody else -> ads of his that look like targets or plans.

    No node believes them.
    """


def ads_of(plan: Plan, pool: Optional[str]) -> list[dict[str, Any]]:
    """Attributes of an ad for each target, and last of one for the plan."""
    about: dict[str, Any] = {
        "t1_TargetKnownGroups": ",".join(plan.groups),
        "t1_TargetSequence": plan.sequence,
        "t1_TargetGenerated": plan.generated_at,
        "t1_TargetValidUntil": plan.valid_until,
        **({"t1_TargetPool": pool} if pool is not None else {}),
        **(
            {"t1_MulticorePending": plan.multicore_pending}
            if plan.multicore_pending is not None
            else {}
        ),
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
    return [
        *targets,
        {"MyType": PLAN_TYPE, "Name": PLAN_NAME, "t1_Targets": len(plan.targets), **about},
    ]


def other_ads(identity: str, sequence: int, names: Iterable[str] = ()) -> str:
    """Constraint of the targets of ``identity`` that are not of the plan ``sequence``, and of those with these names.

    Whatever their sequence is, and if they have none: no other plan of the same identity is to
    stand beside the newest.
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
    plans = [
        ad for ad in held if ad.is_plan and ad.name == PLAN_NAME and identity in (None, ad.identity)
    ]
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


DOCUMENT = "docs/transports.md"
_AUTHENTICATION = "SEC_CLIENT_AUTHENTICATION"
_PUBLISHING = "UPDATE_AD_GENERIC"
_LOOK_SECONDS = 0.05
_MAX_NAMED = 5
"""Ads that one message names."""
_PATIENCE_RATIO = 0.6
"""Part of the deadline within which ads must appear: what is left is for saying that they did not."""


@dataclass(frozen=True)
class CollectorAccess:
    """Which collectors, and as whom."""

    collector: Optional[str]
    """Address; None for COLLECTOR_HOST of this machine's configuration."""
    identity: Optional[str]
    """As whom the collectors must know sharectl; None if anybody will do."""
    deadline_seconds: float

    def addresses(self) -> list[str]:
        """Address of every collector; empty if the configuration names none."""
        import htcondor2

        named = self.collector or str(htcondor2.param.get("COLLECTOR_HOST", ""))
        return [address for address in re.split(r"[,\s]+", named) if address]


@dataclass(frozen=True)
class Delivery:
    """What became of a plan in one collector."""

    held: Optional[Holding]
    problem: Optional[str] = None


class CollectorPublisher:
    """Publishes plans as ads in every collector of the pool."""

    def __init__(self, access: CollectorAccess, pool: Optional[str]) -> None:
        self.access = access
        self.pool = pool

    def publish(self, plan: Plan) -> str:
        """Replace the ads by those of ``plan``; returns the collectors. Raises as `sharectl.cycle.ports.Publisher`.

        Not whole or not at all: what failed in between leaves targets of two plans, none of which
        outlives its own.
        """
        deliver = partial(_deliver, ads=ads_of(plan, self.pool), plan=plan, access=self.access)
        deliveries = _ask(self.access, deliver)
        problems = [
            f"collector {address}: {answer.source.problem or answer.value.problem}"
            for address, answer in deliveries.items()
            if answer.source.problem or answer.value.problem
        ]
        if problems:
            raise PublishError("; ".join(problems))
        return ",".join(
            f"collector:{address}({answer.value.held.identity})"
            for address, answer in deliveries.items()
        )


def look(access: CollectorAccess) -> dict[str, Delivery]:
    """Address -> what that collector holds, or why it did not say."""
    answers = _ask(access, partial(_look, access=access))
    return {
        address: Delivery(None, answer.source.problem) if answer.source.problem else answer.value
        for address, answer in answers.items()
    }


def _ask(access: CollectorAccess, question: Callable[[str], Delivery]) -> dict[str, Answer]:
    addresses = access.addresses()
    if not addresses:
        raise PublishError(
            "collector: no pool is named; set pool.collector, or CONDOR_CONFIG of this process"
        )
    return ask_all(
        {
            address: Question(partial(question, address), access.deadline_seconds)
            for address in addresses
        }
    )


def _look(address: str, access: CollectorAccess) -> Delivery:
    import htcondor2

    held = _held(htcondor2.Collector(address))
    return Delivery(holding(held, access.identity))


def _deliver(
    address: str, ads: Sequence[dict[str, Any]], plan: Plan, access: CollectorAccess
) -> Delivery:
    """Send and look; in a process of its own, whose configuration it changes."""
    import classad2
    import htcondor2

    # Whom the collector does not ask who he is, no node believes.
    htcondor2.param[_AUTHENTICATION] = "REQUIRED"
    patience_seconds = _PATIENCE_RATIO * access.deadline_seconds
    collector = htcondor2.Collector(address)
    try:
        collector.advertise([classad2.ClassAd(ad) for ad in ads], _PUBLISHING, True)  # noqa: FBT003
    except htcondor2.HTCondorException:
        return Delivery(None, _why_refused(collector, access.identity))
    sent, ads_held = _until(
        collector, lambda held: holding(held, None).sequence == plan.sequence, patience_seconds
    )
    known = _known_as(collector, _PUBLISHING) if sent.sequence != plan.sequence else None
    problem = why_useless(sent, plan.sequence, known, access.identity)
    if problem is not None or sent.identity is None:
        return Delivery(sent, problem)
    withdrawal = classad2.ClassAd({"MyType": "Query", "TargetType": TARGET_TYPE})
    withdrawal["Requirements"] = classad2.ExprTree(
        other_ads(
            sent.identity,
            plan.sequence,
            [stray.name for stray in strays(ads_held, plan, sent.identity)],
        )
    )
    collector.advertise([withdrawal], "INVALIDATE_ADS_GENERIC", True)  # noqa: FBT003
    identity = sent.identity
    seen, ads_held = _until(
        collector, lambda held: why_not_whole(held, plan, identity) is None, patience_seconds / 2
    )
    problem = why_not_whole(ads_held, plan, identity)
    # Last: whoever goes by that identity is to lose its old targets all the same.
    return Delivery(seen, problem or why_unexpected(identity, access.identity))


def _until(
    collector: Any, arrived: Callable[[list[HeldAd]], bool], patience_seconds: float
) -> tuple[Holding, list[HeldAd]]:
    """What is held once it has ``arrived``, or when patience ends; and the ads."""
    end = time.monotonic() + patience_seconds
    while True:
        held = _held(collector)
        if arrived(held) or time.monotonic() > end:
            return holding(held, None), held
        time.sleep(_LOOK_SECONDS)


def why_not_whole(held: Collection[HeldAd], plan: Plan, identity: str) -> Optional[str]:
    """What is missing of ``plan``, or stands beside it, in the name of ``identity``; None if that is nothing."""
    beside = strays(held, plan, identity)
    missing = (
        len(plan.targets)
        - sum(not ad.is_plan and ad.identity == identity for ad in held)
        + len(beside)
    )
    problems = []
    if holding(held, None).sequence != plan.sequence:
        problems.append("shows another plan by now; see whether a second sharectl publishes there")
    if missing > 0:
        problems.append(
            f"holds {len(plan.targets) - missing} of {len(plan.targets)} targets; CollectorLog "
            "there says why, and the "
            "next cycle tries again"
        )
    if beside:
        named = ", ".join(f"{ad.name} (sequence {ad.sequence})" for ad in beside[:_MAX_NAMED])
        more = f" and {len(beside) - _MAX_NAMED} more" if len(beside) > _MAX_NAMED else ""
        problems.append(
            f"holds targets from {identity} that are not of this plan ({plan.sequence}) and "
            "come again after they are "
            f"withdrawn: {named}{more}; see who else has the token of that identity"
        )
    return "; ".join(problems) or None


def _held(collector: Any) -> list[HeldAd]:
    import htcondor2

    return held_ads(
        collector.query(htcondor2.AdType.Any, constraint=ALL_OF_OURS, projection=PROJECTION)
    )


def why_useless(
    held: Holding,
    sequence: int,
    known: Optional[tuple[str, str]] = None,
    expected: Optional[str] = None,
) -> Optional[str]:
    """Why no node believes what was sent; None if nodes do.

    Parameters
    ----------
    known
        As whom the collector knows the sender, and by which method; None if that is not known.
    expected
        As whom it is to know him; None if anybody will do.
    """
    if held.sequence != sequence:
        return f"took the ads and does not show them{_why_not_shown(known, expected)} ({DOCUMENT})"
    if held.identity in (None, NOBODY) or str(held.identity).endswith("@unmapped"):
        return (
            f"knows sharectl only as {held.identity}, as anybody, so that no node believes it; "
            "give sharectl a token "
            f"({DOCUMENT})"
        )
    return None


def _why_not_shown(known: Optional[tuple[str, str]], expected: Optional[str]) -> str:
    if known is not None and expected not in (None, known[0]):
        return (
            f": it knows sharectl as {known[0]} (by {known[1]}), not as {expected}; give "
            f"sharectl the token of {expected} "
            f"(`condor_token_list`), and see whether {_AUTHENTICATION}_METHODS here has IDTOKENS"
        )
    whom = f"; it knows sharectl as {known[0]} (by {known[1]})" if known is not None else ""
    return (
        f"{whom}; see whether COLLECTOR_REQUIREMENTS there refuses them, another identity sends "
        "ads of the same names, or "
        "the token is not the one that is meant (`condor_token_list`; "
        f"{_AUTHENTICATION}_METHODS here must have IDTOKENS)"
    )


def why_unexpected(identity: str, expected: Optional[str]) -> Optional[str]:
    """Why nodes that go by the identity ``expected`` believe nothing of it; None if they do, or any will do."""
    if expected in (None, identity):
        return None
    return (
        f"knows sharectl as {identity}, not as {expected}: nodes that are told {expected} "
        "believe none of it, and those "
        f"that are told {identity} all of it; set identity, here and on the nodes, or give "
        "sharectl the token of that identity"
    )


def _known_as(collector: Any, command: str) -> Optional[tuple[str, str]]:
    """As whom the collector lets this process use a command or level, and by which method; None if it does not."""
    import htcondor2

    try:
        seen = htcondor2.ping(collector.locate(htcondor2.DaemonType.Collector), command)
    except htcondor2.HTCondorException:
        return None
    if not seen.get("AuthorizationSucceeded", True):
        return None
    return seen.get("MyRemoteUserName", NOBODY), seen.get("AuthMethods", "no method")


def _why_refused(collector: Any, expected: Optional[str]) -> str:
    """Why a collector takes no ads, as far as it can be found out."""
    known = _known_as(collector, _PUBLISHING)
    if known is not None:
        # It hangs up at an ad that COLLECTOR_REQUIREMENTS refuses.
        return f"does not take the ads{_why_not_shown(known, expected)} ({DOCUMENT})"
    known = _known_as(collector, "READ")
    if known is None:
        return _why_unknown(collector)
    identity, method = known
    return (
        f"takes no ads from {identity} (by {method}): UPDATE_AD_GENERIC needs the level DAEMON; "
        f"add {identity} to "
        f"COLLECTOR.ALLOW_DAEMON there, and condor_reconfig ({DOCUMENT})"
    )


def _why_unknown(collector: Any) -> str:
    """Why nobody who says who he is gets an answer."""
    import htcondor2

    htcondor2.param[_AUTHENTICATION] = "NEVER"
    try:
        collector.locate(htcondor2.DaemonType.Collector)
    except htcondor2.HTCondorException as error:
        return (
            f"cannot be asked: {error} See whether it runs, and whether READ there needs a token "
            f"({DOCUMENT})"
        )
    return (
        "does not know sharectl, and takes ads of nobody it does not know; give sharectl a "
        f"token ({DOCUMENT})"
    )
