"""Pending jobs tried on the slots of their pool as if nothing ran there, by HTCondor's own library.

A job's expressions may be anything: they are evaluated in a child that is killed at its deadline,
may not take more memory than `MOST_MEMORY_BYTES`, and may spend `SHAPE_SECONDS` of processor time
on jobs that are alike. A job is *unplaceable* if its Requirements are false or undefined on every
slot, or those of every slot are false for it: the negotiator's rule. A job that clauses on time
alone keep out is *later* (`sharectl.condor.clock`). An error, or something else that changes from
minute to minute, counts as placeable.
"""

from __future__ import annotations

import mmap
import re
import signal
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Callable, NamedTuple, Optional, TypeVar

from sharectl.condor.accounts import ACCOUNT, charged
from sharectl.condor.ad_rows import (
    LITERAL,
    Row,
    clauses_of,
    long_of,
    names_reached,
    row_of,
)
from sharectl.condor.ads import ad_of_long, expression, is_refusal, value_of
from sharectl.condor.clock import OF_SLOTS, ON_TIME, clocked, moments
from sharectl.condor.closed_nodes import Refusals, Slots, WaitingJob, by_machine
from sharectl.condor.daemons import CLUSTER, autoclusters, grouped
from sharectl.condor.deadline import Answer, Question, ask_all
from sharectl.condor.expressions import alternatives, words_of_text
from sharectl.condor.schedd_jobs import (
    COUNTED_KEYS,
    IS_PENDING,
    NO_SLOT,
    PARALLEL,
    Kind,
    ScheddJobs,
    counted_jobs,
    dedicated,
    kind_of,
    number_in,
)
from sharectl.condor.slot_kinds import ACCEPTS, OPEN, asking, is_momentary, kinds, unsure_of
from sharectl.model import OTHER, ClosedTo
from sharectl.model import Kind as GroupKind

T = TypeVar("T")

MOST_ROWS = 4000
"""Of the answer of a schedd; jobs beyond count as before."""
MOST_CHARACTERS = 20_000
"""Of an ad that is tried."""
MOST_MEMORY_BYTES = 2**28
TRIAL_SECONDS = 10.0
"""Deadline of a trial of all jobs, which takes some 0.6 s on 2,000 nodes."""
SHAPE_SECONDS = 1.0
CLOSED_SECONDS = 2.0
"""Processor time after which nodes count as open to kinds of jobs that were not looked at yet."""
MOST_CULPRITS = 5
"""Shapes that may end the process of a trial before the rest is left untried."""
MOST_VIEWS = 50
"""Sets of attributes that jobs look at for which kinds of slots are kept in memory."""
MOST_WORDS = 500
"""Attributes of slots that are asked for; jobs that look at others are left untried."""
WANTS, DUE = "t1_jobwants", "t1_jobdue"
"""Attributes that a job gets: its lasting clauses, and those on time."""
_JOIN = f"MY.{WANTS} && (TARGET.{ACCEPTS} =!= false)"
_NOW = f"{_JOIN} && MY.{DUE} && (TARGET.{OPEN} =!= false)"
_PARTLY_FREE = (("cpus",), ("memory",), ("cpus", "memory"))
"""Resources of which a slot has no more than a job requests: clauses may want few of them free."""
_AT_LEAST = re.compile(
    r"(?:TARGET\.)?(\w+) >= (?:MY\.)?Request\1\b|(?:TARGET\.)?(?:_condor_)?Request(\w+) <= "
    r"(?:MY\.)?\2\b|MY\.\w+ > 0|\b1 <= MY\.Cpus\b",
    re.IGNORECASE,
)
"""Usual conditions, to which an empty slot is as good as a partly free one."""
_OF_ANY_SLOT = (
    "Requirements", "WithinResourceLimits", "MachineResources", "Machine", *OF_SLOTS
)  # fmt: skip
_ATTRIBUTES = "AutoClusterAttrs"
"""Attribute of a job: names of those by which its negotiator tells jobs apart."""
_NEGOTIATORS = ("submitter", "submittor")
"""How attributes begin that only a negotiator gives a job, while it looks for its slot."""
_OF_ROWS = frozenset(("id", "jobids", "jobcount", "autoclusterid"))
"""Attributes that the schedd adds to those of jobs."""
_REQUESTS = ("requestcpus", "requestmemory", "requestdisk")
_REQUEST = re.compile(r"request(\w+)", re.ASCII)
BY_EXPRESSION = "AccountingGroup is an expression"
"""In the place of the clause that keeps jobs out of all nodes that have targets for them."""
_JOB_ID = re.compile(r"\d{1,10}\.\d{1,10}\b")
_ATTRIBUTE = re.compile(r"[a-z_]\w*", re.ASCII)
UNTRIED, UNPLACEABLE, PLACEABLE, TRYING, GIVEN_UP, LATER = range(6)


class ClosedNodes(NamedTuple):
    """Nodes that refuse kinds of jobs."""

    closed: Mapping[str, tuple[ClosedTo, ...]] = {}
    """Machine -> kinds of jobs to which it is closed."""
    skipped: int = 0
    """Kinds of jobs for which the time was not enough."""


Look = Callable[[Sequence[str]], Iterable[Any]]
"""Returns the ads of a pool's slots with these attributes."""


class JobShape(NamedTuple):
    """Pending jobs that no slot and no Requirements can tell apart."""

    kind: Kind
    jobs: int
    example: str
    """One of them, SCHEDD#CLUSTER.PROC."""
    ad: Optional[str]
    """Attributes that are seen of them, as ``-long`` prints them; None if not to be tried."""
    start_knows: bool = True
    """False if their AccountingGroup is an expression: START evaluates none, see config.d."""


class Shapes(NamedTuple):
    """Pending jobs of a schedd that a negotiator has seen."""

    shapes: tuple[JobShape, ...]
    complete: bool
    """False if the schedd has more."""
    attributes: Optional[frozenset[str]]
    """Attributes that all these jobs tell, if they have them, in lower case; None without jobs."""
    jobs: Optional[ScheddJobs] = None
    """Jobs of the schedd, if they were counted by the way."""


class Trial(NamedTuple):
    """Result of a trial."""

    unplaceable: tuple[JobShape, ...] = ()
    later: tuple[JobShape, ...] = ()
    """Jobs that only clauses on time keep out now."""
    untried: Optional[str] = None
    """Why pending jobs, or some of them, were not tried; None if all were."""
    closed: Mapping[str, tuple[ClosedTo, ...]] = {}
    """Machine -> kinds of jobs to which it is closed, see `sharectl.condor.closed_nodes`."""


# ---- jobs


def ask_both(
    plain: Mapping[str, Question], shaped: Mapping[str, Question]
) -> tuple[dict[str, Answer], list[Answer]]:
    """Answers of schedds with their `ScheddJobs`, and those with their `Shapes`.

    Questions for shapes have a third of the deadline. Where one leaves the jobs open, the plain one
    has the rest: trouble with shapes must not hide the jobs.
    """
    third = {
        name: question._replace(
            deadline_seconds=question.deadline_seconds / 3, more_bytes=MOST_MEMORY_BYTES
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
    rest = {
        name: question._replace(deadline_seconds=part * question.deadline_seconds)
        for name, question in plain.items()
        if name not in counted
    }
    every = {**counted, **ask_all(rest)}
    return {name: every[name] for name in plain}, list(shapes.values())


def shapes_of(schedd: Any, name: str, most_cores: int, mode: str) -> Shapes:
    """Shapes of the pending jobs of a schedd of the bindings; in mode ``counted`` its jobs too.

    They are its autoclusters, which HTCondor makes of jobs with equal significant attributes: all
    that START of any node and Requirements of the jobs look at. Jobs that no negotiator has seen
    yet have none, and count as before.
    """
    clusters = {ad.get(CLUSTER): row_of(ad) for ad in autoclusters(schedd, MOST_ROWS)}
    rows = grouped(schedd, IS_PENDING, [*COUNTED_KEYS, CLUSTER, _ATTRIBUTES], MOST_ROWS)
    written = list(map(row_of, rows))
    seen = [
        (row, texts)
        for row, texts in zip(charged(rows), written)
        if row.get("JobUniverse") == PARALLEL
        or (row.get(CLUSTER) is not None and row.get("JobUniverse") not in NO_SLOT)
    ]
    named = (row[_ATTRIBUTES] for row, _ in seen if _ATTRIBUTES in row)
    attributes = [frozenset(str(names).lower().split(",")) for names in named]
    return Shapes(
        tuple(
            _shape(row, texts, clusters.get(row.get(CLUSTER), {}), name, most_cores)
            for row, texts in seen
        ),
        len(rows) < MOST_ROWS,
        frozenset.intersection(*attributes) if attributes else None,
        counted_jobs(schedd, rows, most_cores) if mode == "counted" else None,
    )


def _shape(row: Any, texts: Row, cluster: Row, schedd: str, most_cores: int) -> JobShape:
    """Shape of grouped jobs; autoclusters that were numbered again meanwhile are not tried.

    ``texts`` are those of the row as the jobs have them, not ``charged``.
    """
    if row.get("JobUniverse") == PARALLEL:
        # No negotiator sees these jobs, but requests of their dedicated scheduler.
        wanted = dedicated(schedd, cluster.get("requirements", "true"))
        cluster = {**texts, **cluster, "requirements": wanted}
    example = _JOB_ID.search(str(row.get("JobIds"))[:100])
    same = all(
        cluster.get(name, text) == text for name, text in texts.items() if name not in _OF_ROWS
    )
    text = "\n".join(f"{key} = {cluster[key]}" for key in sorted(cluster.keys() - _OF_ROWS))
    is_tried = same and 0 < len(text) <= MOST_CHARACTERS
    return JobShape(
        kind_of(row, most_cores),
        number_in(row),
        f"{schedd}#{example.group()}" if example else "",
        text if is_tried else None,
        LITERAL.fullmatch(texts.get(ACCOUNT.lower(), '""')) is not None,
    )


# ---- trial


def tried(
    look: Look,
    answers: Sequence[Answer],
    deadline_seconds: float = TRIAL_SECONDS,
    group_of: Callable[[Optional[str]], str] = lambda _: OTHER,
    cores_of: Callable[[Kind], Iterable[int]] = lambda kind: (kind.cores,),
) -> Trial:
    """Trial of the shapes of all schedds, which are answers of `shapes_of`, on the slots.

    ``group_of`` returns the configured group of an AccountingGroup, ``cores_of`` the cores that
    jobs come to on slots.
    """
    queues: list[Shapes] = [answer.value for answer in answers if answer.value is not None]
    every = [shape for queue in queues for shape in queue.shapes]
    alike: dict[str, list[JobShape]] = {}
    # Ads that are made to cost much are long as a rule.
    for shape in sorted(every, key=lambda shape: (len(shape.ad or ""), shape.ad or "")):
        if shape.ad:
            alike.setdefault(shape.ad, []).append(shape)
    attributes = [queue.attributes for queue in queues if queue.attributes is not None]
    of_jobs = frozenset(
        name
        for name in (frozenset.intersection(*attributes) if attributes else ())
        if not name.startswith(_NEGOTIATORS)
    )
    silent = [answer.source for answer in answers if answer.value is None]
    complete = not silent and all(queue.complete for queue in queues)
    kinds = _by_kind(every, list(alike), group_of, cores_of) if complete else {}
    try_all = partial(_try_all, look, of_jobs, list(alike), kinds)
    results, (closed, skipped), problem = results_of(
        try_all, len(alike), deadline_seconds, ClosedNodes()
    )
    unplaceable, later = (
        tuple(
            shape
            for result, shapes in zip(results, alike.values())
            if result == wanted
            for shape in shapes
        )
        for wanted in (UNPLACEABLE, LATER)
    )
    untried = sum(map(results.count, (UNTRIED, GIVEN_UP, TRYING)))
    untried += sum(shape.ad is None for shape in every)
    why = None
    if silent:
        first = f"{silent[0].name}: {silent[0].problem}"
        why = f"not all pending jobs were tried on the nodes ({first})"
    elif untried:
        why = f"{untried} kinds of pending jobs could not be tried on the nodes"
        why += f" ({problem})" if problem else ""
    elif problem:
        why = f"pending jobs could not be tried on each node ({problem})"
    elif skipped:
        why = f"{skipped} kinds of pending jobs were not tried on each node: it takes too long"
    elif not complete:
        why = f"a schedd has more than {MOST_ROWS} kinds of pending jobs: the rest was not tried"
    return Trial(unplaceable, later, why, closed)


def _by_kind(
    shapes: Iterable[JobShape],
    ads: Sequence[str],
    group_of: Callable[[Optional[str]], str],
    cores_of: Callable[[Kind], Iterable[int]],
) -> dict[GroupKind, list[int]]:
    """Kind of jobs that could be helped -> numbers of its ads, if all of them may be tried.

    Jobs that START does not know under a target open no node: their ads are not among them.
    """
    numbers = {ad: number for number, ad in enumerate(ads)}
    kinds: dict[GroupKind, set[int]] = {}
    untried: set[GroupKind] = set()
    for shape in shapes:
        for cores in cores_of(shape.kind):
            kind = (group_of(shape.kind.account), cores)
            own = kinds.setdefault(kind, set())
            if not shape.ad:
                untried.add(kind)
            elif shape.start_knows:
                own.add(numbers[shape.ad])
    return {kind: sorted(kinds[kind]) for kind in kinds if kind not in untried and kind[0] != OTHER}


def results_of(
    try_all: Callable[[mmap.mmap], T], shapes: int, deadline_seconds: float, none: T
) -> tuple[bytes, T, Optional[str]]:
    """Result of each shape, answer of ``try_all`` (or ``none``), and a problem if there was one.

    A shape that ends the process is left out, and the rest is tried again.
    """
    deadline = time.monotonic() + deadline_seconds
    problem: Optional[str] = None
    answered = none
    with mmap.mmap(-1, shapes + 1) as shared:
        for _ in range(MOST_CULPRITS + 1 if shapes else 0):
            seconds = max(0.0, deadline - time.monotonic())
            question = Question(partial(try_all, shared), seconds, more_bytes=MOST_MEMORY_BYTES)
            answer = ask_all({"trial": question})["trial"]
            why, answered = answer.source.problem, answer.value or none
            culprit = shared.find(bytes((TRYING,)))
            problem = problem or why
            if why is None or culprit < 0:
                break
            shared[culprit] = GIVEN_UP
        return shared[:shapes], answered, problem


def _try_all(
    look: Look,
    of_jobs: frozenset[str],
    ads: Sequence[str],
    kinds: Mapping[GroupKind, Sequence[int]],
    shared: mmap.mmap,
) -> ClosedNodes:
    """Write the result of each ad to ``shared`` as soon as it is there; returns closed nodes.

    An ad that costs too much ends this process, also while the library evaluates.
    """
    now = int(time.time())
    jobs = [PendingJob(ad, now) for ad in ads]
    machines = Machines(look, of_jobs, jobs, now)
    for number, job in enumerate(jobs):
        if shared[number] == UNTRIED and job.words <= machines.attributes:
            shared[number] = TRYING
            signal.setitimer(signal.ITIMER_PROF, SHAPE_SECONDS)
            placeable = machines.could_run(job)
            later = not placeable and machines.could_run(job, at_any_time=True)
            shared[number] = PLACEABLE if placeable else LATER if later else UNPLACEABLE
    signal.setitimer(signal.ITIMER_PROF, 0)  # slots of a large pool take longer than a job
    closed = _closed(Slots(machines.rows, of_jobs), jobs, kinds, shared) if kinds else ClosedNodes()
    signal.setitimer(signal.ITIMER_PROF, 0)
    return closed


def _closed(
    slots: Slots,
    jobs: Sequence[PendingJob],
    kinds: Mapping[GroupKind, Sequence[int]],
    shared: mmap.mmap,
) -> ClosedNodes:
    """Machines that are closed to all jobs of a kind, if all of them could be tried."""
    refused: dict[GroupKind, Refusals] = {}
    ends = time.process_time() + CLOSED_SECONDS
    # Ads that are made to cost much are long as a rule: kinds of other groups come before them.
    ordered = sorted(kinds.items(), key=lambda item: tuple(item[1][-1:]))
    for place, (kind, numbers) in enumerate(ordered):
        if not numbers:
            refused[kind] = dict.fromkeys(slots.machines, BY_EXPRESSION)
        results = [shared[number] for number in numbers]
        if not {PLACEABLE, UNPLACEABLE, LATER}.issuperset(results):
            continue
        everywhere: Optional[Refusals] = None
        for number in (number for number in numbers if shared[number] == PLACEABLE):
            shared[number] = TRYING
            signal.setitimer(signal.ITIMER_PROF, SHAPE_SECONDS)
            job = WaitingJob(jobs[number].text, jobs[number].row, jobs[number].wants)
            if everywhere is None:
                everywhere = slots.refusals(job)
            else:
                for machine in everywhere.keys() & slots.admitting(job, everywhere):
                    del everywhere[machine]
            shared[number] = PLACEABLE
            if time.process_time() > ends:
                return ClosedNodes(by_machine(refused), len(ordered) - place)
            if not everywhere:
                break
        refused.setdefault(kind, everywhere or {})
    return ClosedNodes(by_machine(refused))


class OfSlots(NamedTuple):
    """Attributes of slots that jobs look at, by what is known of their later values."""

    momentary: frozenset[str]
    on_time: frozenset[str]
    """Attributes that go by the clock."""
    moments: frozenset[str]
    """Points in time, which the slots renew."""


class PendingJob:
    """Pending jobs that are alike."""

    def __init__(self, text: str, now: int) -> None:
        self.row = clocked(row_of(text), now)
        self.text = long_of(self.row)
        self.words: frozenset[str] = frozenset().union(*map(words_of_text, self.row.values()))

    @cached_property
    def wants(self) -> list[str]:
        """Clauses of its Requirements."""
        return [clause.text for clause in clauses_of(self.row)]

    def ad(self, slots: OfSlots) -> Any:
        """Ad for trials, in which its clauses that count have names: the lasting, those on time."""
        parts: dict[str, list[str]] = {WANTS: [], DUE: []}
        for clause, is_on_time in self.clauses(slots):
            parts[DUE if is_on_time else WANTS].append(f"({clause})")
            if is_on_time:  # no time brings an attribute that it lacks
                ways = (f"({way}) isnt undefined" for way in alternatives(clause))
                parts[WANTS].append(f"({' || '.join(ways)})")
        own = {name: " && ".join(part) or "true" for name, part in parts.items()}
        return ad_of_long(long_of({**self.row, **own}))

    def clauses(self, slots: OfSlots) -> Iterator[tuple[str, bool]]:
        """Clauses of its Requirements, True with those on time; without those on the moment."""
        for clause in self.wants:
            reached = names_reached(words_of_text(clause), self.row)
            is_on_time = not slots.on_time.isdisjoint(reached)
            aged = is_on_time and not slots.moments.isdisjoint(reached)
            if slots.momentary.isdisjoint(reached) and not aged:
                yield clause, is_on_time


class Machines:
    """Kinds of slots, as the jobs of a trial tell them apart."""

    def __init__(
        self, look: Look, of_jobs: frozenset[str], jobs: Sequence[PendingJob], now: int
    ) -> None:
        """Look at the slots at Unix time ``now``; ``of_jobs`` are attributes that jobs tell.

        ``attributes`` are those of slots that are fetched: jobs that look at others are not tried.
        """
        self.attributes: set[str] = set()
        for job in jobs:
            if len(self.attributes | job.words) <= MOST_WORDS:
                self.attributes |= job.words
        requests = (_REQUEST.fullmatch(word) for word in {*self.attributes, *of_jobs, *_REQUESTS})
        totals = (f"TotalSlot{match[1]}" for match in requests if match)
        own = filter(_ATTRIBUTE.fullmatch, self.attributes)
        # Nodes have most texts in common, and one string is enough for all.
        self.rows = rows = [
            {sys.intern(name): sys.intern(text) for name, text in row_of(ad).items()}
            for ad in look([*_OF_ANY_SLOT, *totals, *own])
        ]
        at_now = [clocked(row, now) for row in rows]
        texts: dict[str, set[str]] = {}
        for row in at_now:
            for name, text in row.items():
                texts.setdefault(name, set()).add(text)
        self._texts = {name: " ".join(values) for name, values in texts.items()}
        unsure = frozenset().union(*map(unsure_of, at_now))
        aged = frozenset().union(*map(moments, at_now))
        reached = {
            name: names_reached([name], self._texts) for name in self.attributes.union(texts)
        }
        on_time = ON_TIME.union(
            name for name, words in reached.items() if not ON_TIME.isdisjoint(words)
        )
        momentary = (
            name
            for name, words in reached.items()
            if any(is_momentary(word) or word in unsure for word in words)
            or (name in on_time and not aged.isdisjoint(words))
        )
        self._of_slots = OfSlots(frozenset(momentary), on_time, aged)
        self._rows = [(row, asking(row, of_jobs)) for row in at_now]
        policies = {policy[ACCEPTS]: policy for _, policy in self._rows}
        self._wants_few = any(_wants_few(text, policy) for text, policy in policies.items())
        self._kinds: dict[frozenset[str], dict[tuple[str, ...], list[Any]]] = {}

    def could_run(self, job: PendingJob, *, at_any_time: bool = False) -> bool:
        """Tells if some slot could run a job, empty or partly free, or if that is not certain.

        Without clauses on time if ``at_any_time``.
        """
        ad, join = job.ad(self._of_slots), _JOIN if at_any_time else _NOW
        if _first_match(join, ad, self._seen_by(job)):
            return True
        # Else three times as long for each job that is unplaceable.
        own = (_wants_few(clause, job.row) for clause, _ in job.clauses(self._of_slots))
        wants_few = self._wants_few or any(own)
        return wants_few and any(
            _first_match(join, ad, self._seen_by(job, few)) for few in _PARTLY_FREE
        )

    def _seen_by(self, job: PendingJob, few: tuple[str, ...] = ()) -> list[Any]:
        """Kinds of slots that the job can tell apart, emptied, with no more of ``few``."""
        names = frozenset(
            names_reached(job.words, self._texts) & self._texts.keys() - self._of_slots.momentary
        )
        if names not in self._kinds and len(self._kinds) >= MOST_VIEWS:
            self._kinds.clear()
        seen = self._kinds.setdefault(names, {})
        if few not in seen:
            rows = kinds(
                {**{name: row[name] for name in names if name in row}, **accepting}
                for row, accepting in self._rows
            )
            seen[few] = [_ad_of(row, few) for row in rows]
        return seen[few]


def _wants_few(clause: str, texts: Row) -> bool:
    """Tells if a clause may want at most so many cores or so much memory free."""
    reached = names_reached(words_of_text(_AT_LEAST.sub("", clause)), texts)
    return not reached.isdisjoint(("cpus", "memory"))


def _ad_of(row: Row, few: Collection[str]) -> Any:
    """Ad of a slot that has no more of ``few`` resources than a job's literal request."""
    lines = []
    for name, text in row.items():
        request = f"TARGET.Request{name}"
        less = f"ifThenElse(({request} < {text}) =?= true, {request}, {text})"
        lines.append(f"{name} = {less if name in few else text}")
    return ad_of_long("\n".join(lines))


def _first_match(join: str, ad: Any, slots: list[Any]) -> bool:
    """Tells if a job matches one of the slots, which is moved to the front."""
    tree = expression(join)
    for place, slot in enumerate(slots):
        if not is_refusal(value_of(tree, ad, slot)):
            slots.insert(0, slots.pop(place))
            return True
    return False
