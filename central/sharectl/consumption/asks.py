"""Slots, jobs and groups of a pool or of files, and the negotiator's matches of them.

Ads are name -> expression, as text. HTCondor's library evaluates them, in a child because they may
come from anyone; the arithmetic is `sharectl.consumption.cost`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import floor, isfinite, log
from typing import Any, Optional

from sharectl.condor.ad_files import AdOfFile, from_long, number_of, text_of
from sharectl.condor.ads import evaluated, whole
from sharectl.condor.configuration import literal
from sharectl.condor.daemons import (
    ACCOUNTING_GROUP,
    ask_collector,
    grouped,
    locations,
    macros,
    query,
    schedd_questions,
)
from sharectl.condor.daemons import slots as slots_of
from sharectl.condor.deadline import Question, ask_all
from sharectl.condor.expressions import words_of_text
from sharectl.condor.library import CondorProcess, UnreadableConfigurationError
from sharectl.condor.slots import emptied
from sharectl.config.model import PoolConfig
from sharectl.consumption.cost import (
    Look,
    Match,
    Offer,
    Priced,
    PricedJobs,
    PricedSlots,
    Refusal,
    SlotKind,
    Trial,
    TriedSlot,
    again_and_again,
    whole_if_it_is,
)
from sharectl.consumption.policy import STANDARD
from sharectl.errors import InputError
from sharectl.shares.groups import without_user
from sharectl.words import Problems, counted

Ad = Mapping[str, str]

MOST_CLAIMS = 10_000
"""Matches that are counted on one slot at most: a policy may charge next to nothing."""
DEFAULT_WEIGHT = "Cpus"
"""SLOT_WEIGHT of HTCondor, which the negotiator takes where a slot's own is no number."""
FREE_STATES = ("", "Unclaimed", "Matched")
"""States in which a slot has claims to give; empty: an ad without State."""
NO_SLOT = (7, 9, 12)
"""Universes whose jobs hold no slot of the pool: scheduler, grid, local."""
SMALLEST = {"RequestCpus": "1", "RequestMemory": "1", "RequestDisk": "1"}
"""Smallest requests of condor_submit: a policy takes its minimum charges for them."""
_LOOKS_AT_ONCE = 2000
"""A question of 0.1 s: the deadline is for a hanging library."""
_SLOTS_AT_ONCE = 100
_POLICY, _LEFTOVER = "Consumption", "_sharectl_leftover_"
_LEFTOVERS = {
    "cpus": "quantize(ifThenElse(isUndefined(TARGET.RequestCpus), 1, TARGET.RequestCpus), {1})",
    "memory": "quantize(TARGET.RequestMemory, {128})",
    "disk": "quantize(TARGET.RequestDisk, {1024})",
}
"""Amounts that a startd takes off a slot without policy: its default MODIFY_REQUEST_EXPR_…"""
_OF_CUSTOM = "ifThenElse(isUndefined(TARGET.Request{asset}), 0, TARGET.Request{asset})"


# ---- slots with jobs


def tried_slots(process: CondorProcess, slots: Sequence[Ad]) -> list[TriedSlot]:
    """Kind of each slot, its assets, and what it lacks for a policy."""
    kept = [{"ad": dict(slot), "charges": _POLICY, "overrides": True} for slot in slots]
    return [_tried(fact) for fact in process.keep(kept, [], DEFAULT_WEIGHT)]


def _tried(fact: Mapping[str, Any]) -> TriedSlot:
    partitionable = fact["partitionable"]
    is_partitionable = isinstance(partitionable, (bool, int, float)) and bool(partitionable)
    because = [] if is_partitionable else ["PartitionableSlot is not true"]
    because += [] if fact["resources"] is not None else ["MachineResources is no text"]
    because += [
        f"no Consumption{asset}" for asset in fact["assets"] if asset not in fact["charged"]
    ]
    without = SlotKind.PARTITIONABLE if is_partitionable else SlotKind.STATIC
    assets = {
        name: None if amount is None else whole_if_it_is(amount)
        for name, amount in fact["assets"].items()
    }
    return TriedSlot(without if because else SlotKind.POLICY, assets, tuple(because))


def matches(
    process: CondorProcess, slots: Sequence[Ad], jobs: Sequence[Ad], *, most: int = MOST_CLAIMS
) -> list[tuple[TriedSlot, list[Match]]]:
    """Each slot, and its match, as it is, with each job.

    Parameters
    ----------
    most
        Count no more jobs than this; 0 if only refusals are wanted.

    Raises
    ------
    sharectl.condor.library.UnreadableConfigurationError
        If the library ended, or did not answer by its deadline.
    """
    tried = tried_slots(process, slots)
    kept = [
        {
            "ad": {**ad, **_leftovers_of(slot)},
            "charges": _POLICY if slot.has_policy else _LEFTOVER,
            "overrides": slot.has_policy,
        }
        for ad, slot in zip(slots, tried)
    ]
    process.keep(kept, jobs, DEFAULT_WEIGHT)
    trials = [
        (number, again_and_again(slot, job, most))
        for number, slot in enumerate(tried)
        for job in range(len(jobs))
    ]
    results = iter(_results(process, trials))
    return [(slot, [next(results) for _ in jobs]) for slot in tried]


def _leftovers_of(slot: TriedSlot) -> dict[str, str]:
    """Amounts that a job takes of a slot without policy: all of a static one."""
    if slot.has_policy:
        return {}
    if slot.kind is SlotKind.STATIC:
        return {f"{_LEFTOVER}{asset}": asset for asset in slot.assets}
    return {
        f"{_LEFTOVER}{asset}": _LEFTOVERS.get(asset.lower(), _OF_CUSTOM.format(asset=asset))
        for asset in slot.assets
    }


def _results(process: CondorProcess, trials: Sequence[tuple[int, Trial]]) -> list[Match]:
    """Match of each trial, on the slot of that number; all trials go on by a look at a time."""
    results: dict[int, Match] = {}
    asks = {number: next(trial) for number, (_, trial) in enumerate(trials)}
    while asks:
        questions = [(trials[number][0], *ask) for number, ask in asks.items()]
        for number, look in zip(list(asks), _looks(process, questions)):
            try:
                asks[number] = trials[number][1].send(look)
            except StopIteration as ended:
                results[number] = ended.value
                del asks[number]
    return [results[number] for number in range(len(trials))]


def _looks(
    process: CondorProcess, asks: Sequence[tuple[int, int, Optional[Mapping[str, float]]]]
) -> Iterator[Look]:
    for start in range(0, len(asks), _LOOKS_AT_ONCE):
        for weight, consumed, slot, job in process.looks(asks[start : start + _LOOKS_AT_ONCE]):
            yield Look(_finite(weight), {n: _finite(v) for n, v in consumed.items()}, slot, job)


def _finite(value: Optional[float]) -> Optional[float]:
    return value if value is not None and isfinite(value) else None


# ---- kinds of slots and jobs

_SEEN = ("partitionableslot", "machineresources", "slotweight", "requirements", "numclaims")
_SEEN_PREFIXES = ("consumption", "request", "_condor_request")
EVERYTHING = "eval"
"""The function that can see attributes whose names are not in the expression."""
_UNSTEADY, _STEP = ("disk", "totalslotdisk"), 1.01
"""Assets that differ from node to node and from minute to minute: steps of 1 % are of one kind."""


@dataclass(frozen=True)
class AdKind:
    """Ads that cannot be told apart."""

    ad: Ad
    """Their attributes that can be seen, of the one with the least Disk."""
    members: tuple[int, ...]
    """Their numbers in the list, ascending."""


def kinds(
    slots: Sequence[Ad], jobs: Sequence[Ad], apart: Iterable[str] = ()
) -> tuple[list[AdKind], list[AdKind]]:
    """Kinds of slots and of jobs by all that policies, weights and Requirements can see of them.

    In the order of their first members; the schedd calls kinds of jobs autoclusters.

    Parameters
    ----------
    apart
        Attributes, in lower case, that set ads apart though nothing refers to them.
    """
    names = _seen([*slots, *jobs], apart)
    return _kinds(slots, names), _kinds(jobs, names)


def _seen(ads: Sequence[Ad], apart: Iterable[str] = ()) -> set[str]:
    """Names, in lower case, that expressions may refer to; or all, and `EVERYTHING`."""
    texts: dict[str, set[str]] = {}
    for ad in ads:
        for name, text in ad.items():
            texts.setdefault(name.lower(), set()).add(text)
    names = {*_SEEN, *apart, *(name for name in texts if name.startswith(_SEEN_PREFIXES))}
    while True:
        every = {text for name in names for text in texts.get(name, ())}
        words = {word for text in every for word in words_of_text(text)}
        words |= {word[len("request") :] for word in words if word.startswith("request")}
        if EVERYTHING in words:
            return {*texts, EVERYTHING}
        if words <= names:
            return names
        names |= words


def _kinds(ads: Sequence[Ad], names: set[str]) -> list[AdKind]:
    members: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for number, ad in enumerate(ads):
        visible = sorted((name, _step(name, ad)) for name in ad if name.lower() in names)
        members.setdefault(tuple(visible), []).append(number)
    result = []
    for key, alike in members.items():
        least = ads[min(alike, key=lambda number: number_of(ads[number], "disk"))]
        result.append(AdKind({name: least[name] for name, _ in key}, tuple(alike)))
    return result


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


def price(slots: Sequence[AdOfFile], jobs: Sequence[Jobs], most: int = MOST_CLAIMS) -> Priced:
    """Matches of the slots, each as it is, with the jobs; ``most`` of these at most on one slot.

    Raises
    ------
    InputError
        If HTCondor's library cannot evaluate the ads.
    """
    slot_ads = [slot.attributes for slot in slots]
    job_ads = [{**job.ad.attributes, _GROUP: f'"{job.accounting_group}"'} for job in jobs]
    totals = {name.lower() for ad in slot_ads for name in ad if name.lower().startswith(_TOTAL)}
    apart = ("state", "slottypeid", _GROUP, *(totals - {"totalslots"}))
    slot_kinds, job_kinds = kinds(slot_ads, job_ads, apart)
    shapes = [kind.ad for kind in job_kinds]
    of_slots: list[PricedSlots] = []
    as_is: dict[tuple[int, int], Match] = {}
    empty: dict[tuple[int, int], Match] = {}
    with evaluating("these slots and jobs") as process:
        for start in range(0, len(slot_kinds) if jobs else 0, _SLOTS_AT_ONCE):
            some = slot_kinds[start : start + _SLOTS_AT_ONCE]
            rows = matches(process, [kind.ad for kind in some], shapes, most=most)
            # Devices that come free with the slot are in attributes that nothing refers to.
            bare = [emptied(slot_ads[kind.members[0]]) for kind in some]
            for kind, (slot, row), (_, empty_row) in zip(
                some, rows, matches(process, bare, shapes, most=0)
            ):
                priced = _slots_of(kind, slots, slot, row[0].weight_before)
                number = len(of_slots)
                of_slots.append(priced)
                for job, match in enumerate(row):
                    as_is[number, job] = match
                    if match.refused or priced.state:
                        empty[number, job] = empty_row[job]
    return Priced(tuple(of_slots), tuple(_jobs_of(kind, jobs) for kind in job_kinds), as_is, empty)


_GROUP = "_sharectl_group"
_TOTAL = "totalslot"


def _slots_of(
    kind: AdKind, slots: Sequence[AdOfFile], slot: TriedSlot, weight: Optional[float]
) -> PricedSlots:
    state = text_of(kind.ad, "State")
    return PricedSlots(
        names=tuple(name_of(slots[member]) for member in kind.members),
        slot=slot,
        slot_type=_whole(kind.ad, "SlotTypeID"),
        state="" if state in FREE_STATES else state,
        num_claims=_whole(kind.ad, "NumClaims") if slot.has_policy else None,
        weight=weight,
    )


def _jobs_of(kind: AdKind, jobs: Sequence[Jobs]) -> PricedJobs:
    alike = [jobs[member] for member in kind.members]
    places = tuple(job.ad.place for job in alike)
    return PricedJobs(places, sum(job.count for job in alike), alike[0].accounting_group)


def smallest_offers(slots: Sequence[AdOfFile]) -> list[tuple[PricedSlots, Optional[Offer]]]:
    """Each kind of slot with the smallest request of which it takes something; None without one.

    The request is `SMALLEST`, or that and one of each custom resource. Requirements are left out.
    """
    words = {
        word
        for slot in slots
        for word in re.split(r"[\s,]+", text_of(slot.attributes, "MachineResources"))
    }
    custom = {f"Request{w}": "1" for w in words if w and w.lower() not in (*STANDARD, "swap")}
    bare = [AdOfFile(slot.place, _without(slot.attributes, "requirements")) for slot in slots]
    requests = [SMALLEST, {**SMALLEST, **custom}] if custom else [SMALLEST]
    priced = price(bare, [Jobs(AdOfFile("smallest", request)) for request in requests])
    return [(kind, _smallest(priced, number)) for number, kind in enumerate(priced.slots)]


def _smallest(priced: Priced, number: int) -> Optional[Offer]:
    """Offer to the first request that can be counted; one that is short of assets is 0 claims."""
    kind = priced.slots[number]
    for job in range(len(priced.jobs)):
        match = priced.matches[number, job]
        if all(reason.why is Refusal.SHORT for reason in match.refused):
            return Offer(len(kind.names), match, kind.slot.kind)
    return None


def name_of(slot: AdOfFile) -> str:
    """Name of a slot, or the place of its ad."""
    return text_of(slot.attributes, "Name") or slot.place


def _without(ad: Ad, name: str) -> dict[str, str]:
    return {spelt: text for spelt, text in ad.items() if spelt.lower() != name}


def _whole(ad: Ad, name: str) -> Optional[int]:
    value = number_of(ad, name)
    return int(value) if isfinite(value) else None


@contextmanager
def evaluating(subject: str) -> Iterator[CondorProcess]:
    """A child with HTCondor's defaults; InputError if it ends or hangs."""
    try:
        with CondorProcess() as process:
            yield process
    except UnreadableConfigurationError as error:
        advice = "leave some out with --constraint or --job-constraint"
        raise InputError(
            [f"HTCondor's library cannot evaluate {subject}: {error}; {advice}"]
        ) from None


# ---- files

_OF_JOBS = ("request", "clusterid", "procid", "jobstatus")


def checked(ads: Sequence[AdOfFile], *, of_slots: bool) -> Sequence[AdOfFile]:
    """The ads, all of slots or all of jobs.

    Raises
    ------
    InputError
        If one is not: each with its place.
    """
    problems = Problems()
    option, made_by = ("slots", "status") if of_slots else ("jobs", "q -all")
    for ad in ads:
        names = {name.lower() for name in ad.attributes}
        is_slot = "machineresources" in names
        is_job = not is_slot and any(name.startswith(_OF_JOBS) for name in names)
        if not (is_slot if of_slots else is_job):
            problem = f"no ad of {'a slot' if of_slots else 'a job'} with all its attributes"
            problems.add(
                ad.place, f"{problem}; give --{option} the output of condor_{made_by} -long"
            )
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
    """Ads that meet the constraint of an option; all without a constraint.

    Raises
    ------
    InputError
        If HTCondor cannot read or evaluate it.
    """
    if constraint is None:
        return ads
    with evaluating(f"{option} {constraint!r}") as process:
        (values,) = process.evaluate([constraint], [ad.attributes for ad in ads], [{}])
    if values is None:
        problem = f"{option}: {constraint!r} is an invalid expression of HTCondor"
        raise InputError([f'{problem}; write such as Cpus >= 8 && Arch == "X86_64"'])
    met = [value not in (0, False) and not isinstance(value, str) for (value,) in values]
    return [ad for ad, is_met in zip(ads, met) if is_met]


# ---- a pool

MOST_SHAPES = 500
"""Kinds of pending jobs of a schedd that are priced, those with the most jobs."""
MOST_ROWS = 20_000
"""Kinds of pending jobs that a schedd is asked for."""
MOST_ALONE = 1000
"""Jobs that a schedd is asked for in full, where an expression may look at anything."""
_PENDING = "JobStatus == 1"
_KEYS = (
    *("JobStatus", "JobUniverse", "AccountingGroup", "Requirements"),
    *("RequestCpus", "RequestMemory", "RequestDisk", "RequestGPUs"),
)
_JOB_ID = re.compile(r"\s*(\d{1,10}\.\d{1,10})\b")


@dataclass(frozen=True)
class PoolAds:
    """Answer of a pool's collector."""

    slots: tuple[AdOfFile, ...]
    """Partitionable and static ones."""
    groups: tuple[AdOfFile, ...]
    """Accounting ads; empty if the negotiator advertises none."""
    schedds: tuple[Mapping[str, str], ...]
    """Locations."""


def look(pool: PoolConfig, constraint: Optional[str]) -> PoolAds:
    """Slots that meet ``constraint``, groups and schedds.

    Raises
    ------
    sharectl.errors.PoolUnavailableError
        If the collector does not answer.
    """
    ask = partial(_ads, constraint=constraint)
    return ask_collector(pool.collector, pool.collector_deadline_seconds, ask)


def _ads(collector: Any, constraint: Optional[str]) -> PoolAds:
    return PoolAds(
        tuple(_ad("slot", ad) for ad in slots_of(collector, constraint)),
        tuple(_ad("group", ad) for ad in query(collector, "Accounting", ACCOUNTING_GROUP)),
        tuple(locations(collector, "Schedd")),
    )


def _ad(sort: str, ad: Any) -> AdOfFile:
    return AdOfFile(f"{sort} {ad.get('Name')}", from_long(ad.printOld()))


def pending(
    pool: PoolConfig,
    schedds: Iterable[Mapping[str, str]],
    slots: Iterable[AdOfFile],
    constraint: Optional[str],
) -> tuple[list[Jobs], list[str]]:
    """Pending jobs that meet ``constraint``, by kinds, and problems of schedds that miss some.

    Parameters
    ----------
    slots
        Slots for which the jobs wait: they say which attributes of jobs count.
    """
    keys = job_keys([slot.attributes for slot in slots], constraint)
    ask = partial(job_kinds_of, keys=keys, constraint=constraint)
    every: list[Jobs] = []
    problems: list[str] = []
    questions = schedd_questions(schedds, pool.schedd_deadline_seconds, ask)
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
    """Attributes of jobs that policies and Requirements may see; with `EVERYTHING` for all."""
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
    most = MOST_ROWS
    rows = [] if EVERYTHING in keys else grouped(schedd, which, keys, limit=most)
    if EVERYTHING in keys or any(EVERYTHING in words_of_text(ad.printOld()) for ad in rows):
        most = MOST_ALONE
        rows = schedd.query(constraint=which, limit=most)
    in_slots = [ad for ad in rows if evaluated(ad, "JobUniverse") not in NO_SLOT]
    jobs = [Jobs(_job_ad(ad, name), whole(ad.get("JobCount"), 1)) for ad in in_slots]
    jobs.sort(key=lambda alike: -alike.count)
    if len(rows) >= most:
        return jobs[:MOST_SHAPES], f"more than {most - MOST_SHAPES} kinds"
    left_out = sum(alike.count for alike in jobs[MOST_SHAPES:])
    return jobs[:MOST_SHAPES], counted(left_out, "job") if left_out else ""


def _job_ad(ad: Any, schedd: str) -> AdOfFile:
    match = _JOB_ID.match(str(ad.get("JobIds")))
    number = match[1] if match else f"{ad.get('ClusterId')}.{ad.get('ProcId')}"
    return AdOfFile(f"job {number} of {schedd}", from_long(ad.printOld()))


def leftovers(pool: PoolConfig, schedds: Iterable[Mapping[str, str]]) -> Optional[bool]:
    """CLAIM_PARTITIONABLE_LEFTOVERS: True if an access point has it on, None if that is unknown."""
    questions = {
        schedd["Name"]: Question(partial(_leftovers, schedd), pool.schedd_deadline_seconds)
        for schedd in schedds
    }
    answers = [answer.value for answer in ask_all(questions).values()]
    return True if True in answers else False if answers and None not in answers else None


def _leftovers(location: Mapping[str, str]) -> Optional[bool]:
    return literal(str(macros(location)["CLAIM_PARTITIONABLE_LEFTOVERS"]))
