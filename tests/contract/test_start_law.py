"""START in Python (`sharectl_lab.twin.start`) is the deployed snippet's in HTCondor's ClassAds.

Slots, jobs and moments are random, with a seed: 10^5 evaluations, in both ways of actuation. A
changed snippet has to be noticed: `MUTATIONS`.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any, Optional

import classad2
import pytest

import mc_grace
from sharectl.check.snippet_rules import CRON, LIVE
from sharectl.condor.child import expression
from sharectl.condor.configuration import ConfigSource, expand
from sharectl.condor.expressions import with_clock
from sharectl.condor.library import CondorProcess
from sharectl.shares.groups import is_within
from sharectl_lab.twin.ads import CLOCK
from sharectl_lab.twin.start import (
    SlotTarget,
    StartKnobs,
    claim_worklife_seconds,
    refusal,
    reuse_refusal,
)

CONFIG = Path(__file__).parents[2] / "config.d"
JOB_IS_HELD_BACK = "t1_job_is_held_back = "
ANY_BEGINNING = (
    f'{JOB_IS_HELD_BACK}regexp(strcat("^", MY.t1_TargetGroups[0]), $(t1_job_group), "i")'
)
MUTATIONS = (
    # Way, kind of slot, text of the snippet, text in its place.
    (LIVE, "parent", "time() - MY.t1_McRoomTime < $(", "time() - MY.t1_McRoomTime <= $("),
    (LIVE, "parent", " && MY.t1_McRoomTime > MY.t1_WatchedTime", ""),
    (LIVE, "parent", " || $(t1_room_not_yet_latched))", ")"),
    (LIVE, "parent", "MY.t1_McRoomValue =?= 0 &&", "MY.t1_McRoomValue =?= 1 &&"),
    (LIVE, "parent", "MC_GRACE = (MY.PartitionableSlot =?= True && MY.Cpus >=", "MC_GRACE = (0 <="),
    (LIVE, "parent", "|| $(t1_job_cores) > 1 || (", "|| $(t1_job_cores) > 2 || ("),
    (LIVE, "parent", " || ($(t1_single_core_target))", ""),
    (LIVE, "parent", "MY.t1_Targetcores[1] == 1 &&", "MY.t1_Targetcores[1] == 2 &&"),
    (LIVE, "parent", "< MY.t1_MulticorePendingUntil", "<= MY.t1_MulticorePendingUntil"),
    (LIVE, "parent", "MulticorePending =?= False", "MulticorePending =!= True"),
    (LIVE, "parent", "time() < MY.t1_TargetUntil", "time() <= MY.t1_TargetUntil"),
    (LIVE, "parent", "MY.MyCurrentTime - MY.t1_JobCtlTime <", "0 <"),
    (LIVE, "parent", "MY.MyCurrentTime - MY.t1_JobCtlTime <", "time() - MY.t1_JobCtlTime <"),
    (LIVE, "parent", "$(t1_job_cores) == MY.t1_Targetcores[1]", "True"),
    (LIVE, "parent", "$(t1_job_cores) <= MY", "$(t1_job_cores) < MY"),
    (LIVE, "parent", "ifThenElse($(t1_job_is_held_back), \\", "ifThenElse(True, \\"),
    (LIVE, "parent", "Cores) + $(t1_matched_since)", "Cores)"),
    (LIVE, "parent", '== strcat(MY.t1_TargetGroups[1], ".")', '!= strcat("x", ".")'),
    (LIVE, "parent", f"{JOB_IS_HELD_BACK}substr(", f"{ANY_BEGINNING}\nt1_unused = substr("),
    (LIVE, "claimed", "MY.t1_Disabled =!= True \\", "True \\"),
    (LIVE, "parent", "t1_off = $(SHARECTL_ENABLED) == False ||", "t1_off = False &&"),
    (LIVE, "claimed", "!($(t1_multicore_slot))) \\", "True) \\"),
    (LIVE, "claimed", '"Dynamic" && MY.Cpus >= $(', '"Dynamic" && MY.Cpus > $('),
    (LIVE, "claimed", "MY.t1_HeldBackSlot =?= True || MY.Dynamic", "MY.Dynamic"),
    (LIVE, "claimed", ", !($(t1_job_is_held_back)))", ", True)"),
    (LIVE, "claimed", '"", $(t1_job_account) == "",', '"", False,'),
    (LIVE, "claimed", "MY.t1_TargetActive =?= True && MY.t1_HeldBackSlot", "MY.t1_HeldBackSlot"),
    (LIVE, "claimed", "t1_HeldBackSlot || $(t1_new_slot)", "t1_HeldBackSlot || True"),
    (CRON, "parent", "(MY.MC_GRACE && (MY.My", "(True && (MY.My"),
    (CRON, "parent", "MY.MyCurrentTime - MY.t1_McGraceTime", "time() - MY.t1_McGraceTime"),
    (CRON, "parent", "|| MY.t1_McGraceTime - time()", "|| True || MY.t1_McGraceTime - time()"),
    (CRON, "parent", ", 0) + $(t1_taken_since)", ", 0)"),
    (CRON, "parent", "TotalSlotCpus - MY.Cpus - $(t1_cores_then)", "TotalSlotCpus - MY.Cpus"),
    (CRON, "parent", 't1_CurrentJobs, "\\2", "i")), 0)', 't1_CurrentJobs, "\\2", "i")), 1)'),
    (CRON, "parent", 'strcat("^([^:]+:[0-9]+:)*\\Q"', 'strcat("^\\Q"'),
)
EXECUTE = "60-sharectl-execute-point.conf"
WORKLIFE_SECONDS = 1200
SLOTS, JOBS = 500, 50
NOW = 1_700_000_000
GRACE_SECONDS, MULTICORE_CORES = 480, 8
ACCOUNTS = (
    *("", "alice", "alice.prod", "alice.prod.mc", "alice.user", "alice2", "malice", "alice_prod"),
    *("cms", "cms.prod", "lhcb", "other", "3"),
)
TARGET_GROUPS = (("alice", "cms"), ("alice.prod", "cms"), ("cms", "alice"), ("lhcb", "alice.prod"))
NESTED = (*TARGET_GROUPS, ("alice", "alice.prod"), ("alice.prod", "alice"), ("3", "cms.prod"))
SIZES = (1, 1, 1, 2, 4, 7, 8, 8, 8, 9, 16)


# ---- random slots, jobs and moments, each as the engine has it and as its ad


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


# ---- HTCondor's answers


class Snippet:
    """Expressions of a slot with a snippet, with a clock that can be set."""

    def __init__(self, source: ConfigSource, way: str, htcondor: CondorProcess) -> None:
        own = {"SHARECTL_ACTUATION": way}
        lists = expand(source, ["STARTD_ATTRS"], htcondor, own)["STARTD_ATTRS"].split()
        self.start = ("SLOT_TYPE_1_START", "START", "DEFAULT_DRAINING_START_EXPR")
        texts = expand(source, [*lists, *self.start, "CLAIM_WORKLIFE"], htcondor, own)
        self.attributes = {name: clocked(text) for name, text in texts.items()}

    def ad(self, slot: Slot) -> Any:
        """Ad of a slot, whose START is the one that is in force there."""
        multicore_only, start, draining = self.start
        name = draining if slot.draining else multicore_only if slot.multicore_only else start
        return classad2.ClassAd({**self.attributes, "START": self.attributes[name], **slot.ad})


def differences(
    snippet: Snippet, slots: Iterable[Slot], rng: random.Random, jobs: int
) -> Iterator[str]:
    """Answers of HTCondor that are not those of `sharectl_lab.twin.start`."""
    start = classad2.ExprTree("MY.START =?= True")
    for slot in slots:
        ad = snippet.ad(slot)
        for cores, account, own in (job(rng) for _ in range(jobs)):
            admits = start.eval(ad, classad2.ClassAd({**own, CLOCK: slot.now}))
            if admits is not (slot.cause(cores, account) is None):
                yield f"{slot}: {cores} of {account!r}: START is {admits}"
        if slot.claim_cores:
            life = claim_worklife_seconds(
                slot, slot.claim_account, slot.now, slot.knobs, WORKLIFE_SECONDS
            )
            if ad.eval("CLAIM_WORKLIFE") != life:
                yield f"{slot}: CLAIM_WORKLIFE is {ad.eval('CLAIM_WORKLIFE')}"
            is_held = slot.target is not None and is_within(
                slot.claim_account, slot.target.held_back
            )
            if slot.target and ad.eval("t1_HeldBackCores") != is_held * slot.claim_cores:
                yield f"{slot}: t1_HeldBackCores is {ad.eval('t1_HeldBackCores')}"


def source_of(folder: Path) -> ConfigSource:
    """Snippet of a folder, with START of a node for multicore jobs as that of its slot type."""
    example = CONFIG / "examples" / "70-multicore-only.conf"
    return ConfigSource(text=f"include : {folder / EXECUTE}\ninclude : {example}")


@pytest.mark.parametrize("way", [LIVE, CRON])
@pytest.mark.parametrize("kind", [parent, claimed])
def test_start_is_that_of_the_snippet(kind: Any, way: str, htcondor: CondorProcess) -> None:
    rng = random.Random(f"{kind.__name__} {way}")
    slots = [kind(rng, way) for _ in range(SLOTS)]
    snippet = Snippet(source_of(CONFIG), way, htcondor)
    assert list(differences(snippet, slots, rng, JOBS)) == []


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation[2].strip())
def test_a_changed_snippet_is_noticed(
    mutation: tuple[str, str, str, str], htcondor: CondorProcess, tmp_path: Path
) -> None:
    way, kind, text, instead = mutation
    written = (CONFIG / EXECUTE).read_text(encoding="utf-8")
    assert written.count(text) == 1
    (tmp_path / EXECUTE).write_text(written.replace(text, instead), encoding="utf-8")
    rng = random.Random("mutation")
    slots = ({"parent": parent, "claimed": claimed}[kind](rng, way) for _ in range(2 * SLOTS))
    snippet = Snippet(source_of(tmp_path), way, htcondor)
    assert next(differences(snippet, slots, rng, 20), None) is not None
