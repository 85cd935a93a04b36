"""Whether some slot could run pending jobs if nothing ran there: to run in a process with a deadline.

Negotiator's rule: a match needs Requirements that are true, on both sides. What is no plain refusal (an error, something
that changes from minute to minute) counts as a match.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from sharectl.adapters.consumption_policy_kinds import words_of_text
from sharectl.adapters.placement_slots import (
    ACCEPTS,
    MOST_VALUES,
    AskingSlots,
    Kinds,
    Row,
    Slots,
    is_momentary,
    row_of,
)
from sharectl.core.start_clauses import Clause, clauses, resource_of

MOST_WORDS = 500
"""Attributes of slots that are asked for; jobs that look at others are left untried."""
MOST_REASON = 120
"""Characters of a clause that are told."""

WANTS = "t1_jobwants"
"""Attribute that a job gets: its lasting clauses."""
_JOIN = f"MY.{WANTS} && (TARGET.{ACCEPTS} =!= false)"
_ATTRIBUTE = re.compile(r"[a-z_]\w*", re.ASCII)
_PARTLY_FREE = (("cpus",), ("memory",), ("cpus", "memory"))
"""Resources of which a slot may have no more than a job requests."""
_AT_LEAST = re.compile(
    r"(?:TARGET\.)?(\w+) >= (?:MY\.)?Request\1\b|(?:TARGET\.)?(?:_condor_)?Request(\w+) <= (?:MY\.)?\2\b"
    r"|MY\.\w+ > 0|\b1 <= MY\.Cpus\b",
    re.IGNORECASE,
)


class PendingJob:
    """Pending jobs that are alike."""

    def __init__(self, text: str) -> None:
        lines = (line.partition(" = ") for line in text.split("\n"))
        self.text = text
        self.row = {name.lower(): value for name, sign, value in lines if sign}
        self.words: frozenset[str] = frozenset().union(*map(words_of_text, self.row.values()))

    def ad(self, momentary: frozenset[str]) -> Any:
        """Ad for trials, in which what lasts of its Requirements has a name."""
        wants = "MY.Requirements" if "requirements" in self.row else "true"
        if self.words & momentary:
            wants = " && ".join(f"({clause})" for clause in self.clauses(momentary)) or "true"
        return ad_of([*self.text.split("\n"), f"{WANTS} = {wants}"])

    def clauses(self, momentary: frozenset[str]) -> list[str]:
        """Clauses of its Requirements, without those that look at something momentary."""
        found = clauses(self.row.get("requirements", "true"), lambda name: self.row.get(name.lower()))
        return [clause.text for clause in found if momentary.isdisjoint(self._seen(clause.text))]

    def _seen(self, expression: str) -> set[str]:
        words: set[str] = set()
        waiting = [expression]
        while waiting:
            fresh = words_of_text(waiting.pop()) - words
            words |= fresh
            waiting += [self.row[word] for word in fresh if word in self.row]
        return words


class Machines:
    """Kinds of slots, as the jobs of a trial tell them apart.

    Parameters
    ----------
    slots
        What they ask of jobs; what jobs ask of them is fetched here.
    """

    def __init__(self, look: Slots, slots: AskingSlots, jobs: Sequence[PendingJob]) -> None:
        wanted: set[str] = set()
        for job in jobs:
            if len(wanted | job.words) <= MOST_WORDS:
                wanted |= job.words
        self._wanted = wanted
        self._rows = list(_fetched(look, slots, filter(_ATTRIBUTE.fullmatch, sorted(wanted))))
        self._momentary = self._changing(slots.unsure)
        names = {name for _, row in self._rows for name in row}
        values = {name: len({row.get(name) for _, row in self._rows}) for name in names}
        self._scattered = frozenset(name for name, count in values.items() if count > MOST_VALUES)
        self._kinds: dict[tuple[frozenset[str], tuple[str, ...]], list[Any]] = {}
        self._choosy = any(_is_choosy(row[ACCEPTS]) for row in slots.rows)

    def knows(self, job: PendingJob) -> bool:
        """Whether all that a job asks for was fetched."""
        return job.words <= self._wanted

    def could_run(self, job: PendingJob) -> bool:
        """Whether some slot could run a job, empty or with just what it requests free, or that cannot be told."""
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
            ad.update(ad_of([f"t1_Clause = {clause}"]))
            if all(is_refused(value_of(expression("MY.t1_Clause"), ad, kind)) for kind in kinds):
                return _shortened(clause, job)
        if not any(is_refused(value_of(expression(f"MY.{WANTS}"), ad, kind)) for kind in kinds):
            return "START of every node refuses them"
        return ""

    def _of(self, job: PendingJob, few: tuple[str, ...] = ()) -> list[Any]:
        """Kinds of slots that the job can tell apart, as emptied ads, with no more than it requests of ``few``."""
        scattered = self._scattered & job.words
        if (scattered, few) not in self._kinds:
            hidden = self._momentary | (self._scattered - scattered)
            kinds = Kinds()
            for asking, row in self._rows:
                kinds.number({**{name: text for name, text in row.items() if name not in hidden}, **asking})
            self._kinds[scattered, few] = [
                ad_of([f"{name} = {_no_more(name, text, few)}" for name, text in row.items()])
                for row in kinds.rows
            ]
        return self._kinds[scattered, few]

    def _changing(self, unsure: Collection[str]) -> frozenset[str]:
        """Attributes and functions, in lower case, that may be different in a minute."""
        texts: dict[str, set[str]] = {}
        for _, row in self._rows:
            for name, text in row.items():
                texts.setdefault(name, set()).add(text)
        changing = {word for word in {*self._wanted, *texts} if is_momentary(word)} | set(unsure)
        while True:
            more = {
                name
                for name, found in texts.items()
                if name not in changing
                and any(
                    is_momentary(word) or word in changing for text in found for word in words_of_text(text)
                )
            }
            if not more:
                return frozenset(changing)
            changing |= more


def _fetched(look: Slots, slots: AskingSlots, words: Iterable[str]) -> Iterator[tuple[Row, Row]]:
    """What each slot asks of jobs, and the attributes that these look at, without resources, which are in the first."""
    ads = look(["Name", *words])
    of_slot = {row.get("name", ""): row for row in map(row_of, ads)}
    resources = {resource.lower() for resource in slots.resources}
    for name, number in zip(slots.names, slots.kinds):
        row = of_slot.get(name, {})
        yield slots.rows[number], {key: text for key, text in row.items() if key not in resources}


def ad_of(lines: Sequence[str]) -> Any:
    """ClassAd of ``Name = expression`` lines; without those that cannot be read."""
    import classad2

    try:
        return next(iter(classad2.parseAds("\n".join(lines), classad2.ParserType.Old)))
    except Exception:  # noqa: BLE001 - several kinds, by version
        ad = classad2.ClassAd()
        for line in lines:
            with contextlib.suppress(Exception):
                ad.update(classad2.parseOne(line, classad2.ParserType.Old))
        return ad


@lru_cache(maxsize=1000)
def expression(text: str) -> Any:
    """Expression as the library reads it."""
    import classad2

    return classad2.ExprTree(text)


def value_of(tree: Any, ad: Any, target: Any) -> Any:
    """Value of an expression of ``ad``; None where the library gives up."""
    try:
        return tree.eval(ad, target)
    except Exception:  # noqa: BLE001 - an expression that cannot be evaluated has no value
        return None


def is_refused(value: Any) -> bool:
    """Whether the negotiator sees no match in a value, and no mistake either: false, 0 or undefined."""
    import classad2

    return value is classad2.Value.Undefined or (type(value) in (bool, int, float) and not value)


def _first_match(ad: Any, kinds: list[Any]) -> bool:
    """Whether a job matches one of ``kinds``, which then becomes the first: the next job is probably alike."""
    join = expression(_JOIN)
    for place, kind in enumerate(kinds):
        if not is_refused(value_of(join, ad, kind)):
            kinds.insert(0, kinds.pop(place))
            return True
    return False


def _is_choosy(clause: str) -> bool:
    """Whether a clause may want no more than so many cores or so much memory free."""
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
