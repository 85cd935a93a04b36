"""Pending jobs tried on the slots of their pool as if nothing ran there, by HTCondor's own library.

A job's expressions may be anything: they are evaluated in a child that is killed at its deadline,
may not take more memory than `MOST_MEMORY_BYTES`, and may spend `SHAPE_SECONDS` of processor time
on jobs that are alike. A job is *unplaceable* if its Requirements are false or undefined on every
slot, or those of every slot are false for it: the negotiator's rule. What cannot be told (an error,
something that changes from minute to minute) counts as placeable.
"""

from __future__ import annotations

import mmap
import re
import signal
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Optional

from sharectl.condor.ads import ad_of_long, expression, is_refusal, value_of
from sharectl.condor.daemons import Location, collector, grouped, schedd_questions, slots
from sharectl.condor.deadline import Answer, Question, ask_all
from sharectl.condor.expressions import Clause, clauses, resource_of, words_of_text
from sharectl.condor.placement_slots import (
    ACCEPTS,
    ASKED_OF_JOBS,
    AskingSlots,
    Kinds,
    Look,
    Row,
    Sample,
    asking_slots,
    is_momentary,
    row_of,
)
from sharectl.condor.schedds import NO_SLOT, Kind, Sizes, kind_of

MOST_ROWS = 4000
"""Of the answer of a schedd; jobs beyond count as before."""
MOST_CHARACTERS = 20_000
"""Of an ad that is tried."""
MOST_MEMORY_BYTES = 2**28
TRIAL_SECONDS = 10.0
"""Deadline of a trial of all jobs, which takes some 0.3 s."""
SHAPE_SECONDS = 0.25
MOST_CULPRITS = 5
"""Shapes that may end the process before the rest are left untried."""
MOST_REASONS = 20
"""Shapes, those with the most jobs, of which a reason is looked for."""
MOST_VALUES = 50
"""An attribute with more values makes kinds only for the jobs that look at it."""
MOST_WORDS = 500
"""Attributes of slots that are asked for; jobs that look at others are left untried."""
MOST_REASON = 120
"""Characters of a clause that are told."""

WANTS = "t1_jobwants"
"""Attribute that a job gets: its lasting clauses."""

_PARALLEL = 11
"""Universe of jobs that a dedicated scheduler places."""
_PENDING = "JobStatus == 1"
_OF_ROWS = frozenset(("id", "jobids", "jobcount"))
"""Attributes that the schedd adds to those of jobs."""
_GROUP = "accountinggroup"
_JOB_ID = re.compile(r"\d{1,10}\.\d{1,10}\b")
_ATTRIBUTE = re.compile(r"[a-z_]\w*", re.ASCII)
_SLOTS, _SHAPES = "slots", "kinds of jobs of "
_UNTRIED, _TRYING, _GIVEN_UP, _UNPLACEABLE, _PLACEABLE = range(5)
_JOIN = f"MY.{WANTS} && (TARGET.{ACCEPTS} =!= false)"
_PARTLY_FREE = (("cpus",), ("memory",), ("cpus", "memory"))
"""Resources of which a slot may have no more than a job requests."""
_AT_LEAST = re.compile(
    r"(?:TARGET\.)?(\w+) >= (?:MY\.)?Request\1\b|(?:TARGET\.)?(?:_condor_)?Request(\w+) <= "
    r"(?:MY\.)?\2\b"
    r"|MY\.\w+ > 0|\b1 <= MY\.Cpus\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class JobShape:
    """Pending jobs that no slot and no Requirements can tell apart."""

    kind: Kind
    jobs: int
    example: str
    """One of them, SCHEDD#CLUSTER.PROC."""
    ad: Optional[str]
    """Attributes that are seen of them, as ``-long`` prints them; None if not to be tried."""


@dataclass(frozen=True)
class JobShapes:
    """Shapes of a schedd."""

    shapes: tuple[JobShape, ...]
    complete: bool
    """Whether the schedd has no more than these."""


@dataclass(frozen=True)
class Unplaceable:
    """Pending jobs of one kind that no slot could run."""

    kind: Kind
    jobs: int
    example: str
    reason: str
    """Clause of theirs that no slot meets; empty if there is none."""


@dataclass(frozen=True)
class Trial:
    """Result of a trial."""

    unplaceable: tuple[Unplaceable, ...] = ()
    untried: Optional[str] = None
    """Why pending jobs, or some of them, were not tried; None if all were."""


def questions_of_trial(
    sample: Sample,
    sizes: Sizes,
    schedds: Iterable[Location],
    address: Optional[str],
    deadlines_seconds: tuple[float, float],
) -> dict[str, Question]:
    """Questions by name, which are no sources of a snapshot; their answers are for `trial_of`.

    ``deadlines_seconds`` are those of the collector and of each schedd.
    """
    asking = partial(asking_slots, partial(_look, address), sample)
    of_schedds = schedd_questions(
        schedds, deadlines_seconds[1], partial(shapes_of, words=sample.words, sizes=sizes)
    )
    return {
        _SLOTS: Question(asking, deadlines_seconds[0]),
        **{
            f"{_SHAPES}{name}": replace(question, more_bytes=MOST_MEMORY_BYTES)
            for name, question in of_schedds.items()
        },
    }


def trial_of(address: Optional[str], answers: Mapping[str, Answer]) -> Trial:
    """Trial by the answers to `questions_of_trial`."""
    asking: Optional[AskingSlots] = answers[_SLOTS].value
    shapes = [answer.value for name, answer in answers.items() if name != _SLOTS and answer.value]
    trial = tried(partial(_look, address), asking, shapes) if asking is not None else Trial()
    for name, answer in answers.items():
        if answer.source.problem:
            why = f"not all pending jobs were tried on the nodes ({name}: {answer.source.problem})"
            return replace(trial, untried=why)
    return trial


def _look(
    address: Optional[str], projection: Sequence[str], constraint: str = "true"
) -> Iterable[Any]:
    return slots(collector(address), constraint, projection)


def shapes_of(schedd: Any, name: str, words: Sequence[str], sizes: Sizes) -> JobShapes:
    """Shapes of the pending jobs of a schedd of the bindings, as the schedd groups them.

    Parameters
    ----------
    words
        Attributes of jobs, in lower case, that slots look at. The schedd adds what these, and
        Requirements, refer to.
    """
    named = {name.lower() for name in ASKED_OF_JOBS}
    more = [word for word in words if word not in named and _ATTRIBUTE.fullmatch(word)]
    rows = grouped(schedd, _PENDING, [*ASKED_OF_JOBS, *more], MOST_ROWS)
    hidden = _OF_ROWS if _GROUP in words else _OF_ROWS | {_GROUP}
    shapes = (
        _shape(row, name, sizes, hidden) for row in rows if row.get("JobUniverse") not in NO_SLOT
    )
    return JobShapes(tuple(shapes), len(rows) < MOST_ROWS)


def _shape(row: Any, schedd: str, sizes: Sizes, hidden: Collection[str]) -> JobShape:
    """Shape of a row; jobs that differ in the attributes ``hidden`` alone are tried once."""
    example = _JOB_ID.search(str(row.get("JobIds"))[:100])
    lines = sorted(row.printOld().split("\n"))
    seen = [line for line in lines if line.partition(" = ")[0].lower() not in hidden]
    if any(_GROUP in line.lower() for line in seen):
        seen = [line for line in lines if line.partition(" = ")[0].lower() not in _OF_ROWS]
    ad = "\n".join(seen)
    placed_otherwise = row.get("JobUniverse") == _PARALLEL
    count = row.get("JobCount")
    return JobShape(
        kind_of(row, sizes),
        count if type(count) is int else 0,
        f"{schedd}#{example.group()}" if example else "",
        None if placed_otherwise or len(ad) > MOST_CHARACTERS else ad,
    )


def tried(
    look: Look,
    asking: AskingSlots,
    answers: Sequence[JobShapes],
    deadline_seconds: float = TRIAL_SECONDS,
) -> Trial:
    """Trial of the shapes of all schedds on the slots."""
    alike: dict[str, list[JobShape]] = {}
    for shape in (shape for answer in answers for shape in answer.shapes):
        if shape.ad is not None:
            alike.setdefault(shape.ad, []).append(shape)
    # Ads that are made to cost much are long as a rule.
    jobs = {
        ad: sum(shape.jobs for shape in alike[ad])
        for ad in sorted(alike, key=lambda ad: (len(ad), ad))
    }
    results, reasons, problem = _results(look, asking, jobs, deadline_seconds)
    unplaceable = tuple(
        Unplaceable(shape.kind, shape.jobs, shape.example, reasons.get(number, ""))
        for number, ad in enumerate(jobs)
        if results[number] == _UNPLACEABLE
        for shape in alike[ad]
    )
    untried = len([result for result in results if result == _UNTRIED])
    untried += sum(shape.ad is None for answer in answers for shape in answer.shapes)
    why = None
    if untried:
        why = f"{untried} kinds of pending jobs could not be tried on the nodes"
        why += f" ({problem})" if problem else ""
    elif not all(answer.complete for answer in answers):
        why = f"a schedd has more than {MOST_ROWS} kinds of pending jobs: the rest was not tried"
    return Trial(unplaceable, why)


def _results(
    look: Look, asking: AskingSlots, jobs: Mapping[str, int], deadline_seconds: float
) -> tuple[bytes, dict[int, str], Optional[str]]:
    """Result of each ad, reasons by number of unplaceable ones, and the problem of the trial.

    ``jobs`` are ads -> how many jobs have each. An ad that ends the child is given up, and the rest
    is tried again.
    """
    deadline = time.monotonic() + deadline_seconds
    problem: Optional[str] = None
    with mmap.mmap(-1, len(jobs) + 1) as shared:
        for _ in range(MOST_CULPRITS + 1):
            question = Question(
                partial(_try_all, look, asking, jobs, shared),
                max(0.0, deadline - time.monotonic()),
                more_bytes=MOST_MEMORY_BYTES,
            )
            answer = ask_all({"trial": question})["trial"]
            culprit = shared.find(bytes((_TRYING,)))
            if answer.source.problem is None:
                return shared[: len(jobs)], answer.value, None
            problem = answer.source.problem
            if culprit < 0:
                break
            shared[culprit] = _GIVEN_UP
        results = shared[: len(jobs)]
    return results.translate(bytes.maketrans(bytes((_GIVEN_UP,)), bytes((_UNTRIED,)))), {}, problem


def _try_all(
    look: Look, asking: AskingSlots, ads: Mapping[str, int], shared: mmap.mmap
) -> dict[int, str]:
    """Write the result of each ad to ``shared`` as soon as it is there; returns the reasons."""
    jobs, counts = [PendingJob(ad) for ad in ads], list(ads.values())
    machines = Machines(look, asking, jobs)
    for number, job in enumerate(jobs):
        if shared[number] == _UNTRIED and machines.knows(job):
            shared[number] = _TRYING
            # Ends this process, also while the library evaluates.
            signal.setitimer(signal.ITIMER_PROF, SHAPE_SECONDS)
            shared[number] = _PLACEABLE if machines.could_run(job) else _UNPLACEABLE
    unplaceable = [number for number in range(len(jobs)) if shared[number] == _UNPLACEABLE]
    largest = sorted(unplaceable, key=lambda number: -counts[number])[:MOST_REASONS]
    signal.setitimer(signal.ITIMER_PROF, SHAPE_SECONDS * (len(largest) + 1))
    return {number: machines.reason(jobs[number]) for number in largest}


class PendingJob:
    """Pending jobs that are alike."""

    def __init__(self, text: str) -> None:
        lines = (line.partition(" = ") for line in text.split("\n"))
        self.text = text
        self.row = {name.lower(): value for name, sign, value in lines if sign}
        self.words: frozenset[str] = frozenset().union(*map(words_of_text, self.row.values()))

    def ad(self, momentary: frozenset[str]) -> Any:
        """Ad for trials, in which the lasting part of its Requirements has a name."""
        wants = "MY.Requirements" if "requirements" in self.row else "true"
        if self.words & momentary:
            wants = " && ".join(f"({clause})" for clause in self.clauses(momentary)) or "true"
        return ad_of_long(f"{self.text}\n{WANTS} = {wants}")

    def clauses(self, momentary: frozenset[str]) -> list[str]:
        """Clauses of its Requirements, without those that look at something momentary."""
        every = clauses(
            self.row.get("requirements", "true"), lambda name: self.row.get(name.lower())
        )
        return [clause.text for clause in every if momentary.isdisjoint(self._seen(clause.text))]

    def _seen(self, written: str) -> set[str]:
        words: set[str] = set()
        waiting = [written]
        while waiting:
            fresh = words_of_text(waiting.pop()) - words
            words |= fresh
            waiting += [self.row[word] for word in fresh if word in self.row]
        return words


class Machines:
    """Kinds of slots, as the jobs of a trial tell them apart."""

    def __init__(self, look: Look, asking: AskingSlots, jobs: Sequence[PendingJob]) -> None:
        wanted: set[str] = set()
        for job in jobs:
            if len(wanted | job.words) <= MOST_WORDS:
                wanted |= job.words
        self._wanted = wanted
        self._rows = list(_fetched(look, asking, filter(_ATTRIBUTE.fullmatch, sorted(wanted))))
        self._momentary = self._changing(asking.unsure)
        names = {name for _, row in self._rows for name in row}
        values = {name: len({row.get(name) for _, row in self._rows}) for name in names}
        self._scattered = frozenset(name for name, count in values.items() if count > MOST_VALUES)
        self._kinds: dict[tuple[frozenset[str], tuple[str, ...]], list[Any]] = {}
        self._choosy = any(_is_choosy(row[ACCEPTS]) for row in asking.rows)

    def knows(self, job: PendingJob) -> bool:
        """Tells if all attributes that a job looks at were fetched."""
        return job.words <= self._wanted

    def could_run(self, job: PendingJob) -> bool:
        """Tells if some slot could run a job, empty or partly free, or if that is not certain."""
        ad = job.ad(self._momentary)
        if _first_match(ad, self._of(job)):
            return True
        # A job, or START, may want few cores or little memory free (`Cpus < 12`).
        choosy = self._choosy or any(map(_is_choosy, job.clauses(self._momentary)))
        return choosy and any(_first_match(ad, self._of(job, few)) for few in _PARTLY_FREE)

    def reason(self, job: PendingJob) -> str:
        """Clause of the job that no slot meets; empty if there is none."""
        ad, kinds = job.ad(self._momentary), self._of(job)
        for clause in job.clauses(self._momentary):
            ad.update(ad_of_long(f"t1_Clause = {clause}"))
            if all(is_refusal(value_of(expression("MY.t1_Clause"), ad, kind)) for kind in kinds):
                return _shortened(clause, job)
        if not any(is_refusal(value_of(expression(f"MY.{WANTS}"), ad, kind)) for kind in kinds):
            return "START of every node refuses them"
        return ""

    def _of(self, job: PendingJob, few: tuple[str, ...] = ()) -> list[Any]:
        """Kinds of slots that the job can tell apart, emptied, with what it requests of ``few``."""
        scattered = self._scattered & job.words
        if (scattered, few) not in self._kinds:
            hidden = self._momentary | (self._scattered - scattered)
            kinds = Kinds()
            for asking, row in self._rows:
                kinds.number(
                    {**{name: text for name, text in row.items() if name not in hidden}, **asking}
                )
            self._kinds[scattered, few] = [
                ad_of_long(
                    "\n".join(f"{name} = {_no_more(name, text, few)}" for name, text in row.items())
                )
                for row in kinds.rows
            ]
        return self._kinds[scattered, few]

    def _changing(self, unsure: Collection[str]) -> frozenset[str]:
        """Attributes and functions, in lower case, that may be different in a minute."""
        texts: dict[str, set[str]] = {name: set() for name in self._wanted}
        for _, row in self._rows:
            for name, text in row.items():
                texts.setdefault(name, set()).add(text)
        words = {name: {name}.union(*map(words_of_text, seen)) for name, seen in texts.items()}
        changing = set(unsure)
        while True:
            more = {
                name
                for name, seen in words.items()
                if name not in changing
                and (any(map(is_momentary, seen)) or not changing.isdisjoint(seen))
            }
            if not more:
                return frozenset(changing)
            changing |= more


def _fetched(look: Look, asking: AskingSlots, words: Iterable[str]) -> Iterator[tuple[Row, Row]]:
    """Each slot's row of ``asking``, and the attributes ``words`` of it but for resources."""
    of_slot = {row.get("name", ""): row for row in map(row_of, look(["Name", *words], "true"))}
    resources = {resource.lower() for resource in asking.resources}
    for name, number in zip(asking.names, asking.kinds):
        row = of_slot.get(name, {})
        yield asking.rows[number], {key: text for key, text in row.items() if key not in resources}


def _first_match(ad: Any, kinds: list[Any]) -> bool:
    """Tells if a job matches one of ``kinds``, which is moved to the front."""
    join = expression(_JOIN)
    for place, kind in enumerate(kinds):
        if not is_refusal(value_of(join, ad, kind)):
            kinds.insert(0, kinds.pop(place))
            return True
    return False


def _is_choosy(clause: str) -> bool:
    """Tells if a clause may want at most so many cores or so much memory free."""
    return not words_of_text(_AT_LEAST.sub("", clause)).isdisjoint(("cpus", "memory"))


def _no_more(name: str, text: str, few: Collection[str]) -> str:
    """``text``, or a job's literal request if that is less and the resource is one of ``few``."""
    request = f"TARGET.Request{name}"
    return f"ifThenElse(({request} < {text}) =?= true, {request}, {text})" if name in few else text


def _shortened(clause: str, job: PendingJob) -> str:
    resource = resource_of(Clause(clause))
    request = job.row.get(f"request{resource}") if resource else None
    words = " ".join(f"{clause} ({request})".split() if request else clause.split())
    return words if len(words) <= MOST_REASON else f"{words[: MOST_REASON - 1]}…"
