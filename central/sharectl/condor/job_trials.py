"""Pending jobs tried on the slots of their pool as if nothing ran there, by HTCondor's own library.

A job's expressions may be anything: they are evaluated in a child that is killed at its deadline,
may not take more memory than `MOST_MEMORY_BYTES`, and may spend `SHAPE_SECONDS` of processor time
on jobs that are alike. A job is *unplaceable* if its Requirements are false or undefined on every
slot, or those of every slot are false for it: the negotiator's rule. An error, or something that
changes from minute to minute, counts as placeable.
"""

from __future__ import annotations

import mmap
import re
import signal
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Callable, NamedTuple, Optional

from sharectl.condor.ads import ad_of_long, expression, is_refusal, value_of
from sharectl.condor.daemons import CLUSTER, autoclusters, grouped
from sharectl.condor.deadline import Answer, Question, ask_all
from sharectl.condor.empty_slots import (
    ACCEPTS,
    ASKED_OF_JOBS,
    Look,
    Row,
    Sample,
    asking,
    is_momentary,
    kinds,
    row_of,
    rows_of,
    unsure,
)
from sharectl.condor.expressions import Clause, clauses, resource_of, words_of_text
from sharectl.condor.schedd_jobs import (
    COUNTED_KEYS,
    IS_PENDING,
    MODES,
    NO_SLOT,
    Kind,
    ScheddJobs,
    Sizes,
    counted_kinds,
    kind_of,
    with_waits,
)

MOST_ROWS = 4000
"""Of the answer of a schedd; jobs beyond count as before."""
MOST_CHARACTERS = 20_000
"""Of an ad that is tried."""
MOST_MEMORY_BYTES = 2**28
TRIAL_SECONDS = 10.0
"""Deadline of a trial of all jobs, which takes some 0.3 s."""
SHAPE_SECONDS = 0.25
MOST_CULPRITS = 5
"""Shapes that may end the process of a trial before the rest is left untried."""
MOST_REASONS = 20
"""Shapes, those with the most jobs, of which a reason is looked for."""
MOST_VALUES = 50
"""An attribute with more values makes kinds only for the jobs that look at it."""
MOST_WORDS = 500
"""Attributes of slots that are asked for; jobs that look at others are left untried."""
MOST_REASON = 120
"""Characters of a clause in a reason."""

WANTS = "t1_jobwants"
"""Attribute that a job gets: its lasting clauses."""

_PARALLEL = 11
"""Universe of jobs that a dedicated scheduler places."""
_OF_ROWS = frozenset(("id", "jobids", "jobcount", "autoclusterid"))
"""Attributes that the schedd adds to those of jobs."""
_GROUP = "accountinggroup"
_JOB_ID = re.compile(r"\d{1,10}\.\d{1,10}\b")
_ATTRIBUTE = re.compile(r"[a-z_]\w*", re.ASCII)
_UNTRIED, _UNPLACEABLE, _PLACEABLE, _TRYING, _GIVEN_UP = range(5)
_JOIN = f"MY.{WANTS} && (TARGET.{ACCEPTS} =!= false)"
_PARTLY_FREE = (("cpus",), ("memory",), ("cpus", "memory"))
"""Resources of which a slot may have no more than a job requests."""
_AT_LEAST = re.compile(
    r"(?:TARGET\.)?(\w+) >= (?:MY\.)?Request\1\b|(?:TARGET\.)?(?:_condor_)?Request(\w+) <= "
    r"(?:MY\.)?\2\b"
    r"|MY\.\w+ > 0|\b1 <= MY\.Cpus\b",
    re.IGNORECASE,
)


class JobShape(NamedTuple):
    """Pending jobs that no slot and no Requirements can tell apart."""

    kind: Kind
    jobs: int
    example: str
    """One of them, SCHEDD#CLUSTER.PROC."""
    ad: Optional[str]
    """Attributes that are seen of them, as ``-long`` prints them; None if not to be tried."""
    reason: str = ""
    """Clause that no slot meets, of unplaceable jobs."""


Shapes = tuple[list[JobShape], bool]
"""Shapes of a schedd, and whether it has no more."""


class Trial(NamedTuple):
    """Result of a trial."""

    unplaceable: tuple[JobShape, ...] = ()
    untried: Optional[str] = None
    """Why pending jobs, or some of them, were not tried; None if all were."""


def jobs_and_shapes(
    schedd: Any, name: str, sizes: Sizes, mode: str, words: Sequence[str]
) -> tuple[ScheddJobs, Shapes]:
    """Jobs of a schedd of the bindings by one of `MODES`, and shapes of the pending ones.

    ``words`` are attributes of jobs, in lower case, that slots look at. The schedd adds what these,
    and Requirements, refer to.
    """
    wanted = {name.lower(): name for name in ASKED_OF_JOBS}
    wanted |= {word: word for word in words if word not in wanted and _ATTRIBUTE.fullmatch(word)}
    rows, ads, complete = _pending(schedd, wanted)
    if mode == "counted" and len(rows) < MOST_ROWS:
        jobs = with_waits(schedd, counted_kinds(rows, sizes), sizes)
    else:
        jobs = MODES[mode](schedd, name, sizes)
    hidden = _OF_ROWS if _GROUP in words else _OF_ROWS | {_GROUP}
    shapes = [
        _shape(row, ad, name, sizes, hidden)
        for row, ad in ads
        if row.get("JobUniverse") not in NO_SLOT
    ]
    return jobs, (shapes, complete)


def _pending(
    schedd: Any, wanted: Mapping[str, str]
) -> tuple[list[Any], list[tuple[Any, Row]], bool]:
    """Rows that count pending jobs, rows with the attributes of such jobs, and if that is all.

    Expressions are costly keys. So jobs are grouped by autocluster, which HTCondor makes of jobs
    with equal significant attributes, Requirements among them. Jobs that no negotiator has seen
    yet have none, and are grouped by all that is wanted.
    """
    clusters = {ad.get(CLUSTER): row_of(ad) for ad in autoclusters(schedd, MOST_ROWS)}
    alike = set(wanted).intersection(*clusters.values()) if clusters else set()
    keys = [*COUNTED_KEYS, CLUSTER, *(wanted[word] for word in wanted if word not in alike)]
    rows = grouped(schedd, IS_PENDING, keys, MOST_ROWS)
    ads: list[tuple[Any, Row]] = [(row, row_of(row)) for row in rows]
    if not alike:
        return rows, ads, len(rows) < MOST_ROWS
    clustered: list[tuple[Any, Row]] = []
    for row, ad in ads:
        own = clusters.get(row.get(CLUSTER), {})
        if own and all(own.get(word, ad[word]) == ad[word] for word in ad.keys() - _OF_ROWS):
            seen = {word: own[word] for word in _reached(wanted, own) if word in own}
            clustered.append((row, {**seen, **ad}))
    changed = sum(row.get(CLUSTER) is not None for row in rows) - len(clustered)
    if changed:  # autoclusters are others now than when they were asked for
        clustered = []
    more = []
    if len(clustered) < len(rows):
        rest = IS_PENDING if changed else f"{IS_PENDING} && {CLUSTER} =?= undefined"
        more = grouped(schedd, rest, [*wanted.values(), CLUSTER], MOST_ROWS)
    return (
        rows,
        [*clustered, *((row, row_of(row)) for row in more)],
        max(len(rows), len(more)) < MOST_ROWS,
    )


def ask_both(
    plain: Mapping[str, Question], both: Mapping[str, Question]
) -> tuple[dict[str, Answer], list[Shapes], list[str]]:
    """Answers of schedds with their jobs, shapes of these, and why shapes are missing.

    The question for both has a third of the deadline; where it fails the plain one has the rest:
    trouble with shapes must not hide the jobs.
    """
    answers = ask_all({name: _sooner(ask, 1 / 3, MOST_MEMORY_BYTES) for name, ask in both.items()})
    shapes = [answer.value[1] for answer in answers.values() if answer.value]
    problems = [
        f"{name}: {answer.source.problem}" for name, answer in answers.items() if not answer.value
    ]
    silent = [name for name in plain if name not in answers or not answers[name].value]
    rest = ask_all({name: _sooner(plain[name], 2 / 3 if name in both else 1) for name in silent})
    jobs = {
        name: answer._replace(value=answer.value and answer.value[0])
        for name, answer in answers.items()
    }
    return {name: {**jobs, **rest}[name] for name in plain}, shapes, problems


def _sooner(ask: Question, part: float, more_bytes: Optional[int] = None) -> Question:
    return ask._replace(deadline_seconds=part * ask.deadline_seconds, more_bytes=more_bytes)


def _shape(row: Any, ad: Row, schedd: str, sizes: Sizes, hidden: Collection[str]) -> JobShape:
    """Shape of a row; jobs that differ in the attributes ``hidden`` alone are tried once."""
    example = _JOB_ID.search(str(row.get("JobIds"))[:100])
    if any(_GROUP in text.lower() for name, text in ad.items() if name not in hidden):
        hidden = _OF_ROWS
    text = "\n".join(f"{name} = {ad[name]}" for name in sorted(ad) if name not in hidden)
    placed_otherwise = row.get("JobUniverse") == _PARALLEL
    count = row.get("JobCount")
    return JobShape(
        kind_of(row, sizes),
        count if type(count) is int else 0,
        f"{schedd}#{example.group()}" if example else "",
        None if placed_otherwise or len(text) > MOST_CHARACTERS else text,
    )


def tried(
    look: Look,
    sample: Sample,
    answers: Sequence[Shapes],
    deadline_seconds: float = TRIAL_SECONDS,
    problems: Sequence[str] = (),
) -> Trial:
    """Trial of the shapes of all schedds on the slots; ``problems`` are why some are missing."""
    every = [shape for shapes, _ in answers for shape in shapes]
    alike: dict[str, list[JobShape]] = {}
    # Ads that are made to cost much are long as a rule.
    for shape in sorted(every, key=lambda shape: (len(shape.ad or ""), shape.ad or "")):
        if shape.ad:
            alike.setdefault(shape.ad, []).append(shape)
    jobs = [sum(shape.jobs for shape in shapes) for shapes in alike.values()]
    results, reasons, problem = _results(
        partial(_try_all, look, sample, list(alike), jobs), len(jobs), deadline_seconds
    )
    unplaceable = tuple(
        shape._replace(reason=reasons.get(number, ""))
        for number, shapes in enumerate(alike.values())
        if results[number] == _UNPLACEABLE
        for shape in shapes
    )
    untried = sum(map(results.count, (_UNTRIED, _GIVEN_UP, _TRYING)))
    untried += sum(shape.ad is None for shape in every)
    why = None
    if problems:
        why = f"not all pending jobs were tried on the nodes (kinds of jobs of {problems[0]})"
    elif untried:
        why = f"{untried} kinds of pending jobs could not be tried on the nodes"
        why += f" ({problem})" if problem else ""
    elif not all(complete for _, complete in answers):
        why = f"a schedd has more than {MOST_ROWS} kinds of pending jobs: the rest was not tried"
    return Trial(unplaceable, why)


def _results(
    try_all: Callable[[mmap.mmap], dict[int, str]], shapes: int, deadline_seconds: float
) -> tuple[bytes, dict[int, str], Optional[str]]:
    """Result of each shape, reasons of those that are unplaceable, and a problem if there was one.

    A shape that ends the process is left out, and the rest is tried again.
    """
    deadline = time.monotonic() + deadline_seconds
    problem: Optional[str] = None
    with mmap.mmap(-1, shapes + 1) as shared:
        for _ in range(MOST_CULPRITS + 1 if shapes else 0):
            seconds = max(0.0, deadline - time.monotonic())
            question = Question(partial(try_all, shared), seconds, more_bytes=MOST_MEMORY_BYTES)
            answer = ask_all({"trial": question})["trial"]
            culprit = shared.find(bytes((_TRYING,)))
            if answer.source.problem is None:
                return shared[:shapes], answer.value or {}, problem
            problem = answer.source.problem
            if culprit < 0:
                break
            shared[culprit] = _GIVEN_UP
        return shared[:shapes], {}, problem


def _try_all(
    look: Look, sample: Sample, ads: Sequence[str], counts: Sequence[int], shared: mmap.mmap
) -> dict[int, str]:
    """Write the result of each ad to ``shared`` as soon as it is there; returns the reasons.

    An ad that costs too much ends this process, also while the library evaluates.
    """
    jobs = [PendingJob(ad) for ad in ads]
    machines = Machines(look, sample, jobs)
    for number, job in enumerate(jobs):
        if shared[number] == _UNTRIED and machines.knows(job):
            shared[number] = _TRYING
            signal.setitimer(signal.ITIMER_PROF, SHAPE_SECONDS)
            shared[number] = _PLACEABLE if machines.could_run(job) else _UNPLACEABLE
    unplaceable = [number for number in range(len(jobs)) if shared[number] == _UNPLACEABLE]
    largest = sorted(unplaceable, key=lambda number: -counts[number])[:MOST_REASONS]
    signal.setitimer(signal.ITIMER_PROF, SHAPE_SECONDS * (len(largest) + 1))
    return {number: machines.reason(jobs[number]) for number in largest}


class PendingJob:
    """Pending jobs that are alike."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.row = row_of(text)
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
        return [
            clause.text
            for clause in every
            if momentary.isdisjoint(_reached(words_of_text(clause.text), self.row))
        ]


class Machines:
    """Kinds of slots, as the jobs of a trial tell them apart."""

    def __init__(self, look: Look, sample: Sample, jobs: Sequence[PendingJob]) -> None:
        wanted: set[str] = set()
        for job in jobs:
            if len(wanted | job.words) <= MOST_WORDS:
                wanted |= job.words
        self._wanted = wanted
        own = filter(_ATTRIBUTE.fullmatch, sorted(wanted))
        rows = list(rows_of(look, sample, own))
        texts: dict[str, set[str]] = {}
        for row in rows:
            for name, text in row.items():
                texts.setdefault(name, set()).add(text)
        joined = {name: " ".join(values) for name, values in texts.items()}
        shaky = frozenset().union(*map(unsure, rows))
        self._momentary = frozenset(
            name
            for name in wanted.union(texts)
            if any(is_momentary(word) or word in shaky for word in _reached([name], joined))
        )
        self._scattered = frozenset(
            name for name, values in texts.items() if len(values) > MOST_VALUES
        )
        seen = _reached(wanted, joined).difference(map(str.lower, sample.resources))
        of_jobs = frozenset(map(str.lower, (*sample.words, *ASKED_OF_JOBS)))
        self._rows = [
            ({name: row[name] for name in seen.intersection(row)}, asking(row, of_jobs))
            for row in rows
        ]
        self._kinds: dict[tuple[frozenset[str], tuple[str, ...]], list[Any]] = {}
        self._choosy = any(_is_choosy(text) for text in {row[ACCEPTS] for _, row in self._rows})

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
        """Clause of the job that no slot meets; empty if it has no such clause."""
        ad, slots_seen = job.ad(self._momentary), self._of(job)
        for clause in job.clauses(self._momentary):
            ad.update(ad_of_long(f"t1_Clause = {clause}"))
            tree = expression("MY.t1_Clause")
            if all(is_refusal(value_of(tree, ad, slot)) for slot in slots_seen):
                return _shortened(clause, job)
        wants = expression(f"MY.{WANTS}")
        if not any(is_refusal(value_of(wants, ad, slot)) for slot in slots_seen):
            return "START of every node refuses them"
        return ""

    def _of(self, job: PendingJob, few: tuple[str, ...] = ()) -> list[Any]:
        """Kinds of slots that the job can tell apart, emptied, with what it requests of ``few``."""
        scattered = self._scattered & job.words
        if (scattered, few) not in self._kinds:
            hidden = self._momentary | (self._scattered - scattered)
            rows: Iterable[Row] = (
                {**{name: text for name, text in row.items() if name not in hidden}, **accepting}
                for row, accepting in self._rows
            )
            self._kinds[scattered, few] = [
                ad_of_long(
                    "\n".join(f"{name} = {_no_more(name, text, few)}" for name, text in row.items())
                )
                for row in kinds(rows)
            ]
        return self._kinds[scattered, few]


def _reached(words: Iterable[str], texts: Row) -> set[str]:
    """The words, and those of the attributes in ``texts`` that they name, in turn."""
    reached: set[str] = set()
    waiting = list(words)
    while waiting:
        word = waiting.pop()
        if word not in reached:
            reached.add(word)
            waiting += words_of_text(texts.get(word, ""))
    return reached


def _first_match(ad: Any, slots_seen: list[Any]) -> bool:
    """Tells if a job matches one of the slots, which is moved to the front."""
    join = expression(_JOIN)
    for place, slot in enumerate(slots_seen):
        if not is_refusal(value_of(join, ad, slot)):
            slots_seen.insert(0, slots_seen.pop(place))
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
