"""Pending jobs tried on the slots of their pool as if nothing ran there, once a cycle, by HTCondor's own library.

A job's expressions may be anything: they are evaluated in a process that is killed at its deadline,
may not have more memory than `MOST_MEMORY_BYTES`, and may spend `SHAPE_SECONDS` of processor time
on jobs that are alike. A job is
*unplaceable* if its Requirements are false or undefined on every slot, or those of every slot are
false for it. What cannot be told counts as placeable.

Pending jobs of a schedd by all that slots and their own Requirements see of them, as the schedd
itself groups them.
"""

from __future__ import annotations

import mmap
import re
import signal
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Optional

from sharectl.condor.daemons import grouped, schedd_questions
from sharectl.condor.deadline import Answer, Question, ask_all
from sharectl.condor.placement_slots import (
    ASKED_OF_JOBS,
    AskingSlots,
    Machines,
    PendingJob,
    Sample,
    Slots,
    asking_slots,
    slots_of,
)
from sharectl.condor.schedds import NO_SLOT, Kind, Sizes, kind_of

MOST_ROWS = 4000
"""Of the answer of a schedd; jobs beyond count as before."""
MOST_CHARACTERS = 20_000
"""Of an ad that is tried."""

PARALLEL = 11
"""Universe of jobs that a dedicated scheduler places."""

_PENDING = "JobStatus == 1"
_OF_ROWS = frozenset(("id", "jobids", "jobcount"))
"""What the schedd adds to the attributes of jobs."""
_GROUP = "accountinggroup"
_JOB_ID = re.compile(r"\d{1,10}\.\d{1,10}\b")
_ATTRIBUTE = re.compile(r"[a-z_]\w*", re.ASCII)


@dataclass(frozen=True)
class JobShape:
    """Pending jobs that no slot and no Requirements can tell apart."""

    kind: Kind
    jobs: int
    example: str
    """One of them, SCHEDD#CLUSTER.PROC."""
    ad: Optional[str]
    """What is seen of them, in the syntax of ``-long``; None if they are not to be tried."""


@dataclass(frozen=True)
class JobShapes:
    """Shapes of a schedd."""

    shapes: tuple[JobShape, ...]
    complete: bool
    """Whether the schedd has no more than these."""


def shapes_of(schedd: Any, name: str, words: Sequence[str], sizes: Sizes) -> JobShapes:
    """Shapes of the pending jobs of a schedd of the bindings, in a child.

    Parameters
    ----------
    words
        Attributes of jobs, in lower case, that slots look at. What these, and Requirements, refer
        to the schedd adds.
    """
    named = {name.lower() for name in ASKED_OF_JOBS}
    keys = [
        *ASKED_OF_JOBS,
        *(word for word in words if word not in named and _ATTRIBUTE.fullmatch(word)),
    ]
    rows = grouped(schedd, _PENDING, keys, MOST_ROWS)
    hidden = _OF_ROWS if _GROUP in words else _OF_ROWS | {_GROUP}
    shapes = (
        _shape(row, name, sizes, hidden) for row in rows if row.get("JobUniverse") not in NO_SLOT
    )
    return JobShapes(tuple(shapes), len(rows) < MOST_ROWS)


def _shape(row: Any, schedd: str, sizes: Sizes, hidden: Collection[str]) -> JobShape:
    """Shape of a row.

    Parameters
    ----------
    hidden
        Attributes that no slot looks at: jobs that differ in these alone are tried once.
    """
    example = _JOB_ID.search(str(row.get("JobIds"))[:100])
    lines = sorted(row.printOld().split("\n"))
    seen = [line for line in lines if line.partition(" = ")[0].lower() not in hidden]
    if any(_GROUP in line.lower() for line in seen):
        seen = [line for line in lines if line.partition(" = ")[0].lower() not in _OF_ROWS]
    ad = "\n".join(seen)
    placed_otherwise = row.get("JobUniverse") == PARALLEL
    count = row.get("JobCount")
    return JobShape(
        kind_of(row, sizes),
        count if type(count) is int else 0,
        f"{schedd}#{example.group()}" if example else "",
        None if placed_otherwise or len(ad) > MOST_CHARACTERS else ad,
    )


TRIAL_SECONDS = 10.0
"""Deadline of a trial of all jobs, which takes some 0.3 s."""
SHAPE_SECONDS = 0.25
MOST_MEMORY_BYTES = 2**28
MOST_CULPRITS = 5
"""Shapes that may end the process before the rest are left untried."""
MOST_REASONS = 20
"""Shapes, those with the most jobs, of which a reason is looked for."""

_SLOTS, _SHAPES = "slots", "kinds of jobs of "
_UNTRIED, _TRYING, _GIVEN_UP, _UNPLACEABLE, _PLACEABLE = range(5)


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
    """What a trial comes to."""

    unplaceable: tuple[Unplaceable, ...] = ()
    untried: Optional[str] = None
    """Why pending jobs, or some of them, were not tried; None if all were."""


def tried(
    look: Slots,
    slots: AskingSlots,
    answers: Sequence[JobShapes],
    deadline_seconds: float = TRIAL_SECONDS,
) -> Trial:
    """Trial of the shapes of all schedds on the slots."""
    alike: dict[str, list[JobShape]] = {}
    for shape in (shape for answer in answers for shape in answer.shapes):
        if shape.ad is not None:
            alike.setdefault(shape.ad, []).append(shape)
    # Ads that are made to cost much are long as a rule.
    ads = sorted(alike, key=lambda ad: (len(ad), ad))
    jobs = [sum(shape.jobs for shape in alike[ad]) for ad in ads]
    results, reasons, problem = _results(look, slots, _Asked(ads, jobs), deadline_seconds)
    found = tuple(
        Unplaceable(shape.kind, shape.jobs, shape.example, reasons.get(number, ""))
        for number, ad in enumerate(ads)
        if results[number] == _UNPLACEABLE
        for shape in alike[ad]
    )
    untried = len([result for result in results if result == _UNTRIED])
    untried += sum(shape.ad is None for answer in answers for shape in answer.shapes)
    if untried:
        why = f" ({problem})" if problem else ""
        return Trial(found, f"{untried} kinds of pending jobs could not be tried on the nodes{why}")
    if not all(answer.complete for answer in answers):
        return Trial(
            found,
            f"a schedd has more than {MOST_ROWS} kinds of pending jobs: the rest was not tried",
        )
    return Trial(found)


@dataclass(frozen=True)
class Trialling:
    """How the jobs of a pool are tried: what is asked beside the counts, and what is made of the answers."""

    collector: Optional[str]
    """Address; None for the configured one."""
    sample: Sample
    sizes: Sizes
    collector_deadline_seconds: float
    schedd_deadline_seconds: float

    def questions(self, schedds: Iterable[Mapping[str, str]]) -> dict[str, Question]:
        """Questions by name; the names are no sources of a snapshot."""
        asking = partial(asking_slots, partial(slots_of, self.collector), self.sample)
        return {
            _SLOTS: Question(asking, self.collector_deadline_seconds),
            **{
                f"{_SHAPES}{name}": replace(question, more_bytes=MOST_MEMORY_BYTES)
                for name, question in schedd_questions(
                    schedds,
                    self.schedd_deadline_seconds,
                    partial(shapes_of, words=self.sample.words, sizes=self.sizes),
                ).items()
            },
        }

    def of(self, answers: Mapping[str, Answer]) -> Trial:
        """Trial by the answers to `questions`."""
        problems = [
            f"{name}: {a.source.problem}" for name, a in answers.items() if a.source.problem
        ]
        slots: Optional[AskingSlots] = answers[_SLOTS].value
        shapes = [
            answer.value for name, answer in answers.items() if name != _SLOTS and answer.value
        ]
        look = partial(slots_of, self.collector)
        trial = tried(look, slots, shapes) if slots is not None else Trial()
        if problems:
            return replace(
                trial, untried=f"not all pending jobs were tried on the nodes ({problems[0]})"
            )
        return trial


@dataclass(frozen=True)
class _Asked:
    ads: Sequence[str]
    """Different ones."""
    jobs: Sequence[int]
    """How many have each."""


def _results(
    look: Slots, slots: AskingSlots, asked: _Asked, deadline_seconds: float
) -> tuple[bytes, dict[int, str], Optional[str]]:
    """Result of each ad, reasons by number of those that are unplaceable, and what kept the trial from its end."""
    deadline = time.monotonic() + deadline_seconds
    problem: Optional[str] = None
    with mmap.mmap(-1, len(asked.ads) + 1) as shared:
        for _ in range(MOST_CULPRITS + 1):
            question = Question(
                partial(_try_all, look, slots, asked, shared),
                max(0.0, deadline - time.monotonic()),
                more_bytes=MOST_MEMORY_BYTES,
            )
            answer = ask_all({"trial": question})["trial"]
            culprit = shared.find(bytes((_TRYING,)))
            if answer.source.problem is None:
                return shared[: len(asked.ads)], answer.value, None
            problem = answer.source.problem
            if culprit < 0:
                break
            shared[culprit] = _GIVEN_UP
        results = shared[: len(asked.ads)]
    return results.translate(bytes.maketrans(bytes((_GIVEN_UP,)), bytes((_UNTRIED,)))), {}, problem


def _try_all(look: Slots, slots: AskingSlots, asked: _Asked, shared: mmap.mmap) -> dict[int, str]:
    """Write the result of each ad to ``shared`` as soon as it is there; returns the reasons."""
    jobs = [PendingJob(ad) for ad in asked.ads]
    machines = Machines(look, slots, jobs)
    for number, job in enumerate(jobs):
        if shared[number] == _UNTRIED and machines.knows(job):
            shared[number] = _TRYING
            # Ends this process, also while the library evaluates.
            signal.setitimer(signal.ITIMER_PROF, SHAPE_SECONDS)
            shared[number] = _PLACEABLE if machines.could_run(job) else _UNPLACEABLE
    unplaceable = [number for number in range(len(jobs)) if shared[number] == _UNPLACEABLE]
    largest = sorted(unplaceable, key=lambda number: -asked.jobs[number])[:MOST_REASONS]
    signal.setitimer(signal.ITIMER_PROF, SHAPE_SECONDS * (len(largest) + 1))
    return {number: machines.reason(jobs[number]) for number in largest}
