"""Random slots, jobs and moments of the twin, each as the engine has it and as its ad."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Optional

import classad2

import mc_grace
from sharectl.check.snippet_rules import LIVE
from sharectl.condor.child import expression
from sharectl.condor.expressions import with_clock
from sharectl.shares.groups import is_within
from sharectl_lab.twin.ads import CLOCK
from sharectl_lab.twin.start import SlotTarget, StartKnobs, refusal, reuse_refusal

NOW = 1_700_000_000
GRACE_SECONDS, MULTICORE_CORES = 480, 8
ACCOUNTS = (
    *("", "alice", "alice.prod", "alice.prod.mc", "alice.user", "alice2", "malice", "alice_prod"),
    *("cms", "cms.prod", "lhcb", "other", "3"),
)
TARGET_GROUPS = (("alice", "cms"), ("alice.prod", "cms"), ("cms", "alice"), ("lhcb", "alice.prod"))
NESTED = (*TARGET_GROUPS, ("alice", "alice.prod"), ("alice.prod", "alice"), ("3", "cms.prod"))
SIZES = (1, 1, 1, 2, 4, 7, 8, 8, 8, 9, 16)


@dataclass
class Slot:
    """A partitionable slot, or a dynamic one of it, as the engine has it and as its ad."""

    ad: Mapping[str, object]
    now: float
    knobs: StartKnobs
    free_cores: int
    target: Optional[SlotTarget]
    held_back_cores: int
    counted_cores: int
    taken_since: int
    room_since: float
    multicore_only: bool = False
    draining: bool = False
    claim_cores: int = 0
    """0 for a partitionable slot."""
    claim_account: str = ""

    def cause(self, cores: int, account: str, later: float = 0) -> Optional[str]:
        """Answer of the law under test."""
        if not self.claim_cores:
            return refusal(self, cores, account, self.now + later, self.knobs)
        claim = (self.claim_cores, self.claim_account)
        return reuse_refusal(self, *claim, cores, account, self.now, self.knobs)


def some_case(rng: random.Random, name: str) -> str:
    return rng.choice((name, name, name.upper(), name.title()))


def demand(rng: random.Random, now: int) -> tuple[dict[str, object], StartKnobs]:
    """Attributes of the plan's demand, and the knobs that say the same."""
    pending = rng.choice((None, True, False, False))
    until = now + rng.choice((-1, 0, 1, 600))
    published: dict[str, object] = {} if pending is None else {"t1_MulticorePending": pending}
    ad = {**published, "t1_MulticorePendingUntil": until}
    knobs = StartKnobs(multicore_pending=pending, multicore_pending_until=until)
    return ad, knobs


def latch(rng: random.Random, now: int, sent: int) -> tuple[dict[str, object], float]:
    """Attributes of grace in live mode, and the time since which there is room."""
    since = now - rng.choice((0, 1, 5, 479, 480, 481, rng.randrange(2000)))
    watched = now - rng.choice((10_000, 5000))
    kind = rng.choice(("latched", "latched", "latched", "late", "none", "reconfigured", "old"))
    if kind == "none":
        return {}, -inf
    if kind == "reconfigured":
        latched: dict[str, object] = {"t1_McRoomTime": since, "t1_WatchedTime": since}
        return {**latched, "t1_McRoomValue": 1}, -inf
    if kind == "late":
        # The startd looks every 5 s: until then the latch is of the time before.
        latched = {"t1_McRoomTime": watched + 100, "t1_WatchedTime": watched}
        return {**latched, "t1_McRoomValue": 0}, sent
    latched = {"t1_McRoomTime": since, "t1_WatchedTime": watched}
    if kind == "old":
        return {**latched, "t1_McRoomTime": now - 4000, "t1_McRoomValue": 1}, now - 4000
    return {**latched, "t1_McRoomValue": 1}, since


def publication(rng: random.Random, sent: int) -> tuple[dict[str, object], float]:
    """Attributes of grace in cron mode, as mc_grace.py makes them, and the time of room."""
    look = sent - rng.choice((0, 1, 59, 60, rng.randrange(170)))
    since = look - rng.choice((0, 1, 419, 420, 421, 480, rng.randrange(1000)))
    if rng.random() < 0.1:
        return {}, -inf
    if rng.random() < 0.1:
        look -= 1000
    # Cores that were taken at the last look may have become free at any moment since then.
    seen = rng.choice((since, since, 0))
    text = mc_grace.grace({1: seen}, MULTICORE_CORES, GRACE_SECONDS, look)
    tree = clocked(text.decode()) if isinstance(text, bytes) else text
    stale = sent - look >= 180
    return {"MC_GRACE": tree, "t1_McGraceTime": look}, -inf if stale else seen or look


def order(rng: random.Random, now: int, held: int, groups: Sequence[str]) -> Optional[SlotTarget]:
    """Target of a node, None without one."""
    if rng.random() < 0.3:
        return None
    cap = max(0, held + rng.choice((-3, 0, 0, 1, 2, 7, 8, 9, 16)))
    until = now + rng.choice((-1, 0, 1, 600, 600, 600))
    return SlotTarget(groups[0], cap, groups[1], rng.choice((1, 2, 8, 8)), until)


def parent(rng: random.Random, way: str) -> Slot:
    """A partitionable slot with random jobs, target and grace, at a random moment."""
    now = NOW + rng.randrange(1000)
    # The ad is a copy of some age.
    sent = now - rng.choice((0, 0, 5, 290))
    groups = rng.choice(NESTED)
    children = [(rng.choice(ACCOUNTS), rng.choice(SIZES)) for _ in range(rng.randrange(5))]
    new = [rng.random() < 0.1 for _ in children]
    held = [
        cores if is_new or is_within(account, groups[0]) else 0
        for (account, cores), is_new in zip(children, new)
    ]
    matched, free = rng.choice((0, 0, 0, 1, 8)), rng.choice((0, 1, 7, 8, 9, 24))
    taken = sum(cores for _, cores in children) + matched
    counts = {name: rng.choice((1, 8, 12)) for name in groups[: rng.randrange(3)]}
    counted_all = sum(counts.values())
    taken_since = max(0, taken - counted_all)
    held_now = sum(held) + matched if way == LIVE else counts.get(groups[0], 0) + taken_since
    target = order(rng, now, held_now, groups)
    asks, knobs = demand(rng, now)
    room, since = latch(rng, now, sent) if way == LIVE else publication(rng, sent)
    off, stale = rng.random() < 0.05, rng.random() < 0.05
    jobs = ":".join(f"{some_case(rng, name)}:{cores}" for name, cores in counts.items())
    names = (some_case(rng, target.held_back), some_case(rng, target.helped)) if target else ()
    ad: dict[str, object] = {
        **asks,
        **room,
        "t1_CurrentJobs": jobs or "none:0",
        "t1_TargetGroups": list(names or ("none", "none")),
        "t1_Targetcores": [target.cap_cores, target.request_cores] if target else [0, 0],
        "t1_TargetUntil": target.until if target else 0,
        "MyCurrentTime": sent,
        "t1_JobCtlTime": sent - (5000 if stale else rng.choice((0, 1, 119))),
        "t1_Disabled": off,
        "TotalSlotCpus": free + taken,
        "Cpus": free,
        "ChildCpus": [cores for _, cores in children],
        "Childt1_HeldBackCores": held,
        "PartitionableSlot": True,
        "SlotType": "Partitionable",
        "SlotID": 1,
        CLOCK: now,
    }
    if stale:
        knobs = replace(knobs, multicore_pending=None)
    knobs = replace(knobs, enabled=not off, actuation=way)
    slot = Slot(ad, now, knobs, free, None if stale else target, 0, 0, taken_since, since)
    slot.held_back_cores, slot.counted_cores = sum(held) + matched, counts.get(groups[0], 0)
    slot.draining, slot.multicore_only = (rng.random() < 0.05 for _ in range(2))
    return slot


def claimed(rng: random.Random, way: str) -> Slot:
    """A claimed dynamic slot of such a slot."""
    slot = parent(rng, way)
    own: dict[str, object] = {"DynamicSlot": True, "SlotType": "Dynamic", "State": "Claimed"}
    own["RemoteUser"] = "bob@"
    cores, account = rng.choice(SIZES), rng.choice(ACCOUNTS)
    if account:
        own["AccountingGroup"] = f"{some_case(rng, account)}.bob@"
    ad = {name: value for name, value in slot.ad.items() if name != "PartitionableSlot"}
    return replace(slot, ad={**ad, **own, "Cpus": cores}, claim_cores=cores, claim_account=account)


def job(rng: random.Random) -> tuple[int, str, dict[str, object]]:
    """Cores, account and ad of a random job."""
    cores, account = rng.choice(SIZES), rng.choice(ACCOUNTS)
    ad: dict[str, object] = {"RequestCpus": cores, "JobUniverse": 5}
    if cores == 1 and rng.random() < 0.1:
        del ad["RequestCpus"]
    if account:
        user = "" if "." not in account and rng.random() < 0.2 else ".bob"
        ad["AccountingGroup"] = some_case(rng, account) + user
    return cores, account, ad


def clocked(text: str) -> Any:
    return classad2.ExprTree(with_clock(str(expression(text)), CLOCK))
