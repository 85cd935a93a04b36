"""Slots, jobs and groups of a pool or of files, and the negotiator's matches of them.

Ads are name -> expression, as text. HTCondor's library evaluates them, in a child because they may
come from anyone; the arithmetic is `sharectl.consumption.cost`.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import floor, isfinite, log
from typing import Any, NamedTuple, Optional

from sharectl.condor import daemons
from sharectl.condor.accounts import ACCOUNT, charged
from sharectl.condor.ad_files import AdOfFile, from_long, number_of, text_of
from sharectl.condor.ad_rows import long_of
from sharectl.condor.ads import (
    ad_of_long,
    classads,
    evaluated,
    expression,
    is_true,
    value_of,
    whole,
)
from sharectl.condor.configuration import words_of
from sharectl.condor.daemons import NO_SLOT
from sharectl.condor.deadline import Question, ask_all
from sharectl.condor.expressions import words_of_text
from sharectl.consumption.cost import (
    Amount,
    Look,
    Match,
    Priced,
    PricedJobs,
    PricedSlots,
    SlotKind,
    match_of,
    whole_if_it_is,
)
from sharectl.errors import InputError
from sharectl.model import PoolConfig
from sharectl.shares.groups import without_user

Ad = Mapping[str, str]

MOST_CLAIMS = 10_000
"""Matches that are counted on one slot at most: a policy may charge next to nothing."""
EVALUATION_SECONDS = 20.0
"""Deadline of a question to the library, which evaluates a job on a slot in some 0.1 ms."""
SHAPE_SECONDS = 0.5
"""More for each kind of jobs: 256 that fit on a slot take some 0.05 s."""
MOST_MEMORY_BYTES = 2 * 2**30
_STARTD_TAKES = "_startd_takes_"
"""Beginning of attributes that stand for the policy of a slot without one."""
_DEFAULT_WEIGHT = "Cpus"
"""SLOT_WEIGHT of HTCondor, which the negotiator takes where that of a slot is no number."""
_FREE_STATES = ("", "Unclaimed", "Matched")
"""States of slots with claims to give; empty: an ad without State."""
_CHARGES = {
    "cpus": "quantize(ifThenElse(isUndefined(TARGET.RequestCpus), 1, TARGET.RequestCpus), {1})",
    "memory": "quantize(TARGET.RequestMemory, {128})",
    "disk": "quantize(TARGET.RequestDisk, {1024})",
}
"""Amounts that a startd takes off a slot without policy: its default MODIFY_REQUEST_EXPR_…"""
_OF_CUSTOM = "ifThenElse(isUndefined(TARGET.Request{asset}), 0, TARGET.Request{asset})"


# ---- a slot with a job, in a child


def _number(ad: Any, name: str, target: Any = None) -> Optional[float]:
    """Value of an attribute, a boolean as 0 or 1; None if it is no finite number."""
    value = value_of(expression(f"MY.{name}"), ad, target)
    return value + 0 if type(value) in (bool, int, float) and isfinite(value) else None


@contextmanager
def _with(ad: Any, values: Mapping[str, Any]) -> Iterator[None]:
    """Replace attributes of the ad."""
    before = {name: ad.lookup(name) for name in values if name in ad}
    ad.update(values)
    try:
        yield
    finally:
        for name in values:
            del ad[name]
        ad.update(before)


class _Slot:
    """A slot whose assets change from look to look, and its charges."""

    def __init__(self, attributes: Ad, names: tuple[str, ...]) -> None:
        self.ad = ad_of_long(long_of(attributes))
        resources = value_of(expression("MY.MachineResources"), self.ad)
        by_lower = {n.lower(): n for n in words_of(resources if type(resources) is str else "")}
        self.assets = sorted(name for key, name in by_lower.items() if key != "swap")
        self.fresh = {name: self.ad.lookup(name) for name in self.assets if name in self.ad}
        partitionable = is_true(value_of(expression("MY.PartitionableSlot"), self.ad))
        kind = SlotKind.PARTITIONABLE if partitionable else SlotKind.STATIC
        charged = type(resources) is str and all(f"Consumption{a}" in self.ad for a in self.assets)
        if partitionable and charged:
            kind = SlotKind.POLICY
        for asset in self.assets if kind is not SlotKind.POLICY else ():
            charge = _CHARGES.get(asset.lower(), _OF_CUSTOM.format(asset=asset))
            takes = charge if partitionable else f"MY.{asset}"
            self.ad[f"{_STARTD_TAKES}{asset}"] = expression(takes)
        if _number(self.ad, "SlotWeight") is None:
            self.ad["SlotWeight"] = expression(_DEFAULT_WEIGHT)
        amounts = {name: _number(self.ad, name) for name in self.assets}
        state = text_of(attributes, "State")
        self.described = PricedSlots(
            names=names,
            kind=kind,
            assets={n: None if v is None else whole_if_it_is(v) for n, v in amounts.items()},
            state="" if state in _FREE_STATES else state,
            num_claims=_whole(attributes, "NumClaims") if kind is SlotKind.POLICY else None,
        )

    def look(self, job: Any, assets: Optional[Mapping[str, Amount]]) -> Look:
        """Values for a job with these assets left; None for those that the slot has."""
        self.ad.update(self.fresh if assets is None else assets)
        consumed = {asset: self._consumed(asset, job) for asset in self.assets}
        weight = _number(self.ad, "SlotWeight")
        if any(amount is None or amount < 0 for amount in consumed.values()):
            return Look(weight, consumed)
        # Requirements see the amounts that a policy takes in place of the requests.
        replaced = {}
        for asset, amount in consumed.items() if self.described.has_policy else ():
            if (request := f"Request{asset}") in job:
                replaced[f"_cp_orig_{request}"] = job.lookup(request)
                replaced[request] = whole_if_it_is(amount or 0)
        with _with(job, replaced):
            return Look(weight, consumed, _met(self.ad, job), _met(job, self.ad))

    def _consumed(self, asset: str, job: Any) -> Optional[float]:
        """Amount that a job takes of an asset; for a policy a missing request is 0."""
        request, has_policy = f"Request{asset}", self.described.has_policy
        charge = f"{'Consumption' if has_policy else _STARTD_TAKES}{asset}"
        sent = _number(job, f"_condor_{request}") if f"_condor_{request}" in job else None
        if sent is None and (request in job or not has_policy):
            return _number(self.ad, charge, job)
        with _with(job, {request: sent or 0}):
            return _number(self.ad, charge, job)


def _met(ad: Any, target: Any) -> Optional[bool]:
    if "Requirements" not in ad:
        return None
    return is_true(value_of(expression("MY.Requirements"), ad, target))


def _row(
    ad: Ad, names: tuple[str, ...], jobs: Sequence[Ad], most: int
) -> tuple[PricedSlots, list[Match]]:
    """A kind of slot, and its match with each job."""
    slot, job_ads = _Slot(ad, names), [ad_of_long(long_of(job)) for job in jobs]
    looks = (partial(slot.look, job) for job in job_ads)
    return slot.described, [match_of(slot.described, look, most) for look in looks]


# ---- kinds of slots and jobs

_GROUP = "_sharectl_group"
_SEEN = (
    *("partitionableslot", "machineresources", "slotweight", "requirements", "numclaims"),
    *("state", _GROUP),
)
_SEEN_PREFIXES = ("consumption", "request", "_condor_request")
_UNSTEADY, _STEP = ("disk", "totalslotdisk"), 1.01
"""Assets that differ from node to node and from minute to minute: steps of 1 % are of one kind."""


def kinds(slots: Sequence[Ad], jobs: Sequence[Ad]) -> tuple[list[list[int]], list[list[int]]]:
    """Kinds of slots and of jobs by all that policies, weights and Requirements can see of them.

    A kind is the numbers of its ads, ascending.
    """
    names = _seen([*slots, *jobs])
    return _kinds(slots, names), _kinds(jobs, names)


def _kinds(ads: Sequence[Ad], names: set[str]) -> list[list[int]]:
    members: defaultdict[frozenset[tuple[str, str]], list[int]] = defaultdict(list)
    for number, ad in enumerate(ads):
        visible = ((name, _step(name, ad)) for name in ad if name.lower() in names)
        members[frozenset(visible)].append(number)
    return list(members.values())


def _seen(ads: Sequence[Ad]) -> set[str]:
    """Names, in lower case, that expressions may refer to; eval() sees more."""
    texts: defaultdict[str, set[str]] = defaultdict(set)
    for ad in ads:
        for name, text in ad.items():
            texts[name.lower()].add(text)
    names = {*_SEEN, *(name for name in texts if name.startswith(_SEEN_PREFIXES))}
    while True:
        words = {w for name in names for text in texts.get(name, ()) for w in words_of_text(text)}
        words |= {word[len("request") :] for word in words if word.startswith("request")}
        if words <= names:
            return names
        names |= words


def _step(name: str, ad: Ad) -> str:
    """Text of an attribute; of disk space the number of its step."""
    value = number_of(ad, name) if name.lower() in _UNSTEADY else 0
    return f"step {floor(log(value, _STEP))}" if isfinite(value) and value > 0 else ad[name]


# ---- prices


@dataclass(frozen=True)
class Jobs:
    """Jobs that are alike."""

    ad: AdOfFile
    count: int = 1

    @property
    def accounting_group(self) -> str:
        """AccountingGroup without the user; empty if the job has none."""
        return without_user(f"{text_of(self.ad.attributes, 'AccountingGroup')}@") or ""


def price(
    slots: Sequence[AdOfFile],
    jobs: Sequence[Jobs],
    most: int = MOST_CLAIMS,
    deadline_seconds: float = EVALUATION_SECONDS,
) -> Priced:
    """Matches of the slots, each as it is, with the jobs; ``most`` of these at most on one slot.

    InputError if HTCondor's library cannot evaluate the ads.
    """
    classads()  # before children fork
    slot_ads = [slot.attributes for slot in slots]
    job_ads = [{**job.ad.attributes, _GROUP: f'"{job.accounting_group}"'} for job in jobs]
    slot_kinds, job_kinds = kinds(slot_ads, job_ads)
    shapes = [job_ads[kind[0]] for kind in job_kinds]
    questions = []
    for kind in slot_kinds if jobs else ():
        least = min(kind, key=lambda number: number_of(slot_ads[number], "disk"))
        names = tuple(text_of(slot_ads[n], "Name") or slots[n].place for n in kind)
        row = partial(_row, slot_ads[least], names, shapes, most)
        seconds = deadline_seconds + SHAPE_SECONDS * len(shapes)
        questions.append((slots[least].place, Question(row, seconds, more_bytes=MOST_MEMORY_BYTES)))
    rows, at_once = [], os.cpu_count() or 1
    for start in range(0, len(questions), at_once):
        batch = questions[start : start + at_once]
        answers = ask_all({str(number): question for number, (_, question) in enumerate(batch)})
        for (place, _), answer in zip(batch, answers.values()):
            if problem := answer.source.problem:
                fact = f"HTCondor's library cannot evaluate {place}: {problem}"
                raise InputError(
                    [f"{fact}; leave that, or a job, out of what --slots and --jobs name"]
                )
            rows.append(answer.value)
    priced = tuple(_priced([jobs[number] for number in kind]) for kind in job_kinds)
    described, matches = zip(*rows) if rows else ((), ())
    return Priced(described, priced, matches)


def _priced(jobs: Sequence[Jobs]) -> PricedJobs:
    names, count = tuple(job.ad.place for job in jobs), sum(job.count for job in jobs)
    return PricedJobs(names, count, jobs[0].accounting_group)


def _whole(ad: Ad, name: str) -> Optional[int]:
    value = number_of(ad, name)
    return int(value) if isfinite(value) else None


# ---- a pool

MOST_SHAPES = 500
"""Kinds of pending jobs of a schedd that are priced, those with the most jobs."""
MOST_ROWS = 20_000
"""Kinds of pending jobs that a schedd is asked for."""
_KEYS = (
    *("JobStatus", "JobUniverse", "AccountingGroup", "Requirements"),
    *("RequestCpus", "RequestMemory", "RequestDisk", "RequestGPUs"),
)
_JOB_ID = re.compile(r"\s*(\d{1,10}\.\d{1,10})\b")


class PoolAds(NamedTuple):
    """Slots, groups and access points of a pool, or of a file."""

    slots: list[AdOfFile]
    """Partitionable and static ones."""
    groups: list[AdOfFile]
    """Accounting ads; empty if the negotiator advertises none."""
    schedds: Sequence[Mapping[str, str]] = ()
    """Locations."""


def look(pool: PoolConfig) -> PoolAds:
    """Answer of a pool's collector, or PoolUnavailableError."""
    return daemons.ask_collector(pool.collector, pool.collector_deadline_seconds, _pool_ads)


def _pool_ads(collector: Any) -> PoolAds:
    groups = daemons.query(collector, "Accounting", daemons.ACCOUNTING_GROUP)
    return PoolAds(
        [_ad(f"slot {ad.get('Name')}", ad) for ad in daemons.slots(collector, None)],
        [_ad(f"group {ad.get('Name')}", ad) for ad in groups],
        daemons.locations(collector, "Schedd"),
    )


def _ad(place: str, ad: Any) -> AdOfFile:
    return AdOfFile(place, from_long(ad.printOld()))


def pool_of(ads: Iterable[AdOfFile]) -> PoolAds:
    """Slots and groups among the ads of a file."""
    slots, groups = list[AdOfFile](), list[AdOfFile]()
    for ad in ads:
        texts = {name.lower(): text for name, text in ad.attributes.items()}
        if texts.get("isaccountinggroup", "").lower() == "true":
            groups.append(ad)
        elif text_of(ad.attributes, "SlotType") in ("Partitionable", "Static") and not any(
            texts.get(name, "").lower() == "true" for name in ("offline", "backfillslot")
        ):
            slots.append(ad)
    return PoolAds(slots, groups)


def waiting(ads: Iterable[AdOfFile]) -> list[Jobs]:
    """Jobs of a file that wait for a slot of the pool, as those without JobStatus do.

    InputError if an ad is no job's.
    """
    jobs = []
    for ad in _charged(ads):
        if not {"clusterid", "requestcpus"} & {name.lower() for name in ad.attributes}:
            problem = f"{ad.place}: no ad of a job; give --jobs the output of condor_q -all -long"
            raise InputError([problem])
        is_idle = _whole(ad.attributes, "JobStatus") in (None, 1)
        if is_idle and _whole(ad.attributes, "JobUniverse") not in NO_SLOT:
            jobs.append(Jobs(ad))
    return jobs


def _charged(ads: Iterable[AdOfFile]) -> list[AdOfFile]:
    """Ads of jobs, their AccountingGroup as of `sharectl.condor.accounts`."""
    every = list(ads)
    jobs = charged(ad_of_long(long_of(ad.attributes)) for ad in every)
    return [
        replace(ad, attributes={**ad.attributes, ACCOUNT: str(job.lookup(ACCOUNT))})
        if ACCOUNT in job
        else ad
        for ad, job in zip(every, jobs)
    ]


def pending(
    pool: PoolConfig, schedds: Iterable[Mapping[str, str]], slots: Iterable[AdOfFile]
) -> tuple[list[Jobs], list[str]]:
    """Pending jobs by kinds, as ``slots`` can tell them apart, and problems of schedds."""
    ask = partial(job_kinds_of, keys=job_keys([slot.attributes for slot in slots]))
    every: list[Jobs] = []
    problems: list[str] = []
    questions = daemons.schedd_questions(schedds, pool.schedd_deadline_seconds, ask)
    for name, answer in ask_all(questions).items():
        if answer.value is None:
            problems.append(f"{name}: {answer.source.problem}; its jobs are missing here")
            continue
        jobs, left_out = answer.value
        every += jobs
        if left_out:
            rarer = f"rarer kinds of its jobs are left out, {left_out} or more"
            problems.append(f"{name}: {rarer}; give --jobs some of them, by condor_q -long")
    return every, problems


def job_keys(slots: Sequence[Ad]) -> list[str]:
    """Attributes of jobs that policies and Requirements may see."""
    resources = {text_of(slot, "MachineResources").lower() for slot in slots}
    requests = {f"request{name}" for text in resources for name in words_of_text(text)}
    others = _seen(slots) | requests
    return [*_KEYS, *sorted(others - {name.lower() for name in _KEYS})]


def job_kinds_of(schedd: Any, name: str, keys: Sequence[str]) -> tuple[list[Jobs], int]:
    """Pending jobs by kinds, those with the most jobs first, and how many kinds are left out."""
    rows = charged(daemons.grouped(schedd, "JobStatus == 1", keys, limit=MOST_ROWS))
    in_slots = [ad for ad in rows if evaluated(ad, "JobUniverse") not in NO_SLOT]
    jobs = [Jobs(_job_ad(ad, name), whole(ad.get("JobCount"), 1)) for ad in in_slots]
    jobs.sort(key=lambda kind: -kind.count)
    return jobs[:MOST_SHAPES], len(jobs[MOST_SHAPES:])


def _job_ad(ad: Any, schedd: str) -> AdOfFile:
    match = _JOB_ID.match(str(ad.get("JobIds")))
    number = match[1] if match else f"{ad.get('ClusterId')}.{ad.get('ProcId')}"
    return _ad(f"job {number} of {schedd}", ad)
