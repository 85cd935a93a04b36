"""What slots make of jobs, as a pool or files have them: kinds of both, and a match for each pair.

What the negotiator makes of slots and jobs that are given as ads: consumption policies and match
costs.

Ads are name → expression, as text. They are evaluated in HTCondor's library, in the child process,
since they may come from anyone; the arithmetic is `sharectl.consumption.cost`.

Many slots and many jobs, each kind of them evaluated once, and none of them able to stop the
others.

Slots are of a kind if all that policies, weights and Requirements can see of them is the same: what
the schedd calls an autocluster. Disk may differ by 1 %: a kind has that of its poorest member.

Pending jobs of a schedd by shape: all that slots, policies and Requirements can tell of them.

The schedd groups them by attributes and by what these refer to, as it makes autoclusters, which
jobs have only once they were negotiated for.

What slots would make of jobs that they do not take now, if nothing ran on them.

Slots, pending jobs and groups of a live pool as ads, each daemon asked in a process of its own with
a deadline.

Whether the ads of a file are what its option asks for: slots, jobs or accounting groups.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import floor, isfinite, log
from typing import Any, Callable, Generic, Optional, Protocol, TypeVar

from sharectl.condor.ad_files import AdOfFile, from_long, number_of, text_of
from sharectl.condor.ads import evaluated, whole
from sharectl.condor.configuration import boolean_here
from sharectl.condor.daemons import LOCATION, why_collector, why_daemon, with_address
from sharectl.condor.daemons import collector as collector_at
from sharectl.condor.deadline import Question, ask_all
from sharectl.condor.empty_slot import emptied
from sharectl.condor.expressions import words_of_text
from sharectl.condor.library import CondorProcess, UnreadableConfigurationError
from sharectl.condor.negotiator import quota_knobs
from sharectl.consumption.cost import (
    Amount,
    Demand,
    Look,
    Match,
    Offer,
    Priced,
    PricedJobs,
    PricedSlots,
    Refusal,
    Slot,
    SlotKind,
    Support,
    Trial,
    again_and_again,
    group_of,
    one_after_another,
    whole_if_it_is,
)
from sharectl.errors import InputError, PoolUnavailableError
from sharectl.model import SCHEDD_SOURCE
from sharectl.shares.groups import without_user
from sharectl.shares.quotas import Group
from sharectl.words import Problems, counted

Ad = Mapping[str, str]

MOST_CLAIMS = 10_000
"""Matches that are counted on one slot at most: a policy may charge next to nothing."""
DEFAULT_WEIGHT = "Cpus"
"""SLOT_WEIGHT of HTCondor: what the negotiator takes for a slot whose own is no number."""

_LOOKS_AT_ONCE = 2000
"""A question of 0.1 s: the deadline is for what hangs."""
_POLICY_POLICY, _LEFTOVER = "Consumption", "_sharectl_leftover_"
_LEFTOVERS = {
    "cpus": "quantize(ifThenElse(isUndefined(TARGET.RequestCpus), 1, TARGET.RequestCpus), {1})",
    "memory": "quantize(TARGET.RequestMemory, {128})",
    "disk": "quantize(TARGET.RequestDisk, {1024})",
}
"""What a startd takes for a job off a slot without policy: its default MODIFY_REQUEST_EXPR_REQUEST…"""


def supports(
    process: CondorProcess, slots: Sequence[Ad], weight: str = DEFAULT_WEIGHT
) -> list[Support]:
    """For each slot, whether the negotiator follows a consumption policy on it, and why not."""
    facts = process.keep([_asked(slot, _POLICY_POLICY) for slot in slots], [], weight)
    return [_support(fact) for fact in facts]


def matches(
    process: CondorProcess,
    slots: Sequence[Ad],
    jobs: Sequence[Ad],
    *,
    most: int = MOST_CLAIMS,
    num_claims: Optional[Sequence[Optional[int]]] = None,
    weight: str = DEFAULT_WEIGHT,
) -> list[list[Match]]:
    """What each slot, as it is, makes of each job: a list for each slot.

    Parameters
    ----------
    most
        Count no more jobs than this; 1 if only costs are wanted.
    num_claims
        For each slot, claim ids that it has for a cycle; None where it is not known.
    weight
        SLOT_WEIGHT of the negotiator.

    Raises
    ------
    sharectl.condor.library.UnreadableConfigurationError
        If the library ended, or did not answer by its deadline: an ad may be made to do that.
    """
    return [
        row
        for _, row in judged(process, slots, jobs, most=most, num_claims=num_claims, weight=weight)
    ]


def judged(
    process: CondorProcess,
    slots: Sequence[Ad],
    jobs: Sequence[Ad],
    *,
    most: int = MOST_CLAIMS,
    num_claims: Optional[Sequence[Optional[int]]] = None,
    weight: str = DEFAULT_WEIGHT,
) -> list[tuple[Support, list[Match]]]:
    """Each slot by itself, and what it makes of each job; parameters and errors are those of `matches`."""
    kept = _keep(process, slots, jobs, weight, num_claims)
    trials = [
        (index, again_and_again(slot, job, most))
        for index, (_, slot) in enumerate(kept)
        for job in range(len(jobs))
    ]
    found = [match for (match,) in _results(process, trials)]
    return [
        (support, found[index * len(jobs) : (index + 1) * len(jobs)])
        for index, (support, _) in enumerate(kept)
    ]


def in_sequence(
    process: CondorProcess,
    slots: Sequence[Ad],
    jobs: Sequence[Ad],
    *,
    num_claims: Optional[Sequence[Optional[int]]] = None,
    weight: str = DEFAULT_WEIGHT,
) -> list[list[Match]]:
    """What each slot makes of the jobs one after another, as in a cycle: each finds what those before it have left.

    A job that is refused takes nothing, and the next is tried. ``fits`` is 1 or 0. The parameters
    are those of `matches`.
    """
    kept = _keep(process, slots, jobs, weight, num_claims)
    trials = [
        (index, one_after_another(slot, range(len(jobs)))) for index, (_, slot) in enumerate(kept)
    ]
    return _results(process, trials)


def _asked(slot: Ad, charges: str) -> dict[str, object]:
    return {"ad": dict(slot), "charges": charges, "overrides": charges == _POLICY_POLICY}


def _support(fact: Mapping[str, object]) -> Support:
    assets = fact["assets"]
    charged = fact["charged"]
    assert isinstance(assets, dict)  # noqa: S101 - the child says so
    assert isinstance(charged, list)  # noqa: S101
    missing = tuple(asset for asset in assets if asset not in charged)
    partitionable = fact["partitionable"]
    is_partitionable = isinstance(partitionable, (bool, int, float)) and bool(partitionable)
    named = fact["resources"] is not None
    why_not = [
        reason
        for applies, reason in (
            (not is_partitionable, "PartitionableSlot is not true"),
            (not named, "MachineResources is no text"),
            *((True, f"no Consumption{asset}") for asset in missing),
        )
        if applies
    ]
    kind = (
        SlotKind.POLICY
        if not why_not
        else SlotKind.PARTITIONABLE
        if is_partitionable
        else SlotKind.STATIC
    )
    return Support(kind, assets, missing, tuple(why_not))


def _keep(
    process: CondorProcess,
    slots: Sequence[Ad],
    jobs: Sequence[Ad],
    weight: str,
    num_claims: Optional[Sequence[Optional[int]]],
) -> list[tuple[Support, Slot]]:
    """The slots, which the child keeps with what they take for jobs where they have no policy."""
    found = supports(process, slots, weight)
    kept = [
        _asked(slot, _POLICY_POLICY)
        if support.supported
        else _asked({**slot, **_policy_leftovers(support)}, _LEFTOVER)
        for slot, support in zip(slots, found)
    ]
    process.keep(kept, jobs, weight)
    caps = [None] * len(slots) if num_claims is None else num_claims
    return [(support, _slot(support, cap)) for support, cap in zip(found, caps)]


def _slot(support: Support, num_claims: Optional[int]) -> Slot:
    assets = {
        asset: whole_if_it_is(amount)
        for asset, amount in support.assets.items()
        if amount is not None
    }
    claims = {SlotKind.STATIC: 1, SlotKind.POLICY: num_claims}.get(support.kind)
    return Slot(assets, support.supported, support.kind is not SlotKind.STATIC, claims)


def _policy_leftovers(support: Support) -> dict[str, str]:
    """What a job takes of a slot without policy: all of a static one, whose assets its Requirements compare."""
    if support.kind is SlotKind.STATIC:
        return {f"{_LEFTOVER}{asset}": asset for asset in support.assets}
    return {
        f"{_LEFTOVER}{asset}": _LEFTOVERS.get(asset.lower(), _of_custom(asset))
        for asset in support.assets
    }


def _of_custom(asset: str) -> str:
    return f"ifThenElse(isUndefined(TARGET.Request{asset}), 0, TARGET.Request{asset})"


def _results(process: CondorProcess, trials: Sequence[tuple[int, Trial]]) -> list[list[Match]]:
    """What each trial, on the slot of that number, comes to; they all go on by a look at a time."""
    results: list[list[Match]] = [[] for _ in trials]
    asks = {number: (slot, *next(trial)) for number, (slot, trial) in enumerate(trials)}
    while asks:
        looks = _looks(process, list(asks.values()))
        for number, look in zip(list(asks), looks):
            slot, trial = trials[number]
            try:
                asks[number] = (slot, *trial.send(look))
            except StopIteration as ended:
                results[number] = ended.value
                del asks[number]
    return results


def _looks(
    process: CondorProcess, asks: Sequence[tuple[int, int, Optional[Mapping[str, Amount]]]]
) -> Iterator[Look]:
    for start in range(0, len(asks), _LOOKS_AT_ONCE):
        for weight, consumed, slot, job in process.looks(asks[start : start + _LOOKS_AT_ONCE]):
            yield Look(weight, consumed, slot, job)


MOST_CULPRITS = 5
"""Ads that may make HTCondor's library end or hang before all the others are given up too."""
SLOTS_AT_ONCE = 100
ANSWER_SECONDS = 20.0
"""Wait for an answer, which takes some 0.1 s."""
SEARCH_SECONDS = 4.0
"""The same while what hangs is searched for: that takes a dozen questions that hang."""
BLANK = -1

_SEEN_OF_SLOTS = (
    "partitionableslot",
    "machineresources",
    "slotweight",
    "requirements",
    "numclaims",
)
_SEEN_OF_JOBS = ("requirements",)
_KINDS_POLICY = ("consumption",)
_REQUESTS = ("request", "_condor_request")
EVERYTHING = "eval"
"""The function that can see attributes whose names are not written down."""

_UNSTEADY, _STEP = "disk", 1.01
"""The asset that differs from node to node and from minute to minute: steps of 1 % make no kinds of their own."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class Kind:
    """Ads that cannot be told apart."""

    ad: Ad
    """What can be seen of them."""
    members: tuple[int, ...]
    """Their numbers in the list that was sorted, ascending."""


def kinds(
    slots: Sequence[Ad], jobs: Sequence[Ad], apart: Sequence[str] = ()
) -> tuple[list[Kind], list[Kind]]:
    """Kinds of slots and of jobs, in the order of their first members.

    Parameters
    ----------
    apart
        Attributes, in lower case, that set slots or jobs apart though nothing refers to them.
    """
    of_slots = _Seen(slots, (*_SEEN_OF_SLOTS, *apart), _KINDS_POLICY)
    of_jobs = _Seen(jobs, (*_SEEN_OF_JOBS, *apart), _REQUESTS)
    words: set[str] = set()
    while True:
        grown = words | of_slots.words(words) | of_jobs.words(words)
        grown |= {word[len("request") :] for word in grown if word.startswith("request")}
        if grown == words:
            break
        words = grown
    return of_slots.kinds(words), of_jobs.kinds(words)


def words_of_slots(slots: Sequence[Ad]) -> set[str]:
    """Names, in lower case, by which slots may look at jobs; `EVERYTHING` among them if they may look at any."""
    of_slots = _Seen(slots, _SEEN_OF_SLOTS, _KINDS_POLICY)
    words: set[str] = set()
    while not (grown := of_slots.words(words)) <= words:
        words |= grown
    resources = {
        word.lower()
        for text in of_slots.texts.get("machineresources", ())
        for word in words_of_text(text)
    }
    return words | {f"request{resource}" for resource in resources}


class _Seen:
    """Ads of one sort, and which of their attributes can be seen."""

    def __init__(self, ads: Sequence[Ad], names: Iterable[str], prefixes: tuple[str, ...]) -> None:
        self.ads = ads
        self.texts: dict[str, set[str]] = {}
        for ad in ads:
            for name, text in ad.items():
                self.texts.setdefault(name.lower(), set()).add(text)
        self.first = {name for name in self.texts if name in names or name.startswith(prefixes)}

    def seen(self, words: set[str]) -> set[str]:
        return set(self.texts) if EVERYTHING in words else self.first | (words & set(self.texts))

    def words(self, words: set[str]) -> set[str]:
        return {
            word
            for name in self.seen(words)
            for text in self.texts[name]
            for word in words_of_text(text)
        }

    def kinds(self, words: set[str]) -> list[Kind]:
        seen = self.seen(words)
        found: dict[tuple[tuple[str, str], ...], list[int]] = {}
        for number, ad in enumerate(self.ads):
            key = tuple(
                sorted(
                    (name, _step(text) if name.lower() == _UNSTEADY else text)
                    for name, text in ad.items()
                    if name.lower() in seen
                )
            )
            found.setdefault(key, []).append(number)
        return [self._kind([name for name, _ in key], members) for key, members in found.items()]

    def _kind(self, names: Iterable[str], members: Sequence[int]) -> Kind:
        """What is seen of the member that has the least Disk."""
        least = self.ads[min(members, key=lambda member: number_of(self.ads[member], _UNSTEADY))]
        return Kind({name: least[name] for name in names}, tuple(members))


def _step(text: str) -> str:
    """``text`` if it is no number above 0, else which step that is in."""
    value = number_of({_UNSTEADY: text}, _UNSTEADY)
    return f"step {floor(log(value, _STEP))}" if isfinite(value) and value > 0 else text


@dataclass(frozen=True)
class Culprit:
    """An ad that HTCondor's library cannot bear."""

    is_slot: bool
    number: int
    problem: str


class Guard(Generic[Result]):
    """Asks for all slots and jobs; those that make the library end or hang are found and left out.

    Parameters
    ----------
    open_process
        A fresh process with a deadline, in seconds, for each of its answers.
    ask
        A row for each slot, with a result for each job; the job `BLANK` has no attributes.
    """

    def __init__(
        self,
        open_process: Callable[[float], CondorProcess],
        ask: Callable[[CondorProcess, Sequence[int], Sequence[int]], list[list[Result]]],
    ) -> None:
        self._open = open_process
        self._ask = ask
        self._process: Optional[CondorProcess] = None
        self._deadline_seconds = ANSWER_SECONDS
        self.culprits: list[Culprit] = []

    def results(self, slots: int, jobs: int) -> Mapping[tuple[int, int], Result]:
        """Result by numbers of slot and job; without those of `culprits`.

        Raises
        ------
        InputError
            If there are more than `MOST_CULPRITS` of those.
        """
        found: dict[tuple[int, int], Result] = {}
        try:
            for start in range(0, slots, SLOTS_AT_ONCE):
                self._of(range(start, min(start + SLOTS_AT_ONCE, slots)), range(jobs), found)
        finally:
            self._end()
        return found

    def _of(
        self, slots: Sequence[int], jobs: Sequence[int], found: dict[tuple[int, int], Result]
    ) -> None:
        slots, jobs = self._left(slots, is_slot=True), self._left(jobs, is_slot=False)
        if not slots or not jobs:
            return
        rows = self._tried(slots, jobs)
        if not isinstance(rows, str):
            found.update(
                ((slot, job), result)
                for slot, row in zip(slots, rows)
                for job, result in zip(jobs, row)
            )
        elif len(slots) > 1:
            for half in (slots[: len(slots) // 2], slots[len(slots) // 2 :]):
                self._of(half, jobs, found)
        elif len(jobs) > 1:
            for half in (jobs[: len(jobs) // 2], jobs[len(jobs) // 2 :]):
                self._of(slots, half, found)
        else:
            self._accuse(slots[0], jobs[0], rows)

    def _left(self, numbers: Sequence[int], *, is_slot: bool) -> list[int]:
        out = {culprit.number for culprit in self.culprits if culprit.is_slot is is_slot}
        return [number for number in numbers if number not in out]

    def _tried(self, slots: Sequence[int], jobs: Sequence[int]) -> list[list[Result]] | str:
        """Rows, or why there are none."""
        if self._process is None:
            self._process = self._open(self._deadline_seconds)
        try:
            return self._ask(self._process, slots, jobs)
        except UnreadableConfigurationError as error:
            self._end()
            self._deadline_seconds = SEARCH_SECONDS
            return str(error) or "HTCondor's library ended"

    def _accuse(self, slot: int, job: int, problem: str) -> None:
        alone = self._tried([slot], [BLANK])
        is_slot = isinstance(alone, str)
        self.culprits.append(Culprit(is_slot, slot if is_slot else job, problem))
        if len(self.culprits) > MOST_CULPRITS:
            advice = "leave them out with --constraint or --job-constraint"
            raise InputError(
                [f"more than {MOST_CULPRITS} ads make HTCondor's library end or hang; {advice}"]
            )

    def _end(self) -> None:
        if self._process is not None:
            self._process.__exit__(None, None, None)
            self._process = None


MOST_SHAPES = 500
"""Shapes of pending jobs that a schedd is asked for; those with the most jobs go first."""
MOST_ALONE = 1000
"""Jobs that are asked for one by one, in full, where they cannot be grouped."""
MOST_ROWS = 20_000
"""Of the schedd's answer."""

NO_SLOT = (7, 9, 12)
"""Universes whose jobs hold no slot of the pool: scheduler, grid, local."""
_PENDING = "JobStatus == 1"
_KEYS = ("JobStatus", "JobUniverse")
_PENDING_GROUP = "AccountingGroup"
_SEEN = ("Requirements", "RequestCpus", "RequestMemory", "RequestDisk", "RequestGPUs")
_JOB_ID = re.compile(r"\s*(\d{1,10})\.(\d{1,10})\b")


class Schedd(Protocol):
    """What is asked of the bindings' schedd."""

    def query(
        self, *, constraint: str, projection: Sequence[str] = ..., opts: Any = ..., limit: int = ...
    ) -> list[Any]:
        """Ads of jobs, or rows of groups of them."""


@dataclass(frozen=True)
class PendingShape:
    """Pending jobs that are alike."""

    ad: AdOfFile
    """One of them."""
    jobs: int


def shapes(
    schedd: Schedd, name: str, slots: Sequence[Mapping[str, str]], constraint: Optional[str]
) -> tuple[list[PendingShape], int]:
    """Shapes, those with the most jobs first, and how many jobs are left out.

    Parameters
    ----------
    name
        Of the schedd.
    slots
        What tells which attributes of jobs count.
    """
    keys = _keys(slots, constraint)
    rows = None if EVERYTHING in keys else _rows(schedd, keys, constraint)
    if rows is None:
        return _alone(schedd, name, constraint)
    _, alike = kinds(slots, [row.attributes for row in rows], apart=(_PENDING_GROUP.lower(),))
    counted = sorted(
        (
            (sum(rows[member].jobs for member in kind.members), rows[kind.members[0]].job_id)
            for kind in alike
        ),
        key=lambda each: -each[0],
    )
    found, left_out = [], sum(jobs for jobs, _ in counted[MOST_SHAPES:])
    for jobs, (cluster, proc) in counted[:MOST_SHAPES]:
        ads = schedd.query(constraint=f"ClusterId == {cluster} && ProcId == {proc}", limit=1)
        found += [PendingShape(_pending_ad(ad, name), jobs) for ad in ads]
        # It may just have gone, which says nothing of those like it.
        left_out += 0 if ads else jobs
    return found, left_out


@dataclass(frozen=True)
class _Row:
    """Jobs that the schedd cannot tell apart by the keys."""

    attributes: Mapping[str, str]
    job_id: tuple[int, int]
    """Of one of them."""
    jobs: int


def _keys(slots: Sequence[Mapping[str, str]], constraint: Optional[str]) -> list[str]:
    """Attributes to group by; the constraint's too, since the schedd asks it of the groups as well."""
    named = {name.lower() for name in (*_KEYS, _PENDING_GROUP, *_SEEN)}
    others = words_of_slots(slots) | words_of_text(constraint or "")
    return [*_KEYS, _PENDING_GROUP, *_SEEN, *sorted(others - named)]


def _rows(schedd: Schedd, keys: Sequence[str], constraint: Optional[str]) -> Optional[list[_Row]]:
    """Groups of pending jobs; None if there are too many, or one of them may be more than one shape."""
    import htcondor2

    found = []
    given = schedd.query(
        constraint=both(_PENDING, constraint),
        projection=list(keys),
        opts=htcondor2.QueryOpt.GroupBy,
        limit=MOST_ROWS,
    )
    for row in given:
        if evaluated(row, "JobUniverse") in NO_SLOT:
            continue
        attributes = from_long(row.printOld())
        job_id = _JOB_ID.match(str(row.get("JobIds")))
        # eval() sees what is no key.
        if job_id is None or any(EVERYTHING in words_of_text(text) for text in attributes.values()):
            return None
        found.append(
            _Row(attributes, (int(job_id[1]), int(job_id[2])), whole(row.get("JobCount"), 0))
        )
    return found if len(given) < MOST_ROWS else None


def _alone(schedd: Schedd, name: str, constraint: Optional[str]) -> tuple[list[PendingShape], int]:
    """Jobs one by one."""
    asked = " && ".join((_PENDING, *(f"JobUniverse =!= {universe}" for universe in NO_SLOT)))
    asked = both(asked, constraint)
    found = [
        PendingShape(_pending_ad(ad, name), 1)
        for ad in schedd.query(constraint=asked, limit=MOST_ALONE)
    ]
    every = (
        len(schedd.query(constraint=asked, projection=["ClusterId"]))
        if len(found) == MOST_ALONE
        else 0
    )
    return found, max(0, every - len(found))


def _pending_ad(ad: Any, schedd: str) -> AdOfFile:
    return AdOfFile(
        f"job {ad.get('ClusterId')}.{ad.get('ProcId')} of {schedd}", from_long(ad.printOld())
    )


def both(one: str, other: Optional[str]) -> str:
    """Constraint that is true where both are."""
    return f"({one}) && ({other})" if other else one


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
    # Slots that can be told apart only by what nobody evaluates, and jobs of one shape but
    # different groups.
    job_ads = [
        {**job.ad.attributes, "_sharectl_group": f'"{job.accounting_group}"'} for job in jobs
    ]
    slot_kinds, job_kinds = kinds(
        slot_ads, job_ads, apart=("state", "slottypeid", "_sharectl_group")
    )
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
        _priced(
            slots, slot_kinds[slot].members, slot_kinds[slot].ad, supports[slot], weights.get(slot)
        )
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
            f"{priced[renumbered[slot]].names[0]}: claims are counted up to {most} a slot; it "
            "may have more"
            for slot in sorted(
                {slot for (slot, _), (_, match) in found.items() if match.at_least and most > 1}
            )
        )
        + tuple(
            f"{_place(given[sorts[culprit.number].members[0]])}: left out, with "
            f"{len(sorts[culprit.number].members) - 1} "
            f"like it: HTCondor's library cannot evaluate it: {culprit.problem}"
            for given, sorts, culprit in culprits
        ),
    )


def smallest_offers(
    slots: Sequence[AdOfFile],
) -> tuple[list[tuple[PricedSlots, Optional[Offer]]], tuple[str, ...]]:
    """What each kind of slot makes of the smallest request that it matches, and notes of ads that are left out.

    The request is `SMALLEST`, or that and one of each custom resource if it takes nothing.
    Requirements are of no account.
    """
    resources = {
        word
        for slot in slots
        for word in text_of(slot.attributes, "MachineResources").replace(",", " ").split()
    }
    custom = {
        f"Request{name}": "1"
        for name in sorted(resources)
        if name.lower() not in (*_STANDARD, "swap")
    }
    bare = [
        AdOfFile(
            slot.place,
            {
                name: text
                for name, text in slot.attributes.items()
                if name.lower() != "requirements"
            },
        )
        for slot in slots
    ]
    jobs = [
        AdOfFile("smallest", SMALLEST),
        AdOfFile("with custom resources", {**SMALLEST, **custom}),
    ]
    priced = price(bare, [Jobs(job) for job in jobs[: 1 + bool(custom)]], MOST_CLAIMS)
    return [
        (slots_of_kind, _smallest(priced, number, slots_of_kind))
        for number, slots_of_kind in enumerate(priced.slots)
    ], priced.notes


def _smallest(priced: Priced, number: int, slots: PricedSlots) -> Optional[Offer]:
    """The offer of the first request that can be counted: one that was refused for want of assets is 0 claims."""
    matches = [
        priced.matches[number, job]
        for job in range(len(priced.jobs))
        if (number, job) in priced.matches
    ]
    counted = [
        match for match in matches if all(reason.why is Refusal.SHORT for reason in match.refused)
    ]
    return (
        Offer(len(slots.names), counted[0], slots.support.supported, slots.partitionable)
        if counted
        else None
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
            [
                (
                    f"HTCondor's library cannot evaluate these slots with these jobs: {error}; try "
                    "fewer of them"
                )
            ]
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
    named = [
        group_of(jobs.accounting_group, [group.name for group in groups]) for jobs in priced.jobs
    ]
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
    return (
        sum(weights)
        if weights and all(isinstance(weight, (int, float)) for weight in weights)
        else None
    )


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
                (
                    f"{option}: {constraint!r} is no expression of HTCondor; write such as Cpus >= "
                    '8 && Arch == "X86_64"'
                )
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
    return CondorProcess(deadline_seconds=deadline_seconds)


def _priced(
    slots: Sequence[AdOfFile],
    members: Sequence[int],
    ad: Ad,
    support: Support,
    weight: Optional[float],
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


def on_empty(
    slots: Sequence[AdOfFile], jobs: Sequence[Jobs], priced: Priced
) -> Mapping[tuple[int, int], Match]:
    """The match with the emptied slot, by the pairs of ``priced`` that make none as the slot is.

    Where slots of a kind differ when they are empty it is that of one that takes the job, if there
    is one.
    """
    pairs = {
        pair
        for pair, match in priced.matches.items()
        if match.refused or priced.slots[pair[0]].state
    }
    if not pairs:
        return {}
    slot_numbers = _numbers(
        (number, priced.slots[number].names) for number in {slot for slot, _ in pairs}
    )
    job_numbers = _numbers(
        (number, priced.jobs[number].names) for number in {job for _, job in pairs}
    )
    empty = price(
        [
            when_empty(slot)
            for slot in slots
            if (text_of(slot.attributes, "Name") or slot.place) in slot_numbers
        ],
        [job for job in jobs if job.ad.place in job_numbers],
        1,
    )
    found: dict[tuple[int, int], Match] = {}
    for (slot, job), match in empty.matches.items():
        for pair in _pairs(
            empty.slots[slot].names, empty.jobs[job].names, slot_numbers, job_numbers
        ):
            if pair in pairs and (pair not in found or not match.refused):
                found[pair] = match
    return found


def _numbers(named: Iterable[tuple[int, Sequence[str]]]) -> Mapping[str, set[int]]:
    """Numbers of the kinds that have a member of that name."""
    numbers: defaultdict[str, set[int]] = defaultdict(set)
    for number, names in named:
        for name in names:
            numbers[name].add(number)
    return numbers


def _pairs(
    slots: Sequence[str],
    jobs: Sequence[str],
    slot_numbers: Mapping[str, set[int]],
    job_numbers: Mapping[str, set[int]],
) -> set[tuple[int, int]]:
    own_slots = set().union(*(slot_numbers[name] for name in slots))
    own_jobs = set().union(*(job_numbers[name] for name in jobs))
    return {(slot, job) for slot in own_slots for job in own_jobs}


_LIVE_GROUP = re.compile(r"[\w.]+", re.ASCII)
_NOT_DYNAMIC = 'SlotType =!= "Dynamic"'


@dataclass(frozen=True)
class PoolAds:
    """What a pool answered."""

    slots: tuple[AdOfFile, ...]
    """Partitionable and static ones."""
    groups: tuple[AdOfFile, ...]
    """Accounting ads of groups; none if the negotiator advertises none."""
    schedds: tuple[Mapping[str, str], ...]
    """Location of each."""


@dataclass(frozen=True)
class PoolPlace:
    """Where a pool is, and for how long its daemons are waited for."""

    collector: Optional[str] = None
    """Address; None for the pool of this machine's HTCondor configuration."""
    collector_deadline_seconds: float = 20
    schedd_deadline_seconds: float = 60


def look(place: PoolPlace, constraint: Optional[str]) -> PoolAds:
    """Slots that meet ``constraint``, groups, and where the schedds are.

    Raises
    ------
    PoolUnavailableError
        If the collector does not answer.
    """
    # Loaded before the questions fork, or each of them would load it anew.
    import htcondor2  # noqa: F401

    question = Question(
        partial(_collector, place.collector, constraint),
        place.collector_deadline_seconds,
        partial(why_collector, place.collector),
    )
    answer = ask_all({"collector": question})["collector"]
    if answer.value is None:
        raise PoolUnavailableError(
            f"collector: {with_address(place.collector, answer.source.problem or '')}"
        )
    known: PoolAds = answer.value
    return known


def pending(
    place: PoolPlace,
    schedds: Iterable[Mapping[str, str]],
    slots: Iterable[AdOfFile],
    constraint: Optional[str],
) -> tuple[list[PendingShape], list[str]]:
    """Shapes of pending jobs that meet ``constraint``, and what is missing: a schedd that did not answer, jobs left out.

    Parameters
    ----------
    slots
        Those that the jobs are for: which attributes of jobs count is theirs to say.
    """
    import htcondor2  # noqa: F401

    looking = [slot.attributes for slot in slots]
    questions = {
        f"{SCHEDD_SOURCE}{schedd['Name']}": Question(
            partial(_shapes, schedd, looking, constraint),
            place.schedd_deadline_seconds,
            partial(why_daemon, schedd, "SCHEDD"),
        )
        for schedd in schedds
    }
    found: list[PendingShape] = []
    missing: list[str] = []
    for name, answer in ask_all(questions).items():
        if answer.value is None:
            missing.append(f"{name}: {answer.source.problem}; its jobs are missing here")
            continue
        of_schedd, left_out = answer.value
        found += of_schedd
        if left_out:
            missing.append(
                f"{name}: {counted(left_out, 'job')} left out, those of rarer shapes; restrict "
                "it with --job-constraint"
            )
    return found, missing


def leftovers(place: PoolPlace, schedds: Iterable[Mapping[str, str]]) -> Optional[bool]:
    """Whether an access point uses leftovers (CLAIM_PARTITIONABLE_LEFTOVERS).

    None if one of them did not answer, or there is none, and no other does.
    """
    import htcondor2  # noqa: F401

    questions = {
        schedd["Name"]: Question(partial(_live_leftovers, schedd), place.schedd_deadline_seconds)
        for schedd in schedds
    }
    told = [answer.value for answer in ask_all(questions).values()]
    return True if True in told else False if told and None not in told else None


def static_quotas(place: PoolPlace, groups: Iterable[str]) -> dict[str, float]:
    """GROUP_QUOTA_<group> of those groups that have one, as the pool's one negotiator tells it; none if it does not."""
    import htcondor2  # noqa: F401

    question = Question(
        partial(_static_quotas, place.collector, tuple(groups)), place.collector_deadline_seconds
    )
    return ask_all({"negotiator": question})["negotiator"].value or {}


def _static_quotas(collector: Optional[str], groups: Iterable[str]) -> dict[str, float]:
    try:
        told = {knob.name.lower(): knob.value for knob in quota_knobs(collector_at(collector))}
    except PoolUnavailableError:
        return {}
    found = {
        group: number_of({"quota": told.get(f"group_quota_{group.lower()}", "none")}, "quota")
        for group in groups
        if _LIVE_GROUP.fullmatch(group)
    }
    return {group: quota for group, quota in found.items() if isfinite(quota) and quota >= 0}


def _live_leftovers(location: Mapping[str, str]) -> Optional[bool]:
    import classad2
    import htcondor2

    told = htcondor2.RemoteParam(classad2.ClassAd(dict(location)))["CLAIM_PARTITIONABLE_LEFTOVERS"]
    return boolean_here(str(told))


def _collector(address: Optional[str], constraint: Optional[str]) -> PoolAds:
    import htcondor2

    asked = htcondor2.Collector(address) if address else htcondor2.Collector()
    slots = asked.query(htcondor2.AdType.Slot, constraint=both(_NOT_DYNAMIC, constraint))
    groups = asked.query(htcondor2.AdType.Accounting, constraint="IsAccountingGroup")
    schedds = asked.query(htcondor2.AdType.Schedd, projection=list(LOCATION))
    return PoolAds(
        slots=tuple(_live_ad(ad, "slot") for ad in slots),
        groups=tuple(_live_ad(ad, "group") for ad in groups),
        schedds=tuple({name: str(ad[name]) for name in LOCATION if name in ad} for ad in schedds),
    )


def _live_ad(ad: Any, sort: str) -> AdOfFile:
    return AdOfFile(f"{sort} {ad.get('Name')}", from_long(ad.printOld()))


def _shapes(
    location: Mapping[str, str], slots: Sequence[Mapping[str, str]], constraint: Optional[str]
) -> tuple[list[PendingShape], int]:
    import classad2
    import htcondor2

    schedd = htcondor2.Schedd(classad2.ClassAd(dict(location)))
    return shapes(schedd, location["Name"], slots, constraint)


@dataclass(frozen=True)
class Sort:
    """A sort of ads."""

    option: str
    """That names a file of them."""
    types: tuple[str, ...]
    """MyType, in lower case."""
    marks: tuple[str, ...]
    """What names of attributes begin with, in lower case: an ad without MyType has one of these."""
    others: tuple[str, ...]
    """And none of these."""
    made_by: str


_OF_JOBS = ("clusterid", "jobstatus", "jobuniverse", "request")
_OF_SLOTS = ("slottype", "machineresources", "totalslotcpus", "slotweight")
SLOTS = Sort(
    "--slots",
    ("machine", "slot"),
    (*_OF_SLOTS, "cpus", "memory", "disk", "partitionableslot"),
    ("clusterid", "jobstatus", "jobuniverse"),
    "condor_status -long",
)
JOBS = Sort(
    "--jobs",
    ("job",),
    (*_OF_JOBS, "requirements", "acctgroup", "accountinggroup"),
    _OF_SLOTS,
    "condor_q -all -long",
)


def checked(ads: Sequence[AdOfFile], sort: Sort) -> Sequence[AdOfFile]:
    """The ads, all of them of that sort.

    Raises
    ------
    InputError
        If one says by its MyType that it is something else, or has none and does not look like one.
    """
    problems = Problems()
    for ad in ads:
        if problem := _problem(ad, sort):
            problems.add(ad.place, f"{problem}; give {sort.option} what {sort.made_by} prints")
    if problems:
        raise InputError(problems.lines())
    return ads


def _problem(ad: AdOfFile, sort: Sort) -> str:
    told = text_of(ad.attributes, "MyType")
    if told:
        return (
            ""
            if told.lower() in sort.types
            else f"MyType is {told[:40]!r}, not {sort.types[0].capitalize()!r}"
        )
    names = {name.lower() for name in ad.attributes}
    if any(name.startswith(sort.marks) for name in names) and not names & set(sort.others):
        return ""
    return f"no MyType, and no attributes of a {sort.option[2:-1]}"
