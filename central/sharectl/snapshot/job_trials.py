"""Pending jobs tried on the slots of their pool as if nothing ran there, by HTCondor's own library.

A job's expressions may be anything: they are evaluated in a child with a deadline, with at most
`MOST_MEMORY_BYTES`, and with a budget for each user (`sharectl.condor.accounts`). A job is
*unplaceable* if its Requirements are false or undefined on every empty slot, or those of every slot
are false for it, and *later* if clauses on time alone keep it out (`sharectl.condor.clock`). An
error, or what changes from minute to minute, counts as placeable.

Jobs beyond the budget of their user are no demand: those that no slot takes would hold cores idle,
and a job too few costs its user little, because others of its size are tried.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from math import floor, log
from typing import Any, NamedTuple, Optional

from sharectl.condor import accounts, ad_rows
from sharectl.condor.accounts import LATER, OVER, PLACEABLE, TRYING, UNPLACEABLE, UNTRIED
from sharectl.condor.ad_rows import AdRow, long_of, names_reached, row_of
from sharectl.condor.ads import ad_of_long, expression, is_refusal, value_of
from sharectl.condor.clock import OF_SLOTS, ON_TIME, clocked, is_momentary, moments
from sharectl.condor.deadline import Answer, Question, ask_all
from sharectl.condor.expressions import alternatives, conjunction, words_of_text
from sharectl.model import OTHER, ClosedTo, Kind
from sharectl.snapshot.closed_nodes import Refusals, Slots, WaitingJob, by_machine
from sharectl.snapshot.schedd_jobs import JobKind, JobShape, Shapes
from sharectl.snapshot.slot_groups import SlotGroups, SlotQuery, clauses_in

TRIAL_SECONDS = 10.0
"""Deadline of a trial of all jobs, which takes some 0.6 s on 2,000 nodes."""
CLOSED_SECONDS = 2.0
"""Processor time after which nodes count as open to kinds of jobs that were not looked at yet."""
ACCEPTS, OPEN = "t1_slotaccepts", "t1_slotopen"
"""Attributes that an emptied slot gets: its lasting clauses, and those on time."""
WANTS, DUE = "t1_jobwants", "t1_jobdue"
"""Attributes that a job gets: its lasting clauses, and those on time."""
_JOIN = f"MY.{WANTS} && (TARGET.{ACCEPTS} =!= false)"
_NOW = f"{_JOIN} && MY.{DUE} && (TARGET.{OPEN} =!= false)"
_NUMBER = re.compile(r"\d{4,}(?:\.\d*)?")
_STEP = 1.03
"""Numbers from 1000 on within about this ratio make no kinds of slots."""
_LOCAL_TIME = ("clockmin", "clockday")
_OF_ANY_SLOT = (
    "Requirements", "WithinResourceLimits", "MachineResources", "Machine", *OF_SLOTS
)  # fmt: skip
_NEGOTIATORS = ("submitter", "submittor")
"""How attributes begin that only a negotiator gives a job, while it looks for its slot."""
_REQUESTS = ("requestcpus", "requestmemory", "requestdisk")
_REQUEST = re.compile(r"request(\w+)", re.ASCII)
_ATTRIBUTE = re.compile(r"[a-z_]\w*", re.ASCII)
BY_EXPRESSION = "AccountingGroup is an expression"
"""In the place of the clause that keeps jobs out of all nodes that have targets for them."""

GroupOf = Callable[[Optional[str]], str]
"""Returns the configured group of an AccountingGroup."""
CoresOf = Callable[[JobKind], Iterable[int]]
"""Returns the cores that jobs come to on slots."""
Closed = Mapping[str, tuple[ClosedTo, ...]]
"""Machine -> kinds of jobs to which it is closed, see `sharectl.snapshot.closed_nodes`."""


class Trial(NamedTuple):
    """Result of a trial."""

    unplaceable: tuple[JobShape, ...] = ()
    later: tuple[JobShape, ...] = ()
    """Jobs that only clauses on time keep out now."""
    untried: Optional[str] = None
    """Why pending jobs, or some of them, were not tried, and count as placeable; or None."""
    over: tuple[JobShape, ...] = ()
    """Jobs for which the budget of their user was not enough."""
    closed: Mapping[str, tuple[ClosedTo, ...]] = {}


def ask_both(
    plain: Mapping[str, Question], shaped: Mapping[str, Question]
) -> tuple[dict[str, Answer], list[Answer]]:
    """Answers of schedds with their `ScheddJobs`, and those with their `Shapes`.

    Questions for shapes have a third of the deadline. Where one leaves the jobs open, the plain one
    has the rest: trouble with shapes must not hide the jobs.
    """
    third = {
        name: question._replace(
            deadline_seconds=question.deadline_seconds / 3, more_bytes=accounts.MOST_MEMORY_BYTES
        )
        for name, question in shaped.items()
    }
    shapes = ask_all(third)
    counted = {
        name: answer._replace(value=answer.value.jobs)
        for name, answer in shapes.items()
        if answer.value is not None and answer.value.jobs is not None
    }
    part = 2 / 3 if shaped else 1
    unanswered = {
        name: question._replace(deadline_seconds=part * question.deadline_seconds)
        for name, question in plain.items()
        if name not in counted
    }
    every = {**counted, **ask_all(unanswered)}
    return {name: every[name] for name in plain}, list(shapes.values())


def tried(
    look: SlotQuery,
    answers: Sequence[Answer],
    deadline_seconds: float = TRIAL_SECONDS,
    group_of: GroupOf = lambda _: OTHER,
    cores_of: CoresOf = lambda kind: (kind.cores,),
) -> Trial:
    """Trial of the shapes of all schedds, which are answers of `shapes_of`, on the slots."""
    queues: list[Shapes] = [answer.value for answer in answers if answer.value is not None]
    every = [shape for queue in queues for shape in queue.shapes]
    by_ad: dict[str, list[JobShape]] = {}
    for shape in _in_turn(every, group_of):
        if shape.ad:
            by_ad.setdefault(shape.ad, []).append(shape)
    attributes = [queue.attributes for queue in queues if queue.attributes is not None]
    common = frozenset.intersection(*attributes) if attributes else frozenset()
    of_jobs = frozenset(name for name in common if not name.startswith(_NEGOTIATORS))
    silent = [answer.source for answer in answers if answer.value is None]
    complete = not silent and all(queue.complete for queue in queues)
    kinds = _by_kind(every, list(by_ad), group_of, cores_of) if complete else {}
    # Jobs that are alike cost the one of their users who has the fewest.
    users = [shapes[0].user for shapes in by_ad.values()]
    budgets = accounts.UserBudgets(users)
    nothing: tuple[Closed, bool] = ({}, False)
    (closed, skipped), problem = nothing, None
    if by_ad:
        try_all = partial(_try_all, look, of_jobs, list(by_ad), users, kinds)
        answer = accounts.answer_within(budgets, try_all, deadline_seconds, nothing)
        (closed, skipped), problem = answer
    by_result: defaultdict[int, list[JobShape]] = defaultdict(list)
    for result, shapes in zip(budgets.results[: len(by_ad)], by_ad.values()):
        by_result[result] += shapes
    has_untried = bool(by_result[UNTRIED] or by_result[TRYING])
    has_untried |= any(shape.ad is None and not shape.over for shape in every)
    first = f"{silent[0].name}: {silent[0].problem}" if silent else problem
    why = None
    if first or has_untried or skipped or not complete:
        reason = first or "they are too many, or have just changed"
        why = f"not all pending jobs were tried on the nodes ({reason})"
    over = (*by_result[OVER], *(shape for shape in every if shape.over))
    return Trial(tuple(by_result[UNPLACEABLE]), tuple(by_result[LATER]), why, over, closed)


def _in_turn(shapes: Sequence[JobShape], group_of: GroupOf) -> list[JobShape]:
    """Shapes of configured groups first, then of users who have few; of a user the short first.

    Ads that are made to cost much are long, or many, as a rule.
    """
    of_user = Counter(shape.user for shape in shapes)

    def turn(shape: JobShape) -> tuple[Any, ...]:
        is_other, ad = group_of(shape.kind.account) == OTHER, shape.ad or ""
        return (is_other, of_user[shape.user], shape.user, len(ad), ad)

    return sorted(shapes, key=turn)


def _by_kind(
    shapes: Iterable[JobShape], ads: Sequence[str], group_of: GroupOf, cores_of: CoresOf
) -> dict[Kind, list[int]]:
    """Kind of jobs that could be helped -> numbers of its ads, if all of them may be tried.

    Jobs that START does not know under a target open no node: their ads are not among them.
    """
    numbers = {ad: number for number, ad in enumerate(ads)}
    kinds: dict[Kind, set[int]] = {}
    untried: set[Kind] = set()
    for shape in shapes:
        if shape.over:
            continue  # no demand, which closes and opens no node
        for cores in cores_of(shape.kind):
            kind = (group_of(shape.kind.account), cores)
            may_be_tried = kinds.setdefault(kind, set())
            if not shape.ad:
                untried.add(kind)
            elif shape.start_knows:
                may_be_tried.add(numbers[shape.ad])
    return {kind: sorted(kinds[kind]) for kind in kinds if kind not in untried and kind[0] != OTHER}


def _try_all(
    look: SlotQuery,
    of_jobs: frozenset[str],
    ads: Sequence[str],
    users: Sequence[str],
    kinds: Mapping[Kind, Sequence[int]],
    budgets: accounts.UserBudgets,
) -> tuple[Closed, bool]:
    """Set the result of each ad as soon as it is there; returns what `_closed` does.

    An ad that costs too much ends this process, also while the library evaluates.
    """
    now, results = int(time.time()), budgets.results
    jobs = [PendingJob(ad, now) for ad in ads]
    machines = Machines(look, of_jobs, jobs, now, users)
    for number, job in enumerate(jobs):
        if results[number] != UNTRIED:
            continue
        if budgets.remaining_seconds(number) <= 0 or number in machines.over:
            results[number] = OVER
        elif job.words <= machines.attributes:
            with budgets.trying(number):
                result = machines.result_of(job)
            results[number] = result
    return _closed(Slots(machines.rows, of_jobs), jobs, kinds, budgets) if kinds else ({}, False)


def _closed(
    slots: Slots,
    jobs: Sequence[PendingJob],
    kinds: Mapping[Kind, Sequence[int]],
    budgets: accounts.UserBudgets,
) -> tuple[Closed, bool]:
    """Machines closed to all jobs of a kind, if all could be tried; True if kinds are left out."""
    refused: dict[Kind, Refusals] = {}
    ends = time.process_time() + CLOSED_SECONDS
    # In the order of their jobs: kinds of costly jobs come last.
    for kind, numbers in sorted(kinds.items(), key=lambda item: tuple(item[1][-1:])):
        if not numbers:
            refused[kind] = dict.fromkeys(slots.machines, BY_EXPRESSION)
        results = [budgets.results[number] for number in numbers]
        if not {PLACEABLE, UNPLACEABLE, LATER, OVER}.issuperset(results):
            continue
        everywhere: Optional[Refusals] = None
        for number in (n for n in numbers if budgets.results[n] == PLACEABLE):
            if budgets.remaining_seconds(number) <= 0:
                everywhere = {}  # in doubt a node is open
            if everywhere == {}:
                break
            with budgets.trying(number):
                job = WaitingJob(jobs[number].text, jobs[number].row, jobs[number].wants)
                everywhere = slots.refusals(job, everywhere)
            budgets.results[number] = PLACEABLE
            if time.process_time() > ends:
                return by_machine(refused), True
        refused.setdefault(kind, everywhere or {})
    return by_machine(refused), False


class PendingJob:
    """Pending jobs that are alike."""

    def __init__(self, text: str, now: int) -> None:
        self.row = clocked(row_of(text), now)
        self.text = long_of(self.row)
        self.words: frozenset[str] = frozenset().union(*map(words_of_text, self.row.values()))

    @cached_property
    def wants(self) -> list[str]:
        """Clauses of its Requirements."""
        return list(dict.fromkeys(clause.text for clause in ad_rows.clauses_of(self.row)))


class Machines:
    """Kinds of slots, as the jobs of a trial tell them apart."""

    def __init__(
        self,
        look: SlotQuery,
        of_jobs: frozenset[str],
        jobs: Sequence[PendingJob],
        now: int,
        users: Sequence[str],
    ) -> None:
        """Ask for the slots at Unix time ``now``; ``of_jobs`` are attributes that jobs tell.

        ``attributes`` and ``over`` are as of `affordable_words`: jobs that look at other attributes
        are not tried.
        """
        self.attributes, self.over = accounts.affordable_words((job.words for job in jobs), users)
        requests = map(_REQUEST.fullmatch, {*self.attributes, *of_jobs, *_REQUESTS})
        totals = (f"TotalSlot{match[1]}" for match in requests if match)
        of_slots = filter(_ATTRIBUTE.fullmatch, self.attributes)
        # Nodes have most texts in common, and one string is enough for all.
        self.rows = [
            {sys.intern(name): sys.intern(text) for name, text in row_of(ad).items()}
            for ad in look([*_OF_ANY_SLOT, *totals, *of_slots])
        ]
        rows = [clocked(row, now) for row in self.rows]
        self._slots = SlotGroups([(row, policy_of(row, of_jobs), ()) for row in rows], stepped)
        unsure = frozenset().union(*map(unsure_of, rows))
        self._moments = frozenset().union(*map(moments, rows))
        """Points in time, which the slots renew."""
        names = self.attributes.union(self._slots.texts)
        reached = {name: self._slots.reached([name]) for name in names}
        late = (name for name, words in reached.items() if not ON_TIME.isdisjoint(words))
        self._on_time = ON_TIME.union(late)
        self._momentary = frozenset(
            name
            for name, words in reached.items()
            if any(is_momentary(word) or word in unsure for word in words)
            or (name in self._on_time and not self._moments.isdisjoint(words))
        )

    def result_of(self, job: PendingJob) -> int:
        """Result of a job: `PLACEABLE` if an empty slot could run it, or if that is not certain."""
        ad = self._ad_of(job)
        slots = self._slots.of(self._slots.reached(job.words) - self._momentary)
        for join, result in ((_NOW, PLACEABLE), (_JOIN, LATER)):
            tree = expression(join)
            for place, slot in enumerate(slots):
                if not is_refusal(value_of(tree, ad, slot.ad)):
                    slots.insert(0, slots.pop(place))  # the next job may match it too
                    return result
        return UNPLACEABLE

    def _ad_of(self, job: PendingJob) -> Any:
        """Ad in which lasting clauses, and those on time, have names; others do not count."""
        parts: dict[str, list[str]] = {WANTS: [], DUE: []}
        for clause in job.wants:
            reached = names_reached(words_of_text(clause), job.row)
            is_on_time = not self._on_time.isdisjoint(reached)
            aged = is_on_time and not self._moments.isdisjoint(reached)
            if aged or not self._momentary.isdisjoint(reached):
                continue
            parts[DUE if is_on_time else WANTS].append(clause)
            if is_on_time:  # no time brings an attribute that it lacks
                ways = (f"({way}) isnt undefined" for way in alternatives(clause))
                parts[WANTS].append(" || ".join(ways))
        joined = {name: conjunction(part) for name, part in parts.items()}
        return ad_of_long(long_of({**job.row, **joined}))


@lru_cache(maxsize=100_000)
def stepped(name: str, text: str) -> str:
    """``text``, or the step of a large number; disks differ on each node, so are one."""
    if not _NUMBER.fullmatch(text):
        return text
    return "~" if "disk" in name else f"~{floor(log(float(text), _STEP))}"


def policy_of(row: AdRow, of_jobs: frozenset[str]) -> dict[str, str]:
    """`ACCEPTS` and `OPEN` of a slot, and what they see of it when nothing runs there.

    They are its clauses that ask something of jobs and last, and those on time; none that looks at
    an attribute that the slot lacks, maybe for a moment, or that is not ``of_jobs`` (lower case).
    """
    free, unsure = ad_rows.emptied(row), unsure_of(row)
    aged = moments(free)
    parts: dict[str, list[str]] = {ACCEPTS: [], OPEN: []}
    seen = set(ad_rows.resources_of(row))
    for clause in clauses_in(free):
        if clause.code not in ("site-start", "slot-requirements"):
            continue
        on_time = not ON_TIME.isdisjoint(clause.of_slot | clause.words)
        momentary = (
            any(is_momentary(name) or name in unsure for name in clause.of_slot)
            or not ad_rows.FUNCTIONS.isdisjoint(clause.words)
            or (on_time and not aged.isdisjoint(clause.of_slot))
        )
        asks = (clause.of_job or on_time) and not momentary
        if asks and clause.of_slot <= free.keys() and clause.of_job <= of_jobs:
            seen |= clause.of_slot
            parts[OPEN if on_time else ACCEPTS].append(clause.text)
    joined = {name: conjunction(part) for name, part in parts.items()}
    return {**{name: free[name] for name in seen if name in free}, **joined}


def unsure_of(row: AdRow) -> frozenset[str]:
    """Attributes, in lower case, of which a clocked slot does not tell what they will be.

    Resources of which it does not say how much it has in all, and a local time that stands still.
    """
    local = (name for name in _LOCAL_TIME if ad_rows.LITERAL.fullmatch(row.get(name, "0")))
    unknown = (name for name in ad_rows.resources_of(row) if f"totalslot{name}" not in row)
    return frozenset([*unknown, *local])
