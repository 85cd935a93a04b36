"""Slots, jobs and groups of a pool or of files, and the negotiator's matches of them.

Ads are name -> expression, as text. HTCondor's library evaluates them, in a child because they may
come from anyone; the arithmetic is `sharectl.consumption.cost`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from math import floor, isfinite, log
from typing import Any, Callable, NamedTuple, Optional

from sharectl.condor import daemons
from sharectl.condor.ad_files import AdOfFile, from_long, number_of, text_of
from sharectl.condor.ads import ad_of_long, evaluated, expression, is_true, value_of, whole
from sharectl.condor.configuration import literal
from sharectl.condor.deadline import Question, ask_all
from sharectl.condor.empty_slots import emptied
from sharectl.condor.expressions import words_of_text
from sharectl.condor.schedd_jobs import NO_SLOT
from sharectl.config.model import PoolConfig
from sharectl.consumption.cost import (
    Amount,
    Look,
    Match,
    Priced,
    PricedJobs,
    PricedSlots,
    Refusal,
    SlotKind,
    match_of,
    whole_if_it_is,
)
from sharectl.consumption.policy import STANDARD
from sharectl.errors import InputError
from sharectl.shares.groups import without_user
from sharectl.words import Problems, counted

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
"""States in which a slot has claims to give; empty: an ad without State."""
_SMALLEST = {"RequestCpus": "1", "RequestMemory": "1", "RequestDisk": "1"}
"""Smallest requests of condor_submit: a policy takes its minimum charges for them."""
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
        self.ad = ad_of_long(_as_long(attributes))
        resources = value_of(expression("MY.MachineResources"), self.ad)
        by_lower = {n.lower(): n for n in _words(resources if type(resources) is str else "")}
        self.assets = sorted(name for key, name in by_lower.items() if key != "swap")
        self.fresh = {name: self.ad.lookup(name) for name in self.assets if name in self.ad}
        partitionable = is_true(value_of(expression("MY.PartitionableSlot"), self.ad))
        faults = {
            "PartitionableSlot is not true": not partitionable,
            "MachineResources is no text": type(resources) is not str,
            **{f"no Consumption{a}": f"Consumption{a}" not in self.ad for a in self.assets},
        }
        because = tuple(fault for fault, applies in faults.items() if applies)
        kind = SlotKind.PARTITIONABLE if partitionable else SlotKind.STATIC
        for asset in self.assets if because else ():
            charge = _CHARGES.get(asset.lower(), _OF_CUSTOM.format(asset=asset))
            takes = charge if partitionable else f"MY.{asset}"
            self.ad[f"{_STARTD_TAKES}{asset}"] = expression(takes)
        if _number(self.ad, "SlotWeight") is None:
            self.ad["SlotWeight"] = expression(_DEFAULT_WEIGHT)
        amounts = {name: _number(self.ad, name) for name in self.assets}
        state = text_of(attributes, "State")
        self.described = PricedSlots(
            names=names,
            kind=kind if because else SlotKind.POLICY,
            assets={n: None if v is None else whole_if_it_is(v) for n, v in amounts.items()},
            no_policy_because=because,
            slot_type=_whole(attributes, "SlotTypeID"),
            state="" if state in _FREE_STATES else state,
            num_claims=None if because else _whole(attributes, "NumClaims"),
            weight=_number(self.ad, "SlotWeight"),
        )

    def look(self, job: Any, assets: Optional[Mapping[str, Amount]]) -> Look:
        """Values for a job with these assets left; None for those that the slot has."""
        self.ad.update(self.fresh if assets is None else assets)
        consumed = {asset: self._consumed(asset, job) for asset in self.assets}
        accepts: tuple[Optional[bool], Optional[bool]] = (None, None)
        if all(amount is not None and amount >= 0 for amount in consumed.values()):
            accepts = self._accepts(job, consumed)
        return Look(_number(self.ad, "SlotWeight"), consumed, *accepts)

    def _consumed(self, asset: str, job: Any) -> Optional[float]:
        """Amount that a job takes of an asset; for a policy a missing request is 0."""
        request, has_policy = f"Request{asset}", self.described.has_policy
        charge = f"{'Consumption' if has_policy else _STARTD_TAKES}{asset}"
        sent = _number(job, f"_condor_{request}") if f"_condor_{request}" in job else None
        if sent is None and (request in job or not has_policy):
            return _number(self.ad, charge, job)
        with _with(job, {request: sent or 0}):
            return _number(self.ad, charge, job)

    def _accepts(self, job: Any, consumed: Mapping[str, Any]) -> tuple[Any, Any]:
        """Requirements of slot and job, which see what a policy takes in place of the requests."""
        replaced = {}
        for asset, amount in consumed.items() if self.described.has_policy else ():
            if (request := f"Request{asset}") in job:
                replaced[f"_cp_orig_{request}"] = job.lookup(request)
                replaced[request] = whole_if_it_is(amount)
        with _with(job, replaced):
            return _met(self.ad, job), _met(job, self.ad)


def _met(ad: Any, target: Any) -> Optional[bool]:
    if "Requirements" not in ad:
        return None
    return is_true(value_of(expression("MY.Requirements"), ad, target))


def _words(resources: str) -> list[str]:
    return re.findall(r"[^\s,]+", resources)


def _as_long(ad: Ad) -> str:
    return "\n".join(f"{name} = {text}" for name, text in ad.items())


def _row(
    ad: Ad, names: tuple[str, ...], jobs: Sequence[Ad], most: int
) -> tuple[PricedSlots, list[Match], list[Match]]:
    """A kind of slot, and its match with each job, as it is and when nothing runs on it."""
    job_ads = [ad_of_long(_as_long(job)) for job in jobs]
    (_, bare), (slots, fits) = (
        (slot.described, [match_of(slot.described, partial(slot.look, job), n) for job in job_ads])
        for slot, n in ((_Slot(emptied(ad), names), 0), (_Slot(ad, names), most))
    )
    return slots, fits, bare


def _works() -> bool:
    """Names resolve: without a configuration they are silently undefined."""
    return value_of(expression("MY.A"), ad_of_long("A = true")) is True


@cache
def _load_library() -> None:
    """Load the library before children fork; a broken configuration ends the process, so try it."""
    answer = ask_all({"library": Question(_works, EVALUATION_SECONDS)})["library"]
    if not answer.value:
        fact = "HTCondor's library cannot use this machine's configuration, so nothing is evaluated"
        raise InputError([f"{fact}; correct CONDOR_CONFIG, or the file that it names"])
    _works()


def _evaluated(
    questions: Sequence[tuple[str, Callable[[], Any]]], advice: str, deadline_seconds: float
) -> Iterator[Any]:
    """Values of functions that evaluate ads, each in a child; InputError names one that fails."""
    _load_library()
    step = os.cpu_count() or 1
    for start in range(0, len(questions), step):
        batch = questions[start : start + step]
        answers = ask_all(
            {
                str(number): Question(ask, deadline_seconds, more_bytes=MOST_MEMORY_BYTES)
                for number, (_, ask) in enumerate(batch)
            }
        )
        for (name, _), answer in zip(batch, answers.values()):
            if problem := answer.source.problem:
                fact = f"HTCondor's library cannot evaluate {name}"
                raise InputError([f"{fact}: {problem}; {advice}"])
            yield answer.value


# ---- kinds of slots and jobs

_SEEN = ("partitionableslot", "machineresources", "slotweight", "requirements", "numclaims")
_SEEN_PREFIXES = ("consumption", "request", "_condor_request")
_TOTAL = re.compile(r"TotalSlot(?!s$)", re.IGNORECASE)
_UNSTEADY, _STEP = ("disk", "totalslotdisk"), 1.01
"""Assets that differ from node to node and from minute to minute: steps of 1 % are of one kind."""


def kinds(
    slots: Sequence[Ad], jobs: Sequence[Ad], apart: Iterable[str] = ()
) -> tuple[list[list[int]], list[list[int]]]:
    """Kinds of slots and of jobs by all that policies, weights and Requirements can see of them.

    A kind is the numbers of its ads, ascending. Attributes ``apart``, in lower case, set ads apart
    though nothing refers to them.
    """
    names = _seen([*slots, *jobs], apart)
    return _kinds(slots, names), _kinds(jobs, names)


def _kinds(ads: Sequence[Ad], names: set[str]) -> list[list[int]]:
    members: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for number, ad in enumerate(ads):
        visible = sorted((name, _step(name, ad)) for name in ad if name.lower() in names)
        members.setdefault(tuple(visible), []).append(number)
    return list(members.values())


def _seen(ads: Sequence[Ad], apart: Iterable[str] = ()) -> set[str]:
    """Names, in lower case, that expressions may refer to; eval() sees more."""
    texts: dict[str, set[str]] = {}
    for ad in ads:
        for name, text in ad.items():
            texts.setdefault(name.lower(), set()).add(text)
    names = {*_SEEN, *apart, *(name for name in texts if name.startswith(_SEEN_PREFIXES))}
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

_APART = ("state", "slottypeid", "_sharectl_group")


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
    slot_ads = [slot.attributes for slot in slots]
    job_ads = [{**job.ad.attributes, _APART[-1]: f'"{job.accounting_group}"'} for job in jobs]
    totals = {name.lower() for ad in slot_ads for name in ad if _TOTAL.match(name)}
    slot_kinds, job_kinds = kinds(slot_ads, job_ads, (*_APART, *totals))
    shapes = [job_ads[kind[0]] for kind in job_kinds]
    questions = []
    for kind in slot_kinds if jobs else ():
        least = min(kind, key=lambda number: number_of(slot_ads[number], "disk"))
        names = tuple(text_of(slot_ads[n], "Name") or slots[n].place for n in kind)
        row = partial(_row, slot_ads[least], names, shapes, most)
        questions.append((slots[least].place, row))
    advice = "leave it out with --constraint, or jobs with --job-constraint"
    rows = list(_evaluated(questions, advice, deadline_seconds + SHAPE_SECONDS * len(shapes)))
    priced = []
    for kind in job_kinds:
        members = [jobs[number] for number in kind]
        names, count = tuple(job.ad.place for job in members), sum(job.count for job in members)
        priced.append(PricedJobs(names, count, members[0].accounting_group))
    described, matches, empty = zip(*rows) if rows else ((), (), ())
    return Priced(described, tuple(priced), matches, empty)


def smallest_matches(slots: Sequence[AdOfFile]) -> list[tuple[PricedSlots, Optional[Match]]]:
    """Each kind of slot with the smallest request of which it takes something; None without one.

    The request is `_SMALLEST`, or that and one of each custom resource. Requirements are left out.
    """
    texts = {text_of(slot.attributes, "MachineResources") for slot in slots}
    words = {word for text in texts for word in _words(text)}
    custom = {f"Request{w}": "1" for w in words if w.lower() not in (*STANDARD, "swap")}
    bare = [AdOfFile(slot.place, {**slot.attributes, "Requirements": "true"}) for slot in slots]
    requests = [_SMALLEST, {**_SMALLEST, **custom}] if custom else [_SMALLEST]
    priced = price(bare, [Jobs(AdOfFile("smallest", request)) for request in requests])
    # A request that is short of assets is 0 claims; other refusals leave the number unknown.
    countable = (
        [match for match in row if {why for why, _ in match.refused} <= {Refusal.SHORT}]
        for row in priced.matches
    )
    return [(kind, next(iter(row), None)) for kind, row in zip(priced.slots, countable)]


def _whole(ad: Ad, name: str) -> Optional[int]:
    value = number_of(ad, name)
    return int(value) if isfinite(value) else None


# ---- files

_OF_JOBS = ("request", "clusterid", "procid", "jobstatus")


def checked(ads: Sequence[AdOfFile], *, of_slots: bool) -> Sequence[AdOfFile]:
    """The ads, all of slots or all of jobs; InputError with the place of each that is not."""
    problems = Problems()
    noun, option, tool = ("slot", "slots", "status") if of_slots else ("job", "jobs", "q -all")
    fault = f"no ad of a {noun} with all its attributes"
    remedy = f"give --{option} the output of condor_{tool} -long"
    for ad in ads:
        names = {name.lower() for name in ad.attributes}
        is_slot = "machineresources" in names
        is_job = not is_slot and any(name.startswith(_OF_JOBS) for name in names)
        if not (is_slot if of_slots else is_job):
            problems.add(ad.place, f"{fault}; {remedy}")
    if problems:
        raise InputError(problems.lines())
    return ads


def waits(job: AdOfFile) -> bool:
    """The job waits for a slot of the pool; one without JobStatus does."""
    is_idle = _whole(job.attributes, "JobStatus") in (None, 1)
    return is_idle and _whole(job.attributes, "JobUniverse") not in NO_SLOT


def restricted(
    ads: Sequence[AdOfFile], constraint: Optional[str], option: str
) -> Sequence[AdOfFile]:
    """Ads that meet the constraint of an option; InputError if HTCondor cannot evaluate it."""
    _load_library()
    if constraint is not None and expression(constraint) is None:
        problem = f"{option}: {constraint!r} is an invalid expression of HTCondor"
        raise InputError([f'{problem}; write such as Cpus >= 8 && Arch == "X86_64"'])
    if constraint is None or not ads:
        return ads
    question = (f"{option} {constraint!r}", partial(_meet, constraint, ads))
    (met,) = _evaluated([question], "write another expression", EVALUATION_SECONDS)
    return [ad for ad, is_met in zip(ads, met) if is_met]


def _meet(constraint: str, ads: Sequence[AdOfFile]) -> list[bool]:
    tree = expression(constraint)
    return [is_true(value_of(tree, ad_of_long(_as_long(ad.attributes)))) for ad in ads]


# ---- a pool

MOST_SHAPES = 500
"""Kinds of pending jobs of a schedd that are priced, those with the most jobs."""
MOST_ROWS = 20_000
"""Kinds of pending jobs that a schedd is asked for."""
_PENDING = "JobStatus == 1"
_KEYS = (
    *("JobStatus", "JobUniverse", "AccountingGroup", "Requirements"),
    *("RequestCpus", "RequestMemory", "RequestDisk", "RequestGPUs"),
)
_JOB_ID = re.compile(r"\s*(\d{1,10}\.\d{1,10})\b")


class PoolAds(NamedTuple):
    """Answer of a pool's collector."""

    slots: list[AdOfFile]
    """Partitionable and static ones."""
    groups: list[AdOfFile]
    """Accounting ads; empty if the negotiator advertises none."""
    schedds: list[dict[str, str]]
    """Locations."""


def look(pool: PoolConfig, constraint: Optional[str]) -> PoolAds:
    """Slots that meet ``constraint``, groups and schedds, or PoolUnavailableError."""
    ask = partial(_pool_ads, constraint=constraint)
    return daemons.ask_collector(pool.collector, pool.collector_deadline_seconds, ask)


def _pool_ads(collector: Any, constraint: Optional[str]) -> PoolAds:
    groups = daemons.query(collector, "Accounting", daemons.ACCOUNTING_GROUP)
    return PoolAds(
        [_ad(f"slot {ad.get('Name')}", ad) for ad in daemons.slots(collector, constraint)],
        [_ad(f"group {ad.get('Name')}", ad) for ad in groups],
        daemons.locations(collector, "Schedd"),
    )


def _ad(place: str, ad: Any) -> AdOfFile:
    return AdOfFile(place, from_long(ad.printOld()))


def pending(
    pool: PoolConfig,
    schedds: Iterable[Mapping[str, str]],
    slots: Iterable[AdOfFile],
    constraint: Optional[str],
) -> tuple[list[Jobs], list[str]]:
    """Pending jobs by kinds, as ``slots`` can tell them apart, and problems of schedds."""
    keys = job_keys([slot.attributes for slot in slots], constraint)
    ask = partial(job_kinds_of, keys=keys, constraint=constraint)
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
            rarer = f"{left_out} of rarer kinds left out"
            problems.append(f"{name}: {rarer}; restrict it with --job-constraint")
    return every, problems


def job_keys(slots: Sequence[Ad], constraint: Optional[str]) -> list[str]:
    """Attributes of jobs that policies and Requirements may see."""
    resources = {text_of(slot, "MachineResources").lower() for slot in slots}
    requests = {f"request{name}" for text in resources for name in words_of_text(text)}
    # The schedd applies the constraint to its rows too: attributes of it must be keys.
    others = _seen(slots) | requests | words_of_text(constraint or "")
    return [*_KEYS, *sorted(others - {name.lower() for name in _KEYS})]


def job_kinds_of(
    schedd: Any, name: str, keys: Sequence[str], constraint: Optional[str]
) -> tuple[list[Jobs], str]:
    """Pending jobs by kinds, those with the most jobs, and how many are left out, in words."""
    which = f"({_PENDING}) && ({constraint})" if constraint else _PENDING
    rows = daemons.grouped(schedd, which, keys, limit=MOST_ROWS)
    in_slots = [ad for ad in rows if evaluated(ad, "JobUniverse") not in NO_SLOT]
    jobs = [Jobs(_job_ad(ad, name), whole(ad.get("JobCount"), 1)) for ad in in_slots]
    jobs.sort(key=lambda alike: -alike.count)
    if len(rows) >= MOST_ROWS:
        return jobs[:MOST_SHAPES], f"more than {MOST_ROWS - MOST_SHAPES} kinds"
    left_out = sum(alike.count for alike in jobs[MOST_SHAPES:])
    return jobs[:MOST_SHAPES], counted(left_out, "job") if left_out else ""


def _job_ad(ad: Any, schedd: str) -> AdOfFile:
    match = _JOB_ID.match(str(ad.get("JobIds")))
    number = match[1] if match else f"{ad.get('ClusterId')}.{ad.get('ProcId')}"
    return _ad(f"job {number} of {schedd}", ad)


def leftovers(pool: PoolConfig, schedds: Iterable[Mapping[str, str]]) -> Optional[bool]:
    """CLAIM_PARTITIONABLE_LEFTOVERS: True if an access point has it on, None if that is unknown."""
    questions = {
        schedd["Name"]: Question(partial(_leftovers, schedd), pool.schedd_deadline_seconds)
        for schedd in schedds
    }
    answers = [answer.value for answer in ask_all(questions).values()]
    return True if True in answers else False if answers and None not in answers else None


def _leftovers(location: Mapping[str, str]) -> Optional[bool]:
    return literal(str(daemons.macros(location)["CLAIM_PARTITIONABLE_LEFTOVERS"]))
