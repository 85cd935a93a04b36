"""What slots make of jobs, as a pool or files have them: kinds of both, and a match for each pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Optional

from sharectl.adapters.condor_config import Source
from sharectl.adapters.condor_process import CondorProcess, UnreadableConfigurationError
from sharectl.adapters.consumption_policy import MOST_CLAIMS, Ad, in_sequence, judged
from sharectl.adapters.consumption_policy_kinds import ANSWER_SECONDS, BLANK, Guard, kinds
from sharectl.adapters.emptied_slot import emptied
from sharectl.adapters.slot_ads import AdOfFile, number_of, text_of
from sharectl.adapters.slot_ads_pending import NO_SLOT
from sharectl.core.claim_capacity import Demand, Group, Offer, group_of
from sharectl.core.claim_offers import Priced, PricedJobs, PricedSlots, Support
from sharectl.core.groups import without_user
from sharectl.core.match_cost import Match, Refusal
from sharectl.errors import InputError

SMALLEST = {"RequestCpus": "1", "RequestMemory": "1", "RequestDisk": "1"}
"""Smallest requests that condor_submit makes: what a policy takes for them are its minimum charges."""
_STANDARD = ("cpus", "memory", "disk")
FREE_STATES = ("", "Unclaimed", "Matched")
"""States in which a slot has claims to give; empty: an ad that tells none."""


@dataclass(frozen=True)
class Jobs:
    """Jobs that are alike."""

    ad: AdOfFile
    count: int = 1

    @property
    def accounting_group(self) -> str:
        """AccountingGroup without the user; empty if the job has none."""
        return without_user(f"{text_of(self.ad.attributes, 'AccountingGroup')}@") or ""


def price(slots: Sequence[AdOfFile], jobs: Sequence[Jobs], most: int) -> Priced:
    """What slots, each as it is, make of jobs; at most ``most`` of them are counted on one slot."""
    slot_ads = [slot.attributes for slot in slots]
    # Slots that can be told apart only by what nobody evaluates, and jobs of one shape but different groups.
    job_ads = [{**job.ad.attributes, "_sharectl_group": f'"{job.accounting_group}"'} for job in jobs]
    slot_kinds, job_kinds = kinds(slot_ads, job_ads, apart=("state", "slottypeid", "_sharectl_group"))
    shapes = [kind.ad for kind in job_kinds]

    def ask(
        process: CondorProcess, some_slots: Sequence[int], some_jobs: Sequence[int]
    ) -> list[list[tuple[Support, Match]]]:
        tried = [{} if job == BLANK else shapes[job] for job in some_jobs]
        rows = judged(process, [slot_kinds[slot].ad for slot in some_slots], tried, most=most)
        return [[(support, match) for match in row] for support, row in rows]

    guard = Guard(_process, ask)
    found = guard.results(len(slot_kinds), len(job_kinds))
    supports = {slot: support for (slot, _), (support, _) in found.items()}
    weights = {slot: match.weight for (slot, _), (_, match) in found.items()}
    known = sorted(supports)
    renumbered = {slot: number for number, slot in enumerate(known)}
    culprits = [
        (slots if culprit.is_slot else jobs, slot_kinds if culprit.is_slot else job_kinds, culprit)
        for culprit in guard.culprits
    ]
    priced = tuple(
        _priced(slots, slot_kinds[slot].members, slot_kinds[slot].ad, supports[slot], weights.get(slot))
        for slot in known
    )
    return Priced(
        slots=priced,
        jobs=tuple(
            PricedJobs(
                tuple(jobs[member].ad.place for member in kind.members),
                sum(jobs[member].count for member in kind.members),
                jobs[kind.members[0]].accounting_group,
            )
            for kind in job_kinds
        ),
        matches={(renumbered[slot], job): match for (slot, job), (_, match) in found.items()},
        notes=tuple(kind.not_told for kind in priced if kind.not_told)
        + tuple(
            f"{priced[renumbered[slot]].names[0]}: claims are counted up to {most} a slot; it may have more"
            for slot in sorted(
                {slot for (slot, _), (_, match) in found.items() if match.at_least and most > 1}
            )
        )
        + tuple(
            f"{_place(given[sorts[culprit.number].members[0]])}: left out, with {len(sorts[culprit.number].members) - 1} "
            f"like it: HTCondor's library cannot evaluate it: {culprit.problem}"
            for given, sorts, culprit in culprits
        ),
    )


def smallest_offers(
    slots: Sequence[AdOfFile],
) -> tuple[list[tuple[PricedSlots, Optional[Offer]]], tuple[str, ...]]:
    """What each kind of slot makes of the smallest request that it matches, and notes of ads that are left out.

    The request is `SMALLEST`, or that and one of each custom resource if it takes nothing. Requirements are of no account.
    """
    resources = {
        word
        for slot in slots
        for word in text_of(slot.attributes, "MachineResources").replace(",", " ").split()
    }
    custom = {f"Request{name}": "1" for name in sorted(resources) if name.lower() not in (*_STANDARD, "swap")}
    bare = [
        AdOfFile(
            slot.place,
            {name: text for name, text in slot.attributes.items() if name.lower() != "requirements"},
        )
        for slot in slots
    ]
    jobs = [AdOfFile("smallest", SMALLEST), AdOfFile("with custom resources", {**SMALLEST, **custom})]
    priced = price(bare, [Jobs(job) for job in jobs[: 1 + bool(custom)]], MOST_CLAIMS)
    return [
        (slots_of_kind, _smallest(priced, number, slots_of_kind))
        for number, slots_of_kind in enumerate(priced.slots)
    ], priced.notes


def _smallest(priced: Priced, number: int, slots: PricedSlots) -> Optional[Offer]:
    """The offer of the first request that can be counted: one that was refused for want of assets is 0 claims."""
    matches = [
        priced.matches[number, job] for job in range(len(priced.jobs)) if (number, job) in priced.matches
    ]
    counted = [match for match in matches if all(reason.why is Refusal.SHORT for reason in match.refused)]
    return (
        Offer(len(slots.names), counted[0], slots.support.supported, slots.partitionable) if counted else None
    )


def price_in_sequence(
    slots: Sequence[AdOfFile], jobs: Sequence[Jobs]
) -> list[tuple[tuple[str, ...], list[Match]]]:
    """Names of the slots of a kind, and what each of them makes of the jobs one after another, as in one cycle.

    Raises
    ------
    InputError
        If HTCondor's library cannot bear them.
    """
    if not jobs:
        return []
    ads = [job.ad.attributes for job in jobs]
    sorts, _ = kinds([slot.attributes for slot in slots], ads)
    try:
        with _process() as process:
            found = in_sequence(
                process,
                [kind.ad for kind in sorts],
                [job.ad.attributes for job in jobs for _ in range(job.count)],
                num_claims=[_whole(kind.ad, "NumClaims") for kind in sorts],
            )
    except UnreadableConfigurationError as error:
        raise InputError(
            [f"HTCondor's library cannot evaluate these slots with these jobs: {error}; try fewer of them"]
        ) from None
    return [
        (tuple(_name(slots[member]) for member in kind.members), matches)
        for kind, matches in zip(sorts, found)
    ]


def job_groups(priced: Priced, groups: Sequence[Group]) -> list[tuple[PricedJobs, Optional[Group]]]:
    """Each kind of jobs and its group among ``groups``; None if there are none."""
    by_name = {group.name: group for group in groups}
    return [(jobs, by_name.get(group_of(jobs.accounting_group, by_name))) for jobs in priced.jobs]


def demands(
    priced: Priced, groups: Sequence[Group], empty: Mapping[tuple[int, int], Match]
) -> list[tuple[Group, list[Demand]]]:
    """Each group and its jobs, with what slots make of them; a group that is not among ``groups`` is the root.

    Parameters
    ----------
    empty
        What `on_empty` tells.
    """
    waiting = {job for (_, job), match in empty.items() if not match.refused}
    named = [group_of(jobs.accounting_group, [group.name for group in groups]) for jobs in priced.jobs]
    return [
        (
            group,
            [
                Demand(jobs.count, priced.offers(number), number in waiting)
                for number, (jobs, name) in enumerate(zip(priced.jobs, named))
                if name == group.name
            ],
        )
        for group in groups
    ]


def pool_weight(slots: Sequence[AdOfFile]) -> Optional[float]:
    """Sum of the weights of slots on which nothing runs; None if one of them is not known."""
    try:
        with _process() as process:
            (values,) = process.evaluate(
                ["MY.SlotWeight"], [emptied(slot.attributes) for slot in slots], [{}]
            ) or [None]
    except UnreadableConfigurationError:
        return None
    weights = [value for (value,) in values or []]
    return sum(weights) if weights and all(isinstance(weight, (int, float)) for weight in weights) else None


def waits(job: AdOfFile) -> bool:
    """Whether a job waits for a slot of the pool; one that does not tell does."""
    return (
        _whole(job.attributes, "JobStatus") in (None, 1)
        and _whole(job.attributes, "JobUniverse") not in NO_SLOT
    )


def restricted(ads: Sequence[AdOfFile], constraint: Optional[str], option: str) -> list[AdOfFile]:
    """Those that meet ``constraint``, which the ``option`` of that name has given; all if there is none.

    Raises
    ------
    InputError
        If HTCondor cannot read or evaluate it.
    """
    if constraint is None:
        return list(ads)
    try:
        with _process() as process:
            (values,) = process.evaluate([constraint], [ad.attributes for ad in ads], [{}])
    except UnreadableConfigurationError as error:
        raise InputError([f"{option}: HTCondor's library cannot evaluate it: {error}"]) from None
    if values is None:
        raise InputError(
            [
                f'{option}: {constraint!r} is no expression of HTCondor; write such as Cpus >= 8 && Arch == "X86_64"'
            ]
        )
    return [
        ad
        for ad, (value,) in zip(ads, values)
        if value is True or (value != 0 and isinstance(value, (int, float)))
    ]


def when_empty(slot: AdOfFile) -> AdOfFile:
    """The slot when nothing runs on it."""
    return AdOfFile(slot.place, emptied(slot.attributes))


def _process(deadline_seconds: float = ANSWER_SECONDS) -> CondorProcess:
    """A child with HTCondor's defaults."""
    return CondorProcess(Source().root_file(), Source().environment, deadline_seconds)


def _priced(
    slots: Sequence[AdOfFile], members: Sequence[int], ad: Ad, support: Support, weight: Optional[float]
) -> PricedSlots:
    state = text_of(ad, "State")
    return PricedSlots(
        names=tuple(_name(slots[member]) for member in members),
        slot_type=_whole(ad, "SlotTypeID"),
        state="" if state in FREE_STATES else state,
        num_claims=_whole(ad, "NumClaims") if support.supported else None,
        support=support,
        weight=weight,
    )


def _name(slot: AdOfFile) -> str:
    return text_of(slot.attributes, "Name") or slot.place


def _place(given: AdOfFile | Jobs) -> str:
    return given.ad.place if isinstance(given, Jobs) else given.place


def _whole(ad: Ad, name: str) -> Optional[int]:
    value = number_of(ad, name)
    return int(value) if isfinite(value) else None
